"""Parameters of magnet and SciFi for the kernels of the long tracking: the record `long_track_parameters`.

Its numbers come from the file of `hltnode parametrise` (processing.lhcb.parametrisation, which defines the functions)
and from the geometry of the SciFi.
"""

import numpy as np

from hltnode.processing.framework.collections import Record, SharedTypes, constant_column
from hltnode.processing.lhcb.geometry.ideal_scifi import N_LAYERS
from hltnode.processing.lhcb.geometry.ideal_ut import DX_DY as UT_DX_DY
from hltnode.processing.lhcb.geometry.ideal_ut import LAYER_Z as UT_LAYER_Z
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.parametrisation.filter_noise import Step
from hltnode.processing.lhcb.parametrisation.forms import SHAPE, Z_MIDDLE_UT, Z_REFERENCE
from hltnode.processing.lhcb.parametrisation.parameters import LongTrackParameters

N_UT_LAYERS = len(UT_DX_DY)

_BEHIND_VELO = {
    "z_magnet": "mm; of kink",
    "curvature": "1/mm; of kink",
    "cubic": "1/mm^2; of kink",
    "y_shift": "mm; of kink, odd",
    "y_slope": "of kink, odd",
    "kick": "MeV; of kink",
    "kick_of_momentum": "MeV; of s",
}
_BEFORE_UT = {"z_magnet": "mm; of s", "kick": "MeV; of s"}
_IN_UT = {"shift": "mm; of kink", "slope": "of kink", "curve": "1/mm; of kink"}

LONG_TRACK_PARAMETERS = Record(
    "long_track_parameters",
    np.dtype(
        [
            ("polarity", "<f4"),
            ("layer_z", "<f4", (N_LAYERS,)),
            ("layer_dx_dy", "<f4", (N_LAYERS,)),
            ("layer_dz_dy", "<f4", (N_LAYERS,)),
            ("ut_z", "<f4", (N_UT_LAYERS,)),
            ("ut_dx_dy", "<f4", (N_UT_LAYERS,)),
            ("energy_loss", "<f4"),
            *((f"noise_{step}", "<f4", (3,)) for step in Step),
            *((name, "<f4", SHAPE) for name in _BEHIND_VELO),
            *((f"ut_{name}", "<f4", SHAPE) for name in _BEFORE_UT),
            *((f"in_ut_{name}", "<f4", SHAPE) for name in _IN_UT),
        ]
    ),
    {
        "polarity": "-1: down, +1: up",
        "layer_z": "mm, of the SciFi layers at y = 0",
        "layer_dx_dy": "slopes of their fibres",
        "ut_z": "mm, of the UT layers",
        "ut_dx_dy": "slopes of the strips of the UT layers",
        "energy_loss": "MeV, before the magnet",
        **{f"noise_{step}": "mm^2, mm, 1; for 1 GeV" for step in Step},
        **_BEHIND_VELO,
        **{f"ut_{name}": unit for name, unit in _BEFORE_UT.items()},
        **{f"in_ut_{name}": unit for name, unit in _IN_UT.items()},
    },
)
"""Coefficients [k][i][j] of bend^k tx^(2 i + o) ty^(2 j), where bend is the kink or s = polarity q/p (c/GeV); o is k
mod 2, for odd functions 1 - k mod 2."""

parameter_types = SharedTypes(
    __file__,
    "long_track_parameter_types",
    records=(LONG_TRACK_PARAMETERS,),
    sizes={
        "z_scifi_reference": Z_REFERENCE,
        "z_middle_of_ut": Z_MIDDLE_UT,
        "n_bend_powers": SHAPE[0],
        "n_tx_powers": SHAPE[1],
        "n_ty_powers": SHAPE[2],
    },
)

long_track_parameters = constant_column("long_track_parameters", LONG_TRACK_PARAMETERS)
"""record_of(LongTrackParameters, SciFiGeometry)."""


def record_of(parameters: LongTrackParameters, scifi: SciFiGeometry) -> bytes:
    """The record from the parametrisation of the magnet and the geometry of the SciFi."""
    record = np.zeros(1, LONG_TRACK_PARAMETERS.dtype)
    record["ut_z"] = UT_LAYER_Z
    record["ut_dx_dy"] = UT_DX_DY
    record["energy_loss"] = parameters.energy_loss
    for step in Step:
        record[f"noise_{step}"] = parameters.noise[step]
    record["polarity"] = parameters.polarity
    mats = np.flatnonzero(scifi.half_pitch > 0)
    layer = mats >> 7
    for name, of_mat in (
        ("layer_z", scifi.mirror_point[:, 2] - scifi.dz_dy * scifi.mirror_point[:, 1]),
        ("layer_dx_dy", scifi.dx_dy),
        ("layer_dz_dy", scifi.dz_dy),
    ):
        values = of_mat[mats].astype(np.float64)
        record[name] = np.bincount(layer, values, N_LAYERS) / np.bincount(layer, minlength=N_LAYERS)
    for name in _BEHIND_VELO:
        record[name] = parameters.behind_velo.coefficients[name]
    for name in _BEFORE_UT:
        record[f"ut_{name}"] = parameters.before_ut.coefficients[name]
    for name in _IN_UT:
        record[f"in_ut_{name}"] = parameters.in_ut.coefficients[name]
    return record.tobytes()
