"""The tools of this chain. Each is imported when it is asked for."""

from typing import TYPE_CHECKING

from hltnode.processing.offline.chain_tools import ChainTools

if TYPE_CHECKING:
    from hltnode.processing.alice.offline.simulation.sample import TpcSimulation


def _simulation() -> "TpcSimulation":
    from hltnode.processing.alice.offline.simulation.sample import TpcSimulation

    return TpcSimulation()


TOOLS = ChainTools(simulation=_simulation)
