"""Banks of a mu -> eee experiment (docs/formats/mu3e-hits.md): pixel hits of a sub-slice, and simulated decays."""

from collections.abc import Iterable
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.errors import BankError, RejectReason
from hltnode.protocol.raw_data.raw_bank import MAX_PAYLOAD_SIZE, RawBank
from hltnode.protocol.raw_data.source_id import source_id, subdetector_of

MU3E_SUBDETECTOR = 1
HITS_VERSION = 1
MAX_SENSORS = 1 << 12
"""Numbers of sensors are below this; the built-in detector has 2,844 sensors."""
PIXELS = 250
"""Columns of a sensor, and rows of it."""

HIT = np.dtype([("sensor", "<u2"), ("column", "u1"), ("row", "u1"), ("time", "<u2"), ("over_threshold", "<u2")])
"""A hit: number of the sensor, column and row of the pixel, time in ns since the start of the sub-slice, time over
threshold in ns. The hits of a bank are in the order of time, then sensor, row and column."""
TIME_OFFSET = 4
"""Byte of the time in a hit."""
MAX_HITS_OF_BANK = MAX_PAYLOAD_SIZE // HIT.itemsize

NO_PARTICLE = 0xFFFF_FFFF
"""In place of the id of a particle: noise."""
TRUE_ID = np.dtype("<u4")
"""The id of the particle of each hit of a source, in the order of its hits."""


class DecayKind(IntEnum):
    """Kinds of simulated decays."""

    MICHEL = 0
    """mu+ -> e+ nu nu."""
    SIGNAL = 1
    """mu+ -> e+ e- e+."""
    CONVERSION = 2
    """mu+ -> e+ e- e+ nu nu, by internal conversion."""
    BHABHA = 3
    """mu+ -> e+ nu nu; the positron knocks an electron out of the target."""


TRUE_PARTICLE = np.dtype(
    [
        ("id", "<u4"),
        ("decay", "<u4"),
        ("charge", "<i2"),
        ("layers", "u1"),
        ("recurls", "u1"),
        ("hits", "<u4"),
        ("time", "<f4"),
        ("vertex", "<f4", 3),
        ("momentum", "<f4", 3),
    ]
)
"""A simulated electron or positron, in the bank of the sub-slice in which its muon decays: its id; the id
of its decay, which is that of its first particle; charge; bits of the central layers with a hit before it turns back;
number of its hits behind that; all its hits; time in ns since the start of the sub-slice; where it starts, in mm; its
momentum there, in MeV/c. Ids are unique in 4,194,304 sub-slices."""
TRUE_DECAY = np.dtype(
    [
        ("id", "<u4"),
        ("kind", "<u2"),
        ("particles", "<u2"),
        ("time", "<f4"),
        ("vertex", "<f4", 3),
    ]
)
"""A simulated decay: its id, its kind (DecayKind), number of its electrons and positrons, time in ns since the start of
the sub-slice, where the muon decays, in mm."""


class HitBankType(IntEnum):
    """Types that this chain names (docs/formats/bank-types.md)."""

    HITS = 1
    TRUE_IDS = 2
    """Written by the simulation alone, as are the next two."""
    TRUE_PARTICLES = 3
    TRUE_DECAYS = 4
    SEVERAL_BANKS = 240
    """Made when a file is read: the source has several banks in the sub-slice; the payload is that of the first one."""


def encode_hits(hits: NDArray[np.void]) -> bytes:
    """The payload of HIT[hits]. Raises BankError for more than 8,190 hits."""
    if len(hits) > MAX_HITS_OF_BANK:
        raise BankError(RejectReason.OVERSIZED, f"{len(hits)} hits, at most {MAX_HITS_OF_BANK} fit in a bank")
    return np.ascontiguousarray(hits, HIT).tobytes()


def decode_hits(payload: bytes | memoryview) -> NDArray[np.void]:
    """HIT[hits] of a payload. Raises BankError for a part of a hit."""
    return _records(payload, HIT, "hits")


