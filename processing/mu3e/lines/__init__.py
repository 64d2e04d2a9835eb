"""Lines on vertices of three tracks. A file of lines begins with `from hltnode.processing.mu3e.lines import *`."""

from hltnode.processing.mu3e.lines.inputs import event, time_windows, tracks, vertices
from hltnode.processing.selection.expressions.functions import exp, log, maximum, minimum, sqrt, where
from hltnode.processing.selection.lines.histogram import Histogram
from hltnode.processing.selection.lines.inputs import all_of, any_of, count_of
from hltnode.processing.selection.lines.learned_models import NetworkModel, TreeModel
from hltnode.processing.selection.lines.line import Line

__all__ = [
    "Histogram",
    "Line",
    "NetworkModel",
    "TreeModel",
    "all_of",
    "any_of",
    "count_of",
    "event",
    "exp",
    "log",
    "maximum",
    "minimum",
    "sqrt",
    "time_windows",
    "tracks",
    "vertices",
    "where",
]
