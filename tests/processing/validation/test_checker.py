import json
from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.validation import Checker, format_report
from hltnode.protocol.mdf import iter_records
from hltnode.protocol.raw_bank import BankType, RawBank
from hltnode.protocol.truth import McParticle, McVertex, decode_particles, decode_vertices

NO_PVS = np.empty((0, 4), dtype=np.float32)
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


def particle(ids: range | tuple[int, ...], *, p: float = 10_000.0, eta: float = 3.0, pid: int = 211, **flags: bool):
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
        **({"has_velo": True, "is_long": True} | flags),
    )


def track(*ids: int) -> np.ndarray:
    return np.array([0x20000000 + i for i in ids], dtype=np.uint32)


def check(tracks, particles, pvs=NO_PVS, vertices=None) -> Checker:
    checker = Checker()
    checker.add_event(tracks, pvs, particles, vertices)
    return checker


def category(checker: Checker, name: str) -> dict[str, float | None]:
    return checker.result()["velo"]["categories"][name]


def test_a_track_with_seventy_per_cent_of_its_hits_from_a_particle_belongs_to_it() -> None:
    checker = check([track(0, 1, 2, 3, 4, 5, 6, 90, 91, 92)], [particle(range(10))])
    assert category(checker, "long") == {
        "reconstructible": 1,
        "reconstructed": 1,
        "efficiency": 1.0,
        "clone_rate": 0.0,
        "hit_purity": pytest.approx(0.7),
        "hit_efficiency": pytest.approx(0.7),
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


def test_orientation_bits_do_not_hinder_the_match() -> None:
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


def test_hits_of_other_detectors_do_not_look_like_velo_hits() -> None:
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


def test_the_result_has_exactly_the_names_of_the_contract_and_is_json() -> None:
    result = json.loads(json.dumps(check([], [], vertices=[]).result(), allow_nan=False))
    assert list(result) == ["velo", "pv"]
    assert list(result["velo"]) == ["ghost_rate", "categories"]
    assert list(result["velo"]["categories"]) == CATEGORIES
    assert list(result["pv"]) == ["reconstructible", "reconstructed", "efficiency", "false_rate"]
    assert result["velo"]["categories"]["velo"]["efficiency"] is None


def test_events_add_up() -> None:
    checker = Checker()
    checker.add_event([track(0, 1, 2)], NO_PVS, [particle(range(3))], None)
    checker.add_event([track(7, 8, 9)], NO_PVS, [particle(range(3)), particle(range(10, 15))], None)
    assert category(checker, "long")["efficiency"] == pytest.approx(1 / 3)
    assert checker.categories["long"].efficiency_per_event == pytest.approx(0.5)
    assert checker.result()["velo"]["ghost_rate"] == 0.5
    assert checker.result()["pv"] is None


def pv(z: float, sigma: float = 0.1) -> list[float]:
    return [0.0, 0.0, z, sigma**2]


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


def test_the_report_has_a_line_per_category_and_leaves_no_number_out() -> None:
    text = format_report(check([track(0, 1, 2), track(7, 8, 9)], [particle(range(4))], NO_PVS, [McVertex(5, 0, 0, 0)]))
    assert "ghosts                    :        1/       2  50.00%" in text
    assert "Long, p > 5 GeV           :        1/       1 100.00% (100.00%),       0 (  0.00%) clones" in text
    assert "purity 100.00%, hit efficiency  75.00%" in text
    assert "found                     :        0/       1   0.00%" in text
    assert "no truth" in format_report(check([], []))


def real_events(shared: Path) -> list[list[RawBank]]:
    path = shared / "data" / "lhcb-minbias-mdf" / "minbias_1f258735_retina3_mc2_ev6001_6007.mdf"
    return [list(record.banks()) for record in iter_records(path.read_bytes())]


@pytest.mark.physics
def test_tracks_and_vertices_made_from_the_truth_of_real_events_are_all_right(shared: Path) -> None:
    checker = Checker()
    for banks in real_events(shared):
        particles = decode_particles(banks)
        vertices = decode_vertices(next(bank for bank in banks if bank.type == BankType.MC_VERTICES))
        tracks = [np.array(p.velo_ids, dtype=np.uint32) for p in particles if p.has_velo]
        pvs = np.array([(v.x, v.y, v.z, 0.01) for v in vertices if v.n_tracks >= 4], dtype=np.float32)
        checker.add_event(tracks, pvs, particles, vertices)
    result = checker.result()
    assert result["velo"]["ghost_rate"] == 0.0
    counts = result["velo"]["categories"]
    # Numbers of particles: reconstruction-facts.md 11.
    assert counts["velo_eta25"]["reconstructible"] == 651
    assert counts["long"]["reconstructible"] == 374
    assert counts["long_p5"]["reconstructible"] == 244
    for name in CATEGORIES:
        if counts[name]["reconstructible"]:
            assert counts[name]["efficiency"] == 1.0
            assert counts[name]["hit_efficiency"] > 0.98
    assert result["pv"] == {"reconstructible": 36, "reconstructed": 36, "efficiency": 1.0, "false_rate": 0.0}
