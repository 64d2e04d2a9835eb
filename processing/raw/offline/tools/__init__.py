"""The tools of this chain. Each is imported when it is asked for."""

from typing import TYPE_CHECKING

from hltnode.processing.offline.chain_tools import ChainTools

if TYPE_CHECKING:
    from hltnode.processing.raw.offline.simulation import RawSimulation
    from hltnode.processing.raw.offline.tools.display import RawDisplay


def _simulation() -> "RawSimulation":
    from hltnode.processing.raw.offline.simulation import RawSimulation

    return RawSimulation()


def _display() -> "RawDisplay":
    from hltnode.processing.raw.offline.tools.display import RawDisplay

    return RawDisplay()


TOOLS = ChainTools(simulation=_simulation, display=_display)
