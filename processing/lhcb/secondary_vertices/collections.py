"""The collections of secondary vertices: candidate tracks, pairs of tracks, vertices, pairs of V0."""

from enum import IntFlag

from hltnode.processing.framework.collections import F32, U8, U16, U32, Collection, Placement, Role, SharedTypes
from hltnode.processing.lhcb.tracks.long.collections import MAX_TRACKS_PER_EVENT

MAX_PAIRS_PER_EVENT = 2048
MAX_VERTICES_PER_EVENT = 512
MAX_V0_PAIRS_PER_EVENT = 256


class TrackUse(IntFlag):
    """Possible uses of a track."""

    FOR_DISPLACED = 1
    """A displaced vertex of two tracks."""
    FOR_V0 = 2
    """A decay of a neutral strange hadron."""
    FOR_V0_FAR = 4
    """The track of a V0 that is farther from the primary vertex: more displaced than FOR_V0 requires."""
    FOR_DIMUON = 8
    """A vertex of two muons."""
    IS_POSITIVE = 16
    """Not a use: the charge of the track is positive."""


USE_PV_SHIFT = 8
"""The index of the primary vertex is stored above the bits of TrackUse, from this bit on."""


class VertexKind(IntFlag):
    """Kinds of candidates; a vertex of two tracks may be of several kinds."""

    VERTEX_DISPLACED = 1
    """Two displaced tracks of any charge: heavy flavour."""
    VERTEX_KS = 2
    """Opposite charges and the mass of a K0S, with pion masses."""
    VERTEX_LAMBDA = 4
    """Opposite charges and the mass of a Lambda: the track with more momentum is the proton."""
    VERTEX_DIMUON = 8
    """Two muons of any charge."""
    VERTEX_SAME_SIGN = 16
    """Not a kind: both tracks have the same charge."""


vertex_types = SharedTypes(
    __file__,
    "vertex_types",
    enums={"track_use": TrackUse, "vertex_kind": VertexKind},
    sizes={
        "max_vertex_pairs": MAX_PAIRS_PER_EVENT,
        "max_two_track_vertices": MAX_VERTICES_PER_EVENT,
        "max_v0_pairs": MAX_V0_PAIRS_PER_EVENT,
        "use_pv_shift": USE_PV_SHIFT,
    },
)

vertex_tracks = Collection(
    "vertex_tracks",
    capacity=lambda limits: limits.events * MAX_TRACKS_PER_EVENT,
    placement=Placement.fixed(MAX_TRACKS_PER_EVENT),
    max_per_event=MAX_TRACKS_PER_EVENT,
)
"""Long tracks that may be part of a secondary vertex, in the order of long_tracks."""
vertex_track_count = vertex_tracks.per_event("count", U32)
vertex_track_number = vertex_tracks.column("track", U16)
"""Number of the long track in its event."""
vertex_track_use = vertex_tracks.column("use", U32)
"""Bits of TrackUse; from USE_PV_SHIFT on the index of the primary vertex."""
vertex_track_line = {name: vertex_tracks.column(name, F32) for name in ("x0", "y0", "tx", "ty")}
"""The track at the beam line as a straight line: mm at z = 0, slopes."""
vertex_track_ip_chi2 = vertex_tracks.column("ip_chi2", F32)

vertex_pairs = Collection(
    "vertex_pairs",
    capacity=lambda limits: limits.events * MAX_PAIRS_PER_EVENT,
    placement=Placement.fixed(MAX_PAIRS_PER_EVENT),
    max_per_event=MAX_PAIRS_PER_EVENT,
)
"""Pairs of vertex_tracks that are close to each other, ascending by the first, then by the second track. An event with
too many is flagged; the first ones are kept."""
vertex_pair_count = vertex_pairs.per_event("count", U32)
vertex_pair_tracks = vertex_pairs.column("tracks", U16, width=2)
"""[pair][2]: numbers of the long tracks in their event, the first one is the smaller."""
vertex_pair_kind = vertex_pairs.column("kind", U8)
"""Bits of VertexKind that the tracks and their distance allow; VERTEX_KS represents both kinds of V0."""

