"""Runs tasks in several processes; results come in the order of the tasks.

Each process has its own pipe. The pools of the standard library share one pipe for all results: a worker that is killed
while it writes leaves half a message and a held lock, and all others wait for ever.
"""

import signal
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any

# Results per process that may wait for earlier ones: two keep all processes busy, and few results are in memory.
RESULTS_AHEAD = 2


class Worker:
    """A process that executes one task after the other. It ends when it is killed or when its parent ends.

    Methods raise ChildProcessError if the process was killed.
    """

    def __init__(self, work: Callable[..., bytes]) -> None:
        spawn = get_context("spawn")
        self.pipe, far = spawn.Pipe()
        self.process = spawn.Process(target=_serve, args=(far, work), daemon=True)
        # Starting the resource tracker unblocks the signal, so it must run before the signal is blocked.
        resource_tracker.ensure_running()
        # Workers inherit the blocked SIGINT (Ctrl-C): this process ends them.
        former = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, former)
        far.close()
        self.number = -1
        """Number of the current task."""

    def begin(self, number: int, task: Sequence[Any]) -> None:
        """Send it a task."""
        self.number = number
        try:
            self.pipe.send(task)
        except OSError as error:
            raise _lost() from error

    def result(self) -> bytes:
        """Wait for the result. Raises the error of the task."""
        try:
            result: bytes | Exception = self.pipe.recv()
        except (EOFError, OSError) as error:
            raise _lost() from error
        if isinstance(result, Exception):
            raise result
        return result


def _lost() -> ChildProcessError:
    return ChildProcessError("a worker process was killed before it returned its result")


def encoded_blocks(
    encode: Callable[[int, int], bytes], n: int, per_block: int, jobs: int
) -> Generator[tuple[int, bytes]]:
    """Blocks of n events in order: the number of their events, and their bytes. `jobs` processes make them.

    encode: makes the bytes of a block from the number of its first event and the number of its events; with several
    processes it must be one that pickle can send.
    """
    starts = range(0, n, per_block)
    sizes = [min(per_block, n - start) for start in starts]
    tasks = list(zip(starts, sizes, strict=True))
    if jobs == 1:
        yield from ((size, encode(start, size)) for start, size in tasks)
        return
    with closing(results_in_order(encode, tasks, jobs)) as made:
        yield from zip(sizes, made, strict=True)


def results_in_order(work: Callable[..., bytes], tasks: Sequence[Sequence[Any]], processes: int) -> Generator[bytes]:
    """work(*task) of each task, in at most this number of processes. Closing the generator kills them.

    Raises the error of a task, and ChildProcessError if a process was killed.
    """
    workers: list[Worker] = []
    try:
        # Workers that have started are ended too when a later one fails to start.
        workers.extend(Worker(work) for _ in range(min(processes, len(tasks))))
        idle, busy = list(workers), list[Worker]()
        done: dict[int, bytes] = {}
        begun = 0
        for turn in range(len(tasks)):
            while turn not in done:
                while idle and begun < min(len(tasks), turn + RESULTS_AHEAD * len(workers)):
                    idle[-1].begin(begun, tasks[begun])
                    busy.append(idle.pop())
                    begun += 1
                ready = wait([worker.pipe for worker in busy])
                for worker in [worker for worker in busy if worker.pipe in ready]:
                    done[worker.number] = worker.result()
                    busy.remove(worker)
                    idle.append(worker)
            yield done.pop(turn)
    finally:
        for worker in workers:
            worker.process.kill()
        for worker in workers:
            worker.process.join()
            worker.process.close()
            worker.pipe.close()


def _serve(pipe: Connection, work: Callable[..., bytes]) -> None:
    with suppress(EOFError, ConnectionError):
        while True:
            task = pipe.recv()
            result: bytes | Exception
            try:
                result = work(*task)
            except Exception as error:
                error.add_note(traceback.format_exc())
                result = error
            pipe.send(result)
