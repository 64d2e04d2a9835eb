"""The back ends of a node: batches wait in order for the first one that is free."""

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from hltnode.daemon.farm_model.clock import Clock
from hltnode.daemon.farm_model.measures import FarmCounts

Job = TypeVar("Job")


class BackEnds(Generic[Job]):
    """Servers with one queue.

    Args:
        service_ns: the time of a job.
        begun, ended: called when a server takes a job, and when it has done it.
    """

    def __init__(
        self,
        clock: Clock,
        servers: int,
        counts: FarmCounts,
        *,
        service_ns: Callable[[Job], int],
        begun: Callable[[Job], None],
        ended: Callable[[Job], None],
    ) -> None:
        self._clock = clock
        self._free = servers
        self._counts = counts
        self._service_ns, self._begun, self._ended = service_ns, begun, ended
        self._queue: deque[tuple[int, Job]] = deque()
        self._generation = 0
        self._servers = servers
        self._held: list[tuple[int, int, Job]] | None = None
        """Jobs that have ended while the process that waits for them stands still; None: it runs."""
        self.busy_ns = 0
        """Time of all jobs that are done."""

    def submit(self, job: Job) -> None:
        """Queue a job."""
        self._queue.append((self._clock.now_ns, job))
        self._start()

    def lose_all(self) -> None:
        """The node dies: its jobs end without a call."""
        self._generation += 1
        self._queue.clear()
        self._free = self._servers
        self._held = None

    def hold(self) -> None:
        """The process stands still: jobs end, but it does not see that, and submits none."""
        if self._held is None:
            self._held = []

    def release(self) -> None:
        """The process continues."""
        held, self._held = self._held, None
        for of in held or ():
            self._done(of)

    def _start(self) -> None:
        now_ns = self._clock.now_ns
        while self._free and self._queue:
            submitted_ns, job = self._queue.popleft()
            self._free -= 1
            service_ns = self._service_ns(job)
            self._counts.service_wait.add(now_ns - submitted_ns)
            self._counts.service.add(service_ns)
            self._begun(job)
            self._clock.call_at(now_ns + service_ns, self._done, (self._generation, service_ns, job))

    def _done(self, of: tuple[int, int, Job]) -> None:
        generation, service_ns, job = of
        if self._held is not None:
            self._held.append(of)
            return
        if generation == self._generation:
            self.busy_ns += service_ns
            self._free += 1
            self._ended(job)
            self._start()
