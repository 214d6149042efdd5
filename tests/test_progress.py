"""The progress display: what it says on a terminal, and how little it says elsewhere."""

from __future__ import annotations

import io
import threading
import time

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from muntin.spark import progress
from muntin.spark.progress import LONG_ENTRY_SECONDS, PLAIN_LINE_SECONDS, Progress, ProgressDisplay, Tasks, running_tasks
from muntin.spark.sinks.base import EntryId
from muntin.spark.sinks.console import ConsoleSink
from muntin.timeline import BEGINNING, END, SECOND

NOON = 1_101_902_400 * SECOND
SOME = Progress(
    entries=12, rows=1_138_636, rows_per_second=316_287.7, punctuation=NOON + 1, windows_closed=6_813, results=204_391, slices=40, groups=1
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=120, height=30, color_system=None, legacy_windows=False)


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def drawn(display: ProgressDisplay) -> list[str]:
    screen = console(terminal=False)
    screen.print(display.drawn())
    return [line.strip() for line in printed(screen).splitlines()]


def test_a_progress_prints_every_counter() -> None:
    assert str(SOME) == (
        "12 batches · 1,138,636 rows · 316,288 rows/s · up to 2004-12-01 12:00:00 · 6,813 windows closed · 204,391 results"
        " · 0 late · 0 dead-lettered · 40 slices, 1 group held"
    )


@pytest.mark.parametrize(
    ("punctuation", "text"),
    [(BEGINNING, "no time closed yet"), (END, "to the end"), (-1, "up to 1969-12-31 23:59:59"), (0, "up to 1970-01-01 00:00:00")],
)
def test_the_time_reached_is_said_in_words_at_both_ends(punctuation: int, text: str) -> None:
    assert f" · {text} · " in str(Progress(punctuation=punctuation))


def test_a_terminal_shows_the_newest_numbers_and_waits_for_the_first() -> None:
    display = ProgressDisplay(console=console(terminal=True))
    assert "waiting for the first rows" in drawn(display)[0]
    display.update(SOME)
    head, rest = drawn(display)
    assert head.endswith("12 batches   1,138,636 rows   316,288 rows/s   up to 2004-12-01 12:00:00")
    assert rest == "6,813 windows closed   204,391 results   0 late   0 dead-lettered   40 slices, 1 group held"


def test_the_last_drawing_stays_on_the_terminal() -> None:
    screen = console(terminal=True)
    with ProgressDisplay(console=screen) as display:
        display.update(SOME)
    assert "• 12 batches" in printed(screen)


def test_only_a_long_batch_shows_its_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "running_tasks", lambda _: Tasks(done=5, total=8))
    clock = Clock()
    display = ProgressDisplay(object(), console(terminal=True), clock=clock)  # type: ignore[arg-type]
    display.update(SOME)
    for waited, shown in ((LONG_ENTRY_SECONDS - 0.1, False), (LONG_ENTRY_SECONDS, True), (9.0, True)):
        clock.now = 100.0 + waited
        assert any("5 of 8 tasks" in line for line in drawn(display)) is shown
    assert drawn(display)[-1].endswith("5 of 8 tasks, 9 s")
    display.update(SOME)
    assert not any("tasks" in line for line in drawn(display))


def test_elsewhere_there_is_at_most_one_plain_line_in_ten_seconds_and_one_at_the_end() -> None:
    screen, clock = console(terminal=False), Clock()
    with ProgressDisplay(console=screen, clock=clock) as display:
        for second in range(25):
            clock.now = 100.0 + second
            display.update(Progress(entries=second))
    assert [line.split(" · ")[0] for line in printed(screen).splitlines()] == ["10 batches", "20 batches", "24 batches"]
    assert PLAIN_LINE_SECONDS == 10
    assert "\x1b" not in printed(screen)


def test_each_stream_has_a_line_of_its_own() -> None:
    screen, clock = console(terminal=False), Clock()
    with ProgressDisplay(console=screen, clock=clock) as display:
        for second in (9, 10, 11, 19, 20, 21):
            clock.now = 100.0 + second
            display.update(Progress("trades", entries=second))
            display.update(Progress("quotes", entries=100 + second))
        shown = drawn(display)
    lines = [line.split(" · ")[0] for line in printed(screen).splitlines()]
    assert [line for line in lines if line.startswith("trades")] == ["trades: 10 batches", "trades: 20 batches", "trades: 21 batches"]
    assert [line for line in lines if line.startswith("quotes")] == ["quotes: 110 batches", "quotes: 120 batches", "quotes: 121 batches"]
    assert [line.split("   ")[0][2:] for line in shown[::2]] == ["trades: 21 batches", "quotes: 121 batches"]


def test_a_job_that_never_had_rows_says_nothing_elsewhere() -> None:
    screen = console(terminal=False)
    with ProgressDisplay(console=screen):
        pass
    assert printed(screen) == ""


def test_the_display_and_a_console_sink_share_a_terminal() -> None:
    screen = console(terminal=True)
    with ProgressDisplay(console=screen) as display, ConsoleSink(screen) as sink:
        sink.open("run-1", [])
        sink.write(EntryId(0), [])
        display.update(SOME)
    assert "12 batches" in printed(screen)


def test_running_tasks_are_those_of_the_stages_spark_runs(spark: SparkSession) -> None:
    assert running_tasks(spark) is None
    job = threading.Thread(target=lambda: spark.sparkContext.parallelize(range(3), 3).foreach(lambda _: time.sleep(0.5)))
    job.start()
    seen: set[Tasks] = set()
    while job.is_alive():
        seen |= {tasks for tasks in [running_tasks(spark)] if tasks}
        time.sleep(0.02)
    assert {tasks.total for tasks in seen} == {3}
    assert all(tasks.done <= 3 for tasks in seen)


def test_a_session_that_is_gone_has_no_tasks() -> None:
    assert running_tasks(None) is None  # type: ignore[arg-type]
