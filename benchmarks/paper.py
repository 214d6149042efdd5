"""What on-the-fly-sharing-2006 says of its own runs at 256 queries: seconds of a machine of 2006, and aggregations.

In: nothing. Out: figures by workload. Convention: None where the text gives no number; a workload's shared total is that of its last
figure. Sections 6.2 to 6.4.
"""

from __future__ import annotations

from dataclasses import dataclass

QUERIES = 256


@dataclass(frozen=True)
class PaperFigure:
    """One strategy of the paper, and which of ours it is held against."""

    scheme: str
    ours: str
    seconds: float
    partial: int | None
    final: int


A = (
    PaperFigure("unshared paired", "unshared paired", 50.48, 291_490_816, 6_813),
    PaperFigure("shared paned", "shared paned", 6.90, None, 2_340_842),
    PaperFigure("shared paired", "shared paired", 2.63, 1_138_636, 1_462_391),
)
B = (
    PaperFigure("unshared", "unshared paired", 27.25, 116_101_112, 0),
    PaperFigure("shared fragments", "automatic", 3.01, 1_094_947, 6_677_009),
)
C_REGULAR = (
    PaperFigure("unshared paired", "unshared paired", 31.19, 100_902_960, 6_955),
    PaperFigure("shared shards", "automatic", 3.67, 1_138_636, 2_256_496),
)
C_LOW_SHARING = (
    PaperFigure("unshared paired", "unshared paired", 34.56, 120_672_210, 6_812),
    PaperFigure("shared shards", "automatic", 17.73, 1_294_064, 63_984_043),
)

#: Workload B: fragments per window of ten minutes, on average, and in the hour (6.3).
FRAGMENTS_PER_WINDOW, FRAGMENTS_PER_HOUR = 11_407, 34_327


def shared_total(figures: tuple[PaperFigure, ...]) -> int:
    """Partial and final aggregations of the paper's best strategy."""
    return (figures[-1].partial or 0) + figures[-1].final
