"""The tools of this chain. Each is imported when it is asked for."""

from typing import TYPE_CHECKING

from hltnode.processing.offline.chain_tools import ChainTools, StreamRate

if TYPE_CHECKING:
    from hltnode.processing.mu3e.offline.display.event_reader import HitPicture
    from hltnode.processing.mu3e.offline.simulation.sample import PixelSimulation
    from hltnode.processing.mu3e.offline.tools.validation import PixelValidation
    from hltnode.processing.offline.event_display import EventDisplay


def _simulation() -> "PixelSimulation":
    from hltnode.processing.mu3e.offline.simulation.sample import PixelSimulation

    return PixelSimulation()


def _validation() -> "PixelValidation":
    from hltnode.processing.mu3e.offline.tools.validation import PixelValidation

    return PixelValidation()


def _display() -> "EventDisplay[HitPicture]":
    from hltnode.processing.mu3e.offline.tools.display import DISPLAY

    return DISPLAY


TOOLS = ChainTools(
    simulation=_simulation,
    validation=_validation,
    display=_display,
    stream_rate=StreamRate(option="muon_rate", unit="stopped muons/s"),
)
