"""Runs luminosity_decode_plume on banks, and makes banks of PLUME."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.algorithms.fragment_offsets import fragment_offsets
from hltnode.processing.framework.batch import (
    BATCH_HEADER,
    EVENT_ROW,
    MFP_ROW,
    N_SUBDETECTORS,
    ROW_RANGE,
    BatchTables,
    MepInBatch,
)
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.luminosity.decode_plume import decode_plume
from hltnode.protocol.lhcb.banks.plume import encode_plume
from hltnode.protocol.lhcb.subdetectors import SubDetector
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.chains.damage import Damage
from tests.processing.chains.fuzzed_detector import FuzzedDetector, FuzzedSample, StuckValues
from tests.processing.framework.kernel_runner import Launch, run_algorithms

NO_FLAG = EventFlag(0)


@dataclass(frozen=True, slots=True, eq=False)
class PlumeEvent:
    """Output for one event."""

    flags: int
    is_read: int
    adc: NDArray[np.uint16]
    over: NDArray[np.bool_]

    def same_as(self, other: PlumeEvent) -> bool:
        """Whether both events are equal."""
        return (
            (self.flags, self.is_read) == (other.flags, other.is_read)
            and self.adc.tobytes() == other.adc.tobytes()
            and self.over.tobytes() == other.over.tobytes()
        )


def encoded(events: Sequence[Sequence[RawBank]]) -> EncodedMep:
    return encode_mep(CHAIN.with_sequence("hlt1_2026"), events)


def plume_events(
    events: Sequence[Sequence[RawBank]], launch: Launch | None = None, *, flags: EventFlag = NO_FLAG, required: int = 0
) -> list[PlumeEvent]:
    """What luminosity_decode_plume makes of the banks of events."""
    return of_mep(encoded(events), launch, flags=flags, required=required)


def of_mep(
    mep: EncodedMep, launch: Launch | None = None, *, flags: EventFlag = NO_FLAG, required: int = 0
) -> list[PlumeEvent]:
    n = mep.n_events
    tables = BatchTables(
        header=np.zeros(1, BATCH_HEADER.dtype),
        mfp_rows=np.zeros(len(mep.fragments), MFP_ROW.dtype),
        mep_rows=np.zeros((1, N_SUBDETECTORS), ROW_RANGE.dtype),
        event_rows=np.zeros(n, EVENT_ROW.dtype),
        event_flags=np.zeros(n, np.uint32),
    )
    tables.fill([MepInBatch(n, mep.fragments, flags)], mep.data)
    given: dict[str, NDArray[Any]] = {
        "input.bytes": mep.data,
        "input.mfp_rows": tables.mfp_rows,
        "input.mep_rows": tables.mep_rows,
        "input.event_rows": tables.event_rows,
        "events.flags": tables.event_flags,
    }
    limits = BatchLimits(events=n, meps=1, input_bytes=-(-mep.data.nbytes // 8) * 8, rows=max(len(mep.fragments), 1))
    algorithm = decode_plume.with_constants({"required": required})
    made = run_algorithms((fragment_offsets, algorithm), given, n, limits, launch, fill=0xAA)
    masks = made["events.plume_over_threshold"].reshape(-1, 2)
    return [
        PlumeEvent(
            int(made["events.flags"][i]),
            int(made["events.plume_read"][i]),
            made["events.plume_adc"].reshape(-1, 64)[i],
            np.unpackbits(masks[i].view(np.uint8), bitorder="little").astype(np.bool_),
        )
        for i in range(n)
    ]


def bank(seed: int) -> tuple[NDArray[np.bool_], NDArray[np.int64], RawBank]:
    rng = np.random.default_rng(seed)
    over, adc = rng.random(64) < 0.5, rng.integers(0, 4096, 64)
    return over, adc, encode_plume(over, adc)


def with_plume(events: Sequence[Sequence[RawBank]], seed: int) -> list[list[RawBank]]:
    """Events with a random bank of PLUME."""
    return [[*banks, bank(seed + i)[2]] for i, banks in enumerate(events)]


@cache
def sample(_version: int) -> FuzzedSample:
    """Three events."""
    mep = encoded([[bank(seed)[2]] for seed in range(3)])
    return FuzzedSample(mep, of_mep, of_mep(mep))


def check(events: Sequence[PlumeEvent]) -> None:
    """Channels have values in a valid bank alone."""
    for event in events:
        assert event.is_read in (0, 1)
        assert event.adc.max() < 4096
        if event.is_read == 0:
            assert not event.adc.any()
            assert not event.over.any()


FUZZED_PLUME = FuzzedDetector(
    name="plume",
    variants=(1,),
    sample=sample,
    subdetectors=frozenset({SubDetector.PLUME}),
    check=check,
    damage=Damage(versions=(0, 1, 2, 255), types=(84, 21, 16, 89, 254, 255)),
    stuck=StuckValues((0, 1, 0x55, 0x7F, 0x80, 0xAA, 0xFE, 0xFF), dtype="u1"),
    head=4,
    payloads=4,
    headers=8,
    payload_examples=10,
    header_examples=20,
)
