"""Jets against their oracle; each constant, each bound and each rule of the search decides alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.calorimeter.collections import MAX_CLUSTERS_PER_EVENT
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.jets.collections import MAX_JETS_PER_EVENT
from hltnode.processing.lhcb.jets.find_jets import find_jets
from hltnode.processing.lhcb.raw_data.flags import MANY_JETS
from hltnode.processing.lhcb.tracks.long.collections import MAX_TRACKS_PER_EVENT
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.framework.kernel_runner import on_cpu, with_block_size
from tests.processing.lhcb.calorimeter.ecal_batches import with_ecal
from tests.processing.lhcb.dense_events import dense_crossing
from tests.processing.lhcb.full_events import full_events
from tests.processing.lhcb.jets import jet_oracle
from tests.processing.lhcb.jets.jet_oracle import CUTS, Columns, Jet, event_of
from tests.processing.lhcb.jets.toy_jets import (
    NO_CLUSTERS,
    NO_TRACKS,
    assert_jets_equal,
    clusters_of,
    jets_of,
    ordered,
    random_event,
    run_jets,
    tracks_of,
)
from tests.processing.lhcb.velo.velo_chain import real_events
from tests.processing.lhcb.whole_chain import reference_of
from tests.ptx.chain import PtxLauncher
from tests.ptx.kernels import machine_of, module_of

MANY = MANY_JETS.mask


def jets_in(tracks: Columns, clusters: Columns = NO_CLUSTERS, **constants: float) -> list[Jet]:
    """The jets of an event without flags."""
    ((jets, flags),) = run_jets((tracks, clusters), constants=constants)
    assert flags == 0
    return jets


def sizes(jets: Sequence[Jet]) -> list[tuple[int, int]]:
    """Tracks and photons of each jet."""
    return [(jet.n_tracks, jet.n_photons) for jet in jets]


@pytest.mark.parametrize(
    "constants",
    [
        {},
        {"radius": 0.9, "min_seed_pt": 500.0},
        {"radius": 0.2, "min_track_pt": 900.0, "max_ghost_probability": 0.9},
        {"min_photon_et": 2000.0, "min_photon_e19": 0.8, "min_seed_pt": 3000.0},
        {"min_seed_pt": 0.0, "min_track_pt": 0.0},
    ],
)
def test_jets_of_random_events_are_those_of_the_oracle(constants: dict[str, float]) -> None:
    rng = np.random.default_rng(12)
    shapes = ((0, 0), (1, 0), (0, 40), (30, 20), (60, 60), (150, 80), (700, 900))
    events = [random_event(rng, *shape) for shape in shapes]
    expected = [jet_oracle.find_jets(*event, constants) for event in events]
    for (found, flags), wanted in zip(run_jets(*events, constants=constants), expected, strict=True):
        assert_jets_equal(found, wanted)
        assert flags == (MANY if wanted.more else 0)
    jets = [jet for wanted in expected for jet in wanted.jets]
    assert len(jets) > 20
    assert sum(jet.n_tracks > 1 and jet.n_photons > 0 for jet in jets) > 3


def test_the_oracle_has_the_constants_of_the_algorithm() -> None:
    assert {constant.name: constant.value for constant in find_jets.constants} == CUTS


@pytest.mark.parametrize("block_size", [1, 32, 100, 256])
@pytest.mark.parametrize("backward", [False, True])
def test_threads_do_not_change_jets(block_size: int, backward: bool) -> None:
    rng = np.random.default_rng(3)
    events = [random_event(rng, n, 2 * n // 3) for n in (0, 40, 300)]
    assert run_jets(*events, launch=with_block_size(block_size, backward=backward)) == run_jets(*events)


@pytest.mark.parametrize("threads", range(2, 9))
def test_threads_of_a_cpu_and_instruction_sets_do_not_change_jets(threads: int) -> None:
    rng = np.random.default_rng(4)
    events = [random_event(rng, 10 * i, 8 * i) for i in range(20)]
    assert run_jets(*events, launch=on_cpu("baseline", threads=threads)) == run_jets(*events)


@pytest.mark.expensive("executes kernels instruction by instruction")
@pytest.mark.parametrize("block_size", [32, 64, 100])
def test_ptx_finds_the_jets_of_the_cpu(block_size: int) -> None:
    rng = np.random.default_rng(5)
    events = [random_event(rng, n, 2 * n // 3) for n in (0, 40, 200)]
    machine = machine_of(module_of("90"), backward=block_size == 64)
    launcher = PtxLauncher(machine, block_size)
    assert run_jets(*events, launch=launcher, allocate=machine.allocate) == run_jets(*events)
    assert launcher.conflicts == []


def test_the_order_of_tracks_and_clusters_does_not_change_jets() -> None:
    rng = np.random.default_rng(7)
    for n in (30, 200):
        tracks, clusters = random_event(rng, n, n)
        tracks["beam_qop"][:6] = tracks["beam_qop"][0]
        expected = run_jets((tracks, clusters))[0]
        order = rng.permutation(n)
        jets, flags = run_jets((ordered(tracks, order), ordered(clusters, rng.permutation(n))))[0]
        assert ([replace(jet, seed=int(order[jet.seed])) for jet in jets], flags) == expected
        assert jets


def test_every_constant_decides_alone() -> None:
    tracks = tracks_of([5000.0, 900.0], 3.0, [1.0, 1.3], ghost=[0.0, 0.25])
    clusters = clusters_of(2000.0, 3.0, 1.1, e19=0.75)
    (jet,) = jets_in(tracks, clusters)
    assert (jet.n_tracks, jet.n_photons, jet.seed, jet.pv) == (2, 1, 0, 0)
    assert jet.pt == pytest.approx(7900.0, abs=0.2)
    assert jet.phi == pytest.approx(1.0 + (0.3 * 900 + 0.1 * 2000) / 7900, abs=1e-4)
    assert sizes(jets_in(tracks, clusters, radius=0.25)) == [(1, 1)]
    assert sizes(jets_in(tracks, clusters, min_track_pt=901.0)) == [(1, 1)]
    assert sizes(jets_in(tracks, clusters, max_ghost_probability=0.2)) == [(1, 1)]
    assert sizes(jets_in(tracks, clusters, min_photon_et=2000.0)) == [(2, 0)]
    assert sizes(jets_in(tracks, clusters, min_photon_e19=0.75)) == [(2, 0)]
    assert jets_in(tracks, clusters, min_seed_pt=5001.0) == []
    assert sizes(jets_in(tracks, clusters, min_seed_pt=4999.0)) == [(2, 1)]
    # What is too soft for a seed is a part; what is hard enough and alone is a jet.
    assert sizes(jets_in(tracks, clusters, radius=0.05, min_seed_pt=800.0)) == [(1, 0), (1, 0)]


def test_a_track_at_a_cut_on_it_counts() -> None:
    tracks = tracks_of([5000.0, 900.0], 3.0, [1.0, 1.3], ghost=[0.0, 0.25])
    pt = float(jet_oracle.transverse_momenta(tracks)[1])
    above = float(np.nextafter(np.float32(pt), np.float32(1e9)))
    assert sizes(jets_in(tracks, min_track_pt=pt, max_ghost_probability=0.25)) == [(2, 0)]
    assert sizes(jets_in(tracks, min_track_pt=above)) == [(1, 0)]


def test_a_track_at_the_cut_on_seeds_is_a_seed() -> None:
    """The cut is rounded to units as momenta are."""
    tracks = tracks_of(5000.0, 3.0, 1.0)
    (units,) = jet_oracle.in_units(jet_oracle.transverse_momenta(tracks)).tolist()
    assert sizes(jets_in(tracks, min_seed_pt=units / 16)) == [(1, 0)]
    assert jets_in(tracks, min_seed_pt=(units + 1) / 16) == []


def test_thresholds_below_zero_are_off() -> None:
    tracks = tracks_of([5000.0, 1.0], 3.0, [1.0, 2.5])
    jets = jets_in(tracks, clusters_of(-50.0, 3.0, 1.0), min_seed_pt=-1.0, min_track_pt=-1.0, min_photon_et=-100.0)
    assert sizes(jets) == [(1, 0), (1, 0)]


def test_a_cone_without_size_has_its_seed() -> None:
    tracks = tracks_of([5000.0, 5000.0], 3.0, 1.0)
    jets = jets_in(tracks, radius=0.0)
    assert sizes(jets) == [(1, 0)] * 2
    assert [jet.eta for jet in jets] == pytest.approx([3.0, 3.0])


def test_jets_of_a_mirrored_event_are_mirrored_to_the_last_bit() -> None:
    tracks, clusters = random_event(np.random.default_rng(21), 120, 90)
    jets, _ = run_jets((tracks, clusters))[0]
    tracks["beam_ty"][:] *= -1
    clusters["y"][:] *= -1
    assert run_jets((tracks, clusters))[0][0] == [replace(jet, phi=-jet.phi) for jet in jets]
    assert sum(jet.n_tracks + jet.n_photons > 2 for jet in jets) > 3


def test_an_event_without_a_vertex_has_no_jets() -> None:
    tracks = tracks_of([9000.0, 8000.0], 3.0, 1.0, pv=255)
    assert jets_in(tracks, clusters_of(5000.0, 3.0, 1.0)) == []
    assert jets_in(NO_TRACKS, clusters_of(50000.0, 3.0, 1.0)) == []


def test_tracks_of_another_vertex_or_of_none_stay_outside() -> None:
    tracks = tracks_of([9000.0, 8000.0, 7000.0, 6000.0], 3.0, 1.0, pv=[4, 5, 255, 4])
    jets = jets_in(tracks, clusters_of(3000.0, 3.0, 1.1))
    assert [(jet.pv, jet.seed, jet.n_tracks, jet.n_photons) for jet in jets] == [(4, 0, 2, 1), (5, 1, 1, 0)]


def test_a_photon_that_belongs_to_no_vertex_goes_with_the_first_cone_that_has_it() -> None:
    """The second seed is nearer to it, the first one is harder."""
    tracks = tracks_of([9000.0, 8000.0], 3.0, [0.0, 0.7], pv=[0, 1])
    assert sizes(jets_in(tracks, clusters_of(3000.0, 3.0, 0.45))) == [(1, 1), (1, 0)]
    assert sizes(jets_in(ordered(tracks, [1, 0]), clusters_of(3000.0, 3.0, 0.55))) == [(1, 0), (1, 1)]


def test_a_cluster_that_a_track_crosses_is_no_photon() -> None:
    """Also if the track is too soft for a jet, and in the first and the last cell."""
    cells = [0, 6015, 31, 32]
    tracks = tracks_of([9000.0, 1.0, 1.0, 1.0], 3.0, 1.0, cell=cells)
    clusters = clusters_of(1000.0, 3.0, 1.0, seed=[*cells, 1, 33, 6014, 30])
    assert sizes(jets_in(tracks, clusters)) == [(1, 4)]


def test_a_part_at_the_edge_of_the_cone_stays_outside() -> None:
    tracks = tracks_of([9000.0, 8000.0], [2.5, 3.0], 0.0)
    # A jet of one track has exactly its direction.
    one, two = jets_in(tracks, radius=0.1)
    assert one.phi == two.phi == 0.0
    distance = np.float32(two.eta) - np.float32(one.eta)
    assert sizes(jets_in(tracks, radius=float(distance))) == [(1, 0), (1, 0)]
    assert sizes(jets_in(tracks, radius=float(np.nextafter(distance, np.float32(1))))) == [(2, 0)]


def test_cones_and_means_reach_over_the_border_of_azimuth() -> None:
    for sign in (1, -1):
        tracks = tracks_of([9000.0, 8000.0, 8000.0], 3.0, sign * np.array([3.1, -3.0, -2.95]))
        (jet,) = jets_in(tracks)
        assert jet.n_tracks == 3
        # Behind the border: 3.1 + (8 (2π - 6.1) + 8 (2π - 6.05)) / 25 - 2π
        expected = 3.1 + 8 * (4 * np.pi - 12.15) / 25 - 2 * np.pi
        assert jet.phi == pytest.approx(sign * expected, abs=1e-4)
        assert sign * jet.phi < -3.0


def test_seeds_of_equal_momenta_are_in_the_order_of_their_directions_and_vertices() -> None:
    """The first of two cones takes the photon between them."""
    cases: list[tuple[Any, Any, Any, tuple[Any, Any]]] = [
        ([2.7, 3.3, 3.0], 0.0, 0, (3.0, 0.0)),
        (3.0, [0.0, 0.7, 0.35], 0, (3.0, 0.35)),
        (3.0, 0.0, [3, 4, 9], (3.0, 0.0)),
    ]
    for eta, phi, pv, of_photon in cases:
        tracks = tracks_of([8000.0, 8000.0, 1.0], eta, phi, pv)
        # Equal in units: rounding to float32 differs by less than 1/32 MeV.
        assert len(set(jet_oracle.in_units(jet_oracle.transverse_momenta(tracks)[:2]).tolist())) == 1
        for order in ([0, 1], [1, 0]):
            jets = jets_in(ordered(tracks, order), clusters_of(1000.0, *of_photon))
            assert [order[jet.seed] for jet in jets] == [0, 1]
            assert sizes(jets) == [(1, 1), (1, 0)]


def test_jets_are_in_the_order_of_their_seeds() -> None:
    tracks = tracks_of([4000.0, 3500.0, 3400.0, 6000.0], [2.0, 2.1, 2.1, 4.0], 0.0)
    jets = jets_in(tracks)
    assert [(jet.seed, jet.n_tracks) for jet in jets] == [(3, 1), (0, 3)]
    assert jets[1].pt > jets[0].pt


def test_broken_numbers_make_no_part_and_huge_momenta_count_as_one_tev() -> None:
    good = tracks_of([3e6, 9000.0], 3.0, [1.0, 1.1])
    assert jets_in(good)[0].pt == pytest.approx(1e6 + 9000, abs=0.2)
    broken = tracks_of([9000.0] * 6, 3.0, 1.0)
    for i, (name, value) in enumerate(
        (
            ("beam_tx", np.nan),
            ("beam_qop", np.nan),
            ("beam_qop", np.inf),
            ("beam_tx", np.inf),
            ("ghost_probability", np.nan),
        )
    ):
        broken[name][i] = value
    clusters = clusters_of([np.nan, 1000.0, 1000.0, np.inf], 3.0, 1.0, e19=[0.9, np.nan, 0.9, 0.9], seed=[1, 2, 3, 4])
    clusters["x"][2] = np.nan
    (jet,) = jets_in(broken, clusters)
    assert (jet.n_tracks, jet.n_photons) == (1, 1)
    assert jet.pt == pytest.approx(1e6 + 9000, abs=0.2)
    # A track without curvature, and two along the beam.
    straight = tracks_of([9000.0] * 3, 3.0, 1.0)
    straight["beam_qop"][:2], straight["beam_tx"][1:], straight["beam_ty"][1:] = 0.0, 0.0, 0.0
    (jet,) = jets_in(straight)
    assert (jet.n_tracks, jet.pt) == (1, 1e6)


def test_sums_of_the_most_and_hardest_parts_do_not_overflow() -> None:
    """A seed of 1 TeV and all others at one edge of its cone."""
    phi = np.full(MAX_TRACKS_PER_EVENT, 1.49)
    phi[0] = 1.0
    pt = np.full(MAX_TRACKS_PER_EVENT, 1.1e6)
    tracks = tracks_of(pt, 3.0, phi)
    tracks["beam_qop"][0] = 0.0
    clusters = clusters_of(np.full(MAX_CLUSTERS_PER_EVENT, 1.2e6), 3.0, 1.49)
    (jet,) = jets_in(tracks, clusters)
    n = MAX_TRACKS_PER_EVENT + MAX_CLUSTERS_PER_EVENT
    assert sizes([jet]) == [(MAX_TRACKS_PER_EVENT, MAX_CLUSTERS_PER_EVENT)]
    assert jet.pt == pytest.approx(n * 1e6, rel=1e-7)
    assert jet.phi == pytest.approx(1.0 + 0.49 * (n - 1) / n if jet.seed == 0 else 1.49 - 0.49 / n, abs=1e-4)


def test_more_jets_than_fit_are_noted_and_the_first_ones_kept() -> None:
    eta, phi = (each.ravel() for each in np.meshgrid([2.2, 3.4], np.arange(9) * 0.69 - 3.0))
    for n, many in ((MAX_JETS_PER_EVENT, False), (MAX_JETS_PER_EVENT + 1, True)):
        pt = 20000.0 + 100.0 * np.arange(n)
        other = (tracks_of(5000.0, 3.0, 1.0), NO_CLUSTERS)
        (jets, flags), (alone, no_flags) = run_jets(
            (tracks_of(pt, eta[:n], phi[:n]), NO_CLUSTERS), other, constants={"radius": 0.1}
        )
        assert flags == (MANY if many else 0)
        assert [jet.seed for jet in jets] == list(range(n))[::-1][:MAX_JETS_PER_EVENT]
        assert (len(alone), no_flags) == (1, 0)


def _compared_in_the_chain(banks: Sequence[Sequence[RawBank]], geometry: Path | None) -> list[Jet]:
    """Compares the jets of the whole sequence with the oracle. Returns them."""
    chain = CHAIN.with_sequence("hlt1_2026")
    reference = reference_of(encode_mep(chain, banks, encoding="retina"), geometry, "hlt1_2026")
    types = {column.name: column.dtype for column in reference.sequence.columns}
    columns = {name: np.frombuffer(content, types[name]) for name, content in reference.made.items()}
    every: list[Jet] = []
    for event in range(len(banks)):
        expected = jet_oracle.find_jets(*event_of(columns, event))
        found = jets_of(columns, event)
        assert_jets_equal(found, expected)
        assert bool(columns["events.flags"][event] & MANY) == expected.more
        every += found
    return every


def test_jets_of_simulated_events_are_those_of_the_oracle() -> None:
    jets = _compared_in_the_chain(with_ecal(full_events(6, seed=31), 31), None)
    jets += _compared_in_the_chain([dense_crossing(12.0)], None)
    assert len(jets) > 5
    assert any(jet.n_tracks > 1 and jet.n_photons for jet in jets)


@pytest.mark.physics
def test_jets_of_the_real_events_are_those_of_the_oracle(shared: Path) -> None:
    jets = _compared_in_the_chain(real_events(shared, "retina"), shared / "data/lhcb-geometry")
    assert len(jets) > 5
