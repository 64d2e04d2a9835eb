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
from hltnode.daemon.storage.output_directory import OutputError
from hltnode.daemon.storage.recovery import StoreSettings, take_over
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.mdf import encode_record, iter_records
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_bank
from tests.daemon.storage.sessions import block_of, names

RUN = 42


def record(number: int, payload: int = 100, run: int = RUN) -> bytes:
    bank = encode_bank(RawBank(LhcbBankType.VP, 4, 1, memoryview(bytes(payload))))
    return encode_record(bank, run=run, orbit=number, checksum=False)


SIZE = len(record(0))


class Output:
    """A store whose events have the number of their MEP."""

    def __init__(
        self,
        directory: Path,
        *,
        max_file_bytes: int = 1 << 30,
        max_file_events: int = 1000,
        fsync: FsyncPolicy = FsyncPolicy.NEVER,
        counters: WriterCounters | None = None,
        policies: Mapping[EventStream, SlowConsumerPolicy] | None = None,
    ) -> None:
        settings = StoreSettings(
            max_file_bytes=max_file_bytes, max_file_events=max_file_events, fsync=fsync, policies=policies or {}
        )
        self.store = take_over(directory, "node", "s1", counters or WriterCounters(), settings, boot="")

    def append(self, number: int, payload: int = 100, *, run: int = RUN, error: bool = False) -> None:
        stream = EventStream.ERROR if error else EventStream.ACCEPTED
        self.store.append(stream, block_of(run, [(number, record(number, payload, run))]))

    def flush(self) -> None:
        self.store.commit(RUN, [])
        self.store.finish_files()

    def finish_files(self) -> None:
        self.flush()
        self.store.close()


def numbers(paths: Sequence[Path]) -> list[int]:
    return [read.header.orbit for path in paths for read in iter_records(path.read_bytes())]


