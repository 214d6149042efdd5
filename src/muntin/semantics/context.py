"""The class of a window: what must be known of other tuples before a tuple's windows are.

In: a window. Out: its `Context`, and in words the state it needs, both for `explain`.
Paper: window-id-2005, sections 4 and 6. Convention: as in the paper, a row number is an attribute of the tuple, so plain tuple-based
windows are context free; that somebody counted the rows is the source's business.
"""

from __future__ import annotations

from enum import Enum

from muntin.semantics.bytuple import SlideOrder, TupleSlide
from muntin.semantics.landmark import LandmarkWindow
from muntin.semantics.measure import ROWS
from muntin.semantics.sliding import SlidingWindow

Window = SlidingWindow | LandmarkWindow | TupleSlide


class Context(Enum):
    """The value is what it stands for."""

    CF = "context free"
    FCF = "forward-context free"
    FCB = "forward-context bounded"
    FCU = "forward-context unbounded"


def context_of(window: Window) -> Context:
    if isinstance(window, TupleSlide):
        return Context.FCU if window.order is SlideOrder.RANK else Context.FCB
    return Context.FCF if window.pattr else Context.CF


def state_of(window: Window) -> str:
    """What is held for the window besides the results, in words."""
    if isinstance(window, TupleSlide):
        return _state_of_tuple_slide(window)
    counter = ", a row counter per partition" if window.pattr else ", one row counter" if window.measure == ROWS else ""
    if isinstance(window, LandmarkWindow):
        since = "the beginning" if window.period is None else "the landmark"
        return f"one partial per slice that is open, one for all since {since}{counter}"
    return f"partials of the slices in the last RANGE, {window.measure.text(window.range)}{counter}"


def _state_of_tuple_slide(window: TupleSlide) -> str:
    counted = {
        SlideOrder.ARRIVAL: "" if window.slide == 1 else ", which of them an n-th tuple ended, one row counter",
        SlideOrder.RANK: ", how many tuples have each, a count of those below",
    }[window.order]
    each = " of each partition" if window.pattr else ""
    return f"one partial per distinct {window.rattr}{each} in the last RANGE, {window.measure.text(window.range)}{counted}"
