"""The collection of SciFi hits: bounds, shapes and units; the mats for kernels."""

from hltnode.processing.framework.collections import (
    F32,
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
from hltnode.processing.lhcb.geometry.ideal_scifi import FIRST_MAT, N_LAYERS, N_MAT_INDICES, SIPMS_PER_MAT
from hltnode.processing.lhcb.geometry.scifi import N_MATS
from hltnode.processing.lhcb.geometry.scifi_mats import (
    CHANNELS_PER_MAT,
    MAT,
    MAT_COMMENTS,
    READ_OUT,
    READ_OUT_COMMENTS,
    SIPMS,
    SIPMS_COMMENTS,
)
from hltnode.processing.lhcb.geometry.scifi_mats import N_ZONES as N_ZONES
from hltnode.processing.lhcb.geometry.scifi_mats import NO_PLACE as NO_PLACE
from hltnode.processing.lhcb.geometry.scifi_mats import ZONE_STRIDE as ZONE_STRIDE
from hltnode.protocol.lhcb.bank_versions import SciFiVersion
from hltnode.protocol.lhcb.banks.scifi import (
    CHANNELS_PER_LINK,
    MIN_EDGE_DISTANCE,
    N_BANKS,
    NARROW,
    PIECE,
    PIECE_OF_WIDE,
)
from hltnode.protocol.lhcb.banks.scifi_links import LINKS_OF_BANK, MAX_WORDS
from hltnode.protocol.lhcb.lhcb_id import FT_TYPE

MAX_HITS_PER_EVENT = 65535
HIT_PADDING = 8
NO_HIT = 0xFFFF


SCIFI_MAT = Record("scifi_mat", MAT, MAT_COMMENTS)
SCIFI_READ_OUT = Record("scifi_read_out", READ_OUT, READ_OUT_COMMENTS)
SCIFI_SIPMS = Record("scifi_sipms", SIPMS, SIPMS_COMMENTS)

scifi_types = SharedTypes(
    __file__,
    "scifi_types",
    records=(SCIFI_MAT, SCIFI_READ_OUT, SCIFI_SIPMS),
    enums={"scifi_rule": SciFiVersion},
    scoped=("scifi_rule",),
    sizes={
        "scifi_detector": FT_TYPE,
        "n_scifi_layers": N_LAYERS,
        "n_scifi_banks": N_BANKS,
        "n_scifi_mats": N_MATS,
        "n_scifi_mat_indices": N_MAT_INDICES,
        "first_scifi_mat": FIRST_MAT,
        "scifi_channels_per_mat": CHANNELS_PER_MAT,
        "scifi_sipms_per_mat": SIPMS_PER_MAT,
        "scifi_channels_per_link": CHANNELS_PER_LINK,
        "scifi_links_of_bank": LINKS_OF_BANK,
        "max_scifi_words_of_links": MAX_WORDS,
        "no_scifi_place": NO_PLACE,
        "scifi_piece": PIECE,
        "scifi_min_edge_distance": MIN_EDGE_DISTANCE,
        "scifi_narrow": NARROW,
        "scifi_piece_of_wide": PIECE_OF_WIDE,
        "n_scifi_zones": N_ZONES,
        "scifi_zone_stride": ZONE_STRIDE,
        "max_scifi_hits_of_event": MAX_HITS_PER_EVENT,
        "scifi_hit_padding": HIT_PADDING,
        "no_scifi_hit": NO_HIT,
    },
)
"""Hits of an event are numbered with 16 bits from its first one; no_scifi_hit marks a missing hit. 2 scifi_hit_padding
free places follow the hits of each event: kernels may load columns this far behind the last hit, but must ignore the
values.

scifi_rule: the rule that makes hits from words, numbered by its bank version.

Zone 2 l is the lower half of layer l (0 to 11), zone 2 l + 1 the upper one. A mat index is (channel id >> 9) -
first_scifi_mat; a place is the number of a mat in the order of zone and x."""

scifi_mats = constant_column("scifi_mats", SCIFI_MAT, bound=lambda _: N_MAT_INDICES)
"""By mat index: geometry.scifi_mats.mat_table()."""
scifi_read_out = constant_column("scifi_read_out", SCIFI_READ_OUT)
"""geometry.scifi_mats.read_out_table()."""
scifi_sipms = constant_column("scifi_sipms", SCIFI_SIPMS)
"""geometry.scifi_mats.sipm_table()."""


def max_hits(limits: BatchLimits) -> int:
    """With only the tracking detectors in the input, minimum-bias events have a word of a SciFi bank in 7 bytes. An
    event that does not fit is flagged and kept."""
    return limits.input_bytes // 4


scifi_hit_offset = Column(
    name="scifi_hits.offset", dtype=U32, bound=lambda limits: limits.events, extra=1, of_event=True
)
"""Prefix sum of the places of each event."""

scifi_hits = Collection(
    "scifi_hits",
    capacity=max_hits,
    placement=Placement(offsets=scifi_hit_offset),
    max_per_event=MAX_HITS_PER_EVENT + 2 * HIT_PADDING,
)
scifi_bound = scifi_hits.per_event("bound", U32)
"""Upper bound of the hits of each event, from the sizes of its banks; 0 for an event that is cut or does not fit."""
scifi_count = scifi_hits.per_event("count", U32, role=Role.OUTPUT)
scifi_zone_offset = scifi_hits.per_event("zone_offset", U16, width=ZONE_STRIDE)
"""[event][32]: hits of zone k of an event are [k] .. [k + 1], relative to its first hit; from 24 on: the count."""
scifi_x = scifi_hits.column("x", F32)
"""mm at y = 0, ascending inside each zone (equal ones by id)."""
scifi_z = scifi_hits.column("z", F32)
"""mm at y = 0."""
scifi_id = scifi_hits.column("id", U32)
"""LHCbID: 5 << 28 | channel id."""
scifi_info = scifi_hits.column("info", U16)
"""Mat index (11 bits) | pseudo-size (0 to 8) << 11. The mat gives the slopes dx_dy, dz_dy and the end of the fibre."""
