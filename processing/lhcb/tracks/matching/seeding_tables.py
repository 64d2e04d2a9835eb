"""Tables of the SciFi seeding, which depend only on the positions of the layers (docs/physics/seeding-and-matching.md).

A track in the SciFi tracker is x(z) = a + b D + c G(D) with D = z - 8520 mm and G = D^2 (1 + CUBIC D). The search
follows it from layer to layer, as a Kalman filter would: a hit at a distance `r` from the expected place moves the
expected places in later layers, and (a, b, c), by gains. The gains depend only on the set of layers with a hit.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import Record, SharedTypes, constant_column
from hltnode.processing.lhcb.geometry.errors import GeometryError
from hltnode.processing.lhcb.geometry.ideal_scifi import N_LAYERS
from hltnode.processing.lhcb.geometry.magnet import Magnet
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.parametrisation.forms import Z_REFERENCE
from hltnode.processing.lhcb.tracks.long.parameters import parameter_types

X_LAYERS = (0, 3, 4, 7, 8, 11)
STEREO_LAYERS = (1, 2, 5, 6, 9, 10)
N_STEPS = len(X_LAYERS) - 2
N_PATTERNS = 1 << N_STEPS
N_FOLLOWED = 8
"""Numbers followed from layer to layer: the places in the layers of the steps, a, b, c, and a 0 that fills a vector
register of a CPU."""
Z_MAGNET = 5200.0
"""z of the effective kick of the magnet, mm."""
CUBIC = -0.00028
"""1/mm, of the residual field behind the magnet (Allen 2023)."""
HIT_ERROR = 0.13
"""mm: 68 % of the hits of real tracks lie within 0.09 mm (p > 10 GeV) to 0.12 mm (3 GeV)."""
CURVATURE_ERROR = 1.2e-6
"""Error of the curvature predicted from the tangent at z = 0, 1/mm; mostly its dependence on y."""
MAX_DEVIATION = 3.0
"""Half width of the search window, in standard deviations."""

_SEARCHES = (
    # First and last layer of a pair, the other layers in the order of the steps, and the curvature in 1/mm for each mm
    # of the tangent at z = 0. Median of real tracks.
    (8, 11, (7, 4, 3, 0), -3.9e-9),
    (0, 3, (4, 7, 8, 11), -4.2e-9),
)

X_STEP = Record(
    "x_step",
    np.dtype([("tolerance", "<f4"), ("inverse_variance", "<f4"), ("gain", "<f4", (N_FOLLOWED,))]),
    {
        "tolerance": "mm",
        "inverse_variance": "1/mm^2",
        "gain": "for the followed numbers",
    },
)
"""One layer, for a given pattern of earlier steps with hits."""
X_SEARCH = Record(
    "x_search",
    np.dtype(
        [
            ("first_layer", "<u4"),
            ("last_layer", "<u4"),
            ("layers", "<u4", (N_STEPS,)),
            ("z", "<f4"),
            ("inverse_step", "<f4"),
            ("scale", "<f4"),
            ("magnet_scale", "<f4"),
            ("curvature", "<f4"),
            ("by_place", "<f4", (N_FOLLOWED,)),
            ("by_slope", "<f4", (N_FOLLOWED,)),
            ("by_curvature", "<f4", (N_FOLLOWED,)),
            ("steps", X_STEP.dtype, (N_PATTERNS, N_STEPS)),
        ]
    ),
    {
        "layers": "in the order of the steps",
        "z": "mm, of the first layer",
        "inverse_step": "1/mm, of the distance in z from the first to the last layer",
        "scale": "the distance of the layers over z",
        "magnet_scale": "the distance of the layers over that from the magnet to the first layer",
        "curvature": "1/mm for each mm of the tangent at z = 0",
        "by_place": "derivatives of the followed numbers, for a curve through a pair, by x in the first layer",
        "by_slope": "the same by the slope from first to last hit",
        "by_curvature": "the same by the curvature c",
        "steps": "[pattern of steps with a hit][step]",
    },
)
"""One of the two searches for hits in the x layers."""
SEEDING_TABLES = Record(
    "seeding_tables",
    np.dtype(
        [
            ("layer_z", "<f4", (N_LAYERS,)),
            ("dx_dy", "<f4", (N_LAYERS,)),
            ("dz_dy", "<f4"),
            ("polarity", "<f4"),
            ("searches", X_SEARCH.dtype, (len(_SEARCHES),)),
        ]
    ),
    {"layer_z": "mm at y = 0", "dz_dy": "mean of all mats", "polarity": "-1 down, 1 up"},
)
"""SeedingTables.to_bytes()."""

seeding_types = SharedTypes(
    __file__,
    "seeding_types",
    records=(X_STEP, X_SEARCH, SEEDING_TABLES),
    sizes={
        "n_x_layers": len(X_LAYERS),
        "n_x_steps": N_STEPS,
        "n_followed": N_FOLLOWED,
        "n_x_searches": len(_SEARCHES),
        "z_magnet": Z_MAGNET,
        "scifi_cubic": CUBIC,
        "scifi_hit_error": HIT_ERROR,
    },
    uses=(parameter_types,),
)
"""z in mm, scifi_cubic in 1/mm, scifi_hit_error in mm."""

seeding_tables = constant_column("seeding_tables", SEEDING_TABLES)

Float64Array = NDArray[np.float64]


def bend(z: Float64Array | float) -> Float64Array:
    """G: x(z) = a + b D + c G."""
    distance = np.asarray(z, np.float64) - Z_REFERENCE
    return np.asarray(distance**2 * (1.0 + CUBIC * distance))


@dataclass(frozen=True, slots=True, eq=False)
class SeedingTables:
    """Positions of the layers: `layer_z` f64[12] in mm at y = 0, `dx_dy` f64[12], and `dz_dy` of all; polarity."""

    layer_z: Float64Array
    dx_dy: Float64Array
    dz_dy: float
    polarity: float

    @classmethod
    def of(cls, scifi: SciFiGeometry, magnet: Magnet) -> Self:
        """Means over the mats of each layer. Raises GeometryError if the layers are not in the order of a tracker."""
        mats = np.flatnonzero(scifi.half_pitch > 0)
        layer = (mats + 512 >> 7) - 4
        z = scifi.mirror_point[:, 2] - scifi.dz_dy * scifi.mirror_point[:, 1]
        count = np.bincount(layer, minlength=N_LAYERS)
        of_layers = [
            np.bincount(layer, values[mats].astype(np.float64), N_LAYERS) / count for values in (z, scifi.dx_dy)
        ]
        if not (np.diff(of_layers[0]) > 10.0).all() or (np.abs(of_layers[1][list(STEREO_LAYERS)]) < 0.01).any():
            raise GeometryError(f"SciFi layers lie at {of_layers[0].round(1).tolist()} mm: no order for a search")
        return cls(of_layers[0], of_layers[1], float(scifi.dz_dy[mats].mean()), magnet.polarity)

    def to_bytes(self) -> bytes:
        """The record seeding_tables."""
        table = np.zeros(1, SEEDING_TABLES.dtype)
        table["layer_z"], table["dx_dy"] = self.layer_z, self.dx_dy
        table["dz_dy"], table["polarity"] = self.dz_dy, self.polarity
        for number, (first, last, layers, curvature) in enumerate(_SEARCHES):
            self._fill(table["searches"][0, number], first, last, layers, curvature)
        return table.tobytes()

    def _row(self, layer: int) -> Float64Array:
        """x at a layer by (a, b, c)."""
        z = self.layer_z[layer]
        return np.array([1.0, z - Z_REFERENCE, float(bend(z))])

    def _fill(self, search: np.void, first: int, last: int, layers: tuple[int, ...], curvature: float) -> None:
        z = self.layer_z
        step = z[last] - z[first]
        chord = (bend(z[last]) - bend(z[first])) / step
        ends = np.array([*z[list(layers)], Z_REFERENCE])
        levers, bends = ends - z[first], bend(ends) - bend(z[first]) - (ends - z[first]) * chord
        search["first_layer"], search["last_layer"], search["layers"] = first, last, layers
        search["z"], search["inverse_step"], search["scale"] = z[first], 1.0 / step, step / z[first]
        search["magnet_scale"] = step / (z[first] - Z_MAGNET)
        search["curvature"] = curvature
        search["by_place"] = [*np.ones_like(ends), 0.0, 0.0, 0.0]
        search["by_slope"] = [*levers, 1.0, 0.0, 0.0]
        search["by_curvature"] = [*bends, -chord, 1.0, 0.0]
        pair = np.linalg.inv(np.array([self._row(first), self._row(last), [0.0, 0.0, 1.0]]))
        start = pair @ np.diag([HIT_ERROR**2, HIT_ERROR**2, CURVATURE_ERROR**2]) @ pair.T
        rows = [self._row(layer) for layer in layers]
        for pattern in range(N_PATTERNS):
            covariance = start
            for i in range(N_STEPS):
                if pattern >> i & 1:
                    covariance = covariance - np.outer(*[covariance @ rows[i]] * 2) / self._variance(
                        covariance, rows[i]
                    )
            for i in range(N_STEPS):
                if pattern >> i:
                    continue  # a step follows the steps of its pattern
                variance = self._variance(covariance, rows[i])
                gain = covariance @ rows[i] / variance
                search["steps"][pattern, i] = (
                    MAX_DEVIATION * np.sqrt(variance),
                    1.0 / variance,
                    (*(row @ gain for row in rows), *gain, 0.0),
                )

    @staticmethod
    def _variance(covariance: Float64Array, row: Float64Array) -> float:
        return float(row @ covariance @ row) + HIT_ERROR**2
