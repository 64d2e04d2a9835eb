from dataclasses import replace

import numpy as np
import pytest

from hltnode.processing.lhcb.geometry.velo import Z_AXIS
from hltnode.processing.lhcb.geometry.velo_field import VeloField
from hltnode.processing.lhcb.offline.simulation.generation.collisions import generate
from hltnode.processing.lhcb.offline.simulation.generation.samples import (
    NUCLEI,
    SIGNALS,
    Sample,
    nucleus_from,
    signal_decay,
)
from hltnode.processing.lhcb.offline.simulation.generation.sources import sample_source
from hltnode.processing.lhcb.offline.simulation.response.velo_response import VeloResponse
from hltnode.processing.offline.event_random import EventRandom
from hltnode.processing.offline.particles.columns import ParticleColumns
from hltnode.processing.offline.particles.decays import LIGHT_MM_PER_NS, MASS, three_body_decay
from tests.processing.lhcb.full_events import builtin_detector


def decays(sample: Sample, n: int) -> list[ParticleColumns]:
    rng = np.random.default_rng(3)
    return [signal_decay(rng, SIGNALS[sample], np.array([0.1, 0.2, 30.0])) for _ in range(n)]


def mass_of(particles: ParticleColumns) -> float:
    masses = np.array([MASS[abs(pid)] for pid in particles.pid.tolist()])
    energy = np.sqrt((particles.momentum**2).sum(axis=1) + masses**2).sum()
    return float(np.sqrt(energy**2 - (particles.momentum.sum(axis=0) ** 2).sum()))


@pytest.mark.parametrize("sample", list(SIGNALS))
def test_the_daughters_add_up_to_the_head_and_fly_into_the_acceptance(sample: Sample) -> None:
    for particles in decays(sample, 20):
        head = SIGNALS[sample].head
        assert mass_of(particles) == pytest.approx(head.mass, rel=1e-6, abs=8 * head.width)
        assert abs(particles.charge.sum()) <= 1
        theta = np.arctan2(particles.pt, particles.momentum[:, 2])
        assert ((theta > 0.010) & (theta < 0.400)).all()
        assert particles.from_signal.all()


def test_the_muons_of_bjpsik_have_the_mass_of_the_jpsi_and_its_key_as_mother() -> None:
    for particles in decays(Sample.BJPSIK, 20):
        muons = particles.take(np.abs(particles.pid) == 13)
        assert mass_of(muons) == pytest.approx(3096.9, rel=1e-6)
        assert muons.mother.tolist() == [443, 443]
        assert len(set(muons.mother_key.tolist())) == 1
        assert (muons.charge == -np.sign(muons.pid)).all()


def half_inside(masses: list[float], middle: float, width: float) -> None:
    """Half of a Breit-Wigner distribution lies within half its width of the peak."""
    inside = np.abs(np.array(masses) - middle) < width / 2
    assert inside.mean() == pytest.approx(0.5, abs=0.1)


def test_the_z_and_the_phi_have_their_widths() -> None:
    half_inside([mass_of(one) for one in decays(Sample.Z, 300)], 91187.6, 2495.5)
    found = [
        mass_of(one.take(one.mother_key == key)) for one in decays(Sample.BSPHIPHI, 150) for key in set(one.mother_key)
    ]
    half_inside(found, 1019.46, 4.249)
    assert min(found) > 2 * MASS[321]


def test_flight_distances_follow_the_lifetime() -> None:
    found = decays(Sample.BSPHIPHI, 400)
    flown = [np.linalg.norm(particles.origin[0] - [0.1, 0.2, 30.0]) for particles in found]
    p = [np.linalg.norm(particles.momentum.sum(axis=0)) for particles in found]
    proper = np.array(flown) * 5366.9 / np.array(p)
    assert proper.mean() == pytest.approx(0.456, rel=0.15)
    tau = np.array([particles.dom_tau[0] for particles in found])
    np.testing.assert_allclose(tau * LIGHT_MM_PER_NS, proper, rtol=1e-6)


DECAYS = {
    Sample.BSMUMU: (5366.9, 0.456, (531, -531), {(-13, 13)}),
    Sample.JPSI: (3096.9, 0.0, (443,), {(-13, 13)}),
    Sample.KS2PIPI: (497.611, 26.84, (310,), {(-211, 211)}),
    Sample.L2PPI: (1115.683, 78.9, (3122, -3122), {(-211, 2212), (-2212, 211)}),
    Sample.TAU3MU: (1776.93, 0.08703, (15, -15), {(-13, 13, 13), (-13, -13, 13)}),
    Sample.D2KPI: (1864.8, 0.1229, (421, -421), {(-321, 211), (-211, 321)}),
    Sample.D2KPIPI: (1869.66, 0.3097, (411, -411), {(-321, 211, 211), (-211, -211, 321)}),
    Sample.TAUPHIMU: (1776.93, 0.08703, (333, 15, -15), {(-321, 13, 321), (-321, -13, 321)}),
}
"""Mass (MeV), c tau (mm), ids of the particle, ids of its products: Particle Data Group."""


