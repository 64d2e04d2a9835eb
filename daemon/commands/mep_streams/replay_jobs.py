"""The processes of a replay: a single process, or several processes that share the sources."""

import asyncio
import contextlib
import math
import multiprocessing
import os
import signal
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from hltnode.daemon.commands.mep_streams.replay_screen import ReplayScreen, join_states
from hltnode.daemon.commands.mep_streams.replay_setup import ReplayOptions, make_replays, make_streams
from hltnode.daemon.common import log
from hltnode.daemon.common.vocabulary import LogFormat
from hltnode.daemon.replay.input_files import FeedError
from hltnode.daemon.replay.mep_source import MepStream
from hltnode.daemon.replay.replaying import SAME_SIGNAL_SECONDS, SHOW_SECONDS, ReplayState
from hltnode.daemon.replay.run_sequence import RunOutcome, RunResult, join_outcomes
from hltnode.daemon.replay.single_node import FeedReport
from hltnode.processing.framework.event_files import EventFileError

T = TypeVar("T")
_Options = TypeVar("_Options")

# After a failure, processes get this time to close their connections.
END_SECONDS = 10.0
# The exit code of a process follows the end of its pipe within this time.
DEATH_SECONDS = 1.0

Keyboard = Callable[[], AbstractContextManager[int | None]]
"""Opens the keyboard; gives a descriptor for reading single keys, or None."""


def replay_here(
    options: ReplayOptions, streams: Sequence[MepStream], screen: ReplayScreen, keyboard: Keyboard
) -> tuple[list[RunOutcome], int | None]:
    """Replay in this process; returns the outcome of each run, and the signal that ended the replay, or None."""
    replays = make_replays(options, streams, screen.show, screen.say)

    async def run() -> tuple[list[RunOutcome], int | None]:
        loop = asyncio.get_running_loop()
        with keyboard() as keys:
            if keys is not None:
                loop.add_reader(keys, _on_key, keys, replays.pause_or_resume)
            try:
                return await replays.run()
            finally:
                if keys is not None:
                    loop.remove_reader(keys)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run())


def _on_key(keys: int, pause_or_resume: Callable[[], None]) -> None:
    pressed = os.read(keys, 64)
    if pressed.count(b" ") % 2:
        pause_or_resume()


def replay_in_jobs(
    options: ReplayOptions, streams: Sequence[MepStream], jobs: int, screen: ReplayScreen, keyboard: Keyboard
) -> tuple[list[RunOutcome], int | None]:
    """Replay in several processes, each with a part of the sources. Raises FeedError for more parts than sources."""
    for stream in streams:
        if jobs > len(stream.sources):
            of_run = f" in run {stream.run}" if len(streams) > 1 else ""
            raise FeedError(f"--jobs {jobs}: there are {len(stream.sources)} sources{of_run}")
    with tempfile.TemporaryDirectory(prefix="hltnode-") as folder, contextlib.ExitStack() as stack:
        endpoint = f"ipc://{folder}/supervisor" if len(options.to) > 1 else None
        parts = [
            replace(
                options, part=f"{number}/{jobs}", supervisor=endpoint, memory=_memory_of_job(options, number, streams)
            )
            for number in range(1, jobs + 1)
        ]
        processes = [
            stack.enter_context(contextlib.closing(Job(_replay_part, part, f"replay {part.part}"))) for part in parts
        ]
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runs = [stream.run for stream in streams]
            return runner.run(Jobs(processes, runs, screen, ends_by_signal=options.repeat is None).run(keyboard))


def _memory_of_job(options: ReplayOptions, number: int, streams: Sequence[MepStream]) -> Path | None:
    if options.memory is None or number == 1:
        return options.memory
    # With several runs, each job has a record of the finished ones.
    return options.memory.with_name(f"{options.memory.name}-job{number}") if len(streams) > 1 else None


