"""The supervisor: the feeder process that sends ODIN assigns MEPs to nodes.

It uses the credits and acknowledgements of its first connection to each node, and answers the feeders of other
processes, which follow it. If a node is lost for some seconds, its unacknowledged MEPs are revoked and assigned to
other nodes. A node that returns must remove the events of these MEPs from its files. Decisions are remembered, so the
process can be killed and restarted.
"""

import asyncio
import secrets
from collections.abc import Collection, Sequence

import zmq
import zmq.asyncio

from hltnode.client.feeder import Feeder
from hltnode.client.sockets import LINGER_MS
from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.zmq_sockets import BOUND, MAX_CONTROL_BYTES, make_routing_ids_unpredictable
from hltnode.daemon.replay.assignment import DONE, AssignmentList, NodeChoice, node_for_moved
from hltnode.daemon.replay.assignment_memory import AssignmentMemory
from hltnode.daemon.replay.follower import FOLLOW_SECONDS
from hltnode.daemon.replay.nodes import Nodes
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.transport.assignments import (
    MAX_ENTRIES,
    Assignments,
    Follow,
    decode_assignment_message,
    encode_assignment_message,
)
from hltnode.protocol.transport.messages import MAX_MEP_ID

# A node that reconnects within this time keeps its MEPs: a short loss of the connection moves no MEP.
REASSIGN_SECONDS = 3.0
# Messages from the nodes are processed together after this time: one pass checks all assigned MEPs, and sending does
# not wait for it.
NEWS_SECONDS = 0.1
# A follower that does not repeat its request within this time is gone.
FOLLOWER_GONE_NS = round(3e9 * FOLLOW_SECONDS)

# Largest number of followers that are answered; others wait for a place.
MAX_FOLLOWERS = 4096
# The end waits this long for followers that do not take their answers. Afterwards they find the supervisor gone, and
# use the acknowledgements of the nodes.
FINISH_NS = 10_000_000_000
SHOWN_LETTERS = 500

log = get_logger("supervisor")


