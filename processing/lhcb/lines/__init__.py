"""Selection lines of LHCb. A file of lines begins with `from hltnode.processing.lhcb.lines import *`."""

from hltnode.processing.lhcb.lines.inputs import (
    any_pv,
    dimuons,
    displaced_vertices,
    event,
    long_tracks,
    muons,
    primary_vertices,
    two_track_vertices,
    v0_pairs,
    v0s,
    velo_tracks,
)
from hltnode.processing.selection.expressions.functions import atan2, exp, log, maximum, minimum, sqrt, where
from hltnode.processing.selection.expressions.units import GeV, MeV, TeV, m, mm, mrad, rad, um
from hltnode.processing.selection.lines.histogram import Histogram
from hltnode.processing.selection.lines.inputs import all_of, any_of, count_of
from hltnode.processing.selection.lines.line import Line

__all__ = [
    "GeV",
    "Histogram",
    "Line",
    "MeV",
    "TeV",
    "all_of",
    "any_of",
    "any_pv",
    "atan2",
    "count_of",
    "dimuons",
    "displaced_vertices",
    "event",
    "exp",
    "log",
    "long_tracks",
    "m",
    "maximum",
    "minimum",
    "mm",
    "mrad",
    "muons",
    "primary_vertices",
    "rad",
    "sqrt",
    "two_track_vertices",
    "um",
    "v0_pairs",
    "v0s",
    "velo_tracks",
    "where",
]
