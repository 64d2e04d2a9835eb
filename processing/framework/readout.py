"""Readout rules of an experiment: from raw banks to the MFPs of its readout sources."""

from collections.abc import Collection, Sequence
from typing import Protocol

from hltnode.protocol.raw_data.raw_bank import RawBank

AUTO = "auto"
"""Choose the encoding from the events."""


class Readout(Protocol):
    """The rules of one experiment. Events may hold the same hits in several encodings; one encoding is read."""

    @property
    def encodings(self) -> tuple[str, ...]:
        """The encodings that a user may choose, AUTO included."""

    def encoding_of(self, bank_types: Collection[int]) -> str:
        """The default encoding for events with banks of these types."""

    def reads(self, bank_type: int, encoding: str) -> bool:
        """True if an encoding includes banks of this type."""

    def source_of(self, bank: RawBank) -> int | None:
        """The source id of a bank, None if no readout board writes such a bank."""

    def mfps_of_events(
        self, events: Sequence[Sequence[RawBank]], first_event_id: int, encoding: str
    ) -> dict[int, bytes]:
        """The MFPs of a MEP by source id in ascending order; event i has the id first_event_id + i.

        Raises MfpError if a source has two banks in one event or two bank versions.
        """


def check_encoding(readout: Readout, encoding: str) -> str:
    """Check the name of an encoding. Raises ValueError, which lists the encodings."""
    if encoding not in readout.encodings:
        raise ValueError(f"unknown encoding {encoding!r}: expected {', '.join(readout.encodings)}")
    return encoding
