"""The slow, obvious truth: every window evaluated by itself over the rows that belong to it.

In: a query; rows as mappings in order of arrival, with the punctuations in force; static tables by name. Out: result rows as
dictionaries. `results` gives them all in order of window end and group; `emitted` step by step, with early and corrected ones.
Convention: quadratic on purpose; nothing is shared, sliced or combined. Everything else is tested against this.
"""

from __future__ import annotations

from muntin.reference.emission import emitted
from muntin.reference.results import Arrival, Results, arrivals, results
from muntin.reference.rows import Row, Tables, joined, sort_key, value
from muntin.reference.steps import Promise, Step

__all__ = ["Arrival", "Promise", "Results", "Row", "Step", "Tables", "arrivals", "emitted", "joined", "results", "sort_key", "value"]
