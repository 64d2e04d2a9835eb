"""Muon hits and muon identification in simple Python and double precision: the oracle of the kernels.

Hits are the result of MuonGeometry.hits (crossings of all strips of a quarter), in the order of the collection.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.muon import N_STATIONS, MuonGeometry, MuonHits
from hltnode.processing.lhcb.geometry.muon_fields import FieldsOfInterest
from hltnode.processing.lhcb.muon.collections import NO_HIT
from hltnode.processing.lhcb.tracks.long.collections import Z_END_SCIFI
from hltnode.protocol.lhcb.banks.muon import MuonDigits

FIELD_SCALE = 1.2
MAX_CHI2 = 16.0
# Middle and length of the absorbers (mm), radiation lengths, energy lost before the middle (MeV).
ABSORBERS = (
    (13_850.0, 2300.0, 25.0 + 53.0, 1200.0),
    (15_870.0, 800.0, 45.5, 2975.0),
    (17_070.0, 800.0, 45.5, 4125.0),
    (18_270.0, 800.0, 45.5, 5275.0),
)
LEAST_PART = 0.3


def distinct(digits: MuonDigits) -> MuonDigits:
    """Each address once, with its earliest time."""
    order = np.lexsort((digits.time, digits.address, digits.bank))
    bank, address = digits.bank[order].astype(np.int64), digits.address[order].astype(np.int64)
    _, first = np.unique(bank << 32 | address, return_index=True)
    chosen = order[first]
    return MuonDigits(*(getattr(digits, name)[chosen] for name in ("bank", "batch", "address", "time")))


def sorted_hits(geometry: MuonGeometry, digits: MuonDigits) -> MuonHits:
    """The hits of an event: by station, crossed ones first, by tile id."""
    hits = geometry.hits(distinct(digits))
    order = np.lexsort((hits.tile, ~hits.crossed, hits.station))
    return MuonHits(*(getattr(hits, name)[order] for name in MuonHits.__slots__))


@dataclass(frozen=True, slots=True, eq=False)
class Identification:
    """Result for one track: whether hits are in the fields of interest, the nearest hits, chi2, the muon decision.

    margin: distance of the decisions from their limits, in field sizes.
    """

    nearest: tuple[int, ...]
    chi2: float
    is_muon: bool
    margin: float


def identify(
    hits: MuonHits, track: NDArray[np.float64], fields: FieldsOfInterest, max_chi2: float = MAX_CHI2
) -> Identification:
    """A track x, y, tx, ty at z = 9410 mm, q/p in 1/MeV."""
    x, y, tx, ty, qop = track.tolist()
    p = 1.0 / max(abs(qop), 1e-9)
    residual = np.stack([hits.x - x - tx * (hits.z - Z_END_SCIFI), hits.y - y - ty * (hits.z - Z_END_SCIFI)])
    size = np.stack([hits.dx, hits.dy])
    field = FIELD_SCALE * size * fields.half_sizes(hits.station, hits.region, np.full(len(hits.x), p)).T
    outside = (np.abs(residual) / field).max(axis=0)
    margin = float(np.abs(outside - 1.0).min(initial=np.inf))
    inside = outside < 1.0
    found = [bool((inside & (hits.station == station)).any()) for station in range(N_STATIONS)]
    behind = found[2] + found[3]
    needed = 0 if p < 6000.0 else 1 if p < 10_000.0 else 2
    if p < 3000.0 or not found[0] or not found[1] or behind < needed:
        return Identification((NO_HIT,) * N_STATIONS, 0.0, False, margin)
    nearest = []
    distance2 = ((residual / size) ** 2).sum(axis=0)
    for station in range(N_STATIONS if p >= 6000.0 else 2):
        here = np.flatnonzero(inside & (hits.station == station))
        ranked = here[np.argsort(distance2[here], kind="stable")]
        nearest.append(int(ranked[0]) if len(ranked) else NO_HIT)
        if len(ranked) > 1:
            margin = min(margin, float(distance2[ranked[1]] - distance2[ranked[0]]) or np.inf)
    chosen = np.array([hit for hit in nearest if hit != NO_HIT])
    chi2 = correlated_chi2(hits.z[chosen], residual[:, chosen], size[:, chosen], p)
    margin = min(margin, abs(chi2 / max_chi2 - 1.0))
    return Identification((*nearest, *[NO_HIT] * (N_STATIONS - len(nearest))), chi2, chi2 <= max_chi2, margin)


def correlated_chi2(
    z: NDArray[np.float64], residual: NDArray[np.float64], size: NDArray[np.float64], p: float
) -> float:
    """Chi2 of n hits, divided by n; residuals and half sizes f64[2, n]."""
    scattering = np.zeros((len(z), len(z)))
    for middle, length, thickness, loss in ABSORBERS:
        theta = 13.6 / max(p - loss, LEAST_PART * p) * np.sqrt(thickness) * (1 + 0.038 * np.log(thickness))
        behind = np.where(z > middle, z - middle, 0.0)
        both = np.outer(z > middle, z > middle)
        scattering += theta**2 * (np.outer(behind, behind) + both * length**2 / 12)
    total = 0.0
    for axis in range(2):
        covariance = scattering + np.diag(size[axis] ** 2 / 3)
        total += residual[axis] @ np.linalg.solve(covariance, residual[axis])
    return float(total / len(z))
