"""V0 candidates of merged tracks in NumPy: centres and radii of circles in double precision, every pair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.alice.geometry.slices import slice_angle
from hltnode.processing.alice.geometry.tpc_geometry import TpcGeometry

Floats = NDArray[np.float64]
PION, PROTON = 0.13957039, 0.93827209


@dataclass(frozen=True, slots=True)
class Circles:
    """Tracks in the global frame: places and directions as complex numbers, signed curvature (positive turns left)."""

    place: NDArray[np.complex128]
    along: NDArray[np.complex128]
    curvature: Floats
    z: Floats
    slope: Floats
    pt: Floats

    @property
    def centre(self) -> NDArray[np.complex128]:
        return self.place + 1j * self.along / self.curvature

    @property
    def distance(self) -> Floats:
        """Of the beam line, in cm."""
        return np.abs(np.abs(self.centre) - 1 / np.abs(self.curvature))


def circles_of(tracks: NDArray[np.void], geometry: TpcGeometry) -> Circles:
    """The circles of merged tracks."""
    t = {name: tracks[name].astype(float) for name in ("x", "y", "z", "sin_phi", "tan_lambda", "q_pt")}
    turn = np.exp(1j * slice_angle(tracks["slice"].astype(int)))
    r2, z2 = t["x"] ** 2 + t["y"] ** 2, t["z"] ** 2
    b0, second, fourth = geometry.as_floats()[160:163].astype(float)
    field = b0 * (1 + second * (z2 - r2 / 2) + fourth * (z2**2 - 3 * z2 * r2 + 0.375 * r2**2))
    q_pt = np.where(t["q_pt"] == 0, 1e-9, t["q_pt"])
    return Circles(
        place=(t["x"] + 1j * t["y"]) * turn,
        along=np.exp(1j * np.arcsin(t["sin_phi"])) * turn,
        curvature=-0.000299792458 * field * q_pt,
        z=t["z"],
        slope=t["tan_lambda"],
        pt=1 / np.abs(q_pt),
    )


@dataclass(frozen=True, slots=True)
class Pairs:
    """Closest places of pairs: f64[pairs].

    apart: distance of the circles. dz: distance of the tracks there. behind: smaller one of the ways from the place to
    both tracks. turn2: square of the sine of half of the larger turn. contained: one circle is inside of the other.
    """

    i: NDArray[np.int64]
    j: NDArray[np.int64]
    place: NDArray[np.complex128]
    z: Floats
    apart: Floats
    dz: Floats
    behind: Floats
    pointing: Floats
    pt: Floats
    masses: Floats
    turn2: Floats
    contained: NDArray[np.bool_]


def at_place(
    c: Circles, i: NDArray[np.int64], place: NDArray[np.complex128]
) -> tuple[NDArray[np.complex128], Floats, Floats]:
    """Direction, z, and cm of the way from a place on the circle to that of the track."""
    k = c.curvature[i]
    along = 1j * (place - c.centre[i]) * k
    along = along / np.abs(along)
    turn = np.angle(c.along[i] / along)
    way = turn / k
    return along, c.z[i] - c.slope[i] * way, way


def pairs_of(c: Circles, i: NDArray[np.int64], j: NDArray[np.int64]) -> list[Pairs]:
    """Both crossings of the circles of each pair; where they do not cross, the middle between them, twice."""
    found = []
    a, b = c.centre[i], c.centre[j]
    ra, rb = 1 / np.abs(c.curvature[i]), 1 / np.abs(c.curvature[j])
    d = np.abs(b - a)
    unit = (b - a) / d
    foot = (d**2 + ra**2 - rb**2) / (2 * d)
    height2 = ra**2 - foot**2
    apart = np.where(height2 < 0, np.where(d > ra + rb, d - ra - rb, np.abs(ra - rb) - d), 0.0)
    for sign in (-1, 1):
        place = a + unit * (foot + sign * 1j * np.sqrt(np.maximum(height2, 0)))
        ai, zi, wi = at_place(c, i, place)
        aj, zj, wj = at_place(c, j, place)
        p = np.array([c.pt[i] * ai.real, c.pt[i] * ai.imag, c.pt[i] * c.slope[i]])
        q = np.array([c.pt[j] * aj.real, c.pt[j] * aj.imag, c.pt[j] * c.slope[j]])
        s = p + q
        masses = [
            np.sqrt(
                np.maximum((np.sqrt((p**2).sum(0) + mp**2) + np.sqrt((q**2).sum(0) + mq**2)) ** 2 - (s**2).sum(0), 0)
            )
            for mp, mq in ((PION, PION), (PROTON, PION), (PION, PROTON))
        ]
        pt = np.hypot(s[0], s[1])
        pointing = (place.real * s[0] + place.imag * s[1]) / (np.abs(place) * pt)
        found.append(
            Pairs(
                i=i,
                j=j,
                place=place,
                z=(zi + zj) / 2,
                apart=apart,
                dz=np.abs(zi - zj),
                behind=np.minimum(wi, wj),
                pointing=pointing,
                pt=pt,
                masses=np.array(masses),
                turn2=np.maximum(np.sin(wi * c.curvature[i] / 2) ** 2, np.sin(wj * c.curvature[j] / 2) ** 2),
                contained=d < np.abs(ra - rb),
            )
        )
    return found


PHI_BINS, Z_BINS, PHI_REACH, Z_REACH, MOST_PARTNERS = 64, 50, 10, 5, 2048


@dataclass(frozen=True, slots=True)
class Candidate:
    """A pair of tracks with the numbers of the best crossing."""

    positive: int
    negative: int
    x: float
    y: float
    z: float
    masses: tuple[float, float, float]
    pt: float
    dca: float
    pointing: float


def displaced(
    tracks: NDArray[np.void], c: Circles, k: dict[str, float], slack: float
) -> tuple[NDArray[np.bool_], Floats]:
    """Which tracks take part, and their distances of the beam line over the errors."""
    significance = c.distance / np.hypot(k["dca_constant"], k["dca_scattering"] / c.pt)
    taken = (significance >= k["min_significance"] * (1 - slack)) & (c.pt < 50)
    return taken & (tracks["n_clusters"] >= k["min_clusters"]), significance


def v0_bins(c: Circles) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Bins of azimuth and z."""
    phi = np.floor((np.angle(c.place) + np.pi) * PHI_BINS / (2 * np.pi)).astype(int) % PHI_BINS
    return phi, np.clip(np.floor(c.z / 10 + Z_BINS / 2).astype(int), 0, Z_BINS - 1)


