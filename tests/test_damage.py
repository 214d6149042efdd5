"""Every file of a checkpoint harmed in turn: the job refuses to go on and says which file it is.

Files that other tests harm: entries of the log and of `done` (`test_streaming`), versions of the registry (`test_registrylog`),
Spark's own offsets and commits (`test_streaming`), requests at the desk (`test_control`). The content of `lock` means nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from muntin import MemorySink
from muntin.errors import CheckpointError
from test_streaming import NOW, Clicks, engine_over


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def flip(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:20] + bytes([content[20] ^ 1]) + content[21:])


def empty(path: Path) -> None:
    path.write_bytes(b"")


#: Newest of each, which is the one that a restart reads.
FILES = [
    "clicks/run",
    "clicks/pins/*",
    "clicks/log/*",
    "clicks/done/*",
    "clicks/snapshots/*",
    "registry/0*",
    "registry/pipelines/*",
    "clicks/spark/metadata",
]
#: What is left out may be missing after a crash: a missing pin is made anew, an entry without the newest mark is finished again, a missing
#: pipeline is one that nobody started.
MISSED = {
    "clicks/run": "begins in an empty directory",
    "clicks/log/*": "there and unharmed",
    "clicks/snapshots/*": "there and unharmed",
    "clicks/done/*3": "there and unharmed",
    "clicks/spark/metadata": "goes on with the Spark checkpoint",
}


@pytest.fixture(scope="module")
def clicks(tmp_path_factory: pytest.TempPathFactory) -> Clicks:
    clicks = Clicks(tmp_path_factory.mktemp("damage") / "clicks")
    for at in range(5):
        clicks.add_seconds(at * 30 + 1)
    return clicks


@pytest.fixture(scope="module")
def whole(spark: SparkSession, clicks: Clicks) -> Path:
    """A checkpoint with a snapshot and entries after it."""
    checkpoint = clicks.directory.with_name("checkpoint")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("muntin.spark.slicelog.MOST_ENTRIES", 3)
        engine_over(spark, clicks).start(MemorySink(), checkpoint=checkpoint, trigger=NOW).wait()
    return checkpoint


def refusal_after(harm: Callable[[Path], None], file: str, spark: SparkSession, clicks: Clicks, whole: Path, copy: Path) -> str:
    shutil.copytree(whole, copy)
    harm(max(copy.glob(file)))
    with pytest.raises(CheckpointError) as refusal:
        engine_over(spark, clicks).start(MemorySink(), checkpoint=copy, trigger=NOW)
    return str(refusal.value)


@pytest.mark.parametrize("harm", [cut, flip, empty])
@pytest.mark.parametrize("file", FILES)
def test_a_harmed_file_is_refused_by_its_name(
    spark: SparkSession, clicks: Clicks, whole: Path, tmp_path: Path, file: str, harm: Callable[[Path], None]
) -> None:
    said = refusal_after(harm, file, spark, clicks, whole, tmp_path / "checkpoint")
    if "metadata" in file and harm is flip:  # still JSON, of another query
        assert "goes on with the Spark checkpoint" in said
    else:
        assert "every file of a checkpoint is there and unharmed" in said
        assert str(tmp_path / "checkpoint" / file.split("*", maxsplit=1)[0]) in said


@pytest.mark.parametrize("file", MISSED)
def test_a_missing_file_is_refused(spark: SparkSession, clicks: Clicks, whole: Path, tmp_path: Path, file: str) -> None:
    assert MISSED[file] in refusal_after(Path.unlink, file, spark, clicks, whole, tmp_path / "checkpoint")


def test_an_entry_without_its_mark_is_finished_again(spark: SparkSession, clicks: Clicks, whole: Path, tmp_path: Path) -> None:
    copy = tmp_path / "checkpoint"
    shutil.copytree(whole, copy)
    newest = max(copy.glob("clicks/done/*"))
    mark = newest.read_bytes()
    newest.unlink()
    engine_over(spark, clicks).start(MemorySink(), checkpoint=copy, trigger=NOW).wait()
    assert newest.read_bytes() == mark


def test_an_unharmed_copy_goes_on(spark: SparkSession, clicks: Clicks, whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "checkpoint")
    assert {path.name for path in (tmp_path / "checkpoint/clicks").iterdir()} == {
        "run", "lock", "pins", "log", "done", "snapshots", "spark",
    }  # fmt: skip
    job = engine_over(spark, clicks).start(MemorySink(), checkpoint=tmp_path / "checkpoint", trigger=NOW)
    job.wait()
    assert job.jobs["clicks"].last.batch == clicks.files - 1
