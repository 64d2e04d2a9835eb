"""Smoothed states of long tracks at their VELO hits against a textbook smoother in double precision and truth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.offline.simulation.generation.samples import Sample
from hltnode.processing.lhcb.tracks.kalman.collections import MAX_SMOOTHED_STATES, SMOOTHED_STATE
from hltnode.processing.lhcb.tracks.kalman.smooth_velo import smooth_velo
from hltnode.processing.lhcb.tracks.long.collections import MAX_TRACKS_PER_EVENT
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms
from tests.processing.lhcb.fit_chain import run
from tests.processing.lhcb.given_columns import GivenTracks, real_tracks, simulated_tracks
from tests.processing.lhcb.tracks.kalman.smoother_oracle import SmoothedTrack, smooth
from tests.processing.lhcb.tracks.kalman.toy_tracks import FIELD, HIT_ERROR, ToyEvents, ToyTrack, tracks_from
from tests.processing.lhcb.tracks.kalman.velo_fit_oracle import (
    FOIL,
    MODULE,
    Field,
    behind_foil,
    scattering,
    step_noise,
)

Columns = dict[str, NDArray[Any]]
SMOOTH = (smooth_velo,)
COVARIANCES = (("c00", 0, 0), ("c20", 0, 2), ("c22", 2, 2), ("c11", 1, 1), ("c31", 1, 3), ("c33", 3, 3))


def columns_of(events: ToyEvents) -> Columns:
    """The columns of toy events; the LHCbID of a hit is its place in the batch, plus 7."""
    given = events.columns()
    return {**given, "velo_hits.id": np.arange(len(given["velo_hits.x"]), dtype=np.uint32) + 7}


def smoothed(events: ToyEvents, block_size: int | None = None, *, backward: bool = False) -> Columns:
    given = columns_of(events)
    return run(SMOOTH, given, len(events.tracks), events.sample.limits, block_size, backward=backward, fill=0xA5)


def states_of(columns: Columns, event: int) -> NDArray[np.void]:
    n = int(columns["smoothed_states.count"][event])
    of_event: NDArray[np.void] = columns["smoothed_states.state"].view(SMOOTHED_STATE.dtype)
    return of_event[event * MAX_SMOOTHED_STATES :][:n]


def assert_equals_oracle(found: NDArray[np.void], expected: SmoothedTrack) -> None:
    """States within 0.4 % of their errors, covariances within 0.1 %."""
    sigmas = np.sqrt(np.diagonal(expected.covariances, axis1=1, axis2=2))
    for i, name in enumerate(("x", "y", "tx", "ty")):
        assert np.all(np.abs(found[name] - expected.states[:, i]) < 4e-3 * sigmas[:, i])
    for name, i, j in COVARIANCES:
        scale = sigmas[:, i] * sigmas[:, j]
        assert np.all(np.abs(found[name] - expected.covariances[:, i, j]) < 1e-3 * scale), name
    for i, name in enumerate(("residual_x", "residual_y")):
        assert np.all(np.abs(found[name] - expected.residuals[:, i]) < 1e-3 * np.abs(expected.residuals[:, i]) + 1e-4)
    assert np.all(np.abs(found["chi2"] - expected.chi2) < 2e-3 * expected.chi2 + 5e-3)


def assert_event_equals_oracle(
    states: NDArray[np.void], tracks: list[tuple[NDArray[np.float64], float]], field: Field
) -> None:
    """`tracks`: hits from large to small z, and q/p."""
    assert list(states["track"]) == [number for number, (hits, _) in enumerate(tracks) for _ in hits]
    for number, (hits, qop) in enumerate(tracks):
        outwards = hits[::-1].astype(np.float32).astype(np.float64)
        found = states[states["track"] == number]
        assert np.array_equal(found["z"], outwards[:, 2].astype(np.float32))
        assert_equals_oracle(found, smooth(outwards, float(np.float32(qop)), field))


@pytest.fixture(scope="module")
def toys() -> ToyEvents:
    rng = np.random.default_rng(19)
    tracks = [tracks_from(rng, (0.05, -0.02, 30.0), 40), [], tracks_from(rng, (0.0, 0.0, -40.0), 7)]
    tracks.append(tracks_from(rng, (0.0, 0.0, 80.0), 33))
    return ToyEvents(tracks, [[], [], [], []])


def test_states_of_toy_tracks_equal_those_of_the_oracle(toys: ToyEvents) -> None:
    columns = smoothed(toys)
    for event, tracks in enumerate(toys.tracks):
        pairs = [(track.hits, track.qop) for track in tracks]
        assert_event_equals_oracle(states_of(columns, event), pairs, toys.field)


def test_tracks_of_the_most_hits_and_of_three_equal_the_oracle(toys: ToyEvents) -> None:
    rng = np.random.default_rng(23)
    tracks = [flown(rng, n, qop=1e-4).track for n in (26, 3, 25, 4, 26, 3, 3, 3, 3, 3)]
    events = ToyEvents([tracks], [[]])
    states = states_of(smoothed(events), 0)
    assert_event_equals_oracle(states, [(track.hits, track.qop) for track in tracks], FIELD)


@pytest.mark.physics
def test_states_of_the_real_events_equal_the_oracle(shared: Path) -> None:
    given = real_tracks(shared)
    columns = run(SMOOTH, given.columns, given.n_events, given.limits)
    field = Field(*map(float, given.columns["velo_field"]))
    qop = given.columns["long_tracks.fitted_qop"].reshape(-1, MAX_TRACKS_PER_EVENT)
    n_tracks = 0
    for event, particles in enumerate(given.particles):
        pairs = [(given.velo_hits_of(event, i), float(qop[event, i])) for i in range(len(particles))]
        assert_event_equals_oracle(states_of(columns, event), pairs, field)
        n_tracks += len(particles)
    assert n_tracks > 390


def test_states_name_hits_and_tracks(toys: ToyEvents) -> None:
    columns = smoothed(toys)
    given = columns_of(toys)
    for event, tracks in enumerate(toys.tracks):
        states = states_of(columns, event)
        assert list(states["track"]) == [i for i, track in enumerate(tracks) for _ in track.hits]
        assert len(set(states["lhcb_id"].tolist())) == len(states)
        assert np.array_equal(given["velo_hits.z"][states["lhcb_id"] - 7], states["z"])
        hit_x = given["velo_hits.x"][states["lhcb_id"] - 7]
        assert np.all(np.abs(hit_x - states["x"]) < 0.2)


@pytest.mark.parametrize("block_size", [1, 32, 64, 100, 256])
@pytest.mark.parametrize("backward", [False, True])
def test_every_block_size_gives_the_same_bits(toys: ToyEvents, block_size: int, backward: bool) -> None:
    reference, result = smoothed(toys), smoothed(toys, block_size, backward=backward)
    for event in range(len(toys.tracks)):
        assert states_of(reference, event).tobytes() == states_of(result, event).tobytes()
    assert np.array_equal(reference["smoothed_states.count"], result["smoothed_states.count"])


LIBRARY = KernelLibrary(CHAIN.kernels)


@pytest.mark.parametrize("target", LIBRARY.targets)
def test_the_form_for_the_cpu_gives_the_bits_of_the_common_kernel(target: str) -> None:
    """Events of 0 to 70 tracks, with 3 to 26 hits."""
    rng = np.random.default_rng(29)
    sizes = (0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 70)
    tracks = [[flown(rng, int(rng.integers(3, 27)), qop=1e-4).track for _ in range(n)] for n in sizes]
    tracks.append([flown(rng, 5, qop=1e-4).track for _ in range(24)])
    events = ToyEvents(tracks, [[]] * len(tracks))
    given = columns_of(events)
    form, common = (
        run_algorithms(SMOOTH, given, len(tracks), events.sample.limits, on_cpu(target, common=it), fill=fill)
        for it, fill in ((False, 0xA5), (True, 0x5A))
    )
    for event in range(len(tracks)):
        assert len(states_of(common, event)) == sum(len(track.hits) for track in tracks[event])
        assert states_of(form, event).tobytes() == states_of(common, event).tobytes()


@pytest.mark.parametrize("n_hits", [1, 2])
def test_a_track_of_one_or_two_hits_has_finite_states(n_hits: int) -> None:
    rng = np.random.default_rng(31)
    tracks = [flown(rng, n_hits, qop=1e-4).track, flown(rng, 5, qop=1e-4).track]
    states = states_of(smoothed(ToyEvents([tracks], [[]])), 0)
    assert len(states) == n_hits + 5
    assert all(np.all(np.isfinite(states[name])) for name in states.dtype.names or ())
    if n_hits == 1:
        assert (states["residual_x"][0], states["residual_y"][0], states["chi2"][0]) == (0.0, 0.0, 0.0)
        assert states["c00"][0] == np.float32(HIT_ERROR**2)


@pytest.mark.parametrize("qop", [np.nan, np.inf, -np.inf, 0.0, 1e30, -1e-30])
def test_an_impossible_momentum_gives_finite_states_and_touches_no_other_track(toys: ToyEvents, qop: float) -> None:
    given = columns_of(toys)
    expected = states_of(run(SMOOTH, given, len(toys.tracks), toys.sample.limits), 0)
    given["long_tracks.fitted_qop"] = given["long_tracks.fitted_qop"].copy()
    given["long_tracks.fitted_qop"][3] = qop
    states = states_of(run(SMOOTH, given, len(toys.tracks), toys.sample.limits), 0)
    of_it = states[states["track"] == 3]
    assert all(np.all(np.isfinite(of_it[name])) for name in of_it.dtype.names or ())
    assert np.all(of_it["c00"] > 0.0)
    assert np.all(of_it["c22"] > 0.0)
    assert states[states["track"] != 3].tobytes() == expected[expected["track"] != 3].tobytes()


@pytest.mark.parametrize("common", [False, True])
@pytest.mark.parametrize("more", [-1, 0, 1, 3])
def test_an_event_with_too_many_states_is_flagged_and_keeps_its_first_tracks(more: int, common: bool) -> None:
    """With 3 more, the last track comes when all places are taken."""
    rng = np.random.default_rng(37)
    n_long, rest = divmod(MAX_SMOOTHED_STATES + more - 3, 26)
    tracks = [flown(rng, 26, qop=1e-4).track for _ in range(n_long)]
    tracks += [flown(rng, rest, qop=1e-4).track] if rest else []
    tracks.append(flown(rng, 3, qop=1e-4).track)
    events = ToyEvents([tracks], [[]])
    given = {**columns_of(events), "events.flags": np.zeros(1, np.uint32)}
    columns = run_algorithms(SMOOTH, given, 1, events.sample.limits, on_cpu(common=common))
    states = states_of(columns, 0)
    assert bool(columns["events.flags"][0] & EventFlag.OVERFLOW) == (more > 0)
    n_expected = MAX_SMOOTHED_STATES + more - (3 if more > 0 else 0)
    assert len(states) == n_expected
    assert list(np.unique(states["track"])) == list(range(len(tracks) - (more > 0)))


@dataclass(frozen=True, slots=True)
class Flown:
    """A track that scatters as the smoother assumes; its true positions and slopes [n, (x, y, tx, ty)], outwards."""

    track: ToyTrack
    truth: NDArray[np.float64]


def flown(rng: np.random.Generator, n: int, qop: float) -> Flown:
    """A track with `n` hits from z = -100 on, 25 mm apart."""
    z = -100.0 + 25.0 * np.arange(n, dtype=np.float64)
    slope, azimuth = rng.uniform(0.02, 0.06), rng.uniform(-np.pi, np.pi)
    slopes = slope * np.array([np.cos(azimuth), np.sin(azimuth)])
    position = slopes * (z[0] + 230.0)
    truth = [np.concatenate([position, slopes])]
    for dz in np.diff(z):
        ahead = position + slopes * dz
        thickness = MODULE + (FOIL if behind_foil(*ahead) else 0.0)
        spread = np.linalg.cholesky(step_noise(dz, 0.643**2, 0.526))
        kicks = np.sqrt(scattering(thickness, qop, slopes))[:, None] * (rng.normal(size=(2, 2)) @ spread.T)
        position, slopes = ahead + kicks[:, 0], slopes + kicks[:, 1]
        truth.append(np.concatenate([position, slopes]))
    true = np.array(truth)
    true[:, 0] += qop * FIELD.position(z)
    true[:, 2] += qop * np.array([FIELD.slope(here) for here in z])
    hits = np.column_stack([true[:, :2] + rng.normal(0.0, HIT_ERROR, (n, 2)), z])
    return Flown(ToyTrack(hits[::-1].copy(), qop, true[0, 2:]), true)


@pytest.mark.parametrize("qop", [1 / 2e3, -1 / 5e3, 1 / 2e4])
def test_pulls_of_states_and_residuals_are_one_at_the_first_middle_and_last_hit(qop: float) -> None:
    rng = np.random.default_rng(41)
    n_hits, n_tracks = 9, 400
    tracks = [[flown(rng, n_hits, qop) for _ in range(n_tracks)] for _ in range(5)]
    columns = smoothed(ToyEvents([[it.track for it in event] for event in tracks], [[]] * 5))
    states = np.concatenate([states_of(columns, event) for event in range(5)]).reshape(-1, n_hits)
    truth = np.array([it.truth for event in tracks for it in event])
    for k in (0, n_hits // 2, n_hits - 1):
        for i, (name, variance) in enumerate((("x", "c00"), ("y", "c11"), ("tx", "c22"), ("ty", "c33"))):
            pulls = (states[name][:, k] - truth[:, k, i]) / np.sqrt(states[variance][:, k])
            assert np.std(pulls) == pytest.approx(1.0, abs=0.06), (k, name)
            assert np.mean(pulls) == pytest.approx(0.0, abs=0.08), (k, name)
        assert np.mean(states["chi2"][:, k]) == pytest.approx(2.0, abs=0.16)


def _width(values: NDArray[np.float64]) -> float:
    """Half of the central 68 per cent."""
    low, high = np.percentile(values, (15.865, 84.135))
    return float(high - low) / 2


@pytest.mark.physics
def test_residuals_of_simulated_decays_are_as_wide_as_their_errors() -> None:
    given: GivenTracks = simulated_tracks(Sample.BSPHIPHI, 24)
    columns = run(SMOOTH, given.columns, given.n_events, given.limits)
    states = np.concatenate([states_of(columns, event) for event in range(given.n_events)])
    w = HIT_ERROR**2
    for residual, variance in (("residual_x", "c00"), ("residual_y", "c11")):
        of_residual = w * w / (w - states[variance].astype(np.float64))
        assert _width(states[residual] / np.sqrt(of_residual)) == pytest.approx(1.0, abs=0.1)
