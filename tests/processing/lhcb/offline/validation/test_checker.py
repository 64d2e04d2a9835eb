import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypedDict, Unpack

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.lhcb.offline.validation.checker.categories import Stage
from hltnode.processing.lhcb.offline.validation.checker.checker import Checker
from hltnode.processing.lhcb.offline.validation.checker.matching import match_tracks
from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable
from hltnode.processing.lhcb.offline.validation.checker.tracks import TrackTable
from hltnode.processing.lhcb.offline.validation.reference.forward_tracks import ForwardTracksError, read_forward_tracks
from hltnode.processing.lhcb.offline.validation.reports.report import format_report
from hltnode.processing.offline.checks.counts import CategoryCounts
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.truth import McParticle, McVertex, decode_particles, decode_vertices
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.raw_bank import RawBank

LhcbIds = NDArray[np.uint32]

NO_PVS = np.empty((0, 6), dtype=np.float32)
CATEGORIES = [
    "velo",
    "velo_eta25",
    "long",
    "long_p5",
    "long_from_b",
    "long_from_b_p5",
    "long_strange",
    "electrons_long",
]


class Flags(TypedDict, total=False):
    """Flags of a McParticle."""

    has_velo: bool
    has_ut: bool
    has_scifi: bool
    is_long: bool
    from_b: bool
    from_strange: bool
    from_signal: bool


def particle(
    ids: range | tuple[int, ...], *, p: float = 10_000.0, eta: float = 3.0, pid: int = 211, **flags: Unpack[Flags]
) -> McParticle:
    return McParticle(
        key=1,
        pid=pid,
        p=p,
        pt=p / np.cosh(eta),
        eta=eta,
        phi=0.0,
        vertex_x=0.0,
        vertex_y=0.0,
        vertex_z=0.0,
        velo_ids=tuple(0x20000000 + i for i in ids),
        **(Flags(has_velo=True, is_long=True) | flags),
    )


def track(*ids: int) -> LhcbIds:
    return np.array([0x20000000 + i for i in ids], dtype=np.uint32)


def check(
    tracks: Sequence[LhcbIds],
    particles: Sequence[McParticle],
    pvs: NDArray[np.float32] = NO_PVS,
    vertices: Sequence[McVertex] | None = None,
) -> Checker:
    checker = Checker()
    add_event(checker, tracks, pvs, particles, vertices)
    return checker


def add_event(
    checker: Checker,
    tracks: Sequence[LhcbIds],
    pvs: NDArray[np.float32],
    particles: Sequence[McParticle],
    vertices: Sequence[McVertex] | None,
) -> None:
    table = ParticleTable.of_particles([particles])
    checker.add(table, {Stage.VELO: TrackTable.of_events([tracks])}, [pvs], [vertices])


def counts_of(checker: Checker, name: str) -> CategoryCounts:
    return checker.stages[Stage.VELO].category(name)


def category(checker: Checker, name: str) -> dict[str, float | None]:
    found: dict[str, float | None] = checker.result()["velo"]["categories"][name]
    return found


def test_a_track_with_seventy_per_cent_of_its_hits_from_a_particle_belongs_to_it() -> None:
    checker = check([track(0, 1, 2, 3, 4, 5, 6, 90, 91, 92)], [particle(range(10))])
    assert category(checker, "long") == {
        "reconstructible": 1,
        "reconstructed": 1,
        "efficiency": 1.0,
        "clone_rate": 0.0,
        "hit_purity": pytest.approx(0.7),
        "hit_efficiency": pytest.approx(0.7),
        "hit_efficiency_first3": 1.0,
        "hit_efficiency_last": 0.0,
    }
    assert checker.result()["velo"]["ghost_rate"] == 0.0


def test_a_track_with_fewer_is_a_ghost() -> None:
    checker = check([track(0, 1, 90)], [particle(range(10))])
    assert checker.result()["velo"]["ghost_rate"] == 1.0
    assert category(checker, "long")["efficiency"] == 0.0
    assert category(checker, "long")["hit_purity"] is None


def test_a_second_track_of_a_particle_is_a_clone_and_counts_for_purity_and_hit_efficiency() -> None:
    checker = check([track(0, 1, 2, 3, 4, 5), track(6, 7, 8)], [particle(range(10))])
    long = category(checker, "long")
    assert long["reconstructed"] == 1
    assert long["clone_rate"] == pytest.approx(0.5)
    assert long["hit_purity"] == 1.0
    assert long["hit_efficiency"] == pytest.approx((0.6 + 0.3) / 2)


