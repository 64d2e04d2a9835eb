"""The processes of a replay: a single process, or several processes that share the sources."""

import asyncio
import contextlib
import math
import multiprocessing
import os
import signal
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop

from hltnode.client.fault_injection import FaultPlan
from hltnode.client.memory_socket import memory_path
from hltnode.client.shared_memory import SharedMemory
from hltnode.client.sockets import FeederKeys
from hltnode.daemon.commands.mep_streams.replay_screen import ReplayScreen, join_states
from hltnode.daemon.commands.tool_command import tool_of
from hltnode.daemon.common import log
from hltnode.daemon.common.vocabulary import LogFormat
from hltnode.daemon.replay.input_files import FeedError
from hltnode.daemon.replay.input_name import name_of_sample
from hltnode.daemon.replay.mep_source import MepStream, Packing, meps_of_files, meps_of_simulation
from hltnode.daemon.replay.pacing import Rate
from hltnode.daemon.replay.replaying import SAME_SIGNAL_SECONDS, SHOW_SECONDS, Replay, Replaying, ReplayState
from hltnode.daemon.replay.single_node import FeedReport, join_reports
from hltnode.daemon.replay.site import MAX_FRAGMENT_BYTES, Site, make_identities
from hltnode.processing.framework.event_files import EventFileError
from hltnode.processing.selection.trigger_chain import installed_chain

if TYPE_CHECKING:
    from hltnode.processing.offline.chain_tools import SimulatedSample, Simulation

# After a failure, processes get this time to close their connections.
END_SECONDS = 10.0

