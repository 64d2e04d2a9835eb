"""Long tracks as input of the kernels after the long tracking: made from truth, with reconstructed VELO tracks.

The VELO part of the sequence runs on events with truth. Each particle that is reconstructible as a long track and has a
reconstructed VELO track becomes a long track with its true momentum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.chain import CHAIN, geometry_constants
from hltnode.processing.lhcb.geometry.magnet import Magnet
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.geometry.velo_field import VeloField
from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.simulation.full_generator import FullSimulation
from hltnode.processing.lhcb.offline.simulation.generation.samples import Sample
from hltnode.processing.lhcb.offline.simulation.generation.sources import sample_source
from hltnode.processing.lhcb.offline.simulation.velo_generator import DEFAULT_NU
from hltnode.processing.lhcb.tracks.long.collections import MAX_TRACKS_PER_EVENT
from hltnode.processing.lhcb.velo.collections import MAX_HITS_PER_TRACK
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.truth import McParticle, McVertex, decode_particles, decode_vertices
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.raw_bank import RawBank

VELO_COLUMNS = (
    "velo_geometry",
    "velo_clusters.offset",
    "velo_tracks.count",
    "velo_tracks.hit_count",
    "velo_tracks.hits",
    "velo_hits.x",
    "velo_hits.y",
    "velo_hits.z",
    "velo_hits.id",
    *(f"velo_end.{name}" for name in ("x", "y", "tx", "ty", "c00", "c20", "c22")),
    "pvs.count",
    "pvs.vertex",
)
ORIENTATION = 3 << 26
MIN_SHARE = 0.7
"""Minimum fraction of the hits of a track that belong to its particle."""


@dataclass(frozen=True, slots=True)
class GivenTracks:
    """Columns of a batch up to the long tracks, and the truth: particles of the long tracks, collisions."""

    columns: Mapping[str, NDArray[Any]]
    limits: BatchLimits
    particles: Sequence[Sequence[McParticle]]
    vertices: Sequence[Sequence[McVertex]]

    @property
    def n_events(self) -> int:
        return len(self.particles)

    def velo_hits_of(self, event: int, track: int) -> NDArray[np.float64]:
        """[hit, (x, y, z)] of a long track in mm, from large to small z."""
        first = int(self.columns["velo_clusters.offset"][event])
        velo = first // 2 + int(self.columns["long_tracks.velo_track"][event * MAX_TRACKS_PER_EVENT + track])
        n = self.columns["velo_tracks.hit_count"][velo]
        indices = self.columns["velo_tracks.hits"].reshape(-1, MAX_HITS_PER_TRACK)[velo, :n].astype(np.int64)
        columns = [self.columns[f"velo_hits.{name}"][first + indices] for name in ("x", "y", "z")]
        return np.stack(columns, axis=1).astype(np.float64)


def given_tracks(events: Sequence[Sequence[RawBank]], geometry: VeloGeometry, field: VeloField) -> GivenTracks:
    """Long tracks of events with truth."""
    columns, limits = velo_columns(events, geometry)
    particles = [_decode_particles(event) for event in events]
    chosen = [_found_particles(columns, number, event) for number, event in enumerate(particles)]
    n = len(events)
    velo_track = np.zeros((n, MAX_TRACKS_PER_EVENT), np.uint16)
    qop = np.zeros((n, MAX_TRACKS_PER_EVENT), np.float32)
    muon = np.zeros((n, MAX_TRACKS_PER_EVENT), np.uint8)
    for event, found in enumerate(chosen):
        velo_track[event, : len(found)] = [track for track, _ in found]
        qop[event, : len(found)] = [particle.charge / particle.p for _, particle in found]
        muon[event, : len(found)] = [abs(particle.pid) == 13 for _, particle in found]
    columns |= {
        "velo_field": np.frombuffer(field.to_bytes(), np.float32),
        "long_tracks.count": np.array([len(found) for found in chosen], np.uint32),
        "long_tracks.velo_track": velo_track.ravel(),
        "long_tracks.qop": qop.ravel(),
        "long_tracks.fitted_qop": qop.ravel(),
        "long_tracks.is_muon": muon.ravel(),
    }
    collisions = [decode_vertices(next(b for b in event if b.type == LhcbBankType.MC_VERTICES)) for event in events]
    return GivenTracks(columns, limits, [[particle for _, particle in found] for found in chosen], collisions)


@cache
def real_tracks(shared: Path) -> GivenTracks:
    """Long tracks of the seven real events."""
    (path,) = (shared / "data/lhcb-minbias-mdf").glob("*retina3*.mdf")
    events = [list(record.banks()) for record in iter_records(path.read_bytes())]
    geometry = shared / "data/lhcb-geometry"
    return given_tracks(events, VeloGeometry.load(geometry), VeloField.of(Magnet.load(geometry)))


@cache
def simulated_tracks(sample: Sample, n_events: int, seed: int = 1) -> GivenTracks:
    """Long tracks of simulated events."""
    detector = Detector.builtin()
    simulation = FullSimulation(detector, sample_source(sample, DEFAULT_NU, detector.velo.beamline))
    return given_tracks(list(simulation.events(n_events, seed)), detector.velo, VeloField.of(detector.magnet))


def velo_columns(
    events: Sequence[Sequence[RawBank]], geometry: VeloGeometry
) -> tuple[dict[str, NDArray[Any]], BatchLimits]:
    """Columns of the VELO chain for events, and its limits."""
    mep = encode_mep(CHAIN, events, encoding="retina")
    n = mep.n_events
    limits = BatchLimits(events=n, meps=1, input_bytes=-(-mep.data.nbytes // 8) * 8, rows=len(mep.fragments))
    backend = create_backend("cpu", CHAIN.kernels)
    engine = CHAIN.create_engine(
        backend, geometry_constants(geometry), CHAIN.load_trigger(None, "velo"), limits, retain=VELO_COLUMNS
    )
    workspace = engine.create_workspace()
    workspace.input_data[: mep.data.nbytes] = mep.data
    workspace.seal([MepInBatch(n, mep.fragments)])
    workspace.submit()
    workspace.wait()
    columns = {name: workspace.fetch(name) for name in VELO_COLUMNS}
    engine.close()
    return columns, limits


def _decode_particles(event: Iterable[RawBank]) -> list[McParticle]:
    return decode_particles([bank for bank in event if bank.type == LhcbBankType.MC_TRACKS])


def _found_particles(
    columns: Mapping[str, NDArray[Any]], event: int, particles: Sequence[McParticle]
) -> list[tuple[int, McParticle]]:
    """VELO tracks of particles that are reconstructible as long tracks, one per particle, in ascending order of the
    track."""
    owner = {
        value & ~ORIENTATION: particle
        for particle in particles
        if particle.is_long and particle.charge != 0.0
        for value in particle.velo_ids
    }
    first = int(columns["velo_clusters.offset"][event])
    found: list[tuple[int, McParticle]] = []
    keys: set[int] = set()
    for track in range(int(columns["velo_tracks.count"][event])):
        place = first // 2 + track
        n = int(columns["velo_tracks.hit_count"][place])
        indices = columns["velo_tracks.hits"].reshape(-1, MAX_HITS_PER_TRACK)[place, :n].astype(np.int64)
        owners = [owner.get(int(value) & ~ORIENTATION) for value in columns["velo_hits.id"][first + indices]]
        for particle in {p.key: p for p in owners if p is not None}.values():
            share = sum(other is particle for other in owners) / n
            if share >= MIN_SHARE and particle.key not in keys:
                keys.add(particle.key)
                found.append((track, particle))
    return found
