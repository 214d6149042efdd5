"""An output directory: of one run, written by one job at a time, with a marker for each entry that is whole.

In: a place, and what its files are. Out: a refusal, or a directory that is ours until it is let go; and which entries it has.
Convention: `_muntin.json` says whose directory it is; `_entries/<stream>/<entry>` that the results of an entry are all there. Of a run that
is resumed the directory must be its own; one that replaces the results of a whole run takes any that a whole run left.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from muntin.errors import SinkError, StoreError
from muntin.spark.locks import Occupied
from muntin.spark.ownership import Ownership, own
from muntin.spark.place import Place
from muntin.spark.sinks.base import EntryId
from muntin.spark.sinks.names import ENTRIES, OWNER

FORMAT_VERSION = 1

#: A replay asks only for entries after the newest marker or for that one. The other few are for people who look.
KEPT_MARKERS = 4


class OutputDirectory:
    """`layout` and `files` are what the owner file says of the results; `replaces` is the layout whose results a run may replace."""

    def __init__(self, place: Place, *, layout: str, files: str, replaces: str = "") -> None:
        self.place = place
        self._layout, self._files, self._replaces = layout, files, replaces
        self._run = ""
        self._last: dict[str, EntryId] = {}
        self._ownership: Ownership | None = None

    # -- whose it is ------------------------------------------------------------------------------------------------------------

    def take(self, run: str, folders: Iterable[str]) -> bool:
        """Own the directory for a run, or refuse it; says whether it was of this kind before. If not, none of `folders` may be there."""
        self._run, self._last = run, {}
        self._own()
        try:
            owner = self._owner()
            self._check_owner(owner)
            ours = owner is not None and owner.get("files") == self._files
            for folder in () if ours else folders:
                self._check_free(self.place / folder)
        except BaseException:
            self.let_go()
            raise
        return ours

    def sign(self, *, whole: bool = True) -> None:
        """Say whose the directory is; of no run, if the results are not `whole` yet."""
        identity = self._identity() | ({} if whole else {"run": ""})
        (self.place / OWNER).write((json.dumps(identity) + "\n").encode())

    def unsign(self) -> None:
        (self.place / OWNER).remove()

    def check(self) -> None:
        """An `OwnershipError` if another job has taken the directory over."""
        if self._ownership is not None:
            self._ownership.check()

    def let_go(self) -> None:
        if self._ownership is not None:
            self._ownership.close()
            self._ownership = None

    def _identity(self) -> dict[str, int | str]:
        return {"format": FORMAT_VERSION, "run": self._run, "layout": self._layout, "files": self._files}

    def _own(self) -> None:
        try:
            self._ownership = own(self.place)
        except Occupied as occupied:
            found = f"another one is writing to it, {occupied.holder}"
            law, way_out = "one job writes to a directory at a time", f"{occupied.way_out}, or choose another output directory"
            raise SinkError(law, values=f"{self.place}: {found}", way_out=way_out) from None
        except (OSError, StoreError) as error:
            raise self._refusal("an output directory can be made and locked", str(error)) from None

    def _owner(self) -> dict[str, object] | None:
        """What the owner file says; None if there is none."""
        owner = self.place / OWNER
        if not owner.exists():
            return None
        law = f"{OWNER} says whose an output directory is"
        try:
            found = json.loads(bytes(owner.read()).decode())
        except (FileNotFoundError, ValueError) as error:
            raise self._refusal(law, f"it cannot be read ({error})") from None
        if not isinstance(found, dict):
            raise self._refusal(law, "it holds something else")
        return found

    def _check_owner(self, found: dict[str, object] | None) -> None:
        if found is None or (self._replaces and found.get("layout") == self._replaces):
            return
        differences = [f"{key} is {found.get(key)}, not {value}" for key, value in self._identity().items() if found.get(key) != value]
        if differences:
            raise self._refusal("an output directory belongs to one run", "; ".join(differences))

    def _check_free(self, folder: Place) -> None:
        if folder.exists() or folder.files() or folder.folders():
            raise self._refusal("the results of a query lie in a directory of their own", f"{folder.name} is there already")

    def _refusal(self, law: str, values: str) -> SinkError:
        return SinkError(law, values=f"{self.place}: {values}", way_out="choose an empty output directory, or remove this one")

    # -- which entries it has ---------------------------------------------------------------------------------------------------

    def holds(self, entry: EntryId, stream: str) -> bool:
        """Entries come in order: an entry up to the newest marker was written."""
        if stream not in self._last:
            self._last[stream] = max(self._marked(stream), default=EntryId(-1))
        return entry <= self._last[stream]

    def mark(self, entry: EntryId, stream: str) -> None:
        self.check()
        (self._markers(stream) / str(entry)).write()
        self._last[stream] = entry
        for old in sorted(self._marked(stream))[:-KEPT_MARKERS]:
            (self._markers(stream) / str(old)).remove()

    def newest(self) -> dict[str, EntryId]:
        """The newest entry that is whole, of each stream that has any."""
        streams = ["", *(self.place / ENTRIES).folders()]
        return {stream: max(marked) for stream in streams if (marked := self._marked(stream))}

    def _markers(self, stream: str) -> Place:
        entries = self.place / ENTRIES
        return entries / stream if stream else entries

    def _marked(self, stream: str) -> list[EntryId]:
        return list(map(EntryId.parse, self._markers(stream).files()))
