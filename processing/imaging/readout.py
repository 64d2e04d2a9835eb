"""The readout of images: a source for each strip, and ODIN where a run has it."""

from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum

from hltnode.processing.framework.readout import AUTO
from hltnode.processing.imaging.pixel_lists import PIXEL_LIST_TYPE
from hltnode.processing.imaging.strips import IMAGE_SUBDETECTORS, STRIP_TYPE, is_image_source
from hltnode.protocol.raw_data.bank_types import TYPES_OF_NODE, BankType
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import ODIN_SOURCE, ODIN_SUBDETECTOR


class ImageBankType(IntEnum):
    """Types that this chain names (docs/formats/bank-types.md)."""

    STRIP = STRIP_TYPE
    PIXEL_LIST = PIXEL_LIST_TYPE
    SEVERAL_STRIPS = 240
    """Made when a file is read: the source has several banks in the event; the payload is that of the first one."""


class ImageReadout:
    """Strips by source; one encoding (framework.readout.Readout)."""

    encodings = (AUTO,)
    subdetectors: Mapping[int, str] = {
        ODIN_SUBDETECTOR: "TIMING",
        **{number: f"IMAGE {i}" for i, number in enumerate(IMAGE_SUBDETECTORS)},
    }
    bank_types: Mapping[int, str] = {int(each): each.name for each in ImageBankType}
    truth_types: frozenset[int] = frozenset()
    types_not_read_out: frozenset[int] = TYPES_OF_NODE
    error_type = ImageBankType.SEVERAL_STRIPS
    error_types: frozenset[int] = frozenset({ImageBankType.SEVERAL_STRIPS})

    def sample_of(self, banks: Sequence[RawBank]) -> None:
        """None: simulated events have no truth."""

    def later_sources(self, sources: Collection[int]) -> Mapping[int, int]:  # noqa: ARG002
        """None: a feeder announces the sources of all events."""
        return {}

    def encoding_of(self, bank_types: Collection[int]) -> str:  # noqa: ARG002
        """The only encoding."""
        return AUTO

    def reads(self, bank_type: int, encoding: str) -> bool:  # noqa: ARG002
        """True for strips, for what stands in their place, and for ODIN."""
        return bank_type == BankType.ODIN or bank_type in self.bank_types

    def source_of(self, bank: RawBank) -> int | None:
        """The source id of a bank of a strip, ODIN's source for ODIN; None for other banks."""
        if bank.type in self.types_not_read_out:
            return None
        if bank.type == BankType.ODIN:
            return ODIN_SOURCE
        return bank.source_id if is_image_source(bank.source_id) else None


IMAGE_READOUT = ImageReadout()
