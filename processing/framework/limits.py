"""Limits of one batch."""

from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_EVENTS_PER_MEP = 65535
"""An MFP has a 16-bit number of fragments."""


def line_words(n_lines: int) -> int:
    """Number of 32-bit words with one bit per line."""
    return -(-n_lines // 32)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """Maximum content of one batch. These numbers determine all memory of a slot, which is allocated once."""

    events: int = 1024
    meps: int = 256
    input_bytes: int = 16 << 20
    rows: int = 65536
    """MFPs of the batch, over all MEPs."""
    events_per_mep: int = MAX_EVENTS_PER_MEP
    """Events of one MEP. A smaller number saves the memory of fragments that the input could hold."""
    lines: int = 64
    """Selection lines; an engine has exactly the number of its trigger configuration."""
    histogram_counts: int = 0
    """Counters of all histograms, also exactly those of the trigger configuration."""
    constants: Mapping[str, int] = field(default_factory=dict, hash=False)
    """Integer constants of the configured sequence, by `<algorithm>.<constant>`; some are bounds of collections."""

    @property
    def line_words(self) -> int:
        """Number of decision words per event: line i is bit i % 32 of word i // 32."""
        return line_words(self.lines)

    @property
    def fragments(self) -> int:
        """Bound of the fragments of a batch: an MFP has one for each event of its MEP, and needs a type byte and a size
        word for each."""
        return min(self.input_bytes // 3, self.rows * min(self.events, self.events_per_mep))
