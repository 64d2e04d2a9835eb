"""The chain: its inputs, algorithms and outputs. TINY is the entry point of the package."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass
from tiny.count_hits import (
    Side,
    count_hits,
    event_number,
    hit_charge,
    hit_count,
    hit_place,
    listed_count,
    tiny_types,
)

from hltnode.processing.algorithms.fragment_offsets import fragment_offsets
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.framework.output_lists import ListValue, OutputList
from hltnode.processing.framework.readout import AUTO, SampleTruth
from hltnode.processing.selection.configuration.menu import Menu
from hltnode.processing.selection.lines.inputs import ColumnField, Input
from hltnode.processing.selection.lines.line import selection_types
from hltnode.processing.selection.lines.line_type import VALIDATED, LineType
from hltnode.processing.selection.trigger_chain import TriggerChain
from hltnode.protocol.raw_data.bank_types import USER_TYPES
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import source_id, subdetector_of

HERE = Path(__file__).parent
SOURCES = tuple(source_id(side, 0) for side in Side)
HITS = USER_TYPES[0]
TIMING_BOARD = source_id(0, 0)


event = Input(
    "events",
    "the event as a whole",
    {"n_hits": ColumnField(hit_count, "hits"), "number": ColumnField(event_number, "number of the event in the run")},
)


@dataclass(frozen=True, config=VALIDATED)
class ManyHits(LineType):
    """Events with at least `min_hits` hits."""

    input = event

    min_hits: Annotated[int, Field(ge=1)] = 10

    def selects(self, candidate: Any) -> Any:
        return candidate.n_hits >= self.min_hits


class TinyReadout:
    """One board for each side, and a timing board that no algorithm reads; one encoding."""

    encodings = (AUTO,)
    subdetectors: Mapping[int, str] = {int(side): side.name for side in Side}
    bank_types: Mapping[int, str] = {HITS: "HITS"}
    truth_types: frozenset[int] = frozenset()
    types_not_read_out: frozenset[int] = frozenset()
    error_type = None
    error_types: frozenset[int] = frozenset()

    def later_sources(self, sources: Collection[int]) -> Mapping[int, int]:
        return {}

    def sample_of(self, banks: Sequence[RawBank]) -> SampleTruth | None:
        return None

    def encoding_of(self, bank_types: Collection[int]) -> str:
        return AUTO

    def reads(self, bank_type: int, encoding: str) -> bool:
        return True

    def source_of(self, bank: RawBank) -> int | None:
        is_read_out = bank.source_id == TIMING_BOARD or subdetector_of(bank.source_id) in set(Side)
        return bank.source_id if is_read_out else None


HIT_LIST = OutputList(
    name="hit_list",
    text="the hits of each event in the order of their bytes",
    count=listed_count,
    values={
        "charge": ListValue(column=hit_charge, text="charge", unit="ADC"),
        "side": ListValue(column=hit_place, member="side", text="side of the detector"),
        "byte": ListValue(column=hit_place, member="byte", text="byte in the bank of the side"),
    },
    capacity=lambda limits: 16 * limits.events,
)
TINY = TriggerChain(
    name="tiny",
    sequence=AlgorithmSequence((fragment_offsets, count_hits)),
    kernels=KernelSources("tiny/generated/chain_kernels.h", (PROCESSING, HERE.parent), "tiny._chain_kernels"),
    source=Path(__file__),
    readout=TinyReadout(),
    subdetectors=frozenset(Side),
    counts={"hits": hit_count},
    size="hits",
    types=(selection_types, tiny_types),
    event_words=(event.candidate().number,),
    menu=Menu(types=(ManyHits,), lines=(ManyHits("TinyManyHits"),)),
    inputs={"event": event},
    lists=(HIT_LIST,),
)
