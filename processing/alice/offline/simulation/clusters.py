"""From crossings of rows to clusters: drift, resolution, charge, losses, noise, and clusters that merge."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.alice.geometry.cluster_errors import cluster_variances, cluster_widths
from hltnode.processing.alice.geometry.tpc_geometry import TpcGeometry
from hltnode.processing.alice.offline.simulation.crossings import Crossings
from hltnode.protocol.alice.tpc_banks import CHAMBERS_OF_SLICE, FIRST_ROWS, N_ROWS, N_SLICES

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

EDGE = 1.3
"""cm beside the neighbouring slice without pads."""
CHARGE_OF_CM = 80.0
"""Most probable charge in ADC counts of a minimum ionising particle in 1 cm."""
CHARGE_SPREAD = 0.12
"""Width of the distribution of charges, relative to its most probable value."""
MIN_CHARGE = 15.0
"""A cluster with less charge is not found."""
NOISE_CHARGE = 30.0
SEPARATION = 2.0
"""Two clusters closer than this, in standard deviations of their charge, have one maximum: they merge."""
_CHAMBER_OF_ROW = np.repeat(np.arange(CHAMBERS_OF_SLICE), np.diff(FIRST_ROWS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What happens to clusters. efficiency: probability of a cluster to be found. noise: clusters of noise relative to
    those of particles. dead_chambers: numbers (slice * 6 + chamber) of those that send nothing."""

    efficiency: float
    noise: float
    dead_chambers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters:
    """Clusters by slice and row. slice_number, row, particle (-1 for noise): i64[n]; y, drift: f64[n] in cm; charge:
    f64[n] in ADC counts."""

    slice_number: Integers
    row: Integers
    particle: Integers
    y: Floats
    drift: Floats
    charge: Floats

    def __len__(self) -> int:
        return len(self.row)

    def chosen(self, which: NDArray[np.bool_] | Integers) -> "Clusters":
        """Some of the clusters."""
        return Clusters(
            slice_number=self.slice_number[which],
            row=self.row[which],
            particle=self.particle[which],
            y=self.y[which],
            drift=self.drift[which],
            charge=self.charge[which],
        )


def clusters_of(
    rng: np.random.Generator,
    crossings: Crossings,
    shift: Floats,
    ionisation: Floats,
    geometry: TpcGeometry,
    response: Response,
) -> Clusters:
    """Clusters in the order of slice, row and drift coordinate.

    shift: f64[particles], cm that a particle of another collision seems to lie further from the central electrode;
    ionisation: f64[particles], relative to a minimum ionising particle.
    """
    n = len(crossings)
    drift = np.abs(crossings.z) + shift[crossings.particle]
    length = geometry.half_length - np.abs(crossings.z)
    pad = geometry.pad_length[crossings.row]
    angles = crossings.tan_y, crossings.tan_z
    y_variance, z_variance = cluster_variances(pad, length, *angles)
    smeared = Clusters(
        slice_number=crossings.slice_number,
        row=crossings.row,
        particle=crossings.particle,
        y=crossings.y + np.sqrt(y_variance) * rng.standard_normal(n),
        drift=drift + np.sqrt(z_variance) * rng.standard_normal(n),
        charge=_charges(rng, crossings, pad, ionisation),
    )
    taken = smeared.charge >= MIN_CHARGE
    taken &= rng.random(n) < response.efficiency
    # Outside of this time the pads are not read.
    taken &= (drift >= 0.0) & (drift <= geometry.half_length)
    taken &= np.abs(smeared.y) <= geometry.half_width[smeared.row] - EDGE
    y_width, z_width = cluster_widths(pad, length, *angles)
    merged = _merged(smeared.chosen(taken), y_width[taken], z_width[taken])
    whole = _with_noise(rng, merged, rng.poisson(response.noise * len(merged)), geometry)
    chamber = whole.slice_number * CHAMBERS_OF_SLICE + _CHAMBER_OF_ROW[whole.row]
    return whole.chosen(~np.isin(chamber, response.dead_chambers))