@pytest.mark.parametrize("sample", list(DECAYS))
def test_signals_have_the_masses_lifetimes_and_ids_of_nature(sample: Sample) -> None:
    mass, c_tau, ids, products = DECAYS[sample]
    found = decays(sample, 250)
    proper = []
    for particles in found:
        assert mass_of(particles) == pytest.approx(mass, abs=0.1)
        p = np.linalg.norm(particles.momentum.sum(axis=0))
        proper.append(np.linalg.norm(particles.origin[0] - [0.1, 0.2, 30.0]) * mass / p)
    # The mean of 250 exponential numbers has an error of 6.3 %.
    assert np.mean(proper) == pytest.approx(c_tau, rel=0.2, abs=1e-9)
    assert {mother for particles in found for mother in particles.mother.tolist()} == set(ids)
    assert {tuple(sorted(particles.pid.tolist())) for particles in found} == products


CHAINS = {
    Sample.DST2D0PI: (2010.26, 0.0, 413, 421, 1864.8, 0.1229, ({-321, 211}, 211)),
    Sample.XI2LPI: (1321.71, 49.1, 3312, 3122, 1115.683, 78.9, ({2212, -211}, -211)),
}
"""Mass, c tau and id of the head; id, mass and c tau of the particle that it makes; products of that, and the other."""


@pytest.mark.parametrize("sample", list(CHAINS))
def test_a_particle_of_a_decay_flies_from_the_decay_of_its_mother(sample: Sample) -> None:
    head_mass, head_c_tau, head, middle, mass, c_tau, (products, other) = CHAINS[sample]
    of_head, of_middle = [], []
    for particles in decays(sample, 250):
        sign = np.sign(particles.mother[np.abs(particles.pid) == max(map(abs, products))][0])
        is_inner = particles.mother == sign * middle
        inner, [outer] = particles.take(is_inner), np.flatnonzero(~is_inner)
        assert {int(pid) for pid in sign * inner.pid} == products
        assert (particles.mother[outer], particles.pid[outer]) == (sign * head, sign * other)
        assert particles.mother_key[outer] + 1 == inner.mother_key[0] == inner.mother_key[1]
        assert mass_of(inner) == pytest.approx(mass, abs=0.1)
        assert (inner.origin[0] == inner.origin[1]).all()
        p = inner.momentum.sum(axis=0)
        way = inner.origin[0] - particles.origin[outer]
        limit = 1e-6 * (1.0 + float(np.linalg.norm(way)))
        np.testing.assert_allclose(np.cross(way, p) / np.linalg.norm(p), 0.0, atol=limit)
        of_middle.append(way @ p / np.linalg.norm(p) * mass / np.linalg.norm(p))
        p = particles.momentum.sum(axis=0)
        of_head.append(np.linalg.norm(particles.origin[outer] - [0.1, 0.2, 30.0]) * head_mass / np.linalg.norm(p))
    assert np.mean(of_middle) == pytest.approx(c_tau, rel=0.2)
    assert np.mean(of_head) == pytest.approx(head_c_tau, rel=0.2, abs=1e-9)


def test_the_heavy_ancestor_of_a_charm_decay_is_the_particle_that_flies() -> None:
    for particles in decays(Sample.DST2D0PI, 20):
        slow = np.abs(particles.mother) == 413
        assert (np.abs(particles.dom_pid) == np.where(slow, 413, 421)).all()
        assert (particles.dom_key == particles.mother_key).all()
        assert (particles.dom_tau > 0.0).tolist() == (~slow).tolist()
        d0 = particles.take(~slow)
        np.testing.assert_allclose(d0.dom_pt, np.hypot(*d0.momentum.sum(axis=0)[:2]))
        flown = np.linalg.norm(d0.origin[0] - particles.origin[slow][0])
        p = np.linalg.norm(d0.momentum.sum(axis=0))
        np.testing.assert_allclose(d0.dom_tau * LIGHT_MM_PER_NS, flown * 1864.8 / p, rtol=1e-6)
    for particles in decays(Sample.BJPSIK, 5):
        assert (np.abs(particles.dom_pid) == 521).all()
    for particles in decays(Sample.XI2LPI, 5):
        assert (particles.dom_pid == -999_999).all()
        assert particles.from_strange.all()


def test_three_body_decays_fill_phase_space() -> None:
    """The mean mass of two of three massless products is that of phase space, whose m² is uniform in m12² and m23²."""
    n = 4000
    mass = np.full(n, 3.0)
    none = np.zeros(n)
    first, second, third = three_body_decay(np.random.default_rng(2), np.zeros((n, 3)), mass, none, none, none)
    np.testing.assert_allclose(first + second + third, 0, atol=1e-9)
    energies = [np.linalg.norm(one, axis=1) for one in (first, second, third)]
    np.testing.assert_allclose(sum(energies), mass, rtol=1e-9)
    # Every pair has m² = M (M - 2 E) with the mean M² / 3, and a density that falls linearly.
    for energy in energies:
        squared = mass * (mass - 2 * energy)
        assert squared.mean() == pytest.approx(9 / 3, rel=0.04)
        assert (squared < 9 / 2).mean() == pytest.approx(0.75, abs=0.03)


