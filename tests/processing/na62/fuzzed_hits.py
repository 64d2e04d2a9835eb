"""The banks of the RICH for the test that damages them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.na62.rich.pmt_positions import N_PMTS
from hltnode.protocol.na62.rich_banks import MAX_HITS, RICH_SUBDETECTOR
from tests.processing.chains.damage import Damage
from tests.processing.chains.fuzzed_detector import FuzzedDetector, FuzzedSample, StuckValues
from tests.processing.na62.rich_events import mep_of_payloads, mixed_payloads, run_chain

CONFIGURATIONS = {"several": "", "single": '[sequence]\nname = "single_ring"\n'}
DAMAGE = Damage(versions=(0, 1, 2, 255), types=(0, 1, 2, 16, 240, 254, 255))


@dataclass(frozen=True, slots=True)
class FoundRings:
    """Rings, hits and flags of an event."""

    content: bytes
    n_hits: int
    rings: np.ndarray

    def same_as(self, other: FoundRings) -> bool:
        """Whether both events are equal bit by bit."""
        return self.content == other.content


def found_rings(mep: EncodedMep, variant: str) -> list[FoundRings]:
    """The events of a MEP through the kernels."""
    found = run_chain(mep, CONFIGURATIONS[variant])
    events = zip(found.rings, found.hit_x, found.hit_y, found.words, found.numbers, strict=True)
    return [
        FoundRings(b"".join(each.tobytes() for each in (rings, x, y, word, number)), len(x), rings)
        for rings, x, y, word, number in events
    ]


@cache
def sample(variant: str) -> FuzzedSample:
    """Simulated events and odd ones."""
    mep = mep_of_payloads(mixed_payloads(9, 12), 11)
    return FuzzedSample(mep, lambda changed: found_rings(changed, variant), found_rings(mep, variant))


def check(events: Sequence[FoundRings]) -> None:
    """Rings of damaged banks are finite, and of no more hits than the event has."""
    assert N_PMTS < 1 << 16
    for event in events:
        assert event.n_hits <= MAX_HITS
        for name in ("x", "y", "radius", "chi2"):
            assert np.isfinite(event.rings[name]).all()
        assert (event.rings["hits"] <= event.n_hits).all()


FUZZED_HITS = FuzzedDetector(
    name="rich",
    variants=tuple(CONFIGURATIONS),
    sample=sample,
    subdetectors=frozenset({RICH_SUBDETECTOR}),
    check=check,
    damage=DAMAGE,
    stuck=StuckValues((0, 0xFF, 0x01), dtype="u1"),
    head=1,
    payloads=6,
    headers=3,
    payload_examples=10,
    header_examples=20,
)
