"""Sessions of a node without the node: events numbered by their MEP, in files of a real store."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from hltnode.daemon.common.vocabulary import EventStream, FsyncPolicy, SlowConsumerPolicy
from hltnode.daemon.monitoring.counters import WriterCounters
from hltnode.daemon.storage.record_block import RecordBlock
from hltnode.daemon.storage.recovery import StoreSettings, take_over
from hltnode.protocol.raw_data.mdf import encode_record, iter_records
from hltnode.protocol.transport.mep_ranges import as_ranges

RUN = 7
NODE = "node"
JOURNAL = f"{NODE}.journal"
EVENTS_OF_A_MEP = 3
"""Of each MEP the last event goes to the error stream if the id of the MEP is a multiple of three."""


def event_record(event: int, run: int = RUN, payload: int = 0) -> bytes:
    """An MDF record that carries the number of its event."""
    return encode_record(event.to_bytes(8, "little") + bytes(payload), run=run, checksum=False)


def events_of(meps: Iterable[int]) -> list[int]:
    """Numbers of the events of some MEPs."""
    return sorted(mep * 100 + event for mep in meps for event in range(EVENTS_OF_A_MEP))


def events_in(raw: bytes) -> list[int]:
    """Numbers of the events in a file."""
    return [int.from_bytes(record.body[:8], "little") for record in iter_records(raw)]


def kept(*directories: Path) -> list[int]:
    """Numbers of the events in all finished files."""
    return sorted(n for d in directories for path in d.glob("*.mdf") for n in events_in(path.read_bytes()))


def quarantined(directory: Path, reason: str) -> list[int]:
    """Numbers of the events in quarantine for a reason."""
    paths = (directory / "quarantine").glob(f"*_{reason}*.mdf")
    return sorted(n for path in paths for n in events_in(path.read_bytes()))


def block_of(run: int, records: Sequence[tuple[int, bytes]]) -> RecordBlock:
    """MDF records, each given with its MEP, as the gathering hands them to the store."""
    ends = np.cumsum([len(record) for _, record in records], dtype=np.uint64)
    meps = np.array([mep for mep, _ in records], dtype=np.uint64)
    return RecordBlock(run, memoryview(b"".join(record for _, record in records)), ends, meps)


class Session:
    """One session: opened with recovery; `kill` leaves everything as SIGKILL does, `end` stops in order."""

    def __init__(
        self,
        directory: Path,
        name: str,
        *,
        max_file_events: int = 1000,
        max_file_bytes: int = 1 << 20,
        fsync: FsyncPolicy = FsyncPolicy.FILE,
        policies: Mapping[EventStream, SlowConsumerPolicy] | None = None,
        boot: str = "boot",
    ) -> None:
        self.directory = directory
        self.counters = WriterCounters()
        settings = StoreSettings(
            max_file_bytes=max_file_bytes, max_file_events=max_file_events, fsync=fsync, policies=policies or {}
        )
        self.store = take_over(directory, NODE, name, self.counters, settings, boot=boot)

    def done(self, run: int = RUN) -> list[tuple[int, int]]:
        """Finished MEPs according to the journal."""
        return list(self.store.journal.content.done().get(run, ()))

    def append(self, *meps: int, run: int = RUN, payload: int = 0) -> None:
        """The events of some MEPs, not yet written."""
        streams: dict[EventStream, list[tuple[int, bytes]]] = {stream: [] for stream in EventStream}
        for event in events_of(meps):
            mep = event // 100
            is_error = mep % 3 == 0 and event % 100 == EVENTS_OF_A_MEP - 1
            streams[EventStream.ERROR if is_error else EventStream.ACCEPTED].append(
                (mep, event_record(event, run, payload))
            )
        for stream, records in streams.items():
            self.store.append(stream, block_of(run, records))

    def batch(self, *meps: int, run: int = RUN, payload: int = 0) -> None:
        """A batch as the output stage writes it."""
        self.append(*meps, run=run, payload=payload)
        self.store.commit(run, as_ranges(meps))
        self.store.finish_files()

    def write_only(self, *meps: int) -> None:
        """The events get to the files, and the node is killed before the journal knows it."""
        self.append(*meps)
        self.store._writer.flush()

    def kill(self) -> None:
        """Descriptors are closed, nothing is finished."""
        self.store.abandon()

    def end(self) -> list[int]:
        """Stop in order; returns the events in finished files."""
        self.store.close()
        assert self.store.abandon() == 0
        return kept(self.directory)


def doubled(events: Iterable[int]) -> list[int]:
    """Events that are there more than once."""
    return sorted(event for event, times in Counter(events).items() if times > 1)


def copy_directory(source: Path, target: Path) -> Path:
    """A copy of an output directory, with its quarantine."""
    target.mkdir()
    for path in source.rglob("*"):
        copy = target / path.relative_to(source)
        if path.is_dir():
            copy.mkdir(exist_ok=True)
        else:
            copy.parent.mkdir(exist_ok=True)
            copy.write_bytes(path.read_bytes())
    return target


def names(directory: Path) -> list[str]:
    """Names in a directory."""
    return sorted(os.listdir(directory))
