"""Selection lines, written in Python. Importing this package registers all line types."""

from hltnode.processing.lhcb.lines.event import OdinEventType, Passthrough
from hltnode.processing.lhcb.lines.velo import NDisplacedVeloTracks, VeloMicroBias
from hltnode.processing.selection.line import LINE_TYPES, Line

__all__ = [
    "LINE_TYPES",
    "Line",
    "NDisplacedVeloTracks",
    "OdinEventType",
    "Passthrough",
    "VeloMicroBias",
]
