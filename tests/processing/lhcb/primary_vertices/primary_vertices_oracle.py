"""The primary vertex finder in slow and simple code: NumPy, double precision (docs/physics/primary-vertices.md)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.velo import BeamLine

Z_MIN, Z_SMOG2, Z_MAX, BIN = -541.0, -341.0, 307.0, 0.25
N_BINS = 3392
MIN_DIP = 2.5  # tracks per mm


@dataclass(frozen=True, slots=True)
class Cuts:
    """Constants that differ between vertices of all tracks and those of one half of the VELO."""

    max_z_error: float = 1.5
    min_integral: float = 2.5
    min_tracks: int = 4


USUAL = Cuts()


@dataclass(frozen=True, slots=True)
class Tracks:
    """States at the beam line, one row each; `weight` is the inverse variance of x and of y."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    z: NDArray[np.float64]
    tx: NDArray[np.float64]
    ty: NDArray[np.float64]
    weight: NDArray[np.float64]

    def residuals(self, vertex: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        dz = vertex[2] - self.z
        return vertex[0] - (self.x + self.tx * dz), vertex[1] - (self.y + self.ty * dz)

    def chi2(self, vertex: NDArray[np.float64]) -> NDArray[np.float64]:
        rx, ry = self.residuals(vertex)
        return (rx**2 + ry**2) * self.weight


@dataclass(frozen=True, slots=True)
class Vertex:
    position: NDArray[np.float64]
    covariance: NDArray[np.float64]
    n_tracks: float


def histogram(tracks: Tracks, beamline: BeamLine, cuts: Cuts = USUAL) -> NDArray[np.float64]:
    """Tracks per bin; each good track spreads over its z resolution."""
    content = np.zeros(N_BINS)
    edges = np.arange(1, N_BINS + 1)
    divergence2 = (tracks.tx - beamline.slope_x) ** 2 + (tracks.ty - beamline.slope_y) ** 2
    error = 1.0 / np.sqrt(divergence2 * tracks.weight)
    distance = np.stack([tracks.x, tracks.y], axis=-1) - beamline.at(tracks.z)
    chi2 = np.sum(distance**2, axis=-1) * tracks.weight
    good = (chi2 < 10.0) & (error < np.where(tracks.z < Z_SMOG2, 10.0, cuts.max_z_error))
    for z, sigma in zip(tracks.z[good], error[good], strict=True):
        position = (z - Z_MIN) / BIN
        half = np.sqrt(7.0) * sigma / BIN
        low = int(np.clip(position - half, 1, N_BINS - 2))
        high = int(np.clip(position + half, 1, N_BINS - 2))
        v = (edges[low:high] - position) * BIN / sigma / np.sqrt(7.0)
        e = 1.0 - v**2
        below = np.concatenate([[0.0], 0.5 + v * (0.5 + e * (0.25 + 0.1875 * e)), [1.0]])
        content[low : high + 1] += np.diff(below)
    return content


def _is_smog2(bin_number: int) -> bool:
    return Z_MIN + BIN * bin_number < Z_SMOG2


def find_seeds(content: NDArray[np.float64], cuts: Cuts = USUAL) -> list[float]:
    """z of the peaks, ascending."""
    thresholds = np.array([BIN / (10.0 * (10.0 if _is_smog2(i) else cuts.max_z_error)) for i in range(N_BINS)])
    above = np.concatenate([[False], content > thresholds, [False]])
    starts, ends = np.flatnonzero(~above[:-1] & above[1:]), np.flatnonzero(above[:-1] & ~above[1:])
    seeds = []
    for begin, end in zip(starts.tolist(), ends.tolist(), strict=True):
        min_integral = 1.75 if _is_smog2(begin) else cuts.min_integral
        if content[begin:end].sum() <= min_integral:
            continue
        parts = _split_at_dips(content, begin, end, MIN_DIP * BIN)
        peaks = [first + int(np.argmax(content[first:last])) for first, last in parts]
        large = [
            peak for peak, (first, last) in zip(peaks, parts, strict=True) if content[first:last].sum() > min_integral
        ]
        seeds += [_interpolated(content, peak) for peak in large or peaks[:1]]
    return seeds


def _split_at_dips(content: NDArray[np.float64], begin: int, end: int, dip: float) -> list[tuple[int, int]]:
    """Parts of the histogram, divided at bins that lie more than `dip` below the highest bins on both sides."""
    parts, first, highest, lowest = [], begin, begin, begin
    for i in range(begin, end):
        deep = content[highest] - content[lowest] > dip
        if lowest > highest and deep and content[i] - content[lowest] > dip:
            parts.append((first, lowest))
            first, highest, lowest = lowest, i, i
        elif content[i] > content[highest]:
            highest = lowest = i
        elif content[i] < content[lowest]:
            lowest = i
    return [*parts, (first, end)]


def _interpolated(content: NDArray[np.float64], peak: int) -> float:
    below, above = content[peak] - content[peak - 1], content[peak] - content[peak + 1]
    return Z_MIN + BIN * (peak + 0.5 + (0.5 * (below - above) / (below + above) if below + above > 0 else 0.0))


def scattered(tracks: Tracks) -> Tracks:
    """Tracks with the scattering of an average particle of a collision; the filter assumes that of a long particle."""
    slope2 = tracks.tx**2 + tracks.ty**2
    return replace(tracks, weight=tracks.weight / (0.6 + 0.9 * slope2 / (slope2 + 0.02**2)))


def fit_seeds(tracks: Tracks, seeds: list[float], beamline: BeamLine, cuts: Cuts = USUAL) -> list[Vertex | None]:
    """The adaptive fit of each seed; None if it is rejected."""
    places = [np.array([*beamline.at(z), z]) for z in seeds]
    to_seeds = np.array([np.exp(-0.5 * tracks.chi2(place)) for place in places]).reshape(len(seeds), len(tracks.z))
    total = to_seeds.sum(axis=0)
    return [_fit(tracks, place, total - own, beamline, cuts) for place, own in zip(places, to_seeds, strict=True)]


def _fit(
    tracks: Tracks, seed: NDArray[np.float64], others: NDArray[np.float64], beamline: BeamLine, cuts: Cuts
) -> Vertex | None:
    vertex = seed.copy()
    fitted = None
    for _ in range(7):
        chi2 = tracks.chi2(vertex)
        used = chi2 < 12.0
        if used.sum() < (3 if seed[2] < Z_SMOG2 else cuts.min_tracks):
            return None
        near = np.exp(-0.5 * chi2)
        w = np.where(used, near / (np.exp(-2.0) + near + others), 0.0)
        # Derivatives of the residuals in x and y by the vertex.
        zero, one = np.zeros_like(w), np.ones_like(w)
        jacobian = np.array([[one, zero, -tracks.tx], [zero, one, -tracks.ty]])
        residuals = np.array(tracks.residuals(vertex))
        matrix = np.einsum("cit,cjt,t->ij", jacobian, jacobian, w * tracks.weight)
        covariance = np.linalg.inv(matrix)
        step = covariance @ np.einsum("cit,ct,t->i", jacobian, residuals, w * tracks.weight)
        vertex = vertex - step
        fitted = Vertex(vertex, covariance, float(w.sum()))
        if abs(step[2]) < 0.0005:
            break
    rho2 = float(np.sum((vertex[:2] - beamline.at(vertex[2])) ** 2))
    return fitted if rho2 < 0.3 else None


def clean_up(vertices: list[Vertex | None]) -> list[Vertex]:
    """The vertices without a larger vertex, or an earlier one of the same size, close by."""
    there = [vertex for vertex in vertices if vertex is not None]
    return [
        one
        for i, one in enumerate(there)
        if not any(
            (other.n_tracks > one.n_tracks or (other.n_tracks == one.n_tracks and j < i))
            and (one.position[2] - other.position[2]) ** 2 < 25.0 * (one.covariance[2, 2] + other.covariance[2, 2])
            for j, other in enumerate(there)
        )
    ]


def find_vertices(tracks: Tracks, beamline: BeamLine, cuts: Cuts = USUAL) -> list[Vertex]:
    """All steps."""
    inside = (tracks.z > Z_MIN) & (tracks.z < Z_MAX)
    used = Tracks(*(getattr(tracks, name)[inside] for name in ("x", "y", "z", "tx", "ty", "weight")))
    return clean_up(fit_seeds(scattered(used), find_seeds(histogram(used, beamline, cuts), cuts), beamline, cuts))
