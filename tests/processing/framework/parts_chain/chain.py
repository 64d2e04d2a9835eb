"""The chain: fragments, slices and events. PARTS reconstructs; it makes no decisions."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from parts.clear_counts import clear_counts
from parts.columns import slice_types
from parts.count_fragments import count_fragments
from parts.find_values import find_values
from parts.next_sums import next_sums
from parts.place_found import place_found
from parts.square_values import square_values
from parts.sum_event import sum_event
from parts.sum_values import sum_values

from hltnode.processing.algorithms.fragment_offsets import fragment_offsets
from hltnode.processing.framework.chain import Chain
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.framework.readout import AUTO, SampleTruth
from hltnode.protocol.raw_data.bank_types import USER_TYPES
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import USER_SUBDETECTORS, source_id

HERE = Path(__file__).parent
BYTES = USER_TYPES[0]
SOURCES = (source_id(USER_SUBDETECTORS[0], 0), source_id(USER_SUBDETECTORS[1], 0))


class PartsReadout:
    """Two boards; one encoding."""

    encodings = (AUTO,)
    subdetectors: Mapping[int, str] = dict(zip(USER_SUBDETECTORS[:2], ("ONE", "TWO"), strict=True))
    bank_types: Mapping[int, str] = {BYTES: "BYTES"}
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
        return bank.source_id


PARTS = Chain(
    name="parts",
    sequence=AlgorithmSequence(
        (
            fragment_offsets,
            clear_counts,
            count_fragments,
            find_values,
            sum_values,
            next_sums,
            place_found,
            square_values,
            sum_event,
        )
    ),
    kernels=KernelSources("parts/generated/chain_kernels.h", (PROCESSING, HERE.parent), "parts._chain_kernels"),
    source=Path(__file__),
    readout=PartsReadout(),
    subdetectors=frozenset(USER_SUBDETECTORS[:2]),
    types=(slice_types,),
)
