"""Readout rules of an experiment: from raw banks to the MFPs of its readout sources."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hltnode.protocol.raw_data.bank_types import LIST_TYPES, TIME_WINDOW, BankType
from hltnode.protocol.raw_data.raw_bank import RawBank

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
