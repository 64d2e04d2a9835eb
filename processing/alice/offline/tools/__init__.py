"""The tools of this chain. Each is imported when it is asked for."""

from typing import TYPE_CHECKING

from hltnode.processing.offline.chain_tools import ChainTools

if TYPE_CHECKING:
    from hltnode.processing.alice.offline.display.event_reader import SlicePicture
    from hltnode.processing.alice.offline.simulation.sample import TpcSimulation
    from hltnode.processing.alice.offline.tools.validation import TpcValidation
    from hltnode.processing.offline.event_display import EventDisplay


def _simulation() -> "TpcSimulation":
    from hltnode.processing.alice.offline.simulation.sample import TpcSimulation

    return TpcSimulation()


def _validation() -> "TpcValidation":
    from hltnode.processing.alice.offline.tools.validation import TpcValidation

    return TpcValidation()


def _display() -> "EventDisplay[SlicePicture]":
    from hltnode.processing.alice.offline.tools.display import DISPLAY

    return DISPLAY


TOOLS = ChainTools(simulation=_simulation, validation=_validation, display=_display)
