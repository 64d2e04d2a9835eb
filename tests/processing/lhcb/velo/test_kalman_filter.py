"""velo_kalman_filter agrees with a textbook filter in double precision, and with the spot values of the real events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.velo import BeamLine
from hltnode.processing.lhcb.velo.tracking.kalman_filter import kalman_filter
from tests.processing.framework.kernel_runner import Launch, on_cpu, run_algorithms, with_block_size
from tests.processing.lhcb.velo.kalman_filter_oracle import fit_track
from tests.processing.lhcb.velo.track_sample import TrackSample, made_up_tracks, truth_tracks

TILTED = BeamLine(0.05, -0.1, 2e-3, -1e-3)


def fitted(sample: TrackSample, launch: Launch | None = None) -> dict[str, NDArray[Any]]:
    return run_algorithms([kalman_filter], sample.buffers(), len(sample.events), sample.limits, launch)


@pytest.fixture(scope="module")
def sample() -> TrackSample:
    rng = np.random.default_rng(20)
    vertices = [(0.03, -0.02, z) for z in (-60.0, 3.0, 95.0)]
    events = [made_up_tracks(rng, vertices[: 1 + i % 3], 5 + 11 * i) for i in range(6)]
    return TrackSample([*events[:3], [], *events[3:]], beamline=TILTED)


def test_states_equal_those_of_a_textbook_filter(sample: TrackSample) -> None:
    result = fitted(sample)
    for number, event in enumerate(sample.events):
        for i, track in enumerate(event):
            expected = fit_track(track, sample.beamline)
            place = sample.first_track(number) + i
            assert bool(result["velo_tracks.backward"][place]) == expected.backward
            for name, state in (("velo_beamline", expected.beamline), ("velo_end", expected.end)):
                sigma_x, sigma_tx = np.sqrt(np.diag(state.covariance))
                # Rounding must stay far below the errors of the measurement.
                assert result[f"{name}.x"][place] == pytest.approx(state.x, abs=0.01 * sigma_x)
                assert result[f"{name}.y"][place] == pytest.approx(state.y, abs=0.01 * sigma_x)
                assert result[f"{name}.tx"][place] == pytest.approx(state.tx, abs=0.01 * sigma_tx)
                assert result[f"{name}.ty"][place] == pytest.approx(state.ty, abs=0.01 * sigma_tx)
                assert result[f"{name}.c00"][place] == pytest.approx(state.covariance[0, 0], rel=1e-3)
                assert result[f"{name}.c20"][place] == pytest.approx(
                    state.covariance[1, 0], abs=1e-3 * sigma_x * sigma_tx
                )
                assert result[f"{name}.c22"][place] == pytest.approx(state.covariance[1, 1], rel=1e-4)
            slope = np.hypot(expected.beamline.tx, expected.beamline.ty)
            sigma_z = np.sqrt(expected.beamline.covariance[0, 0]) / slope
            assert result["velo_beamline.z"][place] == pytest.approx(expected.beamline.z, abs=0.01 * sigma_z)


def test_states_lie_where_the_tracks_are_nearest_to_the_beam_line(sample: TrackSample) -> None:
    result = fitted(sample)
    for number, event in enumerate(sample.events):
        tracks = slice(sample.first_track(number), sample.first_track(number) + len(event))
        x, y, z, tx, ty = (
            result[f"velo_beamline.{name}"][tracks].astype(float) for name in ("x", "y", "z", "tx", "ty")
        )
        beam = TILTED.at(z)
        offset = np.stack([x, y], axis=1) - beam
        divergence = np.stack([tx - TILTED.slope_x, ty - TILTED.slope_y], axis=1)
        assert np.abs(np.sum(offset * divergence, axis=1)).max(initial=0.0) < 1e-5


def test_tracks_that_fly_backward_are_recognised() -> None:
    rng = np.random.default_rng(3)
    tracks = made_up_tracks(rng, [(0.0, 0.0, 20.0)], 60)
    backward = [bool(np.mean(track[:, 2]) < 20.0) for track in tracks]
    assert 5 < sum(backward) < len(backward) - 5
    sample = TrackSample([tracks])
    assert fitted(sample)["velo_tracks.backward"][: len(tracks)].tolist() == backward


def test_pulls_of_straight_tracks_are_at_most_one() -> None:
    rng = np.random.default_rng(4)
    vertex = (0.1, -0.05, 12.0)
    tracks = made_up_tracks(rng, [vertex], 800)
    result = fitted(TrackSample([tracks]))
    n = len(tracks)
    dz = vertex[2] - result["velo_beamline.z"][:n]
    residual = result["velo_beamline.x"][:n] + dz * result["velo_beamline.tx"][:n] - vertex[0]
    pull = np.std(residual / np.sqrt(result["velo_beamline.c00"][:n]))
    assert 0.5 < pull < 1.05  # the noise includes scattering, but these tracks do not scatter


@pytest.mark.parametrize("block_size", [1, 32, 48, 256])
@pytest.mark.parametrize("backward", [False, True])
def test_every_block_size_gives_the_same_bits(sample: TrackSample, block_size: int, backward: bool) -> None:
    reference = fitted(sample)
    result = fitted(sample, with_block_size(block_size, backward=backward))
    assert [name for name in reference if reference[name].tobytes() != result[name].tobytes()] == []


@pytest.mark.parametrize("target", KernelLibrary(CHAIN.kernels).targets)
def test_every_instruction_set_gives_the_same_bits(sample: TrackSample, target: str) -> None:
    reference, result = fitted(sample, on_cpu("baseline")), fitted(sample, on_cpu(target))
    assert [name for name in reference if reference[name].tobytes() != result[name].tobytes()] == []


@pytest.mark.parametrize("target", KernelLibrary(CHAIN.kernels).targets)
def test_the_form_for_the_cpu_gives_the_bits_of_the_common_kernel(sample: TrackSample, target: str) -> None:
    # The second sample has more tracks than one sort step.
    crowd = TrackSample([made_up_tracks(np.random.default_rng(21), [(0.0, 0.0, 3.0)], 1300)])
    assert sum(len(event) for event in crowd.events) > 1024
    for events in (sample, crowd):
        reference, result = fitted(events, on_cpu(target, common=True)), fitted(events, on_cpu(target))
        assert [name for name in reference if reference[name].tobytes() != result[name].tobytes()] == []


@pytest.mark.physics
@pytest.mark.parametrize(
    ("first_channel", "n_hits", "x", "y", "tx", "ty"),
    [
        (0x325585A, 14, -9.68606, -31.82591, -0.012381, -0.039918),
        (0x321FC57, 7, -3.70645, -17.50813, -0.004562, -0.023094),
    ],
)
def test_the_tracks_of_event_6002_have_their_spot_values(
    shared: Path, first_channel: int, n_hits: int, x: float, y: float, tx: float, ty: float
) -> None:
    # docs/physics/detector.md, spot values.
    sample, _, channels = truth_tracks(shared)
    result = fitted(sample)
    (index,) = (i for i, ids in enumerate(channels[1]) if ids[0] == first_channel and len(ids) == n_hits)
    place = sample.first_track(1) + index
    assert result["velo_end.x"][place] == pytest.approx(x, abs=2e-5)
    assert result["velo_end.y"][place] == pytest.approx(y, abs=2e-5)
    assert result["velo_end.tx"][place] == pytest.approx(tx, abs=1e-6)
    assert result["velo_end.ty"][place] == pytest.approx(ty, abs=1e-6)
    if n_hits == 14:
        assert result["velo_end.c00"][place] == pytest.approx(2.188e-4, rel=1e-3)
        assert result["velo_end.c20"][place] == pytest.approx(2.4994e-6, rel=1e-3)
        assert result["velo_end.c22"][place] == pytest.approx(4.4523e-8, rel=1e-3)
