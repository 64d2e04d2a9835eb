"""The collection of vertices of two downstream tracks: bound, shapes and units."""

from enum import IntFlag

from hltnode.processing.framework.collections import F32, U8, U16, U32, Collection, Placement, Role, SharedTypes

MAX_V0S_PER_EVENT = 128


class DownstreamV0Kind(IntFlag):
    """Kinds of candidates, by mass; a vertex may be of several kinds."""

    DOWNSTREAM_KS = 1
    """The mass of a K0S, with pion masses."""
    DOWNSTREAM_LAMBDA = 2
    """The mass of a Lambda: the track with more momentum is the proton."""
    DOWNSTREAM_PHOTON = 4
    """A small mass of two electrons: a photon that converted in the material."""


downstream_v0_types = SharedTypes(
    __file__,
    "downstream_v0_types",
    enums={"downstream_v0_kind": DownstreamV0Kind},
    sizes={"max_downstream_v0s": MAX_V0S_PER_EVENT},
)

downstream_v0s = Collection(
    "downstream_v0s",
    capacity=lambda limits: limits.events * MAX_V0S_PER_EVENT,
    placement=Placement.fixed(MAX_V0S_PER_EVENT),
    max_per_event=MAX_V0S_PER_EVENT,
)
"""Vertices of two downstream tracks of opposite charges, ascending by the first, then by the second track. An event
with too many is flagged; the first ones are kept."""
downstream_v0_count = downstream_v0s.per_event("count", U32, role=Role.OUTPUT)
downstream_v0_tracks = downstream_v0s.column("tracks", U16, width=2)
"""[vertex][2]: numbers of its downstream tracks in the event, the first one is the smaller."""
downstream_v0_kind = downstream_v0s.column("kind", U8)
"""Bits of DownstreamV0Kind."""
downstream_v0_pv = downstream_v0s.column("pv", U8)
"""Index of the primary vertex to which the line of flight comes closest, or NO_PV."""
downstream_v0_position = {name: downstream_v0s.column(name, F32) for name in ("x", "y", "z")}
"""mm."""
downstream_v0_fit = {name: downstream_v0s.column(name, F32) for name in ("chi2", "doca", "ip")}
"""chi2 of the fit, one degree of freedom; smallest distance of the tracks, and distance of the line of flight from the
primary vertex, 0 without one: mm."""
downstream_v0_momentum = {name: downstream_v0s.column(name, F32) for name in ("px", "py", "pz", "pt", "min_pt")}
"""MeV, at the vertex: of both tracks together; `min_pt`: the smaller pt of the tracks."""
downstream_v0_masses = {name: downstream_v0s.column(name, F32) for name in ("m_pipi", "m_ppi", "m_ee")}
"""Invariant masses in MeV of two pions, a proton (the track with more momentum) and a pion, and two electrons."""
