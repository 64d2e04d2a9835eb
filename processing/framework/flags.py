"""Flags of an event: the bits of its flag word. The framework defines some flags; a chain declares more.

An error flag sends the event to the error stream.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag, StrEnum, unique


class EventFlag(IntFlag):
    """Bits of the flag word with the same meaning in every chain, in both languages and on the wire."""

    BANK_ERROR = 1
    """A bank could not be decoded."""
    OVERFLOW = 2
    """A declared bound would have been exceeded."""
    INCOMPLETE = 4
    """The fragment of at least one readout source was missing."""
    ODIN_ERROR = 8
    """The ODIN bank is missing or could not be decoded."""
    # ODIN is not a detector: its bank has the numbers of the event, which every chain and the outputs use.
    BACKEND_ERROR = 16
    """The back end failed on the batch of this event; the event carries no decision of a line."""
    NOT_PROCESSED = 64
    """The MEP of this event was not computed, because sessions of the node ended while they computed it. The event
    carries no decision of a line."""
    CANDIDATES_LEFT_OUT = 512
    """Lines selected more candidates than the reports of an accepted event hold; its decisions are right. No reason to
    keep an event."""
    LIST_LEFT_OUT = 1024
    """An output list of the chain has no room for all elements of the event; counts and decisions are right. No reason
    to keep an event."""
    PREFILTERED = 2048
    """The event failed a prefilter of every line that needs its further reconstruction, which ended there. No reason to
    keep an event."""
    DROPPED = 4096
    """The time slice of this sub-slice was not computed: the buffers were full, and a rule drops slices then. It
    carries no decision of a line. No reason to keep it."""


FLAGS_OF_HOST = EventFlag.DROPPED
"""Flags that only the host sets: kernels do not know them, so one more compiles no kernel again."""
CHAIN_BITS = (5, 7, 8, *range(16, 32))
"""Bits that a chain may name. The others belong to the framework, 13 to 15 for flags to come."""
_NO_ERROR = EventFlag.INCOMPLETE | EventFlag.CANDIDATES_LEFT_OUT | EventFlag.LIST_LEFT_OUT | EventFlag.PREFILTERED
_NO_ERROR |= FLAGS_OF_HOST


@unique
class FlagKind(StrEnum):
    """Effect of a chain's flag on an event without other flags."""

    ERROR = "error"
    """The event goes to the error stream."""
    CUT = "cut"
    """The selection removed the event before the reconstruction. It is counted and no reason to keep the event; the
    luminosity summary says that it did not pass the global event cut."""
    NOTE = "note"
    """The event is counted; only the lines decide on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainFlag:
    """A flag of a chain.

    name: lower case, the label in metrics and the constant of the kernels. bit: one of CHAIN_BITS. text: its meaning,
    for pages.

    Raises ValueError for a bit or a name that is not the chain's.
    """

    name: str
    bit: int
    text: str
    kind: FlagKind = FlagKind.ERROR

    def __post_init__(self) -> None:
        if self.bit not in CHAIN_BITS:
            raise ValueError(f"flag {self.name}: bit {self.bit} is not for chains, which name 5, 7, 8 and 16 to 31")
        if not self.name.isidentifier() or self.name != self.name.lower() or self.name.upper() in EventFlag.__members__:
            raise ValueError(f"flag {self.name}: expected a name in lower case that the framework does not use")

    @property
    def mask(self) -> int:
        """The flag word with only this flag."""
        return 1 << self.bit


class FlagTable:
    """All flags of a chain: those of the framework and its own.

    masks: flag word of each flag by name, in bit order; errors: bits that send an event to the error stream, unknown
    bits included; cuts: bits of events that a cut removed.

    Raises ValueError if two flags share a bit or a name.
    """

    def __init__(self, of_chain: Sequence[ChainFlag] = ()) -> None:
        bits = [flag.bit for flag in of_chain]
        names = [flag.name for flag in of_chain]
        for what, values in (("bit", bits), ("name", names)):
            if len(set(values)) < len(values):
                raise ValueError(f"flags {', '.join(names)}: two flags have the same {what}")
        masks = {str(flag.name).lower(): int(flag) for flag in EventFlag} | {flag.name: flag.mask for flag in of_chain}
        self.masks = dict(sorted(masks.items(), key=lambda item: item[1]))
        self._named = {mask: name.upper() for name, mask in self.masks.items()}
        no_errors = sum(flag.mask for flag in of_chain if flag.kind is not FlagKind.ERROR)
        self.errors = 0xFFFF_FFFF & ~(int(_NO_ERROR) | no_errors)
        self.cuts = sum(flag.mask for flag in of_chain if flag.kind is FlagKind.CUT)

    def names(self, word: int) -> list[str]:
        """Names of the bits of a flag word in upper case, lowest first; "BIT_20" for a bit without a name."""
        bits = (bit for bit in range(word.bit_length()) if word >> bit & 1)
        return [self._named.get(1 << bit, f"BIT_{bit}") for bit in bits]
