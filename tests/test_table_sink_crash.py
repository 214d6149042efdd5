"""Killed with SIGKILL anywhere and resumed, a job leaves tables with the rows of an undisturbed run, and no file that no log names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable

from muntin.spark.sinks.text import json_lines
from test_crash import QUERIES, alike, data, ended, start, undisturbed

__all__ = ["data", "undisturbed"]

pytestmark = pytest.mark.slow


def table_lines(out: Path, query: str) -> list[str]:
    table = DeltaTable(out / query)
    files = {str(path.relative_to(out / query)) for path in (out / query).glob("0*/*.parquet")}
    assert len(files) == len(table.file_uris())
    return b"".join(map(bytes, json_lines(table.to_pyarrow_table()))).decode().splitlines()


def check_same(out: Path, undisturbed: dict[str, list[str]]) -> None:
    for query in QUERIES:
        ours, truth = (sorted(map(json.loads, lines), key=identity) for lines in (table_lines(out, query), undisturbed[query]))
        assert len(ours) == len(truth)
        assert all(alike(mine, theirs) for mine, theirs in zip(ours, truth, strict=True))


def identity(row: dict[str, object]) -> str:
    return str([row.get(name) for name in ("window_end", "window_start", "user", "final", "revision", "clicks")])


#: In a run that begins, an entry with rows of four queries is 12 writes: its pin, itself, four files, four commits, the marker, the end.
#: The first one's are 5 to 16. So: among the files, among the commits, around the marker; and the entry that closes all windows.
KILLS = ("after:9", "after:11", "before:14", "before:15", "after:15", "after:24", "before:27", "after:72")


@pytest.mark.parametrize("kills", [[], *([kill] for kill in KILLS), ["after:9", "before:5", "after:12", "before:13"]], ids=" ".join)
def test_killed_at_any_write_tables_have_the_undisturbed_rows(
    data: Path, tmp_path: Path, undisturbed: dict[str, list[str]], kills: list[str]
) -> None:
    for kill in [*kills, "never:0"]:
        if ended(start(data, tmp_path / "out", tmp_path / "checkpoint", kill, sink="tables")) == 0:
            break
    check_same(tmp_path / "out", undisturbed)
