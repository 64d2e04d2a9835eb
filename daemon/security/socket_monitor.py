"""Counts the events of a ZeroMQ socket monitor: peers that come, go, or fail the handshake."""

import asyncio
import time
from collections.abc import Callable

import zmq
from zmq.utils.monitor import parse_monitor_message

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import ConnectionEvent, Endpoint
from hltnode.daemon.common.zmq_sockets import SocketDrain
from hltnode.daemon.monitoring.operation_counters import OperationCounters

LOG_INTERVAL_NS = 60_000_000_000

_EVENTS = {
    zmq.EVENT_HANDSHAKE_SUCCEEDED: ConnectionEvent.CONNECTED,
    zmq.EVENT_DISCONNECTED: ConnectionEvent.DISCONNECTED,
    zmq.EVENT_ACCEPT_FAILED: ConnectionEvent.ACCEPT_FAILED,
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL: ConnectionEvent.HANDSHAKE_CUT,
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL: ConnectionEvent.HANDSHAKE_PROTOCOL,
    zmq.EVENT_HANDSHAKE_FAILED_AUTH: ConnectionEvent.HANDSHAKE_REFUSED,
}
_TROUBLE = frozenset(_EVENTS.values()) - {ConnectionEvent.CONNECTED, ConnectionEvent.DISCONNECTED}

log = get_logger("socket_monitor")


class SocketMonitor:
    """Follows one socket until `close`, before or after the socket itself is closed."""

    def __init__(
        self,
        socket: zmq.Socket[bytes],
        endpoint: Endpoint,
        counters: OperationCounters,
        *,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._socket = socket
        self._endpoint = endpoint
        self._counters = counters
        self._limit = RateLimit(LOG_INTERVAL_NS, clock_ns)
        self._monitor: zmq.Socket[bytes] = socket.get_monitor_socket(sum(_EVENTS))
        self._monitor.setsockopt(zmq.LINGER, 0)
        self._drain: SocketDrain[list[bytes]] | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to count."""
        self._drain = SocketDrain(loop, self._monitor, self._receive, self._event_arrived)
        self._drain.start()

    def close(self) -> None:
        """Count no more."""
        if self._drain is not None:
            self._drain.stop()
        if not self._socket.closed:
            self._socket.disable_monitor()
        self._monitor.close()

    def _receive(self) -> list[bytes]:
        return self._monitor.recv_multipart(zmq.NOBLOCK)

    def _event_arrived(self, parts: list[bytes]) -> None:
        raw = parse_monitor_message(parts)
        event = _EVENTS[zmq.Event(raw["event"])]
        self._counters.connections[self._endpoint, event] += 1
        if event in _TROUBLE and (left_out := self._limit.due(event)) is not None:
            value = int(raw["value"])
            log.warning("connection_trouble", socket=self._endpoint, trouble=event, value=value, left_out=left_out)
