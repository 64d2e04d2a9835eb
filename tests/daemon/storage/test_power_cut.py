"""Kills and power cuts at every call of a session that rotates, ends runs, compacts, is killed and starts again.

The calls of a real store are recorded once. Then, for every number of calls, the next session recovers what a kill, or
a power cut with some of its legal losses, leaves; what was not acknowledged is sent again, and the files are counted.
"""

import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hltnode.daemon.common.vocabulary import FsyncPolicy, QuarantineReason
from hltnode.daemon.monitoring.counters import WriterCounters
from tests.daemon.storage.recorded_file_system import Call, Disk, Kind, RecordedFileSystem, write_state
from tests.daemon.storage.sessions import NODE, RUN, Session, events_in, events_of, quarantined

MEPS = 24
FILE_EVENTS = 13
ELSEWHERE = (3, 4, 15)
"""MEPs that are revoked: another node builds them."""


@dataclass
class Feeder:
    """What was promised to a feeder after some marks, and what it knows of it.

    The acknowledgement of a batch reaches it only after the next batch.
    """

    acknowledged: set[int] = field(default_factory=set)
    known: set[int] = field(default_factory=set)
    revoked: set[int] = field(default_factory=set)
    asked_to_revoke: set[int] = field(default_factory=set)
    over: bool = False

    def take(self, mark: Any) -> None:
        match mark:
            case ("acknowledged", meps):
                self.known |= self.acknowledged
                self.acknowledged |= set(meps)
            case ("revoke", meps):
                self.asked_to_revoke |= set(meps)
                self.acknowledged -= set(meps)
                self.known -= set(meps)
            case ("revoked", meps):
                self.revoked |= set(meps)
            case "confirmed":
                self.known |= self.acknowledged
            case "over":
                self.over = True


@dataclass
class Recording:
    """The calls of a workload, and the files that a collector took as soon as they had their final names."""

    calls: list[Call]
    collected: dict[str, tuple[int, bytes]]


def workload(directory: Path, fsync: FsyncPolicy, *, supervised: bool, collect: bool) -> Recording:
    """Four sessions: the first two are killed, the third and the last end in order."""
    system = RecordedFileSystem(directory)
    collected: dict[str, tuple[int, bytes]] = {}

    def take_finished() -> None:
        if collect:
            for path in directory.glob("*.mdf"):
                assert path.name not in collected, f"{path.name} appeared twice"
                renamed = next(
                    i for i, call in enumerate(system.calls) if call.kind is Kind.RENAME and call.to == ("", path.name)
                )
                collected[path.name] = renamed + 1, path.read_bytes()
                path.unlink()

    def session(name: str) -> Session:
        opened = Session(directory, name, max_file_events=FILE_EVENTS, fsync=fsync, boot="before")
        if supervised:
            opened.store.supervise(RUN)
        take_finished()
        return opened

    def batch(session: Session, *meps: int) -> None:
        session.append(*meps)
        session.store.commit(RUN, [(meps[0], meps[-1])])
        system.mark(("acknowledged", meps))
        if supervised:
            session.store.confirm(RUN, max(meps[0] - 3, 0))
        else:
            session.store.finish_files()
        take_finished()

    def revoke(session: Session, *meps: int) -> None:
        if supervised:
            system.mark(("revoke", meps))
            session.store.revoke(RUN, [(mep, mep) for mep in meps])
            system.mark(("revoked", meps))

    with system.recording():
        first = session("s1")
        for mep in range(0, 6, 2):
            batch(first, mep, mep + 1)
        revoke(first, 3, 4)
        batch(first, 6)
        first.write_only(7, 8)
        first.kill()
        second = session("s2")
        batch(second, 7, 8)
        batch(second, 9, 10, 11)
        second.store.journal.compact()
        batch(second, 12)
        second.kill()
        third = session("s3")
        batch(third, 13, 14, 15)
        revoke(third, 15)
        third.store.journal._compact_at = 0  # the next batch finds a journal that has grown
        batch(third, 16, 17)
        third.store.leave_run(RUN)
        take_finished()
        third.store.close()
        third.kill()
        take_finished()
        last = session("s4")
        batch(last, 18, 19, 20)
        batch(last, 21, 22, 23)
        system.mark("confirmed")  # a run ends when its feeders know that everything is acknowledged
        last.store.end_run(RUN)
        system.mark("over")
        take_finished()
        last.store.close()
        last.kill()
        take_finished()
    return Recording(system.calls, collected)


