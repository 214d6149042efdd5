"""The planner where queries come and go: groupings stay while newcomers fit into them, and are decided on again where not."""

from __future__ import annotations

import math
from zlib import crc32

from muntin.aggregates import AGGREGATES
from muntin.plan.divide import NEW_CODE_NS, Load, Sharing, adapted, cost, divisions
from muntin.plan.planner import Planner, division_names
from muntin.plan.shared import SharedPlan
from muntin.query.check import check_pipeline
from muntin.query.model import Query

STREAM = "CREATE STREAM s (ts TIMESTAMP, a INT, b INT, c INT, g INT) WITH (source = 'files', format = 'csv', path = '-', time = 'ts');"
BY_A = [f"SELECT sum(c) AS v FROM s [RANGE {number + 2} minutes SLIDE 1 minute] WHERE a > {number}" for number in range(12)]
BY_B = [f"SELECT sum(c) AS v FROM s [RANGE {number + 2} minutes SLIDE 1 minute] WHERE b > {number}" for number in range(12)]
#: Seen: on either axis few cells, on both many.
SEEN = Load(rows=1_000_000, slices=60, cells={})


def checked(*selects: str) -> list[Query]:
    text = STREAM + "".join(f"CREATE QUERY q{crc32(select.encode())} AS {select};" for select in selects)
    return list(check_pipeline(text, AGGREGATES).queries)


def planner(versions: list[list[Query]]) -> Planner:
    return Planner(lambda version: versions[version], AGGREGATES)


def cells(plan: SharedPlan) -> list[frozenset[str]]:
    return [frozenset(str(axis.expression) for axis in grouping.axes) for grouping in plan.groupings]


def test_a_query_on_known_axes_joins_the_grouping_that_has_them() -> None:
    before, after = checked(*BY_A[:11], *BY_B[:11]), checked(*BY_A, *BY_B)
    choice = planner([before, after])
    first, second = choice.choose(0, SEEN), choice.choose(1, SEEN)
    assert cells(first) == cells(second)
    assert {query for part in second.division for query in part.queries} == set(after)


def test_a_query_that_leaves_takes_an_empty_grouping_with_it() -> None:
    by_group = [f"{select} GROUP BY g" for select in BY_A[:2]]
    every = checked(*BY_A, *by_group)
    parts = divisions(every, planner([]).sharing, SEEN)
    left = adapted(parts, [query for query in every if not query.group_by])
    assert left is not None
    assert sum(len(part.queries) for part in left) == len(BY_A)
    assert len(left) < len(parts)


def test_a_query_with_an_axis_or_a_group_of_its_own_is_decided_on() -> None:
    standing = checked(*BY_A)
    parts = divisions(standing, planner([]).sharing, SEEN)
    assert adapted(parts, [*standing, *checked(BY_B[0])]) is None
    assert adapted(parts, [*standing, *checked(BY_A[0] + " GROUP BY g")]) is None
    assert adapted(parts, [*standing, *checked(BY_A[0].replace("a > 0", "a > 77"))]) is not None


def test_many_more_queries_are_decided_on_anew() -> None:
    few, many = checked(*BY_A[:4]), checked(*BY_A, *BY_B)
    choice = planner([few, many, few])
    for version, queries in enumerate((few, many, few)):
        assert choice.choose(version, SEEN).division == tuple(divisions(queries, choice.sharing, SEEN))


def test_a_plan_is_had_again_by_its_names() -> None:
    before, after = checked(*BY_A[:10]), checked(*BY_A[1:])
    choice = planner([before, after])
    choice.choose(0, SEEN)
    plan = choice.choose(1, SEEN)
    replayed = planner([before, after]).named(1, division_names(plan))
    assert replayed.division == plan.division
    assert replayed.groupings == plan.groupings


def test_where_predicates_come_and_go_they_get_no_columns_of_their_own() -> None:
    """Over few rows, three predicates are cheapest as columns, which need new code for every newcomer; cells do not."""
    versions = [checked(*BY_A[at : at + 3]) for at in range(9)]
    choice, few = planner(versions), Load(rows=2_000, slices=60)
    plans = [choice.choose(version, few) for version in range(len(versions))]
    assert cells(plans[0]) == [frozenset()]
    assert cells(plans[-1]) == [frozenset({"a"})]
    assert cells(planner(versions).choose(8, few)) == [frozenset()]


def test_a_better_plan_is_taken_once_it_would_have_paid_for_new_code() -> None:
    queries = checked(*BY_A, *BY_B)
    both = frozenset(divisions(queries, Sharing.SHARDS, SEEN)[0].expressions)
    few, many = (Load(400_000, 60, cells={both: found} | {frozenset({axis}): 3 for axis in both}) for found in (9, 2_000))
    choice = planner([queries])
    first = choice.choose(0, few)
    saved = cost(first.division, many) - cost(divisions(queries, Sharing.AUTOMATIC, many), many)
    assert 0 < saved < NEW_CODE_NS / 2
    plans = [choice.choose(0, many, first)]
    while plans[-1] is first:
        plans.append(choice.choose(0, many, first))
    assert len(plans) == math.ceil(NEW_CODE_NS / saved)
    assert choice.choose(0, many, plans[-1]) is plans[-1]


def test_a_long_list_of_constants_is_searched_and_not_compared_one_by_one() -> None:
    """Over few rows a predicate is cheapest as a column of its own, but each constant in it would be a Column."""
    few = Load(rows=2_000, slices=60)
    for length, found in ((10, frozenset()), (10_000, frozenset({"a"}))):
        listed = checked(f"SELECT sum(c) AS v FROM s [RANGE 2 minutes SLIDE 1 minute] WHERE a IN ({', '.join(map(str, range(length)))})")
        assert cells(planner([listed]).choose(0, few)) == [found]
