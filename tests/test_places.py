"""Places: the same answers from the local disk, a shared file system with rename, and an object store without."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from muntin.errors import StoreError
from muntin.spark.place import Place
from muntin.spark.sharedstore import SharedStore
from muntin.spark.stores import LocalStore
from storage import place_at


@pytest.fixture
def place(home: str) -> Place:
    return place_at(home)


def test_what_is_written_is_read_and_replaced(place: Place) -> None:
    file = place / "a" / "b"
    assert (file.exists(), file.size()) == (False, None)
    file.write(b"one", memoryview(b" two"))
    assert (bytes(file.read()), file.size()) == (b"one two", 7)
    file.write()
    assert (bytes(file.read()), file.exists()) == (b"", True)
    with pytest.raises(FileNotFoundError):
        (place / "a" / "c").read()


def test_files_and_folders_are_listed_apart_and_in_order(place: Place) -> None:
    assert (place.files(), place.folders()) == ([], [])
    for name in ("2", "1", ".hidden"):
        (place / name).write(b"x")
    (place / "folder" / "deep").write(b"x")
    assert (place.files(), place.folders()) == (["1", "2"], ["folder"])
    assert not (place / "folder").exists()


def test_what_is_removed_is_gone(place: Place) -> None:
    (place / "a").write(b"x")
    assert ((place / "a").remove(), (place / "a").remove()) == (True, False)
    for name in ("1", "2"):
        (place / "tree" / "deep" / name).write(b"x")
    (place / "tree").remove_tree()
    (place / "tree").remove_tree()
    assert (place / "tree" / "deep").files() == []


@pytest.mark.parametrize("times", [1, 2, 100])
def test_a_directory_that_is_written_to_while_it_is_removed_may_stay_and_nothing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    tree, left, remove = Place.of(tmp_path) / "tree", iter(range(times)), os.rmdir
    (tree / "a").write(b"x")

    def late(*args: Any, **options: Any) -> None:
        if next(left, None) is not None:
            (tmp_path / "tree" / "late").write_bytes(b"x")
        remove(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rmdir", late)
        tree.remove_tree()
    assert tree.files() == (["late"] if times == 100 else [])
    tree.remove_tree()
    assert not (tmp_path / "tree").exists()


def test_a_directory_that_another_removes_too_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree, remove = Place.of(tmp_path) / "tree", os.unlink
    for name in ("1", "2", "3"):
        (tree / name).write(b"x")

    def twice(*args: Any, **options: Any) -> None:
        for _ in range(2):
            remove(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", twice)
        tree.remove_tree()
    tree.remove_tree()
    assert not (tmp_path / "tree").exists()


def test_a_directory_that_cannot_be_removed_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EACCES, "not yours")

    (Place.of(tmp_path) / "tree" / "a").write(b"x")
    monkeypatch.setattr(os, "unlink", forbidden)
    with pytest.raises(StoreError, match="not yours"):
        (Place.of(tmp_path) / "tree").remove_tree()


def test_finished_files_are_put_in_their_places(place: Place, tmp_path: Path) -> None:
    names = [f"f{number}" for number in range(20)]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    for number, name in enumerate(names):
        (scratch / name).write_bytes(b"x" * number)
    place.put([(scratch / name, place / "out" / name) for name in names])
    assert (place / "out").files() == sorted(names)
    assert [(place / "out" / name).size() for name in names] == list(range(20))


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc", "../x", "nul\0"])
def test_no_name_leads_out_of_the_directory(place: Place, name: str) -> None:
    with pytest.raises(StoreError, match="a name stays inside its directory"):
        _ = place / name


def test_a_file_that_could_not_be_written_whole_is_as_it_was(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "a").write(b"before")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr(SharedStore, "_send", full)
    with pytest.raises(StoreError, match=r"(?s)can be read and written.*No space left.*way out: check"):
        (place / "a").write(b"after")
    assert bytes((place / "a").read()) == b"before"
    assert place.files() == ["a"]


def test_an_upload_whose_process_stops_half_way_shows_nothing(endpoint: str, tmp_path: Path) -> None:
    """A stream that is dropped completes the upload: so a store hands over all bytes in one call, and never a part of them."""
    s3 = fs.S3FileSystem(access_key="a", secret_key="b", scheme="http", region="us-east-1", endpoint_override=endpoint)
    stream = s3.open_output_stream("state/dropped")
    stream.write(b"half")
    del stream
    assert s3.get_file_info("state/dropped").size == 4

    class Watched:
        type_name = "s3"

        def open_output_stream(self, *args: Any, **options: Any) -> Watched:
            return self

        def write(self, content: Any) -> None:
            calls.append(len(content))

        def close(self) -> None:
            calls.append(0)

    calls: list[int] = []
    store = SharedStore(Watched(), "state")
    store.write("x", [b"one", b"two"])
    (tmp_path / "f").write_bytes(b"12345")
    store.put([(tmp_path / "f", "y")])
    assert calls == [6, 0, 5, 0]


# -- names -------------------------------------------------------------------------------------------------------------------------


def test_a_path_is_on_the_local_disk_and_printed_as_it_was_given(tmp_path: Path) -> None:
    for text in (str(tmp_path), f"file://{tmp_path}", f"file:{tmp_path}"):
        place = Place.of(text) / "a b"
        assert (str(place), place.local, place.spark_uri) == (f"{tmp_path}/a b", tmp_path / "a b", f"file:{tmp_path}/a b")
    assert str(Place.of("state") / "x") == "state/x"
    assert Place.of("state").spark_uri == f"file:{Path.cwd()}/state"
    assert Place.of(place) is place


@pytest.mark.parametrize(
    ("uri", "shown", "spark"),
    [
        ("s3://bucket/my%20state?region=r", "s3://bucket/my%20state/t/x?region=r", "s3a://bucket/my state/t/x"),
        ("s3a://key:secret@bucket/s/?region=r", "s3://bucket/s/t/x?region=r", "s3a://bucket/s/t/x"),
        ("gs://bucket/s", "gs://bucket/s/t/x", "gs://bucket/s/t/x"),
        (
            "abfss://box@account.dfs.core.windows.net/s?tenant_id=t&client_id=c&client_secret=s",
            "abfss://box@account.dfs.core.windows.net/s/t/x?tenant_id=t&client_id=c",
            "abfss://box@account.dfs.core.windows.net/s/t/x",
        ),
    ],
)
def test_a_uri_is_shown_without_credentials_and_named_to_spark_as_hadoop_does(uri: str, shown: str, spark: str) -> None:
    place = Place.of(uri) / "t" / "x"
    assert (str(place), place.spark_uri, place.name, place.local) == (shown, spark, "x", None)


@pytest.mark.parametrize("uri", ["ftp://host/x", "s3://key:hidden@bucket/x?nonsense=1&client_secret=hidden", "://x"])
def test_a_uri_that_pyarrow_cannot_open_is_refused_without_its_secrets(uri: str) -> None:
    with pytest.raises(StoreError, match=r"a place is a path or a URI that pyarrow can open") as refusal:
        Place.of(uri)
    assert "hidden" not in str(refusal.value)


def test_a_uri_that_was_made_a_path_is_refused() -> None:
    with pytest.raises(StoreError, match="a URI is given as text"):
        Place.of(Path("s3://bucket/state"))


def test_a_store_that_cannot_be_reached_is_told_of() -> None:
    once = fs.AwsStandardS3RetryStrategy(max_attempts=1)
    options = {"access_key": "a", "secret_key": "b", "scheme": "http", "region": "r", "endpoint_override": "127.0.0.1:1"}
    store = fs.S3FileSystem(**options, retry_strategy=once)
    with pytest.raises(StoreError, match=r"(?s)s3://state/x/run.*way out: check the address, the credentials and the network"):
        (Place.on(store, "state/x") / "run").read()


def test_a_file_system_without_a_name_in_spark_says_so(tmp_path: Path) -> None:
    store = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    with pytest.raises(StoreError, match="Spark can reach the place too"):
        _ = (Place.on(store, "state") / "spark").spark_uri
    assert (Place.on(store, "state", spark="file:/x/state") / "spark").spark_uri == "file:/x/state/spark"


def test_object_stores_are_never_asked_to_rename() -> None:
    s3 = fs.S3FileSystem(access_key="a", secret_key="b", region="r")
    assert not SharedStore(s3, "b").renames
    assert not SharedStore(fs.SubTreeFileSystem("b", s3), "x").renames
    assert not SharedStore(fs.GcsFileSystem(anonymous=True), "b").renames
    assert SharedStore(fs.SubTreeFileSystem("/tmp", fs.LocalFileSystem()), "x").renames


def test_the_local_disk_flushes_files_and_the_folders_that_name_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[str] = []
    real = os.fsync

    def noted(descriptor: int) -> None:
        flushed.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        real(descriptor)

    if not Path("/proc/self/fd").exists():
        pytest.skip("looks up open files as Linux shows them")
    monkeypatch.setattr(os, "fsync", noted)
    LocalStore(tmp_path).write("a/b/c", [b"x"])
    assert flushed == [tmp_path.name, "a", ".c.aside", "b"]
