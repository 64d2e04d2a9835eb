"""Prefilters of LHCb: conditions on events that lines share (docs/physics/selection-lines.md).

Those on ODIN and on the event cut are known before any detector is decoded, the others before UT, SciFi and muon
chambers.
"""

from typing import Any

from hltnode.processing.lhcb.lines.cuts import MIN_PV_Z
from hltnode.processing.lhcb.lines.inputs.event_fields import event
from hltnode.processing.lhcb.lines.inputs.primary_vertex_fields import any_pv
from hltnode.processing.lhcb.luminosity.collections import ODIN_LUMI as ODIN_LUMI
from hltnode.processing.selection.expressions.units import mm
from hltnode.processing.selection.lines.prefilter import Prefilter

ODIN_VELO_OPEN = 0x0001
ODIN_NO_BIAS = 0x0004
"""Bits of the ODIN event type, as the LHCb readout supervisor sets them; ODIN_LUMI is another."""
GAS_CELL_Z = (-537.5, -337.5)
"""mm: the gas target SMOG2, with some room on either side of its storage cell."""
MAX_LOW_MULTIPLICITY = 5
MIN_HIGH_MULTIPLICITY = 10
"""VELO tracks."""


def _crossing(name: str, crossing: int, description: str) -> Prefilter:
    return Prefilter(name, event, lambda e: e.has_odin & (e.crossing_type == crossing), description)


def _of_type(name: str, mask: int, description: str) -> Prefilter:
    return Prefilter(name, event, lambda e: e.has_odin & ((e.event_type & mask) != 0), description)


def _pv_between(low: float, high: float) -> Any:
    return any_pv(lambda v: (v.z > low * mm) & (v.z < high * mm))


odin_readable = Prefilter("odin_readable", event, lambda e: e.has_odin, "events with a readable ODIN bank")
no_beam = _crossing("no_beam", 0, "crossings without a bunch")
beam_one = _crossing("beam_one", 1, "crossings with a bunch of beam 1 alone")
beam_two = _crossing("beam_two", 2, "crossings with a bunch of beam 2 alone")
both_beams = _crossing("both_beams", 3, "crossings with bunches of both beams")
odin_no_bias = _of_type("odin_no_bias", ODIN_NO_BIAS, "events that ODIN marks as unbiased")
odin_lumi = _of_type("odin_lumi", ODIN_LUMI, "events that ODIN marks for luminosity")
velo_open = _of_type("velo_open", ODIN_VELO_OPEN, "events that ODIN marks as taken with an open VELO")
velo_closed = Prefilter(
    "velo_closed",
    event,
    lambda e: e.has_odin & ((e.event_type & ODIN_VELO_OPEN) == 0),
    "events that ODIN does not mark as taken with an open VELO",
)
tae_central = Prefilter(
    "tae_central",
    event,
    lambda e: e.has_odin & e.is_tae_central & (e.tae_half_window >= 1),
    "the central one of several crossings read out together",
)
event_cut = Prefilter("event_cut", event, lambda e: e.passes_gec, "events that pass the global event cut")
low_multiplicity = Prefilter(
    "low_multiplicity",
    event,
    lambda e: (e.n_velo_tracks >= 1) & (e.n_velo_tracks <= MAX_LOW_MULTIPLICITY),
    f"events with 1 to {MAX_LOW_MULTIPLICITY} VELO tracks",
)
high_multiplicity = Prefilter(
    "high_multiplicity",
    event,
    lambda e: e.n_velo_tracks >= MIN_HIGH_MULTIPLICITY,
    f"events with at least {MIN_HIGH_MULTIPLICITY} VELO tracks",
)
pv_in_gas = Prefilter(
    "pv_in_gas", event, lambda _: _pv_between(*GAS_CELL_Z), "events with a primary vertex in the gas target"
)
pv_of_beams = Prefilter(
    "pv_of_beams",
    event,
    lambda _: any_pv(lambda v: v.z > MIN_PV_Z * mm),
    "events with a primary vertex downstream of the gas target",
)

PREFILTERS = (
    *(odin_readable, no_beam, beam_one, beam_two, both_beams, odin_no_bias, odin_lumi),
    *(velo_open, velo_closed, tae_central, event_cut),
    *(low_multiplicity, high_multiplicity, pv_in_gas, pv_of_beams),
)
"""The prefilters that lines and configurations may name."""
