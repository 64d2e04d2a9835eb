"""A follower: its feeders send each MEP to the node chosen by the supervisor in another process."""

import asyncio

import zmq
import zmq.asyncio

from hltnode.client.feeder import FeederRefusedError
from hltnode.client.sockets import set_tcp_liveness
from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.zmq_sockets import MAX_CONTROL_BYTES
from hltnode.daemon.replay.assignment import DONE
from hltnode.daemon.replay.nodes import Nodes
from hltnode.protocol.transport.assignments import (
    ACKNOWLEDGED,
    Assignments,
    Follow,
    decode_assignment_message,
    encode_assignment_message,
)

# A follower repeats its request after this time; the supervisor always answers a repeated request.
FOLLOW_SECONDS = 1.0
# Without an answer for this time, the supervisor has ended or its machine is cut off.
SUPERVISOR_GONE_NS = 5_000_000_000
LOG_INTERVAL_NS = 10_000_000_000

log = get_logger("follower")


class FollowedList:
    """The decisions of the supervisor that this process knows."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._node_of: dict[int, int] = {}
        self._next_mep = 0
        self._session = ""
        self._position = 0
        for feeder in nodes.feeders:
            feeder.window.retains = True

    def request(self) -> Follow:
        """The request for the next assignments."""
        identity = self._nodes.feeders[0].identity
        endpoints = " ".join(group.endpoint for group in self._nodes.groups)
        return Follow(identity.name, identity.run, endpoints, self._session, self._position)

    def node_for(self, mep: int) -> int | None:
        """The node chosen by the supervisor."""
        if mep in self._node_of:
            return self._node_of.pop(mep)
        return DONE if self.is_acknowledged(mep) else None

    def is_acknowledged(self, mep: int) -> bool:
        """True if the supervisor will not choose a node for a MEP."""
        return mep < self._next_mep and mep not in self._node_of

    def take(self, message: Assignments) -> None:
        """Apply the decisions since the last message. Raises FeederRefusedError."""
        if message.error:
            raise FeederRefusedError(message.error)
        if message.session == self._session and message.position <= self._position:
            # A late answer to an earlier request, or an answer without new assignments.
            return
        self._session, self._position = message.session, message.position
        named = dict(zip(message.meps, message.nodes, strict=True))
        self._next_mep = max(self._next_mep, message.next_mep)
        if message.everything:
            for mep in self._held() - named.keys():
                if mep < message.next_mep:
                    self._nodes.release(mep)
            self._node_of.clear()
        for mep, node in named.items():
            if node == ACKNOWLEDGED:
                self._node_of.pop(mep, None)
                self._nodes.release(mep)
            elif node >= len(self._nodes.groups):
                raise FeederRefusedError(f"the supervisor assigns MEP {mep} to node {node}, which does not exist")
            elif mep < self._nodes.next_mep:
                self._nodes.move(mep, None, node)
            else:
                self._node_of[mep] = node
        self._nodes.changed.set()

    def _held(self) -> set[int]:
        return {mep for feeder in self._nodes.feeders for mep in feeder.window.meps()} | self._nodes.retained


class Follower:
    """Follows the assignments of the supervisor in another process."""

    def __init__(self, nodes: Nodes, context: zmq.asyncio.Context, endpoint: str) -> None:
        self._nodes = nodes
        self._list = FollowedList(nodes)
        self._heard_ns = nodes.clock.monotonic_ns()
        self._limit = RateLimit(LOG_INTERVAL_NS, nodes.clock.monotonic_ns)
        self._socket = context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.MAXMSGSIZE, MAX_CONTROL_BYTES)
        set_tcp_liveness(self._socket)
        self._socket.connect(endpoint)

    def is_acknowledged(self, mep: int) -> bool:
        """True if the supervisor says so, or the nodes after the supervisor ended."""
        return self._list.is_acknowledged(mep) or (self._supervisor_is_gone and self._nodes.is_done(mep))

    def node_for(self, mep: int) -> int | None:
        """The node chosen by the supervisor."""
        node = self._list.node_for(mep)
        return DONE if node is None and self.is_acknowledged(mep) else node

    @property
    def _supervisor_is_gone(self) -> bool:
        return self._nodes.clock.monotonic_ns() - self._heard_ns > SUPERVISOR_GONE_NS

    async def work(self) -> None:
        """Request assignments continuously, each time after the last received one."""
        while True:
            await self._socket.send(encode_assignment_message(self._list.request()))
            try:
                async with asyncio.timeout(FOLLOW_SECONDS):
                    raw = await self._socket.recv()
            except TimeoutError:
                if self._limit.due("silent") is not None:
                    log.info("waiting_for_supervisor", feeder=self._nodes.feeders[0].identity.name)
                continue
            message = decode_assignment_message(raw)
            if isinstance(message, Assignments):
                self._heard_ns = self._nodes.clock.monotonic_ns()
                self._list.take(message)

    async def finish(self) -> None:
        """Wait until the supervisor also has all acknowledgements, or has ended."""
        while self._nodes.unacknowledged or self._nodes.retained:
            if self._supervisor_is_gone and not self._nodes.unacknowledged:
                log.warning("supervisor_gone", meps=len(self._nodes.retained))
                for mep in self._nodes.retained:
                    self._nodes.release(mep)
                return
            await self._nodes.wait()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
