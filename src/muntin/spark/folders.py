"""A folder that an assembly goes on in, from process to process.

In: an arena's requests for arrays, and at the end of a step all else of the assembly. Out: the same assembly, in another process.
Convention: large arrays are files that are mapped into memory and change in place, whether the assembly asked for them here or the pickler
came upon them; the rest is pickled beside them. While they change, the folder is marked as open: one that a process left open is of no use
any more, and whoever finds it begins from the slice log. So taking an assembly up and leaving it cost nothing for arrays that a batch
does not touch. A folder is a cache on a local disk: losing it loses nothing.
"""

from __future__ import annotations

import io
import json
import mmap
import os
import pickle
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any
from uuid import uuid4
from weakref import WeakSet

import numpy as np
import numpy.typing as npt
from pyspark.cloudpickle import CloudPickler

from muntin.aggregates.base import Array
from muntin.windows.arena import Arena

#: The form of a folder; one of another form is of no use.
FORM = 2
PRIVATE = 0o700
#: Bytes from which on what is pickled gets a file of its own.
LARGE = 1 << 16


class Folder(Arena):
    """Arrays in files. `save` names the state it leaves, and `load` gives it only to who asks for that name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        #: What was pickled before and is mapped now, by where it is in memory. Held, so that nothing else comes to be there.
        self._found: dict[tuple[int, int], tuple[str, Array]] = {}
        self._maps: WeakSet[mmap.mmap] = WeakSet()

    def __reduce__(self) -> Any:
        raise TypeError("a folder is found again by its path, not pickled")

    # -- arrays -----------------------------------------------------------------------------------------------------------------

    def empty(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        kind = np.dtype(dtype)
        if kind.hasobject or 0 in shape:
            return super().empty(shape, kind)
        return self._noted(np.memmap(self.path / f"{uuid4().hex}.array", dtype=kind, mode="w+", shape=shape))

    def kept(self, values: Array) -> Array:
        mapped = self.empty(values.shape, values.dtype)
        mapped[...] = values
        return mapped

    def name_of(self, array: object) -> str | None:
        """The file of an array, if it is the whole of one; a part of one is pickled by value."""
        if isinstance(array, np.memmap) and isinstance(array.filename, Path | str) and array.offset == 0:
            file = Path(array.filename)
            if file.parent == self.path and file.stat().st_size == array.nbytes and array.flags.c_contiguous:
                return file.name
        return None

    def mapped(self, name: str, dtype: str, shape: tuple[int, ...]) -> Array:
        return self._noted(np.memmap(self.path / name, dtype=dtype, mode="r+", shape=shape))

    def _noted(self, array: Array) -> Array:
        mapped: object = array.base
        assert isinstance(mapped, mmap.mmap)
        self._maps.add(mapped)
        return array

    def rest(self) -> None:
        """What was changed stays with the system, which writes it to the files in its own time."""
        for one in self._maps:
            one.madvise(mmap.MADV_DONTNEED)

    def name_of_bytes(self, content: Array) -> str:
        """The file of something that is pickled; the one it came from, if it has not been made anew."""
        place = (content.ctypes.data, content.nbytes)
        if place not in self._found:
            kept = self.kept(content)
            assert isinstance(kept, np.memmap)
            self._found[place] = Path(str(kept.filename)).name, content
        return self._found[place][0]

    def bytes_in(self, name: str) -> Array:
        content = self._noted(np.memmap(self.path / name, dtype=np.uint8, mode="r+"))
        self._found[content.ctypes.data, content.nbytes] = name, content
        return content

    # -- what is in it ----------------------------------------------------------------------------------------------------------

    def load(self, name: str) -> Any | None:
        """The state of this name, and the folder is open from now on; None if it has another one, or none that is whole."""
        if not self._own() or not (self.path / "state").exists():
            return None
        with (self.path / "state").open("rb") as file:
            if file.readline() != self._title(name):
                return None
            (self.path / "state").rename(self.path / "open")
            large = [self.bytes_in(one) for one in json.loads(file.readline())]
            return _Unpickler(file, self, large).load()

    def _own(self) -> bool:
        """Nobody else could have put anything into it: what is pickled may run when it is loaded."""
        return self.path.is_dir() and self.path.stat().st_uid == os.getuid() and stat.S_IMODE(self.path.stat().st_mode) == PRIVATE

    @staticmethod
    def _title(name: str) -> bytes:
        return f"{FORM} {name}\n".encode()

    def clear(self) -> None:
        """Begin anew, open."""
        self._found.clear()
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir(parents=True)
        self.path.chmod(PRIVATE)

    def save(self, name: str, state: Any) -> None:
        """Leave a state under this name; files that it has no use for go."""
        pickled = io.BytesIO()
        pickler = _Pickler(pickled, self)
        pickler.dump(state)  # type: ignore[no-untyped-call]  # CloudPickler has no types
        with (self.path / "next").open("wb") as file:
            file.write(self._title(name))
            file.write(json.dumps(pickler.large).encode() + b"\n")
            file.write(pickled.getbuffer())
        for one in self.path.glob("*.array"):
            if one.name not in pickler.used.union(pickler.large):
                one.unlink()
        (self.path / "next").rename(self.path / "state")
        (self.path / "open").unlink(missing_ok=True)


class _Pickler(CloudPickler):
    """Arrays of the folder by the names of their files, the folder itself by its being it, and users' functions by value.

    Other buffers that are large, of NumPy and Arrow alike, go into files as well: `large`, in the order they were come upon.
    """

    def __init__(self, file: IO[bytes], folder: Folder) -> None:
        super().__init__(file, protocol=5, buffer_callback=self._inside)  # type: ignore[no-untyped-call]
        self.folder = folder
        self.used: set[str] = set()
        self.large: list[str] = []

    def _inside(self, buffer: pickle.PickleBuffer) -> bool:
        """Whether a buffer is small enough to be pickled with the rest."""
        content = np.frombuffer(buffer.raw(), dtype=np.uint8)
        if content.nbytes >= LARGE:
            self.large.append(self.folder.name_of_bytes(content))
        return content.nbytes < LARGE

    def persistent_id(self, value: Any) -> Any:
        if value is self.folder:
            return ("folder",)
        name = self.folder.name_of(value)
        if name is None:
            return None
        self.used.add(name)
        return ("array", name, value.dtype.str, value.shape)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: IO[bytes], folder: Folder, large: Sequence[Array]) -> None:
        super().__init__(file, buffers=large)
        self.folder = folder

    def persistent_load(self, found: Any) -> Any:
        kind, *rest = found
        return self.folder if kind == "folder" else self.folder.mapped(*rest)
