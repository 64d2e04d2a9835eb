"""The tools of this chain. Each is imported when it is asked for."""

from typing import TYPE_CHECKING

from hltnode.processing.offline.chain_tools import ChainTools, StreamRate

if TYPE_CHECKING:
    from hltnode.processing.mu3e.offline.simulation.sample import PixelSimulation
    from hltnode.processing.mu3e.offline.tools.display import PixelDisplay
    from hltnode.processing.mu3e.offline.tools.validation import PixelValidation


def _simulation() -> "PixelSimulation":
    from hltnode.processing.mu3e.offline.simulation.sample import PixelSimulation

    return PixelSimulation()


def _validation() -> "PixelValidation":
    from hltnode.processing.mu3e.offline.tools.validation import PixelValidation

    return PixelValidation()


def _display() -> "PixelDisplay":
    from hltnode.processing.mu3e.offline.tools.display import PixelDisplay

    return PixelDisplay()


TOOLS = ChainTools(
    simulation=_simulation,
    validation=_validation,
    display=_display,
    stream_rate=StreamRate(option="muon_rate", unit="stopped muons/s"),
)
