"""Blocks of events from files: across files, with compressed records, with damage."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.processing.framework import event_blocks as event_blocks_module
from hltnode.processing.framework.event_blocks import TooLargeError, event_blocks, read_event_blocks, read_whole
from hltnode.processing.framework.event_blocks import blocks_of as blocks_in_memory
from hltnode.processing.framework.event_files import EventFileError
from hltnode.protocol.packing import EventBlock
from hltnode.protocol.raw_data.mdf import encode_record, iter_records
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks


def event(number: int) -> list[RawBank]:
    return [RawBank(51, 1, source, memoryview(bytes([number]) * (4 * source))) for source in range(3)]


def record(number: int, *, compression: int = 0, checksum: bool = True) -> bytes:
    return encode_record(encode_banks(event(number)), run=1, compression=compression, checksum=checksum)


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def numbers(block: EventBlock) -> list[int]:
    return [block.banks(i)[1].payload[0] for i in range(len(block))]


def blocks_of(paths: list[Path], n: int, *, verify: bool = True) -> list[list[int]]:
    return [numbers(block) for block in read_event_blocks(paths, n, verify_checksum=verify)]


def test_blocks_reach_across_files_whatever_their_records_are(tmp_path: Path) -> None:
    one = write(tmp_path / "one.mdf", b"".join(record(i) for i in range(3)))
    two = write(tmp_path / "two.mdf", b"".join(record(i, compression=i % 2 * 4) for i in range(3, 8)))
    assert blocks_of([one, two, one], 4) == [[0, 1, 2, 3], [4, 5, 6, 7], [0, 1, 2]]


def test_events_made_on_the_spot_come_in_blocks_too() -> None:
    assert [numbers(block) for block in event_blocks((event(i) for i in range(5)), 2)] == [[0, 1], [2, 3], [4]]


def test_a_large_file_is_read_piece_by_piece(tmp_path: Path) -> None:
    banks = [RawBank(51, 1, 1, memoryview(bytes(60_000)))]
    content = encode_record(encode_banks(banks), run=1, checksum=False)
    path = write(tmp_path / "large.mdf", content * 400)
    assert sum(len(block) for block in read_event_blocks([path], 70, verify_checksum=False)) == 400


def test_a_block_ends_with_the_event_that_reaches_its_bytes(tmp_path: Path) -> None:
    path = write(tmp_path / "packed.mdf", b"".join(record(i, compression=9) for i in range(5)))
    read = read_event_blocks([path], 4, verify_checksum=True, max_bytes=len(record(0)) + 1)
    assert [numbers(block) for block in read] == [[0, 1], [2, 3], [4]]


def test_events_in_memory_are_bounded_by_their_unpacked_bytes(tmp_path: Path) -> None:
    path = write(tmp_path / "packed.mdf.gz", gzip.compress(b"".join(record(i, compression=9) for i in range(5))))
    unpacked = 5 * len(record(0))
    whole = read_whole([path], verify_checksum=True, max_bytes=unpacked + 1)
    assert whole is not None
    assert numbers(whole) == [0, 1, 2, 3, 4]
    with pytest.raises(TooLargeError, match=f"unpack to {unpacked} bytes or more"):
        read_whole([path], verify_checksum=True, max_bytes=unpacked)


def test_blocks_of_events_in_memory_have_bounded_bytes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "five.mdf", b"".join(record(i) for i in range(5)))
    whole = read_whole([path], verify_checksum=True, max_bytes=1 << 20)
    assert whole is not None
    monkeypatch.setattr(event_blocks_module, "MAX_BLOCK_BYTES", 2 * int(whole.ends[0] - whole.begins[0]))
    assert [numbers(b) for b in blocks_in_memory(whole, range(2), 3)] == [[0, 1], [2, 3], [4, 0], [1, 2], [3, 4]]


def test_a_damaged_record_is_named_with_its_place_in_its_file(tmp_path: Path) -> None:
    good = write(tmp_path / "good.mdf", record(0))
    damaged = bytearray(record(1) + record(2))
    damaged[-1] ^= 1
    bad = write(tmp_path / "bad.mdf", bytes(damaged))
    with pytest.raises(EventFileError, match=rf"bad\.mdf: MDF record at byte {len(record(1))}: checksum"):
        blocks_of([good, bad], 10)
    assert blocks_of([good, bad], 10, verify=False) == [[0, 1, 2]]


def test_a_file_that_is_cut_off_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "short.mdf", (record(0) + record(1))[:-5])
    with pytest.raises(EventFileError, match=r"short\.mdf: MDF record at byte \d+: \d+ bytes announced"):
        blocks_of([path], 10)


@given(st.data())
def test_damaged_files_are_read_or_refused_as_records_are(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(b"".join(record(i, compression=data.draw(st.sampled_from((0, 1)))) for i in range(4)))
    for _ in range(data.draw(st.integers(0, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(0, len(content))) :]
    path = write(tmp_path_factory.mktemp("damaged") / "x.mdf", bytes(content))
    try:
        expected = [bytes(found.body) for found in iter_records(bytes(content))]
    except ValueError:
        expected = None
    try:
        found = [
            bytes(block.data[int(begin) : int(end)])
            for block in read_event_blocks([path], 3, verify_checksum=True)
            for begin, end in zip(block.begins, block.ends, strict=True)
        ]
    except EventFileError:
        assert not expected
    else:
        assert found == expected
