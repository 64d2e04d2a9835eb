"""The fits of long tracks in simulated events, through the whole sequence: pulls, resolutions and ghosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import CompletedBatch, OfflineRunner, encode_meps
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.simulation.full_generator import FullSimulation
from hltnode.processing.lhcb.offline.simulation.generation.samples import Sample
from hltnode.processing.lhcb.offline.simulation.generation.sources import sample_source
from hltnode.processing.lhcb.offline.simulation.velo_generator import DEFAULT_NU
from hltnode.processing.lhcb.offline.validation.checker.categories import Stage
from hltnode.processing.lhcb.offline.validation.checker.matching import match_tracks
from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable
from hltnode.processing.lhcb.offline.validation.checker.reconstruction import reconstructed_batch, retained
from hltnode.processing.lhcb.offline.validation.checker.truth_check import read_truth
from hltnode.processing.lhcb.tracks.kalman.collections import (
    long_beam_state,
    long_end_state,
    long_fitted_qop,
    long_ghost_probability,
    long_qop_error,
)
from hltnode.processing.lhcb.tracks.long.collections import MAX_TRACKS_PER_EVENT, long_count
from hltnode.processing.offline.truth_faults import TruthFaults

pytestmark = pytest.mark.physics

N_EVENTS = 64
FITTED = (*long_beam_state.values(), *long_end_state.values(), long_fitted_qop, long_qop_error, long_ghost_probability)
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FoundTracks:
    """Long tracks of simulated events.

    columns: names without "long_tracks.". rows: tracks of long particles from near the beam, without electrons. p
    (MeV),
    origin: of these particles.
    """

    columns: Mapping[str, FloatArray]
    is_ghost: NDArray[np.bool_]
    rows: NDArray[np.int64]
    p: FloatArray
    origin: FloatArray

    def of(self, name: str) -> FloatArray:
        return self.columns[name][self.rows]


@pytest.fixture(scope="module")
def tracks() -> FoundTracks:
    detector = Detector.builtin()
    simulation = FullSimulation(detector, sample_source(Sample.BSPHIPHI, DEFAULT_NU, detector.velo.beamline))
    configuration = CHAIN.load_trigger(None, "forward_then_matching")
    chain = CHAIN.with_sequence(configuration.sequence)
    names = (*retained(chain.sequence), *(column.name for column in FITTED))
    engine = CHAIN.create_engine(
        create_backend("cpu", CHAIN.kernels, threads=1, device=0),
        chain.load_geometry(None),
        configuration,
        BatchLimits(events=N_EVENTS, input_bytes=16 << 20),
        retain=tuple(dict.fromkeys(names)),
    )
    (batch,) = OfflineRunner(engine).run(encode_meps(engine.chain, simulation.events(N_EVENTS, 77), 16, "auto"))
    found = _found(batch)
    engine.close()
    return found


def _found(batch: CompletedBatch) -> FoundTracks:
    workspace = batch.workspace
    reconstructed = reconstructed_batch(workspace)
    events = [banks for mep in batch.meps for banks in mep.events]
    faults = TruthFaults()
    truth = [
        None if cut else read_truth(banks, hits, faults)
        for banks, hits, cut in zip(events, reconstructed.hits, reconstructed.is_cut, strict=True)
    ]
    kept = np.array([it is not None for it in truth])
    particles = ParticleTable.of_events([it.particles for it in truth if it is not None])
    matches = match_tracks(reconstructed.tracks[Stage.LONG].of_kept_events(kept), particles)
    counts = workspace.fetch(long_count.name, workspace.n_events)
    used = kept[:, None] & (np.arange(MAX_TRACKS_PER_EVENT) < counts[:, None])
    columns: dict[str, Any] = {
        column.name.partition(".")[2]: workspace.fetch(column.name)
        .reshape(-1, MAX_TRACKS_PER_EVENT)[: workspace.n_events][used]
        .astype(np.float64)
        for column in FITTED
    }
    is_ghost = np.ones(int(used.sum()), dtype=bool)
    is_ghost[matches.track] = False
    wanted = particles.is_long & ~particles.is_electron & (np.hypot(*particles.origin[:, :2].T) < 1.0)
    chosen = wanted[matches.particle]
    of = matches.particle[chosen]
    return FoundTracks(columns, is_ghost, matches.track[chosen], particles.p[of], particles.origin[of])


def width(values: FloatArray) -> float:
    """Half of the central 68 %."""
    low, high = np.percentile(values, (15.865, 84.135))
    return float(high - low) / 2


def test_pulls_of_the_impact_parameter_are_one_at_every_momentum(tracks: FoundTracks) -> None:
    dz = tracks.origin[:, 2] - tracks.of("beam_z")
    for axis, (c00, c20, c22) in enumerate((("c00", "c20", "c22"), ("c11", "c31", "c33"))):
        name = "xy"[axis]
        variance = tracks.of(f"beam_{c00}") + 2 * dz * tracks.of(f"beam_{c20}") + dz**2 * tracks.of(f"beam_{c22}")
        residual = tracks.of(f"beam_{name}") + dz * tracks.of(f"beam_t{name}") - tracks.origin[:, axis]
        pulls = residual / np.sqrt(variance)
        for p_min, p_max in ((0.0, 5e3), (5e3, 20e3), (20e3, np.inf)):
            assert width(pulls[(tracks.p >= p_min) & (tracks.p < p_max)]) == pytest.approx(1.0, abs=0.12)


def test_opposite_charges_miss_their_origin_to_no_side(tracks: FoundTracks) -> None:
    dz = tracks.origin[:, 2] - tracks.of("beam_z")
    residual = tracks.of("beam_x") + dz * tracks.of("beam_tx") - tracks.origin[:, 0]
    charge = np.sign(tracks.of("fitted_qop"))
    sigma = np.sqrt(tracks.of("beam_c00") + 2 * dz * tracks.of("beam_c20") + dz**2 * tracks.of("beam_c22"))
    assert abs(np.median(charge * residual / sigma)) < 0.08


def test_the_momentum_is_within_five_per_mille_and_as_accurate_as_its_error_says(tracks: FoundTracks) -> None:
    size = np.abs(tracks.of("fitted_qop"))
    relative = 1.0 / size / tracks.p - 1.0
    pulls = (size - 1.0 / tracks.p) / tracks.of("qop_error")
    for p_min, p_max, worst in ((2e3, 5e3, 0.0045), (5e3, 20e3, 0.0045), (20e3, 1e5, 0.006)):
        inside = (tracks.p >= p_min) & (tracks.p < p_max)
        assert width(relative[inside]) < worst
        assert abs(np.median(relative[inside])) < 0.002
        assert width(pulls[inside]) == pytest.approx(1.0, abs=0.15)


def test_the_momentum_and_its_pull_are_unbiased(tracks: FoundTracks) -> None:
    size = np.abs(tracks.of("fitted_qop"))
    # The statistical error of the median is 0.01 %, that of the pull 0.02.
    assert len(size) > 2500
    assert abs(np.median(1.0 / size / tracks.p - 1.0)) < 0.0005
    assert abs(np.median((size - 1.0 / tracks.p) / tracks.of("qop_error"))) < 0.1


def test_the_ghost_probability_rejects_four_of_ten_ghosts_for_one_of_a_hundred_tracks(tracks: FoundTracks) -> None:
    probability = tracks.columns["ghost_probability"]
    limit = np.quantile(probability[tracks.rows], 0.99)
    ghosts = probability[tracks.is_ghost]
    assert len(ghosts) > 60
    assert np.mean(ghosts > limit) > 0.35
    # It is a probability: its sum is the number of ghosts.
    assert probability.sum() == pytest.approx(len(ghosts), rel=0.3)
