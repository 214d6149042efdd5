"""What a file system is asked that state lives on; and this machine's disk, which answers.

In: paths relative to the store's root, `a/b/c`. Out: bytes, names, and files that appear whole or not at all.
Convention: on the disk a file is written aside, flushed and renamed, and the directories that name it are flushed too. Of two that delete
the same file at once, one is told that it was late. `sharedstore` has the file systems of a cluster.
"""

from __future__ import annotations

import errno
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

Piece = bytes | memoryview
Item = TypeVar("Item")

#: Files are flushed or uploaded side by side: a disk takes many flushes in the time of one, a network many uploads.
FILES_AT_A_TIME = 8

#: A late copy of a task may write to, or take from, a directory that is being removed: then it is gone over again, so often.
_REMOVALS = 3


class Store(ABC):
    """Files under one root. A missing file is a FileNotFoundError, anything else that goes wrong an OSError."""

    @abstractmethod
    def read(self, path: str) -> memoryview: ...

    @abstractmethod
    def write(self, path: str, pieces: Sequence[Piece]) -> None:
        """Make or replace a file, durably, with the directories above it."""

    @abstractmethod
    def put(self, files: Sequence[tuple[Path, str]]) -> None:
        """Finished files of this machine's disk become files of the store, each as by `write`. The former may be gone after that."""

    @abstractmethod
    def move(self, files: Sequence[tuple[str, str]]) -> None:
        """Give files other names, durably; each is at one of the two names at any time, and what had the name before is gone."""

    @abstractmethod
    def listed(self, path: str) -> tuple[list[str], list[str]]:
        """The names of the files and of the directories in a directory; none, if it is not there."""

    @abstractmethod
    def size(self, path: str) -> int | None:
        """The size of a file; None if there is none."""

    @abstractmethod
    def remove(self, path: str) -> bool:
        """Delete a file; says whether it was there."""

    @abstractmethod
    def remove_tree(self, path: str) -> None:
        """Delete a directory and all in it, if it is there. What others write there meanwhile may be left."""

    @abstractmethod
    def flush_tree(self, path: str) -> None:
        """Make durable what another program, Spark, wrote to a directory."""


class LocalStore(Store):
    """A directory of this machine's disk."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, path: str) -> Path:
        return self.root / path

    def read(self, path: str) -> memoryview:
        return memoryview(self.path(path).read_bytes())

    def write(self, path: str, pieces: Sequence[Piece]) -> None:
        target = self.path(path)
        make_folder(target.parent)
        aside = target.with_name(aside_name(target.name))
        with aside.open("wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(target)
        flush([target.parent])

    def put(self, files: Sequence[tuple[Path, str]]) -> None:
        flush(source for source, _ in files)
        self._rename(files)

    def move(self, files: Sequence[tuple[str, str]]) -> None:
        self._rename([(self.path(source), path) for source, path in files])  # what they hold was flushed when they came to be

    def _rename(self, files: Sequence[tuple[Path, str]]) -> None:
        targets = [(source, self.path(path)) for source, path in files]
        folders = {target.parent for _, target in targets}
        for folder in folders:
            make_folder(folder)
        for source, target in targets:
            source.replace(target)
        flush(folders)

    def listed(self, path: str) -> tuple[list[str], list[str]]:
        files: list[str] = []
        folders: list[str] = []
        try:
            with os.scandir(self.path(path)) as entries:
                for entry in entries:
                    (folders if entry.is_dir() else files).append(entry.name)
        except FileNotFoundError:
            pass
        return files, folders

    def size(self, path: str) -> int | None:
        target = self.path(path)
        return target.stat().st_size if target.is_file() else None

    def remove(self, path: str) -> bool:
        try:
            self.path(path).unlink()
        except FileNotFoundError:
            return False
        return True

    def remove_tree(self, path: str) -> None:
        for _ in range(_REMOVALS):
            try:
                return shutil.rmtree(self.path(path))
            except FileNotFoundError:
                if not self.path(path).exists():
                    return None
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
        return None

    def flush_tree(self, path: str) -> None:
        for folder, _, names in os.walk(self.path(path)):
            flush([*(Path(folder) / name for name in names), Path(folder)])
        flush([self.path(path).parent])


def make_folder(folder: Path) -> None:
    """Make a directory and those above it, each durably named in the one above."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        flush([folder.parent])


def aside_name(name: str) -> str:
    """What a file is called before it is whole; names that begin with a dot are passed over by whoever lists them."""
    return f".{name}.aside"


def flush(paths: Iterable[Path]) -> None:
    """Returns when the files and directories are on disk."""
    side_by_side(_flush_one, list(paths))


def _flush_one(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def side_by_side(act: Callable[[Item], None], items: Sequence[Item]) -> None:
    if len(items) == 1:
        return act(items[0])
    with ThreadPoolExecutor(FILES_AT_A_TIME) as pool:
        list(pool.map(act, items))
    return None
