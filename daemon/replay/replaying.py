"""One replay process: its feeders, pause, end, and the progress for the screen."""

import asyncio
import contextlib
import math
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace

import zmq.asyncio

from hltnode.client.fault_injection import FaultPlan
from hltnode.client.feeder import Feeder, FeederIdentity, FeederRefusedError
from hltnode.client.mep import FeedMep
from hltnode.client.shared_memory import SharedMemoryError
from hltnode.daemon.replay.assignment_memory import AssignmentMemory, AssignmentMemoryError
from hltnode.daemon.replay.finished_runs import FinishedRun
from hltnode.daemon.replay.follower import Follower
from hltnode.daemon.replay.input_files import FeedError
from hltnode.daemon.replay.made_ahead import made_ahead
from hltnode.daemon.replay.mep_source import MepStream
from hltnode.daemon.replay.multi_node import distribute_meps
from hltnode.daemon.replay.nodes import Nodes
from hltnode.daemon.replay.pacing import Pacer, Rate
from hltnode.daemon.replay.single_node import (
    FeedReport,
    Stored,
    begin_after,
    confirm_stored,
    feed_meps,
    make_report,
    not_noted,
)
from hltnode.daemon.replay.site import Site
from hltnode.daemon.replay.supervisor import Supervisor
from hltnode.processing.framework.event_files import EventFileError

SHOW_SECONDS = 0.25
# Signals within this time count as one: `timeout` signals both the process and its group.
SAME_SIGNAL_SECONDS = 0.5
# A run that is known to be stored is confirmed to the nodes that answer within this time, if there are several.
CONFIRM_SECONDS = 5.0
# Errors that end a replay with a message.
REFUSALS = (FeederRefusedError, AssignmentMemoryError, FeedError, EventFileError, SharedMemoryError)


@dataclass(frozen=True, slots=True)
class ReplayState:
    """Progress of a replay: offered MEPs and events, sent bytes, MEPs without acknowledgement, and their limit by
    credits."""

    meps: int = 0
    events: int = 0
    bytes: int = 0
    backlog: int = 0
    credits: int = 0
    is_paused: bool = False
    is_ending: bool = False
    missing: tuple[str, ...] = field(default=())
    """Control endpoints of unconnected nodes."""


@dataclass(frozen=True, slots=True)
class Replay:
    """Input and destination of a replay process.

    With `ends_by_signal`, the first SIGINT or SIGTERM ends the input, and the process waits for the acknowledgements of
    sent MEPs. Otherwise, and with the second signal, it ends immediately.
    """

    stream: MepStream
    identities: list[FeederIdentity]
    site: Site
    rate: Rate
    max_pause_s: float
    faults: FaultPlan | None
    seed: int
    ends_by_signal: bool
    pacer: Pacer | None = None
    """Paces the MEPs instead of the rate."""


