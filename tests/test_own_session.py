"""Muntin's own session, and the sessions it refuses to run in."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from muntin.errors import SessionError
from muntin.spark.session import LOCAL_SETTINGS, SETTINGS, check_session, is_utc, session


@pytest.fixture
def other(spark: SparkSession) -> Iterator[SparkSession]:
    """A session with settings of its own on the shared context."""
    yield spark.newSession()
    spark.range(1).count()  # the shared session is the active one again


@pytest.mark.parametrize("zone", ["UTC", "Etc/UTC", "GMT", "Z", "+00:00", "-00:00", "UTC+0", "GMT0", "Etc/GMT", "Zulu", "Universal", "+00"])
def test_a_zone_that_is_utc_under_another_name_is_taken(other: SparkSession, zone: str) -> None:
    assert is_utc(zone)
    other.conf.set("spark.sql.session.timeZone", zone)
    check_session(other)


@pytest.mark.parametrize("zone", ["Europe/London", "America/New_York", "+01:00", "GMT+1", "UTC-05:00", "Africa/Abidjan2", ""])
def test_a_zone_that_is_not_utc_all_year_is_not(zone: str) -> None:
    assert not is_utc(zone)


def test_a_session_in_another_zone_is_refused_with_the_setting_to_change(other: SparkSession) -> None:
    other.conf.set("spark.sql.session.timeZone", "Europe/London")
    with pytest.raises(SessionError, match=r'(?s)timeZone = Europe/London.*way out: spark.conf.set\("spark.sql.session.timeZone", "UTC"\)'):
        check_session(other)


def test_a_session_without_ansi_mode_is_refused(other: SparkSession) -> None:
    other.conf.set("spark.sql.session.timeZone", "UTC")
    other.conf.set("spark.sql.ansi.enabled", "false")
    with pytest.raises(SessionError, match="an overflow is an error, never a wrong number"):
        check_session(other)


def test_a_spark_connect_session_is_refused() -> None:
    remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(SessionError, match=r"(?s)Spark Connect.*foreachBatch runs on the server.*way out: start Python as the driver"):
        check_session(remote)


def test_a_running_session_is_used_as_it_is_and_not_changed(spark: SparkSession) -> None:
    assert session().sparkContext is spark.sparkContext
    assert session(**{"spark.sql.shuffle.partitions": "2"}).sparkContext is spark.sparkContext
    with pytest.raises(SessionError, match=r"(?s)shuffle.partitions = 2, asked for 9.*way out: stop\(\) it first"):
        session(**{"spark.sql.shuffle.partitions": "9"})


@pytest.mark.slow
def test_a_session_of_our_own_has_our_settings_and_is_quiet() -> None:
    code = """
import json
from muntin.spark.session import session
spark = session(**{"spark.master": "local[2]"})
spark.range(10).count()
try:
    spark.read.schema("a int").parquet(__file__ if "__file__" in globals() else "/etc/hostname").count()
except Exception: pass
print(json.dumps(dict(spark.sparkContext.getConf().getAll())))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    settings = json.loads(ran.stdout)
    assert settings.items() >= (SETTINGS | LOCAL_SETTINGS | {"spark.master": "local[2]"}).items()
    assert [line for line in ran.stderr.splitlines() if "incubator modules" not in line] == []
