"""The tools of LHCb's chain. Each is imported when it is asked for."""

from typing import TYPE_CHECKING

from hltnode.processing.offline.chain_tools import ChainTools

if TYPE_CHECKING:
    from hltnode.processing.lhcb.offline.display.scene import Scene
    from hltnode.processing.lhcb.offline.tools.channels import LhcbChannels
    from hltnode.processing.lhcb.offline.tools.comparison import LhcbComparison
    from hltnode.processing.lhcb.offline.tools.efficiency import LhcbEfficiency
    from hltnode.processing.lhcb.offline.tools.parametrisation import LhcbParametrisation
    from hltnode.processing.lhcb.offline.tools.simulation import LhcbSimulation
    from hltnode.processing.lhcb.offline.tools.validation import LhcbValidation
    from hltnode.processing.offline.event_display import EventDisplay


def _simulation() -> "LhcbSimulation":
    from hltnode.processing.lhcb.offline.tools.simulation import LhcbSimulation

    return LhcbSimulation()


def _validation() -> "LhcbValidation":
    from hltnode.processing.lhcb.offline.tools.validation import LhcbValidation

    return LhcbValidation()


def _comparison() -> "LhcbComparison":
    from hltnode.processing.lhcb.offline.tools.comparison import LhcbComparison

    return LhcbComparison()


def _display() -> "EventDisplay[Scene]":
    from hltnode.processing.lhcb.offline.tools.display import DISPLAY

    return DISPLAY


def _efficiency() -> "LhcbEfficiency":
    from hltnode.processing.lhcb.offline.tools.efficiency import LhcbEfficiency

    return LhcbEfficiency()


def _parametrisation() -> "LhcbParametrisation":
    from hltnode.processing.lhcb.offline.tools.parametrisation import LhcbParametrisation

    return LhcbParametrisation()


def _channels() -> "LhcbChannels":
    from hltnode.processing.lhcb.offline.tools.channels import LhcbChannels

    return LhcbChannels()


TOOLS = ChainTools(
    simulation=_simulation,
    validation=_validation,
    comparison=_comparison,
    display=_display,
    efficiency=_efficiency,
    parametrisation=_parametrisation,
    channels=_channels,
)