class Supervisor:
    """Assigns MEPs, and answers the feeders of other processes if it has an endpoint.

    Feeders of an `earlier` run of the same replay are told that all its MEPs are acknowledged. Those of a `later` run
    wait: they get answers without assignments.

    Created before the connections start. Raises zmq.ZMQError if the endpoint cannot be bound.
    """

    def __init__(
        self,
        nodes: Nodes,
        memory: AssignmentMemory,
        context: zmq.asyncio.Context | None = None,
        endpoint: str | None = None,
        *,
        earlier: Collection[int] = (),
        later: Collection[int] = (),
    ) -> None:
        self._nodes = nodes
        self._earlier, self._later = earlier, later
        self._memory = memory
        self._list = AssignmentList(memory.next_mep, memory.assigned())
        self._begun_ns = nodes.clock.monotonic_ns()
        self._first_connected_ns: int | None = None
        self._knows_nodes = False
        self._confirmed_below = 0
        self._session = secrets.token_hex(8)
        self._choice = NodeChoice(len(nodes.groups))
        self._requests: dict[bytes, tuple[int, Follow]] = {}
        """The last request of each follower, and its time."""
        self._unanswered: set[bytes] = set()
        self._news = asyncio.Event()
        self._socket: zmq.asyncio.Socket | None = None
        for index, group in enumerate(nodes.groups):
            group.leader.supervising = len(nodes.groups) > 1
            group.leader.session = memory.session
            group.leader.window.remember_revoked(memory.revoked(index))
            group.leader.may_revoke = not memory.continues
            for feeder in group.feeders[1:]:
                feeder.window.retains = True
        if context is not None and endpoint is not None:
            make_routing_ids_unpredictable()
            self._socket = context.socket(zmq.ROUTER)
            self._socket.setsockopt(zmq.LINGER, LINGER_MS)
            self._socket.setsockopt(zmq.MAXMSGSIZE, MAX_CONTROL_BYTES)
            for option, value in BOUND.items():
                self._socket.setsockopt(option, value)
            self._socket.bind(endpoint)

    def is_acknowledged(self, mep: int) -> bool:
        """True if a node acknowledged a MEP, to this or to an earlier process."""
        return self._list.is_acknowledged(mep) or self._nodes.is_done(mep)

    def node_for(self, mep: int) -> int | None:
        """The node chosen by an earlier process, or the one with the largest fraction of free credits."""
        if not self._knows_all_nodes():
            return None
        if self.is_acknowledged(mep):
            if mep >= self._list.next_mep:
                self._list.skip(mep)
                self._memory.skip(mep)
            return DONE
        if mep in self._list.node_of:
            return self._list.node_of[mep]
        if len(self._list.node_of) >= MAX_ENTRIES:
            return None
        for index, group in enumerate(self._nodes.groups):
            leader = group.leader
            self._choice.set_share(index, leader.window.free_share if leader.is_connected else 0.0)
        node = self._choice.choose()
        if node is not None:
            self._memory.assign(mep, node)
            self._list.assign(mep, node)
            self._news.set()
        return node

    def _knows_all_nodes(self) -> bool:
        """Whether each node reported its acknowledged MEPs or is lost; before, a MEP could go to a second node."""
        if not self._knows_nodes:
            leaders = [group.leader for group in self._nodes.groups]
            if any(leader.is_connected for leader in leaders):
                now_ns = self._nodes.clock.monotonic_ns()
                if self._first_connected_ns is None:
                    self._first_connected_ns = now_ns
                waited_long = now_ns - self._first_connected_ns >= REASSIGN_SECONDS * 1e9
                if waited_long or all(leader.is_connected for leader in leaders):
                    self._knows_nodes = True
                    self._begin_to_revoke(leaders)
        return self._knows_nodes

    def _begin_to_revoke(self, leaders: Sequence[Feeder]) -> None:
        """Check the remembered assignments: if a node finished an unassigned MEP, the file is an outdated copy.

        With an outdated copy, a node could be told to remove events that no other node has.
        """
        outdated = any(leader.window.acked.ranges(self._list.next_mep) for leader in leaders)
        if outdated:
            log.warning("assignments_outdated", remembered_below=self._list.next_mep)
        for leader in leaders:
            if outdated:
                leader.window.forget_revoked()
            leader.may_revoke = True

    async def work(self) -> None:
        """Monitor the nodes and answer the other feeders."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch())
            if self._socket is not None:
                tasks.create_task(self._receive(self._socket))
                tasks.create_task(self._answer_all(self._socket))

    async def _watch(self) -> None:
        nodes = self._nodes
        while True:
            due_ns = self._due_ns()
            now_ns = nodes.clock.monotonic_ns()
            await nodes.clock.wait(nodes.news, None if due_ns is None else max(0, due_ns - now_ns) * 1e-9)
            if nodes.news.is_set():
                await nodes.clock.sleep(NEWS_SECONDS)
            nodes.news.clear()
            self.note_acknowledged()
            self.reassign_lost()
            self._forget_confirmed()
            gone_ns = self._nodes.clock.monotonic_ns() - FOLLOWER_GONE_NS
            for identity in [asking for asking, (came_ns, _) in self._requests.items() if came_ns <= gone_ns]:
                del self._requests[identity]
                self._unanswered.discard(identity)
            # Senders may wait for these decisions, or only for the time.
            nodes.changed.set()

    def _due_ns(self) -> int | None:
        """Time of the next work without a message: a node counts as lost, or a follower as gone."""
        now_ns, long_ns = self._nodes.clock.monotonic_ns(), round(REASSIGN_SECONDS * 1e9)
        due = [came_ns + FOLLOWER_GONE_NS for came_ns, _ in self._requests.values()]
        lost = (group.leader for group in self._nodes.groups if not group.leader.is_connected)
        due += [self._lost_since_ns(leader, now_ns) + long_ns for leader in lost]
        if not self._knows_nodes and self._first_connected_ns is not None:
            due.append(self._first_connected_ns + long_ns)
        # Overdue work that could not be done waits for a message.
        return min((each for each in due if each > now_ns), default=None)

    def note_acknowledged(self) -> None:
        """MEPs acknowledged to the first connection of a node stay at that node."""
        groups = self._nodes.groups
        for mep, node in list(self._list.node_of.items()):
            window = groups[node].leader.window
            if self._nodes.is_done(mep) or (mep < self._nodes.next_mep and mep not in window):
                self._memory.acknowledged(mep)
                self._list.acknowledged(mep)
                self._nodes.release(mep)
                self._news.set()

    def _forget_confirmed(self) -> None:
        below = min(self._nodes.floor(), *(group.leader.window.confirmed for group in self._nodes.groups))
        if below > self._confirmed_below:
            self._confirmed_below = below
            self._memory.confirmed_below(below)

    def reassign_lost(self) -> None:
        """Assign the unacknowledged MEPs of lost nodes to connected nodes."""
        if not self._knows_all_nodes():
            return
        leaders = [group.leader for group in self._nodes.groups]
        connected = [i for i, leader in enumerate(leaders) if leader.is_connected]
        now_ns = self._nodes.clock.monotonic_ns()
        for lost, leader in enumerate(leaders):
            if connected and now_ns - self._lost_since_ns(leader, now_ns) >= REASSIGN_SECONDS * 1e9:
                self._reassign(lost, connected)

    def _lost_since_ns(self, leader: Feeder, now_ns: int) -> int:
        if leader.is_connected:
            return now_ns
        return self._begun_ns if leader.lost_since_ns is None else leader.lost_since_ns

    def _reassign(self, lost: int, connected: Sequence[int]) -> None:
        windows = [group.leader.window for group in self._nodes.groups]
        moved = []
        for mep in [mep for mep, node in self._list.node_of.items() if node == lost]:
            if self._nodes.is_done(mep):
                continue
            node = node_for_moved(mep, connected, windows)
            if node is not None:
                self._memory.move(mep, lost, node)
                self._list.assign(mep, node)
                self._nodes.move(mep, lost, node)
                moved.append(mep)
        if moved:
            endpoint = self._nodes.groups[lost].endpoint
            log.warning("node_lost", node=endpoint, meps=len(moved), first=moved[0], last=moved[-1])
            self._news.set()

    @property
    def _followers(self) -> list[Follow]:
        """The last request of each follower of this run."""
        run = self._nodes.feeders[0].identity.run
        return [f for _, f in self._requests.values() if f.run == run and not self._why_not_served(f)]

    async def _receive(self, socket: zmq.asyncio.Socket) -> None:
        while True:
            parts = await socket.recv_multipart()
            try:
                message = decode_assignment_message(parts[-1])
            except ProtocolError as error:
                log.warning("bad_assignment_message", error=str(error))
                continue
            if isinstance(message, Follow) and len(parts) == 2 and self._has_place(parts[0]):
                is_repeated = parts[0] in self._unanswered
                self._requests[parts[0]] = (self._nodes.clock.monotonic_ns(), message)
                self._unanswered.add(parts[0])
                # The end waits until the followers know all assignments.
                self._nodes.changed.set()
                if is_repeated:
                    # No news for a while: answer anyway, so the follower knows that the supervisor is alive.
                    await self._answer(socket, parts[0], self.answer_to(message))
                self._news.set()

    def _has_place(self, identity: bytes) -> bool:
        return identity in self._requests or len(self._requests) < MAX_FOLLOWERS

    async def _answer_all(self, socket: zmq.asyncio.Socket) -> None:
        """Answer requests as soon as there are new assignments."""
        while True:
            await self._news.wait()
            self._news.clear()
            for identity in list(self._unanswered):
                answer = self.answer_to(self._requests[identity][1])
                if answer.meps or answer.everything or answer.error:
                    await self._answer(socket, identity, answer)

    async def _answer(self, socket: zmq.asyncio.Socket, identity: bytes, answer: Assignments) -> None:
        self._unanswered.discard(identity)
        await socket.send_multipart([identity, encode_assignment_message(answer)])

    def answer_to(self, follow: Follow) -> Assignments:
        """The assignments that a follower does not know yet."""
        error = self._why_not_served(follow)
        if error or follow.run in self._later:
            return Assignments(self._session, 0, 0, (), (), False, error)
        if follow.run in self._earlier:
            return Assignments(self._session, 0, MAX_MEP_ID, (), (), True, "")
        known = follow.session == self._session
        entries, position, everything = self._list.since(follow.position if known else None, MAX_ENTRIES)
        meps, nodes = zip(*entries, strict=True) if entries else ((), ())
        next_mep = self._list.next_mep if position == self._list.end else 0
        return Assignments(self._session, position, next_mep, meps, nodes, everything, "")

    def _why_not_served(self, follow: Follow) -> str:
        mine = " ".join(group.endpoint for group in self._nodes.groups)
        if follow.nodes != mine:
            return f"supervisor has nodes {mine}, not {follow.nodes[:SHOWN_LETTERS]}"
        run = self._nodes.feeders[0].identity.run
        if follow.run == run or follow.run in self._earlier or follow.run in self._later:
            return ""
        return f"supervisor feeds run {run}, not {follow.run}"

    async def finish(self) -> None:
        """Wait until the present followers know that all MEPs are acknowledged, for a limited time."""
        self.note_acknowledged()
        if self._socket is None:
            return
        end_ns = self._nodes.clock.monotonic_ns() + FINISH_NS
        while any(follow.session != self._session or follow.position != self._list.end for follow in self._followers):
            if self._nodes.clock.monotonic_ns() >= end_ns:
                log.warning("followers_left_behind", followers=len(self._followers))
                return
            await self._nodes.wait()

    def close(self) -> None:
        """Close the socket and the file."""
        self._memory.close()
        if self._socket is not None:
            self._socket.close()
