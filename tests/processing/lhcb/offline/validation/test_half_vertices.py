"""Vertices of the VELO halves in the checker: which half sees a collision, and what counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from hltnode.processing.lhcb.offline.validation.checker.categories import Stage
from hltnode.processing.lhcb.offline.validation.checker.checker import Checker
from hltnode.processing.lhcb.offline.validation.checker.half_vertices import HalfVertices, tracks_of_halves
from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable
from hltnode.processing.lhcb.offline.validation.checker.tracks import TrackTable
from hltnode.processing.lhcb.offline.validation.reports.report import format_report
from hltnode.protocol.lhcb.truth import McParticle, McVertex

PLACES = ((0.0, 0.0, 10.0), (0.0, 0.0, -30.0))


def particle(key: int, modules: Sequence[int], place: tuple[float, float, float], per_module: int = 1) -> McParticle:
    """A particle with some hits in each of these modules."""
    ids = tuple(2 << 28 | 4 * module << 18 | 256 * key + i for module in modules for i in range(per_module))
    x, y, z = place
    return McParticle(key=key, pid=211, p=1e4, pt=1e3, eta=3.0, phi=0.0, vertex_x=x, vertex_y=y, vertex_z=z,
                      has_velo=True, velo_ids=ids)  # fmt: skip


def table(*events: Sequence[McParticle]) -> ParticleTable:
    return ParticleTable.of_particles(events)


@pytest.mark.parametrize(
    ("modules", "per_module", "expected"),
    [
        ((10, 12, 14), 1, [1, 0]),
        ((11, 13, 15), 1, [0, 1]),
        ((10, 12), 2, [0, 0]),  # four hits, but two modules
        ((10, 12, 13, 15), 1, [0, 0]),
        ((10, 12, 14, 11, 13, 15), 1, [1, 1]),
    ],
)
def test_a_half_sees_a_particle_with_hits_in_three_of_its_modules(
    modules: Sequence[int], per_module: int, expected: list[int]
) -> None:
    (counts,) = tracks_of_halves(table([particle(1, modules, PLACES[0], per_module)]), [np.array([PLACES[0]])])
    assert counts[:, 0].tolist() == expected


@pytest.mark.parametrize(
    ("off", "expected"), [(0.0, [[0, 1], [0, 0]]), (0.009, [[0, 1], [0, 0]]), (0.011, [[0, 0]] * 2)]
)
def test_particles_straight_from_a_collision_count_for_it(off: float, expected: list[list[int]]) -> None:
    x, y, z = PLACES[1]
    (counts,) = tracks_of_halves(table([particle(1, (10, 12, 14), (x + off, y, z))]), [np.array(PLACES)])
    assert counts.tolist() == expected


def test_events_do_not_mix() -> None:
    counts = tracks_of_halves(
        table([], [particle(1, (10, 12, 14), PLACES[0])], [particle(1, (11, 13, 15), PLACES[0])]),
        [np.array([PLACES[0]]), np.zeros((0, 3)), np.array(PLACES)],
    )
    assert [it.tolist() for it in counts] == [[[0], [0]], [[], []], [[0, 0], [1, 0]]]


def vertices(*z: float) -> np.ndarray:
    return np.array([(0.1, 0.2, at, 4e-4, 4e-4, 0.01) for at in z], np.float32).reshape(-1, 6)


def test_collisions_found_by_each_half_and_by_both() -> None:
    """Side C sees both collisions and finds the first; side A sees and finds the first, and has a false vertex."""
    particles = [
        *(particle(i, (10, 12, 14), PLACES[0]) for i in range(4)),
        *(particle(4 + i, (10, 12, 14), PLACES[1]) for i in range(4)),
        *(particle(8 + i, (11, 13, 15), PLACES[0]) for i in range(5)),
        *(particle(13 + i, (11, 13, 15), PLACES[1]) for i in range(3)),
    ]
    found = HalfVertices(
        by_half=(vertices(10.05), vertices(9.9, 60.0)),
        distances=np.array([[0.3, 0.1, -0.15]]),
        errors=np.array([[0.1, 0.1, 0.3]]),
    )
    nothing = TrackTable.of_events([[]])
    collisions = [McVertex(9, *PLACES[0]), McVertex(7, *PLACES[1])]
    checker = Checker()
    checker.add(table(particles), {Stage.VELO: nothing}, [np.zeros((0, 6), np.float32)], [collisions], halves=[found])
    result = checker.result()["halves"]
    names = ("reconstructible", "reconstructed", "efficiency", "false_rate")
    assert [result["c"][name] for name in names] == [2, 1, 0.5, 0.0]
    assert [result["a"][name] for name in names] == [1, 1, 1.0, 0.5]
    assert [result["both"][name] for name in (*names[:3], "pairs")] == [1, 1, 1.0, 1]
    distance = result["both"]["distance"]
    assert distance["dx"] == {"median": 300.0, "median_error": 0.0, "width": 0.0}
    assert distance["pull_z"]["median"] == pytest.approx(-0.5)
    text = format_report(checker)
    assert "Side C               :  0.500 (     1/     2)" in text
    assert "A minus C in x       : median 300.0 +- 0.0 µm, width 0.0 µm, 1 pairs" in text


def test_both_halves_must_find_a_collision() -> None:
    particles = [particle(i, (10, 12, 14, 11, 13, 15), PLACES[0]) for i in range(4)]
    nothing = TrackTable.of_events([[]])
    right, wrong = vertices(10.0), vertices(12.0)
    for by_half, expected in (((right, right), 1), ((right, wrong), 0), ((wrong, right), 0), ((right, vertices()), 0)):
        none = np.zeros((0, 3))
        found = HalfVertices(by_half=by_half, distances=none, errors=none)
        checker = Checker()
        checker.add(
            table(particles), {Stage.VELO: nothing}, [np.zeros((0, 6), np.float32)], [[McVertex(4, *PLACES[0])]],
            halves=[found],
        )  # fmt: skip
        result = checker.result()["halves"]["both"]
        assert (result["reconstructible"], result["reconstructed"]) == (1, expected)
        assert result["distance"]["dx"] is None


def test_events_without_truth_of_collisions_give_distances_only() -> None:
    found = HalfVertices(by_half=(vertices(10.0), vertices(10.0)), distances=np.ones((1, 3)), errors=np.ones((1, 3)))
    checker = Checker()
    checker.add(
        table([]), {Stage.VELO: TrackTable.of_events([[]])}, [np.zeros((0, 6), np.float32)], [None], halves=[found]
    )
    result = checker.result()["halves"]
    assert (result["c"]["reconstructible"], result["c"]["false_rate"]) == (0, None)
    assert result["both"]["distance"]["dz"]["median"] == 1000.0
