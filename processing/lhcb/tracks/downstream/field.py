"""Parameters of the magnet between UT and SciFi for kernels: the record `downstream_field`.

They come from the file of `hltnode parametrise` (BEHIND_MAGNET and IN_UT in processing.lhcb.parametrisation.forms). A
line is the tangent of the track at Z_UT.
"""

import numpy as np

from hltnode.processing.framework.collections import Record, SharedTypes, constant_column
from hltnode.processing.lhcb.geometry.ideal_ut import DX_DY, N_LAYERS
from hltnode.processing.lhcb.parametrisation.forms import SHAPE, Z_UT
from hltnode.processing.lhcb.parametrisation.parameters import LongTrackParameters

_FUNCTIONS = {"z_magnet": "mm", "kick": "MeV", "y_shift": "mm", "y_slope": "1"}
_ODD = ("y_shift", "y_slope")

DOWNSTREAM_FIELD = Record(
    "downstream_field",
    np.dtype(
        [
            ("polarity", "<f4"),
            ("ut_curve", "<f4"),
            ("ut_dx_dy", "<f4", (N_LAYERS,)),
            *((name, "<f4", SHAPE) for name in _FUNCTIONS),
        ]
    ),
    {
        "polarity": "-1: down, +1: up",
        "ut_curve": "1/mm, over the kink: quadratic term of x(z) in the UT",
        "ut_dx_dy": "slopes of the strips of the UT layers",
        **{name: f"{unit}, of kink{', odd' if name in _ODD else ''}" for name, unit in _FUNCTIONS.items()},
    },
)
"""Coefficients [k][i][j] as in long_track_parameters, of the slopes at Z_UT."""

downstream_field_types = SharedTypes(
    __file__, "downstream_field_types", records=(DOWNSTREAM_FIELD,), sizes={"z_downstream_ut": Z_UT}
)
"""z_downstream_ut: z of the state in the UT, mm."""

downstream_field = constant_column("downstream_field", DOWNSTREAM_FIELD)
"""field_record(LongTrackParameters)."""


def field_record(parameters: LongTrackParameters) -> bytes:
    """The record from the parametrisation of the magnet.

    The curve in the UT is that of the centre: it varies by less than 0.05 mm between the layers.
    """
    record = np.zeros(1, DOWNSTREAM_FIELD.dtype)
    record["polarity"] = parameters.polarity
    record["ut_curve"] = parameters.in_ut.coefficients["curve"][0, 0, 0]
    record["ut_dx_dy"] = DX_DY
    for name in _FUNCTIONS:
        record[name] = parameters.behind_ut.coefficients[name]
    return record.tobytes()
