"""The collection of muon hits, and what muon identification says of long tracks: bounds, shapes and units."""

from hltnode.processing.framework.collections import F32, U8, U16, U32, Collection, Column, Placement, Role, SharedTypes
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.long_tracks.collections import long_tracks

N_STATIONS = 4
STATION_STRIDE = 8
MAX_HITS_PER_EVENT = 65535
HIT_PADDING = 8

muon_types = SharedTypes(
    __file__,
    "muon_types",
    sizes={
        "n_muon_stations": N_STATIONS,
        "muon_station_stride": STATION_STRIDE,
        "max_muon_hits_of_event": MAX_HITS_PER_EVENT,
        "muon_hit_padding": HIT_PADDING,
    },
)
"""Stations 0 to 3 are M2 to M5."""


def max_hits(limits: BatchLimits) -> int:
    """Real events of minimum bias have a muon hit in 400 bytes of input; what does not fit is flagged and kept."""
    return limits.input_bytes // 32


muon_hit_offset = Column(name="muon_hits.offset", dtype=U32, bound=lambda limits: limits.events, extra=1, of_event=True)
"""Prefix sum of the places of each event."""

muon_hits = Collection(
    "muon_hits",
    capacity=max_hits,
    placement=Placement(offsets=muon_hit_offset),
    max_per_event=MAX_HITS_PER_EVENT + HIT_PADDING,
)
muon_bound = muon_hits.per_event("bound", U32)
"""Upper bound of the hits of each event, from the sizes of its banks; 0 for an event that is cut or does not fit."""
muon_count = muon_hits.per_event("count", U32, role=Role.OUTPUT)
muon_station_offset = muon_hits.per_event("station_offset", U16, width=STATION_STRIDE)
"""[event][8]: hits of station s of an event are [s] .. [s + 1], relative to its first hit; from 4 on: the count."""
muon_x = muon_hits.column("x", F32)
muon_y = muon_hits.column("y", F32)
muon_z = muon_hits.column("z", F32)
muon_dx = muon_hits.column("dx", F32)
muon_dy = muon_hits.column("dy", F32)
"""mm: the centre of the hit, and half its sizes."""
muon_tile = muon_hits.column("tile", U32)
"""Tile id (docs/formats/muon-banks.md); bits 14 and 15 are the region. Crossed hits of a station stand first, then the
others; both ascend by it."""
muon_time = muon_hits.column("time", U8)
"""TDC time of the (x) strip, 0 to 15, bit 7: no crossing, the position of a single strip."""

long_is_muon = long_tracks.column("is_muon", U8)
"""1 for a track with hits in its fields of interest in the stations that its momentum asks for."""
long_muon_chi2 = long_tracks.column("muon_chi2", F32)
"""Correlated chi2 of the nearest hits divided by their number; 0 for a track that is no muon."""
