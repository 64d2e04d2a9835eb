"""Banks of pixel hits: the bytes on the wire, their truth, and what a reader refuses."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest

from hltnode.protocol.errors import BankError
from hltnode.protocol.mu3e.hit_banks import (
    HIT,
    MAX_HITS_OF_BANK,
    NO_PARTICLE,
    TIME_OFFSET,
    TRUE_DECAY,
    TRUE_PARTICLE,
    DecayKind,
    HitBankType,
    bank_order,
    decode_hits,
    encode_hits,
    hits_bank,
    hits_of,
    true_decays_bank,
    true_decays_of,
    true_ids_bank,
    true_ids_of,
    true_particles_bank,
    true_particles_of,
)
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import source_id

HITS = np.array([(7, 3, 2, 300, 500), (7, 2, 2, 20, 400), (5, 249, 0, 20, 1), (7, 1, 9, 20, 2)], HIT)
PARTICLES = np.array([(1024, 1024, -1, 15, 4, 9, 3.5, (1, 2, 3), (10, 20, 30))], TRUE_PARTICLE)
DECAYS = np.array([(1024, DecayKind.SIGNAL, 3, 3.5, (1, 2, 3))], TRUE_DECAY)


def test_a_hit_is_eight_bytes_of_sensor_pixel_time_and_time_over_threshold() -> None:
    assert encode_hits(HITS[:1]) == bytes.fromhex("0700 03 02 2c01 f401")
    assert HIT.fields is not None
    assert (HIT.itemsize, HIT.fields["time"][1]) == (8, TIME_OFFSET)
    assert (TRUE_PARTICLE.itemsize, TRUE_DECAY.itemsize) == (44, 24)


def test_banks_are_in_the_order_of_time_sensor_row_and_column() -> None:
    ordered = HITS[bank_order(HITS)]
    assert ordered["time"].tolist() == [20, 20, 20, 300]
    assert ordered["sensor"].tolist() == [5, 7, 7, 7]
    assert ordered["row"].tolist() == [0, 2, 9, 2]


def test_hits_and_their_particles_are_read_by_source_in_any_order_of_banks() -> None:
    ids = np.array([9, NO_PARTICLE, 9], np.uint32)
    banks = [
        true_ids_bank(11, ids[1:]),
        hits_bank(11, HITS[1:3]),
        true_ids_bank(2, ids[:1]),
        hits_bank(2, HITS[:1]),
    ]
    np.testing.assert_array_equal(hits_of(banks), HITS[:3])
    np.testing.assert_array_equal(true_ids_of(banks), ids)
    assert (banks[1].type, banks[1].version, banks[1].source_id) == (HitBankType.HITS, 1, (1 << 11) + 11)
    assert len(hits_of([])) == len(true_ids_of([])) == 0


def test_banks_of_another_sub_detector_are_not_read() -> None:
    foreign = hits_bank(0, HITS)._replace(source_id=source_id(2, 0))
    assert len(hits_of([foreign])) == 0
    assert true_decays_of([true_decays_bank(DECAYS)._replace(source_id=source_id(2, 0))]) is None


def test_truth_is_read_where_a_sub_slice_has_it() -> None:
    banks = [hits_bank(1, HITS), true_particles_bank(PARTICLES), true_decays_bank(DECAYS)]
    np.testing.assert_array_equal(true_particles_of(banks), PARTICLES)
    np.testing.assert_array_equal(true_decays_of(banks), DECAYS)
    assert true_particles_of(banks[:1]) is None
    assert true_decays_of(banks[:1]) is None


@pytest.mark.parametrize(
    ("kind", "size", "message"),
    [
        (HitBankType.HITS, 8, "hits of 8 bytes"),
        (HitBankType.TRUE_IDS, 4, "ids of particles of 4"),
        (HitBankType.TRUE_PARTICLES, 44, "simulated particles of 44"),
        (HitBankType.TRUE_DECAYS, 24, "simulated decays of 24"),
    ],
)
def test_a_part_of_a_record_is_refused(kind: HitBankType, size: int, message: str) -> None:
    readers = {
        HitBankType.HITS: hits_of,
        HitBankType.TRUE_IDS: true_ids_of,
        HitBankType.TRUE_PARTICLES: true_particles_of,
        HitBankType.TRUE_DECAYS: true_decays_of,
    }
    for length in range(3 * size + 1):
        bank = RawBank(kind, 1, source_id(1, 0), memoryview(bytes(length)))
        if length % size == 0:
            found = readers[kind]([bank])
            assert found is not None
            assert len(found) == length // size
        else:
            with pytest.raises(BankError, match=f"a bank of {length} bytes; {message}"):
                readers[kind]([bank])


def test_a_bank_has_room_for_8190_hits() -> None:
    assert len(encode_hits(np.zeros(MAX_HITS_OF_BANK, HIT))) == 8 * MAX_HITS_OF_BANK
    with pytest.raises(BankError, match=f"{MAX_HITS_OF_BANK + 1} hits"):
        encode_hits(np.zeros(MAX_HITS_OF_BANK + 1, HIT))


def test_random_bytes_are_read_as_struct_reads_them_or_are_refused() -> None:
    rng = random.Random(4)
    for _ in range(300):
        payload = rng.randbytes(rng.randrange(64))
        if len(payload) % 8:
            with pytest.raises(BankError):
                decode_hits(payload)
            continue
        assert decode_hits(payload).tolist() == list(struct.iter_unpack("<HBBHH", payload))
        assert encode_hits(decode_hits(payload)) == payload
