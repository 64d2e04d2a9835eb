"""The tools of this chain. Each is imported when it is asked for."""

from typing import TYPE_CHECKING

from hltnode.processing.offline.chain_tools import ChainTools

if TYPE_CHECKING:
    from hltnode.processing.mu3e.offline.simulation.sample import PixelSimulation


def _simulation() -> "PixelSimulation":
    from hltnode.processing.mu3e.offline.simulation.sample import PixelSimulation

    return PixelSimulation()


TOOLS = ChainTools(simulation=_simulation)
