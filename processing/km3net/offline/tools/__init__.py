"""The tools of this chain. Each is imported when it is asked for."""

from typing import TYPE_CHECKING

from hltnode.processing.offline.chain_tools import ChainTools, StreamRate

if TYPE_CHECKING:
    from hltnode.processing.km3net.offline.simulation.sample import TelescopeSimulation
    from hltnode.processing.km3net.offline.tools.display import TelescopeDisplay
    from hltnode.processing.km3net.offline.tools.validation import TelescopeValidation


def _simulation() -> "TelescopeSimulation":
    from hltnode.processing.km3net.offline.simulation.sample import TelescopeSimulation

    return TelescopeSimulation()


def _validation() -> "TelescopeValidation":
    from hltnode.processing.km3net.offline.tools.validation import TelescopeValidation

    return TelescopeValidation()


def _display() -> "TelescopeDisplay":
    from hltnode.processing.km3net.offline.tools.display import TelescopeDisplay

    return TelescopeDisplay()


TOOLS = ChainTools(
    simulation=_simulation,
    validation=_validation,
    display=_display,
    stream_rate=StreamRate(option="pmt_rate", unit="Hz of hits of a PMT"),
)
