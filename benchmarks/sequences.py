"""Every sequence of HLT1 on the CPU back end: events per second on the real events, by threads, and where time goes."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.measure import Result, alternating_medians
from benchmarks.profile import ProfiledSequence
from hltnode.processing.framework.event_files import read_events
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.hlt1 import HLT1
from hltnode.protocol.raw_data.raw_bank import RawBank

LIMITS = BatchLimits(events=512, input_bytes=16 << 20)
COPIES = 9
REPEAT = 40
RUNS = 5


def real_events(shared: Path) -> list[list[RawBank]]:
    """The seven minimum-bias events, with retina clusters."""
    (sample,) = (shared / "data" / "lhcb-minbias-mdf").glob("*retina3*.mdf")
    return list(read_events(sample))


def run(shared: Path) -> Iterator[Result]:
    """Measure each sequence: one and two threads in turn, medians."""
    events, geometry = real_events(shared), shared / "data" / "lhcb-geometry"
    velo_rate: float | None = None
    for name in HLT1.sequences:
        mep = encode_mep(HLT1.with_sequence(name), events * COPIES, encoding="retina")
        one, two = (ProfiledSequence(name, geometry, LIMITS, threads) for threads in (1, 2))
        many = [mep] * REPEAT
        rate_one, rate_two = alternating_medians(
            partial(one.events_per_second, many), partial(two.events_per_second, many), RUNS
        )
        velo_rate = rate_one if velo_rate is None else velo_rate
        yield Result(f"{name}, 1 thread", rate_one, "events/s", "velo, same run", rate_one / velo_rate)
        yield Result(f"{name}, 2 threads", rate_two, "events/s", "1 thread, same run", rate_two / rate_one, 1.8)
        kernels = one.microseconds_per_kernel(many)
        whole = sum(kernels.values())
        for kernel, microseconds in sorted(kernels.items(), key=lambda item: -item[1]):
            yield Result(f"  {kernel}", microseconds, "us/event", "all kernels", microseconds / whole)