def test_a_track_on_shared_hits_finds_all_their_particles() -> None:
    checker = check([track(0, 1, 2, 3)], [particle(range(4)), particle((0, 1, 2, 9))])
    assert category(checker, "long")["reconstructed"] == 2
    assert checker.result()["velo"]["ghost_rate"] == 0.0


def along_the_beam(*sensors: int) -> LhcbIds:
    """A hit on each of these sensors."""
    return track(*(sensor << 18 for sensor in sensors))


@pytest.mark.parametrize(
    ("eta", "found", "first", "last"),
    [
        (3.0, (0, 8, 16, 24), 1.0, 0.0),
        (3.0, (0, 16, 24, 32), 2 / 3, 1.0),
        (3.0, (16, 24, 32), 1 / 3, 1.0),
        (-3.0, (0, 8, 16, 24), 2 / 3, 1.0),
        (-3.0, (16, 24, 32), 1.0, 0.0),
        (-3.0, (0, 8, 16), 1 / 3, 1.0),
    ],
)
def test_first_and_last_hits_are_counted_along_the_flight(
    eta: float, found: tuple[int, ...], first: float, last: float
) -> None:
    one = replace(particle((), eta=eta), velo_ids=tuple(along_the_beam(32, 0, 16, 8, 24).tolist()))
    other = replace(particle(range(5)), key=2)
    counts = category(check([along_the_beam(*found)], [other, one]), "velo")
    assert counts["hit_efficiency_first3"] == pytest.approx(first)
    assert counts["hit_efficiency_last"] == last


def test_hits_of_another_particle_between_are_not_first_hits() -> None:
    """A particle of two hits has two first ones; hits that two particles share count for both."""
    short = replace(particle(()), velo_ids=tuple(along_the_beam(8, 16).tolist()))
    long = replace(particle(()), key=2, velo_ids=tuple(along_the_beam(0, 8, 16, 24).tolist()))
    counts = category(check([along_the_beam(8, 16)], [short, long]), "velo")
    assert counts["reconstructed"] == 2
    assert counts["hit_efficiency_first3"] == pytest.approx((1 + 2 / 3) / 2)
    assert counts["hit_efficiency_last"] == 0.5


def test_stages_after_the_velo_have_no_first_hits() -> None:
    checker = Checker()
    tracks = TrackTable.of_events([[track(0, 1, 2)]])
    checker.add(ParticleTable.of_particles([[particle(range(3))]]), {Stage.VELO: tracks, Stage.LONG: tracks})
    result = checker.result()
    assert "hit_efficiency_last" in result["velo"]["categories"]["long"]
    assert "hit_efficiency_last" not in result["long"]["categories"]["long"]
    text = format_report(checker)
    assert text.count("first three, last") == 1
    assert "hits of 02_long                                   : 100.00% 100.00% 100.00%" in text


def test_orientation_bits_do_not_prevent_the_match() -> None:
    with_bits = particle(()).velo_ids + tuple(0x20000000 | 3 << 26 | i for i in range(3))
    seen = McParticle(
        key=1,
        pid=211,
        p=10_000.0,
        pt=900.0,
        eta=3.0,
        phi=0.0,
        vertex_x=0.0,
        vertex_y=0.0,
        vertex_z=0.0,
        has_velo=True,
        velo_ids=with_bits,
    )
    assert category(check([track(0, 1, 2)], [seen]), "velo")["efficiency"] == 1.0


def test_hits_of_other_detectors_are_not_velo_hits() -> None:
    checker = check([np.array([0x30000000, 0x30000001, 0x30000002], np.uint32)], [particle(range(3))])
    assert checker.result()["velo"]["ghost_rate"] == 1.0


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (particle(range(3)), {"velo", "velo_eta25", "long", "long_p5"}),
        (particle(range(3), p=4999.0), {"velo", "velo_eta25", "long"}),
        (particle(range(3), eta=-3.0, is_long=False), {"velo"}),
        (particle(range(3), eta=5.1), {"velo"}),
        (particle(range(3), is_long=False), {"velo", "velo_eta25"}),
        (particle(range(3), has_velo=False, is_long=False), set()),
        (
            particle(range(3), from_b=True),
            {"velo", "velo_eta25", "long", "long_p5", "long_from_b", "long_from_b_p5"},
        ),
        (particle(range(3), from_strange=True, p=2000.0), {"velo", "velo_eta25", "long", "long_strange"}),
        (particle(range(3), pid=-11), {"electrons_long"}),
        (particle(range(3), pid=11, is_long=False), set()),
        (particle(range(3), pid=11, eta=5.5), set()),
    ],
)
def test_a_particle_counts_in_the_categories_it_belongs_to(one: McParticle, expected: set[str]) -> None:
    categories = check([], [one]).result()["velo"]["categories"]
    assert {name for name, counts in categories.items() if counts["reconstructible"]} == expected