@dataclass(frozen=True, slots=True)
class _Line:
    """A line for the screen."""

    text: str


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why a job could not replay anything."""

    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """What a process tells the first one besides states, lines and outcomes. Subclasses have the content."""


class Job:
    """A process that sends a part of the sources. work(options, pipe) runs in it; options can be pickled."""

    def __init__(self, work: Callable[[_Options, Connection], list[RunOutcome]], options: _Options, name: str) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.states, theirs = spawn.Pipe()
        self.process = spawn.Process(target=_run_job, args=(work, options, theirs), name=name)
        # Starting the resource tracker unblocks the signal, so it must run before the signal is blocked.
        resource_tracker.ensure_running()
        # Ctrl-C reaches all processes of a terminal. The first process passes it on; the others ignore it from their
        # first import on.
        former = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, former)
        theirs.close()
        self.state = ReplayState()
        self.has_begun = False
        self.outcomes: list[RunOutcome] | None = None
        self.error = ""
        self.lines: list[str] = []
        self.is_over = False
        self._notes: list[Note] = []

    def signal(self, number: int) -> None:
        """Send a signal to the process, if it is still running."""
        if self.process.is_alive() and self.process.pid is not None:
            os.kill(self.process.pid, number)

    def order(self, order: object) -> None:
        """Send an order to the process, if it is still running."""
        with contextlib.suppress(BrokenPipeError):
            self.states.send(order)

    def take_notes(self) -> list[Note]:
        """The notes since the last call."""
        notes, self._notes = self._notes, []
        return notes

    def read(self) -> None:
        """Receive the states, lines, and outcomes or error that the process has sent."""
        try:
            while self.states.poll():
                came = self.states.recv()
                if isinstance(came, ReplayState):
                    self.state = came
                    self.has_begun = True
                elif isinstance(came, _Line):
                    self.lines.append(came.text)
                elif isinstance(came, Note):
                    self._notes.append(came)
                elif isinstance(came, _Failure):
                    self.error = came.text
                else:
                    self.outcomes = came
        except (EOFError, OSError):
            self.is_over = True

    def close(self) -> None:
        """End the process."""
        self.signal(signal.SIGTERM)
        self.process.join(END_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.states.close()


def _without_notes(_jobs: Sequence[Job]) -> None:
    pass


class Jobs:
    """Follows several jobs, and passes signals and keys on to them. take_notes is called several times a second."""

    def __init__(
        self,
        jobs: list[Job],
        runs: list[int],
        screen: ReplayScreen,
        *,
        ends_by_signal: bool,
        take_notes: Callable[[Sequence[Job]], None] = _without_notes,
    ) -> None:
        self._jobs = jobs
        self._take_notes = take_notes
        self._runs = runs
        self._screen = screen
        self._ends_by_signal = ends_by_signal
        self._ends_at_once_from = math.inf
        self._is_paused = False
        self._last_mep: int | None = None
        self._is_ending = False
        self._ended_by: int | None = None

    async def run(self, keyboard: Keyboard) -> tuple[list[RunOutcome], int | None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end, number)
        loop.add_signal_handler(signal.SIGUSR1, self._pause, True)
        loop.add_signal_handler(signal.SIGCONT, self._pause, False)
        with keyboard() as keys:
            if keys is not None:
                loop.add_reader(keys, _on_key, keys, self._pause_or_resume)
            try:
                return await self._follow()
            finally:
                if keys is not None:
                    loop.remove_reader(keys)

    async def _follow(self) -> tuple[list[RunOutcome], int | None]:
        error = ""
        while not all(job.is_over for job in self._jobs):
            await asyncio.sleep(SHOW_SECONDS)
            for job in self._jobs:
                job.read()
            state = join_states([job.state for job in self._jobs])
            self._screen.show(replace(state, is_ending=state.is_ending or self._is_ending))
            # All jobs say the same of a run.
            for line in self._jobs[0].lines:
                self._screen.say(line)
            self._jobs[0].lines.clear()
            self._take_notes(self._jobs)
            self._lead()
            over = [job for job in self._jobs if job.is_over]
            if errors := [text for job in over if (text := _error_of(job))]:
                # Without one part of the sources, every MEP of the other parts stays incomplete. A process that has
                # died is the cause; the errors of others may follow from it.
                error = error or next((text for job in over if (text := _death_of(job))), errors[0])
                self._pass_on(signal.SIGTERM)
        of_jobs = [outcomes for job in self._jobs if (outcomes := self._outcomes_of(job)) is not None]
        if not of_jobs:
            raise FeedError(f"{error}: no process has sent anything")
        return join_outcomes(of_jobs, error), self._ended_by

    def _outcomes_of(self, job: Job) -> list[RunOutcome] | None:
        """The outcomes of a job; None if it was killed."""
        if not job.error:
            return job.outcomes
        first, *others = self._runs
        report = FeedReport(0, 0, 0, 0, 0, {}, 0, [], 0.0, {}, error=job.error)
        return [
            RunOutcome(first, RunResult.SENT, report),
            *(RunOutcome(run, RunResult.NOT_SENT) for run in others),
        ]

    def _pass_on(self, number: int) -> None:
        for job in self._jobs:
            job.signal(number)

    def _lead(self) -> None:
        """Let the jobs pause and resume together, and end after the same MEP, because a MEP needs all jobs to be
        complete."""
        running = [job for job in self._jobs if job.has_begun and not job.is_over]
        if self._is_ending:
            if self._last_mep is None and len(running) == len(self._jobs) and all(j.state.is_paused for j in running):
                # A paused job has sent at most one MEP more than it has counted.
                self._last_mep = max(job.state.meps for job in running) + 1
                for job in running:
                    job.order(self._last_mep)
            if self._last_mep is not None:
                return
        for job in running:
            if job.state.is_paused is not self._is_paused:
                job.signal(signal.SIGUSR1 if self._is_paused else signal.SIGCONT)

    def _pause(self, is_paused: bool) -> None:
        self._is_paused = is_paused or self._is_ending

    def _pause_or_resume(self) -> None:
        self._pause(not self._is_paused)

    def _end(self, number: int) -> None:
        now = asyncio.get_running_loop().time()
        if self._ends_by_signal and now < self._ends_at_once_from:
            self._ends_at_once_from = min(self._ends_at_once_from, now + SAME_SIGNAL_SECONDS)
            self._is_ending = self._is_paused = True
        else:
            self._ended_by = number
            self._pass_on(signal.SIGTERM)


def _death_of(job: Job) -> str:
    """How a process has ended that could not say why; empty for others."""
    if job.error or job.outcomes is not None:
        return ""
    # Its end of the pipe is closed, so it is about to end.
    job.process.join(DEATH_SECONDS)
    code = job.process.exitcode
    if code is None or code >= 0:
        return f"the process {job.process.name} has ended" + (f" with exit code {code}" if code else "")
    return f"the process {job.process.name} was killed by signal {-code} ({signal.strsignal(-code)})"


def _error_of(job: Job) -> str:
    outcomes = job.outcomes or []
    return job.error or _death_of(job) or next((outcome.error for outcome in outcomes if outcome.error), "")


async def keep_led(run: Callable[[], Awaitable[T]], orders: Connection, obey: Callable[[Any], None]) -> T:
    """Run, and obey the orders of the first process meanwhile. If that process ends, this one gets SIGTERM."""
    loop = asyncio.get_running_loop()

    def take_order() -> None:
        try:
            obey(orders.recv())
        except (EOFError, ConnectionResetError):
            # The first process has ended, and with it the screen and the leader of the jobs. It may have left states
            # unread.
            loop.remove_reader(orders.fileno())
            signal.raise_signal(signal.SIGTERM)

    loop.add_reader(orders.fileno(), take_order)
    try:
        return await run()
    finally:
        loop.remove_reader(orders.fileno())


def _replay_part(options: ReplayOptions, states: Connection) -> list[RunOutcome]:
    """Work of the process of a job: replay, and end after the MEP given by the first process."""
    streams = make_streams(options)
    replaying = make_replays(options, streams, states.send, lambda text: states.send(_Line(text)))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(keep_led(replaying.run, states, replaying.end_after))[0]


def _run_job(work: Callable[[_Options, Connection], list[RunOutcome]], options: _Options, states: Connection) -> None:
    """Main function of the process of a job."""
    log.configure("warning", LogFormat.CONSOLE)
    try:
        result: list[RunOutcome] | _Failure = work(options, states)
    except (EventFileError, ValueError, OSError) as error:
        result = _Failure(str(error))
    with contextlib.suppress(BrokenPipeError):
        states.send(result)