@dataclass(frozen=True, kw_only=True)
class Crash:
    """A directory as the next session finds it, after `n` calls of the recording."""

    n: int
    directory: Path
    feeder: Feeder


def crashes(recording: Recording, tmp_path: Path, step: int, rngs: Sequence[random.Random | None]) -> Iterator[Crash]:
    """Every `step` calls a power cut with losses of each generator; with none instead of a generator, a kill."""
    for n in range(0, len(recording.calls) + 1, step):
        disk = Disk(recording.calls, n)
        for rng in rngs:
            with tempfile.TemporaryDirectory(dir=tmp_path) as parent:
                directory = Path(parent) / "out"
                write_state(disk.after_kill() if rng is None else disk.after_power_cut(rng), directory)
                feeder = Feeder()
                for mark in disk.marks:
                    feeder.take(mark)
                yield Crash(n=n, directory=directory, feeder=feeder)


@dataclass(frozen=True, kw_only=True)
class Finished:
    """The next session when its run has ended."""

    counters: WriterCounters
    sent: list[int]
    """MEPs that it got."""


def finish(crash: Crash, fsync: FsyncPolicy, boot: str) -> Finished:
    """The next session gets the unacknowledged MEPs, and the run ends."""
    feeder = crash.feeder
    session = Session(crash.directory, "next", max_file_events=FILE_EVENTS, fsync=fsync, boot=boot)
    done = {mep for first, last in session.done() for mep in range(first, last + 1)}
    if feeder.asked_to_revoke - feeder.revoked:
        # The feeder repeats unconfirmed MEPs.
        session.store.revoke(RUN, [(mep, mep) for mep in feeder.asked_to_revoke])
    sent = [] if feeder.over else sorted(set(range(MEPS)) - feeder.known - feeder.asked_to_revoke - done)
    for mep in sent:
        session.batch(mep)
    session.store.end_run(RUN)
    session.store.close()
    session.store.abandon()
    return Finished(counters=session.counters, sent=sent)


def finished_events(directory: Path) -> Counter[int]:
    return Counter(n for path in directory.glob("*.mdf") for n in events_in(path.read_bytes()))


def expected_events(feeder: Feeder) -> Counter[int]:
    return Counter(events_of(set(range(MEPS)) - feeder.asked_to_revoke))


THOROUGHLY = pytest.mark.parametrize(
    "step", [5, pytest.param(1, marks=(pytest.mark.slow, pytest.mark.timeout(600)))], ids=["some", "every"]
)


@pytest.mark.parametrize("collect", [False, True], ids=["", "collected"])
@pytest.mark.parametrize("supervised", [False, True], ids=["", "supervised"])
@pytest.mark.parametrize("fsync", FsyncPolicy)
@THOROUGHLY
def test_a_kill_at_any_call_neither_loses_nor_duplicates_an_event(
    tmp_path: Path, step: int, fsync: FsyncPolicy, supervised: bool, collect: bool
) -> None:
    recording = workload(tmp_path / "recorded", fsync, supervised=supervised, collect=collect)
    for crash in crashes(recording, tmp_path, step, [None]):
        taken: Counter[int] = Counter()
        for name, (renamed, content) in recording.collected.items():
            if renamed <= crash.n:
                taken.update(events_in(content))
                (crash.directory / name).unlink(missing_ok=True)
        counters = finish(crash, fsync, "before").counters
        assert counters.missing_events == counters.journal_damage == counters.power_cuts == 0, crash.n
        assert counters.quarantined_events[QuarantineReason.DAMAGED] == 0, crash.n
        assert taken + finished_events(crash.directory) == expected_events(crash.feeder), crash.n
        assert set(quarantined(crash.directory, "revoked")) <= set(events_of(ELSEWHERE))


