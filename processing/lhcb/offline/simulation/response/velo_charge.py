"""Pixels that fire for the charge of nuclei in the VELO: charge is shared among pixels, and each has a threshold.

Particles of charge 1 keep the faster model of velo_response.py, so that their samples keep their bits. A nucleus of
charge z releases z^2 times their charge. A pixel at the edge of its cloud then gets enough charge to fire, and z^2
times as many knocked-out electrons carry charge to pixels beside it. Other fluctuations of the charge are left out.
THRESHOLD, CHARGE_PER_MM and the formulas are assumed: usual values, not checked against a publication.
Units: mm, electrons, MeV.
"""

import math
from dataclasses import dataclass

import numpy as np

from hltnode.processing.lhcb.geometry.ideal_velo import N_COLUMNS, N_ROWS, PIXEL_PITCH, column_edges
from hltnode.processing.offline.arrays import Float64Array, Int64Array
from hltnode.processing.offline.event_random import EventRandom
from hltnode.processing.offline.particles.decays import MASS

THRESHOLD = 1_000.0
"""Charge that fires a pixel, electrons; assumed."""
CHARGE_PER_MM = 80_000.0
"""Most probable charge of a particle of charge 1 in silicon: 16,000 electrons in 0.2 mm; assumed."""
CLOUD_WIDTH = 0.0035
"""Standard deviation of the charge of a nucleus of charge 2 where it arrives, mm.

0.0028 gives particles of charge 1 the sizes of clusters in real events: 65 % have one pixel, 29 % two (measured: 67 and
29 %). It is also the diffusion of electrons from the middle of a sensor, 0.2 mm sqrt(k T / (e U)) for U = 120 V at
-20 °C. The repulsion of four times the charge adds 0.0021 in quadrature: the radius of a line of charge grows as
r^2 = mobility * charge per length * time / (pi * permittivity), for 0.1 m^2/(V s) and 1.5 ns.
"""
EV_PER_ELECTRON = 3.62
"""Energy for one pair in silicon, eV; textbook value."""

_ELECTRON = MASS[11]
_LEAST_ENERGY, _MOST_ENERGY = 0.03, 1.0
"""Energies of knocked-out electrons that are followed: 0.03 MeV go 6 µm, like the width of the cloud."""
_ELECTRONS_PER_MM = 0.1535 * 0.498 * 0.233 / _LEAST_ENERGY
"""Knocked-out electrons of a fast particle of charge 1: 0.1535 MeV cm²/g, Z/A of silicon, and its density (g/cm² of a
mm), over the least energy: the Rutherford formula for small energies."""
_POINTS = 16
"""Points of equal charge along a knocked-out electron."""


@dataclass(frozen=True, slots=True, eq=False)
class ChargePoints:
    """Charge that drifts to the pixels: the `crossing` i64[n] that released it, `place` f64[n, 2] on the sensor (mm),
    and `electrons` f64[n]."""

    crossing: Int64Array
    place: Float64Array
    electrons: Float64Array


def released(
    random: EventRandom,
    event: Int64Array,
    charge: Int64Array,
    local: Float64Array,
    path: Float64Array,
    thickness: float,
    samples: Float64Array,
) -> ChargePoints:
    """Charge of crossings by rising event, along their paths and those of the electrons that they knock out.

    `charge` i64[n] of the particles, `local` f64[n, 2] in the middle of the sensor, `path` f64[n, 2] across it,
    `samples` f64[m]: fractions of the path.
    """
    n, squared = len(event), charge.astype(np.float64) ** 2
    length = np.sqrt((path**2).sum(axis=1) + thickness**2)
    along = local[:, None] + path[:, None] * samples[None, :, None]
    electrons = np.repeat(squared * CHARGE_PER_MM * length / len(samples), len(samples))
    of = np.repeat(np.arange(n), random.poisson_by_row(event, squared * _ELECTRONS_PER_MM * length))
    energy = np.minimum(_LEAST_ENERGY / (1.0 - random.uniform(event[of])), _MOST_ENERGY)
    azimuth = 2.0 * np.pi * random.uniform(event[of])
    begin = random.uniform(event[of]) - 0.5
    cosine = np.sqrt(energy / (energy + 2.0 * _ELECTRON))  # of an electron at rest that a fast particle hits
    reach = np.minimum(range_of(energy), 0.5 * thickness / cosine) * np.sqrt(1.0 - cosine**2)
    direction = np.stack([np.cos(azimuth), np.sin(azimuth)], axis=1)
    steps = (np.arange(_POINTS) + 0.5) / _POINTS
    start = local[of] + path[of] * begin[:, None]
    knocked = start[:, None] + (reach[:, None] * direction)[:, None] * steps[None, :, None]
    return ChargePoints(
        np.concatenate([np.repeat(np.arange(n), len(samples)), np.repeat(of, _POINTS)]),
        np.concatenate([along.reshape(-1, 2), knocked.reshape(-1, 2)]),
        np.concatenate([electrons, np.repeat(1e6 * energy / EV_PER_ELECTRON / _POINTS, _POINTS)]),
    )


def range_of(energy: Float64Array) -> Float64Array:
    """Range (mm) of electrons in silicon.

    412 mg/cm² E^(1.265 - 0.0954 ln E), E in MeV: a usual formula, which is named after Katz and Penfold.
    """
    found: Float64Array = 412.0 * energy ** (1.265 - 0.0954 * np.log(energy)) / 233.0
    return found


def fired(points: ChargePoints) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Crossing, column and row of the pixels whose charge reaches the threshold.

    Each point is a cloud with a normal distribution in x and y, shared among 3 x 3 pixels.
    """
    x, y = points.place.T
    edges, rows = column_edges(), PIXEL_PITCH * np.arange(N_ROWS + 1, dtype=np.float64)
    columns, of_columns = _shares(x, edges)
    rows_, of_rows = _shares(y, rows)
    shares = of_columns[:, :, None] * of_rows[:, None, :] * points.electrons[:, None, None]
    pixel = (points.crossing[:, None, None] * N_COLUMNS + columns[:, :, None]) * N_ROWS + rows_[:, None, :]
    distinct, index = np.unique(pixel.ravel(), return_inverse=True)
    found = distinct[np.bincount(index.ravel(), shares.ravel(), minlength=len(distinct)) >= THRESHOLD]
    return found // (N_COLUMNS * N_ROWS), found // N_ROWS % N_COLUMNS, found % N_ROWS


_erf = np.vectorize(math.erf, otypes=[np.float64])


def _shares(place: Float64Array, edges: Float64Array) -> tuple[Int64Array, Float64Array]:
    """The interval of each place and its neighbours i64[n, 3], and the share of a cloud in each; none outside."""
    last = len(edges) - 2
    interval = np.searchsorted(edges, place, side="right")[:, None] - 1 + np.array([-1, 0, 1])
    inside = np.clip(interval, 0, last)
    below, above = (_erf((edges[inside + side] - place[:, None]) / (CLOUD_WIDTH * math.sqrt(2.0))) for side in (0, 1))
    return inside, np.where(interval == inside, 0.5 * (above - below), 0.0)
