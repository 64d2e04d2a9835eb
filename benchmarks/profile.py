"""A sequence of HLT1 on the CPU back end, with the time of each kernel."""

import time
from collections.abc import Iterable
from pathlib import Path

from hltnode.processing.framework.backends.cpu import CpuBackend, CpuQueue
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, OfflineRunner
from hltnode.processing.lhcb.hlt1 import HLT1


class ProfiledSequence:
    """A sequence, by its name, with default constants and lines on a number of threads."""

    def __init__(self, name: str, geometry: Path | None, limits: BatchLimits, threads: int = 1) -> None:
        self.engine = HLT1.create_engine(
            CpuBackend(HLT1.kernels, threads=threads),
            HLT1.with_sequence(name).load_geometry(geometry),
            HLT1.load_trigger(None, name),
            limits,
        )
        self.runner = OfflineRunner(self.engine)

    def events_per_second(self, meps: Iterable[EncodedMep]) -> float:
        """By wall time."""
        begin = time.perf_counter()
        events = sum(batch.workspace.n_events for batch in self.runner.run(meps))
        return events / (time.perf_counter() - begin)

    def microseconds_per_kernel(self, meps: Iterable[EncodedMep]) -> dict[str, float]:
        """Thread time of each kernel per event."""
        queues = [workspace.queue for workspace in self.runner.workspaces]
        for queue in queues:
            assert isinstance(queue, CpuQueue)
            queue.profile = True
        events = sum(batch.workspace.n_events for batch in self.runner.run(meps))
        total: dict[str, float] = {}
        for queue in queues:
            assert isinstance(queue, CpuQueue)
            queue.profile = False
            for name, seconds in queue.take_profile().items():
                total[name] = total.get(name, 0.0) + seconds
        return {name: seconds / events * 1e6 for name, seconds in total.items()}