@pytest.mark.parametrize("supervised", [False, True], ids=["", "supervised"])
@pytest.mark.parametrize("fsync", [FsyncPolicy.FLUSH, FsyncPolicy.FILE])
@THOROUGHLY
def test_a_power_cut_at_any_call_costs_only_events_that_the_fsync_policy_allows(
    tmp_path: Path, step: int, fsync: FsyncPolicy, supervised: bool
) -> None:
    recording = workload(tmp_path / "recorded", fsync, supervised=supervised, collect=False)
    named = 0
    for crash in crashes(recording, tmp_path, step, [random.Random(seed) for seed in range(10 if step == 1 else 3)]):
        calls, known = recording.calls[: crash.n], crash.feeder.known
        counters = finish(crash, fsync, "after").counters
        for name, content in forced_finals(calls).items():
            assert (crash.directory / name).read_bytes() == content, (crash.n, name)
        found, expected = finished_events(crash.directory), expected_events(crash.feeder)
        assert not found - expected, (crash.n, "doubled, or revoked")
        missing = set(expected - found)
        if missing:
            # What was not acknowledged has come again. Only `file` may cost acknowledged events: those of files that
            # were not finished. They are counted where the journal knows them; a power cut is reported in any case.
            assert fsync is FsyncPolicy.FILE, (crash.n, missing)
            assert missing <= set(events_of(known)) - set(acknowledged_and_forced(calls)), (crash.n, missing)
            assert counters.power_cuts == 1, crash.n
            named += counters.missing_events > 0
    assert (named > 0) is (fsync is FsyncPolicy.FILE), "the losses that the text allows are simulated"


def test_without_forcing_a_power_cut_is_reported_and_the_next_session_works(tmp_path: Path) -> None:
    recording = workload(tmp_path / "recorded", FsyncPolicy.NEVER, supervised=False, collect=False)
    reported = 0
    for crash in crashes(recording, tmp_path, 7, [random.Random(1)]):
        finished = finish(crash, FsyncPolicy.NEVER, "after")
        # A power cut may cost the journal, too; then nothing says that there was a session.
        assert finished.counters.power_cuts <= 1, crash.n
        reported += finished.counters.power_cuts
        written = [n for path in crash.directory.glob(f"{NODE}_next_*.mdf") for n in events_in(path.read_bytes())]
        assert sorted(written) == events_of(finished.sent), crash.n
    assert reported > 0


def forced_finals(calls: list[Call]) -> dict[str, bytes]:
    """The finished files whose names were forced: nothing may happen to them any more."""
    contents: dict[int, bytes] = {}
    waiting: dict[str, int] = {}
    forced: dict[str, int] = {}
    for call in calls:
        if call.kind is Kind.WRITE:
            content = contents.get(call.file, b"").ljust(call.offset, b"\0")
            contents[call.file] = content[: call.offset] + call.data + content[call.offset + len(call.data) :]
        elif call.kind is Kind.TRUNCATE:
            contents[call.file] = contents.get(call.file, b"")[: call.offset]
        elif call.kind is Kind.RENAME and call.to[0] == "" and call.to[1].endswith(".mdf"):
            waiting[call.to[1]] = call.file
        elif call.kind is Kind.FORCE_NAMES and call.place[0] == "":
            forced |= waiting
    return {name: contents[file] for name, file in forced.items()}


def acknowledged_and_forced(calls: list[Call]) -> list[int]:
    """The events in finished files whose names were forced."""
    return [event for content in forced_finals(calls).values() for event in events_in(content)]
