"""What is left of a batch is done behind Spark's back: one batch at a time, nothing after a failure."""

from __future__ import annotations

import threading

import pytest

from muntin.spark.behind import Behind, Stopping


def test_the_next_batch_waits_until_nothing_is_left_of_the_one_before() -> None:
    behind, let_go, order = Behind(), threading.Event(), []

    def rest() -> None:
        assert let_go.wait(10)
        order.append("rest of the first")

    with behind.entered():
        behind.go_on(rest)
        order.append("first")
    assert behind.gate.locked()
    threading.Timer(0.1, let_go.set).start()
    with behind.entered():
        order.append("second")
    assert order == ["first", "rest of the first", "second"]
    assert not behind.gate.locked()


def test_settling_waits_for_what_is_being_done() -> None:
    behind, done = Behind(), []
    behind.settle()
    with behind.entered():
        behind.go_on(lambda: done.append(True))
    behind.settle()
    assert done == [True]
    assert not behind.gate.locked()


@pytest.mark.parametrize("behind_spark", [True, False])
def test_after_a_failure_no_batch_is_taken_and_the_failure_is_told(behind_spark: bool) -> None:
    behind, failure = Behind(), OSError("the disk is gone")

    def fail() -> None:
        raise failure

    if behind_spark:
        with behind.entered():
            behind.go_on(fail)
        behind.settle()
    else:
        with pytest.raises(OSError, match="the disk is gone"), behind.entered():
            fail()
    assert behind.failure is failure
    with pytest.raises(OSError, match="the disk is gone"), behind.entered():
        pytest.fail("a batch was taken")
    assert not behind.gate.locked()


def test_without_a_thread_to_spare_the_rest_is_done_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    behind, done = Behind(), []
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    with behind.entered():
        behind.go_on(lambda: done.append(True))
    assert done == [True]
    assert not behind.gate.locked()
    behind.settle()


def test_stopping_is_no_failure_and_takes_nothing() -> None:
    behind = Behind()
    behind.stopping = True
    with pytest.raises(Stopping), behind.entered():
        pytest.fail("a batch was taken")
    assert behind.failure is None
    assert not behind.gate.locked()
