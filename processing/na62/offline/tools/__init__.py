"""The tools of this chain. Each is imported when it is asked for."""

from typing import TYPE_CHECKING

from hltnode.processing.offline.chain_tools import ChainTools

if TYPE_CHECKING:
    from hltnode.processing.na62.offline.display.event_reader import RingPicture
    from hltnode.processing.na62.offline.simulation.sample import RichSimulation
    from hltnode.processing.na62.offline.tools.validation import RichValidation
    from hltnode.processing.offline.event_display import EventDisplay


def _simulation() -> "RichSimulation":
    from hltnode.processing.na62.offline.simulation.sample import RichSimulation

    return RichSimulation()


def _validation() -> "RichValidation":
    from hltnode.processing.na62.offline.tools.validation import RichValidation

    return RichValidation()


def _display() -> "EventDisplay[RingPicture]":
    from hltnode.processing.na62.offline.tools.display import DISPLAY

    return DISPLAY


TOOLS = ChainTools(sends_datagrams=True, simulation=_simulation, validation=_validation, display=_display)
