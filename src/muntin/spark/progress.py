"""How far a job is: the numbers, and a display of them that says nothing when there is nothing to say.

In: a `Progress` after each entry. Out: on a terminal a few lines for each stream, redrawn in place, with the tasks of the running Spark
stage when an entry takes long; elsewhere a plain line, at most one every ten seconds for each stream, and one at the end.
Convention: late and dead-lettered rows are always shown, in colour once there are any.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from muntin.disorder import Counts
from muntin.timeline import BEGINNING, END, format_instant

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: An entry that takes longer than this shows the tasks of its Spark stage.
LONG_ENTRY_SECONDS = 1.0
PLAIN_LINE_SECONDS = 10.0
REFRESHES_PER_SECOND = 4


@dataclass(frozen=True)
class Progress:
    """The counters of one stream's job since it began, and the size of its state now. `punctuation` is in microseconds."""

    stream: str = ""
    entries: int = 0
    rows: int = 0
    rows_per_second: float = 0.0
    punctuation: int = BEGINNING
    windows_closed: int = 0
    results: int = 0
    late: int = 0
    dead_lettered: int = 0
    seconds: float = 0.0
    slices: int = 0
    groups: int = 0
    disorder: Counts = Counts()
    troubles: tuple[str, ...] = ()  #: static tables that are used as they were, and why

    def __str__(self) -> str:
        parts = [counted(self.entries, "batch", "batches"), counted(self.rows, "row"), f"{self.rows_per_second:,.0f} rows/s"]
        parts += [reached(self.punctuation), f"{counted(self.windows_closed, 'window')} closed", counted(self.results, "result")]
        losses = [f"{count:,} {name}" for name, count in losses_of(self)]
        return "\n".join([named(self) + " · ".join([*parts, *losses, held(self)]), *map(older, self.troubles)])


@dataclass(frozen=True)
class Tasks:
    """The tasks of the Spark stages that are running."""

    done: int
    total: int


class ProgressDisplay:
    """Shows the progress of a job while it is entered: `with ProgressDisplay(spark) as display: … display.update(progress)`."""

    def __init__(
        self, spark: SparkSession | None = None, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._spark = spark
        self._console = console or Console(stderr=True)
        self._clock = clock
        self._streams: dict[str, Progress] = {}
        self._began = self._updated = clock()
        self._printed: dict[str, float] = {}
        self._sign: RenderableType = Spinner("dots", style="cyan")
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(get_renderable=self.drawn, console=self._console, refresh_per_second=REFRESHES_PER_SECOND)
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live:
            self._spark, self._sign = None, "•"  # the last drawing stands still, and asks Spark nothing: the session may be gone
            self._live.stop()
        else:
            for progress in self._streams.values():
                self._print(progress)

    def update(self, progress: Progress) -> None:
        """Takes the newest numbers, from whichever thread has them."""
        self._streams[progress.stream] = progress
        self._updated = self._clock()
        if self._live is None and self._updated - self._printed.get(progress.stream, self._began) >= PLAIN_LINE_SECONDS:
            self._print(progress)
            self._printed[progress.stream] = self._updated

    def drawn(self) -> RenderableType:
        """What the terminal shows now."""
        waiting = self._clock() - self._updated
        tasks = running_tasks(self._spark) if self._spark and waiting >= LONG_ENTRY_SECONDS else None
        lines: list[RenderableType] = []
        for progress in list(self._streams.values()):
            lines += [self._headed(headline(progress)), details(progress)]
            lines += [Text(f"  {older(trouble)}", style="yellow") for trouble in progress.troubles]
        if not lines:
            lines.append(self._headed(Text("waiting for the first rows", style="dim")))
        if tasks:
            lines.append(stage_bar(tasks, waiting))
        return Group(*lines)

    def _headed(self, text: Text) -> Table:
        head = Table.grid(padding=(0, 1))
        head.add_row(self._sign, text)
        return head

    def _print(self, progress: Progress) -> None:
        self._console.print(str(progress), highlight=False, soft_wrap=True)


def running_tasks(spark: SparkSession) -> Tasks | None:
    """Done and all tasks of the stages that run now; None if none does, or if the session is going away."""
    try:
        tracker = spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    except Exception:  # noqa: BLE001 - py4j's errors, which PySpark does not export; a display must not fail the job it shows
        return None
    known = [stage for stage in stages if stage is not None]
    return Tasks(sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)) if known else None


def headline(progress: Progress) -> Text:
    numbers = [counted(progress.entries, "batch", "batches"), counted(progress.rows, "row"), f"{progress.rows_per_second:,.0f} rows/s"]
    return Text.assemble(named(progress), ("   ".join(numbers), "bold"), f"   {reached(progress.punctuation)}")


def details(progress: Progress) -> Text:
    """The second line; losses stand out as soon as there are any."""
    text = Text(f"  {counted(progress.windows_closed, 'window')} closed   {counted(progress.results, 'result')}   ", style="dim")
    for name, count in losses_of(progress):
        text.append(f"{count:,} {name}   ", style="not dim yellow" if count else "")
    return text.append(held(progress))


def losses_of(progress: Progress) -> list[tuple[str, int]]:
    """Late and dead-lettered rows, and what else went wrong with the order of rows, if it did."""
    counts = progress.disorder
    others = (("broken promises", counts.broken), ("stalled sub-streams", counts.stalled), ("clock jumps", counts.clock_jumps))
    return [("late", progress.late), ("dead-lettered", progress.dead_lettered), *((name, count) for name, count in others if count)]


def stage_bar(tasks: Tasks, seconds: float) -> Table:
    bar = Table.grid(padding=(0, 1))
    bar.add_row(
        " ",
        ProgressBar(tasks.total, tasks.done, width=30, complete_style="cyan", finished_style="cyan"),
        f"{tasks.done} of {tasks.total} tasks, {seconds:.0f} s",
    )
    return bar


def older(trouble: str) -> str:
    return "going on with an older version of a table: " + " ".join(trouble.split())


def named(progress: Progress) -> str:
    return f"{progress.stream}: " if progress.stream else ""


def held(progress: Progress) -> str:
    return f"{counted(progress.slices, 'slice')}, {counted(progress.groups, 'group')} held"


def counted(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def reached(punctuation: int) -> str:
    """How far the stream's time has come, for people: to the second, the fraction left out."""
    if punctuation <= BEGINNING:
        return "no time closed yet"
    return "to the end" if punctuation >= END else "up to " + format_instant(punctuation)[:19].replace("T", " ")
