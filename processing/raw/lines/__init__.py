"""Lines on sizes and presence of banks. A file of lines begins with `from hltnode.processing.raw.lines import *`."""

from hltnode.processing.raw.lines.inputs import banks, event, sources
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
    "banks",
    "count_of",
    "event",
    "exp",
    "log",
    "maximum",
    "minimum",
    "sources",
    "sqrt",
    "where",
]
