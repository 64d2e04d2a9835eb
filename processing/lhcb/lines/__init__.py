"""Selection lines of LHCb: their types, their kernel, and the menu."""

from hltnode.processing.lhcb.lines.event import OdinEventType, Passthrough
from hltnode.processing.lhcb.lines.velo import NDisplacedVeloTracks, VeloMicroBias
from hltnode.processing.selection.line import Line

__all__ = ["Line", "NDisplacedVeloTracks", "OdinEventType", "Passthrough", "VeloMicroBias"]
