"""A stream in real time, from one process or from several that share the sources and start together."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path

import uvloop

from hltnode.client.sockets import FeederKeys
from hltnode.daemon.commands.mep_streams.replay_jobs import Job, Jobs, Note, keep_led
from hltnode.daemon.commands.mep_streams.replay_screen import ReplayScreen
from hltnode.daemon.replay.input_files import FeedError
from hltnode.daemon.replay.mep_source import MepStream, Packing, meps_of_files
from hltnode.daemon.replay.pacing import Pace
from hltnode.daemon.replay.real_time import Lateness, RealTimePacer
from hltnode.daemon.replay.replaying import Replay, Replaying, ReplayState
from hltnode.daemon.replay.run_sequence import RunOutcome, RunResult
from hltnode.daemon.replay.single_node import FeedReport
from hltnode.daemon.replay.site import MAX_FRAGMENT_BYTES, Site, make_identities
from hltnode.processing.selection.trigger_chain import installed_chain

BEGIN_NS = 50_000_000
"""From the order to begin until the stream begins: the order must have reached each process before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """A stream that repeats the slices of a file. n_slices: None for a stream without end. part: I/N of N processes."""

    slices: Path
    chain: str
    sub_slices: int
    slice_ns: int
    n_slices: int | None
    to: str
    control: str | None
    keys: FeederKeys
    run: int
    name: str
    connections: int
    seed: int
    part: str | None = None

    def meps(self) -> MepStream:
        """The slices of the stream, of all sources."""
        packing = Packing(
            events_per_mep=self.sub_slices, max_fragment_bytes=MAX_FRAGMENT_BYTES, repeat=None, run=self.run
        )
        meps = meps_of_files([self.slices], installed_chain(self.chain).readout, packing)
        return meps if self.n_slices is None else meps.first(self.n_slices)


def make_site(options: StreamOptions) -> Site:
    """The node of a stream."""
    control = None if options.control is None else [options.control]
    return Site.of([options.to], control, None, None, None, options.keys, [options.run])


def make_replay(options: StreamOptions, pacer: RealTimePacer) -> Replay:
    """The stream of this process. Raises FeedError for more parts than sources."""
    meps = options.meps()
    identities = make_identities(meps, options.name, options.connections, options.part, options.chain)
    mine = [source for identity in identities for source in identity.sources]
    return Replay(
        meps if options.part is None else meps.of(mine),
        identities,
        make_site(options),
        Pace.GREATEST,
        max_pause_s=0.0,
        faults=None,
        seed=options.seed,
        ends_by_signal=True,
        pacer=pacer,
    )


class JointLateness:
    """How late slices are of which each process sends a part: a slice is as late as its last part."""

    def __init__(self, parts: int) -> None:
        self.lateness = Lateness()
        self._delays: list[deque[int]] = [deque() for _ in range(parts)]

    def add(self, part: int, delays: Sequence[int]) -> None:
        """Delays in ns of the next slices of a part."""
        self._delays[part].extend(delays)
        while all(self._delays):
            self.lateness = self.lateness.with_slice(max(each.popleft() for each in self._delays))


@dataclass(frozen=True, slots=True)
class PartProgress(Note):
    """Of one process. is_ready: its feeders may send the first slice. delays: ns, of the slices since the last note."""

    is_ready: bool
    delays: tuple[int, ...]
    behind_ns: int


@dataclass(frozen=True, slots=True)
class Begin:
    """The order to begin, at a time of the monotonic clock of the machine."""

    at_ns: int


class JointStream:
    """Lets several processes begin at one time, and joins what they say of their slices."""

    def __init__(
        self, parts: int, say_behind: Callable[[int], None], now: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._joint = JointLateness(parts)
        self._ready: set[int] = set()
        self._parts = parts
        self._has_begun = False
        self._say_behind = say_behind
        self._now = now

    @property
    def lateness(self) -> Lateness:
        """Of the slices that all processes have sent."""
        return self._joint.lateness

    def take(self, jobs: Sequence[Job]) -> None:
        """Take the notes of the processes; order them to begin when all are ready."""
        behind_ns = 0
        for number, job in enumerate(jobs):
            for note in job.take_notes():
                assert isinstance(note, PartProgress)
                if note.is_ready:
                    self._ready.add(number)
                self._joint.add(number, note.delays)
                behind_ns = max(behind_ns, note.behind_ns)
        self._say_behind(behind_ns)
        if not self._has_begun and len(self._ready) == self._parts:
            self._has_begun = True
            order = Begin(self._now() + BEGIN_NS)
            for job in jobs:
                job.order(order)


def stream_in_jobs(
    options: StreamOptions, processes: int, screen: ReplayScreen, say_behind: Callable[[int], None]
) -> tuple[FeedReport, Lateness, int | None]:
    """Send a stream from several processes, each with a connection for its part of the sources.

    Returns the joint report, the lateness of slices, and the signal that ended the stream early. Raises FeedError for
    more processes than sources.
    """
    sources = len(options.meps().sources)
    if processes > sources:
        raise FeedError(f"--processes {processes}: there are {sources} sources")
    joint = JointStream(processes, say_behind)
    with contextlib.ExitStack() as stack:
        jobs = [
            stack.enter_context(contextlib.closing(Job(_stream_part, replace(options, part=part), f"stream {part}")))
            for part in (f"{number}/{processes}" for number in range(1, processes + 1))
        ]
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            followed = Jobs(jobs, [options.run], screen, ends_by_signal=True, take_notes=joint.take)
            (outcome,), ended_by = runner.run(followed.run(lambda: contextlib.nullcontext(None)))
    assert outcome.report is not None
    return outcome.report, joint.lateness, ended_by


class _PartPacer(RealTimePacer):
    """Begins at the time of an order, and keeps the delays of slices for the next note."""

    def __init__(self, slice_ns: int) -> None:
        super().__init__(slice_ns)
        self.is_ready = False
        self.begin: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._delays: list[int] = []

    async def first_begin_ns(self) -> int:
        self.is_ready = True
        return await self.begin

    def count(self, late_ns: int) -> None:
        super().count(late_ns)
        self._delays.append(late_ns)

    def note(self) -> PartProgress:
        """What the first process does not know yet."""
        delays, self._delays = tuple(self._delays), []
        return PartProgress(self.is_ready, delays, self.behind_ns)


async def _send_part(options: StreamOptions, states: Connection) -> list[RunOutcome]:
    pacer = _PartPacer(options.slice_ns)

    def show(state: ReplayState) -> None:
        states.send(state)
        states.send(pacer.note())

    replaying = Replaying(make_replay(options, pacer), show)

    def obey(order: object) -> None:
        if isinstance(order, Begin):
            if not pacer.begin.done():
                pacer.begin.set_result(order.at_ns)
        else:
            assert isinstance(order, int)
            replaying.end_after(order)

    report, _ended_by = await keep_led(replaying.run, states, obey)
    assert report is not None
    # The last slices, also those of a stream that an error has ended.
    states.send(pacer.note())
    return [RunOutcome(options.run, RunResult.SENT, report, report.complete)]


def _stream_part(options: StreamOptions, states: Connection) -> list[RunOutcome]:
    """Work of the process of a part."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_send_part(options, states))
