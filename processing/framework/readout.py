"""How the raw banks of an experiment are read out: from events to the MFPs that its readout sources send."""

from collections.abc import Collection, Sequence
from typing import Protocol

from hltnode.protocol.raw_data.raw_bank import RawBank

AUTO = "auto"
"""The encoding that the events suggest."""


class Readout(Protocol):
    """The rules of one experiment. Events may hold the same hits in several encodings, of which one is read."""

    @property
    def encodings(self) -> tuple[str, ...]:
        """The encodings that a user may ask for, AUTO included."""

    def encoding_of(self, bank_types: Collection[int]) -> str:
        """The encoding that is read from events with banks of these types if none is asked for."""

    def reads(self, bank_type: int, encoding: str) -> bool:
        """Whether banks of this type are read with an encoding."""

    def source_of(self, bank: RawBank) -> int | None:
        """The id of the source that reads a bank out, None if no readout board writes such a bank."""

    def mfps_of_events(
        self, events: Sequence[Sequence[RawBank]], first_event_id: int, encoding: str
    ) -> dict[int, bytes]:
        """The MFPs of a MEP by source id in ascending order; event i has the id first_event_id + i.

        Raises MfpError if a source has two banks in one event or two bank versions.
        """


def check_encoding(readout: Readout, encoding: str) -> str:
    """The encoding, if there is one of this name. Raises ValueError, which names those that there are."""
    if encoding not in readout.encodings:
        raise ValueError(f"no encoding named {encoding!r}: expected {', '.join(readout.encodings)}")
    return encoding
