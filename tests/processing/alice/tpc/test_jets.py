"""Jets of merged tracks against a sequential search in NumPy; each constant and each bound decides alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.alice.chain import CHAIN
from hltnode.processing.alice.geometry.tpc_geometry import TpcGeometry
from hltnode.processing.alice.tpc.candidates.collections import JET, MAX_JETS
from hltnode.processing.alice.tpc.candidates.find_jets import find_jets
from hltnode.processing.alice.tpc.flags import MANY_JETS
from hltnode.processing.alice.tpc.merging.collections import MERGED_TRACK
from hltnode.processing.framework.limits import BatchLimits
from tests.processing.alice import jet_oracle
from tests.processing.alice.toy_events import GEOMETRY
from tests.processing.framework.kernel_runner import Launch, on_cpu, run_algorithms, with_block_size

LIMITS = BatchLimits(events=2, input_bytes=1 << 20)


def straight(pt: Any, eta: Any, phi: Any) -> NDArray[np.void]:
    """Tracks of little curvature at 85 cm, in the slice of their azimuth."""
    pt, eta, phi = np.broadcast_arrays(*(np.asarray(each, float) for each in (pt, eta, phi)))
    tracks = np.zeros(pt.size, MERGED_TRACK.dtype)
    sector = np.floor(np.mod(phi, 2 * np.pi) / np.radians(20)).astype(int) % 18
    local = np.mod(phi - np.radians(20 * sector + 10) + np.pi, 2 * np.pi) - np.pi
    tracks["slice"] = sector + np.where(eta < 0, 18, 0)
    tracks["x"], tracks["y"], tracks["sin_phi"] = 85.195, 85.195 * np.tan(local), np.sin(local)
    tracks["tan_lambda"], tracks["q_pt"] = np.sinh(eta), 1 / pt
    tracks["z"] = 85.195 * tracks["tan_lambda"]
    return tracks


def random_tracks(rng: np.random.Generator, n: int, pt: float) -> NDArray[np.void]:
    """Tracks in all directions, none of them closer than 1e-3 cells to a border of cells."""
    tracks = straight(0.1 + rng.exponential(pt, n), rng.uniform(-1.1, 1.1, n), rng.uniform(-np.pi, np.pi, n))
    tracks["q_pt"] *= rng.choice([-1, 1], n)
    tracks["sin_phi"] = np.clip(tracks["sin_phi"] + rng.normal(0, 0.2, n), -0.9, 0.9)
    return tracks[jet_oracle.cells_of(tracks, GEOMETRY)[1] > 1e-3]


def run(
    *events: NDArray[np.void], launch: Launch | None = None, geometry: TpcGeometry = GEOMETRY, **constants: float
) -> list[tuple[list[tuple[Any, ...]], int]]:
    """Jets and flags of each event. Events are at their places in one batch."""
    algorithm = replace(
        find_jets,
        constants=tuple(replace(each, value=constants.get(each.name, each.value)) for each in find_jets.constants),
    )
    begins = np.cumsum([0, *(len(tracks) * 16 for tracks in events)]).astype(np.uint32)
    places = [int(begin) // 16 + 36 * i for i, begin in enumerate(begins[:-1])]
    tracks = np.zeros(places[-1] + len(events[-1]), MERGED_TRACK.dtype)
    for place, own in zip(places, events, strict=True):
        tracks[place : place + len(own)] = own
    given = {
        "tpc.geometry": geometry.as_floats(),
        "events.first_cluster": begins,
        "tpc_merged_tracks.count": np.array([len(own) for own in events], np.uint32),
        "tpc_merged_tracks.track": tracks,
    }
    found = run_algorithms([algorithm], given, len(events), LIMITS, launch or on_cpu(kernels=CHAIN.kernels))
    jets = found["tpc_jets.jet"].view(JET.dtype).reshape(-1, MAX_JETS)
    return [
        (jets[i, : int(found["tpc_jets.count"][i])].tolist(), int(found["events.flags"][i])) for i in range(len(events))
    ]


def assert_equal(found: tuple[list[tuple[Any, ...]], int], expected: tuple[list[jet_oracle.Jet], bool]) -> None:
    jets, more = expected
    assert found[1] == (MANY_JETS.mask if more else 0)
    assert [(round(pt * 200), round(of * 200), n) for pt, of, _, _, n, _ in found[0]] == [
        (jet.pt, jet.background, jet.n_tracks) for jet in jets
    ]
    for each, jet in zip(found[0], jets, strict=True):
        assert each[2:4] == (pytest.approx(jet.eta, abs=1e-5), pytest.approx(jet.phi, abs=1e-5))


def test_jets_equal_a_sequential_search() -> None:
    rng = np.random.default_rng(4)
    cases: tuple[tuple[int, float, dict[str, Any]], ...] = (
        (40, 3.0, {}),
        (400, 1.0, {"radius": 0.7, "min_pt": 2.0}),
        (3000, 0.6, {"min_pt": 1.0, "min_track_pt": 0.5}),
        (300, 8.0, {"radius": 0.2}),
    )
    n_jets = []
    for n, pt, constants in cases:
        tracks = random_tracks(rng, n, pt)
        one, two = run(tracks[: n // 3], tracks, **constants)
        assert_equal(one, jet_oracle.find_jets(tracks[: n // 3], GEOMETRY, **constants))
        assert_equal(two, jet_oracle.find_jets(tracks, GEOMETRY, **constants))
        n_jets.append(len(two[0]))
    assert min(n_jets) >= 2
    assert max(n_jets) == MAX_JETS


def test_jets_depend_neither_on_threads_nor_on_the_order_of_tracks() -> None:
    rng = np.random.default_rng(8)
    tracks = random_tracks(rng, 300, 2.0)
    expected = run(tracks, tracks[:50])
    assert expected[0][0]
    for block in (32, 256):
        blocks = with_block_size(block, backward=block == 32, kernels=CHAIN.kernels)
        assert run(rng.permutation(tracks), tracks[:50], launch=blocks) == expected


def test_every_constant_of_a_jet_decides_alone() -> None:
    two = straight([4.0, 4.0], [0.05, 0.05], [1.0, 1.3])
    ((jets, _),) = run(two)
    assert [(round(jet[0], 2), jet[4]) for jet in jets] == [(8.0, 2)]
    assert run(two, radius=0.1) == [([], 0)]
    assert run(two, min_pt=8.0) == [([], 0)]  # the mean of the event counts as background
    assert [jet[4] for jet in run(two, min_pt=7.0)[0][0]] == [2]
    assert run(two, min_track_pt=4.1) == [([], 0)]


def test_cones_reach_over_the_border_of_azimuth_and_end_at_that_of_pseudorapidity() -> None:
    ((jets, _),) = run(straight([4.0, 4.0], [0.85, 0.85], [np.pi - 0.05, 0.05 - np.pi]))
    ((pt, _, eta, phi, n, n_cells),) = jets
    assert (pt, n) == (pytest.approx(8.0), 2)
    assert abs(phi) > 3.0
    assert abs(eta) < 0.9
    assert n_cells < 9 * 9
    for eta in (0.899, -0.899):
        assert len(run(straight(20.0, eta, 0.5))[0][0]) == 1
    for eta in (0.901, -0.901):
        assert run(straight(20.0, eta, 0.5)) == [([], 0)]


def test_directions_are_those_at_the_beam_line() -> None:
    """A track of 0.5 GeV/c turns by 0.26 rad on its way to the first row: more than a cell."""
    track = straight(0.5, 0.05, 0.0)
    track["q_pt"] = [1 / 0.5]
    ((jets, _),) = run(track, min_pt=0.1, radius=0.01)
    assert jets[0][3] == pytest.approx(jet_oracle.directions(track, GEOMETRY)[0], abs=0.05)
    assert abs(jets[0][3]) > 0.2


def test_a_momentum_without_bound_counts_as_fifty_and_broken_numbers_stay_in_bounds() -> None:
    track = straight([50.0, 60.0, 1.0], 0.05, [0.0, 0.01, 0.02])
    track["q_pt"][2] = 0.0
    ((jets, _),) = run(track)
    assert jets[0][0] == 150.0
    broken = straight([5.0] * 4, 0.05, 1.0)
    for i, name in enumerate(("tan_lambda", "q_pt", "sin_phi", "z")):
        broken[name][i] = np.nan
    ((jets, _),) = run(broken)
    assert sum(jet[4] for jet in jets) <= 4


def test_the_sum_of_the_most_tracks_of_an_event_has_32_bits() -> None:
    """48 MiB of clusters, 16 of each track, and one for each slice more."""
    assert (48 * 2**20 // 8 // 16 + 36) * 50 * 200 < 2**32


def test_more_jets_than_there_is_room_for_are_noted_and_the_highest_ones_kept() -> None:
    eta, phi = (each.ravel() for each in np.meshgrid([-0.65, 0.15], np.arange(9) * 0.69 - 3.0))
    for n, many in ((MAX_JETS, False), (MAX_JETS + 1, True)):
        pt = 20.0 + np.arange(n)
        ((jets, flags),) = run(straight(pt, eta[:n], phi[:n]), radius=0.1)
        assert flags == (MANY_JETS.mask if many else 0)
        assert [jet[0] for jet in jets] == sorted(pt.tolist(), reverse=True)[:MAX_JETS]
