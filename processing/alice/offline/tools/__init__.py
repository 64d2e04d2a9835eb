"""The tools of this chain. Each is imported when it is asked for."""

from typing import TYPE_CHECKING

from hltnode.processing.offline.chain_tools import ChainTools

if TYPE_CHECKING:
    from hltnode.processing.alice.offline.simulation.sample import TpcSimulation
    from hltnode.processing.alice.offline.tools.display import TpcDisplay
    from hltnode.processing.alice.offline.tools.validation import TpcValidation


def _simulation() -> "TpcSimulation":
    from hltnode.processing.alice.offline.simulation.sample import TpcSimulation

    return TpcSimulation()


def _validation() -> "TpcValidation":
    from hltnode.processing.alice.offline.tools.validation import TpcValidation

    return TpcValidation()


def _display() -> "TpcDisplay":
    from hltnode.processing.alice.offline.tools.display import TpcDisplay

    return TpcDisplay()


TOOLS = ChainTools(simulation=_simulation, validation=_validation, display=_display)
