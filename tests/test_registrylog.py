"""The versions of the registry on disk: what was appended is read again, in order, or refused."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from muntin.errors import CheckpointError
from muntin.spark import registrylog
from muntin.spark.place import Place
from muntin.spark.registrylog import LONGEST_CHAIN, Origin, Registered, RegistryLog

Versions = dict[int, tuple[Registered, ...]]


@pytest.fixture(scope="module", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Thousands of small files are read back by the process that wrote them: flushing each would take most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)
        yield


def query(name: str, bound: int = 0, origin: Origin = Origin.PIPELINE) -> Registered:
    text = f"CREATE QUERY {name} AS SELECT count(*) AS c FROM trades [RANGE 1 hour SLIDE 1 minute] WHERE vol > {bound}"
    return Registered(name, text, origin)


queries = st.builds(query, st.sampled_from("abcdefgh"), st.integers(0, 2), st.sampled_from(Origin))


@st.composite
def histories(draw: st.DrawFn) -> Versions:
    """Versions as they come: each adds, drops, replaces in place or shuffles a few queries of the one before, or none."""
    current: list[Registered] = []
    number, versions = draw(st.integers(0, 3)), {}
    for _ in range(draw(st.integers(1, 30))):
        versions[number] = tuple(current)
        number += draw(st.integers(1, 3))
        for _ in range(draw(st.integers(0, 3))):
            start = draw(st.integers(0, len(current)))
            current[start : start + draw(st.integers(0, 2))] = draw(st.lists(queries, max_size=2))
        if draw(st.integers(0, 9)) == 0:
            current = draw(st.permutations(current))
    return versions


def log_in(directory: Path) -> RegistryLog:
    return RegistryLog(Place.of(directory))


def written(directory: Path, versions: Versions) -> RegistryLog:
    log = log_in(directory)
    for number, held in versions.items():
        log.append(number, held)
    return log


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def harmed(content: bytes, kind: str) -> bytes:
    middle = len(content) // 2
    return {
        "emptied": b"",
        "cut": content[:-1],
        "grown": content + b"\0",
        "flipped": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
    }[kind]


@given(histories(), st.randoms(use_true_random=False), st.sampled_from([2, 5, 64]))
def test_every_version_is_read_as_it_was_appended_by_its_writer_and_by_another(versions: Versions, random: object, chain: int) -> None:
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(registrylog, "LONGEST_CHAIN", chain)
        writer = written(Path(directory), versions)
        order = list(versions)
        random.shuffle(order)  # type: ignore[attr-defined]
        for log in (writer, log_in(Path(directory))):
            assert log.newest() == max(versions)
            assert {number: log.at(number) for number in order} == versions


@given(histories(), st.data(), st.sampled_from([2, 5, 64]))
def test_what_is_forgotten_is_not_needed_by_what_stays(versions: Versions, data: st.DataObject, chain: int) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(registrylog, "LONGEST_CHAIN", chain)
        directory = Path(name)
        written(directory, versions)
        oldest = data.draw(st.integers(0, max(versions) + 2))
        log = log_in(directory)
        log.forget_before(oldest)
        kept = {number: held for number, held in versions.items() if number >= min(oldest, max(versions))}
        log.append(max(versions) + 1, [query("after")])
        fresh = log_in(directory)
        assert {number: fresh.at(number) for number in kept} == kept
        assert fresh.at(max(versions) + 1) == (query("after"),)
        assert len(list(directory.iterdir())) <= len(kept) + chain


@given(histories(), st.data(), st.sampled_from(["emptied", "cut", "grown", "flipped", "missing", "another's"]))
def test_a_harmed_file_is_an_error_and_never_a_wrong_list(versions: Versions, data: st.DataObject, harm: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        written(directory, versions)
        number = data.draw(st.sampled_from(sorted(versions)))
        path = directory / f"{number:08d}"
        if harm == "missing":
            path.unlink()
        elif harm == "another's":
            written(directory / ".other", {99: (query("z"),)})
            path.write_bytes((directory / ".other" / "00000099").read_bytes())
        else:
            path.write_bytes(harmed(path.read_bytes(), harm))
        with pytest.raises(CheckpointError, match="there and unharmed"):
            log_in(directory).at(number)
        for other, held in versions.items():
            try:
                assert log_in(directory).at(other) == held
            except CheckpointError:
                assert other >= number


@given(st.lists(queries, max_size=6), st.lists(queries, max_size=6))
@example([query("a"), query("b")], [query("b"), query("a")])
def test_the_difference_of_any_two_lists_leads_from_one_to_the_other(before: Sequence[Registered], after: Sequence[Registered]) -> None:
    assert registrylog._changed(before, registrylog._changes(before, after)) == tuple(after)


def test_a_thousand_changes_of_256_standing_queries_stay_small(tmp_path: Path) -> None:
    standing = [query(f"standing_{number}") for number in range(256)]
    log = log_in(tmp_path)
    for number in range(1_000):
        log.append(number, [*standing, query(f"guest_{number}", origin=Origin.COMMAND)])
    whole = (tmp_path / "00000000").stat().st_size
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 30 * whole
    assert (tmp_path / "00000001").stat().st_size < whole / 50
    assert log_in(tmp_path).at(999) == (*standing, query("guest_999", origin=Origin.COMMAND))


def test_every_64th_file_is_whole_though_version_numbers_have_gaps(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    for number in range(0, 2 * 3 * LONGEST_CHAIN, 3):
        log.append(number, [query("a", number)])
    log.forget_before(3 * LONGEST_CHAIN - 3)
    assert names(tmp_path)[0] == "00000000"
    log.forget_before(3 * LONGEST_CHAIN - 2)
    assert names(tmp_path)[0] == f"{3 * LONGEST_CHAIN:08d}"
    log.forget_before(3 * LONGEST_CHAIN + 1)
    assert names(tmp_path)[0] == f"{3 * LONGEST_CHAIN:08d}"


@pytest.mark.parametrize("number", [4, 5])
def test_a_version_that_does_not_rise_is_refused(tmp_path: Path, number: int) -> None:
    log = log_in(tmp_path)
    log.append(5, [query("a")])
    with pytest.raises(CheckpointError, match=f"versions of the registry rise\n.*version {number} after version 5"):
        log.append(number, [query("b")])
    log.append(6, [query("b")])
    assert log_in(tmp_path).at(5) == (query("a"),)


def test_an_empty_log_has_no_newest_version_and_nothing_to_read_or_forget(tmp_path: Path) -> None:
    log = log_in(tmp_path / "registry")
    assert log.newest() is None
    log.forget_before(3)
    with pytest.raises(CheckpointError, match="00000000: the file is missing"):
        log.at(0)


def test_what_a_crash_left_aside_is_passed_over_and_a_stranger_is_refused(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.append(0, [])
    (tmp_path / ".00000001.aside").write_bytes(b"MUN")
    assert (log.newest(), log.at(0)) == (0, ())
    log.append(1, [query("a")])
    (tmp_path / "notes.txt").touch()
    with pytest.raises(CheckpointError, match=r"nothing but its own files\n.*notes\.txt"):
        log.newest()
