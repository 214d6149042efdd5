"""The one place that makes punctuations; everything else only obeys them.

In: an `Observation` of each batch or timer: rows, least and greatest tick and markers per sub-stream, and the clock.
Out: `Punctuations`: below which tick no more rows are expected, of the whole stream and of each sub-stream.
Convention: ticks are those of the windowing attribute; each attribute that windows are over has a `Punctuator` of its own. All values are
frozen: `observe` gives the next one, so a batch can be computed again from the state before it. A punctuation never goes back.
Paper: window-id-2005, sections 5.1 and 7.2.
"""

from __future__ import annotations

from muntin.disorder.arrival import ArrivalClock, RowCount
from muntin.disorder.attributes import Attributes, Reached
from muntin.disorder.carried import Carried
from muntin.disorder.clock import BelievedClock
from muntin.disorder.heartbeat import Heartbeat
from muntin.disorder.observation import Key, Maker, Observation, Punctuations, Seen
from muntin.disorder.punctuator import Counts, Punctuator
from muntin.disorder.record import record, restored
from muntin.disorder.slack import Ordered, Slack, TupleSlack

__all__ = [
    "ArrivalClock", "Attributes", "BelievedClock", "Carried", "Counts", "Heartbeat", "Key", "Maker", "Observation", "Ordered",
    "Punctuations", "Punctuator", "Reached", "RowCount", "Seen", "Slack", "TupleSlack",
    "record", "restored",
]  # fmt: skip
