"""Access to the sockets of a node: CURVE keys, the allow-list, monitors of the connections, right to command."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

import zmq
from zmq.auth.asyncio import AsyncioAuthenticator

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.peer import Peer
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import SOCKET_ENDPOINTS, Endpoint, LoginFailure
from hltnode.daemon.configuration.model import NodeConfig, SecuritySection
from hltnode.daemon.monitoring.operation_counters import OperationCounters
from hltnode.daemon.security.curve_keys import load_allow_list, load_key_pair, load_token
from hltnode.daemon.security.socket_monitor import SocketMonitor

LOG_INTERVAL_NS = 60_000_000_000
# A peer that connects and does not complete the handshake holds a descriptor for this time; libzmq's default is 30 s.
HANDSHAKE_MS = 5000

log = get_logger("access_control")


@dataclass(frozen=True, slots=True)
class _Lists:
    clients: dict[bytes, str]
    operators: dict[bytes, str]
    token: bytes | None


def _read_lists(security: SecuritySection) -> _Lists:
    return _Lists(
        clients={} if security.clients is None else load_allow_list(security.clients),
        operators={} if security.operators is None else load_allow_list(security.operators),
        token=None if security.http_token_file is None else load_token(security.http_token_file),
    )


class AccessControl:
    """Controls access to the sockets of one node.

    Raises:
        SecurityError: a key, an allow-list or the token cannot be used.
    """

    def __init__(
        self,
        config: NodeConfig,
        context: zmq.Context[zmq.Socket[bytes]],
        counters: OperationCounters,
        *,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        security = config.security
        self._counters = counters
        self._clock_ns = clock_ns
        self._limit = RateLimit(LOG_INTERVAL_NS, clock_ns)
        self._lists = _read_lists(security)
        self._keys = None if security.server_key is None else load_key_pair(security.server_key)
        self._curve: frozenset[Endpoint] = frozenset()
        self._authenticator: AsyncioAuthenticator | None = None
        self._monitors: list[SocketMonitor] = []
        if self._keys is not None:
            self._curve = frozenset(SOCKET_ENDPOINTS) - (set() if security.encrypt_data else {Endpoint.DATA})
            self._authenticator = AsyncioAuthenticator(context)
            for endpoint in self._curve:
                self._authenticator.configure_curve_callback(endpoint.value, self)
            self._authenticator.start()
        addresses = {Endpoint.CONTROL: config.network.control, Endpoint.DECISIONS: config.network.decisions}
        unguarded = [
            endpoint for endpoint in addresses if endpoint not in self._curve and _is_open(addresses[endpoint])
        ]
        if unguarded:
            log.warning("open_to_the_network", sockets=unguarded, advice="set security.server_key and security.clients")

    @property
    def token(self) -> bytes | None:
        """What a command over HTTP has to bring, None if none is taken."""
        return self._lists.token

    def guard(self, endpoint: Endpoint) -> Callable[[zmq.Socket[bytes]], None]:
        """What has to be done to the socket of an endpoint before it is bound."""

        def prepare(socket: zmq.Socket[bytes]) -> None:
            socket.setsockopt(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
            if endpoint in self._curve:
                assert self._keys is not None
                socket.setsockopt(zmq.CURVE_SERVER, 1)
                socket.setsockopt(zmq.CURVE_SECRETKEY, self._keys.secret)
                socket.setsockopt_string(zmq.ZAP_DOMAIN, endpoint.value)
            self._monitors.append(SocketMonitor(socket, endpoint, self._counters, clock_ns=self._clock_ns))

        return prepare

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to count connections."""
        for monitor in self._monitors:
            monitor.start(loop)

    def reload(self, security: SecuritySection) -> None:
        """Read allow-lists and token again; connections that are there stay. Raises SecurityError, changing nothing."""
        self._lists = _read_lists(security)

    def callback(self, domain: str, key: bytes) -> bool:
        """Whether a client with this public key may use an endpoint; called by pyzmq's authenticator."""
        if key in self._lists.clients or key in self._lists.operators:
            return True
        self.refused(Endpoint(domain), LoginFailure.UNKNOWN_KEY, key=key.decode("ascii", "replace"))
        return False

    def may_command(self, peer: Peer) -> bool:
        """Whether a peer of the control socket may give commands: an operator's key, or without CURVE a local peer."""
        allowed = peer.key.encode() in self._lists.operators if self._keys is not None else peer.is_local
        if not allowed:
            self.refused(Endpoint.CONTROL, LoginFailure.NOT_AN_OPERATOR, address=peer.address, key=peer.key)
        return allowed

    def refused(self, endpoint: Endpoint, failure: LoginFailure, **details: object) -> None:
        """Count a refused peer or command; the log line is rate-limited."""
        self._counters.login_failures[endpoint, failure] += 1
        if (left_out := self._limit.due((endpoint, failure))) is not None:
            log.warning("login_refused", socket=endpoint, reason=failure, left_out=left_out, **details)

    def close(self) -> None:
        """Admit no further peer; before the sockets are closed."""
        for monitor in self._monitors:
            monitor.close()
        self._monitors.clear()
        if self._authenticator is not None:
            self._authenticator.stop()
            self._authenticator = None


def _is_open(address: str) -> bool:
    """True for an address that other machines may reach."""
    if not address.startswith("tcp://"):
        return False
    host = address.removeprefix("tcp://").rpartition(":")[0].strip("[]")
    return host != "localhost" and not Peer(host, "").is_local
