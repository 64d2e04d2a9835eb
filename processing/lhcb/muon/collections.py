"""The collection of muon hits, and the columns of long tracks from muon identification: bounds, shapes and units."""

import numpy as np

from hltnode.processing.framework.batch import events
from hltnode.processing.framework.collections import (
    F32,
    U8,
    U16,
    U32,
    Collection,
    Column,
    Placement,
    Record,
    Role,
    SharedTypes,
    constant_column,
)
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.geometry.muon import N_REGIONS, N_STATIONS
from hltnode.processing.lhcb.geometry.muon_cells import (
    MAX_CELLS,
    MAX_CHANNELS,
    MAX_PLACES,
    N_SOURCES,
    NO_CELL,
    WORD,
)
from hltnode.processing.lhcb.readout import version_sizes
from hltnode.processing.lhcb.tracks.long.collections import long_tracks
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.bank_versions import MuonVersion
from hltnode.protocol.lhcb.banks.muon import N_BANKS, N_BATCHES
from hltnode.protocol.lhcb.banks.muon_links import (
    CHANNELS_OF_LINK,
    HITS_SIZE,
    LINK_MAP,
    MAP_SIZE,
    MAX_LINKS,
    MAX_TIMES,
    N_STREAMS,
    SYNCHRONISATION,
)

STATION_STRIDE = 8
MAX_HITS_PER_EVENT = 65535
MAX_STUBS_PER_EVENT = 256
"""Simulated minimum-bias events have 7 at most."""
HIT_PADDING = 8
CELL_WORDS = MAX_CELLS // WORD
NO_CROSSING = 1 << 7
NO_HIT = 0xFFFF
MISSING = -10_000.0
"""Feature of a station without hits, as in the training of LHCb's trees: below every threshold of theirs but one."""

FEATURE_KINDS = ("dt", "time", "crossed", "x", "y")
FEATURES = tuple(f"muon_{kind}_m{station + 2}" for kind in FEATURE_KINDS for station in range(N_STATIONS))
"""The features of a long track for trees, in the order of LHCb's model: each kind for M2 to M5
(docs/physics/muon.md)."""
STUB_NUMBERS = ("chi2", "dtx", "dty", "velo_dty", "event_hits")

MUON_CELL = Record(
    "muon_cell",
    np.dtype([("tile", "<u4"), ("rows", "<u4"), ("first_row", "<u4"), ("first_pad", "<u4")]),
    {
        "tile": "id",
        "rows": "number of y strips that cross an x strip; 0 for other cells",
        "first_row": "cell of the first y strip",
        "first_pad": "place of the pad at the first y strip; the others follow",
    },
)
MUON_PLACE = Record(
    "muon_place",
    np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("dx", "<f4"), ("dy", "<f4")]),
    {"x": "mm, the middle", "dx": "mm, half size"},
)
MUON_GEOMETRY = Record(
    "muon_geometry",
    np.dtype(
        [
            ("n_banks", "<u4"),
            ("n_streams", "<u4"),
            ("first_channel", "<u4", (N_SOURCES + 1,)),
            ("n_links", "<u4", (N_STREAMS,)),
            ("first_word", "<u4", (N_STATIONS + 1,)),
            ("cell", MUON_CELL.dtype, (MAX_CELLS,)),
            ("place", MUON_PLACE.dtype, (MAX_PLACES,)),
            ("cell_of_channel", "<u2", (MAX_CHANNELS,)),
        ]
    ),
    {
        "n_banks": "of batches that are read",
        "n_streams": "of links that are read",
        "first_channel": "of each bank of batches, then of each stream, in cell_of_channel",
        "n_links": "active links of each stream",
        "first_word": "of each station in the bit map of cells",
        "place": "of cells, then of the pads of crossed strips",
        "cell_of_channel": "or no_muon_cell",
    },
)
"""The muon stations for kernels: MuonCells.to_bytes()."""

FIELD_OF_INTEREST = Record(
    "muon_field_of_interest",
    np.dtype([(name, "<f4", (N_STATIONS, 2 * N_REGIONS)) for name in "abc"]),
    {"a": "by station: x in each region, then y; a + b exp(-c p) half sizes of a hit", "c": "1/GeV"},
)
"""The fields of interest for kernels: FieldsOfInterest.to_bytes()."""

muon_types = SharedTypes(
    __file__,
    "muon_types",
    records=(MUON_CELL, MUON_PLACE, MUON_GEOMETRY, FIELD_OF_INTEREST),
    sizes={
        "n_muon_stations": N_STATIONS,
        "n_muon_regions": N_REGIONS,
        "muon_station_stride": STATION_STRIDE,
        "max_muon_hits_of_event": MAX_HITS_PER_EVENT,
        "muon_hit_padding": HIT_PADDING,
        "no_muon_hit": NO_HIT,
        "missing_muon_feature": MISSING,
        "n_muon_features": len(FEATURES),
        "n_muon_stub_numbers": len(STUB_NUMBERS),
        "max_muon_stubs": MAX_STUBS_PER_EVENT,
        "muon_no_crossing": NO_CROSSING,
        "muon_bank_type": int(LhcbBankType.MUON),
        **version_sizes("muon", MuonVersion),
        "n_muon_batches": N_BATCHES,
        "n_muon_banks": N_BANKS,
        "muon_cell_words": CELL_WORDS,
        "no_muon_cell": NO_CELL,
        "max_muon_links": MAX_LINKS,
        "muon_channels_of_link": CHANNELS_OF_LINK,
        "max_muon_times_of_link": MAX_TIMES,
        "muon_link_hits_size": HITS_SIZE,
        "muon_link_map": LINK_MAP,
        "muon_link_map_size": MAP_SIZE,
        "muon_synchronisation": SYNCHRONISATION,
    },
)
"""Stations 0 to 3 are M2 to M5. muon_no_crossing is a bit of muon_hits.time."""

