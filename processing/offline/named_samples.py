"""Simulated samples that are made once, in the user's cache, and those that a chain offers by name."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hltnode.processing.framework.near_names import near_names
from hltnode.processing.offline.chain_tools import SampleRequest, SimulatedSample, Simulation
from hltnode.processing.offline.sample_cache import SampleCache, user_cache

ShowProgress = Callable[[str, int | None], AbstractContextManager[Callable[[int], None]]]
"""Shows the progress of a task, with its title and number of events; the function that it yields adds events."""


@dataclass(frozen=True, slots=True)
class CachedSample:
    """A sample of the cache: its file, number of events, and whether it had to be simulated."""

    path: Path
    events: int
    made: bool


def cached_sample(sample: SimulatedSample, n: int, jobs: int, progress: ShowProgress) -> CachedSample:
    """The first n events of a sample, simulated by `jobs` processes if the cache lacks them.

    Raises ValueError as the sample does, and for a file that cannot be written.
    """
    cache = SampleCache(user_cache())
    path = cache.path(sample.name, {"events": n, **sample.identity})
    if cache.is_complete(path):
        return CachedSample(path, n, made=False)
    with closing(sample.blocks(n, jobs)) as made, progress(f"simulating {sample.name}", n) as add:
        cache.write(path, counted(made, add))
    return CachedSample(path, n, made=True)


def named_sample(
    simulation: Simulation[Any], name: str, geometry: Path | None, jobs: int, progress: ShowProgress
) -> CachedSample:
    """The sample of this name of a chain. Raises ValueError for a name that the chain does not have, and as above."""
    known = simulation.named_samples
    if name not in known:
        names = near_names(name, known) or known
        raise ValueError(f"no sample {name!r}; the chain has {', '.join(names)}")
    named = known[name]
    sample = simulation.sample(SampleRequest(seed=1, geometry=geometry), simulation.options(**named.options))
    return cached_sample(sample, named.events, jobs, progress)


def counted(blocks: Iterable[tuple[int, bytes]], add: Callable[[int], None]) -> Iterator[bytes]:
    """The bytes of blocks of events; the events of each are added when it is written."""
    for size, block in blocks:
        yield block
        add(size)
