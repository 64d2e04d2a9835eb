"""Error hierarchy of hltnode: errors in bytes received from outside."""

from __future__ import annotations

from enum import StrEnum


class RejectReason(StrEnum):
    """Reason why a fragment, packet, record or message was refused; the values are metric labels and wire values."""

    BAD_MAGIC = "bad_magic"
    BAD_VERSION = "bad_version"
    BAD_SIZE = "bad_size"
    BAD_CRC = "bad_crc"
    BAD_CHECKSUM = "bad_checksum"
    TRUNCATED = "truncated"
    OVERSIZED = "oversized"
    UNKNOWN_SOURCE = "unknown_source"
    FOREIGN_RUN = "foreign_run"
    DUPLICATE = "duplicate"
    LATE = "late"
    REVOKED = "revoked"
    NO_CREDIT = "no_credit"
    MALFORMED = "malformed"
    MISMATCH = "mismatch"
    RESERVED_TYPE = "reserved_type"
    BANK_TOO_LARGE = "bank_too_large"
    UNKNOWN_TOKEN = "unknown_token"
    FOREIGN_SOURCE = "foreign_source"


class ProtocolError(ValueError):
    """Received bytes, or values to be encoded, break a format.

    Every parser and writer of :mod:`hltnode.protocol` raises subclasses of this error, and nothing else, on bad
    content.  `reason` is the metric label of the refusal; the text gives the expected and the received value.
    """

    def __init__(self, reason: RejectReason, message: str) -> None:
        super().__init__(reason, message)
        self.reason = reason
        self.message = message

    def __str__(self) -> str:
        return self.message


class BankError(ProtocolError):
    """A raw bank, or the payload of one, is malformed."""


class OdinError(BankError):
    """An ODIN bank is malformed."""


class ReportError(BankError):
    """A decision report or routing-bits bank is malformed."""


class MdfError(ProtocolError):
    """An MDF record is malformed."""


class MfpError(ProtocolError):
    """A multi-fragment packet is malformed, or events cannot be encoded as one."""


class MepError(ProtocolError):
    """A multi-event packet (Run 3 or 2019) is malformed."""


class FrameError(ProtocolError):
    """A transport frame is malformed."""


class MessageError(ProtocolError):
    """A control or decision message is malformed."""


class MessageVersionError(MessageError):
    """A message has another version: `version`, or None if it announces none."""

    def __init__(self, message: str, version: int | None) -> None:
        super().__init__(RejectReason.BAD_VERSION, message)
        self.version = version
