"""Jets in NumPy: cones around the hardest tracks, one after the other; angles in double precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.calorimeter.collections import MAX_CLUSTERS_PER_EVENT
from hltnode.processing.lhcb.jets.collections import MAX_JETS_PER_EVENT
from hltnode.processing.lhcb.tracks.long.collections import MAX_TRACKS_PER_EVENT

f = np.float32
Columns = Mapping[str, NDArray[Any]]
NO_PV = 255
TRACK_COLUMNS = {
    **dict.fromkeys(("beam_tx", "beam_ty", "beam_qop", "ghost_probability"), np.float32),
    **{"pv": np.uint8, "ecal_cell": np.uint16},
}
CLUSTER_COLUMNS = {**dict.fromkeys(("x", "y", "et", "e19"), np.float32), "seed": np.uint16}
CUTS = {
    **{"radius": 0.5, "min_seed_pt": 1500.0, "min_track_pt": 250.0},
    **{"max_ghost_probability": 0.5, "min_photon_et": 400.0, "min_photon_e19": 0.6},
}


@dataclass(frozen=True, slots=True)
class Jet:
    """pt in MeV."""

    pt: float
    eta: float
    phi: float
    n_tracks: int
    n_photons: int
    seed: int
    pv: int


@dataclass(frozen=True, slots=True)
class Jets:
    """The jets of an event. more: whether there were more seeds. margin: smallest | ΔR² - radius² | of a part that was
    tried."""

    jets: Sequence[Jet]
    more: bool
    margin: float


def directions(tx: NDArray[Any], ty: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Pseudorapidity and azimuth."""
    x, y = tx.astype(float), ty.astype(float)
    return np.arcsinh(1.0 / np.hypot(x, y)), np.arctan2(y, x)


def transverse_momenta(tracks: Columns) -> NDArray[np.float32]:
    """MeV, in single precision."""
    tx, ty, qop = (tracks[f"beam_{name}"].astype(f) for name in ("tx", "ty", "qop"))
    with np.errstate(all="ignore"):
        along = f(1) / (np.abs(qop) * np.sqrt(f(1) + tx * tx + ty * ty))
        found = along * np.sqrt(tx * tx + ty * ty)
    return found.astype(f)


def in_units(pt: NDArray[np.float32]) -> NDArray[np.int64]:
    """1/16 MeV; a part has 1 TeV at most."""
    units: NDArray[np.float32] = np.floor(np.minimum(pt, f(1e6)) * f(16) + f(0.5))
    return units.astype(np.int64)


def half_turn(angle: Any) -> Any:
    """From -pi to pi."""
    return np.where(angle > np.pi, angle - 2 * np.pi, np.where(angle < -np.pi, angle + 2 * np.pi, angle))


def find_jets(tracks: Columns, clusters: Columns, cuts: Mapping[str, float] | None = None) -> Jets:
    """Jets of an event, whose columns are those of TRACK_COLUMNS and CLUSTER_COLUMNS. cuts: instead of CUTS."""
    of = {**CUTS, **(cuts or {})}
    pt, et = transverse_momenta(tracks), clusters["et"].astype(f)
    good = (pt >= f(of["min_track_pt"])) & (tracks["pv"] != NO_PV)
    good &= tracks["ghost_probability"].astype(f) <= f(of["max_ghost_probability"])
    narrow = (et > f(of["min_photon_et"])) & (clusters["e19"].astype(f) > f(of["min_photon_e19"]))
    narrow &= ~np.isin(clusters["seed"], tracks["ecal_cell"])
    kept, photons = np.flatnonzero(good), np.flatnonzero(narrow)
    units = in_units(np.concatenate([pt[kept], et[photons]]))
    slopes = [
        np.concatenate([tracks[f"beam_t{axis}"][kept], clusters[axis][photons].astype(float) / 12650.0])
        for axis in ("x", "y")
    ]
    eta, phi = directions(*slopes)
    pv = np.concatenate([tracks["pv"][kept].astype(int), np.full(len(photons), NO_PV)])
    is_track = np.arange(len(units)) < len(kept)
    jets: list[Jet] = []
    margin = np.inf
    min_units = max(int(in_units(np.array([of["min_seed_pt"]], f))[0]), 1)
    while True:
        seeds = np.flatnonzero(is_track & (units >= min_units))
        if len(seeds) == 0 or len(jets) == MAX_JETS_PER_EVENT:
            return Jets(jets, len(seeds) > 0, float(margin))
        seed = min(seeds.tolist(), key=lambda i: (-units[i], eta[i], phi[i], pv[i], i))
        free = (units > 0) & (~is_track | (pv == pv[seed]))
        deta, dphi = eta - eta[seed], half_turn(phi - phi[seed])
        distance2 = deta**2 + dphi**2
        inside = free & (distance2 < of["radius"] ** 2)
        inside[seed] = True
        margin = min(margin, np.abs(distance2 - of["radius"] ** 2)[free].min())
        total = int(units[inside].sum())
        means = [
            sum(int(u) * round(float(d) * 65536) for u, d in zip(units[inside], of_part[inside], strict=True))
            for of_part in (deta, dphi)
        ]
        jets.append(
            Jet(
                pt=total / 16,
                eta=float(eta[seed]) + means[0] / total / 65536,
                phi=float(half_turn(phi[seed] + means[1] / total / 65536)),
                n_tracks=int((inside & is_track).sum()),
                n_photons=int((inside & ~is_track).sum()),
                seed=int(kept[seed]),
                pv=int(pv[seed]),
            )
        )
        units[inside] = 0


def event_of(columns: Columns, event: int) -> tuple[Columns, Columns]:
    """Tracks and clusters of an event among the columns of a batch."""

    def own(collection: str, names: Mapping[str, Any], most: int) -> Columns:
        place = slice(event * most, event * most + int(columns[f"{collection}.count"][event]))
        return {name: columns[f"{collection}.{name}"][place] for name in names}

    return (
        own("long_tracks", TRACK_COLUMNS, MAX_TRACKS_PER_EVENT),
        own("ecal_clusters", CLUSTER_COLUMNS, MAX_CLUSTERS_PER_EVENT),
    )
