"""The foil of the simulated VELO: a cylinder while it is closed, planes that move with open halves."""

from __future__ import annotations

import numpy as np
import pytest

from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.geometry.velo_field import VeloField
from hltnode.processing.lhcb.geometry.velo_halves import with_positions
from hltnode.processing.lhcb.offline.simulation.response.velo_foil import Foil
from hltnode.processing.lhcb.offline.simulation.response.velo_response import VeloResponse
from hltnode.processing.offline.event_random import EventRandom
from hltnode.processing.offline.particles.columns import ParticleColumns

ROOT2 = np.sqrt(2.0)


def foil(**positions: float) -> Foil:
    return Foil.of(with_positions(VeloGeometry.builtin(), positions))


def particle(
    direction: tuple[float, float], origin: tuple[float, float, float] = (0.0, 0.0, 0.0), *, forward: bool = True
) -> ParticleColumns:
    """A particle that moves by `direction` (mm) across the beam in each mm along it."""
    pz = 1e4 if forward else -1e4
    momentum = (*(abs(pz) * np.array(direction)), pz)
    return ParticleColumns.of(np.array([origin]), np.array([momentum]), np.array([211]), np.array([1]))


@pytest.mark.parametrize("direction", [(0.1, 0.0), (0.0, -0.1), (0.06, 0.08)])
def test_a_closed_foil_is_a_cylinder(direction: tuple[float, float]) -> None:
    closed = foil()
    assert closed.z_of(particle(direction, (0.0, 0.0, 7.0))) == pytest.approx([47.0])
    assert closed.z_of(particle(direction, (0.0, 0.0, 7.0), forward=False)) == pytest.approx([-33.0])
    assert closed.starts_inside(particle(direction, (2.8, 2.8, 0.0))).tolist() == [True]
    assert closed.starts_inside(particle(direction, (2.9, 2.9, 0.0))).tolist() == [False]


@pytest.mark.parametrize(
    ("direction", "distance"),
    [
        ((0.1, 0.0), 10.0 + 4.0 * ROOT2),  # to the corner of side A
        ((-0.1, 0.0), 10.0 + 4.0 * ROOT2),
        ((0.1 / ROOT2, 0.1 / ROOT2), 4.0 + 10.0 / ROOT2),  # across a plane of side A
        ((0.1 / ROOT2, -0.1 / ROOT2), 4.0 + 10.0 / ROOT2),
        ((-0.1 / ROOT2, 0.1 / ROOT2), 4.0 + 10.0 / ROOT2),  # and of side C
        ((-0.1 / ROOT2, -0.1 / ROOT2), 4.0 + 10.0 / ROOT2),
    ],
)
@pytest.mark.parametrize("forward", [True, False])
def test_the_foil_of_an_open_velo_moves_with_its_halves(
    direction: tuple[float, float], distance: float, forward: bool
) -> None:
    z = foil(velo_opening=20.0).z_of(particle(direction, (0.0, 0.0, 5.0), forward=forward))
    assert z == pytest.approx([5.0 + (10.0 if forward else -10.0) * distance], rel=1e-5)


def test_each_half_moves_its_own_planes() -> None:
    moved = foil(velo_a_x=3.0, velo_c_y=-1.0)
    to_a, to_c = (moved.z_of(particle((sign * 0.1, 0.0)))[0] for sign in (1, -1))
    # Along x the planes of a half meet at its corner, 4 sqrt(2) from the beam; moved along y, the nearer one counts.
    assert to_a == pytest.approx(10.0 * (3.0 + 4.0 * ROOT2), rel=1e-5)
    assert to_c == pytest.approx(10.0 * (4.0 * ROOT2 - 1.0), rel=1e-5)


def test_particles_that_start_behind_the_open_foil_do_not_cross_it() -> None:
    opened = foil(velo_opening=20.0)
    along = (0.1, 0.0)
    places = {(15.6, 0.0): True, (15.7, 0.0): False, (0.0, -15.6): True, (0.0, -15.7): False, (0.0, 15.7): False}
    for (x, y), inside in places.items():
        assert opened.starts_inside(particle(along, (x, y, 0.0))).tolist() == [inside], (x, y)


@pytest.mark.parametrize(("opening", "closed"), [(0.98, True), (1.02, False)])
def test_halves_within_half_a_millimetre_of_their_places_count_as_closed(opening: float, closed: bool) -> None:
    assert (foil(velo_opening=opening).planes is None) == closed


def test_particles_that_stay_near_the_beam_reach_no_foil_sideways() -> None:
    assert foil(velo_opening=20.0).z_of(particle((0.0, 0.0))).tolist() == [np.inf]


def test_particles_scatter_where_they_cross_the_foil_of_an_open_velo() -> None:
    """These cross the foil in front of the last modules, and no sensor: the foil alone changes their slopes."""
    n, slope = 50, 0.0325 / ROOT2
    momentum = np.tile([slope * 1000.0, slope * 1000.0, 1000.0], (n, 1))
    flying = ParticleColumns.of(np.zeros((n, 3)), momentum, np.full(n, 211), np.ones(n, np.int64))
    response = VeloResponse(with_positions(VeloGeometry.builtin(), {"velo_opening": 58.0}), VeloField(0.0, 0.0))
    fired = response.fire(EventRandom([np.random.default_rng(2)]), np.zeros(n, np.int64), flying)
    assert not len(fired.particle)
    assert (fired.kick != 0).all()
    assert fired.kick_z / fired.kick == pytest.approx((4.0 + 29.0 / ROOT2) / 0.0325, rel=1e-4)
