"""The request socket (ROUTER), and the thread that reads it, computes batches of requests and sends the answers.

The thread has a workspace of its own: requests and MEPs of the run wait for each other only in the back end. While a
batch is computed, the next one is collected: the more clients ask, the larger the batches. The thread computes a short
batch itself, if the back end can: it then waits for no other thread and for no batch of the run.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import zmq
from numpy.typing import NDArray

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import ConnectionRefusal
from hltnode.daemon.common.zmq_sockets import ACKNOWLEDGED_WITHIN_MS, bind_socket
from hltnode.daemon.compute.engine_interface import Engine
from hltnode.daemon.monitoring.counters import RequestCounters
from hltnode.daemon.requests.request_batch import AnswerEncoder, fill, refusal
from hltnode.daemon.requests.request_queue import RequestLimits, RequestQueue, WaitingRequest
from hltnode.daemon.requests.short_batches import ShortBatches
from hltnode.daemon.security.message_budget import MessageBudget
from hltnode.daemon.security.message_parts import MessageParts
from hltnode.daemon.security.received_input import ReceivedInput, address_of
from hltnode.processing.framework.backends.interface import BackendError, DeviceLostError
from hltnode.processing.framework.measured_quantities import MeasuredQuantity
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.raw_data.mep import mep_places
from hltnode.protocol.transport.requests import (
    MAX_REQUEST_HEADER,
    MFP_ALIGNMENT,
    Cancel,
    Request,
    RequestRefusal,
    decode_request,
)

# Parts of messages that are read in one turn, before the batch is checked.
BUDGET_PARTS = 256
# A message has an identity, a request and a MEP.
PARTS = 3
# Unread refusals queued for one client, beside the answers to as many requests as it may have waiting: a client sends
# this number at once (`MOST_AT_ONCE` of the clients). One that does not fit is lost, and its client waits.
REFUSALS_AT_ONCE = 64
# Refused messages that are answered, at once and a second: of all clients, and of one address. A correct client sends
# none. Few, so that a flood from many addresses has 64 dropped ones of each, which has it refused.
REFUSED_OF_ALL = (256.0, 64.0)
REFUSED_OF_ADDRESS = (64.0, 16.0)
# Longest sleep: the connection limiter wakes the thread earlier, and so does every message.
IDLE_MS = 500
LOG_INTERVAL_NS = 10_000_000_000

Constants = Mapping[str, NDArray[np.uint8]]

log = get_logger("request_socket")


class Sender(NamedTuple):
    """The sender of a message: the identity of its connection, and the last part, which has its properties."""

    client: bytes
    last: zmq.Frame


class RequestSocket:
    """Create it, `start` it, `stop` it before the back end, then `close` it.

    Args:
        engine: creates the workspace; its limits are those of a batch of requests.
        timeout_ns: time of a request that names none, and the longest one.
        max_list_bytes: bound on the output lists of an answer.
        prepare: applies keys and limits before the socket is bound.
        received: counts each message for its connection.
        crashed: called in the thread with an unexpected exception; the thread then ends.

    Raises:
        BindError: the endpoint cannot be bound.
        BackendError: memory for the workspace is short.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        endpoint: str,
        engine: Engine,
        limits: RequestLimits,
        counters: RequestCounters,
        *,
        node: str,
        chain: str,
        timeout_ns: int,
        max_list_bytes: int,
        prepare: Callable[[zmq.Socket[bytes]], None],
        received: ReceivedInput,
        crashed: Callable[[BaseException], None],
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._engine = engine
        self._limits = limits
        self._counters = counters
        self._timeout_ns = timeout_ns
        self._received = received
        self._crashed = crashed
        self._clock_ns = clock_ns
        self._limit = RateLimit(LOG_INTERVAL_NS, clock_ns)
        self._queue = RequestQueue(limits)
        self._encoder = AnswerEncoder(engine, node=node, chain=chain, max_list_bytes=max_list_bytes)
        self._messages = MessageParts(received, PARTS)
        self._budget = MessageBudget(REFUSED_OF_ALL, REFUSED_OF_ADDRESS)
        """Of messages that are refused: a refusal costs this thread as much as a request, and delays the run too."""
        self._batch: list[WaitingRequest] = []
        """The requests that the back end computes."""
        self._constants: deque[tuple[Constants, Sequence[MeasuredQuantity], int]] = deque(maxlen=1)
        """The constants that the next batch needs. Other threads append."""
        self._is_warm = False
        self._stopping = False
        options = {
            zmq.SNDHWM: limits.client_requests + REFUSALS_AT_ONCE,
            zmq.MAXMSGSIZE: max(limits.batch_bytes, MAX_REQUEST_HEADER),
            # Without it an answer to a client that has gone would be dropped without an error.
            zmq.ROUTER_MANDATORY: 1,
            zmq.TCP_MAXRT: ACKNOWLEDGED_WITHIN_MS,
        }
        self._short = ShortBatches()
        self._direct = threading.Lock()
        """Guards the two below."""
        self._computes = False
        """The thread is in the kernels of a direct batch, and does not use the socket."""
        self._is_closing = False
        """`close` found a thread that had not ended: it begins no direct batch, and leaves after the present one."""
        self._workspace = engine.create_direct_workspace()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        try:
            self._socket, self.endpoint = bind_socket(context, zmq.ROUTER, endpoint, options, prepare)
        except BaseException:
            os.close(self._wake)
            raise
        self._thread = threading.Thread(target=self._run, name="hltnode-requests", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._received.ask = self._wake_up
        self._thread.start()

    def replace_constants(self, constants: Constants, measured: Sequence[MeasuredQuantity], tck: int) -> None:
        """Use other constants from the next batch on; any thread. They are those of `Engine.replace_constants`."""
        self._constants.append((constants, measured, tck))
        self._wake_up()

    def stop(self, timeout_s: float) -> bool:
        """Refuse what waits, answer the batch in progress, and end the thread; False on timeout."""
        self._stopping = True
        if self._thread.is_alive():
            self._wake_up()
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def close(self, linger_ms: int) -> None:
        """Close the socket. Call it after `stop`.

        A thread whose batch hangs in the back end closes it when the context ends. One that computes a batch itself
        cannot: the socket closes now.
        """
        with self._direct:
            self._is_closing = self._thread.is_alive()
            if self._computes:
                self._socket.close(linger=0)
                return
        if not self._thread.is_alive():
            self._received.ask = None
            self._socket.close(linger=linger_ms)
            os.close(self._wake)

    def _wake_up(self) -> None:
        os.eventfd_write(self._wake, 1)

    def _run(self) -> None:
        try:
            self._workspace.seal(())
            self._workspace.submit(self._wake_up)
            poller = zmq.Poller()
            poller.register(self._socket, zmq.POLLIN)
            poller.register(self._wake, zmq.POLLIN)
            while not self._stopping:
                self._turn(poller)
            self._finish(poller)
        except zmq.ContextTerminated:
            # The node does not wait longer for the back end.
            self._socket.close(linger=0)
        except BaseException as error:
            self._crashed(error)
            raise

    def _turn(self, poller: zmq.Poller) -> None:
        self._wait(poller)
        self._read()
        self._collect_batch()
        for late in self._queue.expired(self._clock_ns()):
            self._refuse(late.client, late.id, RequestRefusal.EXPIRED, "its time ended before its computation began")
        self._start_batch()
        self._counters.waiting = len(self._queue)

    def _wait(self, poller: zmq.Poller) -> None:
        """Sleep until there is something to do."""
        expiry_ns = self._queue.next_expiry_ns()
        left_ms = IDLE_MS if expiry_ns is None else max(0, -(-(expiry_ns - self._clock_ns()) // 1_000_000))
        if self._wake in dict(poller.poll(min(IDLE_MS, left_ms))):
            os.eventfd_read(self._wake)

    def _finish(self, poller: zmq.Poller) -> None:
        """Refuse what waits, and answer the batch in progress."""
        self._read()
        # It is not read any more: what comes now must not wake this thread again and again.
        poller.unregister(self._socket)
        for request in self._queue.take_all():
            self._refuse(request.client, request.id, RequestRefusal.STOPPING, "the node ends")
        self._counters.waiting = 0
        while self._batch:
            # Raises ContextTerminated when the node does not wait longer for the back end.
            self._socket.getsockopt(zmq.EVENTS)
            self._wait(poller)
            self._collect_batch()

    # Messages

    def _read(self) -> None:
        for _ in range(BUDGET_PARTS):
            try:
                # Only frames have the properties of their sender, and are not copied.
                part = self._socket.recv(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                self._received.tally.empty()
                return
            message = self._messages.add(part)
            if message is not None:
                self._message_arrived(message.parts, message.n_parts, part)
        self._wake_up()

    def _message_arrived(self, parts: Sequence[zmq.Frame], n_parts: int, last: zmq.Frame) -> None:
        sender = Sender(parts[0].bytes, last)
        if n_parts > PARTS or n_parts == 1:
            text = f"expected one or two parts, got {n_parts - 1}"
            self._refuse_message(sender, 0, RequestRefusal.MALFORMED, text)
            return
        try:
            message = decode_request(parts[1].bytes)
        except ProtocolError as error:
            self._refuse_message(sender, 0, RequestRefusal.MALFORMED, str(error))
            return
        if isinstance(message, Cancel):
            self._counters.cancelled += self._queue.cancel(sender.client, message.id)
        elif n_parts == PARTS:
            self._request_arrived(sender, message, memoryview(parts[2].buffer))
        else:
            text = "expected a second part with the MEP"
            self._refuse_message(sender, message.id, RequestRefusal.MALFORMED, text)

    def _request_arrived(self, sender: Sender, request: Request, mep: memoryview) -> None:
        try:
            n_events, places = mep_places(mep)
        except ProtocolError as error:
            self._refuse_message(sender, request.id, RequestRefusal.BAD_MEP, str(error))
            return
        if (places[:, 1] % MFP_ALIGNMENT).any():
            text = f"expected MFPs at multiples of {MFP_ALIGNMENT} bytes"
            self._refuse_message(sender, request.id, RequestRefusal.BAD_MEP, text)
            return
        now_ns = self._clock_ns()
        asked_ns = request.timeout_ms * 1_000_000
        timeout_ns = min(asked_ns, self._timeout_ns) if asked_ns else self._timeout_ns
        waiting = WaitingRequest(sender.client, request.id, n_events, places, mep, now_ns, now_ns + timeout_ns)
        refused, left = self._queue.put(waiting)
        for each in left:
            self._refuse(
                each.client, each.id, RequestRefusal.BUSY, "the queue is full, and this client holds most of it"
            )
        if refused is not None:
            self._refuse_message(sender, request.id, refused, self._text_of(refused))

    def _text_of(self, refused: RequestRefusal) -> str:
        limits = self._limits
        if refused is RequestRefusal.TOO_LARGE:
            return (
                f"at most {limits.batch_events} events, {limits.batch_bytes} bytes and {limits.batch_mfps} sources "
                "fit into a request"
            )
        return (
            f"at most {limits.client_requests} requests of a client, {limits.queue_requests} of all, and "
            f"{limits.queue_bytes} bytes wait"
        )

    # Batches

    def _start_batch(self) -> None:
        if self._batch:
            return
        self._is_warm = self._is_warm or self._workspace.poll()
        if not self._is_warm:
            return
        if self._constants:
            self._engine.replace_constants(*self._constants.popleft())
        batch = self._queue.take()
        if not batch:
            return
        self._batch = batch
        try:
            fill(self._workspace, batch)
            is_short = self._short.has(*_events_and_bytes(batch))
            is_done = is_short and self._compute_directly()
            if not is_done:
                self._workspace.submit(self._wake_up)
        except DeviceLostError:
            raise
        except BackendError as error:
            self._failed(error)
            return
        if is_done:
            self._answer_batch(threads=1)
            if len(self._queue):
                # The next batch starts after messages have been read.
                self._wake_up()

    def _compute_directly(self) -> bool:
        with self._direct:
            if self._is_closing:
                raise zmq.ContextTerminated
            self._computes = True
        try:
            return self._workspace.compute_directly()
        finally:
            with self._direct:
                self._computes = False
                is_closing = self._is_closing
            if is_closing:
                raise zmq.ContextTerminated

    def _collect_batch(self) -> None:
        if not self._batch:
            return
        try:
            if not self._workspace.poll():
                return
        except DeviceLostError:
            raise
        except BackendError as error:
            self._failed(error)
            return
        self._answer_batch(self._workspace.sharing_threads)

    def _answer_batch(self, threads: int) -> None:
        """threads: the most that have shared the batch."""
        output, batch = self._workspace.output, self._batch
        self._batch = []
        first, now_ns = 0, self._clock_ns()
        for request in batch:
            rows = slice(first, first + request.n_events)
            first = rows.stop
            if self._send(request.client, self._encoder.encode(request, output, rows)):
                self._counters.answered += 1
                self._counters.events += request.n_events
                self._counters.seconds.observe((now_ns - request.arrived_ns) * 1e-9)
        # Clients do not wait for the rest.
        self._short.computed(*_events_and_bytes(batch), threads * self._workspace.timings.kernels)
        self._counters.batches += 1

    def _failed(self, error: BackendError) -> None:
        batch, self._batch = self._batch, []
        log.error("batch_of_requests_failed", error=str(error), requests=len(batch))
        for request in batch:
            self._refuse(request.client, request.id, RequestRefusal.FAILED, f"the back end failed: {error}")

    # To clients

    def _refuse_message(self, sender: Sender, number: int, reason: RequestRefusal, text: str) -> None:
        """Refuse a message that has just come. With many of them its sender gets no more answers, and then ends."""
        now_ns = self._clock_ns()
        if reason is RequestRefusal.BUSY:
            # Many clients of a machine may find a busy node: each has a budget of its own.
            admitted = self._budget.admits_feeder(sender.client, 0, now_ns)
        else:
            admitted = self._budget.admits_stranger(address_of(sender.last), 0, now_ns)
        if admitted:
            self._refuse(sender.client, number, reason, text)
            return
        self._counters.refused[reason] += 1
        if not self._budget.is_flood(sender.client, now_ns):
            return
        address = address_of(sender.last)
        # If the client has gone, its descriptor may belong to another connection by now.
        if self._send(sender.client, refusal(number, reason, "far too many refused messages: the connection ends")):
            self._received.report(sender.last, ConnectionRefusal.FLOOD)
        else:
            self._received.report_address(address, ConnectionRefusal.FLOOD)
        if (left_out := self._limit.due("flood")) is not None:
            log.warning("request_flood", reason=reason, address=address, left_out=left_out)

    def _refuse(self, client: bytes, number: int, reason: RequestRefusal, text: str) -> None:
        self._counters.refused[reason] += 1
        if (left_out := self._limit.due(reason)) is not None:
            log.warning("request_refused", reason=reason, text=text, left_out=left_out)
        self._send(client, refusal(number, reason, text))

    def _send(self, client: bytes, message: bytes) -> bool:
        """False if the client has gone, or does not read its answers."""
        try:
            self._socket.send_multipart((client, message), zmq.NOBLOCK)
        except zmq.ZMQError as error:
            if error.errno not in (zmq.EAGAIN, zmq.EHOSTUNREACH):
                raise
            self._counters.undelivered += 1
            if error.errno == zmq.EHOSTUNREACH:
                self._counters.cancelled += self._queue.forget(client)
            return False
        return True


def _events_and_bytes(batch: Sequence[WaitingRequest]) -> tuple[int, int]:
    return sum(each.n_events for each in batch), sum(len(each.mep) for each in batch)