muon_geometry = constant_column("muon_geometry", MUON_GEOMETRY)
muon_field_of_interest = constant_column("muon_field_of_interest", FIELD_OF_INTEREST)

muon_lit_cells = events.per_event("muon_cells", U32, width=CELL_WORDS)
"""Bit map of the active strips and pads; words behind those of the last station are not written."""
muon_crossed_cells = events.per_event("muon_crossed", U32, width=CELL_WORDS)
"""Bit map of the active strips and pads in a crossing."""


def max_hits(limits: BatchLimits) -> int:
    """With only the tracking detectors in the input, minimum-bias events have a muon hit in 110 bytes. An event that
    does not fit is flagged and kept."""
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
"""Exact number of hits of each event, before they are made; 0 for an event that is cut or does not fit."""
muon_count = muon_hits.per_event("count", U32, role=Role.OUTPUT)
muon_station_offset = muon_hits.per_event("station_offset", U16, width=STATION_STRIDE)
"""[event][8]: hits of station s of an event are [s] .. [s + 1], relative to its first hit; from 4 on: the count."""
muon_x = muon_hits.column("x", F32)
muon_y = muon_hits.column("y", F32)
muon_z = muon_hits.column("z", F32)
muon_dx = muon_hits.column("dx", F32)
muon_dy = muon_hits.column("dy", F32)
"""Centre and half sizes of the hit, mm."""
muon_tile = muon_hits.column("tile", U32)
"""Tile id (docs/formats/muon-banks.md); bits 14 and 15 are the region. In a station crossed hits are first, then the
others; both ascend by tile id."""
muon_time = muon_hits.column("time", U8)
"""TDC time of the (x) strip, 0 to 15; bit 7: no crossing, the position is that of a single strip."""
muon_time_y = muon_hits.column("time_y", U8)
"""TDC time of the y strip of a crossing, 0 to 15; 0 for a single strip or pad."""

long_is_muon = long_tracks.column("is_muon", U8)
"""1 for a track with hits in its fields of interest in the stations required for its momentum, and with a chi2 of these
hits up to the configured maximum."""
long_muon_chi2 = long_tracks.column("muon_chi2", F32)
"""Correlated chi2 of the nearest hits, in x and y, divided by their number; 0 for a track without these hits."""
long_muon_hits = long_tracks.column("muon_hits", U16, width=N_STATIONS)
"""[track][4]: the hit nearest to the track in its field of interest in each station required for its momentum, relative
to the first muon hit of the event, or NO_HIT; all are NO_HIT if a required station has none."""
long_muon_features = long_tracks.column("muon_features", F32, width=len(FEATURES))
"""[track][FEATURES]: of the hit of each station that is nearest to the line of the track. dt: time of the x strip minus
that of the y strip, or the time of a single strip or pad; time: of the x strip, or of the single one; crossed: 2 for a
crossing, 1 for a single strip or pad; x and y: the line minus the hit, in its error with multiple scattering. A station
without hits has 0 as crossed, and MISSING as other features."""
long_muon_stub = long_tracks.column("muon_stub", F32, width=len(STUB_NUMBERS))
"""[track][STUB_NUMBERS]: of the hits in `long_muon_hits`: their chi2 without correlations, divided by their number; the
differences of slopes of a line through them and the track in x and y, and the track at the beam in y; the number of
muon hits of the event. All are 0 for a track without these hits."""
long_muon_nn = long_tracks.column("muon_nn", F32)
"""Response of the muon network, 0 to 1: near 1 for a muon; 0 for a track without hits in its fields of interest."""

muon_stubs = Collection(
    "muon_stubs",
    capacity=lambda limits: limits.events * MAX_STUBS_PER_EVENT,
    placement=Placement.fixed(MAX_STUBS_PER_EVENT),
    max_per_event=MAX_STUBS_PER_EVENT,
)
"""Straight lines of one hit in each of M2 to M5, found without a track; ascending by their hit in M5. An event with too
many is flagged; the first ones are kept."""
stub_count = muon_stubs.per_event("count", U32, role=Role.OUTPUT)
stub_hits = muon_stubs.column("hits", U16, width=N_STATIONS)
"""[stub][4]: its hits in M2 to M5, relative to the first muon hit of the event."""
stub_line = {name: muon_stubs.column(name, F32) for name in ("x", "y", "tx", "ty")}
"""The fitted line in the middle of M2, z = 15270 mm: mm, slopes."""
stub_chi2 = {name: muon_stubs.column(name, F32) for name in ("chi2_x", "chi2_y")}
"""chi2 of the fits in x and in y per degree of freedom, each hit with twice its half size as error."""
