"""The tools of this chain. Each is imported when it is asked for."""

from typing import TYPE_CHECKING

from hltnode.processing.offline.chain_tools import ChainTools

if TYPE_CHECKING:
    from hltnode.processing.offline.event_display import EventDisplay
    from hltnode.processing.raw.offline.display.event_reader import BankPicture
    from hltnode.processing.raw.offline.simulation import RawSimulation


def _simulation() -> "RawSimulation":
    from hltnode.processing.raw.offline.simulation import RawSimulation

    return RawSimulation()


def _display() -> "EventDisplay[BankPicture]":
    from hltnode.processing.raw.offline.tools.display import DISPLAY

    return DISPLAY


TOOLS = ChainTools(simulation=_simulation, display=_display)
