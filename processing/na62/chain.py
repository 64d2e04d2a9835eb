"""The chain `na62_rich`: rings of the RICH of NA62."""

from pathlib import Path

from hltnode.processing.algorithms.fragment_offsets import fragment_offsets
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.declaration import Algorithm, AlgorithmSequence
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.na62.lines.histograms import RICH_HISTOGRAMS
from hltnode.processing.na62.lines.inputs import EVENT_WORDS, INPUTS, USUAL_FIELDS
from hltnode.processing.na62.lines.menu import RICH_MENU
from hltnode.processing.na62.readout import RICH_READOUT
from hltnode.processing.na62.rich.collections import hit_count, pmt_position, rich_types, ring_count
from hltnode.processing.na62.rich.fit_ring import fit_ring
from hltnode.processing.na62.rich.flags import rich_flag_types
from hltnode.processing.na62.rich.lists import RINGS
from hltnode.processing.na62.rich.pmt_positions import position_bytes
from hltnode.processing.na62.rich.read_hits import read_hits
from hltnode.processing.na62.rich.search_rings import search_rings
from hltnode.processing.selection.event_rate import EventRate
from hltnode.processing.selection.lines.line import selection_types
from hltnode.processing.selection.trigger_chain import Sequence, TriggerChain
from hltnode.protocol.na62.rich_banks import RICH_SUBDETECTOR


def _sequence(rings: Algorithm) -> Sequence:
    return Sequence(
        algorithms=AlgorithmSequence((fragment_offsets, read_hits, rings)),
        subdetectors=frozenset({RICH_SUBDETECTOR}),
        counts={"rich_hits": hit_count, "rings": ring_count},
        lists=(RINGS,),
    )


SEQUENCES = {"several_rings": _sequence(search_rings), "single_ring": _sequence(fit_ring)}
"""several_rings: any number of rings, without a seed. single_ring: one circle through all hits, much faster."""

L0_RATE = 1e6
"""Highest rate of L0 triggers, in Hz (NA62 Collaboration, "The beam and detector of the NA62 experiment at CERN", JINST
12 (2017) P05025, section 12)."""

CHAIN = TriggerChain.offering(
    SEQUENCES,
    "several_rings",
    name="na62_rich",
    kernels=KernelSources("na62/generated/chain_kernels.h", (PROCESSING,), "hltnode.processing.na62._chain_kernels"),
    source=Path(__file__),
    readout=RICH_READOUT,
    types=(rich_flag_types, rich_types, selection_types),
    event_words=EVENT_WORDS,
    menu=RICH_MENU,
    geometry={pmt_position.name: position_bytes},
    histograms=RICH_HISTOGRAMS,
    inputs=INPUTS,
    usual_fields=USUAL_FIELDS,
    event_rate=EventRate(L0_RATE, "L0 trigger"),
    display="hltnode.processing.na62.offline.display.picture",
)
