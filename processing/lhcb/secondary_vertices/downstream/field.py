"""The field between VELO and UT for kernels: the record `v0_field`.

A downstream track is known in the UT. In front of it the field falls from 0.18 to 0.02 T on the axis, and is weaker at
large x. A track is described by x''(z) over q/p as a polynomial of z, and of the square of the direction from the
origin to the track in the UT. It follows flights of 5 GeV from 600 mm to the UT within 0.06 mm (68 %), where they bend
by 10 mm.
"""

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import Record, SharedTypes, constant_column
from hltnode.processing.lhcb.geometry.magnet import Magnet
from hltnode.processing.lhcb.geometry.velo_field import MEV_PER_T_MM
from hltnode.processing.lhcb.parametrisation.forms import Z_UT

N_POWERS = 4
FIRST_Z = 500.0
"""mm: vertices farther from the UT are in the VELO."""
_MAX_TX, _MAX_TY = 0.27, 0.22
_N_TX, _N_TY, _N_Z = 9, 8, 25

V0_FIELD = Record(
    "v0_field",
    np.dtype([("bend", "<f4", (N_POWERS, 3))]),
    {"bend": "MeV/mm^(k+1), of dz^(k+2) in x(z) over q/p: [k][1, (x/z)^2, (y/z)^2 in the UT]"},
)

v0_field_types = SharedTypes(__file__, "v0_field_types", records=(V0_FIELD,), sizes={"n_bend_terms": N_POWERS})

v0_field = constant_column("v0_field", V0_FIELD)
"""v0_field_record(Magnet)."""


def v0_field_record(magnet: Magnet) -> bytes:
    """The record from the field of a magnet.

    x'' / (q/p) on straight lines from the origin is fitted by least squares with dz^k and dz^k times the squares of
    both slopes, dz = z - Z_UT.
    """
    lines = np.meshgrid(
        np.linspace(0.0, _MAX_TX, _N_TX),
        np.linspace(0.0, _MAX_TY, _N_TY),
        np.linspace(FIRST_Z, Z_UT, _N_Z),
        indexing="ij",
    )
    tx, ty, z = (values.ravel() for values in lines)
    bx, by, bz = magnet.field(tx * z, ty * z, z)
    length = np.sqrt(1.0 + tx * tx + ty * ty)
    change = MEV_PER_T_MM * length * (tx * ty * bx - (1.0 + tx * tx) * by + ty * bz)
    scale = Z_UT - FIRST_Z
    powers = ((z - Z_UT) / scale)[:, None] ** np.arange(N_POWERS)
    shapes = np.stack([np.ones_like(tx), tx**2, ty**2], axis=1)
    terms = (powers[:, :, None] * shapes[:, None, :]).reshape(len(z), -1)
    found: NDArray[np.float64] = np.linalg.lstsq(terms, change, rcond=None)[0].reshape(N_POWERS, 3)
    k = np.arange(N_POWERS)[:, None]
    # x(z) is x'' integrated twice.
    bend: NDArray[np.float64] = found / scale**k / ((k + 1) * (k + 2))
    return bend.astype("<f4").tobytes()