def find_v0s(
    tracks: NDArray[np.void], geometry: TpcGeometry, k: dict[str, float], slack: float = 0.0
) -> list[Candidate]:
    """Candidates by the numbers of both tracks, over all pairs in near bins. slack: by which each limit is wider."""
    c = circles_of(tracks, geometry)
    taken, significance = displaced(tracks, c, k, slack)
    positive = np.flatnonzero(taken & (tracks["q_pt"] > 0))
    negative = np.flatnonzero(taken & (tracks["q_pt"] < 0))
    i, j = (each.ravel() for each in np.meshgrid(positive, negative, indexing="ij"))
    phi, line = v0_bins(c)
    apart = np.abs(phi[i] - phi[j])
    near = (np.minimum(apart, PHI_BINS - apart) <= PHI_REACH) & (np.abs(line[i] - line[j]) <= Z_REACH)
    partners = np.bincount(i[near], minlength=len(tracks))
    near &= partners[i] <= MOST_PARTNERS
    near &= np.maximum(significance[i], significance[j]) >= k["min_larger_significance"] * (1 - slack)
    reach = (k["max_dca"] + 5.0 * (np.abs(c.slope[i]) + np.abs(c.slope[j]))) * (1 + slack)
    z_beam = c.z - c.slope * np.abs(c.place)
    first = z_beam[i] - z_beam[j]
    last = first + k["max_radius"] * (1 + slack) * (c.slope[i] - c.slope[j])
    near &= ~((first > reach) & (last > reach)) & ~((first < -reach) & (last < -reach))
    i, j = i[near], j[near]
    with np.errstate(all="ignore"):
        both = pairs_of(c, i, j)
    allowed = []
    for pairs in both:
        radius = np.abs(pairs.place)
        fine = (pairs.behind >= -k["max_ahead"] - 100 * slack) & (radius >= k["min_radius"] * (1 - slack))
        fine &= (radius <= k["max_radius"] * (1 + slack)) & (pairs.turn2 <= 0.25 * (1 + slack)) & ~pairs.contained
        allowed.append(fine)
    second = allowed[1] & (~allowed[0] | (both[1].dz < both[0].dz))
    found = []
    for n in np.flatnonzero(allowed[0] | allowed[1]):
        at = both[int(second[n])]
        dca = float(np.hypot(at.apart[n], at.dz[n]))
        kaon, particle, antiparticle = (float(mass) for mass in at.masses[:, n])
        limits = [(kaon, 0.497611, k["kaon_window"])]
        limits += [(mass, 1.115683, k["lambda_window"]) for mass in (particle, antiparticle)]
        if dca > k["max_dca"] * (1 + slack) or at.pointing[n] < k["min_pointing"] - slack:
            continue
        if not any(abs(mass - of) <= window + slack for mass, of, window in limits):
            continue
        place = complex(at.place[n])
        found.append(
            Candidate(
                positive=int(i[n]),
                negative=int(j[n]),
                x=place.real,
                y=place.imag,
                z=float(at.z[n]),
                masses=(kaon, particle, antiparticle),
                pt=float(at.pt[n]),
                dca=dca,
                pointing=float(at.pointing[n]),
            )
        )
    return found
