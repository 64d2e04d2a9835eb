"""Readout rules of an experiment: from raw banks to the MFPs of its readout sources."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hltnode.protocol.raw_data.bank_types import LIST_TYPES, TIME_WINDOW, TYPES_OF_NODE, BankType
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import ODIN_SOURCE

ENTRY_POINTS = "hltnode.readouts"
"""Entry point group of installed packages that offer the readout of a chain, under the name of the chain.

A command that needs the readout alone imports no chain then. A chain that offers none is imported.
"""
AUTO = "auto"
"""Choose the encoding from the events."""
_RESERVED_NAMES = {
    **{int(bank_type): bank_type.name for bank_type in BankType},
    **{number: f"OUTPUT_LIST_{i}" for i, number in enumerate(LIST_TYPES)},
    TIME_WINDOW: "TIME_WINDOW",
}


@dataclass(frozen=True, slots=True)
class SampleTruth:
    """The sample that a simulated event belongs to, by the truth in its banks.

    kind: name of the sample. minimum_bias: whether its events stand for bunch crossings. weight: of the event in a mean
    over crossings; the mean weight of a sample is 1.
    """

    kind: str
    minimum_bias: bool
    weight: float


class Readout(Protocol):
    """The rules of one experiment. Events may hold the same hits in several encodings; one encoding is read."""

    @property
    def encodings(self) -> tuple[str, ...]:
        """The encodings that a user may choose, AUTO included."""

    @property
    def subdetectors(self) -> Mapping[int, str]:
        """Names of the sub-detectors, by the top five bits of their source ids."""

    @property
    def bank_types(self) -> Mapping[int, str]:
        """Names of the experiment's bank types. The types that a node reserves are not among them."""

    @property
    def truth_types(self) -> frozenset[int]:
        """Bank types of the simulation's truth, which a feeder sends only on request."""

    def sample_of(self, banks: Sequence[RawBank]) -> SampleTruth | None:
        """The sample of a simulated event, from its banks of `truth_types`; None without this truth, as for all
        recorded events.

        Raises ProtocolError for truth that cannot be read.
        """

    @property
    def types_not_read_out(self) -> frozenset[int]:
        """Bank types that the trigger or a file writer makes and no readout board sends, truth excluded."""

    @property
    def error_type(self) -> int | None:
        """Bank type of the fragment of a source that has several banks in one event; None: such events are refused.

        The fragment has the payload of the first one.
        """

    @property
    def error_types(self) -> frozenset[int]:
        """Types of the banks that a readout board sends in place of data.

        They may have any version; they get that of their MFP.
        """

    def later_sources(self, sources: Collection[int]) -> Mapping[int, int]:
        """Sources that only large events have, each with that of `sources` whose bank version it shares.

        A feeder announces them before such an event appears.
        """

    def encoding_of(self, bank_types: Collection[int]) -> str:
        """The default encoding for events with banks of these types."""

    def reads(self, bank_type: int, encoding: str) -> bool:
        """True if an encoding includes banks of this type."""

    def source_of(self, bank: RawBank) -> int | None:
        """The source id of a bank, None if no readout board writes such a bank. The payload does not matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OneEncodingReadout:
    """The readout of a detector whose events have one encoding and no sample; a feeder announces all sources.

    subdetectors, bank_types, truth_types, error_type: as in Readout. data_types: bank types of data. is_source: whether
    a source id is one of the detector.
    """

    subdetectors: Mapping[int, str]
    bank_types: Mapping[int, str]
    data_types: frozenset[int]
    error_type: int
    is_source: Callable[[int], bool]
    truth_types: frozenset[int] = frozenset()
    types_not_read_out: frozenset[int] = TYPES_OF_NODE
    encodings: tuple[str, ...] = (AUTO,)

    @property
    def error_types(self) -> frozenset[int]:
        """The type of a fragment of several banks."""
        return frozenset({self.error_type})

    def sample_of(self, banks: Sequence[RawBank]) -> None:
        """None: all simulated events count alike."""

    def later_sources(self, sources: Collection[int]) -> Mapping[int, int]:  # noqa: ARG002
        """None: a source without data sends an empty bank."""
        return {}

    def encoding_of(self, bank_types: Collection[int]) -> str:  # noqa: ARG002
        """The only encoding."""
        return AUTO

    def reads(self, bank_type: int, encoding: str) -> bool:  # noqa: ARG002
        """True for data, for what stands in their place, and for ODIN."""
        return bank_type in (BankType.ODIN, self.error_type) or bank_type in self.data_types

    def source_of(self, bank: RawBank) -> int | None:
        """The source of a bank of the detector, that of ODIN for ODIN; None for truth and for other banks."""
        if bank.type in self.types_not_read_out or bank.type in self.truth_types:
            return None
        if bank.type == BankType.ODIN:
            return ODIN_SOURCE
        return bank.source_id if self.is_source(bank.source_id) else None


def bank_type_name(readout: Readout, bank_type: int) -> str:
    """The name of a bank type, "type 200" without one."""
    if bank_type in _RESERVED_NAMES:
        return _RESERVED_NAMES[bank_type]
    return readout.bank_types.get(bank_type, f"type {bank_type}")


def subdetector_name(readout: Readout, subdetector: int) -> str:
    """The name of a sub-detector, "detector 24" without one."""
    return readout.subdetectors.get(subdetector, f"detector {subdetector}")


def check_encoding(readout: Readout, encoding: str) -> str:
    """Check the name of an encoding. Raises ValueError, which lists the encodings."""
    if encoding not in readout.encodings:
        raise ValueError(f"unknown encoding {encoding!r}: expected {', '.join(readout.encodings)}")
    return encoding