def bank_order(hits: NDArray[np.void]) -> NDArray[np.int64]:
    """Indices of HIT[hits] in the order of a bank: by time, then sensor, row, column and time over threshold."""
    return np.lexsort((hits["over_threshold"], hits["column"], hits["row"], hits["sensor"], hits["time"]))


def hits_bank(number: int, hits: NDArray[np.void]) -> RawBank:
    """The bank of HIT[hits] of source `number`. Raises BankError as encode_hits."""
    return _bank(HitBankType.HITS, number, encode_hits(hits))


def true_ids_bank(number: int, ids: NDArray[np.uint32]) -> RawBank:
    """The bank of the particles of the hits of source `number`, u32[hits] in the order of its hits."""
    return _bank(HitBankType.TRUE_IDS, number, np.ascontiguousarray(ids, TRUE_ID).tobytes())


def true_particles_bank(particles: NDArray[np.void]) -> RawBank:
    """The bank of TRUE_PARTICLE[particles]."""
    return _bank(HitBankType.TRUE_PARTICLES, 0, np.ascontiguousarray(particles, TRUE_PARTICLE).tobytes())


def true_decays_bank(decays: NDArray[np.void]) -> RawBank:
    """The bank of TRUE_DECAY[decays]."""
    return _bank(HitBankType.TRUE_DECAYS, 0, np.ascontiguousarray(decays, TRUE_DECAY).tobytes())


def hits_of(banks: Iterable[RawBank]) -> NDArray[np.void]:
    """HIT[hits] of all sources of a sub-slice, by source. Raises BankError for a broken bank."""
    found = [decode_hits(bank.payload) for bank in _by_source(banks, HitBankType.HITS)]
    return np.concatenate([np.empty(0, HIT), *found])


def true_ids_of(banks: Iterable[RawBank]) -> NDArray[np.uint32]:
    """u32[hits], the id of the particle of each hit of hits_of. Raises BankError for a broken bank."""
    found = [_records(bank.payload, TRUE_ID, "ids of particles") for bank in _by_source(banks, HitBankType.TRUE_IDS)]
    return np.concatenate([np.empty(0, TRUE_ID), *found])


def true_particles_of(banks: Iterable[RawBank]) -> NDArray[np.void] | None:
    """TRUE_PARTICLE[particles] of a simulated sub-slice; None without a bank of them. Raises BankError."""
    return _truth(banks, HitBankType.TRUE_PARTICLES, TRUE_PARTICLE, "simulated particles")


def true_decays_of(banks: Iterable[RawBank]) -> NDArray[np.void] | None:
    """TRUE_DECAY[decays] of a simulated sub-slice; None without a bank of them. Raises BankError for a broken one."""
    return _truth(banks, HitBankType.TRUE_DECAYS, TRUE_DECAY, "simulated decays")


def _bank(kind: HitBankType, number: int, payload: bytes) -> RawBank:
    return RawBank(kind, HITS_VERSION, source_id(MU3E_SUBDETECTOR, number), memoryview(payload))


def _records(payload: bytes | memoryview, dtype: np.dtype[Any], name: str) -> NDArray[Any]:
    if len(payload) % dtype.itemsize:
        raise BankError(
            RejectReason.BAD_SIZE, f"a bank of {len(payload)} bytes; {name} of {dtype.itemsize} bytes expected"
        )
    return np.frombuffer(payload, dtype)


def _by_source(banks: Iterable[RawBank], kind: HitBankType) -> list[RawBank]:
    found = [bank for bank in banks if bank.type == kind and subdetector_of(bank.source_id) == MU3E_SUBDETECTOR]
    return sorted(found, key=lambda bank: bank.source_id)


def _truth(banks: Iterable[RawBank], kind: HitBankType, dtype: np.dtype[np.void], name: str) -> NDArray[np.void] | None:
    found = _by_source(banks, kind)
    return _records(found[0].payload, dtype, name) if found else None
