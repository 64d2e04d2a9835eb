"""Long particles as the tracking sees them: hits in layers, residuals, scattering, momentum from the magnet."""

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.scifi import SciFiHitPositions
from hltnode.processing.lhcb.geometry.ut import UtHitPositions
from hltnode.processing.lhcb.offline.validation.likeness.long_particles import (
    STEREO_SLOPE,
    Lines,
    LongParticles,
    MagnetFlight,
    long_hadrons,
)
from hltnode.processing.lhcb.offline.validation.likeness.momentum_formula import SCIFI_Z, q_over_p
from hltnode.processing.lhcb.offline.validation.likeness.residuals import TruthHits
from hltnode.processing.offline.arrays import Float64Array, Int64Array
from hltnode.protocol.lhcb.lhcb_id import in_2022_scheme
from hltnode.protocol.lhcb.truth_columns import McParticleColumns

MOMENTUM_RANGES = {"3_5": (3e3, 5e3), "5_10": (5e3, 1e4), "above_10": (1e4, np.inf)}
"""Ranges of momentum (MeV), by the ends of the names of quantities."""
BEND_RANGES = {
    "far_in": (-0.3, -0.15),
    "in": (-0.15, -0.07),
    "near_in": (-0.07, 0.0),
    "near_out": (0.0, 0.07),
    "out": (0.07, 0.15),
    "far_out": (0.15, 0.3),
}
"""Charge times tx: particles are bent towards the beam or away from it."""
HEIGHT_RANGES = {"middle": (0.0, 0.1), "high": (0.1, 0.15), "highest": (0.15, 0.25)}
"""|ty|."""

Values = dict[str, Float64Array]

_N_LAYERS = 12
# SciFi hits this far (mm) from the curve are outliers; hits this near a true one are counted.
_OUTLIER, _NEAR = 0.5, 2.0
# Below this height (mm) the mats' mirrored edges, not the sign of y, decide on the half of a stereo layer.
_NEAR_THE_EDGE = 20.0
# Pseudo-sizes of clusters: 0 stands for more than 8 channels.
_NARROW, _WIDEST = 4, 8
# Scattering in the VELO is seen below these momenta (MeV).
_SOFT, _SOFT_PT = 10_000.0, 1000.0


def by_momentum(name: str, p: Float64Array, values: Float64Array) -> Values:
    """Values by ranges of momentum, under names that end with them."""
    return {f"{name}_{end}": values[(p >= low) & (p < high)] for end, (low, high) in MOMENTUM_RANGES.items()}


def scifi_values(long: LongParticles, scifi: SciFiHitPositions) -> Values:
    """Values for the SciFi hits of long particles."""
    owner, hit = long.scifi.owner, long.scifi.hit
    layer = scifi.layer[hit].astype(np.int64)
    hits_in_layer = np.bincount(owner * _N_LAYERS + layer, minlength=len(long.row) * _N_LAYERS)
    in_layer = hits_in_layer.reshape(-1, _N_LAYERS)
    size = np.rint((scifi.sigma[hit] - 0.05) / 0.03)
    p = long.p[owner]
    y = long.curve[3, owner] + long.curve[4, owner] * (scifi.z[hit] - SCIFI_Z)
    at_edge = (np.abs(scifi.dx_dy[hit]) > STEREO_SLOPE) & (np.abs(y) < _NEAR_THE_EDGE)
    above = scifi.zone[hit] % 2 == 1
    near = _hits_near(scifi, hit) - 1
    return {
        "scifi_layers_missed": _N_LAYERS - (in_layer > 0).sum(axis=1).astype(np.float64),
        "scifi_double": (in_layer[in_layer > 0] > 1).astype(np.float64),
        "scifi_5_to_8": ((size > _NARROW) & (size <= _WIDEST)).astype(np.float64),
        "scifi_above_8": (size == 0).astype(np.float64),
        "scifi_outlier": (np.abs(long.residual[p > 1e4]) > _OUTLIER).astype(np.float64),
        "scifi_other_half": (above != (y > 0))[at_edge].astype(np.float64),
        "scifi_near": near.astype(np.float64),
        **by_momentum("scifi_curve", p, 1000.0 * long.residual),
    }


def _hits_near(scifi: SciFiHitPositions, hit: Int64Array) -> Int64Array:
    """Number of hits of the same zone within _NEAR of each hit, itself included."""
    key = scifi.zone * 20_000.0 + scifi.x
    ordered = np.sort(key)
    found: Int64Array = np.searchsorted(ordered, key[hit] + _NEAR) - np.searchsorted(ordered, key[hit] - _NEAR)
    return found


