"""Declaration of a detector for test_fuzz.py, which damages its banks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.protocol.raw_data.source_id import subdetector_of
from tests.processing.chains.damage import Damage


class FoundEvent(Protocol):
    """Output of a detector's algorithms for one event."""

    def same_as(self, other: Any) -> bool:
        """Whether both events are equal bit by bit."""


@dataclass(frozen=True, slots=True)
class FuzzedSample:
    """A MEP of one variant of the banks, and the detector's algorithms, which also run on changed bytes."""

    mep: EncodedMep
    run: Callable[[EncodedMep], Any]
    """Returns a sequence of FoundEvents."""
    expected: Any
    """Output for the undamaged MEP."""


@dataclass(frozen=True, slots=True)
class StuckValues:
    """Words that replace every word of every bank, except the first `keep(variant)` bytes of the bank."""

    values: tuple[int, ...]
    dtype: str
    keep: Callable[[Any], int] = lambda _: 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzedDetector:
    """The banks of a detector and how they are damaged.

    variants: bank versions or encodings, one sample each. subdetectors: top five bits of its source ids. check: asserts
    that events are valid. head: bytes at the start of a bank; half of the damaged banks are damaged only there; None:
    a bank has no head. payloads, headers: maximum numbers of damaged fragments and MFPs in a batch. payload_examples,
    header_examples: number of batches.
    """

    name: str
    variants: tuple[Any, ...]
    sample: Callable[[Any], FuzzedSample]
    subdetectors: frozenset[int]
    check: Callable[[Any], None]
    damage: Damage
    stuck: StuckValues
    head: int | None
    payloads: int
    headers: int
    payload_examples: int
    header_examples: int

    def mfps(self, mep: EncodedMep) -> list[tuple[int, int]]:
        """(byte offset, bytes) of the MFPs of the detector."""
        return [(offset, size) for source, offset, size in mep.fragments if subdetector_of(source) in self.subdetectors]
