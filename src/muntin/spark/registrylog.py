"""The versions of the registry, durable: which queries a micro-batch was pinned to, and who brought them.

In: the whole list of queries of each new version. Out: the list of any version that is still kept, in the same order.
Convention: one durable file per version, named by its number. It holds the difference to the version before (what of that list is cut
out and what stands there instead), so that a change of one query among hundreds stays small; the first version and every 64th file
after it hold the whole list. There is one writer: whoever owns the checkpoint (`guard` makes sure). The pipeline that was started last
lies beside them, under a number too: no file is ever replaced, since not every store replaces in one step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from muntin.errors import CheckpointError
from muntin.spark import durable
from muntin.spark.place import Place

#: A version is read from at most this many files.
LONGEST_CHAIN = 64


class Origin(Enum):
    """Who brought a query: an edited pipeline file takes away only what a pipeline file brought."""

    PIPELINE = "pipeline"
    COMMAND = "command"


@dataclass(frozen=True)
class Registered:
    """A query of the registry. `text` is its SQL, `CREATE QUERY name AS …`, as `parse_query` reads it."""

    name: str
    text: str
    origin: Origin


@dataclass(frozen=True)
class Version:
    """The queries of one version; `whole` is the file that its chain of differences begins with."""

    number: int
    whole: int
    queries: tuple[Registered, ...]


class RegistryLog:
    """The versions in one directory, `<checkpoint>/registry`."""

    def __init__(self, directory: Place, guard: Callable[[], None] = lambda: None) -> None:
        self.directory = directory
        self._guard = guard
        self._pipelines = directory / "pipelines"
        self._read: Version | None = None  # the version last read or written: versions are mostly asked for in order
        self._written: list[int] = []  # versions that are there, once this writer has listed them
        self._wholes: dict[int, int] = {}  # the file that the chain of a version begins with, as far as it is known

    def pipeline(self) -> tuple[Registered, ...]:
        """The queries of the pipeline that was started last."""
        numbers = _numbers(self._pipelines)
        return tuple(map(_registered, durable.read(_numbered(self._pipelines, numbers[-1]))[0]["queries"])) if numbers else ()

    def write_pipeline(self, queries: Sequence[Registered]) -> None:
        before = _numbers(self._pipelines)
        if before and self.pipeline() == tuple(queries):
            return
        self._write(_numbered(self._pipelines, max(before, default=0) + 1), {"queries": [_plain(one) for one in queries]})
        for number in before:
            _numbered(self._pipelines, number).remove()

    def newest(self) -> int | None:
        versions = self._versions()
        return versions[-1] if versions else None

    def at(self, version: int) -> tuple[Registered, ...]:
        """The queries of a version, in the order they were appended in."""
        return self._at(version).queries

    def append(self, version: int, queries: Sequence[Registered]) -> None:
        """Make a version durable. Versions rise, by one or more."""
        versions = self._written or self._versions()
        if not versions:
            return self._write_whole(version, tuple(queries))
        if version <= versions[-1]:
            raise CheckpointError(
                "versions of the registry rise",
                values=f"version {version} after version {versions[-1]} in {self.directory}",
                way_out="append the version after the newest one",
            )
        before = self._at(versions[-1])
        if sum(one >= before.whole for one in versions) >= LONGEST_CHAIN:
            return self._write_whole(version, tuple(queries))
        return self._write_difference(version, before, tuple(queries))

    def forget_before(self, version: int) -> None:
        """Delete what is not needed to read `version` and later ones; the newest version always stays."""
        versions = self._written or self._versions()
        if not versions:
            return
        needed = next((one for one in versions if one >= version), versions[-1])
        whole = self._wholes.get(needed) or self._at(needed).whole
        for one in versions:
            if one < whole:
                self._path(one).remove()
                self._wholes.pop(one, None)
        self._written = [one for one in versions if one >= whole]

    def _at(self, version: int) -> Version:
        """Back along the chain to a version that is known as a whole, then forward again through the differences."""
        headers: list[dict[str, Any]] = []
        number = version
        while self._read is None or self._read.number != number:
            header = self._header(number)
            if "queries" in header:
                self._keep(Version(number, number, tuple(map(_registered, header["queries"]))))
            else:
                headers.append(header)
                number = header["before"]
        for header in reversed(headers):
            self._keep(Version(header["version"], header["whole"], _changed(self._read.queries, header["changes"])))
        return self._read

    def _keep(self, version: Version) -> None:
        self._read = version
        self._wholes[version.number] = version.whole

    def _header(self, version: int) -> dict[str, Any]:
        header, _ = durable.read(self._path(version))
        if header.get("version") != version:
            raise durable.damaged(self._path(version), "it is the file of something else")
        return header

    def _write_whole(self, version: int, queries: tuple[Registered, ...]) -> None:
        self._write_version(version, {"version": version, "queries": list(map(_plain, queries))})
        self._keep(Version(version, version, queries))

    def _write_difference(self, version: int, before: Version, queries: tuple[Registered, ...]) -> None:
        changes = _changes(before.queries, queries)
        header = {"version": version, "before": before.number, "whole": before.whole, "changes": changes}
        self._write_version(version, header)
        self._keep(Version(version, before.whole, queries))

    def _write_version(self, version: int, header: dict[str, Any]) -> None:
        there = self._written or self._versions()
        self._write(self._path(version), header)
        self._written = [*there, version]

    def _write(self, place: Place, header: dict[str, Any]) -> None:
        self._guard()
        durable.write(place, header)

    def _path(self, version: int) -> Place:
        return _numbered(self.directory, version)

    def _versions(self) -> list[int]:
        return _numbers(self.directory)


def _numbered(folder: Place, number: int) -> Place:
    return folder / f"{number:08d}"


def _numbers(folder: Place) -> list[int]:
    names = folder.files()
    strangers = [name for name in names if not name.isdecimal()]
    if strangers:
        raise CheckpointError(
            "a checkpoint holds nothing but its own files", values=f"{folder}: {', '.join(strangers)}", way_out="remove it"
        )
    return sorted(map(int, names))


def _changes(before: Sequence[Registered], after: Sequence[Registered]) -> list[dict[str, Any]]:
    """What to put in the place of `before[start:end]`: all between what both have at the left and what both have at the right."""
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    return [{"start": start, "end": len(before) - end, "queries": [_plain(query) for query in after[start : len(after) - end]]}]


def _common(before: Sequence[Registered], after: Sequence[Registered]) -> int:
    """How many of the first queries are the same."""
    pairs = zip(before, after, strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one is not other and one != other), min(len(before), len(after)))


def _changed(before: Sequence[Registered], changes: Sequence[dict[str, Any]]) -> tuple[Registered, ...]:
    queries = list(before)
    for change in reversed(changes):  # from the right, so that the positions to the left of it still hold
        queries[change["start"] : change["end"]] = map(_registered, change["queries"])
    return tuple(queries)


def _plain(query: Registered) -> dict[str, str]:
    return {"name": query.name, "text": query.text, "origin": query.origin.value}


def _registered(plain: dict[str, str]) -> Registered:
    return Registered(plain["name"], plain["text"], Origin(plain["origin"]))
