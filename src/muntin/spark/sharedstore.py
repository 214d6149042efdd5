"""A file system that a cluster shares, through pyarrow: HDFS, S3, GCS, Azure, or one that the user made.

In and out: as `stores.Store`. Convention: on a file system with rename (HDFS) a file is written aside and moved. An object store has no
rename, and shows an object when its upload is complete: there it is written in place. A stream to an object store completes the upload
even if it is dropped half-way, so whoever writes has all the bytes first and hands them over in one call. Of two that delete the same
file at once, both may be told that it was there. Imported when a place is first on such a store: commands on the local disk start faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from muntin.spark.stores import Piece, Store, aside_name, side_by_side

#: Stores that show an object when its upload is complete, and have no rename (names as pyarrow has them).
WITHOUT_RENAME = {"s3", "gcs", "abfs"}


class SharedStore(Store):
    """A directory of a file system that pyarrow knows; `root` is its path there."""

    def __init__(self, filesystem: Any, root: str) -> None:
        self.filesystem = filesystem
        self.root = root.rstrip("/")
        while isinstance(filesystem, fs.SubTreeFileSystem):
            filesystem = filesystem.base_fs
        self.renames = filesystem.type_name not in WITHOUT_RENAME

    def path(self, path: str) -> str:
        return f"{self.root}/{path}" if path else self.root

    def read(self, path: str) -> memoryview:
        with self.filesystem.open_input_file(self.path(path)) as file:
            return memoryview(file.read_buffer())

    def write(self, path: str, pieces: Sequence[Piece]) -> None:
        self._upload(b"".join(pieces), self.path(path))

    def put(self, files: Sequence[tuple[Path, str]]) -> None:
        def upload(source: Path, path: str) -> None:
            if not source.stat().st_size:  # nothing cannot be mapped
                return self._upload(b"", self.path(path))
            with pa.memory_map(str(source)) as mapped:
                return self._upload(mapped.read_buffer(), self.path(path))

        side_by_side(lambda pair: upload(*pair), files)

    def move(self, files: Sequence[tuple[str, str]]) -> None:
        """On an object store by copies that the store makes itself."""

        def rename(source: str, target: str) -> None:
            if self.renames:
                self.filesystem.create_dir(target.rpartition("/")[0], recursive=True)
            self.filesystem.move(source, target)

        side_by_side(lambda pair: rename(*map(self.path, pair)), files)

    def listed(self, path: str) -> tuple[list[str], list[str]]:
        infos = self.filesystem.get_file_info(fs.FileSelector(self.path(path), allow_not_found=True))
        names = {kind: [info.base_name for info in infos if info.type == kind] for kind in (fs.FileType.File, fs.FileType.Directory)}
        return names[fs.FileType.File], names[fs.FileType.Directory]

    def size(self, path: str) -> int | None:
        info = self.filesystem.get_file_info(self.path(path))
        return int(info.size) if info.type == fs.FileType.File else None

    def remove(self, path: str) -> bool:
        try:
            self.filesystem.delete_file(self.path(path))
        except FileNotFoundError:
            return False
        return True

    def remove_tree(self, path: str) -> None:
        if self.filesystem.get_file_info(self.path(path)).type == fs.FileType.Directory:
            with suppress(FileNotFoundError):  # somebody else was first
                self.filesystem.delete_dir(self.path(path))

    def flush_tree(self, path: str) -> None:
        """A shared file system has made durable what it took."""

    def _upload(self, content: Any, target: str) -> None:
        if not self.renames:
            return self._send(content, target)
        folder, _, name = target.rpartition("/")
        self.filesystem.create_dir(folder, recursive=True)
        aside = f"{folder}/{aside_name(name)}"
        self._send(content, aside)
        return self.filesystem.move(aside, target)  # type: ignore[no-any-return]

    def _send(self, content: Any, target: str) -> None:
        stream = self.filesystem.open_output_stream(target, compression=None)
        stream.write(content)
        stream.close()


def opened(uri: str) -> tuple[Any, str]:
    """The file system of a URI, and the path in it. A ValueError if there is none; an OSError if it cannot be reached."""
    try:
        filesystem, path = fs.FileSystem.from_uri(uri)
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error
    return filesystem, path
