"""CPUs and real-time priority of threads, also when the system refuses them."""

import errno
import os
import threading
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from hltnode.daemon.common.vocabulary import DecisionThread, ThreadSetting
from hltnode.daemon.machine.thread_scheduling import ThreadScheduling

Applied = dict[tuple[DecisionThread, ThreadSetting], bool]
COMPUTE = DecisionThread.COMPUTE


def in_thread(call: Callable[[], None]) -> None:
    """Threads of the tests keep their CPUs."""
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def test_a_thread_is_pinned_and_no_other_one() -> None:
    cpu = min(os.sched_getaffinity(0))
    before, seen = os.sched_getaffinity(0), []
    applied: Applied = {}

    def run() -> None:
        ThreadScheduling((cpu,), 0, applied).apply(COMPUTE)
        seen.append(os.sched_getaffinity(0))

    in_thread(run)
    assert seen == [{cpu}]
    assert os.sched_getaffinity(0) == before
    assert applied == {(COMPUTE, ThreadSetting.CPUS): True}


def test_without_keys_nothing_is_set() -> None:
    applied: Applied = {}
    ThreadScheduling(None, 0, applied).apply(COMPUTE)
    assert applied == {}


def test_cpus_that_the_process_does_not_have_are_refused_with_a_warning() -> None:
    applied: Applied = {}
    with capture_logs() as logs:
        in_thread(lambda: ThreadScheduling((4095,), 0, applied).apply(COMPUTE))
    assert applied == {(COMPUTE, ThreadSetting.CPUS): False}
    assert [(each["log_level"], each["key"], each["thread"]) for each in logs] == [
        ("warning", "latency.cpus", "compute")
    ]
    assert "none of these CPUs is open to the process" in logs[0]["error"]


def test_a_real_time_priority_is_asked_for_and_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, int, int]] = []
    monkeypatch.setattr(
        os, "sched_setscheduler", lambda pid, policy, param: calls.append((pid, policy, param.sched_priority))
    )
    applied: Applied = {}
    ThreadScheduling(None, 17, applied).apply(DecisionThread.EVENT_LOOP)
    assert calls == [(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, 17)]
    assert applied == {(DecisionThread.EVENT_LOOP, ThreadSetting.REALTIME): True}


def test_a_refused_priority_names_the_right_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    applied: Applied = {}
    with capture_logs() as logs:
        ThreadScheduling(None, 17, applied).apply(COMPUTE)
    assert applied == {(COMPUTE, ThreadSetting.REALTIME): False}
    assert [each["key"] for each in logs] == ["latency.realtime_priority"]
    assert "RLIMIT_RTPRIO" in logs[0]["error"]
