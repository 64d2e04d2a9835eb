"""Access to the sockets of a node: CURVE keys, roles of peers, limits on connections, the right to give commands."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import zmq
from zmq.auth.asyncio import AsyncioAuthenticator

from hltnode.client.keys import load_key_pair
from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.peer import Peer
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import SOCKET_ENDPOINTS, Endpoint, LoginFailure, Role
from hltnode.daemon.common.zmq_sockets import MAX_CONTROL_BYTES, largest_frame
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.configuration.node_sections import SecuritySection
from hltnode.daemon.monitoring.operation_counters import OperationCounters
from hltnode.daemon.security.connection_limiter import ConnectionLimiter
from hltnode.daemon.security.connection_table import ConnectionLimits
from hltnode.daemon.security.curve_keys import load_allow_list, load_token
from hltnode.daemon.security.descriptors import limits_that_fit, raise_limit
from hltnode.daemon.security.input_watch import SMALL_BYTES, InputRules
from hltnode.daemon.security.received_input import ReceivedInput
from hltnode.daemon.security.watched_socket import SUBSCRIBER_BUFFER_BYTES

LOG_INTERVAL_NS = 60_000_000_000
# A peer without a complete handshake is disconnected after this time, so that it frees its descriptor. libzmq's
# default is 30 s.
HANDSHAKE_MS = 5000

# Limit on unfinished and queued bytes of all control connections. The messages are small, and parts may be smaller.
CONTROL_TOTAL_BYTES = 16 << 20
# A feeder says hello every second.
CONTROL_IDLE_SECONDS = 60.0
# Margin above the credits of all slots, for frames that a feeder sends again.
UNFINISHED_MARGIN = 64 << 20
# The same for requests beyond those that may wait.
REQUEST_MARGIN = 32 << 20

log = get_logger("access_control")


@dataclass(frozen=True, slots=True)
class _Lists:
    roles: Mapping[Role, dict[bytes, str]]
    token: bytes | None

    def has_role(self, key: bytes, *roles: Role) -> bool:
        return any(key in self.roles[role] for role in roles)


def read_lists(security: SecuritySection) -> _Lists:
    folders = {Role.FEEDER: security.feeders, Role.OPERATOR: security.operators, Role.CONSUMER: security.consumers}
    return _Lists(
        roles={role: {} if folder is None else load_allow_list(folder) for role, folder in folders.items()},
        token=None if security.http_token_file is None else load_token(security.http_token_file),
    )


# Roles that may connect to each socket with CURVE.
_ADMITTED = {
    Endpoint.DATA: (Role.FEEDER,),
    Endpoint.CONTROL: (Role.FEEDER, Role.OPERATOR),
    Endpoint.DECISIONS: (Role.CONSUMER, Role.OPERATOR),
    Endpoint.EVENTS: (Role.CONSUMER, Role.OPERATOR),
    Endpoint.REQUESTS: (Role.CONSUMER, Role.OPERATOR),
}


class AccessControl:
    """Controls access to the sockets of one node.

    Args:
        crashed: called from another thread when the connection limiter has failed.

    Raises:
        SecurityError: a key, an allow-list or the token cannot be used.
        DescriptorLimitError: the limit on open files is too low.
    """

    def __init__(
        self,
        config: NodeConfig,
        context: zmq.Context[zmq.Socket[bytes]],
        counters: OperationCounters,
        crashed: Callable[[BaseException], None],
        *,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        security = config.security
        limits = limits_that_fit(
            ConnectionLimits(
                connections=config.limits.connections,
                per_address=config.limits.connections_per_address,
                this_machine=config.limits.connections_of_this_machine,
            ),
            config.n_sockets,
            raise_limit() - config.shared_memory.n_descriptors,
        )
        self._counters = counters
        self._clock_ns = clock_ns
        self._limit = RateLimit(LOG_INTERVAL_NS, clock_ns)
        self._lists = read_lists(security)
        self._keys = None if security.server_key is None else load_key_pair(security.server_key)
        self._curve: frozenset[Endpoint] = frozenset()
        self._authenticator: AsyncioAuthenticator | None = None
        if self._keys is not None:
            self._curve = frozenset(SOCKET_ENDPOINTS) - (set() if security.encrypt_data else {Endpoint.DATA})
            self._authenticator = AsyncioAuthenticator(context)
            for endpoint in self._curve:
                self._authenticator.configure_curve_callback(endpoint.value, self)
            self._authenticator.start()
        self._rules = _input_rules(config)
        self._received = {endpoint: ReceivedInput(encrypted=endpoint in self._curve) for endpoint in self._rules}
        self._limiter = ConnectionLimiter(context, limits, counters, crashed, clock_ns=clock_ns)
        addresses = {Endpoint.CONTROL: config.network.control, Endpoint.DECISIONS: config.network.decisions}
        if config.requests.endpoint is not None:
            addresses[Endpoint.REQUESTS] = config.requests.endpoint
        unguarded = [
            endpoint for endpoint in addresses if endpoint not in self._curve and _is_open(addresses[endpoint])
        ]
        if unguarded:
            log.warning("open_to_the_network", sockets=unguarded, advice="set security.server_key and security.feeders")

    @property
    def token(self) -> bytes | None:
        """The token that each HTTP command must contain; None if the node accepts no HTTP commands."""
        return self._lists.token

    def guard(self, endpoint: Endpoint) -> Callable[[zmq.Socket[bytes]], None]:
        """A function that applies keys and limits to the socket of an endpoint before it is bound."""

        def prepare(socket: zmq.Socket[bytes]) -> None:
            socket.setsockopt(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
            if endpoint in self._curve:
                assert self._keys is not None
                socket.setsockopt(zmq.CURVE_SERVER, 1)
                socket.setsockopt(zmq.CURVE_SECRETKEY, self._keys.secret)
                socket.setsockopt_string(zmq.ZAP_DOMAIN, endpoint.value)
            if endpoint not in self._rules:
                # What the kernel accepts before libzmq and the limiter see it: a subscriber needs little.
                socket.setsockopt(zmq.RCVBUF, SUBSCRIBER_BUFFER_BYTES)
            self._limiter.watch(socket, endpoint, self._received.get(endpoint), self._rules.get(endpoint))

        return prepare

    def received(self, endpoint: Endpoint) -> ReceivedInput:
        """The account of received messages that the data or control receiver must update."""
        return self._received[endpoint]

    def reload(self, security: SecuritySection) -> None:
        """Read allow-lists and token again; open connections stay. Raises SecurityError, and then changes nothing."""
        self._lists = read_lists(security)

    def callback(self, domain: str, key: bytes) -> bool:
        """Whether a client with this public key may use an endpoint. pyzmq's authenticator calls it."""
        endpoint = Endpoint(domain)
        if self._lists.has_role(key, *_ADMITTED[endpoint]):
            return True
        known = self._lists.has_role(key, *Role)
        failure = LoginFailure.WRONG_ROLE if known else LoginFailure.UNKNOWN_KEY
        self.refused(endpoint, failure, key=key.decode("ascii", "replace"))
        return False

    def may_command(self, peer: Peer) -> bool:
        """Whether a peer may give commands: it needs an operator's key, or, without CURVE, must be on this machine."""
        key = peer.key.encode()
        allowed = self._lists.has_role(key, Role.OPERATOR) if self._keys is not None else peer.is_local
        if not allowed:
            self.refused(Endpoint.CONTROL, LoginFailure.NOT_AN_OPERATOR, address=peer.address, key=peer.key)
        return allowed

    def may_feed(self, peer: Peer) -> bool:
        """Whether a peer may send messages of a feeder: it needs a feeder's key. Without CURVE every peer may."""
        allowed = self._keys is None or self._lists.has_role(peer.key.encode(), Role.FEEDER)
        if not allowed:
            self.refused(Endpoint.CONTROL, LoginFailure.NOT_A_FEEDER, address=peer.address, key=peer.key)
        return allowed

    def refused(self, endpoint: Endpoint, failure: LoginFailure, **details: object) -> None:
        """Count a refused peer or command, and log it at a limited rate."""
        self._counters.login_failures[endpoint, failure] += 1
        if (left_out := self._limit.due((endpoint, failure))) is not None:
            log.warning("login_refused", socket=endpoint, reason=failure, left_out=left_out, **details)

    def close(self) -> None:
        """Stop the limiter and the authenticator. Call it before the sockets are closed."""
        self._limiter.close()
        if self._authenticator is not None:
            self._authenticator.stop()
            self._authenticator = None