def _charges(rng: np.random.Generator, crossings: Crossings, pad: Floats, ionisation: Floats) -> Floats:
    """Charges by J. E. Moyal's approximation of Landau's distribution: minus the logarithm of a squared normal."""
    fluctuation = -np.log(np.maximum(rng.standard_normal(len(crossings)) ** 2, 1e-9))
    path = pad * np.sqrt(1.0 + crossings.tan_y**2 + crossings.tan_z**2)
    factor = np.maximum(1.0 + CHARGE_SPREAD * fluctuation, 0.1)
    charges: Floats = CHARGE_OF_CM * ionisation[crossings.particle] * path * factor
    return charges


def _merged(clusters: Clusters, y_width: Floats, z_width: Floats) -> Clusters:
    """Clusters that lie so close that their charges have one maximum become one: the mean place by charge, the sum of
    the charges, the particle with the largest charge. The order is that of slice, row and drift coordinate."""
    n = len(clusters)
    plane = clusters.slice_number * N_ROWS + clusters.row
    order = np.lexsort((clusters.drift, plane))
    clusters, y_width, z_width, plane = clusters.chosen(order), y_width[order], z_width[order], plane[order]
    label = np.arange(n)
    left = np.arange(n)
    pairs: list[tuple[Integers, Integers]] = []
    reach = SEPARATION * (float(z_width.max()) if n else 0.0)
    for step in range(1, n):
        left = left[left + step < n]
        right = left + step
        near = (plane[left] == plane[right]) & (clusters.drift[right] - clusters.drift[left] < reach)
        left, right = left[near], right[near]
        if not len(left):
            break
        y_limit, z_limit = (SEPARATION**2 * width[left] * width[right] for width in (y_width, z_width))
        dy, dz = clusters.y[right] - clusters.y[left], clusters.drift[right] - clusters.drift[left]
        overlap = dy**2 / y_limit + dz**2 / z_limit < 1.0
        pairs.append((left[overlap], right[overlap]))
    if pairs:
        first, second = (np.concatenate(side) for side in zip(*pairs, strict=True))
        while True:
            smaller = np.minimum(label[first], label[second])
            if (smaller == label[first]).all() and (smaller == label[second]).all():
                break
            np.minimum.at(label, first, smaller)
            np.minimum.at(label, second, smaller)
    charge = np.bincount(label, clusters.charge, minlength=n).astype(np.float64)
    weighted = [np.bincount(label, clusters.charge * of, minlength=n) for of in (clusters.y, clusters.drift)]
    by_charge = np.lexsort((clusters.charge, label))
    last_of_label = np.flatnonzero(np.diff(label[by_charge], append=-1))
    particle = np.full(n, -1)
    particle[label[by_charge[last_of_label]]] = clusters.particle[by_charge[last_of_label]]
    kept = np.flatnonzero(charge > 0.0)
    return Clusters(
        slice_number=clusters.slice_number[kept],
        row=clusters.row[kept],
        particle=particle[kept],
        y=weighted[0][kept] / charge[kept],
        drift=weighted[1][kept] / charge[kept],
        charge=charge[kept],
    )


def _with_noise(rng: np.random.Generator, clusters: Clusters, n: int, geometry: TpcGeometry) -> Clusters:
    row = rng.integers(0, N_ROWS, n)
    slices = rng.integers(0, N_SLICES, n)
    y = rng.uniform(-1.0, 1.0, n) * (geometry.half_width[row] - EDGE)
    drift = rng.uniform(0.0, geometry.half_length, n)
    charge = MIN_CHARGE + rng.exponential(NOISE_CHARGE, n)
    own = (clusters.slice_number, clusters.row, clusters.particle, clusters.y, clusters.drift, clusters.charge)
    noise = (slices, row, np.full(n, -1), y, drift, charge)
    slice_number, all_rows, particle, all_y, all_drift, all_charge = (
        np.concatenate(pair) for pair in zip(own, noise, strict=True)
    )
    order = np.lexsort((all_drift, all_rows, slice_number))
    return Clusters(
        slice_number=slice_number[order],
        row=all_rows[order],
        particle=particle[order],
        y=all_y[order],
        drift=all_drift[order],
        charge=all_charge[order],
    )
