"""The network for the ghost probability of downstream tracks: its inputs, weights and file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import SharedTypes, constant_column
from hltnode.processing.lhcb.networks.one_hidden_layer import (
    FloatArray,
    NetworkError,
    NetworkForm,
    OneHiddenLayer,
    logarithm_of_1_and,
)
from hltnode.processing.lhcb.parametrisation.forms import Z_UT

INPUTS = (
    "search_chi2",
    "magnet_distance",
    "y_distance",
    "stereo_distance",
    "used_ut_hits",
    "seed_quality",
    "scifi_hits",
    "inverse_momentum",
    "angle",
    "radius",
    "origin_x",
    "origin_y",
)
"""For each track: chi2 and the sizes of the distances of its search (mm), its UT hits on long tracks, quality and
number of hits of its seed, |q/p|, tx² + ty², x² + y² at the UT, and |x|, |y| of its tangent at z = 0 (mm)."""
N_INPUTS, N_HIDDEN = len(INPUTS), 16


class DownstreamNetworkError(NetworkError):
    """A file of weights is invalid; the message names it."""


FORM = NetworkForm(
    name="downstream_network",
    title="hltnode downstream network",
    file="downstream_network.json",
    folder=Path(__file__).parent,
    inputs=INPUTS,
    n_hidden=N_HIDDEN,
    error=DownstreamNetworkError,
)
DOWNSTREAM_NETWORK = FORM.record

downstream_network_types = SharedTypes(
    __file__, "downstream_network_types", records=(DOWNSTREAM_NETWORK,), sizes={"n_downstream_inputs": N_INPUTS}
)

downstream_network = constant_column("downstream_network", DOWNSTREAM_NETWORK)
"""DownstreamNetwork.to_bytes()."""


class DownstreamNetwork(OneHiddenLayer):
    """The response is the ghost probability."""

    __slots__ = ()

    form = FORM


def inputs_of(columns: Mapping[str, NDArray[Any]]) -> FloatArray:
    """Inputs f64[n, N_INPUTS] of downstream tracks, from columns of `downstream_tracks`, each [n]."""
    of = {name: columns[name].astype(np.float64) for name in ("x", "y", "tx", "ty", "qop")}
    inputs = (
        logarithm_of_1_and(columns["chi2"]),
        *(logarithm_of_1_and(np.abs(columns[f"{name}_distance"])) for name in ("magnet", "y", "stereo")),
        columns["used_ut_hits"],
        logarithm_of_1_and(columns["seed_quality"]),
        columns["hit_count"],
        np.log(np.clip(np.abs(of["qop"]), 1e-6, 0.1)),
        np.log(np.clip(of["tx"] ** 2 + of["ty"] ** 2, 1e-6, 1.0)),
        np.log(np.clip(of["x"] ** 2 + of["y"] ** 2, 1.0, 1e7)),
        logarithm_of_1_and(np.abs(of["x"] - of["tx"] * Z_UT)),
        logarithm_of_1_and(np.abs(of["y"] - of["ty"] * Z_UT)),
    )
    return np.stack([np.asarray(values, np.float64) for values in inputs], axis=1)
