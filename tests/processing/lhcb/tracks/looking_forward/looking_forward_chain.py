"""Runs VELO, UT, SciFi and Looking Forward, from MFPs to long tracks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from numpy.typing import NDArray

from hltnode.processing.framework.chain import Chain
from hltnode.processing.framework.declaration import Algorithm, AlgorithmSequence
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.raw_data.global_event_cut import global_event_cut
from hltnode.processing.lhcb.scifi.collections import scifi_count, scifi_types
from hltnode.processing.lhcb.tracks.forward.prepare_candidates import prepare_candidates
from hltnode.processing.lhcb.tracks.long.collections import long_count, long_types
from hltnode.processing.lhcb.tracks.long.parameters import parameter_types
from hltnode.processing.lhcb.tracks.looking_forward.collections import looking_forward_types
from hltnode.processing.lhcb.tracks.looking_forward.complete_tracks import complete_tracks
from hltnode.processing.lhcb.tracks.looking_forward.find_x_tracks import find_x_tracks
from hltnode.processing.lhcb.ut.collections import MAX_TRACKS_PER_EVENT, ut_types
from hltnode.protocol.lhcb.subdetectors import SubDetector
from tests.processing.lhcb.scifi.scifi_chain import SCIFI_ALGORITHMS
from tests.processing.lhcb.tracks.long.forward_chain import ForwardChain, ForwardEvent
from tests.processing.lhcb.ut.ut_chain import ut_chain

SELECT = next(it for it in CHAIN.sequences["looking_forward"].algorithms if it.name == "forward_select_tracks")
ALGORITHMS = (prepare_candidates, find_x_tracks, complete_tracks, SELECT)


def chain_of(*algorithms: Algorithm) -> Chain:
    """A chain with these algorithms behind the SciFi."""
    before = ut_chain()
    fragments, *velo_and_ut = before.sequence
    return Chain(
        name="looking_forward_chain",
        sequence=AlgorithmSequence((fragments, global_event_cut, *velo_and_ut, *SCIFI_ALGORITHMS, *algorithms)),
        kernels=CHAIN.kernels,
        source=CHAIN.source,
        readout=before.readout,
        subdetectors=before.subdetectors | {SubDetector.SCIFI_A, SubDetector.SCIFI_C},
        counts={"long_tracks": long_count, "scifi_hits": scifi_count},
        types=(*before.types, ut_types, scifi_types, long_types, parameter_types, looking_forward_types),
    )


@cache
def looking_forward_chain() -> Chain:
    """The chain with the kernels of LHCb."""
    return chain_of(*ALGORITHMS)


@dataclass(frozen=True, slots=True)
class LookingForwardEvent:
    """Output of the chain for one event; of each VELO-UT track the sets of x hits and the number of chi2."""

    event: ForwardEvent
    x_hit_count: NDArray[Any]
    x_hits: NDArray[Any]
    n_chi2: NDArray[Any]


def run(
    mep: EncodedMep, constants: dict[str, NDArray[Any]], limits: BatchLimits, chain: Chain | None = None
) -> list[LookingForwardEvent]:
    """Run one MEP as a batch."""
    runner = ForwardChain(constants, limits, looking_forward_chain() if chain is None else chain)
    events = runner.run(mep)
    fetch = runner.workspace.fetch
    made = []
    for number, event in enumerate(events):
        begin = number * MAX_TRACKS_PER_EVENT
        of = slice(begin, begin + len(event.ut.tracks["velo_track"]))
        made.append(
            LookingForwardEvent(
                event,
                fetch("ut_tracks.x_hit_count").reshape(-1, 2)[of].copy(),
                fetch("ut_tracks.x_hits").reshape(-1, 2, 6)[of].copy(),
                fetch("ut_tracks.n_triplet_chi2")[of].copy(),
            )
        )
    return made
