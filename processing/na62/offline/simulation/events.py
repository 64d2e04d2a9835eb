"""Hits and true rings of one event: Cherenkov light of tracks, noise and showers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.na62.detector_constants import (
    FOCAL_LENGTH,
    INDEX_SQUARE,
    MAX_MOMENTUM,
    MIN_MOMENTUM,
    MUON_MASS,
    PION_MASS,
)
from hltnode.processing.na62.offline.simulation.decays import Decay, Floats, decay_momenta, drawn_decay
from hltnode.processing.na62.rich.pmt_positions import N_PMTS, PMTS_OF_SPOT, nearest_tubes
from hltnode.protocol.na62.rich_banks import HIT, TRUE_RING

SMEARING = 1.5
"""mm: standard deviation of the place of a photon by dispersion and by scattering of the track."""
MAX_SLOPE = 0.006
"""Greatest slope of accidental tracks and of tracks without a decay."""
TIME_SPREAD = 2.0
"""Standard deviation of the time of a hit in 25/256 ns."""
EVENT_TIME = 128
BEAM_SPREAD = 150.0
"""mm: standard deviation of the place of a track at the mirrors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What an event has.

    decay: None for a decay by its fraction. rings: tracks without a decay, with Decay.TRACKS. distance: mm between the
    centre of the first ring and those of the others, with Decay.TRACKS; None for any. hits_per_ring: mean number of
    photons. accidentals, noise, showers: mean numbers of tracks and of single hits in an event, and probability of a
    shower, which gives shower_hits hits around a point.
    """

    decay: Decay | None = None
    rings: int = 1
    distance: float | None = None
    hits_per_ring: float = 20.0
    accidentals: float = 0.05
    noise: float = 1.0
    showers: float = 0.02
    shower_hits: float = 12.0


def ring_radius(momentum: Floats, mass: float) -> Floats:
    """mm; 0 below the threshold of the Cherenkov effect."""
    energy_square = momentum**2 + mass**2
    cosine_square = energy_square / (INDEX_SQUARE * momentum**2)
    return FOCAL_LENGTH * np.sqrt(np.maximum(1.0 / np.minimum(cosine_square, 1.0) - 1.0, 0.0))


@dataclass(frozen=True, slots=True)
class _Track:
    x: float
    y: float
    radius: float
    momentum: float
    is_pion: bool


def _any_track(rng: np.random.Generator) -> _Track:
    is_pion = bool(rng.random() < 0.5)
    momentum = rng.uniform(MIN_MOMENTUM, MAX_MOMENTUM)
    slope, angle = MAX_SLOPE * np.sqrt(rng.random()), rng.uniform(0.0, 2.0 * np.pi)
    x, y = FOCAL_LENGTH * slope * np.cos(angle), FOCAL_LENGTH * slope * np.sin(angle)
    return _Track(x, y, float(ring_radius(np.array(momentum), PION_MASS if is_pion else MUON_MASS)), momentum, is_pion)


def _tracks(rng: np.random.Generator, conditions: Conditions, decay: Decay) -> list[_Track]:
    if decay is Decay.TRACKS:
        tracks = [_any_track(rng) for _ in range(conditions.rings)]
        if conditions.distance is not None:
            first = tracks[0]
            angles = rng.uniform(0.0, 2.0 * np.pi) + 2.0 * np.pi * np.arange(len(tracks)) / max(len(tracks) - 1, 1)
            away = conditions.distance * np.column_stack([np.cos(angles), np.sin(angles)])
            tracks[1:] = [
                _Track(first.x + dx, first.y + dy, track.radius, track.momentum, track.is_pion)
                for track, (dx, dy) in zip(tracks[1:], away[1:], strict=True)
            ]
    else:
        momenta, mass = decay_momenta(rng, decay)
        sizes = np.linalg.norm(momenta, axis=1)
        radii = ring_radius(sizes, mass)
        places = FOCAL_LENGTH * momenta[:, :2] / momenta[:, 2:]
        tracks = [
            _Track(float(x), float(y), float(radius), float(size), mass == PION_MASS)
            for (x, y), radius, size in zip(places, radii, sizes, strict=True)
            if radius > 0.0
        ]
    return tracks + [_any_track(rng) for _ in range(rng.poisson(conditions.accidentals))]


def _pmts_at(spots: NDArray[np.int64], places: Floats) -> NDArray[np.int64]:
    """Numbers of the tubes at places of spots, -1 where there is none."""
    tubes = nearest_tubes(places)
    return np.where(tubes >= 0, spots * PMTS_OF_SPOT + tubes, -1)


def _light(rng: np.random.Generator, track: _Track, mean_hits: float) -> NDArray[np.int64]:
    """The tubes that photons of a track hit, without those that miss both spots.

    A photon from a random place of the radiator meets one half of the mirrors, which sends it to its spot.
    """
    n = rng.poisson(mean_hits)
    angle = rng.uniform(0.0, 2.0 * np.pi, n)
    way = rng.random(n)
    at_mirror = rng.normal(0.0, BEAM_SPREAD) + way * track.radius * np.cos(angle)
    radius = track.radius + rng.normal(0.0, SMEARING, n)
    places = np.column_stack([track.x + radius * np.cos(angle), track.y + radius * np.sin(angle)])
    pmts = np.unique(_pmts_at((at_mirror > 0.0).astype(np.int64), places))
    return pmts[pmts >= 0]


def simulated_event(rng: np.random.Generator, conditions: Conditions) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """HIT[hits] in random order and TRUE_RING[rings] of an event. A tube gives one hit."""
    decay = drawn_decay(rng) if conditions.decay is None else conditions.decay
    lit, truth = [], []
    for track in _tracks(rng, conditions, decay):
        pmts = _light(rng, track, conditions.hits_per_ring)
        lit.append(pmts)
        truth.append((track.x, track.y, track.radius, track.momentum, len(pmts), int(decay), track.is_pion))
    lit.append(rng.integers(0, N_PMTS, rng.poisson(conditions.noise)))
    if rng.random() < conditions.showers:
        centre = FOCAL_LENGTH * MAX_SLOPE * rng.uniform(-1.0, 1.0, 2)
        n = rng.poisson(conditions.shower_hits)
        places = centre + rng.normal(0.0, 60.0, (n, 2))
        pmts = _pmts_at(rng.integers(0, 2, n), places)
        lit.append(pmts[pmts >= 0])
    pmts = rng.permutation(np.unique(np.concatenate(lit)))
    hits = np.empty(len(pmts), HIT)
    hits["pmt"] = pmts
    hits["time"] = np.clip(np.rint(rng.normal(EVENT_TIME, TIME_SPREAD, len(pmts))), 0, 255)
    return hits[:255], np.array(truth, TRUE_RING)
