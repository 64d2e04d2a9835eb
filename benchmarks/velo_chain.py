"""VELO chain on the CPU back end: events per second on the real events, by threads, and where the time goes."""

import time
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path

from benchmarks.measure import Result, alternating_medians
from hltnode.processing.framework.backends.cpu import CpuBackend, CpuQueue
from hltnode.processing.framework.event_files import read_events
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, OfflineRunner, encode_mep
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.hlt1 import HLT1, geometry_constants
from hltnode.processing.selection.trigger_config import TriggerConfig

LIMITS = BatchLimits(events=512, input_bytes=16 << 20)
REPEAT = 80
RUNS = 5


def real_events(shared: Path) -> EncodedMep:
    """The seven minimum-bias events, nine times over, as one MEP of retina clusters."""
    (sample,) = (shared / "data" / "lhcb-minbias-mdf").glob("*retina3*.mdf")
    return encode_mep(HLT1, list(read_events(sample)) * 9, encoding="retina")


class Chain:
    """The whole sequence on a number of threads."""

    def __init__(self, shared: Path, mep: EncodedMep, threads: int) -> None:
        geometry = VeloGeometry.load(shared / "data" / "lhcb-geometry")
        self.engine = HLT1.create_engine(
            CpuBackend(HLT1.kernels, threads=threads),
            geometry_constants(geometry),
            TriggerConfig.default(HLT1.menu),
            LIMITS,
        )
        self.runner = OfflineRunner(self.engine)
        self.mep = mep

    def events_per_second(self) -> float:
        begin = time.perf_counter()
        events = sum(batch.workspace.n_events for batch in self.runner.run(repeat(self.mep, REPEAT)))
        return events / (time.perf_counter() - begin)

    def microseconds_per_kernel(self) -> dict[str, float]:
        """Thread time of each kernel per event."""
        total: dict[str, float] = {}
        events = 0
        queues = [workspace.queue for workspace in self.runner.workspaces]
        for queue in queues:
            assert isinstance(queue, CpuQueue)
            queue.profile = True
        events = sum(batch.workspace.n_events for batch in self.runner.run(repeat(self.mep, REPEAT)))
        for queue in queues:
            assert isinstance(queue, CpuQueue)
            queue.profile = False
            for name, seconds in queue.take_profile().items():
                total[name] = total.get(name, 0.0) + seconds
        return {name: seconds / events * 1e6 for name, seconds in total.items()}


def run(shared: Path) -> Iterator[Result]:
    """Measure. One and two threads in turn, medians."""
    mep = real_events(shared)
    one, two = Chain(shared, mep, 1), Chain(shared, mep, 2)
    rate_one, rate_two = alternating_medians(one.events_per_second, two.events_per_second, RUNS)
    yield Result("VELO chain, 1 thread", rate_one, "events/s", "", None)
    yield Result("VELO chain, 2 threads", rate_two, "events/s", "1 thread, same run", rate_two / rate_one, 1.8)
    kernels = one.microseconds_per_kernel()
    whole = sum(kernels.values())
    for name, microseconds in sorted(kernels.items(), key=lambda item: -item[1]):
        yield Result(f"  {name}", microseconds, "us/event", "all kernels", microseconds / whole)
