"""What counts as wedged, on a clock of the test's own."""

from __future__ import annotations

from laguna_daemon.engine.metrics import Metrics
from laguna_daemon.engine.wedge import WedgeWatch

BUSY = Metrics(running=1, kv_usage=0.5, generated_tokens=10)


def test_work_and_no_movement_for_the_time_given() -> None:
    watch = WedgeWatch(60)
    assert watch.look(BUSY, 0) is None
    assert watch.look(BUSY, 59) is None
    why = watch.look(BUSY, 60)
    assert why is not None
    assert why.kind == "wedged"
    assert not why.permanent


def test_queued_work_alone_counts() -> None:
    watch = WedgeWatch(60)
    queued = Metrics(waiting=2)
    watch.look(queued, 0)
    why = watch.look(queued, 61)
    assert why is not None
    assert "0 running and 2 waiting" in why.what


def test_a_long_prefill_moves_the_kv_usage() -> None:
    watch = WedgeWatch(60)
    for minute in range(60):
        assert watch.look(Metrics(running=1, kv_usage=minute / 100), minute * 59.0) is None


def test_a_long_answer_moves_the_tokens() -> None:
    watch = WedgeWatch(60)
    for minute in range(60):
        assert watch.look(Metrics(running=1, kv_usage=0.5, generated_tokens=minute), minute * 59.0) is None


def test_idleness_is_no_wedge_and_does_not_count_towards_one() -> None:
    watch = WedgeWatch(60)
    idle = Metrics(generated_tokens=10)
    assert watch.look(idle, 0) is None
    assert watch.look(idle, 1000) is None
    assert watch.look(BUSY, 1001) is None
    assert watch.look(BUSY, 1060) is None
    assert watch.look(BUSY, 1061) is not None


def test_a_server_that_outlives_its_core() -> None:
    watch = WedgeWatch(60)
    assert watch.health(False, 0) is None
    assert watch.health(True, 9) is None
    assert watch.health(False, 11) is None
    assert watch.health(False, 20) is None
    why = watch.health(False, 21)
    assert why is not None
    assert why.kind == "dead"


def test_silence() -> None:
    watch = WedgeWatch(60)
    assert watch.silence(0) is None
    assert watch.silence(59) is None
    assert watch.look(BUSY, 59.5) is None
    assert watch.silence(70) is None
    assert watch.silence(129) is None
    why = watch.silence(130)
    assert why is not None
    assert "did not answer" in why.what
