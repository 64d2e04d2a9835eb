"""Secondary vertices of two tracks in slow and simple code: matrices and four-momenta, double precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tests.processing.lhcb.tracks.kalman.velo_fit_oracle import Field

PION, KAON, PROTON, MUON = 139.57039, 493.677, 938.27209, 105.65838
NO_PV = 255
MASSES = {
    "m_pipi": (PION, PION),
    "m_kpi": (KAON, PION),
    "m_pik": (PION, KAON),
    "m_kk": (KAON, KAON),
    "m_ppi": (PROTON, PION),
    "m_pip": (PION, PROTON),
    "m_mumu": (MUON, MUON),
}

Vector = NDArray[np.float64]
Track = Mapping[str, float]
"""Columns beam_*, ip, ip_chi2, pv, chi2 and is_muon of a long track."""


@dataclass(frozen=True, slots=True)
class Cuts:
    """The constants of the algorithms, with the same names."""

    max_track_chi2: float = 10.0
    displaced: tuple[float, float, float] = (200.0, 0.06, 4.0)
    v0: tuple[float, float, float] = (80.0, 0.08, 12.0)
    v0_far: tuple[float, float] = (0.2, 32.0)
    doca: tuple[float, float, float] = (1.0, 0.5, 0.5)
    same_pv_below: float = 16.0
    max_chi2: float = 30.0
    z: tuple[float, float] = (-600.0, 800.0)
    ks_mass: tuple[float, float] = (400.0, 600.0)
    max_lambda_mass: float = 1140.0


def moved(track: Track, z: float, field: Field) -> dict[str, float]:
    """A track with its state at another z; the covariances are still those at the beam line."""
    dz, old, qop = z - track["beam_z"], track["beam_z"], track["beam_qop"]
    bent = field.position(z) - field.position(old) - field.slope(old) * dz
    return {
        **track,
        "beam_x": track["beam_x"] + dz * track["beam_tx"] + qop * float(bent),
        "beam_y": track["beam_y"] + dz * track["beam_ty"],
        "beam_tx": track["beam_tx"] + qop * (field.slope(z) - field.slope(old)),
    }


def momentum(track: Track) -> Vector:
    """MeV."""
    direction = np.array([track["beam_tx"], track["beam_ty"], 1.0])
    result: Vector = direction / (np.linalg.norm(direction) * abs(track["beam_qop"]))
    return result


def uses(track: Track, cuts: Cuts) -> set[str]:
    """The kinds of candidates that a track may be part of."""
    with np.errstate(divide="ignore", invalid="ignore"):
        p = momentum(track)
    pt, ip, ip_chi2 = np.hypot(p[0], p[1]), track["ip"], track["ip_chi2"]
    if not (track["chi2"] < cuts.max_track_chi2 and np.linalg.norm(p) < 1e7):
        return set()
    found = set()
    for name, (min_pt, min_ip, min_ip_chi2) in (("displaced", cuts.displaced), ("v0", cuts.v0)):
        if pt > min_pt and ip > min_ip and ip_chi2 > min_ip_chi2:
            found.add(name)
    if "v0" in found and ip > cuts.v0_far[0] and ip_chi2 > cuts.v0_far[1]:
        found.add("v0_far")
    if track["is_muon"]:
        found.add("dimuon")
    return found


def closest_approach(a: Track, b: Track) -> tuple[float, float]:
    """(mean z of the points of closest approach, their distance in mm)."""
    direction = [np.array([t["beam_tx"], t["beam_ty"], 1.0]) for t in (a, b)]
    point = [np.array([t["beam_x"], t["beam_y"], t["beam_z"]]) for t in (a, b)]
    (mu_a, mu_b), *_ = np.linalg.lstsq(np.column_stack([direction[0], -direction[1]]), point[1] - point[0], rcond=None)
    on_a, on_b = point[0] + mu_a * direction[0], point[1] + mu_b * direction[1]
    return float(on_a[2] + on_b[2]) / 2, float(np.linalg.norm(on_a - on_b))


def allowed_kinds(a: Track, b: Track, cuts: Cuts) -> tuple[set[str], float]:
    """(kinds that the tracks and their distance allow, distance)."""
    both, either = uses(a, cuts) & uses(b, cuts), uses(a, cuts) | uses(b, cuts)
    _, doca = closest_approach(a, b)
    one_pv = a["pv"] == b["pv"] or max(a["ip_chi2"], b["ip_chi2"]) >= cuts.same_pv_below
    opposite = (a["beam_qop"] > 0) != (b["beam_qop"] > 0)
    kinds = set()
    if "displaced" in both and one_pv and doca < cuts.doca[0]:
        kinds.add("displaced")
    if "v0" in both and "v0_far" in either and opposite and doca < cuts.doca[1]:
        kinds.add("v0")
    if "dimuon" in both and doca < cuts.doca[2]:
        kinds.add("dimuon")
    return kinds, doca


def fit(a: Track, b: Track, z: float) -> tuple[Vector, NDArray[np.float64], float]:
    """(position, covariance, chi2): least-squares fit of tracks with states and errors at `z`."""
    rows, values, weights = [], [], []
    for track in (a, b):
        dz = z - track["beam_z"]
        for axis, (x, t, c0, c1, c2) in enumerate((("x", "tx", "c00", "c20", "c22"), ("y", "ty", "c11", "c31", "c33"))):
            slope = track[f"beam_{t}"]
            row = [0.0, 0.0, -slope]
            row[axis] = 1.0
            rows.append(row)
            values.append(track[f"beam_{x}"] - slope * z)
            variance = track[f"beam_{c0}"] + 2 * dz * track[f"beam_{c1}"] + dz**2 * track[f"beam_{c2}"]
            weights.append(1.0 / variance)
    design, value, weight = np.array(rows), np.array(values), np.array(weights)
    covariance: NDArray[np.float64] = np.linalg.inv(design.T @ (weight[:, None] * design))
    position = covariance @ design.T @ (weight * value)
    residual = value - design @ position
    return position, covariance, float(residual @ (weight * residual))


def mass(momenta: Sequence[Vector], masses: Sequence[float]) -> float:
    """Invariant mass of particles."""
    energy = sum(float(np.sqrt(p @ p + m**2)) for p, m in zip(momenta, masses, strict=True))
    total = np.sum(momenta, axis=0)
    return float(np.sqrt(energy**2 - total @ total))


def covariance_of(pv: np.void) -> NDArray[np.float64]:
    """Covariance of a primary vertex, mm²."""
    return np.array(
        [
            [pv["c00"], pv["c10"], pv["c20"]],
            [pv["c10"], pv["c11"], pv["c21"]],
            [pv["c20"], pv["c21"], pv["c22"]],
        ],
        dtype=np.float64,
    )


def describe(a: Track, b: Track, pvs: NDArray[np.void], field: Field) -> dict[str, float]:
    """All stored values of a vertex, by the names of its columns."""
    z, doca = closest_approach(a, b)
    a, b = moved(a, z, field), moved(b, z, field)
    position, covariance, chi2 = fit(a, b, z)
    momenta = [momentum(a), momentum(b)]
    p = momenta[0] + momenta[1]
    values = {
        **dict(zip("xyz", position, strict=True)),
        **{f"c{i}{j}": covariance[i, j] for i in range(3) for j in range(i + 1)},
        "chi2": chi2,
        "doca": doca,
        **dict(zip(("px", "py", "pz"), p, strict=True)),
        "pt": float(np.hypot(p[0], p[1])),
        **{name: mass(momenta, masses) for name, masses in MASSES.items()},
        "min_pt": min(np.hypot(*q[:2]) for q in momenta),
        "sum_pt": sum(np.hypot(*q[:2]) for q in momenta),
        "min_p": min(np.linalg.norm(q) for q in momenta),
        "min_ip": min(a["ip"], b["ip"]),
        "min_ip_chi2": min(a["ip_chi2"], b["ip_chi2"]),
        **dict.fromkeys(("ip", "fd", "fd_chi2", "eta", "dira", "m_corr"), 0.0),
        "pv": NO_PV,
    }
    if len(pvs):
        values |= _flight(position, covariance, p, values["m_pipi"], pvs)
    return {name: float(value) for name, value in values.items()}


def _flight(
    position: Vector, covariance: NDArray[np.float64], p: Vector, m_pipi: float, pvs: NDArray[np.void]
) -> dict[str, float]:
    slopes = p[:2] / p[2]
    ips = []
    for pv in pvs:
        dz = float(pv["z"]) - position[2]
        d = position[:2] + dz * slopes - [float(pv["x"]), float(pv["y"])]
        ips.append(float(np.sqrt(d @ d / (1.0 + slopes @ slopes))))
    nearest = int(np.argmin(ips))
    pv = pvs[nearest]
    d = position - np.array([float(pv[name]) for name in "xyz"])
    fd = float(np.linalg.norm(d))
    across = float(np.linalg.norm(np.cross(p, d)) / fd)
    return {
        "pv": nearest,
        "ip": ips[nearest],
        "fd": fd,
        "fd_chi2": float(d @ np.linalg.solve(covariance + covariance_of(pv), d)),
        "eta": float(np.arcsinh(d[2] / np.hypot(d[0], d[1]))),
        "dira": float(p @ d / (np.linalg.norm(p) * fd)),
        "m_corr": float(np.hypot(m_pipi, across) + across),
    }


def kinds(a: Track, b: Track, vertex: Mapping[str, float], pvs: NDArray[np.void], cuts: Cuts) -> set[str]:
    """The kinds of candidates of a fitted pair."""
    allowed, _ = allowed_kinds(a, b, cuts)
    if not (vertex["chi2"] < cuts.max_chi2 and cuts.z[0] < vertex["z"] < cuts.z[1]):
        return set()
    found = allowed & {"displaced", "dimuon"}
    if "v0" in allowed and vertex["pv"] != NO_PV and vertex["z"] > float(pvs[int(vertex["pv"])]["z"]):
        if cuts.ks_mass[0] < vertex["m_pipi"] < cuts.ks_mass[1]:
            found.add("ks")
        first_is_proton = np.linalg.norm(momentum(a)) > np.linalg.norm(momentum(b))
        if vertex["m_ppi" if first_is_proton else "m_pip"] < cuts.max_lambda_mass:
            found.add("lambda")
    return found


def find_vertices(
    tracks: Sequence[Track], pvs: NDArray[np.void], field: Field, cuts: Cuts | None = None
) -> list[tuple[int, int, set[str], dict[str, float]]]:
    """(first track, second track, kinds, columns) of each vertex of an event, in order."""
    cuts = cuts or Cuts()
    result = []
    useful = [number for number, track in enumerate(tracks) if uses(track, cuts)]
    for i, j in combinations(useful, 2):
        a, b = tracks[i], tracks[j]
        if a["beam_tx"] == b["beam_tx"] and a["beam_ty"] == b["beam_ty"]:
            continue  # parallel
        if not allowed_kinds(a, b, cuts)[0]:
            continue
        vertex = describe(a, b, pvs, field)
        if found := kinds(a, b, vertex, pvs, cuts):
            result.append((i, j, found, vertex))
    return result
