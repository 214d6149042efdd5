"""The command line: run a pipeline file, change the queries of a running job, explain a pipeline, see the demo.

In: arguments. Out: files, a live display on stderr, an exit code: 0 all is well, 1 a query stopped on its data, 2 refused.
Convention: whatever Muntin refuses is printed without a stack trace; anything else is a defect and keeps its trace. Spark is imported
by the commands that need it, so that those which only talk to a running job answer at once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from muntin.errors import MuntinError, Refusal
from muntin.spark.claims import unlocked
from muntin.spark.commands import Change, changes_in, explained, listed
from muntin.spark.control import Action
from muntin.spark.place import Place

if TYPE_CHECKING:
    from muntin.spark.sinks.files import Layout

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help="Many sliding-window queries over one stream."
)
output = Console(soft_wrap=True, highlight=False)
errors = Console(stderr=True)

STOPPED_ON_DATA, REFUSED = 1, 2
#: The strategy that is none of Muntin's.
PLAIN = "plain"

RunningOn = Annotated[str, typer.Option("--checkpoint", help="The checkpoint of the running job: a path or URI.")]
Changed = Annotated[str, typer.Argument(metavar="QUERY", help="A SELECT, or CREATE QUERY and DROP QUERY statements, or a file of them.")]
Name = Annotated[str | None, typer.Option(help="The query's name, for a bare SELECT.")]
Assembly = Annotated[str, typer.Option(help="Where windows are assembled: driver, executors or automatic.")]
Instances = Annotated[int | None, typer.Option(help="How many instances assemble, on executors [default: one a core].")]
Strategy = Annotated[
    str, typer.Option(help="What queries share: automatic, shards, fragments, slices or unshared. To run also plain: a Spark job for each.")
]
Slices = Annotated[str, typer.Option("--slicing", help="How a window is cut: paired or paned.")]
Timeout = Annotated[float, typer.Option(help="Seconds to wait for the job's answer.")]


def complain(head: str, text: str) -> None:
    """Unfolded: a marker stands under its place in a line of the user's."""
    errors.print(Text.assemble((f"{head}: ", "bold red"), text), soft_wrap=True)


@contextmanager
def complaints() -> Iterator[None]:
    """Refusals are told, not thrown."""
    try:
        yield
    except MuntinError as error:
        complain("muntin", str(error))
        raise typer.Exit(REFUSED) from None


@app.command()
def run(
    pipeline: Annotated[Path, typer.Argument(help="The pipeline file: CREATE STREAM and CREATE QUERY statements.")],
    once: Annotated[bool, typer.Option("--once", help="Read what is there, then end.")] = False,
    out: Annotated[
        str | None, typer.Option(help="Path or URI for the results, or kafka://HOST:PORT/TOPIC; without it they are shown on the console.")
    ] = None,
    format: Annotated[str, typer.Option(help="jsonl, csv, parquet or delta.")] = "jsonl",
    checkpoint: Annotated[str | None, typer.Option(help="Path or URI that makes the job resumable, and muntin add possible.")] = None,
    final: Annotated[bool, typer.Option("--final", help="Close all open windows at the end.")] = False,
    every: Annotated[str, typer.Option(help="Start a batch at most this often, for example '10 seconds'.")] = "",
    dead_letters: Annotated[str | None, typer.Option(help="Path or URI for rows that cannot be used [default: OUT/_dead_letters].")] = None,
    late_rows: Annotated[str | None, typer.Option(help="Path or URI for rows that come below a punctuation.")] = None,
    master: Annotated[str | None, typer.Option(help="Spark master [default: that of spark-submit, else local[*]].")] = None,
    conf: Annotated[list[str] | None, typer.Option(help="A Spark setting, name=value; may be repeated.")] = None,
    kafka: Annotated[list[str] | None, typer.Option(help="A setting of the Kafka client, name=value; may be repeated.")] = None,
    assembly: Assembly = "automatic",
    instances: Instances = None,
    strategy: Strategy = "automatic",
    slicing: Slices = "paired",
) -> None:
    """Run a pipeline."""
    from muntin.spark.attended import run_bounded, run_plain, run_streaming
    from muntin.spark.engine import Engine
    from muntin.spark.running import Pace, Trigger
    from muntin.spark.session import session
    from muntin.spark.sinks.choosing import letters_for, sink_for

    with complaints():
        text = readable(pipeline)
        if late_rows and once and not checkpoint:
            raise Refusal(
                "nothing is late in a bounded run", values=f"--late-rows {late_rows}", way_out="leave it out, or give --checkpoint"
            )
        if once and every:
            raise Refusal("--once takes what is there in one go", values=f"--every {every!r}", way_out="leave out one of the two")
        state = Place.of(checkpoint) if checkpoint else None
        sink, letters = sink_for(out, format, whole_or_parts(once, state), kafka or []), letters_for(out, dead_letters)
        plain, bounded = strategy.lower() == PLAIN, once and state is None
        if plain and not bounded:
            law = "plain Spark reads everything there is, once"
            raise Refusal(law, values=f"--strategy {strategy} without --once, or with --checkpoint", way_out="--once, and no --checkpoint")
        sharing = "automatic" if plain else strategy
        spark = session("muntin", **settings(master, conf or []))
        engine = Engine(spark, assembly=assembly, instances=instances, sharing=sharing, slicing=slicing)
        try:
            engine.execute(text)
            if plain:
                stopped = run_plain(engine, sink, errors)
            elif bounded:
                stopped = run_bounded(engine, sink, letters, errors)
            else:
                trigger = Trigger(Pace.AVAILABLE_NOW if once else Pace.CONTINUOUS, every)
                outputs = {"checkpoint": state, "dead_letters": letters, "late_rows": late_rows}
                stopped = run_streaming(engine, sink, outputs, trigger, errors, final=final)
        finally:
            engine.spark.stop()
    for name, reason in stopped.items():
        complain("stopped", f"query {name}: {reason}")
    raise typer.Exit(STOPPED_ON_DATA if stopped else 0)


