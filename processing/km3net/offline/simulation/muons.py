"""Cherenkov light of muons: which PMTs it hits, when, and with how much charge."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.km3net.detector_constants import CHERENKOV_COSINE, LIGHT_NS_PER_METRE, SPEED_OF_LIGHT
from hltnode.processing.km3net.geometry.pmt_table import Detector

_SINE = (1.0 - CHERENKOV_COSINE**2) ** 0.5
PHOTOELECTRONS_AT_10_M = 8.0
"""Mean of a PMT that faces the light 10 m from a track, for PMTs of ten inches; a choice of this simulation."""
ABSORPTION = 60.0
"""m, for blue light in clear sea water."""
NEAREST = 1.0
"""m: light from nearer tracks is as bright as from here."""
TIME_SPREAD = 2.0
"""ns: transit time of PMTs, chromatic dispersion and residual scattering together."""
CHARGE_SPREAD = 0.3
"""Standard deviation of the charge of one photoelectron."""


@dataclass(frozen=True, slots=True)
class Muon:
    """A straight track at the speed of light. position: f64[3] in m at time 0; direction: unit vector."""

    position: NDArray[np.float64]
    direction: NDArray[np.float64]


def arrival_times(muon: Muon, positions: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Time in ns at which unscattered light reaches each place, f64[places], and its distance from the track in m.

    Light leaves the track at the Cherenkov angle and travels at the group velocity.
    """
    to = positions - muon.position
    along = to @ muon.direction
    away = np.sqrt(np.maximum((to**2).sum(1) - along**2, 0.0))
    return (along - away * CHERENKOV_COSINE / _SINE) / SPEED_OF_LIGHT + away / _SINE * LIGHT_NS_PER_METRE, away


def expected_photoelectrons(muon: Muon, detector: Detector) -> NDArray[np.float64]:
    """Mean number of photoelectrons of each PMT: a cone that widens, absorption, and the direction of the PMT."""
    positions = detector.positions
    _, away = arrival_times(muon, positions)
    along = (positions - muon.position) @ muon.direction
    outwards = (positions - muon.position - along[:, None] * muon.direction) / np.maximum(away, 1e-9)[:, None]
    light = CHERENKOV_COSINE * muon.direction + _SINE * outwards
    facing = np.clip(-(light * detector.directions).sum(1), -0.5, 1.0)
    away = np.maximum(away, NEAREST)
    absorbed = np.exp(-(away - 10.0) / (_SINE * ABSORPTION))
    mean: NDArray[np.float64] = PHOTOELECTRONS_AT_10_M * (10.0 / away) * absorbed * (facing + 0.5) / 1.5
    return mean


def drawn_muon(rng: np.random.Generator, radius: float) -> Muon:
    """A muon of any direction that passes the origin at a distance of at most `radius` m, nearest to it at time 0.

    Muons from above and those that neutrinos make below the detector count alike.
    """
    cosine, turn = rng.uniform(-1.0, 1.0), rng.uniform(0.0, 2.0 * np.pi)
    sine = (1.0 - cosine**2) ** 0.5
    direction = np.array([sine * np.cos(turn), sine * np.sin(turn), -cosine])
    first = np.array([-np.sin(turn), np.cos(turn), 0.0])
    second = np.cross(direction, first)
    away, around = radius * rng.uniform() ** 0.5, rng.uniform(0.0, 2.0 * np.pi)
    return Muon(away * (np.cos(around) * first + np.sin(around) * second), direction)


def muon_hits(
    rng: np.random.Generator, muon: Muon, detector: Detector
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """PMTs, times in ns and charges in hundredths of a photoelectron of the hits: one for each PMT that sees light."""
    detected = rng.poisson(expected_photoelectrons(muon, detector))
    pmts = np.flatnonzero(detected)
    times = arrival_times(muon, detector.positions[pmts])[0] + rng.normal(0.0, TIME_SPREAD, len(pmts))
    of_pmt = detected[pmts]
    charges = 100.0 * (of_pmt + CHARGE_SPREAD * np.sqrt(of_pmt) * rng.normal(size=len(pmts)))
    return pmts, times, np.clip(charges, 10, 65_535).astype(np.int64)
