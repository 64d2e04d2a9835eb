"""Ranges of a sample contain each event once and in order, for any limits of files, MEPs and ranges."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hltnode.processing.framework.event_files import EventFileError, read_all_events
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
    read = [event for found in ranges for event in payloads(found.read())]
    assert read == payloads(read_all_events(paths))
    assert len(read) == n_events


def test_a_file_that_changed_after_its_division_is_named(tmp_path: Path) -> None:
    (found,) = event_ranges([mdf(tmp_path / "a.mdf", 3)], 10)
    mdf(tmp_path / "a.mdf", 4)
    with pytest.raises(EventFileError, match=r"a\.mdf: the file has \d+ bytes, but had \d+ when it was divided"):
        list(found.read())


@pytest.mark.parametrize("content", [None, b"", b"x" * 100])
def test_a_file_that_cannot_be_divided_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "bad.mdf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(EventFileError, match=r"bad\.mdf: "):
        list(event_ranges([path], 10))


def test_a_cut_file_is_named_with_the_byte(tmp_path: Path) -> None:
    path = mdf(tmp_path / "cut.mdf", 3)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(EventFileError, match=r"cut\.mdf: MDF record at byte \d\d+"):
        list(event_ranges([path], 2))