two_track_vertices = Collection(
    "two_track_vertices",
    capacity=lambda limits: limits.events * MAX_VERTICES_PER_EVENT,
    placement=Placement.fixed(MAX_VERTICES_PER_EVENT),
    max_per_event=MAX_VERTICES_PER_EVENT,
)
"""Fitted vertices of two long tracks, in the order of vertex_pairs. An event with too many is flagged; the first ones
are kept."""
vertex_count = two_track_vertices.per_event("count", U32, role=Role.OUTPUT)
vertex_tracks_of = two_track_vertices.column("tracks", U16, width=2)
"""[vertex][2]: numbers of its long tracks in the event, the first one is the smaller."""
vertex_kind = two_track_vertices.column("kind", U8)
"""Bits of VertexKind."""
vertex_pv = two_track_vertices.column("pv", U8)
"""Index of the primary vertex to which the line of flight comes closest, or NO_PV."""
vertex_position = {name: two_track_vertices.column(name, F32) for name in ("x", "y", "z")}
"""mm."""
vertex_covariance = {name: two_track_vertices.column(name, F32) for name in ("c00", "c10", "c11", "c20", "c21", "c22")}
"""mm²: 0 = x, 1 = y, 2 = z."""
vertex_fit = {name: two_track_vertices.column(name, F32) for name in ("chi2", "doca")}
"""chi2 of the fit, one degree of freedom; smallest distance of the two tracks in mm."""
vertex_momentum = {name: two_track_vertices.column(name, F32) for name in ("px", "py", "pz", "pt")}
"""MeV, of both tracks together; pt is transverse to the z axis."""
vertex_flight = {
    name: two_track_vertices.column(name, F32) for name in ("ip", "fd", "fd_chi2", "eta", "dira", "m_corr")
}
"""With respect to the primary vertex; 0 without one. ip: of the line of flight, mm; fd: distance of flight, mm, and its
chi2; eta: pseudorapidity of the flight; dira: cosine of the angle between flight and momentum; m_corr: corrected mass
with pion masses, MeV."""
vertex_masses = {
    name: two_track_vertices.column(name, F32)
    for name in ("m_pipi", "m_kpi", "m_pik", "m_kk", "m_ppi", "m_pip", "m_mumu")
}
"""Invariant masses in MeV under hypotheses for the first and the second track: m_kpi is that of a kaon and a pion,
m_pip that of a pion and a proton."""
vertex_of_tracks = {
    name: two_track_vertices.column(name, F32) for name in ("min_pt", "sum_pt", "min_p", "min_ip", "min_ip_chi2")
}
"""Smallest values, and the sum of pt, of the two tracks: MeV and mm."""

v0_pairs = Collection(
    "v0_pairs",
    capacity=lambda limits: limits.events * MAX_V0_PAIRS_PER_EVENT,
    placement=Placement.fixed(MAX_V0_PAIRS_PER_EVENT),
    max_per_event=MAX_V0_PAIRS_PER_EVENT,
)
"""Composite candidates: two V0 candidates without a common track, ascending by the first, then by the second vertex. An
event with too many is flagged; the first ones are kept."""
v0_pair_count = v0_pairs.per_event("count", U32, role=Role.OUTPUT)
v0_pair_vertices = v0_pairs.column("vertices", U16, width=2)
"""[pair][2]: numbers of its vertices in the event."""
v0_pair_mass = v0_pairs.column("mass", F32)
"""Mass of both V0, MeV: each has the mass of a Lambda if it is only a Lambda candidate, otherwise that of a K0S."""
v0_pair_doca = v0_pairs.column("doca", F32)
"""Smallest distance of the two lines of flight, mm."""