def long_categories_of(one: McParticle) -> set[str]:
    checker = Checker()
    checker.add(ParticleTable.of_particles([[one]]), {Stage.LONG: TrackTable.of_events([[]])})
    categories = checker.result()["long"]["categories"]
    return {name for name, counts in categories.items() if counts["reconstructible"]}


def test_no_velo_ut_has_only_electrons_without_velo_hits() -> None:
    electron = replace(
        particle((), pid=11, has_velo=False, is_long=False, has_ut=True, has_scifi=True), scifi_ids=(0x50000001,)
    )
    assert long_categories_of(electron) == {"no_velo_ut", "no_velo_ut_p5"}
    assert long_categories_of(replace(electron, p=4999.0)) == {"no_velo_ut"}
    for other in (
        replace(electron, pid=-211),
        replace(electron, has_velo=True),
        replace(electron, has_ut=False),
        replace(electron, eta=1.9),
    ):
        assert long_categories_of(other) == set()


def test_electrons_of_the_signal_are_signal_too() -> None:
    assert "long_from_signal" in long_categories_of(particle(range(3), pid=11, from_signal=True))
    assert "long_from_signal" in long_categories_of(particle(range(3), from_signal=True))
    assert "long_from_signal" not in long_categories_of(particle(range(3), pid=11))


def test_the_result_has_exactly_the_names_of_the_contract_and_is_json() -> None:
    result = json.loads(json.dumps(check([], [], vertices=[]).result(), allow_nan=False))
    assert list(result)[:2] == ["velo", "pv"]
    assert list(result["velo"]) == ["ghost_rate", "categories"]
    assert list(result["velo"]["categories"]) == CATEGORIES
    assert list(result["pv"]) == ["reconstructible", "reconstructed", "efficiency", "false_rate"]
    assert result["velo"]["categories"]["velo"]["efficiency"] is None


def test_events_add_up() -> None:
    checker = Checker()
    add_event(checker, [track(0, 1, 2)], NO_PVS, [particle(range(3))], None)
    add_event(checker, [track(7, 8, 9)], NO_PVS, [particle(range(3)), particle(range(10, 15))], None)
    assert category(checker, "long")["efficiency"] == pytest.approx(1 / 3)
    assert counts_of(checker, "long").efficiency_per_event == pytest.approx(0.5)
    assert checker.result()["velo"]["ghost_rate"] == 0.5
    assert checker.result()["pv"] is None


def pv(z: float, sigma: float = 0.1) -> list[float]:
    return [0.0, 0.0, z, sigma**2, sigma**2, sigma**2]


def test_a_vertex_within_five_sigma_of_a_collision_finds_it() -> None:
    truth = [McVertex(4, 0, 0, 10.0), McVertex(10, 0, 0, 50.0), McVertex(3, 0, 0, -20.0)]
    vertices = np.array([pv(10.49), pv(50.6), pv(-20.0), pv(10.0)], dtype=np.float32)
    assert check([], [], vertices, truth).result()["pv"] == {
        "reconstructible": 2,
        "reconstructed": 1,
        "efficiency": 0.5,
        "false_rate": 0.25,
    }


def test_a_vertex_belongs_to_the_nearest_collision_only() -> None:
    truth = [McVertex(9, 0, 0, 0.0), McVertex(9, 0, 0, 0.2)]
    result = check([], [], np.array([pv(0.05)], dtype=np.float32), truth).result()["pv"]
    assert (result["reconstructed"], result["false_rate"]) == (1, 0.0)


def test_vertices_of_an_event_without_collisions_are_false() -> None:
    assert check([], [], np.array([pv(0.0)], dtype=np.float32), []).result()["pv"]["false_rate"] == 1.0


