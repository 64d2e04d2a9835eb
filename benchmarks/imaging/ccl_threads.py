"""The sequence `large_images` of the chain `ccl` with two threads against one: images of 8192 x 8192 pixels of 1 bit,
one image at a time, by wall clock.

Two independent processes with one thread each show what two processors of the machine give at most: they share its
memory, and other work takes their time as well.
"""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from multiprocessing.connection import Connection

from benchmarks.measure import Result, Throughput, compare, in_turn
from benchmarks.profile import ProfiledSequence
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.imaging.chain import CHAIN
from hltnode.processing.imaging.offline.simulation.shapes import random_cells
from hltnode.processing.imaging.strips import encode_image

SIDE = 8192
DENSITIES = (0.2, 0.5, 0.8)
LIMITS = BatchLimits(events=1, input_bytes=9 << 20)
TURNS = 5
TARGET = 1.8
"""Least speed of two threads relative to one."""


def run(granularities: Sequence[int]) -> Iterator[Result]:
    """For each granularity: two threads relative to one, and two processes relative to one."""
    one, two = (ProfiledSequence("large_images", None, LIMITS, threads=n, chain=CHAIN) for n in (1, 2))
    for granularity in granularities:
        meps = _meps(granularity)
        with _Processes(granularity) as processes:
            measures: list[Callable[[], Throughput]] = [
                *(partial(sequence.throughput, meps) for sequence in (one, two)),
                processes.throughput,
            ]
            of_one, of_two, of_processes = in_turn(measures, TURNS)
        against, bound = compare(of_one, of_two), compare(of_one, of_processes)
        name = f"g = {granularity}, large_images, two threads"
        yield Result(name, against.second.per_second, "images/s", "one thread", against.ratio, TARGET)
        yield Result("  two processes", bound.second.per_second, "images/s", "one thread", bound.ratio)
        yield Result("  processor time", against.second.cpu_us, "us/image", "one thread", against.cpu_ratio)


def _meps(granularity: int) -> list[EncodedMep]:
    """An image of each density."""
    images = (random_cells(SIDE, SIDE, density, granularity, (granularity,)) for density in DENSITIES)
    return [encode_mep(CHAIN, [encode_image(image)]) for image in images]


class _Processes:
    """Two processes with one thread each, which begin at the same time."""

    def __init__(self, granularity: int) -> None:
        context = multiprocessing.get_context("spawn")
        pipes = [context.Pipe() for _ in range(2)]
        self._pipes = [own for own, _ in pipes]
        self._started = [context.Process(target=_serve, args=(theirs, granularity)) for _, theirs in pipes]
        for process in self._started:
            process.start()
        for pipe in self._pipes:
            pipe.recv()

    def __enter__(self) -> "_Processes":
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in self._pipes:
            pipe.send(False)
        for process in self._started:
            process.join()

    def throughput(self) -> Throughput:
        """The images per second of both together, and the processor time of one image."""
        for pipe in self._pipes:
            pipe.send(True)
        found: list[Throughput] = [pipe.recv() for pipe in self._pipes]
        return Throughput(sum(each.per_second for each in found), sum(each.cpu_us for each in found) / len(found))


def _serve(pipe: Connection, granularity: int) -> None:
    """Measure one thread whenever the other end says so."""
    sequence, meps = ProfiledSequence("large_images", None, LIMITS, chain=CHAIN), _meps(granularity)
    pipe.send(None)
    while pipe.recv():
        pipe.send(sequence.throughput(meps))
