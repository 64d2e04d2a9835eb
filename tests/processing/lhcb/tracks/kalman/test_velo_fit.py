"""The VELO fit of long tracks and their impact parameters, compared with textbook filters in double precision and
truth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.velo import BeamLine
from hltnode.processing.lhcb.offline.simulation.generation.samples import Sample
from hltnode.processing.lhcb.primary_vertices.collections import MAX_PVS
from hltnode.processing.lhcb.tracks.kalman.collections import long_beam_state
from hltnode.processing.lhcb.tracks.kalman.velo_fit import velo_fit
from hltnode.processing.lhcb.tracks.long.collections import MAX_TRACKS_PER_EVENT
from hltnode.processing.lhcb.velo.collections import NO_PV, VELO_GEOMETRY
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms
from tests.processing.lhcb.fit_chain import KALMAN, run
from tests.processing.lhcb.given_columns import GivenTracks, real_tracks, simulated_tracks
from tests.processing.lhcb.tracks.kalman.toy_tracks import FIELD, ToyEvents, tracks_from
from tests.processing.lhcb.tracks.kalman.velo_fit_oracle import Field, fit_long_track, ip_chi2_of

Columns = dict[str, NDArray[Any]]


def fitted(events: ToyEvents, block_size: int | None = None, *, backward: bool = False) -> Columns:
    return run(
        KALMAN, events.columns(), len(events.tracks), events.sample.limits, block_size, backward=backward, fill=0xA5
    )


def fitted_given(given: GivenTracks) -> Columns:
    return run(KALMAN, given.columns, given.n_events, given.limits)


def state(columns: Columns, event: int, track: int) -> dict[str, float]:
    place = event * MAX_TRACKS_PER_EVENT + track
    return {name: float(columns[f"long_tracks.beam_{name}"][place]) for name in long_beam_state}


@pytest.fixture(scope="module")
def toys() -> ToyEvents:
    rng = np.random.default_rng(11)
    pvs = [[(0.05, -0.02, 30.0), (0.0, 0.04, -60.0)], [(0.1, 0.0, 0.0)], [], [(0.0, 0.0, 80.0)]]
    tracks = [tracks_from(rng, (0.05, -0.02, 30.0), 40), [], tracks_from(rng, (0.0, 0.0, 0.0), 7), []]
    tracks[3] = tracks_from(rng, (0.0, 0.0, 80.0), 33)
    return ToyEvents(tracks, pvs)


@pytest.fixture(scope="module")
def tilted(toys: ToyEvents) -> ToyEvents:
    """The same tracks, and a beam line that is off and has a slope."""
    return replace(toys, beamline=BeamLine(0.3, -0.2, 2e-3, -1e-3))


def assert_equals_oracle(
    columns: Columns, event: int, track: int, hits: NDArray[np.float64], qop: float, field: Field
) -> None:
    geometry = columns["velo_geometry"].view(VELO_GEOMETRY.dtype)[0]
    beamline = BeamLine(*(float(geometry[f"beamline_{name}"]) for name in ("x", "y", "slope_x", "slope_y")))
    expected = fit_long_track(hits, qop, beamline, field)
    found = state(columns, event, track)
    sigma = np.sqrt(expected.covariances[:, 0, 0])
    sigma_slope = np.sqrt(expected.covariances[:, 1, 1])
    # Rounding must stay far below the errors of the measurement.
    assert [found["x"], found["y"]] == pytest.approx(expected.position, abs=1e-3 * float(sigma.min()))
    assert found["tx"] == pytest.approx(expected.slopes[0], abs=1e-3 * sigma_slope[0])
    assert found["ty"] == pytest.approx(expected.slopes[1], abs=1e-3 * sigma_slope[1])
    assert found["z"] == pytest.approx(expected.z, abs=1e-3 * sigma[0] / np.hypot(*expected.slopes))
    for names, covariance in zip((("c00", "c20", "c22"), ("c11", "c31", "c33")), expected.covariances, strict=True):
        assert found[names[0]] == pytest.approx(covariance[0, 0], rel=1e-4)
        assert found[names[1]] == pytest.approx(
            covariance[1, 0], abs=1e-4 * np.sqrt(covariance[0, 0] * covariance[1, 1])
        )
        assert found[names[2]] == pytest.approx(covariance[1, 1], rel=1e-5)
    assert found["qop"] == np.float32(qop)
    chi2 = columns["long_tracks.chi2"][event * MAX_TRACKS_PER_EVENT + track]
    assert chi2 == pytest.approx(expected.chi2, rel=1e-3, abs=1e-3)


def test_states_equal_those_of_a_textbook_filter(toys: ToyEvents) -> None:
    assert_all_equal_oracle(toys, fitted(toys))


@pytest.mark.parametrize("common", [False, True])
@pytest.mark.parametrize("target", KernelLibrary(CHAIN.kernels).targets)
def test_every_instruction_set_finds_the_closest_approach_to_a_beam_line_with_a_slope(
    tilted: ToyEvents, target: str, common: bool
) -> None:
    launch = on_cpu(target, common=common)
    columns = run_algorithms([velo_fit], tilted.columns(), len(tilted.tracks), tilted.sample.limits, launch)
    assert columns["velo_geometry"]["beamline_slope_x"] == np.float32(tilted.beamline.slope_x)
    assert_all_equal_oracle(tilted, columns)


def assert_all_equal_oracle(toys: ToyEvents, columns: Columns) -> None:
    for event, tracks in enumerate(toys.tracks):
        for i, track in enumerate(tracks):
            hits = track.hits.astype(np.float32).astype(np.float64)
            assert_equals_oracle(columns, event, i, hits, float(np.float32(track.qop)), FIELD)


@pytest.mark.physics
def test_states_of_the_real_events_equal_those_of_a_textbook_filter(shared: Path) -> None:
    given = real_tracks(shared)
    columns = fitted_given(given)
    field = Field(*map(float, given.columns["velo_field"]))
    for event, particles in enumerate(given.particles):
        for track in range(len(particles)):
            qop = float(given.columns["long_tracks.fitted_qop"][event * MAX_TRACKS_PER_EVENT + track])
            assert_equals_oracle(columns, event, track, given.velo_hits_of(event, track), qop, field)


def assert_impact_parameters_equal_oracle(columns: Columns, n_tracks: list[int]) -> None:
    for event, n in enumerate(n_tracks):
        pvs = columns["pvs.vertex"][event * MAX_PVS :][: int(columns["pvs.count"][event])]
        for track in range(n):
            place = event * MAX_TRACKS_PER_EVENT + track
            found = [columns[f"long_tracks.{name}"][place] for name in ("ip", "ip_chi2", "pv")]
            if len(pvs) == 0:
                assert found == [0.0, 0.0, NO_PV]
                continue
            expected = [ip_chi2_of(state(columns, event, track), pv) for pv in pvs]
            nearest = int(np.argmin([chi2 for _, chi2 in expected]))
            assert found[2] == nearest
            assert found[0] == pytest.approx(expected[nearest][0], rel=1e-3, abs=1e-4)
            assert found[1] == pytest.approx(expected[nearest][1], rel=2e-3, abs=2e-2)


def test_the_primary_vertex_is_the_one_with_the_smallest_ip_chi2(toys: ToyEvents) -> None:
    assert_impact_parameters_equal_oracle(fitted(toys), [len(tracks) for tracks in toys.tracks])


@pytest.mark.physics
def test_impact_parameters_of_the_real_events_equal_the_oracle(shared: Path) -> None:
    given = real_tracks(shared)
    assert_impact_parameters_equal_oracle(fitted_given(given), [len(particles) for particles in given.particles])


@pytest.mark.parametrize("block_size", [1, 32, 64, 100, 256])
@pytest.mark.parametrize("backward", [False, True])
def test_every_block_size_gives_the_same_bits(toys: ToyEvents, block_size: int, backward: bool) -> None:
    reference, result = fitted(toys), fitted(toys, block_size, backward=backward)
    assert [name for name in reference if reference[name].tobytes() != result[name].tobytes()] == []


def test_pulls_of_tracks_that_scatter_as_assumed_are_one() -> None:
    rng = np.random.default_rng(5)
    vertex = (0.1, -0.05, 12.0)
    toys = ToyEvents([tracks_from(rng, vertex, 800) for _ in range(4)], [[vertex]] * 4)
    columns = fitted(toys)
    pulls = np.array([_pulls(state(columns, event, i), vertex) for event in range(4) for i in range(800)])
    assert np.std(pulls, axis=0) == pytest.approx([1.0, 1.0], abs=0.04)
    assert np.mean(pulls, axis=0) == pytest.approx([0.0, 0.0], abs=0.06)
    chi2 = columns["long_tracks.chi2"].reshape(-1, MAX_TRACKS_PER_EVENT)[:4, :800]
    assert np.mean(chi2) == pytest.approx(1.0, abs=0.04)


def _pulls(found: dict[str, float], point: tuple[float, float, float]) -> tuple[float, float]:
    dz = point[2] - found["z"]
    variance_x = found["c00"] + 2 * dz * found["c20"] + dz**2 * found["c22"]
    variance_y = found["c11"] + 2 * dz * found["c31"] + dz**2 * found["c33"]
    return (
        (found["x"] + dz * found["tx"] - point[0]) / np.sqrt(variance_x),
        (found["y"] + dz * found["ty"] - point[1]) / np.sqrt(variance_y),
    )


def _width(values: NDArray[np.float64]) -> float:
    """Half of the central 68 per cent."""
    return float(np.percentile(np.abs(values), 68.27))


def pulls_of(given: GivenTracks, columns: Columns) -> NDArray[np.float64]:
    """[track][x, y, charge] of particles except electrons, at their true origin."""
    return np.array(
        [
            (*_pulls(state(columns, event, i), (p.vertex_x, p.vertex_y, p.vertex_z)), p.charge)
            for event, particles in enumerate(given.particles)
            for i, p in enumerate(particles)
            if abs(p.pid) != 11
        ]
    )


@pytest.mark.physics
def test_pulls_of_the_real_events_are_one_and_do_not_depend_on_the_charge(shared: Path) -> None:
    given = real_tracks(shared)
    pulls = pulls_of(given, fitted_given(given))
    assert len(pulls) > 390
    assert _width(pulls[:, 0]) == pytest.approx(1.0, abs=0.13)  # three standard errors
    assert _width(pulls[:, 1]) == pytest.approx(1.0, abs=0.13)
    bent = np.median(pulls[:, 0] * pulls[:, 2])
    assert abs(bent) < 0.13
    straight = run(KALMAN, {**given.columns, "velo_field": np.zeros(2, np.float32)}, given.n_events, given.limits)
    without = pulls_of(given, straight)
    assert np.median(without[:, 0] * without[:, 2]) < bent - 0.15


@pytest.mark.physics
def test_pulls_of_simulated_decays_are_one() -> None:
    given = simulated_tracks(Sample.BSPHIPHI, 24)
    pulls = pulls_of(given, fitted_given(given))
    assert len(pulls) > 1000
    # 1.08 and 1.09 on 100 events, hard scatters included.
    assert 0.9 < _width(pulls[:, 0]) < 1.2
    assert 0.9 < _width(pulls[:, 1]) < 1.2


@pytest.mark.parametrize("qop", [np.nan, np.inf, -np.inf, 0.0, 1e30, -1e-30])
def test_an_impossible_momentum_gives_a_finite_state_and_touches_no_other_track(toys: ToyEvents, qop: float) -> None:
    given = toys.columns()
    expected = run(KALMAN, given, len(toys.tracks), toys.sample.limits)
    given["long_tracks.fitted_qop"] = given["long_tracks.fitted_qop"].copy()
    given["long_tracks.fitted_qop"][3] = qop
    result = run(KALMAN, given, len(toys.tracks), toys.sample.limits)
    found = state(result, 0, 3)
    assert all(np.isfinite(value) for name, value in found.items() if name != "qop")
    assert found["c00"] > 0.0
    assert found["c22"] > 0.0
    others = np.arange(MAX_TRACKS_PER_EVENT) != 3
    for name in ("beam_x", "beam_c00", "ip_chi2"):
        of_event = result[f"long_tracks.{name}"][:MAX_TRACKS_PER_EVENT]
        assert np.array_equal(of_event[others], expected[f"long_tracks.{name}"][:MAX_TRACKS_PER_EVENT][others])
