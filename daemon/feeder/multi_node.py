"""Several nodes serve the same feeders: every MEP goes as a whole to one node, and to another one if that node is lost.

One feeder, the supervisor (the one that sends ODIN), decides from the credits and acknowledgements that it gets; the
feeders of other processes follow it. When a node is lost for some seconds, its unacknowledged MEPs are revoked and
assigned to the others. When it comes back, it has to remove the events of these MEPs from its files, so that each event
is in the files of one node.
"""

import asyncio
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

import zmq
import zmq.asyncio

from hltnode.daemon.common.clock import SYSTEM_CLOCK, Clock
from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.mep_ranges import as_ranges
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.zmq_sockets import MAX_CONTROL_BYTES, set_heartbeat
from hltnode.daemon.feeder.assignment import AssignmentList, choose_node
from hltnode.daemon.feeder.feeder import Feeder, FeederRefusedError
from hltnode.daemon.feeder.mep_source import FeedMep
from hltnode.daemon.feeder.pacing import Pacer
from hltnode.daemon.feeder.single_node import FeedReport, make_report
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.transport.assignments import (
    MAX_ENTRIES,
    Assignments,
    Follow,
    decode_assignment_message,
    encode_assignment_message,
)

# A node that restarts within this time keeps its MEPs; longer than the heartbeat needs to notice, so that a lost
# connection alone moves nothing.
REASSIGN_SECONDS = 3.0
WATCH_SECONDS = 0.1
# A follower repeats its request after this time: the supervisor answers only when there is something new.
FOLLOW_SECONDS = 1.0
LOG_INTERVAL_NS = 10_000_000_000
DONE = -1

log = get_logger("multi_node")


class NodeGroup:
    """The connections of this process to one node."""

    def __init__(self, endpoint: str, feeders: Sequence[Feeder]) -> None:
        self.endpoint = endpoint
        self.feeders = feeders

    @property
    def leader(self) -> Feeder:
        """The connection whose credits and acknowledgements count."""
        return self.feeders[0]

    @property
    def unacknowledged(self) -> int:
        """MEPs that some connection keeps."""
        return max(feeder.window.unacknowledged for feeder in self.feeders)


class Assigner(Protocol):
    """Decides where a MEP goes."""

    def node_for(self, mep: int) -> int | None:
        """The node of a MEP as index, DONE for a MEP that is acknowledged; None as long as it is not known."""

    async def work(self) -> None:
        """The work beside the feeding; never returns."""


class Nodes:
    """All nodes as seen from one process: keeps MEPs, moves them, knows which are acknowledged."""

    def __init__(self, groups: Sequence[NodeGroup], clock: Clock = SYSTEM_CLOCK) -> None:
        self.groups = groups
        self.clock = clock
        self.next_mep = 0
        self.reassigned = 0
        self.changed = asyncio.Event()
        for group in groups:
            for feeder in group.feeders:
                feeder.on_change = self.changed.set
                feeder.floor = self.floor

    @property
    def unacknowledged(self) -> int:
        """MEPs that are kept."""
        return sum(group.unacknowledged for group in self.groups)

    def unconfirmed(self, *, reachable: bool) -> dict[str, list[tuple[int, int]]]:
        """MEPs whose revocation a node has not confirmed, by its endpoint; of nodes that are connected, or of all."""
        return {
            group.endpoint: as_ranges(group.leader.window.revoked)
            for group in self.groups
            if group.leader.window.revoked and group.leader.supervising and (group.leader.is_connected or not reachable)
        }

    def floor(self) -> int:
        """Below this id every MEP is acknowledged by some node."""
        windows = [feeder.window for group in self.groups for feeder in group.feeders]
        return min((w.first_unacknowledged for w in windows if w.unacknowledged), default=self.next_mep)

    def is_done(self, mep: int) -> bool:
        """True if a node has acknowledged a MEP, to this or an earlier session of the feeder."""
        return any(mep in group.leader.window.acked for group in self.groups)

    def keep(self, mep: FeedMep, node: int) -> None:
        """Keep a MEP for a node, or skip it if it is DONE."""
        self.next_mep = mep.mep + 1
        if node != DONE:
            for feeder in self.groups[node].feeders:
                feeder.keep(mep)

    def move(self, mep: int, to: int) -> None:
        """Give a MEP to another node."""
        for group in self.groups:
            if group is self.groups[to]:
                continue
            moved = False
            for old, new in zip(group.feeders, self.groups[to].feeders, strict=True):
                frames = old.window.revoke(mep) if mep in old.window else {}
                if frames:
                    new.window.add(mep, frames)
                    new.wake()
                    moved = True
            self.reassigned += moved

    async def wait(self, seconds: float | None = None) -> None:
        """Wait until something has changed, or for some time. Raises FeederRefusedError."""
        await self.clock.wait(self.changed, seconds)
        self.changed.clear()
        for group in self.groups:
            for feeder in group.feeders:
                feeder.check()


