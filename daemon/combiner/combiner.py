"""The combiner: its ROUTER socket, its nodes, and who may ask for external windows.

One thread reads messages and sends windows. Its state is in memory only. A combiner that is started again decides the
slices anew whose seeds the nodes send again; it has forgotten external windows, which nodes remember.
"""

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import zmq
from zmq.auth.thread import ThreadAuthenticator

from hltnode.client.keys import load_key_pair
from hltnode.daemon.combiner.seed_joiner import MAX_NODES, Decision, JoinRules, SeedError, SeedJoiner
from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.peer import Peer
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import CombinerRefusal, ConnectionRefusal, Endpoint
from hltnode.daemon.common.zmq_sockets import ACKNOWLEDGED_WITHIN_MS, bind_socket
from hltnode.daemon.monitoring.operation_counters import OperationCounters
from hltnode.daemon.security.connection_limiter import ConnectionLimiter
from hltnode.daemon.security.connection_table import ConnectionLimits
from hltnode.daemon.security.curve_keys import load_allow_list
from hltnode.daemon.security.descriptors import limits_that_fit, raise_limit
from hltnode.daemon.security.input_watch import SMALL_BYTES, InputRules
from hltnode.daemon.security.message_budget import MessageBudget
from hltnode.daemon.security.message_parts import CollectedMessage, MessageParts
from hltnode.daemon.security.received_input import ReceivedInput, address_of, key_of
from hltnode.protocol.errors import MessageError
from hltnode.protocol.transport.messages import as_remark
from hltnode.protocol.transport.seed_messages import (
    MAX_SEED_MESSAGE,
    FromCombiner,
    Join,
    Joined,
    Keep,
    KeepReply,
    NotJoined,
    SliceSeeds,
    decode_to_combiner,
    encode_from_combiner,
)

LOST_NS = 5_000_000_000
"""A node says every second who it is."""
QUEUE = 64
"""Windows of 1 MiB at most that wait for a node. A node that does not read them asks again."""
POLL_MS = 20
TURN = 512
"""Parts of messages, two of each, that are read before waiting slices are checked."""
LIMITS = ConnectionLimits(connections=1024, per_address=128, this_machine=512)
INPUT_RULES = InputRules(
    message_bytes=MAX_SEED_MESSAGE + SMALL_BYTES,
    total_bytes=128 << 20,
    stalled_ns=10_000_000_000,
    # A node sends a message every second.
    idle_ns=60_000_000_000,
)
"""Limits on connections, and on unfinished and waiting messages. If `--memory` is larger than `total_bytes`, it counts:
nodes that send all held seeds again are faster than the combiner."""
REFUSED_OF_ALL, REFUSED_OF_ADDRESS = (256.0, 64.0), (64.0, 16.0)
"""Refused messages that are answered, at once and a second."""
STRANGE = frozenset({CombinerRefusal.MALFORMED, CombinerRefusal.NOT_PERMITTED})
"""Refusals that no correct peer goes on to cause: with many of them, the connection ends."""
LOG_INTERVAL_NS = 10_000_000_000
REPORT_NS = 10_000_000_000
"""Period of the line about what was done."""
ZAP_DOMAIN = "combiner"

log = get_logger("combiner")


@dataclass(frozen=True, slots=True)
class CombinerAccess:
    """Keys of a combiner. Without a key pair, every node may join, and operators must be on this machine.

    nodes, operators: public keys with their names.
    """

    key_file: Path | None = None
    nodes: Mapping[bytes, str] | None = None
    operators: Mapping[bytes, str] | None = None

    @classmethod
    def load(cls, key_file: Path | None, nodes: Path | None, operators: Path | None) -> "CombinerAccess":
        """Read the allow-lists. Raises SecurityError, and ValueError for options that do not fit."""
        if key_file is None and (nodes is not None or operators is not None):
            raise ValueError("--nodes-dir and --operators-dir are expected together with --secret-key")
        if key_file is not None and nodes is None:
            raise ValueError("--nodes-dir is expected with --secret-key: without it no node can connect")
        lists = [None if each is None else load_allow_list(each) for each in (nodes, operators)]
        return cls(key_file, lists[0], lists[1])

    def callback(self, _domain: str, key: bytes) -> bool:
        """Whether a key may connect; pyzmq's authenticator calls it."""
        return key in (self.nodes or ()) or key in (self.operators or ())

    def may_join(self, peer: Peer) -> bool:
        """Whether a peer may send seeds."""
        return self.key_file is None or peer.key.encode() in (self.nodes or ())

    def may_keep(self, peer: Peer) -> bool:
        """Whether a peer may ask for external windows."""
        return peer.is_local if self.key_file is None else peer.key.encode() in (self.operators or ())


