"""Why an event was flagged. Flags that tell of an error keep the event in the error stream; INCOMPLETE,
GLOBAL_EVENT_CUT and CANDIDATES_LEFT_OUT alone do not."""

from enum import IntFlag


class EventFlag(IntFlag):
    """Bits of the per-event flag word, in both languages and on the wire."""

    BANK_ERROR = 1
    """A bank could not be decoded."""
    OVERFLOW = 2
    """A declared bound would have been exceeded."""
    INCOMPLETE = 4
    """The fragment of at least one readout source was missing."""
    ODIN_ERROR = 8
    """No ODIN bank, or one that could not be decoded. ODIN is no detector: it is the bank of the event's own numbers,
    one of the containers that every chain and the outputs share (protocol.raw_data.odin)."""
    BACKEND_ERROR = 16
    """The back end failed on the batch of this event; the event carries no decision of a line."""
    GLOBAL_EVENT_CUT = 32
    """The event has more clusters than the global event cut of the trigger configuration allows: nothing was
    reconstructed. Part of the selection, and no reason to keep an event."""
    NOT_PROCESSED = 64
    """The MEP of this event was not computed, because sessions of the node have ended while they computed it; the
    event carries no decision of a line."""
    TOO_MANY_CLUSTERS = 128
    """A detector announces more clusters than an event may have that is reconstructed: nothing was."""
    MISSING_DETECTOR = 256
    """The event has no bank of a detector that the sequence reconstructs."""
    CANDIDATES_LEFT_OUT = 512
    """Lines selected more candidates than the reports of an accepted event hold; its decisions are right. No reason to
    keep an event."""
