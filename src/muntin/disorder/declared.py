"""Which makers a stream's declaration asks for, for each of its windowing attributes.

In: a stream and an attribute. Out: a `Punctuator` that has observed nothing.
Convention: sub-streams, markers, heartbeats and a slack by rows are about the stream's time. Other columns have a slack of their own, zero
unless `slack_of` says more; `row_num` and `arrival_ts` are exact.
"""

from __future__ import annotations

from muntin.disorder.arrival import ArrivalClock, RowCount
from muntin.disorder.carried import Carried
from muntin.disorder.heartbeat import Heartbeat
from muntin.disorder.observation import Maker
from muntin.disorder.punctuator import Punctuator
from muntin.disorder.slack import Ordered, Slack, TupleSlack
from muntin.query.model import StreamDefinition
from muntin.semantics import Attribute


def punctuator_of(stream: StreamDefinition, attribute: Attribute) -> Punctuator:
    if attribute.counts_rows:
        return Punctuator((RowCount(),))
    if stream.schema.field(attribute.name) is None:
        return Punctuator((ArrivalClock(),))
    if attribute.name != stream.time:
        return Punctuator((Slack(stream.disorder.slack_of.get(attribute.name, 0)),))
    idle_after = stream.disorder.idle_after
    return Punctuator(tuple(makers_of(stream)), idle_after.micros if idle_after else None)


def makers_of(stream: StreamDefinition) -> list[Maker]:
    """What is known of the stream's time."""
    declared, makers = stream.disorder, list[Maker]()
    if stream.slack is not None:
        makers.append(Ordered(stream.slack.micros) if declared.substreams else Slack(stream.slack.micros))
    if declared.rows is not None:
        makers.append(TupleSlack(declared.rows))
    if declared.markers is not None:
        makers.append(Carried())
    if declared.heartbeat is not None:
        makers.append(Heartbeat(declared.heartbeat.micros))
    return makers