def test_the_report_has_the_layout_of_allen() -> None:
    text = format_report(check([track(0, 1, 2), track(7, 8, 9)], [particle(range(4))], NO_PVS, [McVertex(5, 0, 0, 0)]))
    lines = text.splitlines()
    assert lines[0] == "velo_validator validation:"
    # Lines of a reference file, with other numbers.
    reference = "TrackChecker output                               :      2302/   246782   0.93% ghosts"
    assert lines[1] == reference.replace("     2302/   246782   0.93%", "        1/        2  50.00%")
    reference = (
        "03_long_P>5GeV                                    :     36627/    36779  99.59% ( 99.64%),"
        "       444 (  1.20%) clones, pur  99.80%, hit eff  98.33%"
    )
    (found,) = (line for line in lines if line.startswith("03_"))
    assert found == (
        "03_long_P>5GeV                                    :         1/        1 100.00% (100.00%),"
        "         0 (  0.00%) clones, pur 100.00%, hit eff  75.00%"
    )
    assert len(found) == len(reference)
    assert "All                  :  0.000 (     0/     1)" in lines
    assert not any(line.startswith("06_long_fromB") for line in lines)
    assert "no truth" in format_report(check([], []))


def real_events(shared: Path) -> list[list[RawBank]]:
    path = shared / "data" / "lhcb-minbias-mdf" / "minbias_1f258735_retina3_mc2_ev6001_6007.mdf"
    return [list(record.banks()) for record in iter_records(path.read_bytes())]


@pytest.mark.physics
def test_tracks_and_vertices_made_from_the_truth_of_real_events_are_all_correct(shared: Path) -> None:
    checker = Checker()
    for banks in real_events(shared):
        particles = decode_particles(banks)
        vertices = decode_vertices(next(bank for bank in banks if bank.type == LhcbBankType.MC_VERTICES))
        tracks = [np.array(p.velo_ids, dtype=np.uint32) for p in particles if p.has_velo]
        pvs = np.array([(v.x, v.y, v.z, 0.01, 0.01, 0.01) for v in vertices if v.n_tracks >= 4], dtype=np.float32)
        add_event(checker, tracks, pvs, particles, vertices)
    result = checker.result()
    assert result["velo"]["ghost_rate"] == 0.0
    counts = result["velo"]["categories"]
    # Numbers of particles: docs/physics/validation.md.
    assert counts["velo_eta25"]["reconstructible"] == 651
    assert counts["long"]["reconstructible"] == 374
    assert counts["long_p5"]["reconstructible"] == 244
    for name in CATEGORIES:
        if counts[name]["reconstructible"]:
            assert counts[name]["efficiency"] == 1.0
            assert counts[name]["hit_efficiency"] > 0.98
    assert result["pv"] == {"reconstructible": 36, "reconstructed": 36, "efficiency": 1.0, "false_rate": 0.0}


VELO, UT, SCIFI = 0x20000000, 0x30000000, 0x50000000


def hits(detector: int, *ids: int) -> tuple[int, ...]:
    return tuple(detector + i for i in ids)


def seen(
    key: int, velo: Iterable[int] = (), ut: Iterable[int] = (), scifi: Iterable[int] = (), mother: int = -1
) -> McParticle:
    return McParticle(
        key=key, mother_key=mother, pid=211, p=1e4, pt=900.0, eta=3.0, phi=0.0, vertex_x=0.0, vertex_y=0.0,
        vertex_z=0.0, velo_ids=hits(VELO, *velo), ut_ids=hits(UT, *ut), scifi_ids=hits(SCIFI, *scifi),
    )  # fmt: skip


def matched(track_ids: Sequence[int], *particles: McParticle) -> list[int]:
    tracks = TrackTable.of_events([[np.array(track_ids, dtype=np.uint32)]])
    found: list[int] = match_tracks(tracks, ParticleTable.of_particles([particles])).particle.tolist()
    return found


def test_a_long_track_needs_seventy_per_cent_of_its_hits_in_velo_and_in_scifi() -> None:
    one = seen(1, velo=range(5), scifi=range(10))
    good = hits(VELO, 0, 1, 2, 3, 90) + hits(SCIFI, *range(7), 90, 91, 92)
    assert matched(good, one) == [0]
    assert matched(hits(VELO, 0, 1, 2, 90, 91) + hits(SCIFI, *range(10)), one) == []
    assert matched(hits(VELO, *range(5)) + hits(SCIFI, *range(6), 90, 91, 92, 93), one) == []


