"""The network that tells electrons from other long tracks: its inputs, weights and file
(docs/physics/calorimeter.md)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import SharedTypes, constant_column
from hltnode.processing.lhcb.geometry.ideal_ecal import FIRST_CELLS
from hltnode.processing.lhcb.networks.one_hidden_layer import (
    FloatArray,
    NetworkError,
    NetworkForm,
    OneHiddenLayer,
    logarithm_of_1_and,
)

INPUTS = (
    "eop",
    "shower_eop",
    "brem_over_p",
    "inverse_momentum",
    "region",
    "shower_dx",
    "shower_dy",
    "shower_spread_x",
    "shower_spread_y",
    "shower_peak",
)
"""For each track: energies over the momentum (of the cells that its line crosses, of the shower, of its
bremsstrahlung), |q/p|, the region of its cell (0 outer, 1 middle, 2 inner), and columns of long tracks."""
N_INPUTS, N_HIDDEN = len(INPUTS), 16

MAX_DISTANCE = 3.0
"""Cells: larger distances of track and shower, which cells that lack neighbours could give, count as this one."""


class ElectronNetworkError(NetworkError):
    """A file of weights is invalid; the message names it."""


FORM = NetworkForm(
    name="electron_network",
    title="hltnode electron network",
    file="electron_network.json",
    folder=Path(__file__).parent,
    inputs=INPUTS,
    n_hidden=N_HIDDEN,
    error=ElectronNetworkError,
)
ELECTRON_NETWORK = FORM.record

electron_network_types = SharedTypes(
    __file__,
    "electron_network_types",
    records=(ELECTRON_NETWORK,),
    sizes={"n_electron_inputs": N_INPUTS, "n_electron_hidden": N_HIDDEN, "max_shower_distance": MAX_DISTANCE},
)
"""max_shower_distance in widths of a cell."""

electron_network = constant_column("electron_network", ELECTRON_NETWORK)
"""ElectronNetwork.to_bytes()."""


class ElectronNetwork(OneHiddenLayer):
    """The response is near 1 for an electron, near 0 for another particle."""

    __slots__ = ()

    form = FORM

    @property
    def checksum(self) -> int:
        """CRC-32 of the weights for kernels, so that a key of a configuration stands for its weights."""
        return crc32(self.to_bytes())


def inputs_of(columns: Mapping[str, NDArray[Any]]) -> FloatArray:
    """Inputs f64[n, N_INPUTS] of long tracks that cross the calorimeter, from columns of `long_tracks`, each [n]."""
    values = {name: column.astype(np.float64) for name, column in columns.items()}
    size = np.abs(values["qop"])
    inputs = (
        logarithm_of_1_and(values["eop"]),
        logarithm_of_1_and(values["shower_energy"] * size),
        logarithm_of_1_and(values["brem_energy"] * size),
        np.log(np.clip(size, 1e-6, 0.1)),
        np.searchsorted(FIRST_CELLS[1:3], columns["ecal_cell"], side="right"),
        _distance(values["shower_dx"]),
        _distance(values["shower_dy"]),
        values["shower_spread_x"],
        values["shower_spread_y"],
        values["shower_peak"],
    )
    return np.stack([np.asarray(of_input, np.float64) for of_input in inputs], axis=1)


def _distance(values: FloatArray) -> FloatArray:
    return np.minimum(np.abs(values), MAX_DISTANCE)
