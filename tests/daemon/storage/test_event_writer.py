"""Rotating files of events, on disks that work and on disks that fail."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hltnode.daemon.common.vocabulary import EventStream, FsyncPolicy, SlowConsumerPolicy, WriteErrorKind
from hltnode.daemon.monitoring.counters import WriterCounters
from hltnode.daemon.output.event_writer import EventWriter, OutputError, recover_parts
from hltnode.protocol.raw_data.mdf import encode_record, iter_records
from hltnode.protocol.raw_data.raw_bank import BankType, RawBank, encode_bank

RUN = 42


def record(number: int, payload: int = 100, run: int = RUN) -> bytes:
    bank = encode_bank(RawBank(BankType.VP, 4, 1, memoryview(bytes(payload))))
    return encode_record(bank, run=run, orbit=number, checksum=False)


SIZE = len(record(0))


def open_writer(
    directory: Path,
    *,
    max_file_bytes: int = 1 << 30,
    max_file_events: int = 1000,
    fsync: FsyncPolicy = FsyncPolicy.NEVER,
    counters: WriterCounters | None = None,
    policies: Mapping[EventStream, SlowConsumerPolicy] | None = None,
) -> EventWriter:
    return EventWriter(
        directory,
        "node_s1",
        counters or WriterCounters(),
        max_file_bytes=max_file_bytes,
        max_file_events=max_file_events,
        fsync=fsync,
        policies=policies,
    )


def numbers(paths: Sequence[Path]) -> list[int]:
    return [read.header.orbit for path in paths for read in iter_records(path.read_bytes())]


class Disk:
    """Replaces os.write: writes `room` bytes, then fails with `error`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, room: int, error: int = errno.ENOSPC) -> None:
        self.room = room
        self._error = error
        self._write: Callable[[int, bytes | memoryview], int] = os.write
        monkeypatch.setattr(os, "write", self.write)

    def write(self, descriptor: int, data: memoryview) -> int:
        if self.room == 0:
            raise OSError(self._error, os.strerror(self._error))
        written = self._write(descriptor, data[: self.room])
        self.room -= written
        return written


