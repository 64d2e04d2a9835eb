"""Limits the connections, descriptors and memory that peers of the sockets can take.

libzmq accepts every connection, reads all input, and has no total limit on unfinished messages and subscriptions. The
limiter follows the monitor of each socket in its own thread, so that it works while the event loop is busy. To end a
connection it shuts down TCP; libzmq then frees the memory of the connection. The address of that connection is then
refused for a while (`address_gate`).
"""

from __future__ import annotations

import errno
import os
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import zmq
from zmq.utils.monitor import parse_monitor_message

from hltnode.daemon._native import ConnectionGuard
from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import ConnectionEvent, ConnectionRefusal, Endpoint
from hltnode.daemon.machine.process_memory import ResidentMemory
from hltnode.daemon.monitoring.operation_counters import OperationCounters
from hltnode.daemon.security.address_gate import AddressGate
from hltnode.daemon.security.connection_table import ConnectionLimits, ConnectionTable
from hltnode.daemon.security.input_watch import SMALL_BYTES, InputRules, InputWatch
from hltnode.daemon.security.memory_growth import GIVE_BACK_BYTES, MemoryGrowth
from hltnode.daemon.security.received_input import ReceivedInput
from hltnode.daemon.security.tcp_connection import TcpConnection
from hltnode.daemon.security.watched_socket import SUBSCRIBER_BYTES, SUBSCRIBER_BYTES_PER_SECOND, WatchedSocket

LOOK_SECONDS = 0.1
# Interval while connections are quiet and hold no bytes. New input ends it at once.
CALM_LOOK_SECONDS = 1.0
# Interval while unfinished or queued messages may take much more memory than bytes.
TENSE_LOOK_SECONDS = 0.01
# Bytes after which a new connection is checked at once.
UNCHECKED_BYTES = 256 << 10
# Monitor events that are handled before the next check of connections.
EVENT_BUDGET = 1000
# Age of a connection after which its address is known.
KNOWN_AFTER_NS = 5_000_000_000
LOG_INTERVAL_NS = 60_000_000_000
STOP_SECONDS = 5.0

# Bytes at once, bytes a second, and whether the guard ends the connection that sends more or only reports it.
SUBSCRIBER_RULE = (SUBSCRIBER_BYTES, SUBSCRIBER_BYTES_PER_SECOND, True)
INPUT_RULE = (UNCHECKED_BYTES, 0.0, False)

NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)
"""Errors after which a connection gets its second descriptor at a later check."""

_COUNTED = {
    zmq.EVENT_HANDSHAKE_SUCCEEDED: ConnectionEvent.CONNECTED,
    zmq.EVENT_DISCONNECTED: ConnectionEvent.DISCONNECTED,
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL: ConnectionEvent.HANDSHAKE_CUT,
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL: ConnectionEvent.HANDSHAKE_PROTOCOL,
    zmq.EVENT_HANDSHAKE_FAILED_AUTH: ConnectionEvent.HANDSHAKE_REFUSED,
}
_TROUBLE = frozenset(ConnectionEvent) - {ConnectionEvent.CONNECTED, ConnectionEvent.DISCONNECTED}
# Not EVENT_ACCEPT_FAILED: without a free descriptor libzmq tries 170,000 times a second, and the queued events of 3 s
# keep the limiter from its work for 12 s.
_FOLLOWED = sum(_COUNTED) | zmq.EVENT_LISTENING | zmq.EVENT_ACCEPTED | zmq.EVENT_MONITOR_STOPPED

log = get_logger("connection_limiter")


