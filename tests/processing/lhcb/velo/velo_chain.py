"""Runs the VELO chain, from MFPs to consolidated tracks, and returns the output event by event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.cpu import CpuBackend
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.declaration import Algorithm, AlgorithmSequence
from hltnode.processing.framework.engine import Engine
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.velo.collections import MAX_HITS_PER_TRACK, N_MODULE_PAIRS
from hltnode.processing.lhcb.velo.tracking.extend_downstream import extend_downstream
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.raw_bank import RawBank


def algorithms_of(sequence: str) -> tuple[Algorithm, ...]:
    """The algorithms of a sequence that make VELO tracks."""
    names = {
        "fragment_offsets",
        "velo_estimate_input_size",
        "velo_cluster_limit",
        "velo_hit_offsets",
        "velo_decode_retina_clusters",
        "velo_masked_clustering",
        "velo_sparse_ccl",
        "velo_sort_by_phi",
        "velo_search_by_triplet",
        "velo_follow_tracks",
        "velo_kill_clones",
        "velo_filter_three_hit_tracks",
        "velo_consolidate_tracks",
    }
    return tuple(algorithm for algorithm in CHAIN.sequences[sequence].algorithms if algorithm.name in names)


ALGORITHMS = algorithms_of("velo")
UNCUT = TriggerConfig.from_toml(f"[sequence.velo_cluster_limit]\nmax_clusters = {2**32 - 1}", CHAIN.menu, "velo")
"""The default configuration without the global event cut."""


@dataclass(frozen=True, slots=True)
class VeloEvent:
    """Output of the chain for one event: hits in sorted order, tracks as indices of hits, event flags."""

    flags: int
    x: NDArray[np.float32]
    y: NDArray[np.float32]
    z: NDArray[np.float32]
    phi: NDArray[np.int16]
    ids: NDArray[np.uint32]
    module_pair_offset: NDArray[np.uint32]
    tracks: list[NDArray[np.uint16]]

    def hits(self) -> NDArray[np.float32]:
        """f32[n, 3]"""
        return np.stack([self.x, self.y, self.z], axis=1)

    def same_as(self, other: VeloEvent) -> bool:
        """Whether both events are equal bit by bit."""
        arrays = ("x", "y", "z", "phi", "ids", "module_pair_offset")
        return (
            self.flags == other.flags
            and all(getattr(self, name).tobytes() == getattr(other, name).tobytes() for name in arrays)
            and [track.tolist() for track in self.tracks] == [track.tolist() for track in other.tracks]
        )


FETCHED = (
    "velo_clusters.offset",
    "velo_tracks.hit_count",
    "velo_tracks.hits",
    "velo_hits.module_pair_offset",
    *(f"velo_hits.{name}" for name in ("x", "y", "z", "phi", "id")),
)


class VeloChain:
    """An engine with the VELO part of the sequence and one workspace; `trigger` replaces constants.

    common: run the common kernels, not their CPU forms. sequence: the sequence with this VELO part. extends: with the
    extension of tracks downstream, which comes last.
    """

    def __init__(
        self,
        geometry: VeloGeometry,
        limits: BatchLimits,
        target: str | None = None,
        trigger: TriggerConfig | None = None,
        *,
        common: bool = False,
        sequence: str = "velo",
        extends: bool = False,
    ) -> None:
        more = (extend_downstream,) if extends else ()
        algorithms = AlgorithmSequence((*algorithms_of(sequence), *more))
        chain = replace(CHAIN, sequence=algorithms, accepted=None, lines=None, counts={})
        if trigger is not None:
            chain = replace(chain, sequence=trigger.configure(chain.sequence))
        constants = {"velo_geometry": np.frombuffer(geometry.to_bytes(), dtype=np.uint8)}
        self.workspace: Workspace = Engine(
            CpuBackend(CHAIN.kernels, target=target, common=common), chain, constants, limits, retain=FETCHED
        ).create_workspace()

    def run(self, mep: EncodedMep, n_events: int | None = None) -> list[VeloEvent]:
        """Run one MEP as a batch."""
        workspace = self.workspace
        workspace.input_data[: mep.data.nbytes] = mep.data
        workspace.seal([MepInBatch(n_events or mep.n_events, mep.fragments)])
        workspace.submit()
        workspace.wait()
        return [self._event(event) for event in range(workspace.n_events)]

    def _event(self, event: int) -> VeloEvent:
        workspace = self.workspace
        first = int(workspace.fetch("velo_clusters.offset")[event])
        last = first + int(workspace.host_array("velo_clusters.count")[event])
        first_track = first // 2
        last_track = first_track + int(workspace.host_array("velo_tracks.count")[event])
        n_hits = workspace.fetch("velo_tracks.hit_count")[first_track:last_track]
        hits = workspace.fetch("velo_tracks.hits").reshape(-1, MAX_HITS_PER_TRACK)[first_track:last_track]
        offsets = workspace.fetch("velo_hits.module_pair_offset").reshape(-1, N_MODULE_PAIRS + 1)
        return VeloEvent(
            flags=int(workspace.host_array("events.flags")[event]),
            x=workspace.fetch("velo_hits.x")[first:last],
            y=workspace.fetch("velo_hits.y")[first:last],
            z=workspace.fetch("velo_hits.z")[first:last],
            phi=workspace.fetch("velo_hits.phi")[first:last],
            ids=workspace.fetch("velo_hits.id")[first:last],
            module_pair_offset=offsets[event],
            tracks=[track[:n] for track, n in zip(hits, n_hits, strict=True)],
        )


def limits_of(mep: EncodedMep) -> BatchLimits:
    """A batch with only this MEP, with room for the free places behind each event."""
    return BatchLimits(
        events=mep.n_events, meps=1, input_bytes=mep.data.nbytes + 64 * mep.n_events, rows=len(mep.fragments)
    )


def run_velo(
    mep: EncodedMep, geometry: VeloGeometry, target: str | None = None, *, sequence: str = "velo"
) -> list[VeloEvent]:
    """Run one MEP through the VELO chain."""
    return VeloChain(geometry, limits_of(mep), target, sequence=sequence).run(mep)


def real_events(shared: Path, encoding: str) -> list[list[RawBank]]:
    """The seven minimum-bias events: `encoding` is retina or superpixel."""
    pattern = {"retina": "*retina3*.mdf", "superpixel": "*noretina*.mdf"}[encoding]
    (path,) = (shared / "data" / "lhcb-minbias-mdf").glob(pattern)
    return [list(record.banks()) for record in iter_records(path.read_bytes())]


def shuffled(banks: Sequence[RawBank], seed: int) -> list[RawBank]:
    """The same banks with the words of each VELO bank of versions 2 and 3 in another order."""
    rng = np.random.default_rng(seed)
    result = []
    for bank in banks:
        if bank.type in (63, 73) and bank.version in (2, 3):
            words = np.frombuffer(bank.payload, dtype="<u4").copy()
            n = int(words[0])
            words[1 : 1 + n] = rng.permutation(words[1 : 1 + n])
            bank = RawBank(bank.type, bank.version, bank.source_id, memoryview(words.tobytes()))
        result.append(bank)
    return result
