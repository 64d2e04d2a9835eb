"""Vertices in float64: all triples of tracks, and the exact chi2 of a vertex minimised by scipy."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from hltnode.processing.mu3e.chain import CHAIN

CUTS = {
    constant.name: float(constant.value)
    for algorithm in CHAIN.sequence
    if algorithm.name == "mu3e_find_vertices"
    for constant in algorithm.constants
}
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Helix:
    """A track: first hit, centre and radius in the transverse plane, slope dz over arc, sense of rotation, MeV/c."""

    start: Array
    centre: Array
    radius: float
    slope: float
    turn: float
    momentum: float

    @classmethod
    def of(cls, track: np.void) -> Helix:
        """From a record of the chain."""
        start = np.array([track[name] for name in "xyz"], float)
        px, py, pz = (float(track[name]) for name in ("px", "py", "pz"))
        transverse, turn = float(np.hypot(px, py)), -float(track["charge"])
        radius = transverse / CUTS["mev_per_mm"]
        centre = start[:2] + turn * radius * np.array([-py, px]) / transverse
        return cls(start, centre, radius, pz / transverse, turn, float(track["momentum"]))

    def arc(self, x: float, y: float) -> float:
        """Arc from the first hit to the direction of a point from the centre."""
        one, other = self.start[:2] - self.centre, np.array([x, y]) - self.centre
        angle = np.arctan2(one[0] * other[1] - one[1] * other[0], one @ other)
        return float(self.turn * self.radius * angle)

    def height(self, x: float, y: float) -> float:
        """z there."""
        return float(self.start[2] + self.slope * self.arc(x, y))

    def comes_from(self, x: float, y: float) -> bool:
        """Whether the point lies before the first hit, and not too far."""
        return -CUTS["max_path"] <= self.arc(x, y) <= 3.0

    def line(self, place: Array) -> tuple[Array, Array, float]:
        """Point nearest in the transverse plane, direction, and weight of the track there."""
        outward = place[:2] - self.centre
        outward /= np.linalg.norm(outward)
        arc = self.arc(place[0], place[1])
        point = np.append(self.centre + self.radius * outward, self.start[2] + self.slope * arc)
        direction = np.append(self.turn * np.array([-outward[1], outward[0]]), self.slope)
        sine = 1.0 / np.hypot(1.0, self.slope)
        angle2 = (CUTS["scattering"] * CUTS["mev_per_mm"] / self.momentum) ** 2 / sine + CUTS["angle_error"] ** 2
        weight = 1.0 / (angle2 * (arc / sine) ** 2 + CUTS["hit_error"] ** 2)
        return point, direction * sine, weight


def crossings(a: Helix, b: Helix) -> list[Array]:
    """Points of two circles in the transverse plane, or the point between them if they miss each other by little."""
    between = b.centre - a.centre
    distance = float(np.linalg.norm(between))
    unit = between / distance
    across = np.array([-unit[1], unit[0]])
    gaps = (distance - a.radius - b.radius, abs(a.radius - b.radius) - distance)
    if max(gaps) > CUTS["max_gap"]:
        return []
    if gaps[0] > 0:
        return [a.centre + unit * (a.radius + gaps[0] / 2)]
    if gaps[1] > 0:
        side = 1.0 if a.radius > b.radius else -1.0
        return [a.centre + unit * side * (a.radius - side * gaps[1] / 2)]
    along = (a.radius**2 - b.radius**2 + distance**2) / (2 * distance)
    reach = np.sqrt(max(a.radius**2 - along**2, 0.0))
    return [a.centre + along * unit + sign * reach * across for sign in (1.0, -1.0)]


def chi2_of(place: Array, helices: list[Helix]) -> float:
    """Squared distances of the tracks and of the target's surface, in units of their errors."""
    radial = np.hypot(place[0], place[1])
    away = (radial - CUTS["target_radius"] + CUTS["target_slope"] * abs(place[2])) / np.hypot(1, CUTS["target_slope"])
    total = (away / CUTS["target_error"]) ** 2
    for helix in helices:
        point, direction, weight = helix.line(place)
        apart = point - place
        total += weight * (apart @ apart - (apart @ direction) ** 2)
    return float(total)


def best_vertex(helices: list[Helix]) -> tuple[Array, float] | None:
    """The vertex with the smallest chi2 of two positrons and an electron; None without a first point."""
    one, other, electron = helices
    found: list[tuple[Array, float]] = []
    for x, y in crossings(electron, one):
        if np.hypot(x, y) > CUTS["max_radius"] or not (electron.comes_from(x, y) and one.comes_from(x, y)):
            continue
        heights = [helix.height(x, y) for helix in (electron, one)]
        z = sum(heights) / 2
        if abs(heights[0] - heights[1]) > CUTS["max_z_apart"] or abs(z) > CUTS["max_z"]:
            continue
        apart = abs(np.hypot(x - other.centre[0], y - other.centre[1]) - other.radius)
        if apart > CUTS["max_distance"] or not other.comes_from(x, y):
            continue
        if abs(other.height(x, y) - z) > CUTS["max_z_apart"]:
            continue
        found += [_least_chi2(start, helices) for start in _starts(np.array([x, y, z]))]
    return min(found, key=lambda each: each[1]) if found else None


def _starts(place: Array) -> list[Array]:
    """Where the search for a vertex starts. Around the axis chi2 has a minimum on each side of the target."""
    if np.hypot(*place[:2]) > 5.0:
        return [place]
    radius = CUTS["target_radius"] - CUTS["target_slope"] * abs(place[2])
    turns = 0.5 * np.pi * np.arange(4)
    return [place, *(np.array([radius * np.cos(turn), radius * np.sin(turn), place[2]]) for turn in turns)]


def _least_chi2(start: Array, helices: list[Helix]) -> tuple[Array, float]:
    """The place with the smallest chi2 near a start, and this chi2."""
    # Steps of 1 mm: those of scipy are 5 % of a coordinate, which is nothing on the axis.
    simplex = start + np.concatenate([np.zeros((1, 3)), np.eye(3)])
    options = {"xatol": 1e-5, "fatol": 1e-6, "maxiter": 2000, "initial_simplex": simplex}
    result = minimize(chi2_of, start, args=(helices,), method="Nelder-Mead", options=options)
    return result.x, float(result.fun)


def kinematics(place: Array, helices: list[Helix]) -> tuple[float, float]:
    """Energy and size of the sum of momenta at a vertex."""
    energy = sum(np.hypot(helix.momentum, CUTS["electron_mass"]) for helix in helices)
    total = sum(helix.momentum * helix.line(place)[1] for helix in helices)
    return float(energy), float(np.linalg.norm(total))


def triples(tracks: NDArray[np.void]) -> list[tuple[int, int, int]]:
    """First positron, second positron, electron: together in time, in the sub-slice, and without a common hit."""
    used = np.flatnonzero(tracks["hits"] >= CUTS["min_hits"])
    positive, negative = used[tracks["charge"][used] > 0], used[tracks["charge"][used] < 0]
    found = []
    for electron in negative.tolist():
        for a, b in combinations(positive.tolist(), 2):
            of = tracks[[a, b, electron]]
            if of["last"].max() - of["first"].min() >= CUTS["time_window"] or of["first"].min() >= CUTS["length"]:
                continue
            if all(len(set(of[f"pixel{n}"].tolist())) == 3 for n in range(3)):
                found.append((a, b, electron))
    return found