def test_unknown_samples_and_impossible_nu_are_refused() -> None:
    with pytest.raises(ValueError, match="sample 'b2kmumu' is not known, only minbias, beam_gas, bjpsik"):
        sample_source("b2kmumu", 7.6, Z_AXIS)
    for nu in (-1.0, float("nan"), 1e4):
        with pytest.raises(ValueError, match="nu ="):
            sample_source("minbias", nu, Z_AXIS)


def test_a_signal_event_has_a_collision_even_at_nu_zero() -> None:
    (collisions,) = sample_source("z", 0.0, Z_AXIS)(EventRandom([np.random.default_rng(1)]), [0])
    assert len(collisions.positions) == 1
    assert collisions.particles.from_signal.sum() == 2


def minimum_bias(n: int) -> ParticleColumns:
    random = EventRandom([np.random.default_rng((7, event)) for event in range(n)])
    return ParticleColumns.join([one.particles for one in generate(random, 7.6, Z_AXIS)])


def test_beauty_and_charm_of_minimum_bias_make_soft_particles_as_their_decays_to_many_do() -> None:
    """In 300 fully simulated events 9 % of the long particles from beauty, 27 % of those from charm are above 1 GeV."""
    particles = minimum_bias(600)
    forward = (particles.momentum[:, 2] > 5000) & (particles.pt > 100)
    beauty, charm = particles.from_beauty & forward, particles.from_charm & forward
    assert 0.1 < (particles.pt[beauty] > 1000).mean() < 0.65
    assert 0.1 < (particles.pt[charm] > 1000).mean() < 0.4
    assert (particles.pt[beauty] > 2000).mean() < 0.25
    assert not (particles.from_beauty & particles.from_charm).any()


def test_a_beauty_hadron_makes_two_particles_and_a_charmed_one_makes_two_farther_away() -> None:
    random = EventRandom([np.random.default_rng((7, event)) for event in range(300)])
    n_found = 0
    for event in generate(random, 7.6, Z_AXIS):
        beauty = event.particles.take(event.particles.from_beauty)
        others = event.particles.take(~event.particles.from_beauty)
        of_charm = np.abs(beauty.mother) == 421
        assert (np.abs(beauty.dom_pid) == 511).all()
        assert (np.abs(beauty.mother[~of_charm]) == 511).all()
        # Four products of each, from two places.
        keys, counts = np.unique(beauty.dom_key, return_counts=True)
        assert (counts == 4).all()
        assert len(np.unique(beauty.origin[:, 2])) == 2 * len(keys)
        assert set(beauty.mother_key[~of_charm]) == set(keys)
        assert len(np.unique(beauty.mother_key[of_charm])) == len(keys)
        assert not set(beauty.mother_key[of_charm]) & {*keys, *others.mother_key}
        n_found += len(keys)
    assert n_found > 10


def test_few_charmed_particles_decay_to_a_kaon_and_a_pion_alone() -> None:
    particles = minimum_bias(600)
    charm = particles.take(particles.from_charm)
    # The two products of a decay begin at one place.
    _, first, count = np.unique(charm.origin[:, 2], return_index=True, return_counts=True)
    assert (count == 2).all()
    order = np.argsort(charm.origin[:, 2], kind="stable").reshape(-1, 2)
    masses = np.array([mass_of(charm.take(pair)) for pair in order])
    assert len(first) > 500
    assert masses.max() == pytest.approx(1864.8, abs=0.01)
    assert 0.003 < (masses > 1864.0).mean() < 0.04
    assert np.median(masses) < 1500


def test_a_nucleus_has_twice_the_charge_and_flies_near_the_beam() -> None:
    rng = np.random.default_rng(8)
    nuclei = ParticleColumns.join(
        [nucleus_from(rng, NUCLEI[Sample.HE3], np.array([0.1, 0.2, 30.0])) for _ in range(99)]
    )
    assert sorted(set(nuclei.charge.tolist())) == [-2, 2]
    assert (np.sign(nuclei.pid) == np.sign(nuclei.charge)).all()
    assert ((nuclei.eta > 4.5) & (nuclei.eta < 5.5)).all()
    assert nuclei.pt.mean() == pytest.approx(2000.0, rel=0.2)
    assert nuclei.from_signal.all()


def test_a_particle_of_charge_2_fires_more_pixels() -> None:
    detector = builtin_detector()
    response = VeloResponse(detector.velo, VeloField.of(detector.magnet))
    rng = np.random.default_rng(9)
    made = [nucleus_from(rng, NUCLEI[Sample.HE3], np.array([0.0, 0.0, 0.0])) for _ in range(40)]
    fired = []
    for charge in (1, 2):
        particles = ParticleColumns.join([replace(one, charge=np.array([charge])) for one in made])
        random = EventRandom([np.random.default_rng((2, event)) for event in range(len(made))])
        fired.append(response.fire(random, np.arange(len(made)), particles))
    per_crossing = [len(one.channels) / len(one.particle) for one in fired]
    assert 1.1 < per_crossing[1] / per_crossing[0] < 2.0
    assert fired[1].energy_loss == pytest.approx(4 * fired[0].energy_loss, rel=0.5)
