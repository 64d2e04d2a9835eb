"""Every sequence of HLT1, and the chain of boards without detector code, on the CPU back end, against the VELO chain:
rates on the real events, and a profile.

A sequence with one thread, the same with two, and the VELO chain are measured in turn after a warm-up of each. The
reason: the clock of a processor and other work on the machine change within seconds. The first row shows the limit of
two threads: arithmetic without memory, about 2 times one thread on two cores, and 1.1 to 1.4 times on two hardware
threads of one core, which share its units.
"""

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.lhcb.real_events import CHAIN, geometry_folder, real_events
from benchmarks.measure import Result, Stopwatch, Throughput, compare, in_turn
from benchmarks.profile import ProfiledSequence
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.processing.raw.chain import CHAIN as RAW_CHAIN
from hltnode.processing.raw.offline.simulation import RawOptions, RawSample

LIMITS = BatchLimits(events=512, input_bytes=16 << 20)
COPIES = 9
REPEAT = 24
"""Number of MEPs of a run: three batches."""
TURNS = 7
HASHED_BLOCKS = 1000
VELO = "velo"
TARGETS = {"forward": 0.23, "forward_then_matching": 0.15}
"""Minimum rate of a sequence, relative to the VELO chain."""
THREADS_TARGET = 1.8
BOARDS, BOARD_BYTES, BOARD_EVENTS = 40, 100, 512


def run(shared: Path) -> Iterator[Result]:
    """Measure each sequence: medians over the turns."""
    events, geometry = real_events(shared), geometry_folder(shared)

    def meps_of(name: str) -> list[EncodedMep]:
        return [encode_mep(CHAIN.with_sequence(name), events * COPIES, encoding="retina")] * REPEAT

    plain = compare(*in_turn([partial(arithmetic, 1), partial(arithmetic, 2)], TURNS))
    yield Result("arithmetic alone, 2 threads", plain.second.per_second, "blocks/s", "1 thread, in turn", plain.ratio)
    velo = partial(ProfiledSequence(VELO, geometry, LIMITS).throughput, meps_of(VELO))
    for name in CHAIN.sequences:
        one, two = (ProfiledSequence(name, geometry, LIMITS, threads) for threads in (1, 2))
        yield from measured(name, one, two, meps_of(name), velo)
    yield from of_boards(velo)


def of_boards(velo: Callable[[], Throughput]) -> Iterator[Result]:
    """Rows of the chain `raw` with its default lines."""
    sample = RawSample(SampleRequest(seed=1), RawOptions(boards=BOARDS, mean_bytes=BOARD_BYTES))
    meps = [encode_mep(RAW_CHAIN, list(sample.events(BOARD_EVENTS)))] * REPEAT
    one, two = (ProfiledSequence(None, None, LIMITS, threads, chain=RAW_CHAIN) for threads in (1, 2))
    yield from measured(f"raw, {BOARDS} boards of {BOARD_BYTES} bytes", one, two, meps, velo)


def arithmetic(threads: int) -> Throughput:
    """Hash blocks that fit the caches of the threads."""
    watch = Stopwatch()
    with ThreadPoolExecutor(threads) as pool:
        n_hashed = sum(pool.map(_hash_blocks, [HASHED_BLOCKS] * threads))
    return watch.throughput(n_hashed)


def _hash_blocks(n: int) -> int:
    block = bytes(1 << 17)
    for _ in range(n):
        hashlib.blake2b(block)  # runs without the GIL
    return n


def measured(
    name: str,
    one: ProfiledSequence,
    two: ProfiledSequence,
    meps: list[EncodedMep],
    velo: Callable[[], Throughput],
) -> Iterator[Result]:
    """Rows of one sequence, with one and with two threads."""
    of_velo, of_one, of_two = in_turn([velo, partial(one.throughput, meps), partial(two.throughput, meps)], TURNS)
    threads = compare(of_one, of_two)
    against = compare(of_velo, of_one)
    rate, cpu, baseline = threads.first.per_second, threads.first.cpu_us, f"{VELO}, in turn"
    yield Result(f"{name}, 1 thread", rate, "events/s", baseline, against.ratio, TARGETS.get(name))
    yield Result("  processor time", cpu, "us/event", baseline, 1.0 / against.cpu_ratio)
    rate, cpu, baseline = threads.second.per_second, threads.second.cpu_us, "1 thread, in turn"
    yield Result(f"{name}, 2 threads", rate, "events/s", baseline, threads.ratio, THREADS_TARGET)
    yield Result("  processor time", cpu, "us/event", baseline, 1.0 / threads.cpu_ratio)
    kernels = one.microseconds_per_kernel(meps)
    whole = sum(kernels.values())
    for kernel, microseconds in sorted(kernels.items(), key=lambda item: -item[1]):
        yield Result(f"  {kernel}", microseconds, "us/event", "all kernels", microseconds / whole)
