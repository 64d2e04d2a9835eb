"""Ranges of a sample contain each event once and in order, for any limits of files, MEPs and ranges."""

import gzip
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hltnode.processing.framework.event_files import DamageLog, EventFileError, read_all_events
from hltnode.processing.framework.event_ranges import event_ranges
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.mep import encode_mep
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks
from tests.daemon.fakes import synthetic_meps


def mdf(path: Path, n_events: int) -> Path:
    records = []
    for event in range(n_events):
        payload = memoryview(f"{path.name} {event}".encode())
        records.append(encode_record(encode_banks([RawBank(LhcbBankType.DAQ, 0, 0, payload)]), run=1))
    path.write_bytes(b"".join(records))
    return path


def packed(path: Path, n_events: int) -> Path:
    path.write_bytes(gzip.compress(mdf(path, n_events).read_bytes()))
    return path


def meps(path: Path, n_events: int) -> Path:
    """MEPs with at most five events."""
    sizes = [5] * (n_events // 5) + ([n_events % 5] if n_events % 5 else [])
    content = [next(iter(synthetic_meps(1, events=size))) for size in sizes]
    path.write_bytes(b"".join(encode_mep(list(mep.mfps.values())) for mep in content))
    return path


WRITERS: tuple[Callable[[Path, int], Path], ...] = (mdf, packed, meps)


def payloads(events: object) -> list[list[bytes]]:
    return [[bytes(bank.payload) for bank in banks] for banks in events]  # type: ignore[attr-defined]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    files=st.lists(st.tuples(st.sampled_from(WRITERS), st.integers(1, 17)), min_size=1, max_size=4),
    per_range=st.integers(1, 20),
)
def test_ranges_have_each_event_once_in_order_and_all_but_the_last_are_full(
    files: list[tuple[Callable[[Path, int], Path], int]], per_range: int, tmp_path: Path
) -> None:
    paths = [write(tmp_path / f"file{i}", n) for i, (write, n) in enumerate(files)]
    n_events = sum(n for _, n in files)
    ranges = list(event_ranges(paths, per_range))
    assert [found.first for found in ranges] == list(range(0, n_events, per_range))
    assert [found.n_events for found in ranges[:-1]] == [per_range] * (len(ranges) - 1)
    read = [event for found in ranges for table in found.read(DamageLog()) for event in payloads(table)]
    assert read == payloads(read_all_events(paths))
    assert len(read) == n_events


def test_a_file_that_changed_after_its_division_is_named(tmp_path: Path) -> None:
    (found,) = event_ranges([mdf(tmp_path / "a.mdf", 3)], 10)
    mdf(tmp_path / "a.mdf", 4)
    with pytest.raises(EventFileError, match=r"a\.mdf: the file has \d+ bytes, but had \d+ when it was divided"):
        list(found.read(DamageLog()))


@pytest.mark.parametrize("content", [None, b""])
def test_a_file_that_cannot_be_divided_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "bad.mdf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(EventFileError, match=r"bad\.mdf: "):
        list(event_ranges([path], 10))


def cut(content: bytes) -> bytes:
    return content[:-1]


def without_the_size_in_the_middle(content: bytes) -> bytes:
    at = len(content) // 2
    return content[:at] + bytes(64) + content[at + 64 :]


def with_a_wrong_bit_in_the_middle(content: bytes) -> bytes:
    at = len(content) // 2
    return content[:at] + bytes([content[at] ^ 0x81]) + content[at + 1 :]


def foreign(_content: bytes) -> bytes:
    return b"x" * 100


def short(_content: bytes) -> bytes:
    return b"x"


@pytest.mark.parametrize("per_range", [1, 2, 7, 100])
@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(
    "damage", [cut, without_the_size_in_the_middle, with_a_wrong_bit_in_the_middle, foreign, short]
)
def test_ranges_of_damaged_files_have_the_events_and_the_damage_of_the_files(
    tmp_path: Path, damage: Callable[[bytes], bytes], write: Callable[[Path, int], Path], per_range: int
) -> None:
    paths = [write(tmp_path / f"file{i}", n) for i, n in enumerate((17, 12, 3))]
    for path in paths[:2]:
        path.write_bytes(damage(path.read_bytes()))
    expected, found = DamageLog(), DamageLog()
    whole = payloads(read_all_events(paths, expected))
    tables = chain.from_iterable(each.read(found) for each in event_ranges(paths, per_range))
    read = [event for table in tables for event in payloads(table)]
    assert read == whole
    assert found == expected
    assert len(read) >= 3


def test_of_much_damage_the_first_faults_are_named_in_order(tmp_path: Path) -> None:
    path = mdf(tmp_path / "bad.mdf", 60)
    content = bytearray(path.read_bytes())
    at = 0
    while at < len(content):
        size = int.from_bytes(content[at : at + 4], "little")
        # The magic word of the only bank.
        content[at + 48] ^= 1
        at += 2 * size
    path.write_bytes(content)
    expected, found = DamageLog(), DamageLog()
    list(read_all_events([path], expected))
    for each in event_ranges([path], 7):
        list(each.read(found))
    assert expected.n > len(expected.first)
    assert found == expected
