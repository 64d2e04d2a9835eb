"""The tools of this chain. Each is imported when it is asked for."""

from typing import TYPE_CHECKING

from hltnode.processing.offline.chain_tools import ChainTools

if TYPE_CHECKING:
    from hltnode.processing.imaging.offline.simulation.sample import ImageSimulation
    from hltnode.processing.imaging.offline.tools.display import ImageDisplay


def _simulation() -> "ImageSimulation":
    from hltnode.processing.imaging.offline.simulation.sample import ImageSimulation

    return ImageSimulation()


def _display() -> "ImageDisplay":
    from hltnode.processing.imaging.offline.tools.display import ImageDisplay

    return ImageDisplay()


TOOLS = ChainTools(simulation=_simulation, display=_display)