def _input_rules(config: NodeConfig) -> dict[Endpoint, InputRules]:
    """Limits for the sockets whose peers send messages."""
    limits, pipeline = config.limits, config.pipeline
    stalled_ns = int(limits.unfinished_seconds * 1e9)
    total = limits.unfinished_bytes or pipeline.slots * pipeline.slot_bytes + UNFINISHED_MARGIN
    return {
        Endpoint.DATA: InputRules(
            message_bytes=largest_frame(config.network.max_frame_bytes) + SMALL_BYTES,
            total_bytes=total,
            stalled_ns=stalled_ns,
            idle_ns=int(limits.idle_seconds * 1e9),
        ),
        Endpoint.CONTROL: InputRules(
            message_bytes=MAX_CONTROL_BYTES + SMALL_BYTES,
            total_bytes=CONTROL_TOTAL_BYTES,
            stalled_ns=stalled_ns,
            idle_ns=int(CONTROL_IDLE_SECONDS * 1e9),
        ),
        Endpoint.REQUESTS: InputRules(
            message_bytes=config.requests.max_bytes + SMALL_BYTES,
            total_bytes=config.requests.queue_bytes + REQUEST_MARGIN,
            stalled_ns=stalled_ns,
            idle_ns=int(limits.idle_seconds * 1e9),
        ),
    }


def _is_open(address: str) -> bool:
    """True for an address that other machines can reach."""
    if not address.startswith("tcp://"):
        return False
    host = address.removeprefix("tcp://").rpartition(":")[0].strip("[]")
    return host != "localhost" and not Peer(host, "").is_local