def test_events_stay_in_a_part_file_until_the_run_ends(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.append(EventStream.ACCEPTED, RUN, record(1))
    writer.flush()
    assert [path.name for path in tmp_path.iterdir()] == ["node_s1_0000000042_accepted_00001.mdf.part"]
    writer.finish_files()
    assert [path.name for path in tmp_path.iterdir()] == ["node_s1_0000000042_accepted_00001.mdf"]


def test_nothing_is_on_the_disk_before_the_flush_and_everything_after(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.append(EventStream.ACCEPTED, RUN, record(1))
    assert list(tmp_path.iterdir()) == []
    writer.flush()
    assert numbers(list(tmp_path.iterdir())) == [1]


def test_the_error_stream_has_its_own_file(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.append(EventStream.ACCEPTED, RUN, record(1))
    writer.append(EventStream.ERROR, RUN, record(2))
    writer.finish_files()
    assert numbers(sorted(tmp_path.glob("*accepted*.mdf"))) == [1]
    assert numbers(sorted(tmp_path.glob("*error*.mdf"))) == [2]


def test_a_file_is_finished_before_it_grows_beyond_its_bytes(tmp_path: Path) -> None:
    writer = open_writer(tmp_path, max_file_bytes=3 * SIZE)
    for number in range(7):
        writer.append(EventStream.ACCEPTED, RUN, record(number))
    writer.finish_files()
    files = sorted(tmp_path.glob("*.mdf"))
    assert [path.stat().st_size for path in files] == [3 * SIZE, 3 * SIZE, SIZE]
    assert numbers(files) == list(range(7))


def test_a_file_is_finished_after_its_number_of_events(tmp_path: Path) -> None:
    writer = open_writer(tmp_path, max_file_events=2)
    for number in range(5):
        writer.append(EventStream.ACCEPTED, RUN, record(number))
    writer.finish_files()
    assert [len(numbers([path])) for path in sorted(tmp_path.glob("*.mdf"))] == [2, 2, 1]


def test_an_event_larger_than_a_file_gets_a_file_of_its_own(tmp_path: Path) -> None:
    writer = open_writer(tmp_path, max_file_bytes=SIZE)
    for number, payload in enumerate((10, 5000, 10)):
        writer.append(EventStream.ACCEPTED, RUN, record(number, payload))
    writer.finish_files()
    assert [numbers([path]) for path in sorted(tmp_path.glob("*.mdf"))] == [[0], [1], [2]]


def test_a_new_run_starts_a_new_file(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.append(EventStream.ACCEPTED, 1, record(1, run=1))
    writer.append(EventStream.ACCEPTED, 2, record(2, run=2))
    writer.finish_files()
    assert [path.name for path in sorted(tmp_path.glob("*.mdf"))] == [
        "node_s1_0000000001_accepted_00001.mdf",
        "node_s1_0000000002_accepted_00002.mdf",
    ]


def test_counters_have_events_bytes_files_and_pending_bytes(tmp_path: Path) -> None:
    counters = WriterCounters()
    writer = open_writer(tmp_path, counters=counters, max_file_events=2)
    for number in range(3):
        writer.append(EventStream.ACCEPTED, RUN, record(number))
    assert counters.pending_bytes == 3 * SIZE
    writer.flush()
    accepted = counters.streams[EventStream.ACCEPTED]
    assert (accepted.events, accepted.bytes, accepted.files) == (3, 3 * SIZE, 1)
    assert counters.pending_bytes == 0
    writer.finish_files()
    assert accepted.files == 2


@pytest.mark.parametrize("policy", FsyncPolicy)
def test_the_disk_is_forced_by_the_fsync_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: FsyncPolicy
) -> None:
    forced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", forced.append)
    writer = open_writer(tmp_path, fsync=policy)
    writer.append(EventStream.ACCEPTED, RUN, record(1))
    writer.flush()
    after_flush = len(forced)
    writer.finish_files()
    expected = {FsyncPolicy.FLUSH: (1, 1), FsyncPolicy.FILE: (0, 1), FsyncPolicy.NEVER: (0, 0)}
    assert (after_flush, len(forced)) == expected[policy]


def test_a_full_disk_is_an_error_with_a_kind_a_path_and_a_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters = WriterCounters()
    writer = open_writer(tmp_path, counters=counters)
    Disk(monkeypatch, room=0)
    writer.append(EventStream.ACCEPTED, RUN, record(1))
    with pytest.raises(OutputError, match="No space left on device") as caught:
        writer.flush()
    assert caught.value.kind is WriteErrorKind.DISK_FULL
    assert str(caught.value.filename).startswith(str(tmp_path))
    assert writer.problem is not None
    assert "No space left on device" in writer.problem
    assert counters.errors == {WriteErrorKind.DISK_FULL: 1, WriteErrorKind.IO: 0}


def test_other_errors_of_the_disk_are_of_another_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = open_writer(tmp_path)
    Disk(monkeypatch, room=0, error=errno.EIO)
    writer.append(EventStream.ACCEPTED, RUN, record(1))
    with pytest.raises(OutputError) as caught:
        writer.flush()
    assert caught.value.kind is WriteErrorKind.IO


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(room=st.integers(0, 12 * SIZE), per_file=st.integers(1, 5))
def test_writing_continues_at_the_byte_where_the_disk_was_full(
    tmp_path_factory: pytest.TempPathFactory, room: int, per_file: int
) -> None:
    directory, counters = tmp_path_factory.mktemp("disk"), WriterCounters()
    with pytest.MonkeyPatch.context() as patch:
        disk = Disk(patch, room)
        writer = open_writer(directory, max_file_events=per_file, counters=counters)
        for number in range(10):
            writer.append(EventStream.ACCEPTED, RUN, record(number))
        for _ in range(12):
            try:
                writer.flush()
                break
            except OutputError:
                disk.room = SIZE + 7
        writer.append(EventStream.ACCEPTED, RUN, record(10))
        disk.room = 1 << 20
        writer.finish_files()
    assert writer.problem is None
    assert counters.pending_bytes == 0
    assert numbers(sorted(directory.glob("*.mdf"))) == list(range(11))


def test_a_stream_that_fails_does_not_delay_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = open_writer(tmp_path)
    disk = Disk(monkeypatch, room=10)
    writer.append(EventStream.ACCEPTED, RUN, record(1))
    with pytest.raises(OutputError):
        writer.flush()
    disk.room = SIZE

    def only_error_stream(descriptor: int, data: memoryview) -> int:
        if "error" not in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return int(disk.write(descriptor, data))

    monkeypatch.setattr(os, "write", only_error_stream)
    writer.append(EventStream.ERROR, RUN, record(2))
    with pytest.raises(OutputError):
        writer.flush()
    assert numbers(sorted(tmp_path.glob("*error*"))) == [2]


def test_after_a_failed_fsync_every_flush_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    writer = open_writer(tmp_path, fsync=FsyncPolicy.FLUSH)
    writer.append(EventStream.ACCEPTED, RUN, record(1))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", failing)
        with pytest.raises(OutputError):
            writer.flush()
    with pytest.raises(OutputError):
        writer.flush()
    assert writer.problem is not None


def test_a_directory_that_cannot_be_written_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="Not a directory"):
        open_writer(tmp_path / "file" / "output")


def test_a_missing_directory_is_created_with_its_parents(tmp_path: Path) -> None:
    open_writer(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "node_s1_0000000042_accepted_00001.mdf.part").write_bytes(b"precious")
    writer = open_writer(tmp_path)
    writer.append(EventStream.ACCEPTED, RUN, record(1))
    with pytest.raises(OutputError, match="File exists"):
        writer.flush()


@pytest.mark.parametrize("cut", [0, 1, 47, SIZE - 1])
def test_files_of_a_killed_process_are_finished_with_their_complete_records(tmp_path: Path, cut: int) -> None:
    writer = open_writer(tmp_path)
    for number in range(3):
        writer.append(EventStream.ACCEPTED, RUN, record(number))
    writer.flush()
    writer.abandon()
    (part,) = tmp_path.glob("*.mdf.part")
    with part.open("ab") as file:
        file.write(record(3)[:cut])
    (final,) = recover_parts(tmp_path, "node")
    assert numbers([final]) == [0, 1, 2]
    assert list(tmp_path.iterdir()) == [final]


def test_a_file_of_a_killed_process_without_a_complete_record_is_removed(tmp_path: Path) -> None:
    (tmp_path / "node_s0_1_accepted_00001.mdf.part").write_bytes(bytes(100))
    assert recover_parts(tmp_path, "node") == []
    assert list(tmp_path.iterdir()) == []


def test_the_file_of_a_running_writer_is_left_alone(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.append(EventStream.ACCEPTED, RUN, record(1))
    writer.flush()
    assert recover_parts(tmp_path, "node") == []
    writer.finish_files()
    assert numbers(sorted(tmp_path.glob("*.mdf"))) == [1]


def test_abandoning_returns_the_number_of_unwritten_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Disk(monkeypatch, room=10)
    writer = open_writer(tmp_path)
    writer.append(EventStream.ACCEPTED, RUN, record(1))
    with pytest.raises(OutputError):
        writer.flush()
    assert writer.abandon() == SIZE - 10


def test_a_stream_that_may_drop_drops_what_cannot_be_written_and_continues_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters = WriterCounters()
    writer = open_writer(tmp_path, counters=counters, policies={EventStream.ACCEPTED: SlowConsumerPolicy.DROP_NEW})

    def refuse(_path: object, *_arguments: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("hltnode.daemon.output.event_writer.os.open", refuse)
        for number in range(3):
            writer.append(EventStream.ACCEPTED, 1, bytes([number]) * 100)
            assert writer.flush() == {EventStream.ACCEPTED: 1}
        assert "No space left" in str(writer.problem)
    writer.append(EventStream.ACCEPTED, 1, bytes([3]) * 100)
    assert writer.flush() == {}
    writer.finish_files()
    [path] = tmp_path.glob("*.mdf")
    assert path.read_bytes() == bytes([3]) * 100
    assert counters.streams[EventStream.ACCEPTED].dropped == 3
    assert counters.pending_bytes == 0
