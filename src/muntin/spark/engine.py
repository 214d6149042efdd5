"""The engine: streams and queries in, one shared job per stream out. What Python programs use; the command line uses it too.

In: SQL texts, DataFrames the user already has, sinks. Out: `Results` of a bounded run, or a `RunningJob`.
Convention: queries are checked when they are added; nothing runs before `run` or `start`. The session must be a classic one, in UTC
and ANSI mode (`session.check_session` says why).
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from muntin.aggregates import AGGREGATES
from muntin.aggregates.base import Aggregate
from muntin.errors import Refusal
from muntin.expression.own import OwnFunction, SparkFunction
from muntin.plan.divide import Sharing
from muntin.plan.explain import explain
from muntin.plan.placing import Placement
from muntin.plan.shared import SharedPlan
from muntin.plan.slices import Slicing
from muntin.query.check import changed, check_pipeline
from muntin.query.model import Query, StreamDefinition, TableDefinition
from muntin.query.own_functions import functions_by_name
from muntin.query.registry import Registry
from muntin.query.text import parse_query
from muntin.spark.checkpoint import Checkpoint, check_owned, fingerprint
from muntin.spark.control import Desk, serve
from muntin.spark.crews import checked_instances, crew_for
from muntin.spark.job import StreamJob
from muntin.spark.joining import Joiner
from muntin.spark.listing import listed
from muntin.spark.own_columns import check_spark_function
from muntin.spark.place import Place
from muntin.spark.plain import plain
from muntin.spark.planning import Planning
from muntin.spark.positions import ARRIVED
from muntin.spark.progress import Progress
from muntin.spark.registrylog import Origin, Registered, RegistryLog
from muntin.spark.results import Results
from muntin.spark.running import AS_SOON_AS_POSSIBLE, RunningJob, Trigger, start_query
from muntin.spark.session import check_session, session
from muntin.spark.shipping import ship
from muntin.spark.sinks.base import Sink
from muntin.spark.sinks.files import FileSink, Layout
from muntin.spark.sinks.memory import MemorySink
from muntin.spark.sinks.tables import TableSink
from muntin.spark.sources import open_source, stream_of
from muntin.spark.tables import Tables, definition_of
from muntin.spark.versions import Versions

#: What a checkpoint holds besides its streams.
RESERVED = {"registry", "control", "sinks"}


class Engine:
    """Many window queries over streams, evaluated together.

    >>> engine = Engine(spark)                                                     # doctest: +SKIP
    >>> engine.stream("trades", frame, time="ts", slack="5 seconds")               # doctest: +SKIP
    >>> engine.add("SELECT sum(vol) AS v FROM trades [RANGE 1 hour SLIDE 1 minute]", name="hourly")  # doctest: +SKIP
    >>> engine.run()["hourly"]                                                     # doctest: +SKIP
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        aggregates: Sequence[Aggregate] = (),
        functions: Sequence[OwnFunction] = (),
        sharing: Sharing | str = Sharing.AUTOMATIC,
        slicing: Slicing | str = Slicing.PAIRED,
        assembly: Placement | str = Placement.AUTOMATIC,
        instances: int | None = None,
    ) -> None:
        """`sharing` and `slicing` are for measurement and trust: results are the same. `assembly` says where windows are assembled, and
        `instances` by how many, where that is on the executors.
        """
        self.spark = spark or session()
        check_session(self.spark)
        ship(self.spark)
        self.placement = Placement.named(assembly)
        self.instances = checked_instances(self.spark, instances)
        self.aggregates: Mapping[str, Aggregate] = dict(AGGREGATES) | {one.name.lower(): one for one in aggregates}
        self.functions = functions_by_name(functions, self.aggregates)
        for function in functions:
            if isinstance(function, SparkFunction):
                check_spark_function(self.spark, function)
        self.sharing, self.slicing = Sharing.named(sharing), Slicing.named(slicing)
        self.streams: dict[str, StreamDefinition] = {}
        self.tables: dict[str, TableDefinition] = {}
        self.versions = Versions(self._parsed)
        self._running: RunningJob | None = None
        self._changing = threading.RLock()  #: one change of the queries at a time, whoever asks for it
        self._frames: dict[str, DataFrame] = {}
        self._static: dict[str, DataFrame] = {}
        self._in_memory: Joiner | None = None
        self._recorded: set[str] = set()  #: streams that the checkpoint knows, running or not
        self._planning = Planning(self._queries_of, self.aggregates, self.sharing, self.slicing, self.placement, self.instances)

    # -- what to compute --------------------------------------------------------------------------------------------------------

    def stream(self, name: str, frame: DataFrame, *, time: str, max_ahead: str = "1 day", order: str = "", **disorder: str) -> None:
        """Make a DataFrame, streaming or static, known to queries under a name.

        `order` are the columns by which rows of a batch arrived, for those who count them; Kafka's are known if the DataFrame has them.
        `disorder` are the options of CREATE STREAM that say how rows are out of order: `slack="5 seconds"`, `substreams="sensor"`, ….
        """
        self.streams[name.lower()] = stream_of(name, frame, time=time, max_ahead=max_ahead, order=order, disorder=disorder)
        self._frames[name.lower()] = frame

    def table(self, name: str, frame: DataFrame) -> None:
        """Make a static DataFrame known to queries as a table that they can join."""
        self.tables[name.lower()] = definition_of(name, frame)
        self._static[name.lower()] = frame
        if self._in_memory is not None:
            self._in_memory.tables.add(name.lower(), frame)

    def execute(self, text: str) -> None:
        """Take a whole pipeline: CREATE STREAM, CREATE TABLE and CREATE QUERY statements."""
        pipeline = check_pipeline(text, self.aggregates, self.functions)
        self.streams |= {stream.name.lower(): stream for stream in pipeline.streams}
        self.tables |= {table.name.lower(): table for table in pipeline.tables}
        with self._changing:
            for query in pipeline.queries:
                self._put(self.registry.add(query))

    def add(self, sql: str, name: str | None = None) -> Query:
        """Check and register one query; a bare SELECT needs a name. On a running job it takes part from the next batch on."""
        statement = parse_query(sql, name)
        with self._changing:
            registry = changed(self.registry, statement, self.streams, self.tables, self.aggregates, self.functions)
            self._put(registry, registry.queries[-1])
        return registry.queries[-1]

    def drop(self, name: str) -> None:
        """Take a query away; its open windows are discarded."""
        with self._changing:
            self._put(self.registry.drop(name))

    def replace(self, sql: str, name: str | None = None) -> Query:
        """Put a query in the place of the one of its name: as if that was dropped and this one added, in one step."""
        query = self._checked(sql, name)
        with self._changing:
            self._put(self.registry.replace(query), query)
        return query

    def _checked(self, sql: str, name: str | None) -> Query:
        """The query of a text, whatever others there are."""
        return changed(Registry(), parse_query(sql, name), self.streams, self.tables, self.aggregates, self.functions).queries[0]

    def _put(self, registry: Registry, new: Query | None = None) -> None:
        """Make a registry the newest version. A running job goes on with it from the next batch that begins on."""
        running = self._running  # it may end in another thread
        if running is None:
            self.versions.put(registry, Origin.PIPELINE)
            return
        running.change(registry, new, lambda: self.versions.put(registry, Origin.COMMAND))
        if set(running.jobs) == self._recorded:
            self.versions.forget_before(min(job.oldest for job in running.jobs.values()))

    def _parsed(self, one: Registered) -> Query:
        return self._checked(one.text, one.name)

    @property
    def registry(self) -> Registry:
        return self.versions.registry

    @property
    def queries(self) -> tuple[Query, ...]:
        return self.registry.queries

    def listed(self) -> list[dict[str, str]]:
        """A row per query: what it is and how it is doing."""
        jobs = self._running.jobs.values() if self._running else ()
        registry, origins = self.versions.newest
        taking_part = {name: life for job in jobs for name, life in job.lives_of(registry.version).items()}
        older = {name for job in jobs for name in job.joiner.tables.troubles}
        return [listed(query, origins[query.name], taking_part.get(query.name), older) for query in registry.queries]

    def plan(self, stream: str) -> SharedPlan:
        """The shared plan of a stream's queries, from what was observed in the latest run."""
        return self._planning.plan(self.streams[stream], self.registry.version)

    def _queries_of(self, stream: str, version: int) -> list[Query]:
        queries = self.versions.at(version).queries
        return sorted((query for query in queries if query.stream.lower() == stream.lower()), key=lambda query: query.name)

    def explain(self) -> str:
        """The shared plan of every stream, for people."""
        texts = []
        for name in self._used_streams():
            job = self._running.jobs.get(name) if self._running else None
            plan, load = (job.plan, job.load) if job else (self.plan(name), self._planning.load(name))
            texts.append(explain(self.streams[name], plan, load, self._planning.placings.get(name)))
        return "\n\n".join(texts)

    def plain(self, name: str) -> DataFrame:
        """The results of one query in plain Spark, a job of its own over everything there is: for measurement and trust."""
        query = self.registry.known(name)
        stream = query.stream.lower()
        return plain(self._frame(stream, bounded=True), self.streams[stream], query, self._joiner(None).tables)

    # -- running it -------------------------------------------------------------------------------------------------------------

    def run(
        self,
        *sinks: Sink,
        dead_letters: Place | Path | str | None = None,
        on_progress: Callable[[Progress], None] = lambda _: None,
    ) -> Results:
        """Read everything there is, close every window, and return the results (or write them to the sinks)."""
        memory = MemorySink()
        targets = list(sinks) or [memory]
        run = uuid.uuid4().hex
        jobs = {}
        with ExitStack() as stack:
            for sink in targets:
                sink.equip(self.spark, None)
                sink.open(run, self.queries)
                stack.enter_context(sink)
            for name in self._used_streams():
                letters = Place.of(dead_letters) / name if dead_letters else None
                job = self._job(name, targets, None, letters, on_progress, run)
                stack.callback(job.release)
                job.process_all(self._frame(name, bounded=True))
                jobs[name] = job
        return Results(self.spark, self.queries, memory, jobs)

    def start(
        self,
        *sinks: Sink,
        checkpoint: Place | Path | str | None = None,
        trigger: Trigger = AS_SOON_AS_POSSIBLE,
        dead_letters: Place | Path | str | None = None,
        late_rows: Place | Path | str | None = None,
        on_progress: Callable[[Progress], None] = lambda _: None,
    ) -> RunningJob:
        """Start one streaming job per stream that queries use. With a checkpoint it can be stopped, killed and resumed.

        Rows that cannot be used are written to `dead_letters`, those that came below a punctuation to `late_rows`, as JSON lines.
        """
        if any(isinstance(sink, FileSink | TableSink) and sink.layout is Layout.WHOLE for sink in sinks):
            raise Refusal("a streaming job writes parts", values="Layout.WHOLE", way_out="give the sink Layout.PARTS")
        with ExitStack() as undo:
            place = Place.of(checkpoint) if checkpoint else None
            if place:
                self.versions.merge(RegistryLog(place / "registry"))
                self._planning.forget()
            checkpoints = {name: self._checkpoint(name, place, undo) for name in self._used_streams()}
            self._recorded = {name for name in place.folders() if (place / name / "run").exists()} if place else set()
            if place:
                self.versions.save(RegistryLog(place / "registry", guard=lambda: check_owned(checkpoints.values())))
                undo.callback(self.versions.close)
            run = next((held.run for held in checkpoints.values() if held), uuid.uuid4().hex)
            for sink in sinks:
                sink.equip(self.spark, place / "sinks" if place else None)
                sink.open(run, self.queries)
                undo.callback(sink.abandon)
            jobs, queries = {}, {}
            for name, held in checkpoints.items():
                letters = Place.of(dead_letters) / name if dead_letters else None
                jobs[name] = self._job(name, sinks, held, letters, on_progress, run)
                undo.callback(jobs[name].release)
                jobs[name].late_rows = Place.of(late_rows) / name if late_rows else None
                frame = self._frame(name, bounded=False)
                jobs[name].numbered = self.streams[name].options.get("source") != "files" or ARRIVED in frame.columns
                undo.callback(jobs[name].settle)
                queries[name] = start_query(frame, jobs[name], trigger)
                undo.callback(queries[name].stop)
            undo.pop_all()
        desk = Desk(place / "control") if place else None
        self._running = RunningJob(jobs, queries, sinks, on_glance=lambda: self._serve(desk), on_end=self._ended)
        return self._running

    def _serve(self, desk: Desk | None) -> None:
        if desk and self._running:
            serve(desk, self, lambda: self._running.effect if self._running else "")

    def _ended(self) -> None:
        self._running = None
        self.versions.close()

    def _job(
        self,
        name: str,
        sinks: Sequence[Sink],
        held: Checkpoint | None,
        letters: Place | None,
        on_progress: Callable[[Progress], None],
        run: str,
    ) -> StreamJob:
        crew = crew_for(self.spark, held, run, name, self.placement, self.instances)
        planner, placing = self._planning.for_job(self.streams[name], crew)
        return StreamJob(
            self.streams[name],
            planner,
            self._joiner(held),
            self.registry.version,
            sinks,
            held,
            letters,
            on_progress=on_progress,
            loads=self._planning.loads[name],
            crew=crew,
            placing=placing,
        )

    def _joiner(self, held: Checkpoint | None) -> Joiner:
        """With a checkpoint tables are read from its copies; without, they stay in memory from run to run."""
        if held is None and self._in_memory is not None:
            return self._in_memory
        tables = Tables(self.spark, self.tables, held.directory / "tables" if held else None)
        for table, frame in self._static.items():
            tables.add(table, frame)
        joiner = Joiner(tables)
        if held is None:
            self._in_memory = joiner
        return joiner

    def _checkpoint(self, name: str, directory: Place | None, undo: ExitStack) -> Checkpoint | None:
        if directory is None:
            return None
        if name in RESERVED:
            raise Refusal("a checkpoint has a directory for each stream", values=f"a stream called {name}", way_out="give it another name")
        held = Checkpoint(directory / name, self._fingerprint(name))
        undo.callback(held.close)
        return held

    def _fingerprint(self, name: str) -> str:
        return fingerprint(self.streams[name], f"{self.sharing.value} {self.slicing.value}")

    def _used_streams(self) -> list[str]:
        used = [name for name in self.streams if any(query.stream.lower() == name for query in self.queries)]
        if not used:
            raise Refusal("there is at least one query to run", values="no queries", way_out="add one with engine.add or CREATE QUERY")
        return used

    def _frame(self, name: str, *, bounded: bool) -> DataFrame:
        if name not in self._frames:
            numbered = any(query.counts_rows for query in self.queries if query.stream.lower() == name)
            return open_source(self.spark, self.streams[name], bounded=bounded, numbered=numbered)
        frame = self._frames[name]
        if frame.isStreaming == bounded:
            raise Refusal(
                "run() takes static DataFrames and start() takes streaming ones",
                values=f"the DataFrame of {name} is {'streaming' if frame.isStreaming else 'static'}",
                way_out="call start() instead" if bounded else "call run() instead",
            )
        return frame
