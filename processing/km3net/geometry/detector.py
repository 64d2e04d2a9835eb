"""The detector of a run: the built-in tower, or the one of a geometry folder."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.km3net.geometry.detx import read_detx
from hltnode.processing.km3net.geometry.pmt_table import Detector, km3net_tower

DETECTOR_FILE = "detector.detx"


def detector_of(directory: Path | None) -> Detector:
    """The tower of 14 floors, or the detector of `detector.detx` in a folder.

    Raises ValueError, which names the file.
    """
    return km3net_tower() if directory is None else read_detx(directory / DETECTOR_FILE)


def table_bytes(directory: Path | None) -> NDArray[np.uint8]:
    """The content of the constant column."""
    return detector_of(directory).table().view(np.uint8)