class Disk:
    """Replaces os.write: writes `room` bytes of events, then fails with `error`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, room: int, error: int = errno.ENOSPC) -> None:
        self.room = room
        self._error = error
        self._write: Callable[[int, bytes | memoryview], int] = os.write
        monkeypatch.setattr(os, "write", self.write)

    def write(self, descriptor: int, data: memoryview) -> int:
        if ".journal" in os.readlink(f"/proc/self/fd/{descriptor}"):
            return self._write(descriptor, data)
        if self.room == 0:
            raise OSError(self._error, os.strerror(self._error))
        written = self._write(descriptor, data[: self.room])
        self.room -= written
        return written


def test_events_stay_in_a_part_file_until_the_run_ends(tmp_path: Path) -> None:
    writer = Output(tmp_path)
    writer.append(1)
    writer.flush()
    assert names(tmp_path) == ["node.journal", "node_s1_0000000042_accepted_00001.mdf.part"]
    writer.finish_files()
    assert names(tmp_path) == ["node.journal", "node_s1_0000000042_accepted_00001.mdf"]


def test_nothing_is_on_the_disk_before_the_flush_and_everything_after(tmp_path: Path) -> None:
    writer = Output(tmp_path)
    writer.append(1)
    assert list(tmp_path.glob("*.mdf*")) == []
    writer.flush()
    assert numbers(list(tmp_path.glob("*.mdf*"))) == [1]


def test_the_error_stream_has_its_own_file(tmp_path: Path) -> None:
    writer = Output(tmp_path)
    writer.append(1)
    writer.append(2, error=True)
    writer.finish_files()
    assert numbers(sorted(tmp_path.glob("*accepted*.mdf"))) == [1]
    assert numbers(sorted(tmp_path.glob("*error*.mdf"))) == [2]


def test_a_file_is_finished_before_it_grows_beyond_its_bytes(tmp_path: Path) -> None:
    writer = Output(tmp_path, max_file_bytes=3 * SIZE)
    for number in range(7):
        writer.append(number)
    writer.finish_files()
    files = sorted(tmp_path.glob("*.mdf"))
    assert [path.stat().st_size for path in files] == [3 * SIZE, 3 * SIZE, SIZE]
    assert numbers(files) == list(range(7))


def test_a_file_is_finished_after_its_number_of_events(tmp_path: Path) -> None:
    writer = Output(tmp_path, max_file_events=2)
    for number in range(5):
        writer.append(number)
    writer.finish_files()
    assert [len(numbers([path])) for path in sorted(tmp_path.glob("*.mdf"))] == [2, 2, 1]


def test_an_event_larger_than_a_file_gets_a_file_of_its_own(tmp_path: Path) -> None:
    writer = Output(tmp_path, max_file_bytes=SIZE)
    for number, payload in enumerate((10, 5000, 10)):
        writer.append(number, payload)
    writer.finish_files()
    assert [numbers([path]) for path in sorted(tmp_path.glob("*.mdf"))] == [[0], [1], [2]]


def test_a_new_run_starts_a_new_file_and_the_file_numbers_of_a_run_begin_at_1(tmp_path: Path) -> None:
    writer = Output(tmp_path)
    for number, run in enumerate((1, 2, 1)):
        writer.append(number, run=run)
    writer.finish_files()
    assert [path.name for path in sorted(tmp_path.glob("*.mdf"))] == [
        "node_s1_0000000001_accepted_00001.mdf",
        "node_s1_0000000001_accepted_00002.mdf",
        "node_s1_0000000002_accepted_00001.mdf",
    ]


def test_counters_have_events_bytes_files_and_pending_bytes(tmp_path: Path) -> None:
    counters = WriterCounters()
    writer = Output(tmp_path, counters=counters, max_file_events=2)
    for number in range(3):
        writer.append(number)
    assert counters.pending_bytes == 3 * SIZE
    writer.flush()
    accepted = counters.streams[EventStream.ACCEPTED]
    assert (accepted.events, accepted.bytes, accepted.files) == (3, 3 * SIZE, 1)
    assert counters.pending_bytes == 0
    writer.finish_files()
    assert accepted.files == 2


@pytest.mark.parametrize("policy", FsyncPolicy)
def test_data_and_journal_are_forced_according_to_the_fsync_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: FsyncPolicy
) -> None:
    forced: list[str] = []

    def fdatasync(descriptor: int) -> None:
        forced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).suffix)

    monkeypatch.setattr(os, "fdatasync", fdatasync)
    writer = Output(tmp_path, fsync=policy)
    writer.append(1)
    writer.flush()
    after_flush = forced.copy()
    writer.finish_files()
    expected = {
        FsyncPolicy.FLUSH: ([".part", ".journal"], [".journal"]),
        FsyncPolicy.FILE: ([], [".part", ".journal"]),
        FsyncPolicy.NEVER: ([], []),
    }
    at_once, at_the_end = expected[policy]
    assert after_flush == at_once
    assert forced[len(after_flush) : len(after_flush) + 2][: len(at_the_end)] == at_the_end


def test_a_full_disk_is_an_error_with_a_kind_a_path_and_a_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters = WriterCounters()
    writer = Output(tmp_path, counters=counters)
    Disk(monkeypatch, room=0)
    writer.append(1)
    with pytest.raises(OutputError, match="No space left on device") as caught:
        writer.flush()
    assert caught.value.kind is WriteErrorKind.DISK_FULL
    assert str(caught.value.filename).startswith(str(tmp_path))
    assert writer.store.problem is not None
    assert "No space left on device" in writer.store.problem
    assert counters.errors == {WriteErrorKind.DISK_FULL: 1, WriteErrorKind.IO: 0}


def test_other_errors_of_the_disk_are_of_another_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Output(tmp_path)
    Disk(monkeypatch, room=0, error=errno.EIO)
    writer.append(1)
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
        writer = Output(directory, max_file_events=per_file, counters=counters)
        for number in range(10):
            writer.append(number)
        for _ in range(12):
            try:
                writer.flush()
                break
            except OutputError:
                disk.room = SIZE + 7
        writer.append(10)
        disk.room = 1 << 20
        writer.finish_files()
    assert writer.store.problem is None
    assert counters.pending_bytes == 0
    assert numbers(sorted(directory.glob("*.mdf"))) == list(range(11))


def test_a_stream_that_fails_does_not_delay_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Output(tmp_path)
    disk = Disk(monkeypatch, room=10)
    writer.append(1)
    with pytest.raises(OutputError):
        writer.flush()
    disk.room = SIZE

    def only_error_stream(descriptor: int, data: memoryview) -> int:
        if "error" not in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return int(disk.write(descriptor, data))

    monkeypatch.setattr(os, "write", only_error_stream)
    writer.append(2, error=True)
    with pytest.raises(OutputError):
        writer.flush()
    assert numbers(sorted(tmp_path.glob("*error*"))) == [2]


def failing_sync(monkeypatch: pytest.MonkeyPatch, *, error: int = errno.EIO) -> set[str]:
    """os.fdatasync fails for the files in the set that is returned."""
    refused: set[str] = set()

    def fdatasync(descriptor: int) -> None:
        if Path(os.readlink(f"/proc/self/fd/{descriptor}")).name in refused:
            raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "fdatasync", fdatasync)
    return refused


@pytest.mark.parametrize("fsync", [FsyncPolicy.FLUSH, FsyncPolicy.FILE])
def test_a_file_that_cannot_be_forced_is_copied_to_a_new_one_and_writing_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fsync: FsyncPolicy
) -> None:
    refused = failing_sync(monkeypatch)
    writer = Output(tmp_path, fsync=fsync, max_file_events=3)
    refused.add("node_s1_0000000042_accepted_00001.mdf.part")
    for number in range(5):
        writer.append(number)
        writer.flush()
    assert writer.store.problem is None
    writer.finish_files()
    assert sorted(numbers(list(tmp_path.glob("*.mdf")))) == list(range(5))
    assert not list(tmp_path.glob("*.part"))
    assert names(tmp_path / "quarantine") == ["node_s1_0000000042_accepted_00001_damaged.mdf"]


def test_the_copy_of_a_file_survives_a_kill_without_duplicates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = failing_sync(monkeypatch)
    writer = Output(tmp_path, fsync=FsyncPolicy.FLUSH)
    writer.append(1)
    writer.flush()
    refused.add("node_s1_0000000042_accepted_00001.mdf.part")
    writer.append(2)
    writer.flush()
    writer.store.abandon()
    Output(tmp_path, fsync=FsyncPolicy.FLUSH).store.abandon()
    assert numbers(list(tmp_path.glob("*.mdf"))) == [1, 2]


def test_a_file_that_was_not_forced_and_cannot_be_read_back_stops_its_stream_until_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = failing_sync(monkeypatch)
    counters = WriterCounters()
    writer = Output(tmp_path, fsync=FsyncPolicy.FLUSH, counters=counters)
    writer.append(1)
    writer.flush()
    [part] = tmp_path.glob("*.part")
    part.write_bytes(bytes(part.stat().st_size))
    refused.add(part.name)
    writer.append(2)
    for _ in range(3):
        with pytest.raises(OutputError, match="could not be forced"):
            writer.flush()
        refused.clear()
    assert "are lost" in str(writer.store.problem)
    assert counters.errors[WriteErrorKind.IO] == 3


def test_a_journal_that_cannot_be_forced_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = failing_sync(monkeypatch)
    writer = Output(tmp_path, fsync=FsyncPolicy.FLUSH)
    refused.add("node.journal")
    writer.append(1)
    before = (tmp_path / "node.journal").stat().st_ino
    with pytest.raises(OutputError, match="Input/output error"):
        writer.flush()
    refused.clear()
    assert "node.journal" in str(writer.store.problem)
    writer.flush()
    assert writer.store.problem is None
    assert (tmp_path / "node.journal").stat().st_ino != before
    writer.finish_files()
    assert numbers(list(tmp_path.glob("*.mdf"))) == [1]


def test_exhausted_descriptors_only_delay_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Output(tmp_path, max_file_events=2, fsync=FsyncPolicy.FLUSH)
    writer.append(0)
    writer.flush()

    def refuse(*_arguments: object, **_options: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        writer.append(1)
        writer.flush()
        writer.append(2)
        for _ in range(3):
            with pytest.raises(OutputError, match="Too many open files"):
                writer.flush()
        assert "Too many open files" in str(writer.store.problem)
    writer.flush()
    assert writer.store.problem is None
    writer.finish_files()
    assert numbers(sorted(tmp_path.glob("*.mdf"))) == [0, 1, 2]


def test_a_directory_that_is_moved_away_and_back_gets_all_files_and_is_a_problem_meanwhile(tmp_path: Path) -> None:
    directory, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    writer = Output(directory, max_file_events=2, fsync=FsyncPolicy.FILE)
    writer.append(0)
    writer.flush()
    directory.rename(elsewhere)
    for number in range(1, 6):
        writer.append(number)
        writer.flush()
    assert "No such file or directory" in str(writer.store.problem)
    directory.mkdir()
    writer.append(6)
    writer.flush()
    assert "no longer the directory" in str(writer.store.problem)
    directory.rmdir()
    elsewhere.rename(directory)
    writer.append(7)
    writer.flush()
    assert writer.store.problem is None
    writer.finish_files()
    assert numbers(sorted(directory.glob("*.mdf"))) == list(range(8))


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    writer = Output(tmp_path)
    (tmp_path / "node_s1_0000000042_accepted_00001.mdf.part").write_bytes(b"precious")
    writer.append(1)
    with pytest.raises(OutputError, match="File exists"):
        writer.flush()


def test_abandoning_returns_the_number_of_unwritten_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Disk(monkeypatch, room=10)
    writer = Output(tmp_path)
    writer.append(1)
    with pytest.raises(OutputError):
        writer.flush()
    assert writer.store.abandon() == SIZE - 10


def test_a_stream_that_may_drop_drops_what_cannot_be_written_and_continues_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters = WriterCounters()
    writer = Output(tmp_path, counters=counters, policies={EventStream.ACCEPTED: SlowConsumerPolicy.DROP_NEW})

    def refuse(_path: object, *_arguments: object, **_options: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, "open", refuse)
        for number in range(3):
            writer.append(number)
            writer.flush()
        assert "No space left" in str(writer.store.problem)
    writer.append(3)
    writer.flush()
    assert writer.store.problem is None
    writer.finish_files()
    assert numbers(list(tmp_path.glob("*.mdf"))) == [3]
    assert counters.streams[EventStream.ACCEPTED].dropped == 3
    assert counters.pending_bytes == 0
