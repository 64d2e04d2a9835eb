"""The chain `raw`: sizes and presence of banks of any boards, without code for a detector and without ODIN."""

from pathlib import Path

from hltnode.processing.algorithms.event_times import TIMES
from hltnode.processing.algorithms.fragment_offsets import fragment_offsets
from hltnode.processing.framework.batch import N_SUBDETECTORS
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.raw.banks.collections import bank_count, error_bank_count, raw_bank_types
from hltnode.processing.raw.banks.flags import raw_flag_types
from hltnode.processing.raw.banks.list_banks import list_banks
from hltnode.processing.raw.banks.lists import SOURCE_BANKS
from hltnode.processing.raw.banks.source_offsets import source_offsets
from hltnode.processing.raw.lines.histograms import RAW_HISTOGRAMS
from hltnode.processing.raw.lines.inputs import EVENT_WORDS, INPUTS, USUAL_FIELDS
from hltnode.processing.raw.lines.menu import RAW_MENU
from hltnode.processing.raw.readout import RAW_READOUT
from hltnode.processing.selection.lines.line import selection_types
from hltnode.processing.selection.trigger_chain import TriggerChain

CHAIN = TriggerChain(
    name="raw",
    sequence=AlgorithmSequence((fragment_offsets, source_offsets, list_banks)),
    kernels=KernelSources("raw/generated/chain_kernels.h", (PROCESSING,), "hltnode.processing.raw._chain_kernels"),
    source=Path(__file__),
    readout=RAW_READOUT,
    subdetectors=frozenset(range(N_SUBDETECTORS)),
    counts={"banks": bank_count, "error_banks": error_bank_count},
    types=(raw_flag_types, raw_bank_types, selection_types),
    event_words=EVENT_WORDS,
    menu=RAW_MENU,
    histograms=RAW_HISTOGRAMS,
    inputs=INPUTS,
    usual_fields=USUAL_FIELDS,
    lists=(SOURCE_BANKS, TIMES),
    display="hltnode.processing.raw.offline.display.picture",
)
