"""The import contract of pyproject.toml: imports point one way, and only the Spark side knows pyspark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def test_executors_need_no_more_than_pyspark_asks_for() -> None:
    program = "import sys, muntin.spark.instances; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert {"numpy", "pandas", "pyarrow", "pyspark"} <= set(found)
    assert not {"sqlglot", "typer", "rich"} & set(found)


def test_imports_point_one_way(capsys: pytest.CaptureFixture[str]) -> None:
    status = lint_imports(config_filename=str(PYPROJECT), no_cache=True)
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out
