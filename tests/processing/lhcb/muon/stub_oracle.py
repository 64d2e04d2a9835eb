"""Stubs of the muon stations alone, in simple Python and double precision: the oracle of find_stubs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hltnode.processing.lhcb.geometry.muon import MuonHits

Z_M2 = 15_270.0
HALF_WIDTH_X = np.array([[100.0, 200.0, 300.0, 400.0]] * 2 + [[400.0] * 4])
HALF_WIDTH_Y = np.array([[45.0, 90.0, 180.0, 360.0]] * 2 + [[90.0, 180.0, 360.0, 720.0]])
"""mm, of M2 to M4, by the region of the seed."""


@dataclass(frozen=True, slots=True)
class Stub:
    """Numbers of its hits in M2 to M5; x, y (mm) at the middle of M2, slopes, chi2 per degree of freedom."""

    hits: tuple[int, ...]
    x: float
    y: float
    tx: float
    ty: float
    chi2_x: float
    chi2_y: float

    @property
    def chi2(self) -> float:
        """Of both views."""
        return self.chi2_x + self.chi2_y


def candidates_of(hits: MuonHits) -> list[Stub]:
    """One stub at most of each hit in M5, those with common hits included."""
    return _search(hits)[0]


def margin_of(hits: MuonHits) -> float:
    """Smallest distance (mm) of a hit from the border of a window, and between the nearest hits of a window."""
    return _search(hits)[1]


def _search(hits: MuonHits) -> tuple[list[Stub], float]:
    found = []
    margin = np.inf
    for seed in np.flatnonzero(hits.station == 3).tolist():
        region = int(hits.tile[seed]) >> 14 & 3
        chosen = [seed]
        for station in (2, 1, 0):
            last = chosen[-1]
            z = hits.z[hits.station == station]
            if len(chosen) == 1:
                at_x, at_y = (v[last] * z / hits.z[last] for v in (hits.x, hits.y))
            else:
                before = chosen[-2]
                step = (z - hits.z[last]) / (hits.z[before] - hits.z[last])
                at_x, at_y = (v[last] + (v[before] - v[last]) * step for v in (hits.x, hits.y))
            (here,) = np.nonzero(hits.station == station)
            to_x, to_y = hits.x[here] - at_x, hits.y[here] - at_y
            beyond = np.maximum(
                np.abs(to_x) - HALF_WIDTH_X[station, region], np.abs(to_y) - HALF_WIDTH_Y[station, region]
            )
            margin = min(margin, float(np.abs(beyond).min(initial=np.inf)))
            inside = beyond < 0
            if not inside.any():
                break
            distance = np.where(inside, np.hypot(to_x, to_y), np.inf)
            first = int(np.argmin(distance))
            margin = min(margin, float((np.delete(distance, first) - distance[first]).min(initial=np.inf)))
            chosen.append(int(here[first]))
        else:
            found.append(_fitted(hits, chosen[::-1]))
    return found, margin


def stubs_of(hits: MuonHits) -> list[Stub]:
    """Stubs of an event: of candidates with a common hit the one with the smallest chi2, of equal ones the first."""
    candidates = candidates_of(hits)
    best: dict[int, Stub] = {}
    for stub in candidates:
        for hit in stub.hits:
            if hit not in best or stub.chi2 < best[hit].chi2:
                best[hit] = stub
    return [stub for stub in candidates if all(best[hit] is stub for hit in stub.hits)]


def _fitted(hits: MuonHits, chosen: list[int]) -> Stub:
    z = hits.z[chosen] - Z_M2
    numbers = []
    for place, half_size in ((hits.x, hits.dx), (hits.y, hits.dy)):
        error = 2.0 * half_size[chosen]
        slope, at = np.polyfit(z, place[chosen], 1, w=1.0 / error)
        chi2 = float((((place[chosen] - at - slope * z) / error) ** 2).sum())
        numbers.append((at, slope, chi2 / (len(chosen) - 2)))
    (x, tx, chi2_x), (y, ty, chi2_y) = numbers
    return Stub(tuple(chosen), x, y, tx, ty, chi2_x, chi2_y)
