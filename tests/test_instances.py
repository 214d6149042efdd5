"""Assembly spread over instances, each going on in a folder of its own, gives what one assembly gives."""

from __future__ import annotations

import tempfile
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import cut, python_partials, queries, rows
from muntin.aggregates import AGGREGATES
from muntin.expression.tree import Expression
from muntin.plan.divide import Sharing
from muntin.plan.shared import SharedPlan, shared_plan
from muntin.spark.folders import Folder
from muntin.timeline import BEGINNING, END, instant_of
from muntin.windows.assembly import Assembly
from muntin.windows.closing import ResultChunk
from muntin.windows.hashes import row_hashes
from muntin.windows.shards import Partials, grouping_layout

BATCHES = 4
Batches = list[list[dict[str, Any]]]


@dataclass(frozen=True)
class Placing:
    """A plan, and for each grouping that is spread the group columns that name an instance: those that all its queries have."""

    plan: SharedPlan

    @cached_property
    def spread(self) -> dict[int, list[Expression]]:
        plan, found = self.plan, {}
        for number, grouping in enumerate(plan.groupings):
            found[number] = [key for key in grouping.keys if all(key in one.family.keys for one in plan.in_grouping(number))]
        return {number: keys for number, keys in found.items() if keys}

    def of(self, *, spread: bool) -> SharedPlan:
        """The plan of every instance, or of what is assembled once."""
        return replace(self.plan, queries=tuple(one for one in self.plan.queries if (one.grouping in self.spread) is spread))


def rows_of(chunks: list[ResultChunk]) -> list[tuple[str, str]]:
    """Results as text, in one order: NaN equals itself, and instances have no order among them."""
    return sorted((chunk.query, repr(row)) for chunk in chunks for row in chunk.table.to_pylist())


def arrived(batches: Batches, placing: Placing) -> list[tuple[list[Partials], int, int]]:
    """For each batch its partials, the punctuation and its latest row; then the end of the input."""
    steps, punctuation = [], BEGINNING
    for batch in batches:
        latest = max((instant_of(row["ts"]) for row in batch), default=BEGINNING)
        punctuation = max(punctuation, latest - 5)
        steps.append(([python_partials(batch, one) for one in placing.plan.groupings], punctuation, latest))
    return [*steps, ([grouping_layout(one).empty() for one in placing.plan.groupings], END, BEGINNING)]


def part_of(partials: list[Partials], placing: Placing, instance: int, instances: int) -> list[Partials]:
    """What an instance gets: the rows of its groups, and nothing of what is assembled once."""
    found = []
    for number, (one, grouping) in enumerate(zip(partials, placing.plan.groupings, strict=True)):
        first = 1 if grouping.by_cell else 0
        keys = [one.keys[first + grouping.keys.index(key)] for key in placing.spread.get(number, ())]
        mine = row_hashes(keys) % instances == instance if keys and len(one) else np.zeros(len(one), dtype=bool)
        found.append(one.rows(np.nonzero(mine)[0]))
    return found


def in_folder(path: Path, placing: Placing, steps: list[list[Partials]], times: list[tuple[int, int]]) -> list[ResultChunk]:
    """Every step as a process of its own would take it: from the folder, and back into it."""
    chunks: list[ResultChunk] = []
    start = Folder(path)
    start.clear()
    start.save("-1", Assembly(placing.of(spread=True), arena=start))
    for at, (partials, (punctuation, latest)) in enumerate(zip(steps, times, strict=True)):
        folder = Folder(path)
        assembly = folder.load(str(at - 1))
        assert isinstance(assembly, Assembly)
        chunks += assembly.step(partials, punctuation, latest)
        folder.save(str(at), assembly)
    return chunks


@settings(max_examples=150)
@given(
    some=st.integers(1, 4).flatmap(lambda count: st.tuples(*(queries(name=f"q{number}") for number in range(count)))),
    some_rows=st.lists(rows, min_size=3, max_size=30),
    places=st.lists(st.integers(0, 100), min_size=BATCHES - 1, max_size=BATCHES - 1),
    sharing=st.sampled_from(Sharing),
    instances=st.sampled_from([1, 2, 3, 7]),
)
def test_instances_with_some_of_the_groups_each_give_what_one_assembly_gives(
    some: tuple[Any, ...], some_rows: list[dict[str, Any]], places: list[int], sharing: Sharing, instances: int
) -> None:
    plan = shared_plan(some, AGGREGATES, sharing=sharing)
    placing = Placing(plan)
    steps = arrived(cut(some_rows, places), placing)
    alone, together = Assembly(plan), Assembly(placing.of(spread=False))
    expected = [chunk for one in deepcopy(steps) for chunk in alone.step(*one)]
    found = [chunk for one in deepcopy(steps) for chunk in together.step(*one)]
    with tempfile.TemporaryDirectory() as scratch:
        for instance in range(instances):
            parts = [part_of(partials, placing, instance, instances) for partials, _, _ in steps]
            found += in_folder(Path(scratch) / str(instance), placing, parts, [one[1:] for one in steps])
    stopped = set(alone.stopped)  # whoever fails first stops the others, which is for the job to see to
    assert rows_of([one for one in found if one.query not in stopped]) == rows_of([one for one in expected if one.query not in stopped])


def test_a_folder_that_was_left_open_or_has_another_state_gives_nothing(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "one")
    folder.clear()
    array = folder.empty((2, 3), np.int64)
    array[...] = 7
    folder.save("5", {"cells": array})
    assert Folder(folder.path).load("4") is None
    held = Folder(folder.path).load("5")
    assert held is not None
    assert held["cells"].tolist() == [[7] * 3] * 2
    assert Folder(folder.path).load("5") is None


def test_a_folder_that_others_may_write_to_is_not_read(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "one")
    folder.clear()
    folder.save("5", {})
    folder.path.chmod(0o777)
    assert Folder(folder.path).load("5") is None


def test_arrays_without_use_leave_the_folder(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "one")
    folder.clear()
    first, second = folder.kept(np.arange(4)), folder.kept(np.arange(5))
    folder.save("1", [first, second])
    folder.save("2", [second])
    assert len(list(folder.path.glob("*.array"))) == 1
    again = Folder(folder.path).load("2")
    assert again is not None
    assert again[0].tolist() == second.tolist()
