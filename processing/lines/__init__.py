"""Selection lines, written in Python. Importing this package registers all line types."""

from hltnode.processing.lines.event import OdinEventType, Passthrough
from hltnode.processing.lines.line import LINE_TYPES, MAX_LINES, Line
from hltnode.processing.lines.velo import NDisplacedVeloTracks, VeloMicroBias

__all__ = [
    "LINE_TYPES",
    "MAX_LINES",
    "Line",
    "NDisplacedVeloTracks",
    "OdinEventType",
    "Passthrough",
    "VeloMicroBias",
]
