"""The combiner: its ROUTER socket, its nodes, and who may ask for external windows.

One thread reads messages and sends windows. Its state is in memory only. A combiner that is started again decides the
slices anew whose seeds the nodes send again; it has forgotten external windows, which nodes remember.
"""

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import zmq
from zmq.auth.thread import ThreadAuthenticator

from hltnode.client.keys import load_key_pair
from hltnode.daemon.combiner.seed_joiner import MAX_NODES, Decision, JoinRules, SeedError, SeedJoiner
from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.peer import Peer
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.zmq_sockets import ACKNOWLEDGED_WITHIN_MS, bind_socket
from hltnode.daemon.security.curve_keys import load_allow_list
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
QUEUE = 256
"""Messages of one peer that wait on each side."""
POLL_MS = 20
TURN = 256
"""Messages that are read before waiting slices are checked."""
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


@dataclass(slots=True)
class NodeState:
    """A node that has joined. reports: number of slices that it reported. external: external windows it was sent."""

    identity: bytes
    session: str
    chain: str
    seen_ns: int
    reports: int = 0
    is_lost: bool = False
    external: int = 0


class Combiner:
    """Serves nodes and operators from `open` to `close`; `turn` does what is to be done.

    Raises (open): BindError, SecurityError.
    """

    def __init__(
        self, rules: JoinRules, access: CombinerAccess, *, clock_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self.joiner = SeedJoiner(rules)
        self.session = secrets.token_hex(8)
        self.nodes: dict[str, NodeState] = {}
        self.unsent = self.refused = 0
        self._access = access
        self._clock_ns = clock_ns
        self._limit = RateLimit(LOG_INTERVAL_NS, clock_ns)
        self._names: dict[bytes, str] = {}
        self._reported_ns = clock_ns()
        self._reported = 0
        self._authenticator: ThreadAuthenticator | None = None

    def open(self, endpoint: str) -> None:
        """Bind the socket."""
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        options = {
            zmq.SNDHWM: QUEUE,
            zmq.RCVHWM: QUEUE,
            zmq.MAXMSGSIZE: MAX_SEED_MESSAGE,
            zmq.ROUTER_MANDATORY: 1,
            zmq.TCP_MAXRT: ACKNOWLEDGED_WITHIN_MS,
        }
        try:
            self._socket, self.endpoint = bind_socket(self._context, zmq.ROUTER, endpoint, options, self._prepare)
        except BaseException:
            self._stop_authenticator()
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
        self._stop_authenticator()
        self._context.term()

    def turn(self) -> None:
        """Wait a moment for messages, answer them, and decide the slices whose time is over."""
        self._socket.poll(POLL_MS)
        for _ in range(TURN):
            try:
                parts = self._socket.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                break
            self._arrived(parts)
        now_ns = self._clock_ns()
        self._send_windows(self.joiner.tick(now_ns))
        self._note_lost(now_ns)
        self._report(now_ns)

    def _prepare(self, socket: zmq.Socket[bytes]) -> None:
        if self._access.key_file is None:
            return
        pair = load_key_pair(self._access.key_file)
        self._authenticator = ThreadAuthenticator(self._context)
        self._authenticator.start()
        self._authenticator.configure_curve_callback(ZAP_DOMAIN, self._access)
        socket.setsockopt(zmq.CURVE_SERVER, 1)
        socket.setsockopt(zmq.CURVE_SECRETKEY, pair.secret)
        socket.setsockopt_string(zmq.ZAP_DOMAIN, ZAP_DOMAIN)

    def _stop_authenticator(self) -> None:
        if self._authenticator is not None:
            self._authenticator.stop()
            self._authenticator = None

    def _arrived(self, parts: list[zmq.Frame]) -> None:
        identity = parts[0].bytes
        try:
            if len(parts) != 2:
                self._refuse(identity, f"a message of one part expected, not of {len(parts) - 1}")
                return
            message = decode_to_combiner(parts[1].buffer)
        except MessageError as error:
            self._refuse(identity, str(error))
            return
        peer = _peer(parts[1])
        if isinstance(message, Keep):
            self._keep(identity, peer, message)
        elif not self._access.may_join(peer):
            self._refuse(identity, "this key is not among those of the nodes")
        elif isinstance(message, Join):
            self._join(identity, message)
        else:
            self._take_seeds(identity, message)

    def _join(self, identity: bytes, message: Join) -> None:
        now_ns = self._clock_ns()
        known = self.nodes.get(message.node)
        if known is None and len(self.nodes) >= MAX_NODES:
            lost = [name for name, node in self.nodes.items() if node.is_lost]
            if not lost:
                self._refuse(identity, f"{MAX_NODES} nodes have joined already")
                return
            self._forget_name(self.nodes.pop(lost[0]).identity, lost[0])
        if known is None or known.identity != identity:
            if known is not None:
                self._forget_name(known.identity, message.node)
            self.nodes[message.node] = NodeState(identity, message.session, message.chain, now_ns)
            self._names[identity] = message.node
            log.info("node_joined", node=message.node, session=message.session, chain=message.chain)
        else:
            if known.is_lost:
                log.info("node_is_back", node=message.node)
            known.seen_ns, known.is_lost = now_ns, False
        self._send(identity, Joined(self.session))
        self._send_external(self.nodes[message.node])

    def _forget_name(self, identity: bytes, name: str) -> None:
        # A connection may have joined under several names.
        if self._names.get(identity) == name:
            del self._names[identity]

    def _take_seeds(self, identity: bytes, message: SliceSeeds) -> None:
        name = self._names.get(identity)
        if name is None:
            # The node does not know yet that this is another session of the combiner: it sends them again.
            self._refuse(identity, "seeds before the message `join`")
            return
        node = self.nodes[name]
        node.seen_ns = self._clock_ns()
        node.reports += 1
        try:
            decided = self.joiner.report(node.seen_ns, name, message)
        except SeedError as error:
            self.joiner.counts.refused += 1
            self._refuse(identity, str(error))
            return
        self._send_windows(decided)

    def _keep(self, identity: bytes, peer: Peer, message: Keep) -> None:
        if not self._access.may_keep(peer):
            self.refused += 1
            log.warning("operator_refused", address=peer.address, key=peer.key)
            self._send(identity, KeepReply(message.request, False, message.run, "not an operator: see SECURITY.md"))
            return
        reply, window = self.joiner.keep(message)
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

    def _refuse(self, identity: bytes, text: str) -> None:
        self.refused += 1
        if (left_out := self._limit.due("refused")) is not None:
            log.warning("message_refused", text=text, left_out=left_out)
        self._send(identity, NotJoined(as_remark(text)))

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


def _peer(frame: zmq.Frame) -> Peer:
    found = []
    for name in ("Peer-Address", "User-Id"):
        try:
            found.append(str(frame.get(name)))
        except zmq.ZMQError:
            found.append("")
    return Peer(*found)
