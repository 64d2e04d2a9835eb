"""Long particles of the real events as input of the parametrisation: VELO state, UT, curve in the SciFi, truth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry, SciFiHitPositions
from hltnode.processing.lhcb.geometry.ut import UtGeometry, UtHitPositions
from hltnode.processing.lhcb.geometry.velo import Z_AXIS, VeloGeometry
from hltnode.processing.lhcb.parametrisation.forms import Z_REFERENCE, Z_UT, Z_VELO
from hltnode.processing.lhcb.parametrisation.functions import BehindMagnet
from hltnode.processing.lhcb.parametrisation.tracks import Curve, Line
from hltnode.protocol.lhcb.banks.scifi import decode_scifi
from hltnode.protocol.lhcb.banks.ut import decode_ut
from hltnode.protocol.lhcb.banks.velo import decode_retina_clusters
from hltnode.protocol.lhcb.lhcb_id import velo_lhcb_id, without_orientation
from hltnode.protocol.lhcb.truth import McParticle, decode_particles
from hltnode.protocol.raw_data.mdf import iter_records
from tests.processing.lhcb.velo.kalman_filter_oracle import State, fit_track

FloatArray = NDArray[np.float64]

DEVELOPMENT_MDF = "data/lhcb-minbias-mdf/minbias_1f258735_retina3_mc2_ev6001_6007.mdf"
ELECTRON = 11
MIN_P = 1500.0
# The truth also lists hits of secondaries: hits further (mm) than this from the curve are left out.
MAX_RESIDUAL = 1.0
MIN_X_HITS, MIN_STEREO_HITS = 4, 4


@dataclass(frozen=True, slots=True, eq=False)
class TruthTracks:
    """Long particles except electrons; p (MeV) and charge from the truth, f64[n].

    `velo`: tangents at Z_VELO of the track fit; `behind`: curves through the SciFi hits; `ut_x`: x (mm) at Z_UT of the
    fitted UT hits, nan without hits.
    """

    p: FloatArray
    charge: FloatArray
    eta: FloatArray
    velo: Line
    behind: Curve
    ut_x: FloatArray

    def __len__(self) -> int:
        return len(self.p)

    def s(self, polarity: float) -> FloatArray:
        """Polarity times charge over momentum, c/GeV."""
        return 1000.0 * polarity * self.charge / self.p


def truth_tracks(shared: Path, functions: BehindMagnet) -> TruthTracks:
    """The tracks of the seven events; `functions` give the ratio of cubic to quadratic term, which hits determine
    badly."""
    rows = []
    for record in iter_records((shared / DEVELOPMENT_MDF).read_bytes()):
        banks = record.banks()
        clusters = decode_retina_clusters(banks)
        velo_xyz = VeloGeometry.builtin().local_to_global(
            clusters.sensor, clusters.column, clusters.row, clusters.fraction_x / 4, clusters.fraction_y / 4
        )
        ids = velo_lhcb_id(clusters.sensor, clusters.column // 256, clusters.column % 256, clusters.row)
        velo_place = {lhcb_id: i for i, lhcb_id in enumerate(ids.tolist())}
        ut, scifi = UtGeometry.builtin().hits(decode_ut(banks)), SciFiGeometry.builtin().hits(decode_scifi(banks))
        ut_place = {lhcb_id: i for i, lhcb_id in enumerate(ut.lhcb_id.tolist())}
        scifi_place = {lhcb_id: i for i, lhcb_id in enumerate(scifi.lhcb_id.tolist())}
        for particle in decode_particles(banks):
            if not particle.is_long or abs(particle.pid) == ELECTRON or particle.p < MIN_P:
                continue
            pixels = without_orientation(np.array(particle.velo_ids, np.uint32)).tolist()
            places = np.array([velo_xyz[velo_place[pixel]] for pixel in pixels])
            state = fit_track(places[np.argsort(-places[:, 2])], Z_AXIS).end
            hits = np.array([scifi_place[i] for i in particle.scifi_ids if i in scifi_place], np.int64)
            curve = _curve(scifi, hits, state, functions)
            if curve is not None:
                in_ut = np.array([ut_place[i] for i in particle.ut_ids if i in ut_place], np.int64)
                rows.append(_row(particle, state, curve, _ut_x(ut, in_ut, state)))
    columns = np.array(rows).T
    return TruthTracks(
        p=columns[0],
        charge=columns[1],
        eta=columns[2],
        velo=Line.of(columns[3:7], Z_VELO),
        behind=Curve(*columns[7:13]),
        ut_x=columns[13],
    )


def _row(particle: McParticle, state: State, curve: FloatArray, ut_x: float) -> list[float]:
    before = [state.x, state.y, state.tx, state.ty]
    return [particle.p, particle.charge, particle.eta, *before, *curve, ut_x]


def _curve(
    scifi: SciFiHitPositions, hits: NDArray[np.int64], state: State, functions: BehindMagnet
) -> FloatArray | None:
    """x, tx, quadratic, cubic, y, ty of the least-squares curve, or None with too few hits."""
    line = Line.of(np.array([[state.x], [state.y], [state.tx], [state.ty]]), Z_VELO)
    y, ty, ratio = state.y + state.ty * (Z_REFERENCE - Z_VELO), state.ty, -2.5e-4
    for _ in range(6):
        is_x = scifi.dx_dy[hits] == 0.0
        if is_x.sum() < MIN_X_HITS or (~is_x).sum() < MIN_STEREO_HITS:
            return None
        # The hit lies on the fibre x + dx_dy y, z + dz_dy y.
        z = scifi.z[hits]
        dz = z + scifi.dz_dy[hits] * (y + ty * (z - Z_REFERENCE)) - Z_REFERENCE
        dx_dy = scifi.dx_dy[hits]
        terms = np.stack([dz**0, dz / 1e3, dz**2 * (1 + ratio * dz) / 1e6, -dx_dy, -dx_dy * dz / 1e3], axis=1)
        found = np.linalg.lstsq(terms, scifi.x[hits], rcond=None)[0]
        residuals = np.abs(terms @ found - scifi.x[hits])
        x, tx, quadratic, y, ty = found * [1.0, 1e-3, 1e-6, 1.0, 1e-3]
        kink = np.array([tx]) - line.tx
        (ratio,) = functions.value("cubic", kink, line.tx, line.ty) / functions.value(
            "curvature", kink, line.tx, line.ty
        )
        if residuals.max() > MAX_RESIDUAL:
            hits = np.delete(hits, residuals.argmax())
    return np.array([x, tx, quadratic, ratio * quadratic, y, ty])


def _ut_x(ut: UtHitPositions, hits: NDArray[np.int64], state: State) -> float:
    """x at Z_UT of the straight line through the UT hits, with y of the VELO."""
    if len(np.unique(ut.layer[hits])) < 3:
        return float("nan")
    y = state.y + state.ty * (ut.z[hits] - Z_VELO)
    x = ut.x[hits] + ut.dx_dy[hits] * y
    return float(np.polyval(np.polyfit(ut.z[hits] - Z_UT, x, 1), 0.0))
