"""The chain `mu3e`: decays of muons to three electrons in a stream of pixel hits."""

from pathlib import Path

from hltnode.processing.algorithms.fragment_offsets import fragment_offsets
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.declaration import Algorithm, AlgorithmSequence
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.framework.streaming import HitLayout, Streaming
from hltnode.processing.mu3e.detector_constants import MARGIN_BEFORE, MARGIN_BEHIND, SUB_SLICE_NS
from hltnode.processing.mu3e.geometry.sensor_table import sensor_table, sensor_types, table_bytes
from hltnode.processing.mu3e.hits.collections import mu3e_types, own_hit_count
from hltnode.processing.mu3e.hits.flags import mu3e_flag_types
from hltnode.processing.mu3e.hits.sort_hits import sort_hits
from hltnode.processing.mu3e.lines.histograms import MU3E_HISTOGRAMS
from hltnode.processing.mu3e.lines.inputs import EVENT_WORDS, INPUTS, USUAL_FIELDS
from hltnode.processing.mu3e.lines.menu import MU3E_MENU
from hltnode.processing.mu3e.readout import MU3E_READOUT
from hltnode.processing.mu3e.tracks.collections import own_track_count, track_types, triplet_count
from hltnode.processing.mu3e.tracks.extend_tracks import extend_tracks
from hltnode.processing.mu3e.tracks.find_triplets import find_triplets
from hltnode.processing.mu3e.tracks.fit_triplets import fit_triplets
from hltnode.processing.mu3e.tracks.lists import TRACKS
from hltnode.processing.mu3e.tracks.select_triplets import select_triplets
from hltnode.processing.mu3e.vertices.collections import vertex_count, vertex_types, window_count
from hltnode.processing.mu3e.vertices.find_vertices import find_vertices
from hltnode.processing.mu3e.vertices.lists import VERTICES, WINDOWS
from hltnode.processing.selection.event_rate import EventRate
from hltnode.processing.selection.lines.line import selection_types
from hltnode.processing.selection.trigger_chain import Sequence, TriggerChain
from hltnode.protocol.mu3e.hit_banks import HIT, MU3E_SUBDETECTOR, TIME_OFFSET


def _sequence(*triplets: Algorithm) -> Sequence:
    """Decays, with the triplets of one or two kernels."""
    return Sequence(
        algorithms=AlgorithmSequence((fragment_offsets, sort_hits, *triplets, extend_tracks, find_vertices)),
        subdetectors=frozenset({MU3E_SUBDETECTOR}),
        counts={
            "mu3e_hits": own_hit_count,
            "triplets": triplet_count,
            "mu3e_tracks": own_track_count,
            "decay_vertices": vertex_count,
            "windows": window_count,
        },
        lists=(TRACKS, VERTICES, WINDOWS),
    )


SEQUENCES = {
    "decays": _sequence(select_triplets, fit_triplets),
    "one_kernel": _sequence(find_triplets),
}

STREAMING = Streaming(
    sub_slice_ns=SUB_SLICE_NS,
    margin_before=MARGIN_BEFORE,
    margin_behind=MARGIN_BEHIND,
    hit=HitLayout(size=HIT.itemsize, time_offset=TIME_OFFSET, time_type="<u2"),
    subdetectors=frozenset({MU3E_SUBDETECTOR}),
    constants={"sub_slice_ns": "length", "margin_before": "margin_before", "margin_behind": "margin_behind"},
    # 0.4 ms, 4 MB at 10^8 muons/s. Four of them fit a batch of 4,096 events.
    sub_slices=1022,
)

CHAIN = TriggerChain.offering(
    SEQUENCES,
    "decays",
    name="mu3e",
    kernels=KernelSources("mu3e/generated/chain_kernels.h", (PROCESSING,), "hltnode.processing.mu3e._chain_kernels"),
    source=Path(__file__),
    event_rate=EventRate(1e9 / SUB_SLICE_NS, "sub-slice"),
    readout=MU3E_READOUT,
    streaming=STREAMING,
    windows=WINDOWS.name,
    types=(mu3e_flag_types, mu3e_types, sensor_types, track_types, vertex_types, selection_types),
    event_words=EVENT_WORDS,
    menu=MU3E_MENU,
    geometry={sensor_table.name: table_bytes},
    histograms=MU3E_HISTOGRAMS,
    inputs=INPUTS,
    usual_fields=USUAL_FIELDS,
)
