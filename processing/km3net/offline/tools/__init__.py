"""The tools of this chain. Each is imported when it is asked for."""

from typing import TYPE_CHECKING

from hltnode.processing.offline.chain_tools import ChainTools, StreamRate

if TYPE_CHECKING:
    from hltnode.processing.km3net.offline.display.event_reader import HitPicture
    from hltnode.processing.km3net.offline.simulation.sample import TelescopeSimulation
    from hltnode.processing.km3net.offline.tools.validation import TelescopeValidation
    from hltnode.processing.offline.event_display import EventDisplay


def _simulation() -> "TelescopeSimulation":
    from hltnode.processing.km3net.offline.simulation.sample import TelescopeSimulation

    return TelescopeSimulation()


def _validation() -> "TelescopeValidation":
    from hltnode.processing.km3net.offline.tools.validation import TelescopeValidation

    return TelescopeValidation()


def _display() -> "EventDisplay[HitPicture]":
    from hltnode.processing.km3net.offline.tools.display import DISPLAY

    return DISPLAY


TOOLS = ChainTools(
    simulation=_simulation,
    validation=_validation,
    display=_display,
    stream_rate=StreamRate(option="pmt_rate", unit="Hz of hits of a PMT"),
)
