"""The chain: sub-slices of 200 ns, and one line. STREAM is the entry point of the package."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic.dataclasses import dataclass
from stream.find_windows import (
    HIT,
    MARGIN_BEFORE,
    MARGIN_BEHIND,
    SUB_SLICE_NS,
    event_number,
    find_windows,
    stream_types,
    window,
    window_count,
)

from hltnode.processing.algorithms.fragment_offsets import fragment_offsets
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.framework.output_lists import ListValue, OutputList
from hltnode.processing.framework.readout import AUTO, SampleTruth
from hltnode.processing.framework.streaming import HitLayout, Streaming
from hltnode.processing.selection.configuration.menu import Menu
from hltnode.processing.selection.lines.inputs import ColumnField, Input
from hltnode.processing.selection.lines.line import selection_types
from hltnode.processing.selection.lines.line_type import VALIDATED, LineType
from hltnode.processing.selection.trigger_chain import TriggerChain
from hltnode.protocol.raw_data.bank_types import USER_TYPES
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import USER_SUBDETECTORS, source_id, subdetector_of

HERE = Path(__file__).parent
BOARDS = USER_SUBDETECTORS[:2]
SOURCES = tuple(source_id(board, 0) for board in BOARDS)
HITS, NO_DATA = USER_TYPES[0], USER_TYPES[1]

event = Input(
    "sub-slices",
    "the sub-slice as a whole",
    {
        "n_windows": ColumnField(window_count, "windows"),
        "number": ColumnField(event_number, "number of the sub-slice in its slice"),
    },
)


@dataclass(frozen=True, config=VALIDATED)
class HasWindows(LineType):
    """Sub-slices with a window."""

    input = event

    def selects(self, candidate: Any) -> Any:
        return candidate.n_windows >= 1


class StreamReadout:
    """Two boards; one encoding. A board sends NO_DATA for a sub-slice that it lost."""

    encodings = (AUTO,)
    subdetectors: Mapping[int, str] = {board: f"BOARD {i}" for i, board in enumerate(BOARDS)}
    bank_types: Mapping[int, str] = {HITS: "HITS", NO_DATA: "NO_DATA"}
    truth_types: frozenset[int] = frozenset()
    types_not_read_out: frozenset[int] = frozenset()
    error_type = None
    error_types: frozenset[int] = frozenset({NO_DATA})

    def later_sources(self, sources: Collection[int]) -> Mapping[int, int]:
        return {}

    def sample_of(self, banks: Sequence[RawBank]) -> SampleTruth | None:
        return None

    def encoding_of(self, bank_types: Collection[int]) -> str:
        return AUTO

    def reads(self, bank_type: int, encoding: str) -> bool:
        return True

    def source_of(self, bank: RawBank) -> int | None:
        return bank.source_id if subdetector_of(bank.source_id) in BOARDS else None


WINDOWS = OutputList(
    name="windows",
    text="windows around coincidences",
    count=window_count,
    values={
        name: ListValue(column=window, member=name, text=name, unit="ns" if name.endswith("ns") else "")
        for name in ("start_ns", "end_ns", "lines", "n_hits")
    },
)
STREAM = TriggerChain(
    name="stream",
    sequence=AlgorithmSequence((fragment_offsets, find_windows)),
    kernels=KernelSources("stream/generated/chain_kernels.h", (PROCESSING, HERE.parent), "stream._chain_kernels"),
    source=Path(__file__),
    readout=StreamReadout(),
    subdetectors=frozenset(BOARDS),
    counts={"windows": window_count},
    types=(selection_types, stream_types),
    event_words=(event.candidate().number,),
    menu=Menu(types=(HasWindows,), lines=(HasWindows("StreamWindows"),)),
    inputs={"event": event},
    lists=(WINDOWS,),
    streaming=Streaming(
        sub_slice_ns=SUB_SLICE_NS,
        margin_before=MARGIN_BEFORE,
        margin_behind=MARGIN_BEHIND,
        hit=HitLayout(size=HIT.itemsize, time_offset=HIT.fields["time"][1]),
    ),
    windows="windows",
)