class Sender:
    """The sender of a message: the identity of its connection, and the last part, which has its properties."""

    __slots__ = ("identity", "last", "peer")

    def __init__(self, identity: bytes, last: zmq.Frame) -> None:
        self.identity = identity
        self.last = last
        self.peer = Peer(address_of(last), key_of(last))


@dataclass(slots=True)
class NodeState:
    """A node that has joined. reports: number of slices that it reported. external: external windows it was sent.

    run, held_from_ns: the start of the oldest slice that it holds.
    """

    identity: bytes
    peer: Peer
    session: str
    chain: str
    seen_ns: int
    reports: int = 0
    is_lost: bool = False
    external: int = 0
    run: int = 0
    held_from_ns: int = 0

    def is_of(self, peer: Peer) -> bool:
        """Whether a peer is this node, perhaps started again: it has its key, or without keys its address."""
        return self.peer.key == peer.key and (bool(peer.key) or self.peer.address == peer.address)


class Combiner:
    """Serves nodes and operators from `open` to `close`; `turn` does what is to be done.

    Raises (open): BindError, SecurityError, DescriptorLimitError.
    """

    def __init__(
        self, rules: JoinRules, access: CombinerAccess, *, clock_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self.joiner = SeedJoiner(rules)
        self.session = secrets.token_hex(8)
        self.nodes: dict[str, NodeState] = {}
        self.unsent = 0
        self.refused = dict.fromkeys(CombinerRefusal, 0)
        self.operation = OperationCounters.of_socket(Endpoint.COMBINER)
        self._access = access
        self._clock_ns = clock_ns
        self._limit = RateLimit(LOG_INTERVAL_NS, clock_ns)
        self._names: dict[bytes, str] = {}
        self._reported_ns = clock_ns()
        self._reported = 0
        self._authenticator: ThreadAuthenticator | None = None
        self._received = ReceivedInput(encrypted=access.key_file is not None)
        self._messages = MessageParts(self._received, 2)
        self._budget = MessageBudget(REFUSED_OF_ALL, REFUSED_OF_ADDRESS)
        self._limiter_failed: BaseException | None = None

    def open(self, endpoint: str) -> None:
        """Bind the socket."""
        limits = limits_that_fit(LIMITS, 1, raise_limit())
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._context.set(zmq.MAX_SOCKETS, 4 * LIMITS.connections)
        self._limiter = ConnectionLimiter(
            self._context, limits, self.operation, self._limiter_crashed, clock_ns=self._clock_ns
        )
        options = {
            zmq.SNDHWM: QUEUE,
            zmq.MAXMSGSIZE: MAX_SEED_MESSAGE,
            zmq.ROUTER_MANDATORY: 1,
            zmq.TCP_MAXRT: ACKNOWLEDGED_WITHIN_MS,
        }
        try:
            self._socket, self.endpoint = bind_socket(self._context, zmq.ROUTER, endpoint, options, self._prepare)
        except BaseException:
            self._stop_security()
            self._context.term()
            raise
        rules = self.joiner.rules
        log.info(
            "combiner_ready",
            endpoint=self.endpoint,
            session=self.session,
            nodes=rules.nodes,
            min_nodes=rules.min_nodes,
            distance_ns=rules.distance_ns,
            wait_ms=rules.wait_ns // 1_000_000,
        )

    def close(self) -> None:
        """Close the socket; windows on their way are lost, and the nodes ask again."""
        self._socket.close(linger=0)
        self._stop_security()
        self._context.term()

    def turn(self) -> None:
        """Wait a moment for messages, answer them, and decide the slices whose time is over."""
        if self._limiter_failed is not None:
            raise self._limiter_failed
        self._socket.poll(POLL_MS)
        for _ in range(TURN):
            try:
                part = self._socket.recv(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                self._received.tally.empty()
                break
            message = self._messages.add(part)
            if message is not None:
                self._arrived(Sender(message.parts[0].bytes, part), message)
        now_ns = self._clock_ns()
        self._send_windows(self.joiner.tick(now_ns))
        self._note_lost(now_ns)
        self._report(now_ns)

    @property
    def input_rules(self) -> InputRules:
        """Limits on unfinished and waiting messages."""
        return replace(INPUT_RULES, total_bytes=max(INPUT_RULES.total_bytes, self.joiner.rules.max_bytes))

    def _limiter_crashed(self, error: BaseException) -> None:
        self._limiter_failed = error

    def _prepare(self, socket: zmq.Socket[bytes]) -> None:
        self._limiter.watch(socket, Endpoint.COMBINER, self._received, self.input_rules)
        if self._access.key_file is None:
            return
        pair = load_key_pair(self._access.key_file)
        self._authenticator = ThreadAuthenticator(self._context)
        self._authenticator.start()
        self._authenticator.configure_curve_callback(ZAP_DOMAIN, self._access)
        socket.setsockopt(zmq.CURVE_SERVER, 1)
        socket.setsockopt(zmq.CURVE_SECRETKEY, pair.secret)
        socket.setsockopt_string(zmq.ZAP_DOMAIN, ZAP_DOMAIN)

    def _stop_security(self) -> None:
        self._limiter.close()
        if self._authenticator is not None:
            self._authenticator.stop()
            self._authenticator = None

    def _arrived(self, sender: Sender, collected: CollectedMessage) -> None:
        try:
            if collected.n_parts != 2:
                text = f"a message of one part expected, not of {collected.n_parts - 1}"
                self._refuse(sender, CombinerRefusal.MALFORMED, text)
                return
            message = decode_to_combiner(collected.parts[1].buffer)
        except MessageError as error:
            self._refuse(sender, CombinerRefusal.MALFORMED, str(error))
            return
        if isinstance(message, Keep):
            self._keep(sender, message)
        elif not self._access.may_join(sender.peer):
            self._refuse(sender, CombinerRefusal.NOT_PERMITTED, "this key is not among those of the nodes")
        elif isinstance(message, Join):
            self._join(sender, message)
        else:
            self._take_seeds(sender, message)

    def _join(self, sender: Sender, message: Join) -> None:
        now_ns, identity = self._clock_ns(), sender.identity
        known = self.nodes.get(message.node)
        if known is not None and not known.is_lost and not known.is_of(sender.peer):
            text = f"another node is connected as {message.node}: expected a node.name that no other node has"
            self._refuse(sender, CombinerRefusal.NAME_TAKEN, text)
            return
        if known is None and len(self.nodes) >= MAX_NODES:
            lost = [name for name, node in self.nodes.items() if node.is_lost]
            if not lost:
                self._refuse(sender, CombinerRefusal.FULL, f"{MAX_NODES} nodes have joined already")
                return
            self._forget_name(self.nodes.pop(lost[0]).identity, lost[0])
        if known is None or known.identity != identity:
            if known is not None:
                self._forget_name(known.identity, message.node)
            known = self.nodes[message.node] = NodeState(identity, sender.peer, message.session, message.chain, now_ns)
            self._names[identity] = message.node
            log.info("node_joined", node=message.node, session=message.session, chain=message.chain)
        elif known.is_lost:
            log.info("node_is_back", node=message.node)
        known.seen_ns, known.is_lost = now_ns, False
        known.run, known.held_from_ns = message.run, message.held_from_ns
        self._send(identity, Joined(self.session))
        self._send_external(known)

    def _forget_name(self, identity: bytes, name: str) -> None:
        # A connection may have joined under several names.
        if self._names.get(identity) == name:
            del self._names[identity]

    def _take_seeds(self, sender: Sender, message: SliceSeeds) -> None:
        name = self._names.get(sender.identity)
        if name is None:
            # The node does not know yet that this is another session of the combiner: it sends them again.
            self._refuse(sender, CombinerRefusal.NOT_JOINED, "seeds before the message `join`")
            return
        node = self.nodes[name]
        node.seen_ns = self._clock_ns()
        node.reports += 1
        try:
            decided = self.joiner.report(node.seen_ns, name, message)
        except SeedError as error:
            self._refuse(sender, CombinerRefusal.CONTRADICTION, str(error))
            return
        self._send_windows(decided)

    def _keep(self, sender: Sender, message: Keep) -> None:
        identity, peer = sender.identity, sender.peer
        if not self._access.may_keep(peer):
            self.refused[CombinerRefusal.NOT_PERMITTED] += 1
            if (left_out := self._limit.due("operator_refused")) is not None:
                log.warning("operator_refused", address=peer.address, key=peer.key, left_out=left_out)
            self._send(identity, KeepReply(message.request, False, message.run, "not an operator: see SECURITY.md"))
            return
        held_from: dict[int, list[int]] = {}
        for node in self.nodes.values():
            if not node.is_lost:
                held_from.setdefault(node.run, []).append(node.held_from_ns)
        reply, window = self.joiner.keep(message, held_from)
        self.refused[CombinerRefusal.EXTERNAL] += not reply.ok
        log.info("external_window", address=peer.address, ok=reply.ok, run=reply.run, text=reply.text,
                 start_ns=message.start_ns, end_ns=message.end_ns)  # fmt: skip
        if window is not None:
            for node in self.nodes.values():
                self._send_external(node)
        self._send(identity, reply)

    def _send_windows(self, decided: list[Decision]) -> None:
        for windows, names in decided:
            for name in names:
                if (node := self.nodes.get(name)) is not None:
                    self._send(node.identity, windows)

    def _send_external(self, node: NodeState) -> None:
        """Send the external windows that a node lacks. What its queue does not take follows with its next `join`."""
        windows = self.joiner.external
        while node.external < len(windows) and self._send(node.identity, windows[node.external]):
            node.external += 1

    def _send(self, identity: bytes, message: FromCombiner) -> bool:
        """False if the node has gone, or does not read its messages."""
        try:
            self._socket.send_multipart((identity, encode_from_combiner(message)), zmq.NOBLOCK)
        except zmq.ZMQError as error:
            if error.errno not in (zmq.EAGAIN, zmq.EHOSTUNREACH):
                raise
            # A node that is still there sends its seeds again.
            self.unsent += 1
            return False
        return True

    def _refuse(self, sender: Sender, reason: CombinerRefusal, text: str) -> None:
        """Refuse a message. With many of them its sender gets no more answers; a stranger's connection ends."""
        self.refused[reason] += 1
        now_ns = self._clock_ns()
        if (left_out := self._limit.due(reason)) is not None:
            log.warning("message_refused", reason=reason, text=text, address=sender.peer.address, left_out=left_out)
        if self._budget.admits_stranger(sender.peer.address, 0, now_ns):
            self._send(sender.identity, NotJoined(as_remark(text)))
        elif reason in STRANGE and self._budget.is_flood(sender.identity, now_ns):
            self._received.report(sender.last, ConnectionRefusal.FLOOD)

    def _note_lost(self, now_ns: int) -> None:
        for name, node in self.nodes.items():
            if not node.is_lost and now_ns - node.seen_ns > LOST_NS:
                node.is_lost = True
                log.warning("node_lost", node=name, silent_s=round((now_ns - node.seen_ns) / 1e9, 1))

    def _report(self, now_ns: int) -> None:
        counts = self.joiner.counts
        if now_ns - self._reported_ns < REPORT_NS or counts.reports == self._reported:
            return
        self._reported_ns, self._reported = now_ns, counts.reports
        log.info(
            "combined",
            nodes=sum(not node.is_lost for node in self.nodes.values()),
            **{str(how): n for how, n in counts.slices.items()},
            waiting=self.joiner.open_slices,
            seeds=counts.seeds,
            windows=counts.windows,
            repeated=counts.repeated,
        )
