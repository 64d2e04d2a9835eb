"""The tools of this chain. Each is imported when it is asked for."""

from typing import TYPE_CHECKING

from hltnode.processing.offline.chain_tools import ChainTools

if TYPE_CHECKING:
    from hltnode.processing.imaging.offline.display.event_reader import ImagePicture
    from hltnode.processing.imaging.offline.simulation.sample import ImageSimulation
    from hltnode.processing.offline.event_display import EventDisplay


def _simulation() -> "ImageSimulation":
    from hltnode.processing.imaging.offline.simulation.sample import ImageSimulation

    return ImageSimulation()


def _display() -> "EventDisplay[ImagePicture]":
    from hltnode.processing.imaging.offline.tools.display import DISPLAY

    return DISPLAY


TOOLS = ChainTools(simulation=_simulation, display=_display)