def test_one_ut_hit_of_an_upstream_track_may_be_wrong_and_none_matters_on_a_long_one() -> None:
    one = seen(1, velo=range(5), ut=range(4), scifi=range(10))
    velo = hits(VELO, *range(5))
    assert matched(velo + hits(UT, 0, 1, 90), one) == [0]
    assert matched(velo + hits(UT, 0, 90, 91), one) == []
    assert matched(velo + hits(UT, 90, 91, 92) + hits(SCIFI, *range(10)), one) == [0]


def test_a_daughter_in_the_scifi_and_her_mother_in_the_velo_are_both_found() -> None:
    mother, daughter = seen(7, velo=range(4)), seen(9, scifi=range(10), mother=7)
    unrelated = seen(11, scifi=range(20, 30), mother=1)
    track_ids = hits(VELO, *range(4)) + hits(SCIFI, *range(10))
    assert matched(track_ids, mother, unrelated, daughter) == [0, 2]
    assert matched(track_ids, mother, seen(9, scifi=range(10))) == []


def test_daughters_of_one_mother_do_not_add_up_and_none_takes_the_track_of_another() -> None:
    # A particle that interacts in the VELO: the hits of the track belong to the mother and one daughter.
    mother = seen(7, velo=range(4))
    first, second = seen(9, scifi=range(5), mother=7), seen(10, scifi=range(5, 10), mother=7)
    velo = hits(VELO, *range(4))
    assert matched(velo + hits(SCIFI, *range(10)), mother, first, second) == []
    most, least = seen(9, scifi=range(9), mother=7), seen(10, scifi=range(9, 10), mother=7)
    for daughters in ((most, least), (least, most)):
        found = [(mother, *daughters)[row] for row in matched(velo + hits(SCIFI, *range(10)), mother, *daughters)]
        assert found == [mother, most]


def test_hits_of_a_mother_and_daughter_are_not_counted_above_those_of_the_track() -> None:
    mother, daughter = seen(7, velo=range(4)), seen(9, velo=range(4), scifi=range(10), mother=7)
    tracks = TrackTable.of_events([[np.array(hits(VELO, *range(4)) + hits(SCIFI, *range(10)), np.uint32)]])
    matches = match_tracks(tracks, ParticleTable.of_particles([[mother, daughter]]))
    assert matches.purity.tolist() == [1.0, 1.0]


def test_ids_of_the_old_scheme_are_those_of_the_new_one() -> None:
    old = seen(1)
    old = McParticle(
        **{name: getattr(old, name) for name in ("key", "pid", "p", "pt", "eta", "phi")},
        vertex_x=0.0,
        vertex_y=0.0,
        vertex_z=0.0,
        velo_ids=hits(0x80000000, *range(4)),
    )
    assert matched(hits(VELO, *range(4)), old) == [0]


def test_long_tracks_of_low_momentum_are_not_in_the_second_line_of_ghosts() -> None:
    tracks = TrackTable.of_events([[track(50, 51, 52), track(60, 61, 62), track(0, 1, 2)]])
    tracks = replace(tracks, p=np.array([2900.0, 3100.0, 5000.0]), pt=np.array([900.0, 501.0, 600.0]))
    checker = Checker()
    checker.add(ParticleTable.of_particles([[particle(range(4))]]), {Stage.LONG: tracks})
    result = checker.result()["long"]
    assert result["ghost_rate"] == pytest.approx(2 / 3)
    assert result["ghost_rate_p3_pt05"] == pytest.approx(1 / 2)
    assert "for P>3GeV,Pt>0.5GeV                              :         1/        2  50.00% ghosts" in format_report(
        checker
    )


def test_muons_are_counted_by_particle_and_ghosts_by_track() -> None:
    muon, pion = particle(range(4), pid=13), particle(range(10, 14))
    pion = replace(pion, key=2)
    tracks = TrackTable.of_events([[track(0, 1, 2), track(3, 2, 1), track(10, 11, 12), track(70, 71, 72)]])
    tracks = replace(tracks, is_muon=np.array([False, True, False, True]))
    checker = Checker()
    checker.add(ParticleTable.of_particles([[muon, pion]]), {Stage.LONG: tracks})
    rates = {"muons": 1, "efficiency": 1.0, "misidentification": 0.0}
    assert checker.result()["muon"] == {
        **rates,
        "ghosts_identified": 1.0,
        "p6": rates,
        "p6_through_all_stations": rates,
    }
    assert "muon_validator" in format_report(checker)


