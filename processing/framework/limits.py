"""How much one batch may hold."""

from dataclasses import dataclass


def line_words(n_lines: int) -> int:
    """32-bit words that hold one bit for each line."""
    return -(-n_lines // 32)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """The most that one batch may hold. All memory of a slot is allocated once from these numbers."""

    events: int = 1024
    meps: int = 256
    input_bytes: int = 16 << 20
    rows: int = 65536
    """MFPs in the batch, all MEPs together."""
    lines: int = 64
    """Selection lines of the menu; an engine is made for exactly as many as its trigger configuration has."""
    histogram_counts: int = 0
    """Counters of all histograms, likewise."""

    @property
    def line_words(self) -> int:
        """Words of 32 decisions that each event has: line i is bit i % 32 of word i // 32."""
        return line_words(self.lines)

    @property
    def fragments(self) -> int:
        """An MFP spends a type byte and a size word on each fragment."""
        return self.input_bytes // 3
