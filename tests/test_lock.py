"""The lock files pin what pyproject.toml asks for, by hash, and say nothing about where packages come from."""

from __future__ import annotations

import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PIN = re.compile(r"^([\w.-]+)==([^ ;]+)", re.MULTILINE)
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
LOCKS = {
    "requirements.lock": [*PROJECT["dependencies"], *chain.from_iterable(PROJECT["optional-dependencies"].values())],
    "requirements-build.lock": [*PYPROJECT["build-system"]["requires"], *PYPROJECT["dependency-groups"]["build"]],
    "requirements-java.lock": PYPROJECT["dependency-groups"]["java"],
}


def pins(lock: str) -> dict[str, str]:
    return {canonicalize_name(name): version for name, version in PIN.findall((ROOT / lock).read_text())}


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_pins_what_pyproject_asks_for(lock: str) -> None:
    pinned = pins(lock)
    for requirement in map(Requirement, LOCKS[lock]):
        assert pinned.get(canonicalize_name(requirement.name), "nothing") in requirement.specifier, f"{requirement}: run `make lock`"


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_a_hash(lock: str) -> None:
    entries = re.split(r"^(?=[\w.-]+==)", (ROOT / lock).read_text(), flags=re.MULTILINE)[1:]
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_index(lock: str) -> None:
    assert not re.search(r"://|--(extra-)?index|--find-links", (ROOT / lock).read_text())
