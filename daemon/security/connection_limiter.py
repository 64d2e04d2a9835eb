"""Limits the connections, descriptors and memory that peers of the sockets can take.

libzmq accepts every connection, reads all input, and has no total limit on unfinished messages and subscriptions. The
limiter follows the monitor of each socket in its own thread, so that it works while the event loop is busy. To end a
connection it shuts down TCP; libzmq then frees the memory of the connection.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable

import zmq
from zmq.utils.monitor import parse_monitor_message

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import ConnectionEvent, ConnectionRefusal, Endpoint
from hltnode.daemon.machine.process_memory import ResidentMemory
from hltnode.daemon.monitoring.operation_counters import OperationCounters
from hltnode.daemon.security.connection_table import ConnectionLimits, ConnectionTable
from hltnode.daemon.security.input_watch import SMALL_BYTES, InputRules, InputWatch
from hltnode.daemon.security.memory_growth import GIVE_BACK_BYTES, MemoryGrowth
from hltnode.daemon.security.received_input import ReceivedInput
from hltnode.daemon.security.tcp_connection import TcpConnection
from hltnode.daemon.security.watched_socket import WatchedSocket

LOOK_SECONDS = 0.1
# Interval while connections are quiet and hold no bytes. New input ends it at once.
CALM_LOOK_SECONDS = 1.0
# Interval while peers of an output send bytes, from the handshake on. libzmq passes all subscriptions that it has read
# to the event loop in one call, at some microseconds each, so a flood must end early.
OUTPUT_LOOK_SECONDS = 0.005
# Monitor events that are handled before the next check of connections.
EVENT_BUDGET = 1000
LOG_INTERVAL_NS = 60_000_000_000
STOP_SECONDS = 5.0

_COUNTED = {
    zmq.EVENT_HANDSHAKE_SUCCEEDED: ConnectionEvent.CONNECTED,
    zmq.EVENT_DISCONNECTED: ConnectionEvent.DISCONNECTED,
    zmq.EVENT_ACCEPT_FAILED: ConnectionEvent.ACCEPT_FAILED,
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL: ConnectionEvent.HANDSHAKE_CUT,
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL: ConnectionEvent.HANDSHAKE_PROTOCOL,
    zmq.EVENT_HANDSHAKE_FAILED_AUTH: ConnectionEvent.HANDSHAKE_REFUSED,
}
_TROUBLE = frozenset(_COUNTED.values()) - {ConnectionEvent.CONNECTED, ConnectionEvent.DISCONNECTED}
_FOLLOWED = sum(_COUNTED) | zmq.EVENT_ACCEPTED | zmq.EVENT_MONITOR_STOPPED

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
        self._read_of_outputs: dict[int, int] = {}
        """The same for connections to outputs, at the last check of outputs alone."""

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
        # Only this side closes the descriptors: the thread may end before this function has woken it. A thread that
        # does not end keeps them.
        if self._thread is None or not self._thread.is_alive():
            self._resident.close()
            os.close(self._wake)

    # In the thread

    def _run(self) -> None:
        try:
            self._follow()
        except Exception as error:
            self._crashed(error)
        finally:
            for watched in (*self._watched.values(), *self._not_taken()):
                watched.close()

    def _follow(self) -> None:
        poller = zmq.Poller()
        poller.register(self._wake, zmq.POLLIN)
        look_ns, calm_look_ns, output_look_ns = (
            int(seconds * 1e9) for seconds in (LOOK_SECONDS, CALM_LOOK_SECONDS, OUTPUT_LOOK_SECONDS)
        )
        next_look_ns = self._clock_ns() + look_ns
        next_output_look_ns: int | None = None
        """None while no peer of an output sends bytes."""
        is_calm = False
        heard: set[int] = set()
        """Descriptors polled for new bytes."""
        end_ns: int | None = None
        while True:
            for watched in self._not_taken():
                self._watched[watched.monitor] = watched
                poller.register(watched.monitor, zmq.POLLIN)
            outputs = self._descriptors(of_outputs=True) if next_output_look_ns is None else set()
            wanted = outputs | self._descriptors(of_outputs=False) if is_calm else outputs
            for descriptor in heard - wanted:
                poller.unregister(descriptor)
            for descriptor in wanted - heard:
                poller.register(descriptor, zmq.POLLIN)
            heard = wanted
            next_ns = next_look_ns if next_output_look_ns is None else min(next_look_ns, next_output_look_ns)
            wait_ms = max(0, -((self._clock_ns() - next_ns) // 1_000_000))
            ready = [each for each, _ in poller.poll(wait_ms)]
            now_ns = self._clock_ns()
            if ready:
                # Check at once if the last check is long ago.
                next_look_ns = min(next_look_ns, now_ns + look_ns)
                is_calm = False
                if next_output_look_ns is None and any(each in outputs or self._is_output(each) for each in ready):
                    next_output_look_ns = now_ns + output_look_ns
            for monitor in ready:
                if monitor == self._wake:
                    os.eventfd_read(self._wake)
                elif monitor in self._watched and self._drain(self._watched[monitor]):
                    poller.unregister(monitor)
                    self._watched.pop(monitor).close()
            if self._stopping.is_set():
                end_ns = end_ns or now_ns + 1_000_000_000
                if not self._watched or now_ns > end_ns:
                    return
            if next_output_look_ns is not None and now_ns >= next_output_look_ns:
                read_before, self._read_of_outputs = self._read_of_outputs, self._check_outputs(now_ns)
                has_more = self._read_of_outputs != read_before
                next_output_look_ns = self._clock_ns() + output_look_ns if has_more else None
            if now_ns >= next_look_ns:
                is_calm = self._check(now_ns)
                next_look_ns = self._clock_ns() + (calm_look_ns if is_calm else look_ns)

    def _is_output(self, ready: object) -> bool:
        """Whether a poll result is the monitor of an output."""
        return isinstance(ready, zmq.Socket) and ready in self._watched and self._watched[ready].is_output

    def _descriptors(self, *, of_outputs: bool) -> set[int]:
        return {
            connection.fileno()
            for watched in self._watched.values()
            if watched.is_output is of_outputs
            for _, connection in watched.admitted()
        }

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
        except OSError:
            return  # the connection has ended, and its descriptor may belong to another one
        now_ns = self._clock_ns()
        watched.connections[descriptor] = connection
        watched.since_ns[descriptor] = now_ns
        if watched.inputs is not None:
            watched.inputs.opened(descriptor)
        self._counters.open_connections[watched.endpoint] += 1
        if (refusal := watched.table.opened(descriptor, connection.address)) is not None:
            self._refuse(watched, *refusal)

    def _closed(self, watched: WatchedSocket, descriptor: int) -> None:
        connection = watched.connections.pop(descriptor, None)
        if connection is None:
            return
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

    def _refuse(
        self, watched: WatchedSocket, descriptor: int, reason: ConnectionRefusal, grown_bytes: int | None = None
    ) -> None:
        connection = watched.connections[descriptor]
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
        all_read = self._check_outputs(now_ns)
        for watched in self._watched.values():
            if watched.inputs is None:
                continue
            read = watched.bytes_read()
            all_read |= read
            for descriptor, reason in watched.inputs.look(now_ns, read):
                self._refuse(watched, descriptor, reason)
            self._counters.unfinished_bytes[watched.endpoint] = watched.inputs.held
        self._end_growth(now_ns)
        may_give_back = self._growth.give_back(now_ns)
        held = sum(inputs.held for inputs in self._inputs())
        is_calm = all_read == self._read_before and held <= SMALL_BYTES and not may_give_back
        self._read_before = all_read
        return is_calm

    def _check_outputs(self, now_ns: int) -> dict[int, int]:
        """End subscribers that send too much. Returns the bytes read from each connection to an output."""
        all_read: dict[int, int] = {}
        for watched in self._watched.values():
            if not watched.is_output:
                continue
            read = watched.bytes_read()
            all_read |= read
            for descriptor in watched.flooding_subscribers(now_ns, read):
                self._refuse(watched, descriptor, ConnectionRefusal.UNEXPECTED_INPUT)
        return all_read

    def _inputs(self) -> list[InputWatch]:
        return [watched.inputs for watched in self._watched.values() if watched.inputs is not None]

    def _end_growth(self, now_ns: int) -> None:
        """End the connection with the largest unfinished message if the process has grown too much."""
        if (excess := self._growth.excess(now_ns, self._inputs())) is None:
            return
        owner, descriptor, grown_bytes = excess
        watched = next(each for each in self._watched.values() if each.inputs is owner)
        self._refuse(watched, descriptor, ConnectionRefusal.UNFINISHED, grown_bytes)


def _port(endpoint: bytes) -> int | None:
    """The port in the endpoint of a monitor event; None if it is not TCP."""
    text = endpoint.decode("ascii", "replace")
    return int(text.rpartition(":")[2]) if text.startswith("tcp://") else None
