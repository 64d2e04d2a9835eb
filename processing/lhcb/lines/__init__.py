"""Selection lines of LHCb. A file of lines begins with `from hltnode.processing.lhcb.lines import *`."""

from hltnode.processing.lhcb.lines.inputs.calorimeter_fields import dielectrons, ecal_clusters, photon_pairs, photons
from hltnode.processing.lhcb.lines.inputs.composite_inputs import composite
from hltnode.processing.lhcb.lines.inputs.downstream_fields import downstream_tracks, downstream_v0s
from hltnode.processing.lhcb.lines.inputs.event_fields import event
from hltnode.processing.lhcb.lines.inputs.half_fields import half_pairs, half_vertices
from hltnode.processing.lhcb.lines.inputs.jet_fields import jets
from hltnode.processing.lhcb.lines.inputs.primary_vertex_fields import any_pv, primary_vertices
from hltnode.processing.lhcb.lines.inputs.stub_fields import muon_stubs
from hltnode.processing.lhcb.lines.inputs.track_fields import electrons, long_tracks, muons, velo_tracks
from hltnode.processing.lhcb.lines.inputs.vertex_fields import (
    dimuons,
    displaced_vertices,
    two_track_vertices,
    v0_pairs,
    v0s,
)
from hltnode.processing.lhcb.lines.prefilters import (
    beam_one,
    beam_two,
    both_beams,
    event_cut,
    high_multiplicity,
    low_multiplicity,
    no_beam,
    odin_lumi,
    odin_no_bias,
    odin_readable,
    pv_in_gas,
    pv_of_beams,
    tae_central,
    velo_closed,
    velo_open,
)
from hltnode.processing.selection.expressions.functions import atan2, exp, log, maximum, minimum, sqrt, where
from hltnode.processing.selection.expressions.units import GeV, MeV, TeV, m, mm, mrad, rad, um
from hltnode.processing.selection.lines.histogram import Histogram
from hltnode.processing.selection.lines.inputs import all_of, any_of, count_of
from hltnode.processing.selection.lines.learned_models import NetworkModel, TreeModel
from hltnode.processing.selection.lines.line import Line
from hltnode.processing.selection.lines.prefilter import Prefilter

__all__ = [
    "GeV",
    "Histogram",
    "Line",
    "MeV",
    "NetworkModel",
    "Prefilter",
    "TeV",
    "TreeModel",
    "all_of",
    "any_of",
    "any_pv",
    "atan2",
    "beam_one",
    "beam_two",
    "both_beams",
    "composite",
    "count_of",
    "dielectrons",
    "dimuons",
    "displaced_vertices",
    "downstream_tracks",
    "downstream_v0s",
    "ecal_clusters",
    "electrons",
    "event",
    "event_cut",
    "exp",
    "half_pairs",
    "half_vertices",
    "high_multiplicity",
    "jets",
    "log",
    "long_tracks",
    "low_multiplicity",
    "m",
    "maximum",
    "minimum",
    "mm",
    "mrad",
    "muon_stubs",
    "muons",
    "no_beam",
    "odin_lumi",
    "odin_no_bias",
    "odin_readable",
    "photon_pairs",
    "photons",
    "primary_vertices",
    "pv_in_gas",
    "pv_of_beams",
    "rad",
    "sqrt",
    "tae_central",
    "two_track_vertices",
    "um",
    "v0_pairs",
    "v0s",
    "velo_closed",
    "velo_open",
    "velo_tracks",
    "where",
]
