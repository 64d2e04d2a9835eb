"""Output lists of the Kalman fits."""

from hltnode.processing.framework.output_lists import ListValue, OutputList
from hltnode.processing.lhcb.tracks.kalman.collections import smoothed_state, smoothed_state_count

_VALUES = {
    **{name: (f"{name} of the track at the hit", "mm") for name in ("x", "y", "z")},
    **dict.fromkeys(("tx", "ty"), ("slope there", "")),
    "c00": ("variance of x", "mm^2"),
    "c20": ("covariance of x and tx", "mm"),
    "c22": ("variance of tx", ""),
    "c11": ("variance of y", "mm^2"),
    "c31": ("covariance of y and ty", "mm"),
    "c33": ("variance of ty", ""),
    "residual_x": ("x of the hit minus that of the track without this hit", "mm"),
    "residual_y": ("y of the hit minus that of the track without this hit", "mm"),
    "chi2": ("chi2 of both residuals, two degrees of freedom", ""),
    "lhcb_id": ("LHCbID of the hit", ""),
    "track": ("number of the long track in its event", ""),
}

SMOOTHED_STATES = OutputList(
    name="smoothed_states",
    text="states of long tracks at each of their VELO hits, from all hits of the track there",
    count=smoothed_state_count,
    values={
        f"state_{name}": ListValue(column=smoothed_state, member=name, text=text, unit=unit)
        for name, (text, unit) in _VALUES.items()
    },
)
