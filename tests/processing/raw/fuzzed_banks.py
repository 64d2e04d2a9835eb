"""The banks of any board for the test that damages them; one of them holds number and time of the event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from hltnode.processing.framework.offline_runner import EncodedMep
from tests.processing.chains.damage import Damage
from tests.processing.chains.fuzzed_detector import FuzzedDetector, FuzzedSample, StuckValues
from tests.processing.raw.raw_events import mep_of, random_events, run_chain
from tests.processing.raw.raw_oracle import Settings, differences, expected_columns

SETTINGS = {
    "header": Settings(),
    "bank": Settings(
        number_type=200, number_offset=2, number_bytes=6, min_banks=10, time_type=200, time_offset=4, time_unit_ns=1000
    ),
}
NUMBERED = 77


@dataclass(frozen=True, slots=True)
class ListedEvent:
    """What the chain found in one event, and the name of the columns that differ from the oracle in its batch."""

    content: bytes
    wrong: tuple[str, ...]

    def same_as(self, other: ListedEvent) -> bool:
        """Whether both events are equal bit by bit."""
        return self.content == other.content


def listed(mep: EncodedMep, variant: str) -> list[ListedEvent]:
    """The events of a MEP through the kernels."""
    settings = SETTINGS[variant]
    found = run_chain([mep], settings.toml()).columns
    wrong = tuple(differences(found, expected_columns([mep], settings)))
    offset = found["sources.offset"]
    names = [name for name in found if name not in ("sources.offset", "sources.bank")]
    return [
        ListedEvent(
            found["sources.bank"][offset[i] : offset[i + 1]].tobytes()
            + b"".join(found[name].reshape(mep.n_events, -1)[i].tobytes() for name in names),
            wrong,
        )
        for i in range(mep.n_events)
    ]


@cache
def sample(variant: str) -> FuzzedSample:
    """Random banks with a bank of the number in each event."""
    rng = np.random.default_rng(8)
    events = [{**banks, NUMBERED: (200, rng.bytes(12))} for banks in random_events(9, 4, 20)]
    mep = mep_of(events, 11)
    return FuzzedSample(mep, lambda changed: listed(changed, variant), listed(mep, variant))


def check(events: Sequence[ListedEvent]) -> None:
    """Damaged banks are listed as the oracle lists them."""
    assert {event.wrong for event in events} == {()}


FUZZED_BANKS = FuzzedDetector(
    name="banks",
    variants=tuple(SETTINGS),
    sample=sample,
    subdetectors=frozenset(range(32)),
    check=check,
    damage=Damage(versions=(0, 1, 255), types=(0, 16, 191, 192, 239, 240, 241, 254)),
    stuck=StuckValues((0, 0xFF, 0x55), dtype="u1"),
    head=None,
    payloads=8,
    headers=10,
    payload_examples=15,
    header_examples=30,
)
