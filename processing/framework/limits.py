"""How much one batch may hold."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """The most that one batch may hold. All memory of a slot is allocated once from these numbers."""

    events: int = 1024
    meps: int = 256
    input_bytes: int = 16 << 20
    rows: int = 65536
    """MFPs in the batch, all MEPs together."""

    @property
    def fragments(self) -> int:
        """An MFP spends a type byte and a size word on each fragment."""
        return self.input_bytes // 3