class Replaying:
    """Replays until all MEPs are acknowledged, a node refuses, or a signal ends it.

    SIGUSR1 pauses, SIGCONT continues.

    Args:
        show: gets the progress several times a second.
        continues: gets the memory of an earlier process whose assignments this process continues.
        stored: called when all MEPs are acknowledged, before the nodes are told that they may forget the run.
        over: called when the nodes know it and no MEP can move to another node.
        known: an earlier process has fed the run to its end; the nodes may not know that yet.
    """

    def __init__(
        self,
        replay: Replay,
        show: Callable[[ReplayState], None],
        continues: Callable[[AssignmentMemory], None] = lambda _memory: None,
        *,
        stored: Stored = not_noted,
        over: Callable[[], None] = lambda: None,
        known: FinishedRun | None = None,
    ) -> None:
        self._replay = replay
        self._show = show
        self._continues = continues
        self._stored = stored
        self._over = over
        self._known = known
        self._pacer = replay.pacer or Pacer(replay.rate, max_pause_s=replay.max_pause_s)
        self._meps = self._events = 0
        self._feeders: list[Feeder] = []
        self._is_ending = False
        self._end_after = math.inf
        self._ends_at_once_from = math.inf
        self._ended_by: int | None = None
        self._feeding: asyncio.Task[FeedReport | None] | None = None

    @property
    def is_paused(self) -> bool:
        """True during a pause."""
        return self._pacer.is_paused

    @property
    def ended_by(self) -> int | None:
        """The signal that ended the replay."""
        return self._ended_by

    def pause_or_resume(self) -> None:
        """Pause, or continue after a pause."""
        if self._pacer.is_paused:
            self._pacer.resume()
        else:
            self._pacer.pause()

    def end_after(self, n_meps: int) -> None:
        """End the input after this number of MEPs; continues if paused."""
        self._is_ending = True
        self._end_after = n_meps
        self._pacer.resume()

    async def run(self) -> tuple[FeedReport | None, int | None]:
        """The report, including unacknowledged MEPs, and the number of the signal that ended the replay early.

        There is no report of a known run of which nothing was sent. Raises FeederRefusedError if a node does not take
        its confirmation.
        """
        replay, site = self._replay, self._replay.site
        loop = asyncio.get_running_loop()
        self._follow_signals(loop)
        memory = site.open_memory(replay.identities[0])
        if memory is not None and memory.continues:
            self._continues(memory)
        elif self._known is not None:
            if memory is not None:
                memory.close()
            return await self._confirm(self._known)
        error = ""
        shared_memory = replay.stream.memory
        begin = loop.time()
        with zmq.asyncio.Context() as context:
            async with contextlib.AsyncExitStack() as stack:
                if shared_memory is not None:
                    # The packing thread may wait for room in this memory.
                    stack.callback(shared_memory.close)
                by_node = site.connect(context, replay.identities, replay.faults, replay.seed, shared_memory)
                self._feeders = [await stack.enter_async_context(feeder) for mine in by_node for feeder in mine]
                nodes = site.share_nodes(by_node)
                if nodes is None:
                    feeding = feed_meps(self._counted(), self._feeders, pacer=self._pacer, stored=self._stored)
                else:
                    # Before any wait: the first hello contains the remembered session.
                    assigner = self._assigner(nodes, memory, context)
                    stack.enter_context(contextlib.closing(assigner))
                    feeding = distribute_meps(self._counted(), nodes, assigner, pacer=self._pacer, stored=self._stored)
                self._feeding = asyncio.create_task(feeding)
                showing = asyncio.create_task(self._keep_showing())
                stack.callback(showing.cancel)
                try:
                    report = await self._until_end(self._feeding)
                    # Also name a node that connected and received all MEPs since the last update.
                    self._show(self._state())
                    assert report is not None
                    if not report.unconfirmed and (memory is None or report.complete):
                        # First the record: a process that is killed here finds it, or the memory.
                        self._over()
                        if memory is not None:
                            memory.finish()
                    return report, None
                except REFUSALS as refusal:
                    error = str(refusal)
                except asyncio.CancelledError:
                    if self._ended_by is None:
                        raise
                    name = signal.Signals(self._ended_by).name
                    error = f"ended by {name} before all MEPs were sent and acknowledged"
                report = make_report(
                    self._feeders,
                    self._meps,
                    self._events,
                    loop.time() - begin,
                    reassigned=0 if nodes is None else nodes.reassigned,
                    unconfirmed={} if nodes is None else nodes.unconfirmed(reachable=False),
                    error=error,
                )
        return report, self._ended_by

    async def _confirm(self, known: FinishedRun) -> tuple[None, int | None]:
        """Confirm a run that an earlier process has fed to its end."""
        replay, site = self._replay, self._replay.site
        # Another active run means that the node has forgotten this one.
        identities = [replace(identity, follows_run=False) for identity in replay.identities]
        with zmq.asyncio.Context() as context:
            async with contextlib.AsyncExitStack() as stack:
                by_node = site.connect(context, identities, None, replay.seed, replay.stream.memory)
                self._feeders = [feeder for mine in by_node for feeder in mine]
                begin_after(self._feeders, known.last_mep)
                for feeder in self._feeders:
                    await stack.enter_async_context(feeder)
                self._feeding = asyncio.create_task(self._confirm_at_nodes(known))
                showing = asyncio.create_task(self._keep_showing())
                stack.callback(showing.cancel)
                try:
                    await self._until_end(self._feeding)
                except asyncio.CancelledError:
                    if self._ended_by is None:
                        raise
        return None, self._ended_by

    async def _confirm_at_nodes(self, known: FinishedRun) -> None:
        # The end of the run must not wait for one lost node of several.
        is_alone = len(self._replay.site.nodes) == 1
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if is_alone else CONFIRM_SECONDS):
                await confirm_stored(self._feeders, known.last_mep)

    async def _until_end(self, feeding: "asyncio.Task[FeedReport | None]") -> FeedReport | None:
        if self._ended_by is not None:
            feeding.cancel()
        return await feeding

    def _assigner(
        self, nodes: Nodes, memory: AssignmentMemory | None, context: zmq.asyncio.Context
    ) -> Supervisor | Follower:
        site = self._replay.site
        if memory is not None:
            return site.supervise(nodes, memory, context)
        assert site.supervisor is not None
        return Follower(nodes, context, site.supervisor)

    def _follow_signals(self, loop: asyncio.AbstractEventLoop) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end, number)
        loop.add_signal_handler(signal.SIGUSR1, self._pacer.pause)
        loop.add_signal_handler(signal.SIGCONT, self._pacer.resume)

    def _end(self, number: int) -> None:
        now = asyncio.get_running_loop().time()
        if self._replay.ends_by_signal and now < self._ends_at_once_from:
            self._ends_at_once_from = min(self._ends_at_once_from, now + SAME_SIGNAL_SECONDS)
            self.end_after(self._meps)
            return
        self._ended_by = number
        if self._feeding is not None:
            self._feeding.cancel()

    async def _counted(self) -> AsyncIterator[FeedMep]:
        async with contextlib.aclosing(made_ahead(self._replay.stream)) as meps:
            async for mep in meps:
                if self._is_ending and self._meps >= self._end_after:
                    break
                yield mep
                self._pacer.sent(mep)
                self._meps += 1
                self._events += mep.n_events
        self._pacer.ended()

    async def _keep_showing(self) -> None:
        while True:
            self._show(self._state())
            await asyncio.sleep(SHOW_SECONDS)

    def _state(self) -> ReplayState:
        feeders = self._feeders
        endpoints = [control for _, control in self._replay.site.nodes for _ in self._replay.identities]
        missing = {endpoint for endpoint, feeder in zip(endpoints, feeders, strict=True) if not feeder.is_connected}
        return ReplayState(
            meps=self._meps,
            events=self._events,
            bytes=sum(feeder.bytes for feeder in feeders),
            backlog=_backlog(feeders),
            credits=sum(feeder.window.limit for feeder in feeders) // max(1, len(self._replay.identities)),
            is_paused=self._pacer.is_paused,
            is_ending=self._is_ending,
            missing=tuple(sorted(missing)),
        )


def _backlog(feeders: Sequence[Feeder]) -> int:
    return len({mep for feeder in feeders for mep in feeder.window.meps()})
