"""Muntin's own Spark session, and the questions every session must answer before Muntin runs on it.

In: settings by Spark's names. Out: a `SparkSession` that gives the same results on every machine; or, for a session somebody
else made, a refusal that names the setting to change. Convention: every default that is not Spark's own stands in `SETTINGS`,
`LOCAL_SETTINGS` or `CLUSTER_SETTINGS` with its reason, and what the caller sets always wins. Under `spark-submit` the JVM is there
already, with the master and the settings it was given: `SETTINGS` alone are added.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from muntin.errors import SessionError

#: HotSpot leaves methods over 8,000 bytes interpreted, ten times slower; many predicates in one plan generate such methods.
JAVA_OPTIONS = "-XX:-DontCompileHugeMethods"

#: What Muntin changes in any session of its own.
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",  # time is microseconds since the epoch in UTC; a TIMESTAMP without zone is read as UTC
    "spark.sql.ansi.enabled": "true",  # overflow and bad casts are errors, never wrapped or NULL; result types are the ANSI ones
    "spark.sql.execution.arrow.pyspark.enabled": "true",  # partials come to the driver as Arrow, not as pickled rows
    "spark.sql.streaming.stopTimeout": "60s",  # the default is 0: stop() would wait for ever for a batch that hangs
    "spark.sql.codegen.cache.maxEntries": "1000",  # 100 by default: where queries come and go, code is dropped that is used again soon
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # a stack trace for every Column: a third of the time plans are built in
    "spark.ui.showConsoleProgress": "false",  # Spark's progress bar would write over ours
}

#: What Muntin changes besides where driver and executors are one process.
LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",  # one process talks to itself: nothing needs to reach it from outside
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 1)),  # 200 by default: 200 tasks to merge a few hundred partials
    "spark.driver.memory": "2g",  # 1g by default, which aggregation, cached batches and collected partials share
    "spark.sql.adaptive.enabled": "false",  # re-planning between stages: 75 ms instead of 45 ms for the smallest aggregation
    "spark.ui.enabled": "false",  # the web UI listens on all interfaces, can kill jobs and has no login
}

#: What Muntin changes besides where executors are processes of their own. Their number, memory and cores are the cluster's business.
CLUSTER_SETTINGS = {
    "spark.executor.extraJavaOptions": JAVA_OPTIONS,  # as for the driver: generated code is what executors run
}

#: Set in the environment of a Python program that `spark-submit` has started.
_SUBMITTED = "PYSPARK_GATEWAY_PORT"

#: Logs at ERROR from the first line on. A failed task's stack is silenced: the same exception reaches the caller.
LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
logger.shell.name = org.apache.spark.api.python.PythonGatewayServer
logger.shell.level = error
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
"""

_UTC = re.compile(
    r"(etc/)?(utc|uct|gmt|universal|zulu|greenwich)([+-]0{1,2}(:?00)?)?|(etc/)?gmt0|z|[+-]0{1,2}(:?00(:?00)?)?", re.IGNORECASE
)


def session(app_name: str = "muntin", **settings: str) -> SparkSession:
    """A session to run Muntin in: `session()`, or `session(**{"spark.master": "local[2]"})`.

    A session that is already active is returned, checked, as it is; settings it does not have are refused, not changed.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return _active_with(active, settings)
    if settings.get("spark.master", "local").startswith("local") and _SUBMITTED not in os.environ:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers would take the first python3 on PATH; no setting says so
    builder = SparkSession.builder.appName(app_name)
    for name, value in _all_settings(settings).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    check_session(spark)
    return spark


def check_session(spark: SparkSession) -> None:
    """Refuses a session in which results would be wrong, or would differ from those of another machine."""
    if not isinstance(spark, SparkSession):
        raise SessionError(
            "Muntin runs in the process of the Spark driver: the slice log and the windows live there",
            values=f"a session of {type(spark).__module__} (Spark Connect), whose foreachBatch runs on the server",
            way_out="start Python as the driver: spark-submit, or SparkSession.builder.master(...) instead of .remote(...)",
        )
    zone = spark.conf.get("spark.sql.session.timeZone") or ""
    if not is_utc(zone):
        raise SessionError(
            "the session's time zone is UTC: windows are cut in UTC and a TIMESTAMP without zone is read as UTC",
            values=f"spark.sql.session.timeZone = {zone}",
            way_out='spark.conf.set("spark.sql.session.timeZone", "UTC")',
        )
    if (spark.conf.get("spark.sql.ansi.enabled") or "").lower() != "true":
        raise SessionError(
            "the session is in ANSI mode: an overflow is an error, never a wrong number",
            values="spark.sql.ansi.enabled = false",
            way_out='spark.conf.set("spark.sql.ansi.enabled", "true")',
        )


def is_utc(zone: str) -> bool:
    """Whether a time zone's name means UTC all year: UTC, Etc/UTC, GMT, Z, +00:00, … London is not: it has a summer."""
    return _UTC.fullmatch(zone.strip()) is not None


def _active_with(active: SparkSession, settings: dict[str, str]) -> SparkSession:
    check_session(active)
    other = {name: value for name, value in settings.items() if active.conf.get(name, None) != value}
    if other:
        raise SessionError(
            "a running session keeps the settings it started with",
            values=", ".join(f"{name} = {active.conf.get(name, None)}, asked for {value}" for name, value in other.items()),
            way_out="stop() it first, or call session() without settings to use it as it is",
        )
    return active


def _all_settings(asked: dict[str, str]) -> dict[str, str]:
    """Ours where the caller says nothing; the warehouse and the logging configuration lie in a directory of their own."""
    if _SUBMITTED in os.environ:
        return SETTINGS | asked
    scratch = Path(tempfile.mkdtemp(prefix="muntin-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    logging = scratch / "log4j2.properties"
    logging.write_text(LOGGING)
    made = {
        "spark.master": "local[*]",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),  # Spark's default is a directory in the working directory
        "spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} -Dlog4j2.configurationFile={logging.as_uri()}",
    }
    local = asked.get("spark.master", "local[*]").startswith("local")
    return SETTINGS | (LOCAL_SETTINGS if local else CLUSTER_SETTINGS) | made | asked
