"""Records of the journal in bytes: each is readable alone, even if others are damaged."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from hltnode.daemon.storage.journal_format import Record, encode_record, scan_records

RECORDS: list[Record] = [
    {"session": "node_s1", "boot": "b"},
    *({"run": 7, "batch": [[mep, mep + 3]], "pieces": []} for mep in range(0, 40, 4)),
    {"over": 7},
]
ENCODED = [encode_record(record) for record in RECORDS]
RAW = b"".join(ENCODED)


def test_encoded_records_are_decoded_unchanged() -> None:
    scan = scan_records(RAW)
    assert (scan.records, scan.damage) == (RECORDS, [])


def test_an_empty_journal_has_no_records_and_no_damage() -> None:
    assert scan_records(b"") == scan_records(b"")
    assert (scan_records(b"").records, scan_records(b"").damage) == ([], [])


def test_a_journal_cut_at_any_byte_gives_all_whole_records() -> None:
    for cut in range(len(RAW)):
        whole, begin = 0, 0
        for encoded in ENCODED:
            # The checksum does not cover the newline.
            if begin + len(encoded) - 1 > cut:
                break
            begin += len(encoded)
            whole += 1
        scan = scan_records(RAW[:cut])
        assert scan.records == RECORDS[:whole], cut
        assert bool(scan.damage) is (begin < cut), cut


def test_a_flipped_bit_costs_only_its_record_and_is_reported() -> None:
    for at in range(len(RAW)):
        for bit in range(8):
            damaged = bytearray(RAW)
            damaged[at] ^= 1 << bit
            scan = scan_records(bytes(damaged))
            lost = [record for record in RECORDS if record not in scan.records]
            assert len(lost) <= 1, (at, bit)
            assert len(scan.damage) == 1, (at, bit)
            begin, end = scan.damage[0]
            assert begin <= at < end, (at, bit)


@given(st.integers(0, len(RAW)), st.binary(max_size=200), st.integers(0, 300))
def test_foreign_bytes_in_the_middle_leave_the_records_around_them(at: int, junk: bytes, removed: int) -> None:
    scan = scan_records(RAW[:at] + junk + RAW[at + removed :])
    begin = 0
    for record, encoded in zip(RECORDS, ENCODED, strict=True):
        if begin + len(encoded) <= at or begin >= at + removed:
            assert record in scan.records
        begin += len(encoded)


@settings(max_examples=300)
@given(st.binary(max_size=2000))
def test_random_bytes_are_damage_and_nothing_else(raw: bytes) -> None:
    scan = scan_records(raw)
    assert scan.records == []
    assert scan.damage == ([(0, len(raw))] if raw else [])


def test_pages_of_zeros_cost_only_the_records_that_they_cover() -> None:
    rng = random.Random(3)
    for _ in range(300):
        at, size = rng.randrange(len(RAW)), rng.choice((16, 64, 128))
        scan = scan_records(RAW[:at] + bytes(size) + RAW[at + size :])
        begin = 0
        for record, encoded in zip(RECORDS, ENCODED, strict=True):
            if begin + len(encoded) <= at or begin >= at + size:
                assert record in scan.records
            begin += len(encoded)


def test_a_false_length_does_not_swallow_the_rest() -> None:
    damaged = RAW[:9] + b"00ffffff" + RAW[17:]
    assert scan_records(damaged).records == RECORDS[1:]
    assert scan_records(b"00000000 ffffffff {" + RAW).records == RECORDS
