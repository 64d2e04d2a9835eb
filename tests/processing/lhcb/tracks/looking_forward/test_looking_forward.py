"""Looking Forward: its kernels find the sets of x hits and the tracks of the oracle, on real and simulated events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.offline.simulation.detector import Detector as SimulatedDetector
from hltnode.processing.lhcb.offline.simulation.full_generator import FullSimulation
from hltnode.processing.lhcb.offline.simulation.generation.sources import sample_source
from hltnode.processing.lhcb.tracks.long.collections import MAX_TRACKS_PER_EVENT
from hltnode.processing.lhcb.tracks.long.parameters import LONG_TRACK_PARAMETERS, long_track_parameters
from hltnode.processing.lhcb.tracks.looking_forward.complete_tracks import complete_tracks
from hltnode.processing.lhcb.tracks.looking_forward.find_x_tracks import find_x_tracks
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms
from tests.processing.lhcb.tracks.long.forward_chain import forward_constants
from tests.processing.lhcb.tracks.long.forward_hypothesis_oracle import OracleHits, Settings, UtPart
from tests.processing.lhcb.tracks.long.test_forward_fuzz import LIMITS, N_EVENTS, Columns, assert_tracks_are_possible
from tests.processing.lhcb.tracks.long.test_forward_fuzz import columns as any_columns
from tests.processing.lhcb.tracks.looking_forward.looking_forward_chain import (
    ALGORITHMS,
    LookingForwardEvent,
    chain_of,
    looking_forward_chain,
    run,
)
from tests.processing.lhcb.tracks.looking_forward.looking_forward_oracle import Cuts, Found, TrackSearch, half, search
from tests.processing.lhcb.ut.ut_chain import Detector, limits_of
from tests.processing.lhcb.velo.velo_chain import real_events

NO_HIT = 0xFFFF
KERNELS = (find_x_tracks, complete_tracks)
CONSTANTS = {constant.name: constant.value for kernel in KERNELS for constant in kernel.constants}
# Largest differences between single and double precision.
TOLERANCE = {"x": 2e-3, "y": 1e-2, "tx": 5e-6, "ty": 1e-5, "quality": 2e-2}
Constants = dict[str, NDArray[np.uint8]]


def expected_of(event: LookingForwardEvent, constants: Constants, changes: dict[str, float | int]) -> list[Found]:
    """What the oracle finds for each VELO-UT track."""
    of = event.event
    record = constants[long_track_parameters.name].view(LONG_TRACK_PARAMETERS.dtype)[0]
    hits = OracleHits(of.scifi["x"].astype(float), of.scifi["z"].astype(float), of.zone_offset.astype(np.int64))
    of_forward: dict[str, Any] = {
        name: value for name, value in changes.items() if name in {it.name for it in fields(Settings)}
    }
    cuts = Cuts(CONSTANTS | changes, replace(Settings(), **of_forward))
    tracks, ut_hits, velo = of.ut.tracks, of.ut.hits, of.ut.velo
    found = []
    for number, velo_track in enumerate(tracks["velo_track"].tolist()):
        x, y, tx, ty = (float(velo.states[name][velo_track]) for name in ("x", "y", "tx", "ty"))
        layers = [layer for layer in range(4) if tracks["hits"][number][layer] != NO_HIT]
        chosen = tracks["hits"][number][layers]
        of_track = (ut_hits[name][chosen].astype(float) for name in ("x", "z", "weight"))
        ut = UtPart(number, float(tracks["qop"][number]), layers, *of_track)
        found.append(search(record, hits, velo_track, (x, y, tx, ty), ut, cuts))
    return found


def compare(event: LookingForwardEvent, expected: Sequence[Found]) -> NDArray[np.int64]:
    """Number of VELO-UT tracks, of sets of x hits, of long tracks, and of VELO-UT tracks that differ; the numbers of
    all others must be equal within TOLERANCE."""
    made = event.event.tracks
    row_of = {ut_track: row for row, ut_track in enumerate(made["ut_track"].tolist())}
    counts = np.zeros(4, np.int64)
    for number, it in enumerate(expected):
        sizes = [int((hits != NO_HIT).sum()) for hits in it.sets]
        n_sets = len(sizes)
        row = row_of.get(number)
        same = (
            event.x_hit_count[number].tolist() == sizes + [0] * (2 - n_sets)
            and all(np.array_equal(*pair) for pair in zip(event.x_hits[number], it.sets, strict=False))
            and event.n_chi2[number] == it.n_chi2
            and (row is None) == (it.best is None)
        )
        if same and row is not None and it.best is not None:
            hits = [it.best.hits.get(layer, NO_HIT) for layer in range(12)]
            same = made["hits"][row].tolist() == hits
            if same:
                assert made["velo_track"][row] == it.best.velo_track
                assert made["hit_count"][row] == len(it.best.hits)
                np.testing.assert_allclose(made["qop"][row], it.best.qop, rtol=1e-5)
                for name, tolerance in TOLERANCE.items():
                    np.testing.assert_allclose(made[name][row], getattr(it.best, name), rtol=0, atol=tolerance)
        counts += [1, n_sets, it.best is not None, not same]
    return counts


def assert_same(
    events: Sequence[LookingForwardEvent],
    constants: Constants,
    least: int,
    changes: dict[str, float | int] | None = None,
    different: float = 0.01,
) -> None:
    """Single and double precision decide alike, except if a hit lies on the edge of a window."""
    counts = sum(compare(event, expected_of(event, constants, changes or {})) for event in events)
    n_tracks, _, n_long, n_different = np.asarray(counts).tolist()
    assert n_long >= least
    assert n_different <= different * n_tracks


@cache
def simulated() -> tuple[EncodedMep, Constants, list[LookingForwardEvent]]:
    detector = SimulatedDetector.builtin()
    simulation = FullSimulation(detector, sample_source("minbias", 7.6, detector.velo.beamline))
    mep = encode_mep(looking_forward_chain(), list(simulation.events(3, 3)))
    constants = forward_constants(Detector.builtin(), SciFiGeometry.builtin())
    return mep, constants, run(mep, constants, limits_of(mep))


@cache
def real(shared: Path) -> tuple[EncodedMep, Constants, list[LookingForwardEvent]]:
    geometry = shared / "data" / "lhcb-geometry"
    mep = encode_mep(looking_forward_chain(), real_events(shared, "retina"))
    constants = forward_constants(Detector.load(geometry), SciFiGeometry.load(geometry))
    return mep, constants, run(mep, constants, limits_of(mep))


def test_simulated_events_give_the_tracks_of_the_oracle() -> None:
    _, constants, events = simulated()
    assert_same(events, constants, 10)


@pytest.mark.physics
def test_real_events_give_the_tracks_of_the_oracle(shared: Path) -> None:
    _, constants, events = real(shared)
    assert_same(events, constants, 280)


CHANGES: dict[str, dict[str, float | int]] = {
    "narrow windows": {"x_window": 10.0},
    "windows that depend less on the bend": {"x_window_per_bend": 0.05},
    "windows with more than 32 candidates": {"x_window": 2000.0, "stereo_margin": 20.0},
    "windows with more than 128 hits on either side": {"x_window": 7000.0, "stereo_margin": -0.3},
    "a margin of the partners": {"stereo_margin": 0.2},
    "a higher momentum": {"min_p": 4000.0},
    "another curvature": {"triplet_curvature": -1e-5},
    "a smaller chi2": {"max_triplet_chi2": 0.1},
    "two triplets": {"n_triplets": 2},
    "a larger chi2": {"max_triplet_chi2": 50.0},
    "six x hits": {"min_x_hits": 6},
    "a small spread": {"max_spread": 0.3},
    "a narrow tolerance in x": {"x_tolerance": 0.1},
    "a tolerance in x per kink": {"x_tolerance_per_kink": 0.2},
    "eleven hits": {"min_hits": 11},
    "a better quality": {"max_quality": 25.0},
}


def changed_run(changes: dict[str, float | int]) -> list[LookingForwardEvent]:
    mep, constants, _ = simulated()
    names = [{constant.name for constant in algorithm.constants} for algorithm in ALGORITHMS]
    algorithms = [
        algorithm.with_constants({name: value for name, value in changes.items() if name in of})
        for algorithm, of in zip(ALGORITHMS, names, strict=True)
    ]
    return run(mep, constants, limits_of(mep), chain_of(*algorithms))


@pytest.mark.parametrize("name", CHANGES)
def test_a_constant_changes_the_tracks_as_in_the_oracle(name: str) -> None:
    _, constants, events = simulated()
    changed = changed_run(CHANGES[name])
    assert any(
        one.x_hits[one.x_hit_count > 0].tobytes() != other.x_hits[other.x_hit_count > 0].tobytes()
        or not one.event.same_as(other.event)
        for one, other in zip(events, changed, strict=True)
    )
    assert_same(changed, constants, 0, CHANGES[name], different=0.03)


@pytest.mark.parametrize("form", [1, 2])
def test_operands_of_half_precision_give_the_tracks_of_the_oracle(form: int) -> None:
    _, constants, _ = simulated()
    assert_same(changed_run({"tensor_core_form": form}), constants, 5, {"tensor_core_form": form}, different=0.05)


def test_halves_are_those_of_numpy() -> None:
    """Half precision of the real coordinates loses a millimetre; the oracle uses numpy.float16."""
    assert half(1025.4) == 1025.0
    assert half(2049.1) == 2050.0


@pytest.mark.parametrize(("half_width", "printed", "relative"), [(50.0, 1.0, 0.05), (300.0, 1.0, 0.2)])
def test_coordinates_relative_to_the_windows_lose_less_in_half_precision(
    half_width: float, printed: float, relative: float
) -> None:
    """Root mean square error in mm of the distance whose square is in equation 6.1, for tracks 1 to 3 m from the
    middle."""
    rng = np.random.default_rng(1)
    track = object.__new__(TrackSearch)
    track.z, track.s = {0: 7826.0, 3: 8036.0, 4: 8508.0}, 0.0
    errors: dict[int, list[NDArray[np.float64]]] = {1: [], 2: []}
    for _ in range(50):
        middle, slope = rng.uniform(1000.0, 3000.0), rng.uniform(-0.3, 0.3)
        track.expected = {layer: middle + slope * (z - 8036.0) for layer, z in track.z.items()}
        x = [track.expected[layer] + rng.uniform(-half_width, half_width, 16) for layer in track.z]
        distances = []
        for form in range(3):
            track.cuts = Cuts(CONSTANTS | {"tensor_core_form": form})
            distances.append(np.sqrt(track.chi2(x[0], x[1], x[2], tuple(track.z))))
        for form in (1, 2):
            errors[form].append((distances[form] - distances[0]).ravel())
    of_printed, of_relative = (float(np.sqrt(np.mean(np.concatenate(errors[form]) ** 2))) for form in (1, 2))
    assert of_printed > printed
    assert of_relative < relative


def search_of(given_columns: Columns) -> Columns:
    return run_algorithms(ALGORITHMS, given_columns, N_EVENTS, LIMITS, on_cpu(kernels=CHAIN.kernels), fill=0xA5)


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 7, 300, 3000]), st.sampled_from([1, 60, 300]))
def test_impossible_numbers_lead_nowhere(seed: int, n_scifi: int, n_velo: int) -> None:
    rng = np.random.default_rng(seed)
    made = search_of(any_columns(rng, n_scifi, n_velo, int(rng.integers(0, n_velo + 1)), strange=rng.random() ** 2))
    assert_tracks_are_possible(made, n_scifi, n_velo)


@pytest.mark.parametrize("n_velo", [MAX_TRACKS_PER_EVENT, MAX_TRACKS_PER_EVENT + 1])
def test_a_velo_track_without_a_place_for_its_continuation_flags_the_event(n_velo: int) -> None:
    content = any_columns(np.random.default_rng(1), 200, n_velo, 1, strange=0.0)
    content["events.flags"] = np.zeros(N_EVENTS, np.uint32)
    content["ut_tracks.velo_track"][:, 0] = n_velo - 1
    made = search_of(content)
    expected = EventFlag.OVERFLOW if n_velo > MAX_TRACKS_PER_EVENT else 0
    assert made["events.flags"][:N_EVENTS].tolist() == [expected] * N_EVENTS
