"""The registry: every change is a new version, and the old one stays as it was."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muntin.errors import Refusal
from muntin.query.registry import Registry
from queries_over_trades import FROM_TRADES, checked

QUERY = checked(f"SELECT count(*) {FROM_TRADES}")
BIG, SMALL = replace(QUERY, name="big"), replace(QUERY, name="small")


def test_a_change_makes_the_next_version_and_leaves_the_last() -> None:
    empty = Registry()
    both = empty.add(BIG).add(SMALL)
    left = both.drop("Big")
    assert (empty.version, both.version, left.version) == (0, 2, 3)
    assert (empty.queries, both.queries, left.queries) == ((), (BIG, SMALL), (SMALL,))
    assert "BIG" in both
    assert "big" not in left
    assert left.find("SMALL") is SMALL


@pytest.mark.parametrize("name", ["big", "BIG"])
def test_a_name_is_taken_once_whatever_the_case(name: str) -> None:
    with pytest.raises(Refusal) as refusal:
        Registry().add(BIG).add(replace(SMALL, name=name))
    assert str(refusal.value) == (
        f"a query's name is its own, whatever the case\n  found: {name}, and there is big already\n"
        "  way out: choose another name, or drop big first"
    )


@pytest.mark.parametrize(("name", "way_out"), [("bug", "did you mean big?"), ("zzz", "the queries are: big, small")])
def test_only_what_is_there_can_be_dropped(name: str, way_out: str) -> None:
    with pytest.raises(Refusal) as refusal:
        Registry().add(BIG).add(SMALL).drop(name)
    assert str(refusal.value) == f"only a registered query can be dropped\n  found: {name}\n  way out: {way_out}"
