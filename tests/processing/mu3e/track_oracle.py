"""Triplets and tracks in float64: all combinations of hits, the closed form of the fit, and the exact chi2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar

from hltnode.processing.mu3e.chain import CHAIN

CUTS = {
    constant.name: float(constant.value)
    for algorithm in CHAIN.sequence
    if algorithm.name.startswith("mu3e")
    for constant in algorithm.constants
    if constant.name != "max_chi2" or algorithm.name == "mu3e_fit_triplets"
}
"""Constants by name; max_chi2 is that of the fit of triplets."""
REACH = int(max(CUTS["hit_window"], CUTS["recurl_window"]))
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class EventHits:
    """Hits of a sub-slice: group and time of each, ns since REACH before its start, and positions f64[hits, 3]."""

    group: NDArray[np.int64]
    time: NDArray[np.int64]
    place: Array

    @classmethod
    def of(cls, words: NDArray[np.uint64], positions: NDArray[np.float32]) -> EventHits:
        """From the words and positions that the chain has."""
        bits = words.astype(np.int64)
        return cls(bits >> 45, bits >> 28 & 0x1FFFF, positions.astype(np.float64))


def selected(hits: EventHits, **changed: float) -> set[tuple[int, int, int]]:
    """The triplets that pass the geometric selection, by brute force over all combinations."""
    cut = CUTS | changed
    layers = [np.flatnonzero(hits.group == layer) for layer in range(3)]
    i, j = (each.ravel() for each in np.meshgrid(layers[0], layers[1], indexing="ij"))
    first = hits.place[j] - hits.place[i]
    near = (np.hypot(first[:, 0], first[:, 1]) <= cut["max_xy01"]) & (np.abs(first[:, 2]) <= cut["max_z01"])
    i, j, first = i[near], j[near], first[near]
    pair, k = (each.ravel() for each in np.meshgrid(np.arange(len(i)), layers[2], indexing="ij"))
    i, j, first = i[pair], j[pair], first[pair]
    second = hits.place[k] - hits.place[j]
    length = [np.hypot(each[:, 0], each[:, 1]) for each in (first, second)]
    times = np.column_stack([hits.time[each] for each in (i, j, k)])
    begin = times.min(1) - REACH
    good = (length[1] <= cut["max_xy12"]) & (np.abs(second[:, 2]) <= cut["max_z12"])
    good &= np.abs(second[:, 2] - first[:, 2] * length[1] / length[0]) <= cut["max_z_residual"]
    good &= np.ptp(times, axis=1) < cut["hit_window"]
    good &= (begin >= 0) & (begin < cut["length"] + cut["time_window"])
    return set(zip(i[good].tolist(), j[good].tolist(), k[good].tolist(), strict=True))


def combinations(hits: EventHits) -> int:
    """How many combinations of a hit of layer 0 with hits of layers 1 and 2 there are within the time window."""
    of_layer = [hits.time[hits.group == layer] for layer in range(3)]
    near = [np.abs(of_layer[0][:, None] - each) < CUTS["hit_window"] for each in of_layer[1:]]
    return int((near[0].sum(1) * near[1].sum(1)).sum())


@dataclass(frozen=True, slots=True)
class Terms:
    """Scattering angles phi + eta R and theta + beta R, sin^2, variance, and the sense of rotation of a triplet."""

    phi: float
    eta: float
    theta: float
    beta: float
    square_sine: float
    variance: float
    turn: float

    def chi2(self, radius: float) -> float:
        """At a radius in space."""
        phi, theta = self.phi + self.eta * radius, self.theta + self.beta * radius
        return (phi**2 * self.square_sine + theta**2) / self.variance


def terms_of(a: Array, b: Array, c: Array) -> Terms:
    """The closed form of N. Berger et al., arXiv:1606.04990, section 3."""
    ab, bc, ac = b - a, c - b, c - a
    turn = float(ab[0] * bc[1] - ab[1] * bc[0])
    d1, d2, d3 = (float(np.hypot(*each[:2])) for each in (ab, bc, ac))
    radius = d1 * d2 * d3 / (2.0 * abs(turn))
    # The centre by linear equations, and the angles of the arcs around it.
    centre = np.linalg.solve(
        2.0 * np.array([ab[:2], ac[:2]]), [b[:2] @ b[:2] - a[:2] @ a[:2], c[:2] @ c[:2] - a[:2] @ a[:2]]
    )
    azimuth = [np.arctan2(*(each[1::-1] - centre[::-1])) for each in (a, b, c)]
    arcs = [np.mod(np.sign(turn) * (azimuth[n + 1] - azimuth[n]), 2.0 * np.pi) for n in range(2)]
    z = (ab[2], bc[2])
    space = [np.hypot(radius, z[n] / arcs[n]) for n in range(2)]
    cot = [z[n] / (radius * arcs[n]) for n in range(2)]
    index = [
        (radius**2 * arcs[n] ** 2 + z[n] ** 2) / (0.5 * radius**2 * arcs[n] ** 3 / np.tan(arcs[n] / 2) + z[n] ** 2)
        for n in range(2)
    ]
    polar = [np.arccos(z[n] / (space[n] * arcs[n])) for n in range(2)]
    whole, height = radius * sum(arcs), sum(z)
    square_sine = whole**2 / (whole**2 + height**2)
    # Along the circle at the middle hit.
    along = np.array([centre[1] - b[1], b[0] - centre[0]])
    normal = abs(along @ b[:2]) / np.linalg.norm(along) / np.linalg.norm(b[:2]) * np.sqrt(square_sine)
    bend = CUTS["scattering"] * sum(arcs) / np.hypot(whole, height)
    return Terms(
        phi=-0.5 * sum(arcs[n] * index[n] for n in range(2)),
        eta=0.5 * sum(arcs[n] * index[n] / space[n] for n in range(2)),
        theta=polar[1] - polar[0] - (1 - index[1]) * cot[1] + (1 - index[0]) * cot[0],
        beta=(1 - index[1]) * cot[1] / space[1] - (1 - index[0]) * cot[0] / space[0],
        square_sine=square_sine,
        variance=bend**2 / max(normal, 0.2) + CUTS["hit_error"] ** 2 * (1 / d1**2 + 1 / d2**2 + (1 / d1 + 1 / d2) ** 2),
        turn=turn,
    )


def fitted(terms: Sequence[Terms]) -> tuple[float, float]:
    """Radius in space with the smallest sum of chi2, and this sum."""
    linear = sum((t.eta * t.phi * t.square_sine + t.beta * t.theta) / t.variance for t in terms)
    square = sum((t.eta**2 * t.square_sine + t.beta**2) / t.variance for t in terms)
    radius = -linear / square
    return radius, sum(t.chi2(radius) for t in terms)


def arc_of(chord: float, z: float, radius: float) -> float:
    """Angle of an arc of less than half a turn of a helix of a radius in space between two points."""

    def excess(angle: float) -> float:
        return float(chord**2 / (4.0 * np.sin(angle / 2.0) ** 2) + z**2 / angle**2 - radius**2)

    return float(brentq(excess, 1e-6, np.pi, xtol=1e-13))


def exact_chi2(a: Array, b: Array, c: Array, radius: float) -> float:
    """chi2 of the scattering angles of two helices of a radius in space, without a linear form."""
    chords = [float(np.hypot(*(each[:2]))) for each in (b - a, c - b)]
    z = [float(each[2]) for each in (b - a, c - b)]
    arcs = [arc_of(chords[n], z[n], radius) for n in range(2)]
    azimuth = [np.arctan2(*(each[1::-1])) for each in (b - a, c - b)]
    of = terms_of(a, b, c)
    turned = np.sign(of.turn) * (azimuth[1] - azimuth[0])
    phi = np.mod(turned + np.pi, 2.0 * np.pi) - np.pi - 0.5 * sum(arcs)
    theta = np.arccos(z[1] / (radius * arcs[1])) - np.arccos(z[0] / (radius * arcs[0]))
    return float((phi**2 * of.square_sine + theta**2) / of.variance)


def smallest_chi2(a: Array, b: Array, c: Array, near: float) -> tuple[float, float]:
    """Radius with the smallest exact chi2 within a factor of 1.5 of a first value, and this chi2."""
    chords = [np.linalg.norm(each) for each in (b - a, c - b)]
    least = max(near / 1.5, 0.501 * max(chords))
    found = minimize_scalar(
        lambda radius: exact_chi2(a, b, c, radius),
        bounds=(least, 1.5 * near),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return float(found.x), float(found.fun)
