"""A place: a directory or a file where state or results live, on this machine's disk or on any file system that the cluster shares.

In: a path, a URI (`s3://`, `gs://`, `abfss://`, `hdfs://`, …), or a pyarrow file system and a path in it. Out: files, read and written
whole; and the URI under which Spark finds the same place.
Convention: `/` joins one name, checked, so that no text of a user's leads out of the directory. A place prints as what a user would type
to name it, without credentials. A file that is missing is a FileNotFoundError; a store that fails is a `StoreError`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from muntin.errors import StoreError
from muntin.spark.stores import LocalStore, Piece, Store

#: Hadoop's names for stores, where they are not those of the URI; and pyarrow's, where those differ.
_HADOOP_SCHEMES = {"s3": "s3a", "gcs": "gs"}
_ARROW_SCHEMES = {"s3a": "s3", "s3n": "s3"}

#: A URI that was made a `Path`, and is no URI any more.
_COLLAPSED = re.compile(r"(s3|s3a|s3n|gs|gcs|abfs|abfss|hdfs|viewfs):/")

#: Parts of the names of parameters that are not shown.
_SECRET = ("secret", "key", "token", "password")


@dataclass(frozen=True)
class Root:
    """A store and what it is called: `shown` to people, `spark` to Spark ("" if Spark has no name for it).

    `given` is the URI it was made from, with its credentials, for others that open the same store.
    """

    store: Store
    shown: str
    spark: str
    query: str = ""
    given: str = field(default="", repr=False)


@dataclass(frozen=True)
class Place:
    """
    >>> str(Place.of("state") / "trades" / "log")
    'state/trades/log'
    """

    root: Root = field(repr=False)
    path: str = ""

    @classmethod
    def of(cls, where: Place | Path | str) -> Place:
        """The place that a user named: a path of this machine, or a URI."""
        if isinstance(where, Place):
            return where
        if isinstance(where, str) and "://" in where and not where.startswith("file:"):
            return cls(_shared(where))
        if isinstance(where, Path) and _COLLAPSED.match(str(where)):
            raise StoreError("a URI is given as text", values=f"Path('{where}') has lost a slash", way_out="give a str, or a Place")
        path = Path(unquote(urlsplit(where).path)) if isinstance(where, str) and where.startswith("file:") else Path(where)
        return cls(Root(LocalStore(path), str(path), f"file:{path.absolute()}"))

    @classmethod
    def on(cls, filesystem: Any, path: str, *, spark: str = "") -> Place:
        """A path in a pyarrow file system that the caller made; `spark` is the URI of that path in Spark, where pyarrow cannot tell."""
        from muntin.spark.sharedstore import SharedStore

        kind, path = filesystem.type_name, path.rstrip("/")
        named = f"{_HADOOP_SCHEMES.get(kind, kind)}://{path}" if kind in ("s3", "gcs") else ""
        return cls(Root(SharedStore(filesystem, path), f"{kind}://{quote(path)}", (spark or named).rstrip("/")))

    def __truediv__(self, name: str) -> Place:
        if name in ("", ".", "..") or set(name) & set("/\0"):
            raise StoreError(
                "a name stays inside its directory", values=f"{name!r} in {self}", way_out="use letters, digits and underscores"
            )
        return Place(self.root, f"{self.path}/{name}" if self.path else name)

    def __str__(self) -> str:
        if self.local is not None:
            return str(self.local)
        return (f"{self.root.shown}/{quote(self.path)}" if self.path else self.root.shown) + self.root.query

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def local(self) -> Path | None:
        """The path, if this is on the machine's own disk."""
        return self._store.path(self.path) if isinstance(self._store, LocalStore) else None

    @property
    def everywhere(self) -> Place:
        """The same place under a name that holds in another process too, whatever its working directory."""
        if not isinstance(self._store, LocalStore):
            return self
        root = self._store.root.absolute()
        return Place(Root(LocalStore(root), str(root), self.root.spark), self.path)

    @property
    def spark_uri(self) -> str:
        """The place as Hadoop's file systems name it, for what Spark itself reads and writes."""
        if not self.root.spark:
            raise StoreError("Spark can reach the place too", values=str(self), way_out="Place.on(filesystem, path, spark=URI)")
        return f"{self.root.spark}/{self.path}" if self.path else self.root.spark

    # -- files ------------------------------------------------------------------------------------------------------------------

    def read(self) -> memoryview:
        with self._complaints():
            return self._store.read(self.path)

    def write(self, *pieces: Piece) -> None:
        """Make or replace the file: whole and durable, or not at all."""
        with self._complaints():
            self._store.write(self.path, pieces)

    def size(self) -> int | None:
        """The size of the file; None if there is none."""
        with self._complaints():
            return self._store.size(self.path)

    def exists(self) -> bool:
        """Whether there is a file."""
        return self.size() is not None

    def remove(self) -> bool:
        """Delete the file; says whether it was there. On a shared store two removers at once may both be told so."""
        with self._complaints():
            return self._store.remove(self.path)

    # -- directories ------------------------------------------------------------------------------------------------------------

    def files(self) -> list[str]:
        """Names of the files in the directory, in order, without those that are not whole yet."""
        return self._listed(0)

    def folders(self) -> list[str]:
        return self._listed(1)

    def put(self, files: Sequence[tuple[Path, Place]]) -> None:
        """Finished files of this machine's disk become files of this directory's store, side by side."""
        with self._complaints():
            self._store.put([(source, target.path) for source, target in files])

    def move(self, files: Sequence[tuple[Place, Place]]) -> None:
        """Files of this directory's store get other names in it, side by side; what had those names before is replaced."""
        with self._complaints():
            self._store.move([(source.path, target.path) for source, target in files])

    def remove_tree(self) -> None:
        with self._complaints():
            self._store.remove_tree(self.path)

    def flush_tree(self) -> None:
        """Make durable what Spark wrote here."""
        with self._complaints():
            self._store.flush_tree(self.path)

    @property
    def _store(self) -> Store:
        return self.root.store

    def _listed(self, kind: int) -> list[str]:
        with self._complaints():
            return sorted(name for name in self._store.listed(self.path)[kind] if not name.startswith("."))

    @contextmanager
    def _complaints(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StoreError(
                "the place of state and results can be read and written", values=f"{self}: {error}", way_out=_way_out(self)
            ) from error


def _shared(uri: str) -> Root:
    """The root of a URI. pyarrow reads credentials from the environment or its query; they are not shown again."""
    from muntin.spark.sharedstore import SharedStore, opened

    parts = urlsplit(uri)
    scheme = _ARROW_SCHEMES.get(parts.scheme, parts.scheme)
    query = parts.query
    if scheme == "s3" and "allow_delayed_open" not in query:
        query = "&".join(filter(None, [query, "allow_delayed_open=true"]))  # one request for a small file instead of three
    try:
        filesystem, path = opened(parts._replace(scheme=scheme, query=query).geturl())
    except (OSError, ValueError) as error:
        first = (str(error).splitlines() or [""])[0]
        way_out = "give a path, or a URI of s3, gs, abfss or hdfs; the documentation of pyarrow.fs has their parameters"
        raise StoreError("a place is a path or a URI that pyarrow can open", values=f"{_bare(uri)}: {first}", way_out=way_out) from None
    if filesystem.type_name == "local":
        return Place.of(Path(path)).root
    shown = urlsplit(_bare(uri))
    key, authority = parts.path.rstrip("/"), shown.netloc
    spark = f"{_HADOOP_SCHEMES.get(scheme, scheme)}://{authority}{unquote(key)}"
    return Root(SharedStore(filesystem, path), f"{scheme}://{authority}{key}", spark, f"?{shown.query}" if shown.query else "", uri)


def _bare(uri: str) -> str:
    """Without credentials: `s3://key:secret@bucket` and `client_secret=…` are not shown; `abfss://container@account` is an address."""
    parts = urlsplit(uri)
    user, _, host = parts.netloc.rpartition("@")
    container = user if user and ":" not in user and parts.scheme.startswith("abfs") else ""
    query = "&".join(one for one in parts.query.split("&") if not any(word in one.partition("=")[0] for word in _SECRET))
    return parts._replace(netloc=f"{container}@{host}" if container else host, query=query).geturl()


def _way_out(place: Place) -> str:
    if place.local is not None:
        return "check that the directory can be written to and that the disk is not full"
    return "check the address, the credentials and the network; what was written before is whole"
