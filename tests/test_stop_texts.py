"""Why a query stopped is told in the same words wherever its groups are assembled."""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path

import pytest

from muntin.plan.divide import Sharing
from test_crew import Run, scratch  # noqa: F401 - a fixture
from test_window_types import stream
from traffic import query, reading

SEGMENTS = ("e", "d", "c", "b", "a", "f")
TEXTS = {
    "SELECT seg_id, count(*) AS n FROM traffic [RANGE 5 us SLIDE 5 us] WHERE 6 / vehicles > 0 GROUP BY seg_id": (
        "every row of a window can be computed\n"
        "  found: a row failed: an overflow, a division by zero, a value that cannot be cast or a function of your own\n"
        "  way out: guard the expression (CASE, NULLIF, WHERE) or cast to a wider type"
    ),
    "SELECT seg_id, CAST(max(seg_id) AS INT) AS n FROM traffic [RANGE 5 us SLIDE 5 us] GROUP BY seg_id": (
        "a value that is cast reads as its new type\n  found: CAST('a' AS int)\n  way out: test the value first, with LIKE or CASE"
    ),
}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("place", ["to the driver", "to the executors"])
@pytest.mark.parametrize("instances", [1, 3])
def test_the_text_is_the_same_in_the_driver_and_on_executors(text: str, place: str, instances: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        run = Run(Path(directory) / uuid.uuid4().hex, (query(text),), Sharing.AUTOMATIC, instances, stream(slack="0 us"))
        run.happens(place)
        run.take(0, [reading(1, segment, vehicles=0) for segment in SEGMENTS])
        run.take(1, [reading(7, segment, vehicles=1) for segment in SEGMENTS])
    assert run.assembling.stopped == {"q": TEXTS[text]}
