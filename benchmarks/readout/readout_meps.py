"""MEPs of a readout with many sources: repeated real and simulated events."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.lhcb.occupancy import simulated
from benchmarks.lhcb.real_events import CHAIN, real_file
from hltnode.daemon.replay.mep_source import Packing, meps_of_files, meps_of_simulation
from hltnode.processing.framework.batch import MFP_ALIGNMENT
from hltnode.protocol.raw_data.raw_bank import RawBank

COLLISIONS = 7.6


@dataclass(frozen=True, slots=True)
class ReadoutMep:
    """The MFPs of a MEP as in a slot: places are i64[n, 3] of source id, offset and bytes."""

    name: str
    n_events: int
    data: NDArray[np.uint8]
    places: NDArray[np.int64]

    @property
    def n_sources(self) -> int:
        """Number of sources of the readout."""
        return len(self.places)


def real_mep(shared: Path, n_events: int) -> ReadoutMep:
    """A MEP of real events."""
    packing = Packing(events_per_mep=n_events, max_fragment_bytes=1 << 31, repeat=-(-n_events // 7))
    mep = next(iter(meps_of_files([real_file(shared)], CHAIN.readout, packing)))
    return _in_slot("real", n_events, mep.mfps)


def simulated_mep(n_events: int) -> ReadoutMep:
    """A MEP of simulated events, minimum bias."""
    events = simulated(COLLISIONS)

    def loop() -> Iterator[list[RawBank]]:
        return islice((banks for _ in range(n_events) for banks in events), n_events)

    packing = Packing(events_per_mep=n_events, max_fragment_bytes=1 << 31)
    mep = next(iter(meps_of_simulation(loop, CHAIN.readout, packing, n_events)))
    return _in_slot("simulated", n_events, mep.mfps)


def _in_slot(name: str, n_events: int, mfps: dict[int, memoryview]) -> ReadoutMep:
    sizes = {source: -(-len(mfp) // MFP_ALIGNMENT) * MFP_ALIGNMENT for source, mfp in mfps.items()}
    data = np.zeros(sum(sizes.values()), np.uint8)
    places, offset = [], 0
    for source, mfp in mfps.items():
        data[offset : offset + len(mfp)] = np.frombuffer(mfp, np.uint8)
        places.append((source, offset, len(mfp)))
        offset += sizes[source]
    return ReadoutMep(name, n_events, data, np.array(places, np.int64))
