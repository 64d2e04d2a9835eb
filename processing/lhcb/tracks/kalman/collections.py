"""Results of the Kalman fit of long tracks: columns of the collection long_tracks, shapes and units."""

import numpy as np

from hltnode.processing.framework.collections import (
    F32,
    U8,
    U32,
    Collection,
    Placement,
    Record,
    SharedTypes,
    constant_column,
)
from hltnode.processing.lhcb.tracks.long.collections import long_tracks

MAX_SMOOTHED_STATES = 4096

VELO_FIELD = Record(
    "velo_field",
    np.dtype([("bend", "<f4"), ("gradient", "<f4")]),
    {"bend": "x''(z) divided by q/p at z = 0, MeV/mm", "gradient": "its change along z, MeV/mm^2"},
)
"""VeloField.to_bytes()."""

_STATE = ("x", "y", "z", "tx", "ty")
_COVARIANCES = ("c00", "c20", "c22", "c11", "c31", "c33")
_OF_HIT = ("residual_x", "residual_y", "chi2")
SMOOTHED_STATE = Record(
    "smoothed_state",
    np.dtype([*((name, "<f4") for name in (*_STATE, *_COVARIANCES, *_OF_HIT)), ("lhcb_id", "<u4"), ("track", "<u4")]),
    {
        "x": "mm",
        "c00": "covariances of (x, y, tx, ty) = (0, 1, 2, 3); x and y are independent",
        "residual_x": "mm, of the hit to the track without this hit",
        "chi2": "of both residuals, two degrees of freedom",
        "lhcb_id": "of the hit",
        "track": "number of the long track in its event",
    },
)

kalman_types = SharedTypes(
    __file__,
    "kalman_types",
    records=(VELO_FIELD, SMOOTHED_STATE),
    sizes={"max_smoothed_states": MAX_SMOOTHED_STATES},
)

velo_field = constant_column("velo_field", VELO_FIELD)

long_beam_state = {
    name: long_tracks.column(f"beam_{name}", F32)
    for name in ("x", "y", "z", "tx", "ty", "qop", "c00", "c20", "c22", "c11", "c31", "c33")
}
"""The state of each track closest to the beam line: mm, slopes, 1/MeV; covariances of (x, y, tx, ty) = (0, 1, 2, 3), x
and y are independent."""
long_chi2 = long_tracks.column("chi2", F32)
"""Chi2 of the fit to the VELO hits divided by its degrees of freedom."""
long_ip = long_tracks.column("ip", F32)
"""Impact parameter in mm, to the vertex below; 0 without one."""
long_ip_chi2 = long_tracks.column("ip_chi2", F32)
"""Impact parameter chi2, the smallest to any primary vertex; 0 without one."""
long_pv = long_tracks.column("pv", U8)
"""Index of the vertex with this chi2 in the event, or NO_PV."""
long_fitted_qop = long_tracks.column("fitted_qop", F32)
"""q/p at the origin, of the fit through all detectors, 1/MeV."""
long_qop_error = long_tracks.column("qop_error", F32)
"""Its standard deviation, 1/MeV."""
long_full_chi2 = long_tracks.column("full_chi2", F32)
"""Chi2 of the UT and SciFi hits in the fit that begins with the VELO hits, divided by their number minus one."""
long_ut_chi2 = long_tracks.column("ut_chi2", F32)
"""Chi2 of the UT hits divided by their number; 0 without UT hits."""
long_end_state = {
    name: long_tracks.column(f"end_{name}", F32)
    for name in ("x", "y", "tx", "ty", "c00", "c20", "c22", "c11", "c31", "c33")
}
"""The state of the same fit behind the last hit, at z_end_scifi: mm, slopes; covariances of (x, y, tx, ty) = (0, 1, 2,
3) without those between x and y."""
long_ghost_probability = long_tracks.column("ghost_probability", F32)
"""Probability that the track belongs to no particle, 0 to 1, in events like those of the training."""

smoothed_states = Collection(
    "smoothed_states",
    capacity=lambda limits: limits.events * MAX_SMOOTHED_STATES,
    placement=Placement.fixed(MAX_SMOOTHED_STATES),
    max_per_event=MAX_SMOOTHED_STATES,
)
"""Smoothed states of long tracks at their VELO hits: tracks in order, hits of a track from small to large z. An event
with too many is flagged; its first tracks are kept."""
smoothed_state_count = smoothed_states.per_event("count", U32)
smoothed_state = smoothed_states.column("state", SMOOTHED_STATE)
