"""What every report is made of: a heading with the machine, Markdown tables, raw numbers as JSON.

In: outcomes as dataclasses. Out: `NAME.md` and `NAME.json` in a directory. Convention: a claim comes with a verdict, PASS or FAIL, and
the figures it rests on; a number that was multiplied rather than measured is marked in its cell.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import SHARED, Machine


@dataclass(frozen=True)
class Claim:
    """Something the project promises, and whether these figures bear it out."""

    text: str
    holds: bool
    figures: str

    def __str__(self) -> str:
        return f"**{'PASS' if self.holds else 'FAIL'}** {self.text}: {self.figures}"


@dataclass(frozen=True)
class Report:
    """A page: `name` is that of its files, `title` its heading, `body` its paragraphs and tables."""

    name: str
    title: str
    claims: Sequence[Claim]
    body: Sequence[str]
    raw: Any

    def markdown(self, machine: Machine, elsewhere: float) -> str:
        shared = " (**read the ratios, not the times**)" if elsewhere > SHARED or machine.busy else ""
        others = f"- other processes had {elsewhere:.2f} of the {machine.cores} cores on average while it ran{shared}"
        head = [f"# {self.title}", "\n".join([*machine.lines(), others]), f"Made by `python -m benchmarks {self.name.replace('-', '_')}`."]
        claims = "\n".join(f"- {claim}" for claim in self.claims)
        plot = f"![{self.title}]({self.name}.png)"
        files = f"The same as [SVG]({self.name}.svg); raw numbers in [{self.name}.json]({self.name}.json)."
        return "\n\n".join([*head, claims, plot, files, *self.body]) + "\n"

    def write(self, directory: Path, machine: Machine, elsewhere: float) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{self.name}.md").write_text(self.markdown(machine, elsewhere))
        raw = {
            "machine": asdict(machine) | {"elsewhere": elsewhere},
            "claims": [asdict(claim) for claim in self.claims],
            "outcome": self.raw,
        }
        (directory / f"{self.name}.json").write_text(json.dumps(raw, indent=1) + "\n")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """The first columns hold words and go to the left, the others numbers and go to the right."""
    lines = [head, [*["---"] * words, *["---:"] * (len(head) - words)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def seconds(value: float) -> str:
    """Three digits.

    >>> seconds(0.2714), seconds(1.2345), seconds(12.41), seconds(1760.2)
    ('0.271 s', '1.23 s', '12.4 s', '1,760 s')
    """
    digits = 3 if value < 1 else 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{digits}f} s"


def times(value: float) -> str:
    return f"{value:,.2f} ×" if value < 10 else f"{value:,.0f} ×"


def whole(value: float) -> str:
    return f"{value:,.0f}"


def size(value: float) -> str:
    """Bytes in the unit that gives two or three digits.

    >>> size(512), size(20_480), size(3 * 2**20)
    ('512 B', '20 KiB', '3.0 MiB')
    """
    if value < 1024:
        return f"{value:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        value /= 1024
        if value < 1024 or unit == "GiB":
            break
    return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"
