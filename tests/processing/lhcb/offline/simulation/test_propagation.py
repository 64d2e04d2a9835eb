import numpy as np
import pytest

from hltnode.processing.lhcb.geometry.magnet import DOWN, MEV_PER_TESLA_MM, UP, Magnet
from hltnode.processing.lhcb.offline.simulation.transport.propagation import FIRST_Z, Flights, Propagation
from hltnode.processing.offline.event_random import EventRandom

LAYER_Z = np.array([2327.5, 2642.5, 7826.0, 8520.0, 9403.0])
PION_MASS = 139.57


def flights(n: int, *, lowest: float = 2000.0, highest: float = 30_000.0) -> Flights:
    rng = np.random.default_rng(5)
    tx, ty = rng.uniform(-0.25, 0.25, n), rng.uniform(-0.2, 0.2, n)
    z = np.full(n, FIRST_Z)
    charge = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    p = rng.uniform(lowest, highest, n)
    event = np.zeros(n, dtype=np.int64)
    return Flights(event, tx * z, ty * z, z, tx, ty, p, charge, np.full(n, PION_MASS), np.full(n, np.inf))


def random_numbers() -> EventRandom:
    return EventRandom([np.random.default_rng(1)])


def runge_kutta(magnet: Magnet, start: Flights, last_z: float, step: float) -> np.ndarray:
    """x, y, tx, ty at last_z by the classical Runge-Kutta method of fourth order in the field without table."""

    def slopes(state: np.ndarray, z: float) -> np.ndarray:
        x, y, tx, ty = state
        bx, by, bz = magnet.field(x, y, z)
        k = MEV_PER_TESLA_MM * start.charge / start.p * np.sqrt(1 + tx**2 + ty**2)
        return np.array(
            [
                tx,
                ty,
                k * (tx * ty * bx - (1 + tx**2) * by + ty * bz),
                k * ((1 + ty**2) * bx - tx * ty * by - tx * bz),
            ]
        )

    state = np.array([start.x, start.y, start.tx, start.ty])
    n = round((last_z - FIRST_Z) / step)
    h = (last_z - FIRST_Z) / n
    for i in range(n):
        z = FIRST_Z + i * h
        k1 = slopes(state, z)
        k2 = slopes(state + 0.5 * h * k1, z + 0.5 * h)
        k3 = slopes(state + 0.5 * h * k2, z + 0.5 * h)
        k4 = slopes(state + h * k3, z + h)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return state


@pytest.mark.parametrize("polarity", [DOWN, UP])
def test_flights_agree_with_a_fine_integration_of_the_field(polarity: float) -> None:
    magnet = Magnet(polarity)
    moved = flights(150)
    states = Propagation(magnet, LAYER_Z).propagate(random_numbers(), moved, scattering=False)
    fine = runge_kutta(magnet, flights(150), LAYER_Z[-1], step=60.0)
    reached = states.reached[-1]
    assert reached.mean() > 0.95
    found = np.array([getattr(states, name)[-1, reached] for name in ("x", "y", "tx", "ty")])
    dx, dy, dtx, dty = np.abs(found - fine[:, reached])
    assert np.median(dx) < 0.2
    assert np.percentile(dx, 95) < 1.0
    assert np.median(dy) < 0.1
    assert np.percentile(dtx, 95) < 2e-4
    assert np.percentile(dty, 95) < 1e-4


def test_before_the_ut_the_fringe_field_is_followed_within_a_tenth_of_a_millimetre() -> None:
    moved = flights(100)
    states = Propagation(Magnet.builtin(), LAYER_Z).propagate(random_numbers(), moved, scattering=False)
    fine = runge_kutta(Magnet.builtin(), flights(100), LAYER_Z[0], step=40.0)
    distance = np.abs(states.x[0] - fine[0])
    assert np.median(distance) < 0.03
    assert distance.max() < 0.1


def test_the_other_polarity_bends_the_other_charge() -> None:
    down, up = flights(100), flights(100)
    up.charge = -up.charge
    of_down = Propagation(Magnet(DOWN), LAYER_Z).propagate(random_numbers(), down, scattering=False)
    of_up = Propagation(Magnet(UP), LAYER_Z).propagate(random_numbers(), up, scattering=False)
    np.testing.assert_allclose(of_down.x, of_up.x, atol=1e-6)
    kick = (of_down.tx[3] - of_down.tx[1]) * down.p * down.charge
    reached = of_down.reached[3] & of_down.reached[1]
    assert (kick[reached] > 900.0).all()  # about 0.3 x 4 Tm = 1200 MeV


def test_flights_scatter_and_lose_energy_in_the_material() -> None:
    straight, scattered = flights(2000, lowest=10_000, highest=10_001), flights(2000, lowest=10_000, highest=10_001)
    propagation = Propagation(Magnet(0.0), LAYER_Z)
    exact = propagation.propagate(random_numbers(), straight, scattering=False)
    states = propagation.propagate(random_numbers(), scattered)
    difference = (states.tx - exact.tx)[1, exact.reached[1]]
    # About a quarter of a radiation length up to the last layer of the UT.
    core = (np.quantile(difference, 0.8413) - np.quantile(difference, 0.1587)) / 2
    assert core == pytest.approx(13.6 / 10_000 * np.sqrt(0.24), rel=0.1)
    # Hard scatters: a normal distribution would have 0.05 % further out.
    assert 0.01 < (np.abs(difference) > 3.5 * core).mean() < 0.06
    assert np.abs(difference.mean()) < 1e-4
    lost = 10_000 - scattered.p
    assert 3.0 < lost.mean() < 40.0


def test_electrons_radiate() -> None:
    electrons = flights(2000, lowest=10_000, highest=10_001)
    electrons.mass[:] = 0.511
    Propagation(Magnet(0.0), LAYER_Z).propagate(random_numbers(), electrons)
    # exp(-t) is the mean remaining fraction of the energy; t is 0.3 to 0.4 at the end of the SciFi.
    assert 0.65 < electrons.p.mean() / 10_000 < 0.88


def test_a_flight_ends_at_its_z_end() -> None:
    moved = flights(20)
    moved.z_end[:] = 5000.0
    states = Propagation(Magnet.builtin(), LAYER_Z).propagate(random_numbers(), moved)
    assert states.reached[:2].all()
    assert not states.reached[2:].any()
    np.testing.assert_allclose(moved.z, 5000.0)


def test_a_flight_that_starts_behind_a_layer_does_not_cross_it() -> None:
    moved = flights(20)
    moved.x, moved.y, moved.z = moved.x * 0, moved.y * 0, np.full(20, 8000.0)
    states = Propagation(Magnet.builtin(), LAYER_Z).propagate(random_numbers(), moved, scattering=False)
    assert not states.reached[:3].any()
    assert states.reached[3:].all()


def test_slow_particles_curl_and_are_lost_without_an_error() -> None:
    moved = flights(200, lowest=5.0, highest=200.0)
    states = Propagation(Magnet.builtin(), LAYER_Z).propagate(random_numbers(), moved)
    assert not states.reached[-1].any()
    assert all(np.isfinite(getattr(moved, name)).all() for name in ("x", "y", "tx", "ty", "p"))
