"""Results of the checker for long tracks besides efficiencies: losses, curves, downstream particles, decays, muons."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hltnode.processing.lhcb.offline.validation.checker.categories import Stage
from hltnode.processing.lhcb.offline.validation.checker.checker import Checker
from hltnode.processing.lhcb.offline.validation.checker.decays import DECAYS, VertexTable
from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable
from hltnode.processing.lhcb.offline.validation.checker.tracks import TrackStates, TrackTable
from hltnode.processing.lhcb.offline.validation.reports.report import format_report
from hltnode.processing.lhcb.secondary_vertices.collections import VertexKind
from hltnode.processing.offline.checks.mass_peak import fit_peak
from hltnode.protocol.lhcb.lhcb_id import SciFiChannel, scifi_channel_id, scifi_lhcb_id
from hltnode.protocol.lhcb.truth import McParticle, McVertex

N_SCIFI = 12


def velo_ids(number: int) -> tuple[int, ...]:
    return tuple(0x20000000 + 100 * number + i for i in range(4))


def ut_ids(number: int) -> tuple[int, ...]:
    return tuple(0x30000000 + 100 * number + i for i in range(4))


def scifi_ids(number: int, n: int = N_SCIFI) -> tuple[int, ...]:
    """A hit in each of the first n layers."""
    layer = np.arange(n, dtype=np.uint32)
    zero = np.zeros(n, np.uint32)
    channel = SciFiChannel(layer // 4 + 1, layer % 4, zero, zero, zero, zero, zero + np.uint32(number))
    return tuple(scifi_lhcb_id(scifi_channel_id(channel)).tolist())


def long_particle(number: int, **values: Any) -> McParticle:
    fields: dict[str, Any] = {
        **{"key": number, "pid": 211, "p": 10_000.0, "eta": 3.0, "phi": 0.0, "charge": 1.0},
        **{"vertex_x": 0.0, "vertex_y": 0.0, "vertex_z": 0.0, "velo_ids": velo_ids(number)},
        **{"ut_ids": ut_ids(number), "scifi_ids": scifi_ids(number)},
        **{"is_long": True, "is_down": True, "has_velo": True, "has_ut": True, "has_scifi": True},
    } | values
    return McParticle(pt=fields["p"] / np.cosh(fields["eta"]), **fields)


def velo_tracks(*numbers: int) -> TrackTable:
    return TrackTable.of_events([[np.array(velo_ids(n), np.uint32) for n in numbers]])


def ut_tracks(*numbers: int) -> TrackTable:
    return TrackTable.of_events([[np.array(velo_ids(n) + ut_ids(n), np.uint32) for n in numbers]])


def long_tracks(*numbers: int) -> TrackTable:
    return TrackTable.of_events([[np.array(velo_ids(n) + ut_ids(n) + scifi_ids(n), np.uint32) for n in numbers]])


def test_a_lost_long_particle_counts_for_the_first_stage_that_has_not_found_it() -> None:
    particles = [
        long_particle(1),
        long_particle(2),
        long_particle(3),
        long_particle(4, has_ut=False, ut_ids=()),
        long_particle(5, scifi_ids=scifi_ids(5, 8)),
        long_particle(6),
    ]
    checker = Checker()
    checker.add(
        ParticleTable.of_particles([particles]),
        {Stage.VELO: velo_tracks(1, 3, 4, 5, 6), Stage.UT: ut_tracks(1, 5, 6), Stage.LONG: long_tracks(1)},
    )
    assert checker.result()["losses"]["long_p5"] == {
        "reconstructible": 6,
        "found": 1,
        "no_velo_track": 1,
        "no_ut_track": 1,
        "no_ut_hits": 1,
        "few_scifi_layers": 1,
        "no_scifi_part": 1,
    }
    assert "hits in fewer than 9 SciFi layers" in format_report(checker)


def test_without_ut_tracks_nothing_is_lost_in_the_ut() -> None:
    checker = Checker()
    table = ParticleTable.of_particles([[long_particle(1), long_particle(2)]])
    checker.add(table, {Stage.VELO: velo_tracks(1, 2), Stage.LONG: long_tracks(1)})
    losses = checker.result()["losses"]["long"]
    assert (losses["no_ut_hits"], losses["no_ut_track"], losses["no_scifi_part"]) == (0, 0, 1)


def with_quality(*qualities: float) -> tuple[ParticleTable, dict[Stage, TrackTable]]:
    """Particle 1 with this number of tracks, and one track of particle 9, which is not in the truth."""
    tracks = replace(long_tracks(*([1] * (len(qualities) - 1)), 9), cuts={"quality": np.array(qualities)})
    return ParticleTable.of_particles([[long_particle(1), long_particle(2)]]), {Stage.LONG: tracks}


def test_the_curve_says_what_a_tighter_cut_would_find_and_ends_at_the_operating_point() -> None:
    checker = Checker()
    checker.add(*with_quality(0.3, 0.6, 0.8))
    curve = checker.result()["curves"]["long"]["quality"]
    at = {limit: i for i, limit in enumerate(np.round(curve["limit"], 2).tolist())}
    efficiency = curve["categories"]["long_p5"]["efficiency"]
    assert [efficiency[at[limit]] for limit in (0.2, 0.3, 0.8, 1.0)] == [0.0, 0.5, 0.5, 0.5]
    assert [curve["ghosts"][at[limit]] for limit in (0.6, 0.78, 0.8, 1.0)] == [0, 0, 1, 1]
    assert [curve["tracks"][at[limit]] for limit in (0.2, 0.3, 0.6, 1.0)] == [0, 1, 2, 3]
    assert curve["ghost_rate"][at[0.2]] is None
    assert curve["operating_point"]["ghost_rate"] == curve["ghost_rate"][-1] == pytest.approx(1 / 3)
    assert curve["operating_point"]["efficiency"]["long_p5"] == 0.5
    assert "quality / largest that its search keeps" in format_report(checker)


def test_a_curve_of_least_hits_begins_with_the_most_hits() -> None:
    checker = Checker()
    tracks = replace(velo_tracks(1, 2), cuts={"hits": np.array([3.0, 20.0])})
    checker.add(ParticleTable.of_particles([[long_particle(1), long_particle(2)]]), {Stage.VELO: tracks})
    curve = checker.result()["curves"]["velo"]["hits"]
    assert curve["limit"][0] > curve["limit"][-1] == 3.0
    assert curve["categories"]["long"]["efficiency"][0] == 0.5
    assert curve["categories"]["long"]["efficiency"][-1] == 1.0


def test_downstream_particles_have_no_velo_hit_and_their_hits_count_only_on_long_tracks() -> None:
    down = {"has_velo": False, "velo_ids": (), "is_long": False, "mother_key": 50, "mother_pid": 310}
    particles = [
        long_particle(1),
        long_particle(2, **down),
        long_particle(3, **down, pid=11),
        long_particle(4, **down | {"velo_ids": velo_ids(4)[:1]}),
    ]
    # The long track of particle 1 has taken four SciFi hits of particle 2.
    ids = np.array(velo_ids(1) + ut_ids(1) + scifi_ids(1)[:8] + scifi_ids(2)[8:], np.uint32)
    checker = Checker()
    checker.add(ParticleTable.of_particles([particles]), {Stage.LONG: TrackTable.of_events([[ids]])})
    found = checker.result()["downstream"]
    assert found["from_ks"]["particles"] == found["all"]["particles"] == 1
    assert found["from_ks"]["ut"] == {"hits": 4, "unused": 4, "unused_rate": 1.0}
    assert found["from_ks"]["scifi"] == {"hits": 12, "unused": 8, "unused_rate": pytest.approx(2 / 3)}
    assert found["electrons"]["particles"] == 1
    assert found["from_lambda"]["particles"] == 0
    assert "Downstream particles" in format_report(checker)


def test_downstream_tracks_are_counted_by_category_with_ghosts_and_momentum() -> None:
    down = {"has_velo": False, "velo_ids": (), "is_long": False}
    particles = [
        long_particle(1, **down, from_strange=True),
        long_particle(2, **down, from_strange=True, p=4000.0),
        long_particle(3, **down),
        long_particle(4, **down, pid=11),
        long_particle(5, **down, eta=5.5),
        long_particle(6, from_strange=True),
        long_particle(7, **down | {"has_ut": False}),
    ]
    # The last track has two UT hits of particle 1, and two of particle 3.
    ids = [np.array(ut_ids(n) + scifi_ids(n), np.uint32) for n in (1, 3)]
    ids.append(np.array(ut_ids(1)[:2] + ut_ids(3)[:2] + scifi_ids(1), np.uint32))
    tracks = replace(TrackTable.of_events([ids]), p=np.array([10_200.0, 9_900.0, 5000.0]))
    checker = Checker()
    table = ParticleTable.of_particles([particles])
    checker.add(table, {Stage.LONG: long_tracks(6)}, downstream=tracks)
    found = checker.result()["downstream"]["tracks"]
    counts = {name: (of["found"], of["particles"]) for name, of in found["efficiency"].items()}
    assert counts == {"all": (2, 3), "all_p5": (2, 2), "strange": (1, 2), "strange_p5": (1, 1)}
    assert (found["ghosts"], found["tracks"], found["ghost_rate"]) == (1, 3, pytest.approx(1 / 3))
    assert found["momentum"]["tracks"] == 2
    assert found["momentum"]["median"] == pytest.approx(0.005)
    assert found["momentum"]["size_68"] == pytest.approx(0.01 + 0.68 * 0.01)
    assert "Downstream tracks (UT and SciFi):" in format_report(checker)


def test_decays_behind_the_velo_are_found_by_vertices_of_downstream_tracks() -> None:
    down = {"has_velo": False, "velo_ids": (), "is_long": False, "mother_pid": 310, "vertex_z": 1000.0}
    particles = [
        long_particle(2 * i + k, pid=sign * 211, charge=sign, mother_key=1000 + i, **down)
        for i in range(3)
        for k, sign in enumerate((1, -1))
    ]
    # A pion of the fourth decay has a VELO track.
    particles += [
        long_particle(6, pid=211, mother_key=1003, **down),
        long_particle(7, pid=-211, charge=-1, mother_key=1003, **down | {"has_velo": True}),
    ]
    ids = [np.array(ut_ids(n) + scifi_ids(n), np.uint32) for n in (0, 1, 2, 3, 4)]
    ids.append(np.array([*(ut_ids(i)[0] for i in range(4)), *scifi_ids(5)[:6], *scifi_ids(6)[:6]], np.uint32))
    tracks = replace(TrackTable.of_events([ids]), p=np.full(6, 9000.0))
    found = VertexTable(
        tracks=np.array([(0, 1), (1, 5), (2, 3)]),
        place=np.tile([0.0, 0.0, 1010.0], (3, 1)),
        variance=np.full((3, 3), np.nan),
        kind=np.array([1, 3, 2]),
        masses={"ks": np.array([500.0, 480.0, 490.0]), "lambda": np.full(3, 1130.0)},
    )
    checker = Checker()
    no_pvs, collision = np.empty((0, 6), np.float32), McVertex(n_tracks=4, x=0.0, y=0.0, z=0.0)
    table = ParticleTable.of_particles([particles])
    checker.add(table, {}, [no_pvs], [[collision]], downstream=tracks, downstream_v0s=found)
    ks = checker.result()["downstream"]["decays"]["ks"]
    # The vertex of the second decay is no candidate of K0S, the third decay has one track.
    assert (ks["reconstructible"], ks["with_tracks"], ks["reconstructed"]) == (3, 2, 1)
    assert (ks["candidates"], ks["with_ghost"]) == (2, 1)
    assert set(ks["resolution"]) == {"dx", "dy", "dz"}
    assert ks["resolution"]["dz"]["median"] == pytest.approx(10.0, abs=2.0)
    masses = checker.result()["downstream"]["masses"]
    assert (sum(masses["ks"]["all"]), sum(masses["ks"]["true"])) == (2, 1)
    assert checker.result()["downstream"]["decays"]["lambda"]["candidates"] == 2
    assert "Decays to two downstream tracks:" in format_report(checker)


def pions_of_kaons(n: int) -> list[McParticle]:
    """Pairs of pions of n K0S, at z = 100 mm."""
    return [
        long_particle(2 * i + k, pid=sign * 211, charge=sign, mother_key=1000 + i, mother_pid=310, vertex_z=100.0)
        for i in range(n)
        for k, sign in enumerate((1, -1))
    ]


def vertices(pairs: list[tuple[int, int]], mass: list[float], kind: int = VertexKind.VERTEX_KS) -> VertexTable:
    n = len(pairs)
    return VertexTable(
        tracks=np.array(pairs, np.int64).reshape(-1, 2),
        place=np.tile([0.0, 0.0, 101.0], (n, 1)),
        variance=np.tile([0.01, 0.01, 4.0], (n, 1)),
        kind=np.full(n, int(kind)),
        masses=dict.fromkeys(DECAYS, np.array(mass)),
    )


def checked(particles: list[McParticle], tracks: TrackTable, found: VertexTable) -> Checker:
    checker = Checker()
    collision = McVertex(n_tracks=4, x=0.0, y=0.0, z=0.0)
    no_pvs = np.empty((0, 6), np.float32)
    checker.add(ParticleTable.of_particles([particles]), {Stage.LONG: tracks}, [no_pvs], [[collision]], found)
    return checker


def test_a_decay_is_found_by_a_vertex_of_the_tracks_of_both_daughters() -> None:
    # Three decays: the first has a vertex, the second two tracks without a vertex, the third one track.
    tracks = long_tracks(0, 1, 2, 3, 4)
    checker = checked(pions_of_kaons(3), tracks, vertices([(0, 1), (1, 2)], [497.0, 450.0]))
    found = checker.result()["vertices"]["secondary"]["ks"]
    assert (found["reconstructible"], found["with_tracks"], found["reconstructed"]) == (3, 2, 1)
    assert found["candidates"] == 2
    assert found["efficiency"] == pytest.approx(1 / 3)
    assert found["efficiency_with_tracks"] == 0.5
    assert found["resolution"]["dz"]["entries"] == 1
    assert found["resolution"]["dz"]["median"] == pytest.approx(1.0, abs=0.2)
    assert found["resolution"]["pull_z"]["median"] == pytest.approx(0.5, abs=0.05)
    mass = checker.result()["vertices"]["masses"]["ks"]
    assert (sum(mass["all"]), sum(mass["true"]), mass["mass"]) == (2, 1, None)


def test_vertices_of_one_charge_or_of_another_kind_are_no_candidates() -> None:
    particles = pions_of_kaons(1)
    for kind in (VertexKind.VERTEX_KS | VertexKind.VERTEX_SAME_SIGN, VertexKind.VERTEX_DIMUON):
        checker = checked(particles, long_tracks(0, 1), vertices([(0, 1)], [497.0], kind))
        assert checker.result()["vertices"]["secondary"]["ks"]["candidates"] == 0


def test_two_particles_of_different_mothers_are_no_decay() -> None:
    particles = [replace(particle, mother_key=1000 + i) for i, particle in enumerate(pions_of_kaons(1))]
    checker = checked(particles, long_tracks(0, 1), vertices([(0, 1)], [497.0]))
    assert checker.result()["vertices"]["secondary"]["ks"]["reconstructible"] == 0


def test_the_fitted_peak_has_the_mass_and_core_width_of_the_candidates_above_a_background() -> None:
    rng = np.random.default_rng(3)
    n = 400
    masses = np.concatenate([rng.normal(498.0, 3.0, n), rng.uniform(437.6, 557.6, 2 * n)])
    pairs = [(2 * i, 2 * i + 1) for i in range(n)]
    # The background consists of pairs of daughters of different decays.
    pairs += [(2 * i, (2 * i + 3) % (2 * n)) for i in range(n)] + [(2 * i + 1, (2 * i + 2) % (2 * n)) for i in range(n)]
    numbers = range(100, 100 + 2 * n)
    particles = [
        replace(particle, velo_ids=velo_ids(number), ut_ids=ut_ids(number), scifi_ids=())
        for particle, number in zip(pions_of_kaons(n), numbers, strict=True)
    ]
    checker = checked(particles, ut_tracks(*numbers), vertices(pairs, masses.tolist()))
    peak = checker.result()["vertices"]["masses"]["ks"]
    assert abs(peak["mass"] - 498.0) < 3 * peak["mass_error"]
    assert 0.1 < peak["mass_error"] < 0.4
    assert abs(peak["core_width"] - 3.0) < 3 * peak["core_width_error"]
    assert peak["signal"] == pytest.approx(n, rel=0.15)
    assert "true 497.61" in format_report(checker)


def test_no_peak_is_fitted_to_too_few_entries_or_to_a_flat_histogram() -> None:
    edges = np.linspace(400, 500, 101)
    assert fit_peak(np.zeros(100), edges, 450.0, 3.0) is None
    few = np.histogram([450.0] * 10, edges)[0].astype(float)
    assert fit_peak(few, edges, 450.0, 3.0) is None


def test_muons_above_6_gev_are_counted_apart_and_those_through_all_stations_again() -> None:
    particles = [
        long_particle(1, pid=13),
        long_particle(2, pid=-13),
        long_particle(3, pid=13, p=4000.0),
        long_particle(4),
    ]
    tracks = replace(
        long_tracks(1, 2, 3, 4),
        is_muon=np.array([True, False, False, True]),
        passes_muon_stations=np.array([True, False, True, True]),
    )
    checker = Checker()
    checker.add(ParticleTable.of_particles([particles]), {Stage.LONG: tracks})
    found = checker.result()["muon"]
    assert (found["muons"], found["efficiency"], found["misidentification"]) == (3, pytest.approx(1 / 3), 1.0)
    assert found["p6"] == {"muons": 2, "efficiency": 0.5, "misidentification": 1.0}
    assert found["p6_through_all_stations"] == {"muons": 1, "efficiency": 1.0, "misidentification": 1.0}


def test_the_impact_parameter_resolution_is_a_line_in_1_over_pt() -> None:
    """A thousand particles at each of six pT, tracks displaced in x and y by (15 + 14 / pT) µm."""
    rng = np.random.default_rng(1)
    checker = Checker()
    for inverse_pt in (0.3, 0.8, 1.3, 1.8, 2.3, 2.8):
        n = 1000
        eta = float(np.arccosh(10.0 * inverse_pt))
        events = [[long_particle(1, eta=eta)] for _ in range(n)]
        ids = np.array(velo_ids(1) + ut_ids(1) + scifi_ids(1), np.uint32)
        x, y = rng.normal(0, 1e-3 * (15 + 14 * inverse_pt), (2, n))
        flat = np.zeros((3, n))
        tracks = replace(TrackTable.of_events([[ids]] * n), states=TrackStates(x, y, *flat, *np.full((6, n), 1e-4)))
        collisions = [[McVertex(n_tracks=4, x=0.0, y=0.0, z=0.0)]] * n
        pvs = [np.empty((0, 6), np.float32)] * n
        checker.add(ParticleTable.of_particles(events), {Stage.LONG: tracks}, pvs, collisions)
    found = checker.result()["resolution"]["long"]["ip_x"]
    assert found["constant"] == pytest.approx(15, abs=2)
    assert found["per_inverse_pt"] == pytest.approx(14, abs=1.5)
    assert "/ pT [GeV] µm" in format_report(checker)


def test_pulls_of_the_impact_parameter_take_the_errors_of_x_and_y_each() -> None:
    rng = np.random.default_rng(2)
    n = 3000
    ids = np.array(velo_ids(1) + ut_ids(1) + scifi_ids(1), np.uint32)
    x, y = rng.normal(0, [[0.02], [0.06]], (2, n))
    covariance = np.zeros((6, n))
    covariance[0], covariance[3] = 0.02**2, 0.06**2
    tracks = replace(TrackTable.of_events([[ids]] * n), states=TrackStates(x, y, *np.zeros((3, n)), *covariance))
    checker = Checker()
    collisions = [[McVertex(n_tracks=4, x=0.0, y=0.0, z=0.0)]] * n
    events = [[long_particle(1)] for _ in range(n)]
    checker.add(
        ParticleTable.of_particles(events), {Stage.LONG: tracks}, [np.empty((0, 6), np.float32)] * n, collisions
    )
    found = checker.result()["resolution"]["long"]
    assert found["pull_ip_x"]["width"] == pytest.approx(1, abs=0.05)
    assert found["pull_ip_y"]["width"] == pytest.approx(1, abs=0.05)