def test_momentum_resolution_and_pull_come_from_tracks_with_momentum() -> None:
    rng = np.random.default_rng(3)
    n = 2000
    particles = [replace(particle((4 * i, 4 * i + 1, 4 * i + 2), p=2e4), key=i) for i in range(n)]
    tracks = TrackTable.of_events([[track(4 * i, 4 * i + 1, 4 * i + 2) for i in range(n)]])
    p = 2e4 / (1 + 0.01 * rng.standard_normal(n))
    tracks = replace(tracks, p=p, pt=p / 10, qop_error=np.full(n, 0.01 / 2e4))
    checker = Checker()
    checker.add(ParticleTable.of_particles([particles]), {Stage.LONG: tracks})
    found = checker.result()["resolution"]["long"]
    assert found["dp_over_p"]["width"] == pytest.approx(1.0, abs=0.06)
    assert found["pull_qop"]["width"] == pytest.approx(1.0, abs=0.06)
    assert found["pull_qop"]["entries"] == n


def test_isolated_and_close_collisions_are_counted_separately_and_allens_numerator_is_named() -> None:
    truth = [McVertex(9, 0, 0, 0.0), McVertex(9, 0, 0, 9.0), McVertex(9, 0, 0, 60.0), McVertex(2, 0, 0, -60.0)]
    vertices = np.array([pv(0.0), pv(60.0), pv(60.1), pv(-60.0)], dtype=np.float32)
    details = check([], [], vertices, truth).result()["pv_details"]
    assert (details["isolated"]["reconstructible"], details["isolated"]["reconstructed"]) == (1, 1)
    assert (details["close"]["reconstructible"], details["close"]["reconstructed"]) == (2, 1)
    assert details["clones"] == 1
    binned = check([], [], vertices, truth).histograms()["pv"]
    for kind, expected in (("isolated", (1, 1)), ("close", (2, 1))):
        for counts in binned[kind].values():
            assert (sum(counts["reconstructible"]), sum(counts["reconstructed"])) == expected
    assert details["efficiency_as_allen_counts"] == 1.0
    assert check([], [], vertices, truth).result()["pv"]["efficiency"] == pytest.approx(2 / 3)


def test_binned_sums_add_up_to_the_numbers() -> None:
    checker = check([track(0, 1, 2), track(1, 2, 3), track(50, 51, 52)], [particle(range(4)), particle(range(9, 12))])
    histograms = json.loads(json.dumps(checker.histograms()))
    for variable in ("p", "pt", "eta", "phi"):
        counts = histograms["stages"]["velo"]["categories"]["long"][variable]
        assert len(counts["edges"]) == len(counts["reconstructible"]) + 1
        assert [sum(counts[name]) for name in ("reconstructible", "reconstructed", "tracks", "clones")] == [2, 1, 2, 1]


def forward_dumps(shared: Path) -> list[Path]:
    folder = shared / "data" / "lhcb-minbias-reference" / "forward_tracks"
    return [folder / f"6718861_{event}.bin" for event in range(6001, 6008)]


@pytest.mark.physics
def test_lhcbs_forward_tracks_have_their_counts_and_all_match_on_their_velo_hits(shared: Path) -> None:
    tracks = read_forward_tracks(forward_dumps(shared))
    # Counts: docs/physics/validation.md.
    assert np.bincount(tracks.event).tolist() == [43, 5, 18, 19, 32, 5, 11]
    particles = ParticleTable.of_particles([decode_particles(banks) for banks in real_events(shared)])
    segments = tracks.hits_of(2)
    assert (match_tracks(segments, particles).purity >= 0.7).all()
    checker = Checker()
    checker.add(particles, {Stage.VELO: segments, Stage.LONG: tracks})
    result = checker.result()
    assert result["velo"]["ghost_rate"] == 0.0
    # With SciFi hits, eight tracks have less than 70 % of them from one particle.
    assert result["long"]["ghost_rate"] == pytest.approx(8 / 133)
    assert result["long"]["categories"]["long"]["reconstructed"] == 121
    # All ten events of that kind have 1.07 %.
    assert result["resolution"]["long"]["dp_over_p"]["width"] == pytest.approx(0.92, abs=0.1)


@pytest.mark.parametrize("change", [lambda b: b[:-4], lambda b: b + bytes(4), lambda b: b[:-1], lambda b: b""])
def test_a_damaged_dump_of_forward_tracks_is_refused_by_name(
    shared: Path, tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "damaged.bin"
    path.write_bytes(change(forward_dumps(shared)[1].read_bytes()))
    with pytest.raises(ForwardTracksError, match=r"damaged\.bin"):
        read_forward_tracks([path])