@app.command()
def add(query: Changed, checkpoint: RunningOn, name: Name = None, timeout: Timeout = 60) -> None:
    """Add queries to a running job; ends when they are in effect, or refused."""
    change(query, name, checkpoint, Action.ADD, timeout)


@app.command()
def replace(query: Changed, checkpoint: RunningOn, name: Name = None, timeout: Timeout = 60) -> None:
    """Put queries in the place of those of the same name in a running job."""
    change(query, name, checkpoint, Action.REPLACE, timeout)


@app.command()
def drop(name: Annotated[str, typer.Argument(help="The query's name.")], checkpoint: RunningOn, timeout: Timeout = 60) -> None:
    """Drop a query of a running job. Its open windows are discarded."""
    with complaints():
        output.print(Change(Action.DROP, name).made(Place.of(checkpoint), timeout=timeout), markup=False)


@app.command("list")
def list_queries(checkpoint: RunningOn, timeout: Timeout = 60) -> None:
    """Show the queries of a running job."""
    with complaints():
        table = listed(Place.of(checkpoint), timeout=timeout)
    # A pipe has no width, and rich would fold names at 80 characters: there the table has what it needs.
    wide = Console(width=None if output.is_terminal else output.measure(table, options=output.options.update(width=10_000)).maximum)
    wide.print(table)


@app.command()
def unlock(place: Annotated[str, typer.Argument(help="URI of a checkpoint, or of an output directory.")]) -> None:
    """Take a place on a shared store from a job that is gone. A job that is not gone writes nothing more to it, and fails."""
    with complaints():
        for line in unlocked(Place.of(place)):
            output.print(line, markup=False)


@app.command()
def explain(
    pipeline: Annotated[Path | None, typer.Argument(help="The pipeline file.")] = None,
    checkpoint: Annotated[str | None, typer.Option(help="Instead of a file: the checkpoint of a running job.")] = None,
    assembly: Assembly = "automatic",
    instances: Instances = None,
    strategy: Strategy = "automatic",
    slicing: Slices = "paired",
    timeout: Timeout = 60,
) -> None:
    """Show the shared plan of a pipeline, from guessed counts; or that of a running job, from the counts it has observed."""
    with complaints():
        if (pipeline is None) == (checkpoint is None):
            given = "both" if pipeline else "neither"
            raise Refusal("a plan is that of a pipeline file or of a running job", values=given, way_out="give a file, or --checkpoint")
        if checkpoint is not None:
            output.print(explained(Place.of(checkpoint), timeout=timeout), markup=False)
            return
        assert pipeline is not None
        from muntin.spark.engine import Engine
        from muntin.spark.session import session

        engine = Engine(session("muntin"), assembly=assembly, instances=instances, sharing=strategy, slicing=slicing)
        try:
            engine.execute(readable(pipeline))
            output.print(engine.explain(), markup=False)
        finally:
            engine.spark.stop()


@app.command()
def demo(
    directory: Annotated[Path, typer.Argument(help="Where the trades and the results go.")] = Path("out/demo"),
    queries: Annotated[int, typer.Option(help="How many queries.")] = 256,
    rows: Annotated[int, typer.Option(help="How many trades in the hour.")] = 1_138_636,
) -> None:
    """Generate an hour of trades and run 256 window queries over it in one pass."""
    from muntin.demo import run_demo

    with complaints():
        run_demo(directory, Console(), queries=queries, rows=rows)


def change(query: str, name: str | None, checkpoint: str, action: Action, timeout: float) -> None:
    with complaints():
        for one in changes_in(query, action, name):
            output.print(one.made(Place.of(checkpoint), timeout=timeout), markup=False)


def whole_or_parts(once: bool, checkpoint: Place | None) -> Layout:
    from muntin.spark.sinks.files import Layout

    return Layout.WHOLE if once and checkpoint is None else Layout.PARTS


def readable(pipeline: Path) -> str:
    try:
        return pipeline.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal("a pipeline file is a readable text file", values=f"{pipeline}: {error}", way_out="check the path") from None


def settings(master: str | None, conf: list[str]) -> dict[str, str]:
    pairs = [one.partition("=") for one in conf]
    for name, equals, value in pairs:
        if not equals or not name.startswith("spark."):
            raise Refusal("a Spark setting is spark.name=value", values=f"{name}{equals}{value}", way_out="--conf spark.driver.memory=4g")
    return ({"spark.master": master} if master else {}) | {name: value for name, _, value in pairs}


if __name__ == "__main__":
    sys.exit(app())
