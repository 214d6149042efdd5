"""What the papers state, as tests: worked examples, lemmas, theorems and formulas. Times are in the papers' own small units."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import windows
from muntin.plan import cost
from muntin.plan.slices import SliceManager, Slicing
from muntin.semantics import TimeWindow, WindowKind, extent, wids
from muntin.timeline import MINUTE, SECOND, Interval


def slices(window: TimeWindow, slicing: Slicing, span: Interval) -> list[int]:
    """Widths of the slices in a span that begins and ends on an edge."""
    edges = [*SliceManager([window], slicing).edges(span), span.end]
    return [high - low for low, high in pairwise(edges)]


# -- on-the-fly-sharing-2006 --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("range_", "slide", "kind"), [(4, 5, WindowKind.HOPPING), (5, 5, WindowKind.TUMBLING), (6, 5, WindowKind.OVERLAPPING)]
)
def test_windows_are_hopping_tumbling_or_overlapping(range_: int, slide: int, kind: WindowKind) -> None:
    assert TimeWindow(range=range_, slide=slide).kind is kind


def test_figure_1_a_window_of_18_by_15_is_five_panes_or_one_pair() -> None:
    window = TimeWindow(range=18, slide=15)
    assert slices(window, Slicing.PANED, Interval(0, 15)) == [3, 3, 3, 3, 3]
    assert slices(window, Slicing.PAIRED, Interval(0, 15)) == [12, 3]


def test_figure_3_composes_pairs_without_building_the_common_period() -> None:
    manager = SliceManager([TimeWindow(range=18, slide=15), TimeWindow(range=12, slide=9)])
    edges = [*manager.edges(Interval(0, 45)), 45]
    assert [high - low for low, high in pairwise(edges)] == [6, 3, 3, 3, 3, 6, 3, 3, 3, 3, 6, 3]


def test_where_starts_are_aligned_the_pair_is_the_other_way_round() -> None:
    from muntin.semantics import Alignment

    window = TimeWindow(range=18, slide=15, alignment=Alignment.STARTS)
    assert slices(window, Slicing.PAIRED, Interval(0, 15)) == [3, 12]


@given(window=windows, slicing=st.sampled_from(Slicing))
def test_lemma_1_the_last_slices_of_a_period_add_up_to_range_mod_slide(window: TimeWindow, slicing: Slicing) -> None:
    """A window can be computed from slices if and only if some run of them at the end of the period is as long as RANGE mod SLIDE."""
    end = window.ends.floor(1000)
    edges = set(SliceManager([window], slicing).edges(Interval(end - window.slide, end)))
    assert end - window.range % window.slide in edges | {end}


@given(some=st.lists(windows, min_size=1, max_size=6))
def test_theorem_1_pairs_never_make_more_slices_than_panes(some: list[TimeWindow]) -> None:
    span = Interval(0, 500)
    paired, paned = (set(SliceManager(some, slicing).edges(span)) for slicing in (Slicing.PAIRED, Slicing.PANED))
    assert paired <= paned


@given(some=st.lists(windows, min_size=2, max_size=6), leaving=st.integers(0, 5))
def test_a_query_that_leaves_takes_its_edges_with_it_and_no_others(some: list[TimeWindow], leaving: int) -> None:
    manager = SliceManager(some)
    gone = some[leaving % len(some)]
    manager.remove(gone)
    rest = [window for at, window in enumerate(some) if at != leaving % len(some)]
    assert list(manager.edges(Interval(-100, 300))) == list(SliceManager(rest).edges(Interval(-100, 300)))


def test_the_edges_of_coprime_slides_are_enumerated_in_the_span_only() -> None:
    manager = SliceManager([TimeWindow(range=p + 1, slide=p) for p in (1_000_003, 1_000_033, 1_000_037)])
    assert len(list(manager.edges(Interval(0, 3_000_000)))) == 13


@pytest.mark.parametrize(("rate", "pays"), [(375, True), (0.0005, False)])
def test_inequality_1_sharing_pays_at_the_rate_of_the_trades_and_not_at_two_trades_an_hour(rate: float, pays: bool) -> None:
    some = [TimeWindow(range=(600 + at) * SECOND, slide=(300 + 7 * at % 300) * SECOND) for at in range(128)]
    gamma = cost.slices_per_second(SliceManager(some))
    assert (rate > cost.least_rate_to_share(some, slices=gamma)) == pays
    shared = cost.shared_cost(some, rate=rate, slices=gamma)
    unshared = cost.unshared_cost(some, rate=rate)
    assert (shared.total < unshared.total) == pays


@given(window=windows)
def test_table_2_a_window_is_combined_from_at_most_two_slices_a_period(window: TimeWindow) -> None:
    paired, paned = (cost.slices_per_window(window, slicing) for slicing in (Slicing.PAIRED, Slicing.PANED))
    assert paned == window.range // math.gcd(window.range, window.slide)
    assert paired <= min(paned, math.ceil(2 * window.range / window.slide) + 1)


# -- panes-2005 ---------------------------------------------------------------------------------------------------------------------


def test_figure_1_of_panes_a_four_minute_window_is_four_panes() -> None:
    window = TimeWindow(range=4 * MINUTE, slide=MINUTE)
    assert slices(window, Slicing.PANED, extent(5, window)) == [MINUTE] * 4
    assert cost.panes_per_window(window) == 4
    assert [len(wids(instant, window)) for instant in (0, MINUTE - 1, MINUTE)] == [4, 4, 4]


def test_panes_per_slide_are_two_for_nine_by_six_minutes() -> None:
    window = TimeWindow(range=9 * MINUTE, slide=6 * MINUTE)
    assert slices(window, Slicing.PANED, Interval(0, 6 * MINUTE)) == [3 * MINUTE] * 2


def test_formulas_3_1_to_3_4_panes_pay_with_many_rows_and_not_with_as_many_groups() -> None:
    window = TimeWindow(range=5 * MINUTE, slide=MINUTE)
    assert cost.paned_cost(window, rows=100, groups=1, differential=False) == 100 / 5 + 1 + 5
    assert cost.paned_cost(window, rows=100, groups=1, differential=True) == 100 / 5 + 1 + 2
    assert cost.buffered_cost(window, rows=100, differential=False) == 100
    assert cost.buffered_cost(window, rows=100, differential=True) == 40
    assert cost.paned_cost(window, rows=100, groups=20, differential=False) > cost.buffered_cost(window, rows=100, differential=False)


# -- window-id-2005 -----------------------------------------------------------------------------------------------------------------


def test_query_1_extent_10_is_minutes_6_to_11_and_a_tuple_in_it_belongs_to_five_extents() -> None:
    window = TimeWindow(range=300 * SECOND, slide=60 * SECOND)
    assert extent(10, window) == Interval(6 * MINUTE, 11 * MINUTE)
    assert extent(11, window) == Interval(7 * MINUTE, 12 * MINUTE)
    assert list(wids(10 * MINUTE + 30 * SECOND, window)) == [10, 11, 12, 13, 14]


def test_extents_0_to_3_of_query_1_hold_one_to_four_minutes_of_data() -> None:
    window = TimeWindow(range=300 * SECOND, slide=60 * SECOND)
    held = [extent(w, window).end - max(0, extent(w, window).start) for w in range(5)]
    assert held == [MINUTE, 2 * MINUTE, 3 * MINUTE, 4 * MINUTE, 5 * MINUTE]