class ConnectionLimiter:
    """Limits the connections of all watched sockets, from the first `watch` to `close`.

    Args:
        crashed: called from the limiter's thread when it has failed.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        limits: ConnectionLimits,
        counters: OperationCounters,
        crashed: Callable[[BaseException], None],
        *,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._context = context
        self._limits = limits
        self._counters = counters
        self._crashed = crashed
        self._clock_ns = clock_ns
        self._limit = RateLimit(LOG_INTERVAL_NS, clock_ns)
        self._new: queue.SimpleQueue[WatchedSocket] = queue.SimpleQueue()
        self._sockets: list[zmq.Socket[bytes]] = []
        self._stopping = threading.Event()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        """Wakes the thread for a new socket and for the end."""
        self._thread: threading.Thread | None = None
        # Used by the thread only
        self._watched: dict[zmq.Socket[bytes], WatchedSocket] = {}
        self._resident = ResidentMemory()
        self._growth = MemoryGrowth(self._resident.nbytes)
        self._read_before: dict[int, int] = {}
        """Bytes read from each connection at the last check."""
        self._gate = AddressGate(counters, self._limit, self._known_addresses)
        self._guard = ConnectionGuard()
        self._guarded: dict[int, tuple[WatchedSocket, int]] = {}
        """The socket and libzmq's descriptor of each connection that the guard follows, by the guard's descriptor."""

    def watch(
        self,
        socket: zmq.Socket[bytes],
        endpoint: Endpoint,
        received: ReceivedInput | None = None,
        rules: InputRules | None = None,
    ) -> None:
        """Limit a socket that is about to be bound. Its peers may send messages if `received` and `rules` are given."""
        address = f"inproc://monitor-{id(self)}-{len(self._sockets)}"
        socket.monitor(address, _FOLLOWED)
        monitor: zmq.Socket[bytes] = self._context.socket(zmq.PAIR)
        monitor.setsockopt(zmq.LINGER, 0)
        # Without a high-water mark libzmq never waits for this thread, and no event is lost.
        monitor.setsockopt(zmq.RCVHWM, 0)
        monitor.connect(address)
        inputs = None if received is None or rules is None else InputWatch(received, rules, self._clock_ns())
        self._sockets.append(socket)
        self._new.put(WatchedSocket(socket, monitor, endpoint, ConnectionTable(self._limits), inputs))
        os.eventfd_write(self._wake, 1)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="connection-limiter", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop the limiter, before or after the sockets are closed."""
        self._stopping.set()
        os.eventfd_write(self._wake, 1)
        for socket in self._sockets:
            if not socket.closed:
                socket.disable_monitor()
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)
        self._sockets.clear()
        # Only this side closes monitors and descriptors: the thread may end before this function has woken it. A thread
        # that does not end keeps them.
        if self._thread is None or not self._thread.is_alive():
            for watched in (*self._watched.values(), *self._not_taken()):
                _wait_for_last_event(watched.monitor)
                watched.close()
            self._watched.clear()
            self._resident.close()
            self._guard.close()
            self._gate.close()
            os.close(self._wake)

    # In the thread

    def _run(self) -> None:
        try:
            self._follow()
        except Exception as error:
            self._crashed(error)

    def _follow(self) -> None:
        poller = zmq.Poller()
        report = self._guard.report_descriptor
        for descriptor in (self._wake, report):
            poller.register(descriptor, zmq.POLLIN)
        look_ns = int(LOOK_SECONDS * 1e9)
        next_look_ns = self._clock_ns() + look_ns
        is_calm = False
        heard: set[int] = set()
        """Descriptors polled for new bytes."""
        end_ns: int | None = None
        while True:
            for watched in self._not_taken():
                self._watched[watched.monitor] = watched
                poller.register(watched.monitor, zmq.POLLIN)
            wanted = self._descriptors_of_inputs() if is_calm else set()
            for descriptor in heard - wanted:
                poller.unregister(descriptor)
            for descriptor in wanted - heard:
                poller.register(descriptor, zmq.POLLIN)
            heard = wanted
            wait_ms = max(0, -((self._clock_ns() - next_look_ns) // 1_000_000))
            ready = [each for each, _ in poller.poll(wait_ms)]
            now_ns = self._clock_ns()
            if ready:
                # Check at once if the last check is long ago.
                next_look_ns = min(next_look_ns, now_ns + look_ns)
                is_calm = False
            for monitor in ready:
                if monitor == self._wake:
                    os.eventfd_read(self._wake)
                elif monitor == report:
                    self._reported(now_ns)
                    next_look_ns = now_ns
                elif monitor in self._watched and self._drain(self._watched[monitor]):
                    poller.unregister(monitor)
                    self._watched.pop(monitor).close()
            if self._stopping.is_set():
                end_ns = end_ns or now_ns + 1_000_000_000
                if not self._watched or now_ns > end_ns:
                    return
            if now_ns >= next_look_ns:
                is_calm = self._check(now_ns)
                is_tense = any(inputs.is_tense for inputs in self._inputs())
                seconds = CALM_LOOK_SECONDS if is_calm else TENSE_LOOK_SECONDS if is_tense else LOOK_SECONDS
                next_look_ns = self._clock_ns() + int(seconds * 1e9)
            self._gate.apply(now_ns)

    def _descriptors_of_inputs(self) -> set[int]:
        return {
            connection.fileno()
            for watched in self._watched.values()
            if watched.inputs is not None
            for _, connection in watched.admitted()
        }

    def _reported(self, now_ns: int) -> None:
        """Handle the reports of the guard."""
        for descriptor, is_ended in self._guard.reported():
            found = self._guarded.pop(descriptor, None)
            if found is not None and is_ended and found[1] in found[0].connections:
                self._refuse(*found, ConnectionRefusal.UNEXPECTED_INPUT, now_ns)

    def _not_taken(self) -> list[WatchedSocket]:
        taken = []
        while not self._new.empty():
            taken.append(self._new.get())
        return taken

    def _drain(self, watched: WatchedSocket) -> bool:
        """Handle the monitor events of a socket; True after the last event of its life."""
        for _ in range(EVENT_BUDGET):
            try:
                parts = watched.monitor.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return False
            event = parse_monitor_message(parts)
            kind, value = zmq.Event(event["event"]), int(event["value"])
            if kind == zmq.EVENT_MONITOR_STOPPED:
                return True
            if kind == zmq.EVENT_LISTENING:
                self._gate.listens(value)
                continue
            if kind == zmq.EVENT_ACCEPTED:
                self._opened(watched, value, event["endpoint"])
                continue
            self._count(watched.endpoint, _COUNTED[kind], value)
            if kind == zmq.EVENT_DISCONNECTED:
                self._closed(watched, value)
        return False

    def _count(self, endpoint: Endpoint, event: ConnectionEvent, value: int) -> None:
        self._counters.connections[endpoint, event] += 1
        if event in _TROUBLE and (left_out := self._limit.due(event)) is not None:
            log.warning("connection_trouble", socket=endpoint, trouble=event, value=value, left_out=left_out)

    def _opened(self, watched: WatchedSocket, descriptor: int, endpoint: bytes) -> None:
        self._closed(watched, descriptor)
        try:
            connection = TcpConnection(descriptor, _port(endpoint))
        except OSError as error:
            # Otherwise the connection has ended, and its descriptor may belong to another one.
            if error.errno in NO_DESCRIPTOR:
                watched.unfollowed[descriptor] = endpoint
                if (left_out := self._limit.due(NO_DESCRIPTOR)) is not None:
                    log.warning("connection_not_followed", socket=watched.endpoint, text=str(error), left_out=left_out)
            return
        now_ns = self._clock_ns()
        connection.remove_filter()
        watched.connections[descriptor] = connection
        watched.since_ns[descriptor] = now_ns
        if watched.inputs is not None:
            watched.inputs.opened(descriptor)
        self._counters.open_connections[watched.endpoint] += 1
        refusal = watched.table.opened(descriptor, connection.address)
        if (reason := self._gate.opened(connection.address, now_ns)) is not None:
            self._refuse(watched, descriptor, reason, now_ns)
            return
        if refusal is not None:
            self._refuse(watched, *refusal, now_ns)
        if descriptor not in watched.refused:
            self._guarded[connection.fileno()] = (watched, descriptor)
            rule = INPUT_RULE if watched.inputs is not None else SUBSCRIBER_RULE
            self._guard.add(connection.fileno(), *rule)

    def _closed(self, watched: WatchedSocket, descriptor: int) -> None:
        # The guard may have ended the connection, and its report tells why.
        self._reported(self._clock_ns())
        watched.unfollowed.pop(descriptor, None)
        connection = watched.connections.pop(descriptor, None)
        if connection is None:
            return
        self._unguard(connection)
        connection.close()
        watched.table.closed(descriptor)
        watched.refused.discard(descriptor)
        del watched.since_ns[descriptor]
        self._counters.open_connections[watched.endpoint] -= 1
        if watched.inputs is not None:
            self._growth.ended(watched.inputs.closed(descriptor))
        elif not watched.connections:
            # The subscriptions of the last subscribers are free memory now.
            self._growth.ended(GIVE_BACK_BYTES)

    def _unguard(self, connection: TcpConnection) -> None:
        if self._guarded.pop(connection.fileno(), None) is not None:
            self._guard.remove(connection.fileno())

    def _refuse(
        self,
        watched: WatchedSocket,
        descriptor: int,
        reason: ConnectionRefusal,
        now_ns: int,
        grown_bytes: int | None = None,
    ) -> None:
        connection = watched.connections[descriptor]
        self._unguard(connection)
        self._gate.ended(connection.address, reason, now_ns)
        watched.refused.add(descriptor)
        watched.table.closed(descriptor)
        connection.cut()
        details: dict[str, float] = {} if grown_bytes is None else {"grown_bytes": grown_bytes}
        if watched.inputs is not None:
            details |= watched.inputs.account(descriptor)
            watched.inputs.received.tally.refuse(descriptor)
            self._growth.ended(watched.inputs.closed(descriptor))
        self._counters.count_refused(watched.endpoint, reason)
        if (left_out := self._limit.due((watched.endpoint, reason))) is not None:
            address = connection.address or "this machine"
            log.warning(
                "connection_refused",
                socket=watched.endpoint,
                reason=reason,
                address=address,
                left_out=left_out,
                **details,
            )

    def _check(self, now_ns: int) -> bool:
        """Check all connections. Returns True if they sent no bytes since the last check and hold none."""
        self._try_descriptor()
        all_read: dict[int, int] = {}
        for watched in self._watched.values():
            for descriptor, endpoint in tuple(watched.unfollowed.items()):
                self._opened(watched, descriptor, endpoint)
            if watched.inputs is None:
                continue
            read = watched.bytes_read()
            all_read |= read
            for descriptor, reason in watched.inputs.look(now_ns, read):
                self._refuse(watched, descriptor, reason, now_ns)
            for address, reason in watched.inputs.received.reported_addresses():
                self._gate.ended(address, reason, now_ns)
            self._counters.unfinished_bytes[watched.endpoint] = watched.inputs.held
        self._end_growth(now_ns)
        may_give_back = self._growth.give_back(now_ns)
        held = sum(inputs.held for inputs in self._inputs())
        is_calm = all_read == self._read_before and held <= SMALL_BYTES and not may_give_back
        self._read_before = all_read
        return is_calm

    def _try_descriptor(self) -> None:
        """Count a check at which no descriptor is free, so that libzmq accepts no connection."""
        try:
            os.close(os.dup(self._wake))
        except OSError as error:
            for watched in self._watched.values():
                self._count(watched.endpoint, ConnectionEvent.ACCEPT_FAILED, error.errno or 0)

    def _known_addresses(self) -> set[str]:
        """The addresses of connections that have been open for some time."""
        before_ns = self._clock_ns() - KNOWN_AFTER_NS
        return {
            connection.address
            for watched in self._watched.values()
            for descriptor, connection in watched.admitted()
            if connection.address and watched.since_ns[descriptor] < before_ns
        }

    def _inputs(self) -> list[InputWatch]:
        return [watched.inputs for watched in self._watched.values() if watched.inputs is not None]

    def _end_growth(self, now_ns: int) -> None:
        """End the connections that explain the growth of the process; refuse unknown peers until it has shrunk."""
        if (grown_bytes := self._growth.excess(now_ns, sum(inputs.memory for inputs in self._inputs()))) is None:
            return
        self._gate.grown(grown_bytes)
        candidates = sorted(
            (
                (nbytes, descriptor, watched)
                for watched in self._watched.values()
                if watched.inputs is not None
                for descriptor, nbytes in watched.inputs.amplified()
            ),
            key=lambda candidate: candidate[0],
            reverse=True,
        )
        for nbytes, descriptor, watched in candidates:
            if grown_bytes <= 0:
                break
            self._refuse(watched, descriptor, ConnectionRefusal.UNFINISHED, now_ns, grown_bytes)
            grown_bytes -= nbytes


def _wait_for_last_event(monitor: zmq.Socket[bytes]) -> None:
    """Read the events of a socket that is closed, or no longer monitored, to the last one.

    libzmq waits without end for the reader of an event if the monitor is closed.
    """
    with suppress(zmq.ContextTerminated):
        while parse_monitor_message(monitor.recv_multipart())["event"] != zmq.EVENT_MONITOR_STOPPED:
            pass


def _port(endpoint: bytes) -> int | None:
    """The port in the endpoint of a monitor event; None if it is not TCP."""
    text = endpoint.decode("ascii", "replace")
    return int(text.rpartition(":")[2]) if text.startswith("tcp://") else None
