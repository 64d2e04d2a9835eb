"""What tells muons from other tracks, in simple Python and double precision: the oracle of measure_tracks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.muon import N_STATIONS, MuonHits
from hltnode.processing.lhcb.tracks.long.collections import Z_END_SCIFI

Z_M2 = 15_270.0
SCATTERING = 1.324200805763835
"""MeV / sqrt(mm)."""
MISSING = -10_000.0


def features_of(hits: MuonHits, track: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """f64[20]: dt, time, crossed, x, y of M2 to M5; and how much farther (mm^2) the second nearest hits are at least.

    A track x, y, tx, ty at z = 9410 mm, q/p in 1/MeV.
    """
    x, y, tx, ty, qop = track.tolist()
    found = np.full((5, N_STATIONS), MISSING)
    found[2] = 0.0
    margin = np.inf
    for station in range(N_STATIONS):
        (here,) = np.nonzero(hits.station == station)
        if len(here) == 0:
            continue
        to_x = x + tx * (hits.z[here] - Z_END_SCIFI) - hits.x[here]
        to_y = y + ty * (hits.z[here] - Z_END_SCIFI) - hits.y[here]
        distance2 = to_x**2 + to_y**2
        near = int(np.argmin(distance2))
        others = np.delete(distance2, near)
        margin = min(margin, float((others - distance2[near]).min(initial=np.inf)))
        hit = here[near]
        way = max(hits.z[hit] - Z_M2, 0.0) * np.sqrt(1.0 + tx**2 + ty**2)
        scattered = SCATTERING * abs(qop) * way**1.5
        time = float(hits.time[hit])
        found[:, station] = (
            hits.time_difference[hit] if hits.crossed[hit] else time,
            time,
            2.0 if hits.crossed[hit] else 1.0,
            to_x[near] / np.hypot(hits.dx[hit] / np.sqrt(3.0), scattered),
            to_y[near] / np.hypot(hits.dy[hit] / np.sqrt(3.0), scattered),
        )
    return found.ravel(), margin


def stub_of(hits: MuonHits, track: NDArray[np.float64], beam_ty: float, nearest: list[int]) -> NDArray[np.float64]:
    """f64[5]: chi2 without correlations over the number of hits, differences of slopes in x, y, y at the beam, hits of
    the event; of the hits with the numbers `nearest`."""
    if not nearest:
        return np.zeros(5)
    x, y, tx, ty, _ = track.tolist()
    z = hits.z[nearest] - Z_END_SCIFI
    chi2, slopes = 0.0, []
    for position, size, at, slope in (
        (hits.x[nearest], hits.dx[nearest], x, tx),
        (hits.y[nearest], hits.dy[nearest], y, ty),
    ):
        sigma = size / np.sqrt(3.0)
        chi2 += float((((position - at - slope * z) / sigma) ** 2).sum())
        slopes.append(float(np.polyfit(z, position, 1, w=1.0 / sigma)[0]))
    return np.array([chi2 / len(nearest), slopes[0] - tx, slopes[1] - ty, slopes[1] - beam_ty, len(hits.x)])
