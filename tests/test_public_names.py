"""The public names of the package: all there, imported when they are first asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import muntin


def test_every_public_name_is_there() -> None:
    assert set(muntin.__all__) == {name for names in muntin._HOMES.values() for name in names}
    assert set(muntin.__all__) <= set(dir(muntin))
    for name in muntin.__all__:
        assert getattr(muntin, name).__module__ in muntin._HOMES


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'muntin' has no attribute 'nothing'"):
        _ = muntin.nothing


def test_the_command_line_starts_without_spark_and_arrow() -> None:
    """Commands that only talk to a running job take a third of a second instead of more than one."""
    program = "import sys, muntin.cli; sys.exit(', '.join({'pyspark', 'pyarrow', 'numpy', 'pandas'} & set(sys.modules)) or 0)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
