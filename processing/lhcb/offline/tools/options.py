"""Options that several of LHCb's tools have."""

from typing import Annotated

import typer

from hltnode.protocol.lhcb.readout import VeloBanks

VeloBanksOption = Annotated[
    VeloBanks, typer.Option("--velo-banks", help="Encoding to use where a sample has two: auto, retina or superpixel.")
]