def magnet_values(
    long: LongParticles, particles: McParticleColumns, ut: UtHitPositions, flight: MagnetFlight, polarity: float
) -> Values:
    """How long particles miss UT and SciFi after a flight without scattering, and the momentum by the formula."""
    states = flight.fly(long)
    wanted = np.zeros(len(particles), dtype=bool)
    wanted[long.row] = True
    found = TruthHits.find(particles.ut_ids, particles.n_ut_ids, wanted, ut.lhcb_id)
    owner = np.searchsorted(long.row, found.owner)
    ut_miss = flight.ut_residual(states, owner, ut, found.hit)
    slope_miss = np.where(states.reached[-1], 1000.0 * (long.curve[1] - states.tx[-1]), np.nan)
    bias = 100.0 * (q_over_p(long.line, long.behind(SCIFI_Z), polarity) * long.p * long.charge - 1.0)
    tx, height = long.charge * long.line[2], np.abs(long.line[3])
    return {
        **by_momentum("ut_miss", long.p, _means(owner, ut_miss, len(long.row))),
        **by_momentum("scifi_slope_miss", long.p, slope_miss),
        **by_momentum("momentum_error", long.p, bias),
        **{f"momentum_{name}": bias[(tx >= low) & (tx < high)] for name, (low, high) in BEND_RANGES.items()},
        **{f"momentum_{name}": bias[(height >= low) & (height < high)] for name, (low, high) in HEIGHT_RANGES.items()},
    }


def _means(owner: Int64Array, values: Float64Array, n: int) -> Float64Array:
    """Mean of the values of each owner, nan for those without."""
    known = np.isfinite(values)
    total, number = (np.bincount(owner[known], weights, n) for weights in (values[known], None))
    means: Float64Array = np.where(number > 0, total / np.maximum(number, 1), np.nan)
    return means


def velo_values(
    particles: McParticleColumns,
    line: Lines,
    velo_ids: NDArray[np.uint32],
    position: Float64Array,
) -> Values:
    """Scattering in the VELO: slopes of the first and the last three hits against the true one, times p (mrad GeV), and
    the distance of the line in x and y from the origin, times pT (um GeV)."""
    truth = particles.values
    wanted = long_hadrons(particles) & (truth["p"] < _SOFT)
    found = TruthHits.find(in_2022_scheme(particles.velo_ids), particles.n_velo_ids, wanted, velo_ids)
    order = np.lexsort((position[found.hit, 2], found.owner))
    owner, hit = found.owner[order], found.hit[order]
    row, first, n_hits = np.unique(owner, return_index=True, return_counts=True)
    enough = n_hits >= 4
    row, first, n_hits = row[enough], first[enough], n_hits[enough]
    p, pt, eta, phi = (truth[name][row].astype(np.float64) for name in ("p", "pt", "eta", "phi"))
    values: dict[str, list[Float64Array]] = {"velo_first_slope": [], "velo_last_slope": [], "velo_origin": []}
    for axis, (name_of_axis, direction) in enumerate((("vertex_x", np.cos(phi)), ("vertex_y", np.sin(phi)))):
        true = direction / np.sinh(eta)
        for name, start in (("velo_first_slope", first), ("velo_last_slope", first + n_hits - 3)):
            step = position[hit[start + 2]] - position[hit[start]]
            values[name].append(p * (step[:, axis] / step[:, 2] - true))
        z = truth["vertex_z"][row] / 1000.0
        distance = line[axis][row, 0] + line[axis][row, 1] * z - truth[name_of_axis][row]
        values["velo_origin"].append((1000.0 * distance * pt / 1000.0)[pt < _SOFT_PT])
    return {name: np.concatenate(parts) for name, parts in values.items()}


def t_track_values(particles: McParticleColumns) -> Values:
    """Particles per event that cross the SciFi with more than 3 GeV and are not long: hadrons, and electrons of RICH1
    and the UT."""
    values = particles.values
    chosen = (values["has_scifi"] != 0) & (values["is_long"] == 0) & (values["p"] > 3000.0)
    electron = np.abs(values["pid"]) == 11
    z = values["vertex_z"]
    return {
        "t_hadrons": np.array([(chosen & ~electron).sum()], dtype=np.float64),
        "t_electrons": np.array([(chosen & electron & (z > 770.0) & (z < 2700.0)).sum()], dtype=np.float64),
    }
