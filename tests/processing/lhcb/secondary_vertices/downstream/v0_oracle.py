"""Vertices of two downstream tracks in double precision, pair by pair (docs/physics/downstream-v0s.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.secondary_vertices.downstream.field import V0_FIELD

Floats = NDArray[np.float64]

Z_UT = 2642.0
SCIFI_TO_UT = 5878.0
X_ERROR, Y_ERROR, SLOPE_ERROR, SCATTERING = 0.1, 0.6, 2e-4, 3.0
ELECTRON, PION, PROTON = 0.51099895, 139.57039, 938.27209
TRACK_COLUMNS = ("x", "y", "tx", "ty", "qop", "y_distance")


@dataclass(frozen=True)
class Track:
    """Tracks in the UT, f64[n] each; `bend`: f64[n, 4], the coefficients of dz^(k + 2)."""

    x: Floats
    y: Floats
    tx: Floats
    ty: Floats
    qop: Floats
    bend: Floats

    @classmethod
    def of(cls, columns: Mapping[str, NDArray[Any]], field: bytes) -> Track:
        """From columns of downstream_tracks."""
        x, y, tx, ty, qop, distance = (np.asarray(columns[name], np.float64) for name in TRACK_COLUMNS)
        terms = np.frombuffer(field, V0_FIELD.dtype)["bend"][0].astype(np.float64)
        shapes = np.stack([np.ones_like(x), (x / Z_UT) ** 2, (y / Z_UT) ** 2])
        return cls(x, y, tx, ty - distance / SCIFI_TO_UT, qop, (terms @ shapes).T * qop[:, None])

    def __getitem__(self, rows: Any) -> Track:
        return Track(*(getattr(self, name)[rows] for name in ("x", "y", "tx", "ty", "qop", "bend")))

    def x_at(self, dz: Floats) -> Floats:
        """x at Z_UT + dz."""
        powers: Floats = dz[:, None] ** np.arange(2, 6)
        found: Floats = self.x + self.tx * dz + (self.bend * powers).sum(axis=1)
        return found

    def tx_at(self, dz: Floats) -> Floats:
        """dx/dz there."""
        powers: Floats = np.arange(2, 6) * dz[:, None] ** np.arange(1, 5)
        found: Floats = self.tx + (self.bend * powers).sum(axis=1)
        return found

    @property
    def p(self) -> Floats:
        """MeV."""
        return 1.0 / np.abs(self.qop)

    def momentum_at(self, dz: Floats) -> Floats:
        """MeV, f64[n, 3]."""
        direction = np.stack([self.tx_at(dz), self.ty, np.ones_like(dz)], axis=1)
        found: Floats = self.p[:, None] * direction / np.linalg.norm(direction, axis=1)[:, None]
        return found


def vertices_of(a: Track, b: Track, pvs: Floats) -> dict[str, Floats]:
    """All numbers of the vertices of pairs, by name; pvs f64[n, 3]: at least one, of the one event of all pairs."""
    slopes = 2 * SLOPE_ERROR**2 + SCATTERING**2 * (a.qop**2 + b.qop**2)
    # Closest approach of the tangents: least squares in all three directions.
    lines = [np.stack([of.tx, of.ty, np.ones_like(of.tx)], axis=1) for of in (a, b)]
    at = [np.stack([of.x - of.tx * Z_UT, of.y - of.ty * Z_UT, np.zeros_like(of.x)], axis=1) for of in (a, b)]
    z = np.empty(len(a.x))
    for i in range(len(z)):
        one, other = lines[0][i], lines[1][i]
        matrix = np.array([[one @ one, -one @ other], [one @ other, -other @ other]])
        apart = at[1][i] - at[0][i]
        z[i] = np.linalg.solve(matrix, [one @ apart, other @ apart]).mean()
    dz = z - Z_UT
    for _ in range(8):
        hx, hy = 1 / (2 * X_ERROR**2 + slopes * dz**2), 1 / (2 * Y_ERROR**2 + slopes * dz**2)
        dx, dy = a.x_at(dz) - b.x_at(dz), a.y + a.ty * dz - b.y - b.ty * dz
        dtx, dty = a.tx_at(dz) - b.tx_at(dz), a.ty - b.ty
        dz = dz - (hx * dtx * dx + hy * dty * dy) / (hx * dtx**2 + hy * dty**2)
    xa, xb, ya, yb = a.x_at(dz), b.x_at(dz), a.y + a.ty * dz, b.y + b.ty * dz
    pa, pb = a.momentum_at(dz), b.momentum_at(dz)
    normal = np.cross(pa, pb)
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    weight = (SLOPE_ERROR**2 + SCATTERING**2 * b.qop**2) / slopes
    place = np.stack([xb + weight * (xa - xb), yb + weight * (ya - yb), Z_UT + dz], axis=1)
    p = pa + pb
    line = p / p[:, 2:]
    across = np.stack([place[:, None, i] + (pvs[None, :, 2] - place[:, 2:]) * line[:, i : i + 1] for i in (0, 1)])
    transverse = np.hypot(across[0] - pvs[:, 0], across[1] - pvs[:, 1])
    pv = transverse.argmin(axis=1)
    proton = a.p > b.p

    def mass(ma: Any, mb: Any) -> Floats:
        energy = np.sqrt(a.p**2 + ma**2) + np.sqrt(b.p**2 + mb**2)
        found: Floats = np.sqrt(energy**2 - (p**2).sum(axis=1))
        return found

    return {
        **{name: place[:, i] for i, name in enumerate("xyz")},
        "chi2": hx * (xa - xb) ** 2 + hy * (ya - yb) ** 2,
        "doca": np.abs(normal[:, 0] * (xa - xb) + normal[:, 1] * (ya - yb)),
        "pv": pv,
        "ip": transverse.min(axis=1) / np.linalg.norm(line, axis=1),
        **{f"p{name}": p[:, i] for i, name in enumerate("xyz")},
        "pt": np.hypot(p[:, 0], p[:, 1]),
        "min_pt": np.minimum(np.hypot(pa[:, 0], pa[:, 1]), np.hypot(pb[:, 0], pb[:, 1])),
        "m_pipi": mass(PION, PION),
        "m_ppi": mass(np.where(proton, PROTON, PION), np.where(proton, PION, PROTON)),
        "m_ee": mass(ELECTRON, ELECTRON),
    }


def kind_of(v0: Mapping[str, Floats], cuts: Mapping[str, float]) -> NDArray[np.int64]:
    """Bits of DownstreamV0Kind, i64[n]; 0 for pairs that are no candidates."""
    passes = (v0["z"] > cuts["min_z"]) & (v0["z"] < cuts["max_z"]) & (v0["doca"] < cuts["max_doca"])
    passes &= (v0["chi2"] < cuts["max_chi2"]) & (v0["ip"] < cuts["max_ip"])
    kind = 1 * ((v0["m_pipi"] > cuts["ks_min_mass"]) & (v0["m_pipi"] < cuts["ks_max_mass"]))
    kind += 2 * (v0["m_ppi"] < cuts["lambda_max_mass"])
    kind += 4 * (v0["m_ee"] < cuts["photon_max_mass"])
    found: NDArray[np.int64] = np.where(passes, kind, 0)
    return found
