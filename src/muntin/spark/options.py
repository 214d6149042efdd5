"""The options of a source as the user wrote them in `WITH (…)`: checked against the ones there are, and read as what they mean.

In: names and texts. Out: whole numbers, switches, instants, texts. Convention: an option that nobody reads is refused with the nearest
name there is, never ignored; every refusal names the stream or table and the option.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches

from muntin.errors import SourceError


@dataclass(frozen=True)
class Options:
    """What stands in `WITH` after the columns of `owner`, say `stream trades`; names are in lower case."""

    owner: str
    values: Mapping[str, str]

    def check(self, known: Collection[str], *, of: str) -> None:
        """Refuses an option that `of` does not have."""
        for name in self.values:
            if name not in known:
                near = get_close_matches(name, known, n=1)
                way_out = f"did you mean {near[0]}?" if near else f"{of} has the options {', '.join(sorted(known))}"
                raise self.refusal(f"an option is one that {of} has", name, way_out)

    def one_of(self, name: str, choices: Collection[str], default: str | None = None) -> str:
        """One of a few words, in any case; required if there is no default."""
        given = self.values.get(name, default)
        if given is None or given.lower() not in choices:
            values = f"no {name}" if given is None else f"{name} = {given!r}"
            near = get_close_matches((given or "").lower(), choices, n=1)
            hint = f"did you mean {near[0]}?" if near else f"write {name} = " + " or ".join(f"'{choice}'" for choice in choices)
            raise self.refusal(f"{name} is one of {', '.join(choices)}", values, hint)
        return given.lower()

    def text(self, name: str) -> str:
        if not self.values.get(name, ""):
            raise self.refusal(f"the option {name} is given", f"no {name}", f"add {name} = '…' to WITH")
        return self.values[name]

    def whole(self, name: str, default: int) -> int:
        """A whole number of 1 or more."""
        given = self.values.get(name, str(default)).replace("_", "").replace(",", "")
        if not given.isdecimal() or int(given) < 1:
            raise self.refusal(f"{name} is a whole number of 1 or more", f"{name} = {self.values[name]!r}", f"write {name} = '{default}'")
        return int(given)

    def switch(self, name: str) -> bool:
        return self.one_of(name, ("true", "false")) == "true"

    def instant(self, name: str, default: datetime) -> datetime:
        """ISO 8601; a time without zone is UTC."""
        if name not in self.values:
            return default
        try:
            moment = datetime.fromisoformat(self.values[name])
        except ValueError:
            raise self.refusal(f"{name} is a time", f"{name} = {self.values[name]!r}", f"write {name} = '{default.isoformat()}'") from None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    def refusal(self, law: str, values: str, way_out: str) -> SourceError:
        return SourceError(f"{self.owner}: {law}", values=values, way_out=way_out)
