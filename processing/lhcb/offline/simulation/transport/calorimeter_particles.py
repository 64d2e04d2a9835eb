"""Particles at the calorimeter: charged ones, photons that electrons radiate, photons of pi0 and eta, neutral hadrons.

Photons fly in straight lines. Those that convert before the end of the magnet are left out: tables of the generator
make their electrons. Units: mm, MeV.
"""

from collections.abc import Sequence

import numpy as np

from hltnode.processing.lhcb.geometry.material import is_hit, slabs
from hltnode.processing.lhcb.offline.simulation.generation.collisions import SimulatedCollisions
from hltnode.processing.lhcb.offline.simulation.generation.spectra import PION, PT_MEDIAN, PT_SPREAD, momenta
from hltnode.processing.lhcb.offline.simulation.response.ecal_response import Arrivals, ShowerKind
from hltnode.processing.lhcb.offline.simulation.transport.propagation import FIRST_Z, Flights, Radiation
from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask
from hltnode.processing.offline.event_random import EventRandom
from hltnode.processing.offline.particles.decays import two_body_decay

PHOTON, ELECTRON, NEUTRON = 22, 11, 2112
_PI0_MASS, _ETA_MASS = 134.98, 547.86

# For each prompt charged pion: pi0 (isospin), eta that decay to two photons, and neutral hadrons.
PI0_RATE, ETA_RATE, NEUTRAL_HADRON_RATE = 0.85, 0.05, 0.2
_ETA_PT = 600.0

# Photons that convert before this z are turned away by the magnet, mm.
_END_OF_MAGNET = 7700.0
_VELO_THICKNESS = 0.12  # X0, of modules and foil, for a photon from the collisions
_CONVERSIONS_PER_X0 = 7.0 / 9.0
_MATERIAL = [slab for slab in slabs() if FIRST_Z < slab.z < _END_OF_MAGNET and slab.side == 0]
_LEAST_ENERGY = 10.0  # of a photon that is followed


def charged_arrivals(flights: Flights, rows: Int64Array, pid: Int64Array, is_muon: Mask, front_z: float) -> Arrivals:
    """Flights that ended behind the SciFi, continued to the front of the calorimeter. `rows`: of their particles."""
    kind = np.full(len(flights), int(ShowerKind.HADRON))
    kind[is_muon] = ShowerKind.MUON
    kind[np.abs(pid) == ELECTRON] = ShowerKind.ELECTROMAGNETIC
    return Arrivals(
        flights.event, kind, pid, rows, *_straight(flights, front_z), np.hypot(flights.p, flights.mass)
    )  # fmt: skip


def radiated_photons(random: EventRandom, radiation: Radiation, front_z: float) -> Arrivals:
    """Photons that electrons have radiated."""
    found = radiation.joined()
    found = found.take(np.argsort(found.event, kind="stable"))
    found = found.take(found.p > _LEAST_ENERGY)
    thickness = np.zeros(len(found))
    for slab in _MATERIAL:
        dz = slab.z - found.z
        at = found.x + dz * found.tx, found.y + dz * found.ty
        thickness += np.where((dz > 0) & is_hit(slab, *at), slab.thickness, 0.0)
    return _photons(random, found, thickness, front_z)


def neutral_arrivals(random: EventRandom, collisions: Sequence[SimulatedCollisions], front_z: float) -> Arrivals:
    """Photons of pi0 and eta, and neutral hadrons, with the spectra of charged pions of the same collisions."""
    pions = [one.collision[np.abs(one.particles.pid[: len(one.collision)]) == PION] for one in collisions]
    of_pion = np.repeat(np.arange(len(pions)), [len(numbers) for numbers in pions])
    places = [one.positions[numbers] for one, numbers in zip(collisions, pions, strict=True)]
    place = np.concatenate([*places, np.empty((0, 3))])
    parts = []
    for rate, mass, pt in ((PI0_RATE, _PI0_MASS, PT_MEDIAN), (ETA_RATE, _ETA_MASS, _ETA_PT)):
        source = np.repeat(np.arange(len(of_pion)), random.poisson_by_row(of_pion, np.full(len(of_pion), rate)))
        event = of_pion[source]
        mother = momenta(random, event, pt, PT_SPREAD)
        pair = two_body_decay(random.normal(event, 3), mother, np.full(len(event), mass), 0.0, 0.0)
        parts += [_flying(event, place[source], momentum) for momentum in pair]
    photons = Flights.join(parts)
    photons = photons.take(np.argsort(photons.event, kind="stable"))
    thickness = np.full(len(photons), _VELO_THICKNESS)
    for slab in _MATERIAL:
        dz = slab.z - photons.z
        hit = is_hit(slab, photons.x + dz * photons.tx, photons.y + dz * photons.ty)
        thickness += np.where(hit, slab.thickness, 0.0)
    of_photons = _photons(random, photons, thickness, front_z)
    number = random.poisson_by_row(of_pion, np.full(len(of_pion), NEUTRAL_HADRON_RATE))
    source = np.repeat(np.arange(len(of_pion)), number)
    event = of_pion[source]
    hadrons = _flying(event, place[source], momenta(random, event, PT_MEDIAN, PT_SPREAD))
    n = len(hadrons)
    return Arrivals.join(
        [
            of_photons,
            Arrivals(
                hadrons.event,
                np.full(n, int(ShowerKind.HADRON)),
                np.full(n, NEUTRON),
                np.full(n, -1),
                *_straight(hadrons, front_z),
                hadrons.p,
            ),
        ]
    )


def _photons(random: EventRandom, photons: Flights, thickness: Float64Array, front_z: float) -> Arrivals:
    """Those photons that do not convert in a thickness (X0) of material, at the calorimeter."""
    stretch = np.sqrt(1.0 + photons.tx**2 + photons.ty**2)
    passes = random.chance(photons.event, np.exp(-_CONVERSIONS_PER_X0 * thickness * stretch))
    photons = photons.take(passes)
    n = len(photons)
    return Arrivals(
        photons.event,
        np.full(n, int(ShowerKind.ELECTROMAGNETIC)),
        np.full(n, PHOTON),
        np.full(n, -1),
        *_straight(photons, front_z),
        photons.p,
    )


def _flying(event: Int64Array, place: Float64Array, momentum: Float64Array) -> Flights:
    """Neutral particles that fly forwards, from a place with a momentum."""
    chosen = np.flatnonzero((momentum[:, 2] > _LEAST_ENERGY) & (np.abs(momentum[:, :2]).max(axis=1) < momentum[:, 2]))
    px, py, pz = momentum[chosen].T
    x, y, z = place[chosen].T
    n = len(chosen)
    p = np.sqrt(px**2 + py**2 + pz**2)
    return Flights(event[chosen], x, y, z, px / pz, py / pz, p, np.zeros(n), np.zeros(n), np.full(n, np.inf))


def _straight(flights: Flights, z: float) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array]:
    """x, y, tx and ty of flights that go on straight to z."""
    dz = z - flights.z
    return flights.x + dz * flights.tx, flights.y + dz * flights.ty, flights.tx, flights.ty