Keyboard = Callable[[], AbstractContextManager[int | None]]
"""Opens the keyboard; gives a descriptor for reading single keys, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """Options of the command line; `repeat` is None for an endless replay, `inputs` is empty for simulated events."""

    inputs: tuple[Path, ...]
    n_simulated: int
    seed: int
    geometry: Path | None
    chain: str
    events_per_mep: int
    repeat: int | None
    run: int | None
    with_truth: bool
    to: tuple[str, ...]
    control: tuple[str, ...] | None
    keys: FeederKeys
    supervisor: str | None
    memory: Path | None
    name: str
    connections: int
    part: str | None
    rate: Rate
    max_pause_s: float
    faults: FaultPlan | None
    segment_bytes: int


def make_stream(options: ReplayOptions) -> MepStream:
    """The MEPs of the input. Raises FeedError, EventFileError, and errors of the geometry or the chain."""
    packing = Packing(
        events_per_mep=options.events_per_mep,
        max_fragment_bytes=MAX_FRAGMENT_BYTES,
        repeat=options.repeat,
        run=options.run,
        with_truth=options.with_truth,
        memory=_memory(options),
    )
    readout = installed_chain(options.chain).readout
    if options.inputs:
        return meps_of_files(options.inputs, readout, packing)
    sample = _simulated_sample(options)
    stream = meps_of_simulation(lambda: sample.events(options.n_simulated), readout, packing, options.n_simulated)
    stream.input_name = name_of_sample(options.chain, options.seed, options.n_simulated, packing)
    return stream


def _simulated_sample(options: ReplayOptions) -> "SimulatedSample":
    # Local import: a replay of files needs no simulation.
    from hltnode.processing.offline.chain_tools import DEFAULT_RUN, SampleRequest, installed_tools

    simulation: Simulation[Any] = tool_of(installed_tools(options.chain), options.chain, "simulation")
    request = SampleRequest(seed=options.seed, run=options.run or DEFAULT_RUN, geometry=options.geometry)
    return simulation.sample(request, simulation.options())


def _memory(options: ReplayOptions) -> SharedMemory | None:
    """Shared memory for the fragments, if a node on this machine uses it."""
    is_shared = any(memory_path(endpoint) is not None for endpoint in options.to)
    return SharedMemory(options.segment_bytes) if is_shared else None


def _make_replay(options: ReplayOptions, stream: MepStream) -> Replay:
    site = Site.of(
        list(options.to),
        None if options.control is None else list(options.control),
        options.supervisor,
        options.part,
        options.memory,
        options.keys,
    )
    identities = make_identities(stream, options.name, options.connections, options.part, options.chain)
    mine = [source for identity in identities for source in identity.sources]
    return Replay(
        stream if options.part is None else stream.of(mine),
        identities,
        site,
        options.rate,
        options.max_pause_s,
        options.faults,
        options.seed,
        ends_by_signal=options.repeat is None,
    )


def replay_here(
    options: ReplayOptions, stream: MepStream, screen: ReplayScreen, keyboard: Keyboard
) -> tuple[FeedReport, int | None]:
    """Replay in this process; returns the report, and the signal that ended the replay, or None."""
    replay = _make_replay(options, stream)
    replaying = Replaying(
        replay,
        screen.show,
        lambda memory: screen.say(
            f"continues run {stream.run} after MEP {memory.next_mep - 1}, according to {memory.path}"
        ),
    )

    async def run() -> tuple[FeedReport, int | None]:
        loop = asyncio.get_running_loop()
        with keyboard() as keys:
            if keys is not None:
                loop.add_reader(keys, _on_key, keys, replaying.pause_or_resume)
            try:
                return await replaying.run()
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
    options: ReplayOptions, stream: MepStream, jobs: int, screen: ReplayScreen, keyboard: Keyboard
) -> tuple[FeedReport, int | None]:
    """Replay in several processes, each with a part of the sources. Raises FeedError for more parts than sources."""
    if jobs > len(stream.sources):
        raise FeedError(f"--jobs {jobs}: there are {len(stream.sources)} sources")
    with tempfile.TemporaryDirectory(prefix="hltnode-") as folder, contextlib.ExitStack() as stack:
        endpoint = f"ipc://{folder}/supervisor" if len(options.to) > 1 else None
        parts = [
            replace(options, part=f"{number}/{jobs}", supervisor=endpoint, memory=None) for number in range(1, jobs + 1)
        ]
        parts[0] = replace(parts[0], memory=options.memory)
        processes = [stack.enter_context(contextlib.closing(_Job(part))) for part in parts]
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_Jobs(processes, screen, ends_by_signal=options.repeat is None).run(keyboard))


class _Job:
    """A process that replays a part."""

    def __init__(self, options: ReplayOptions) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.states, theirs = spawn.Pipe()
        self.process = spawn.Process(target=_replay_part, args=(options, theirs), name=f"replay {options.part}")
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
        self.report: FeedReport | None = None
        self.is_over = False

    def signal(self, number: int) -> None:
        """Send a signal to the process, if it is still running."""
        if self.process.is_alive() and self.process.pid is not None:
            os.kill(self.process.pid, number)

    def read(self) -> None:
        """Receive the states and the report that the process has sent."""
        try:
            while self.states.poll():
                came = self.states.recv()
                if isinstance(came, ReplayState):
                    self.state = came
                    self.has_begun = True
                else:
                    self.report = came
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


class _Jobs:
    """Follows several jobs, and passes signals and keys on to them."""

    def __init__(self, jobs: list[_Job], screen: ReplayScreen, *, ends_by_signal: bool) -> None:
        self._jobs = jobs
        self._screen = screen
        self._ends_by_signal = ends_by_signal
        self._ends_at_once_from = math.inf
        self._is_paused = False
        self._last_mep: int | None = None
        self._is_ending = False
        self._ended_by: int | None = None

    async def run(self, keyboard: Keyboard) -> tuple[FeedReport, int | None]:
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

    async def _follow(self) -> tuple[FeedReport, int | None]:
        error = ""
        while not all(job.is_over for job in self._jobs):
            await asyncio.sleep(SHOW_SECONDS)
            for job in self._jobs:
                job.read()
            state = join_states([job.state for job in self._jobs])
            self._screen.show(replace(state, is_ending=state.is_ending or self._is_ending))
            self._lead()
            failed = [job for job in self._jobs if job.is_over and (job.report is None or job.report.error)]
            if failed:
                # Without one part of the sources, every MEP of the other parts stays incomplete.
                report = failed[0].report
                error = error or (f"{failed[0].process.name} has ended" if report is None else report.error)
                self._pass_on(signal.SIGTERM)
        reports = [job.report for job in self._jobs if job.report is not None]
        if not reports:
            raise FeedError(f"{error}: no process has sent anything")
        return join_reports(reports, error), self._ended_by

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
                    job.states.send(self._last_mep)
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


async def _led(replaying: Replaying, orders: Connection) -> tuple[FeedReport, int | None]:
    """Replay, and end after the MEP given by the first process."""
    loop = asyncio.get_running_loop()

    def take_order() -> None:
        try:
            replaying.end_after(orders.recv())
        except EOFError:
            # The first process has ended, and with it the screen and the leader of the jobs.
            loop.remove_reader(orders.fileno())
            signal.raise_signal(signal.SIGTERM)

    loop.add_reader(orders.fileno(), take_order)
    try:
        return await replaying.run()
    finally:
        loop.remove_reader(orders.fileno())


def _replay_part(options: ReplayOptions, states: Connection) -> None:
    """Main function of the process of a job."""
    log.configure("warning", LogFormat.CONSOLE)
    try:
        stream = make_stream(options)
        replaying = Replaying(_make_replay(options, stream), states.send)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            report, _ = runner.run(_led(replaying, states))
    except (EventFileError, ValueError, OSError) as error:
        report = FeedReport(0, 0, 0, 0, 0, {}, 0, [], 0.0, {}, error=str(error))
    with contextlib.suppress(BrokenPipeError):
        states.send(report)
