"""The demo, at a size of seconds: it leaves its files, and a summary that says what they are."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console

from muntin.demo import Summary, show
from muntin.demo.workloads import workload_c_regular


def test_the_demo_leaves_a_pipeline_its_data_and_a_file_per_query(tmp_path: Path) -> None:
    """In a process of its own: it ends with stopping its session."""
    command = [sys.executable, "-c", "from muntin.cli import app; app()", "demo", str(tmp_path), "--queries", "16", "--rows", "7200"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=280, env=os.environ | {"COLUMNS": "120"})
    assert ran.returncode == 0, ran.stderr
    assert "4 different windows, 4 different predicates, joined with two tables" in ran.stdout
    assert "q000  X.r3000 = TRUE AND T.vol * T.price > 1565" in ran.stdout
    assert (tmp_path / "pipeline.sql").read_text().count("CREATE QUERY") == 16
    assert sorted(path.name for path in tmp_path.iterdir()) == ["close.csv", "index.csv", "pipeline.sql", "results", "trades"]
    results = sorted((tmp_path / "results").glob("q*.jsonl"))
    assert len(results) == 16
    assert all(json.loads(line)["value"] > 0 for path in results for line in path.read_text().splitlines())


def test_the_summary_fits_a_narrow_terminal(tmp_path: Path) -> None:
    queries = workload_c_regular(16)
    (tmp_path / "results").mkdir()
    row = {"window_start": "2004-12-01T12:00:00.000000Z", "window_end": "2004-12-01T12:10:00.000000Z", "value": 123456789012.5}
    for query in queries:
        (tmp_path / "results" / f"{query.name}.jsonl").write_text(json.dumps(row) + "\n")
    console = Console(file=io.StringIO(), width=80)
    summary = Summary(rows=10, seconds=2.0, queries=16, kinds=(4, 4), windows=20, partial=10, final=30, unshared_final=40)
    show(summary, queries, tmp_path, console)
    told = console.file.getvalue()
    assert "10 rows in 2.0 s (5 rows/s)" in told
    assert told.count("12:00:00 to 12:10:00  123,456,789,012.50") == 4
