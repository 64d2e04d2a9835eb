"""What the commands on the physics of LHCb share."""

from pathlib import Path
from typing import Annotated

import typer

from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.protocol.lhcb.readout import VeloBanks

VeloBanksOption = Annotated[
    VeloBanks, typer.Option("--velo-banks", help="Encoding to use where a sample has two: auto, retina or superpixel.")
]


def load_velo_geometry(directory: Path | None) -> VeloGeometry:
    """The geometry of a folder, or the built-in one. Raises GeometryError."""
    return VeloGeometry.builtin() if directory is None else VeloGeometry.load(directory)
