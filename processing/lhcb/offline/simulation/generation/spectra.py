"""Angles and momenta of the simulated particles, and the prompt ones.

No physics generator: spectra and rates are simple shapes whose parameters were set by eye so that multiplicities,
angles and momenta look like LHCb's own simulated minimum-bias events (the velo-truth minbias set and the truth of the
seven full events; docs/simulation.md). Units: mm, MeV.
"""

from dataclasses import dataclass

import numpy as np

from hltnode.processing.lhcb.offline.simulation.generation.enrichment import AddedRows, Harder
from hltnode.processing.offline.arrays import Float64Array, Int64Array
from hltnode.processing.offline.event_random import EventRandom
from hltnode.processing.offline.particles.columns import ParticleColumns
from hltnode.processing.offline.sorting import ranges

# Pseudorapidity: flat, falling off near _ETA_EDGE; the range with |eta| < _ETA_MIN never reaches the VELO.
_ETA_MIN, _ETA_EDGE, _ETA_FALL = 0.8, 5.6, 0.6
_ETA_GRID = np.linspace(_ETA_MIN, 8.0, 400)
_ETA_DENSITY = 1.0 / (1.0 + np.exp((_ETA_GRID - _ETA_EDGE) / _ETA_FALL))
# At small angles the path in material is longer: interactions and conversions grow with this power of 1 / sin(angle).
SLANT_POWER = 0.5
_SLANT_DENSITY = _ETA_DENSITY * np.cosh(_ETA_GRID) ** SLANT_POWER
_ETA_CUMULATIVE, SLANT_CUMULATIVE = (np.cumsum(density) / density.sum() for density in (_ETA_DENSITY, _SLANT_DENSITY))

# Transverse momentum: log-normal.
PT_MEDIAN, PT_SPREAD = 360.0, 0.82

PION, KAON, PROTON, ELECTRON, MUON = 211, 321, 2212, 11, 13
PROMPT_PIDS = np.array([PION, KAON, PROTON, MUON])
PROMPT_FRACTIONS = np.array([0.80, 0.11, 0.088, 0.002])


@dataclass(frozen=True, slots=True, eq=False)
class NewParticles:
    """Particles of several events: the `event` i64[n] of each, which rises except for pairs, whose second particles
    follow."""

    event: Int64Array
    particles: ParticleColumns


def eta_ratio(spectrum: Harder, eta: Float64Array) -> Float64Array:
    """Density of the pseudorapidity of added particles relative to all."""
    low, high = spectrum.eta_range(_ETA_GRID, _ETA_CUMULATIVE)
    inside = (eta > spectrum.eta[0]) & (eta < spectrum.eta[1])
    # One half of all particles flies backwards.
    return inside / (0.5 * (high - low))


def counted(numbers: Int64Array) -> Int64Array:
    """0, 1, ..., n - 1 for each n of `numbers`, one range after the other."""
    return ranges(np.zeros_like(numbers), numbers)


def signs(random: EventRandom, event: Int64Array) -> Int64Array:
    return np.where(random.chance(event, 0.5), -1, 1)


def choice_of(random: EventRandom, event: Int64Array, values: Int64Array, fractions: Float64Array) -> Int64Array:
    chosen: Int64Array = values[np.searchsorted(np.cumsum(fractions[:-1]), random.uniform(event), side="right")]
    return chosen


def log_normal(random: EventRandom, event: Int64Array, median: float | Float64Array, spread: float) -> Float64Array:
    values: Float64Array = median * np.exp(spread * random.normal(event))
    return values


def prompt_particles(
    random: EventRandom, event: Int64Array, origin: Float64Array, added: AddedRows | None
) -> ParticleColumns:
    momentum = momenta(random, event, PT_MEDIAN, PT_SPREAD, added=added)
    charge = signs(random, event)
    kind = choice_of(random, event, PROMPT_PIDS, PROMPT_FRACTIONS)
    pid = (kind if added is None else np.where(added.pid > 0, added.pid, kind)) * charge
    return ParticleColumns.of(origin, momentum, np.where(np.abs(pid) == MUON, -pid, pid), charge)


def momenta(
    random: EventRandom,
    event: Int64Array,
    pt_median: float | Float64Array,
    pt_spread: float,
    eta_cumulative: Float64Array = _ETA_CUMULATIVE,
    added: AddedRows | None = None,
) -> Float64Array:
    """Momenta f64[n, 3] with a spectrum of angles (the common one) and a log-normal transverse momentum."""
    u = random.uniform(event, 2)
    sign = signs(random, event)
    if added is not None:
        low, high = added.eta_range(_ETA_GRID, eta_cumulative)
        u[:, 0] = low + (high - low) * u[:, 0]
        sign = np.where(added.is_added, 1, sign)
        pt_median = pt_median * added.pt
    eta = np.interp(u[:, 0], eta_cumulative, _ETA_GRID) * sign
    pt = log_normal(random, event, pt_median, pt_spread)
    phi = np.pi * (2 * u[:, 1] - 1)
    return np.stack([pt * np.cos(phi), pt * np.sin(phi), pt * np.sinh(eta)], axis=1)
