"""Assembly spread over instances, each going on in a folder of its own, gives what one assembly gives."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import cut, python_partials, queries, rows
from muntin.aggregates import AGGREGATES
from muntin.columnar import integers
from muntin.plan.divide import Sharing
from muntin.plan.family import BUCKETS
from muntin.plan.shared import SharedPlan, shared_plan
from muntin.spark.folders import LARGE, Folder
from muntin.timeline import BEGINNING, END, instant_of
from muntin.windows.assembly import Assembly
from muntin.windows.lowering import ResultChunk
from muntin.windows.shards import Partials, grouping_layout
from muntin.windows.turns import Report, Taking, Turn, together

BATCHES = 4
Batches = list[list[dict[str, Any]]]
Step = tuple[list[Partials], Turn]


def rows_of(chunks: list[ResultChunk]) -> list[tuple[str, str]]:
    """Results as text, in one order: NaN equals itself, and instances have no order among them."""
    return sorted((chunk.query, repr(row)) for chunk in chunks for row in chunk.table.to_pylist())


def turns(batches: Batches, plan: SharedPlan) -> list[Step]:
    """For each batch its partials and its turn; then the end of the input."""
    steps, punctuation = [], BEGINNING
    for batch in batches:
        latest = max((instant_of(row["ts"]) for row in batch), default=BEGINNING)
        punctuation = max(punctuation, latest - 5)
        steps.append(([python_partials(batch, one) for one in plan.groupings], Turn(plan, punctuation, latest)))
    return [*steps, ([grouping_layout(one).empty() for one in plan.groupings], Turn(plan, END, BEGINNING))]


def part_of(partials: list[Partials], plan: SharedPlan, instance: int, instances: int) -> list[Partials]:
    """What an instance gets: the rows of its buckets, and nothing of what is assembled once."""
    found = []
    for one, grouping in zip(partials, plan.groupings, strict=True):
        bucket = integers(one.keys[-1], null=0) if grouping.family.spread else np.full(len(one), -1)
        found.append(one.rows(np.nonzero(bucket * instances // BUCKETS == instance)[0]))
    return found


class Crew:
    """Instances as processes of their own would be: each turn begins with what is in the folder, and ends with it."""

    def __init__(self, directory: Path, plan: SharedPlan, instances: int) -> None:
        self.folders = [directory / str(number) for number in range(instances)]
        for path in self.folders:
            folder = Folder(path)
            folder.clear()
            folder.save("0", Assembly(plan.part(spread=True), arena=folder))

    def take(self, name: str, following: str, step: Step) -> tuple[list[ResultChunk], Report]:
        partials, turn = step
        chunks: list[ResultChunk] = []
        reports = []
        for number, path in enumerate(self.folders):
            folder = Folder(path)
            assembly = folder.load(name)
            assert isinstance(assembly, Assembly)
            mine = part_of(partials, turn.plan, number, len(self.folders))
            taking = Taking(assembly, replace(turn, plan=turn.plan.part(spread=True)), mine)
            chunks += taking.results()
            reports.append(taking.report())
            folder.save(following, assembly)
        return chunks, together(reports)


@settings(max_examples=60)
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
    plan = shared_plan(some, AGGREGATES, sharing=sharing, spread=lambda family: bool(family.keys))
    alone_plan = shared_plan(some, AGGREGATES, sharing=sharing)
    batches = cut(some_rows, places)
    alone, driver = Assembly(alone_plan), Assembly(plan.part(spread=False))
    expected = [chunk for partials, turn in turns(batches, alone_plan) for chunk in Taking(alone, turn, partials).results()]
    found: list[ResultChunk] = []
    with tempfile.TemporaryDirectory() as scratch:
        crew, kept = Crew(Path(scratch) / "crew", plan, instances), Path(scratch) / "kept"
        for at, (partials, turn) in enumerate(turns(batches, plan)):
            found += driver.step(partials, turn.punctuation, turn.latest)
            shutil.copytree(Path(scratch) / "crew", kept)
            chunks, report = crew.take(str(at), str(at + 1), (partials, turn))
            if report.stops:  # the entry again, this time with all knowing which query ends with which window
                shutil.rmtree(Path(scratch) / "crew")
                shutil.copytree(kept, Path(scratch) / "crew")
                chunks, _ = crew.take(str(at), str(at + 1), (partials, replace(turn, stops=report.stops)))
            shutil.rmtree(kept)
            found += chunks
    assert rows_of(found) == rows_of(expected)


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


def test_what_is_large_and_has_not_changed_is_not_written_again(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "one")
    folder.clear()
    numbers, words = np.arange(LARGE), pa.array([str(number) for number in range(LARGE)])
    folder.save("1", {"numbers": numbers, "words": words, "same": numbers})
    before = {one.name for one in folder.path.glob("*.array")}
    for name in ("1", "2"):
        held = Folder(folder.path)
        state = held.load(name)
        assert state is not None
        assert state["numbers"].tolist() == state["same"].tolist() == list(range(LARGE))
        assert state["words"].equals(words)
        held.save(str(int(name) + 1), state)
    assert {one.name for one in folder.path.glob("*.array")} == before
    held = Folder(folder.path)
    state = held.load("3")
    assert state is not None
    state["numbers"][0] = 5  # in place: the file changes with it
    state["words"] = pa.concat_arrays([state["words"], pa.array(["more"])])
    held.save("4", state)
    again = Folder(folder.path).load("4")
    assert again is not None
    assert (again["numbers"][0], again["words"][-1].as_py()) == (5, "more")
    assert len(before & {one.name for one in folder.path.glob("*.array")}) == 1