class Supervisor:
    """Decides, and answers the feeders of other processes if it has an endpoint to bind.

    Raises zmq.ZMQError: the endpoint cannot be bound.
    """

    def __init__(self, nodes: Nodes, context: zmq.asyncio.Context | None = None, endpoint: str | None = None) -> None:
        self._nodes = nodes
        self._list = AssignmentList()
        self._session = secrets.token_hex(8)
        self._last = -1
        self._waiting: dict[bytes, Follow] = {}
        self._news = asyncio.Event()
        self._socket: zmq.asyncio.Socket | None = None
        for group in nodes.groups:
            group.leader.supervising = True
        if context is not None and endpoint is not None:
            self._socket = context.socket(zmq.ROUTER)
            self._socket.setsockopt(zmq.LINGER, 0)
            self._socket.setsockopt(zmq.MAXMSGSIZE, MAX_CONTROL_BYTES)
            set_heartbeat(self._socket)
            self._socket.bind(endpoint)

    def node_for(self, mep: int) -> int | None:
        """The node with the most credits left."""
        if self._nodes.is_done(mep):
            self._list.skip(mep)
            return DONE
        if len(self._list.node_of) >= MAX_ENTRIES:
            return None
        rooms = [group.leader.window.room if group.leader.is_connected else 0 for group in self._nodes.groups]
        node = choose_node(rooms, self._last)
        if node is not None:
            self._last = node
            self._list.assign(mep, node)
            self._news.set()
        return node

    async def work(self) -> None:
        """Watch the nodes, and answer the other feeders."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch())
            if self._socket is not None:
                tasks.create_task(self._receive(self._socket))
                tasks.create_task(self._answer_all(self._socket))

    async def _watch(self) -> None:
        while True:
            await self._nodes.clock.sleep(WATCH_SECONDS)
            groups = self._nodes.groups
            for mep, node in list(self._list.node_of.items()):
                if mep not in groups[node].leader.window:
                    self._list.acknowledged(mep)
            connected = [i for i, group in enumerate(groups) if group.leader.is_connected]
            for index, group in enumerate(groups):
                lost_ns = group.leader.lost_since_ns
                if lost_ns is None or not connected:
                    continue
                if self._nodes.clock.monotonic_ns() - lost_ns >= REASSIGN_SECONDS * 1e9:
                    self._reassign(index, connected)

    def _reassign(self, lost: int, connected: Sequence[int]) -> None:
        groups = self._nodes.groups
        meps = groups[lost].leader.window.meps()
        if not meps:
            return
        log.warning("node_lost", node=groups[lost].endpoint, meps=len(meps), first=meps[0], last=meps[-1])
        for mep in meps:
            node = max(connected, key=lambda i: groups[i].leader.window.room)
            self._list.assign(mep, node)
            self._nodes.move(mep, node)
        self._news.set()

    async def _receive(self, socket: zmq.asyncio.Socket) -> None:
        while True:
            parts = await socket.recv_multipart()
            try:
                message = decode_assignment_message(parts[-1])
            except ProtocolError as error:
                log.warning("bad_assignment_message", error=str(error))
                continue
            if isinstance(message, Follow) and len(parts) == 2:
                self._waiting[parts[0]] = message
                self._news.set()

    async def _answer_all(self, socket: zmq.asyncio.Socket) -> None:
        """Answer the requests as soon as there is something new."""
        while True:
            await self._news.wait()
            self._news.clear()
            for identity, follow in list(self._waiting.items()):
                answer = self._answer(follow)
                if answer is not None:
                    del self._waiting[identity]
                    await socket.send_multipart([identity, encode_assignment_message(answer)])

    def _answer(self, follow: Follow) -> Assignments | None:
        mine = " ".join(group.endpoint for group in self._nodes.groups)
        if follow.nodes != mine:
            return Assignments(self._session, 0, 0, (), (), f"supervisor has nodes {mine}, not {follow.nodes}")
        known = follow.session == self._session
        if known and follow.position == self._list.end:
            return None
        entries, position = self._list.since(follow.position if known else None, MAX_ENTRIES)
        meps, nodes = zip(*entries, strict=True) if entries else ((), ())
        complete = position == self._list.end
        next_mep = self._list.next_mep if complete else 0
        return Assignments(self._session, position, next_mep, meps, nodes, "")

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self._socket.close()


class Follower:
    """Follows the assignments of the supervisor in another process."""

    def __init__(self, nodes: Nodes, context: zmq.asyncio.Context, endpoint: str) -> None:
        self._nodes = nodes
        self._node_of: dict[int, int] = {}
        self._next_mep = 0
        self._limit = RateLimit(LOG_INTERVAL_NS, nodes.clock.monotonic_ns)
        self._socket = context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.MAXMSGSIZE, MAX_CONTROL_BYTES)
        set_heartbeat(self._socket)
        self._socket.connect(endpoint)

    def node_for(self, mep: int) -> int | None:
        """The node that the supervisor has named."""
        if mep in self._node_of:
            return self._node_of.pop(mep)
        return DONE if mep < self._next_mep or self._nodes.is_done(mep) else None

    async def work(self) -> None:
        """Ask for assignments, always behind the last one that came."""
        session, position = "", 0
        identity = self._nodes.groups[0].leader.identity
        endpoints = " ".join(group.endpoint for group in self._nodes.groups)
        while True:
            follow = Follow(identity.name, identity.run, endpoints, session, position)
            await self._socket.send(encode_assignment_message(follow))
            try:
                async with asyncio.timeout(FOLLOW_SECONDS):
                    raw = await self._socket.recv()
            except TimeoutError:
                if self._limit.due("silent") is not None:
                    log.info("waiting_for_supervisor", feeder=identity.name)
                continue
            message = decode_assignment_message(raw)
            if not isinstance(message, Assignments):
                continue
            if message.error:
                raise FeederRefusedError(message.error)
            # The answer to an earlier request may come late; its entries are known already.
            if message.session != session or message.position > position:
                session, position = message.session, message.position
                self._apply(message)

    def _apply(self, message: Assignments) -> None:
        for mep, node in zip(message.meps, message.nodes, strict=True):
            if node >= len(self._nodes.groups):
                raise FeederRefusedError(f"the supervisor assigns MEP {mep} to node {node}, which is not there")
            if mep < self._nodes.next_mep:
                self._nodes.move(mep, node)
            else:
                self._node_of[mep] = node
        self._next_mep = max(self._next_mep, message.next_mep)
        self._nodes.changed.set()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


async def distribute_meps(
    meps: Iterable[FeedMep], nodes: Nodes, assigner: Assigner, *, rate: float | None = None
) -> FeedReport:
    """Send each MEP to the node that the assigner names, and wait for all acknowledgements.

    `rate` limits the events per second. Raises FeederRefusedError.
    """
    clock = nodes.clock
    start_ns = clock.monotonic_ns()
    pacer = Pacer(rate, clock)
    n_meps = n_events = 0
    working = asyncio.create_task(assigner.work())
    working.add_done_callback(lambda _: nodes.changed.set())
    feeders = [feeder for group in nodes.groups for feeder in group.feeders]
    try:
        for mep in meps:
            await pacer.admit(mep.n_events)
            while (node := assigner.node_for(mep.mep)) is None:
                await nodes.wait(WATCH_SECONDS)
                if working.done():
                    working.result()
            nodes.keep(mep, node)
            n_meps += 1
            n_events += mep.n_events
        for feeder in feeders:
            await feeder.end_run(nodes.next_mep - 1 if n_meps else None)
        while nodes.unacknowledged or nodes.unconfirmed(reachable=True):
            if working.done():
                working.result()
            await nodes.wait(WATCH_SECONDS)
        for feeder in feeders:
            await feeder.confirm()
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    seconds = (clock.monotonic_ns() - start_ns) * 1e-9
    report = make_report(feeders, n_meps, n_events, seconds, reassigned=nodes.reassigned)
    return replace(report, unconfirmed=nodes.unconfirmed(reachable=False))
