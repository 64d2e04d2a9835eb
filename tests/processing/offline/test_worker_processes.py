"""Tasks in several processes: results in order, errors of tasks, killed processes."""

import multiprocessing
import os
import signal
import time
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from hltnode.processing.offline.worker_processes import results_in_order

pytestmark = pytest.mark.process

# Far more than the buffer of a pipe.
HUGE = 1 << 24


def return_late(number: int) -> bytes:
    """A task; even tasks take longer than the odd ones after them."""
    time.sleep(0.02 * (number % 2 == 0))
    return bytes([number])


def fail(number: int) -> bytes:
    if number == 2:
        raise ValueError(f"task {number} is bad")
    return b"good"


def kill_itself(number: int) -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return b""


def return_much(number: int, go: Path, going: Path) -> bytes:
    if number == 0:
        return b"first"
    while not go.exists():
        time.sleep(0.001)
    much = bytes(HUGE)
    going.write_text(str(os.getpid()))
    return much


def is_waiting(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


@pytest.fixture(autouse=True)
def no_process_is_left() -> Generator[None]:
    yield
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("processes", [1, 3])
def test_results_come_in_the_order_of_their_tasks(processes: int) -> None:
    assert list(results_in_order(return_late, [(i,) for i in range(9)], processes)) == [bytes([i]) for i in range(9)]


def test_no_tasks_need_no_process() -> None:
    assert list(results_in_order(return_late, [], 3)) == []


def test_the_error_of_a_task_is_raised_with_its_traceback() -> None:
    with pytest.raises(ValueError, match="task 2 is bad") as caught:
        list(results_in_order(fail, [(i,) for i in range(4)], 2))
    assert "in fail" in caught.value.__notes__[0]


def test_a_process_that_is_killed_during_its_task_is_an_error() -> None:
    with pytest.raises(ChildProcessError, match="was killed"):
        list(results_in_order(kill_itself, [(0,), (1,)], 2))


def test_a_process_that_is_killed_while_it_sends_its_result_blocks_no_other_process(tmp_path: Path) -> None:
    go, going = tmp_path / "go", tmp_path / "going"
    with closing(results_in_order(return_much, [(i, go, going) for i in range(2)], 2)) as results:
        assert next(results) == b"first"
        go.touch()
        while not (going.exists() and (pid := going.read_text()) and is_waiting(int(pid))):
            time.sleep(0.001)
        os.kill(int(pid), signal.SIGKILL)
        with pytest.raises(ChildProcessError, match="was killed"):
            next(results)


def test_closing_ends_processes_in_the_middle_of_their_tasks(tmp_path: Path) -> None:
    with closing(
        results_in_order(return_much, [(i, tmp_path / "never", tmp_path / "x") for i in range(2)], 2)
    ) as results:
        assert next(results) == b"first"
