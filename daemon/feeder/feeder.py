"""Feeders: they send MEPs against credits, and keep every MEP until the node has acknowledged it.

One `Feeder` sends some of the sources to one node; `feeding` drives several of them. After a lost connection, or when
the node is a new session, everything that is not acknowledged goes again; the node knows what it has already.
"""

import asyncio
import contextlib
import os
import secrets
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

import zmq
import zmq.asyncio

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.mep_ranges import as_ranges
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import UNKNOWN_FEEDER, HelloRefusal
from hltnode.daemon.feeder.fault_injection import FaultInjector
from hltnode.daemon.feeder.mep_source import FeedMep
from hltnode.daemon.feeder.send_window import SendWindow
from hltnode.daemon.feeder.sockets import HOPELESS, PLAIN, FeederKeys, FeederSockets, next_trouble
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.transport.control_messages import ControlMessage, decode_message
from hltnode.protocol.transport.feeder_messages import (
    Ack,
    Credit,
    EndOfRun,
    Error,
    Goodbye,
    Hello,
    Nack,
    Revoked,
    Welcome,
)
from hltnode.protocol.transport.frame_header import HEADER_SIZE, encode_frame

# A hello is repeated so often: it keeps the feeder known, and repairs lost credits and acknowledgements.
HELLO_SECONDS = 1.0
# A MEP without place is offered again after this: a slot takes some milliseconds.
NO_CREDIT_SECONDS = 0.05
# A node that refuses the hello may still be busy with the last run; after this the feeder gives up.
REFUSED_SECONDS = 30.0
# The oldest MEP is unacknowledged for so long, far above the default MEP timeout: all its fragments may be lost.
PASSED_OVER_SECONDS = 3.0

log = get_logger("feeder")


class FeederRefusedError(RuntimeError):
    """The node does not take this feeder; the message is the node's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeederIdentity:
    """What a feeder says of itself in its hello."""

    name: str
    run: int
    sources: tuple[int, ...]
    events_per_mep: int
    max_fragment_bytes: int


class Feeder:
    """One connection to a node. Use as async context manager.

    `faults` spoils frames on purpose, between the window and the socket.
    """

    def __init__(
        self,
        context: zmq.asyncio.Context,
        data: str,
        control: str,
        identity: FeederIdentity,
        security: FeederKeys = PLAIN,
        *,
        faults: FaultInjector | None = None,
    ) -> None:
        self.identity = identity
        self.faults = faults
        self.window = SendWindow()
        self.session = secrets.token_hex(8)
        self.fragments = 0
        self.bytes = 0
        self.node_session: str | None = None
        self._max_frame_bytes = identity.max_fragment_bytes + HEADER_SIZE
        # Between a welcome and the loss of a connection; then the time (monotonic, s) of the loss.
        self.is_connected = False
        self.lost_since: float | None = None
        # Whether this connection tells the node which MEPs went to another one.
        self.supervising = False
        self.floor: Callable[[], int] = lambda: self.window.first_unacknowledged
        self.on_change: Callable[[], None] | None = None
        self._wake = asyncio.Event()
        self._changed = asyncio.Condition()
        self._tasks: list[asyncio.Task[None]] = []
        self._restart_on_welcome = True
        self._ended: EndOfRun | None = None
        self._refused_since: float | None = None
        self._limit = RateLimit(10_000_000_000, time.monotonic_ns)
        self._sockets = FeederSockets(context, data, control, security)

    async def __aenter__(self) -> "Feeder":
        for work in (self._send_frames, self._read_control, self._say_hello):
            self._tasks.append(asyncio.create_task(work()))
        for monitor in self._sockets.monitors:
            self._tasks.append(asyncio.create_task(self._watch(monitor)))
        return self

    async def __aexit__(self, *_error: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._sockets.close(Goodbye("feeder ends"))

    async def offer(self, mep: FeedMep) -> None:
        """Keep and send the fragments of this feeder's sources; returns when there was credit for them.

        Raises FeederRefusedError when the node does not take this feeder.
        """
        await self._until(lambda: self.window.room > 0 or mep.mep in self.window.acked)
        self.keep(mep)

    def keep(self, mep: FeedMep) -> None:
        """Keep the fragments of this feeder's sources and send them when there is credit. Raises FeederRefusedError."""
        identity = self.identity
        now_ns = time.time_ns()
        frames = {
            source: encode_frame(
                mep.mfps[source], run=identity.run, mep_id=mep.mep, source_id=source, send_time_ns=now_ns
            )
            for source in identity.sources
        }
        largest = max(map(len, frames.values()))
        if largest > self._max_frame_bytes:
            # A longer frame would cost the connection, and again with every repeat.
            raise FeederRefusedError(
                f"MEP {mep.mep}: a fragment needs a frame of {largest} bytes, the node takes {self._max_frame_bytes}: "
                "feed fewer events per MEP, or raise network.max_frame_bytes"
            )
        self.window.add(mep.mep, frames)
        self._wake.set()

    def wake(self) -> None:
        """There may be something to send."""
        self._wake.set()

    def check(self) -> None:
        """Raise the error of a task that has failed, for example FeederRefusedError."""
        for task in self._tasks:
            if task.done():
                task.result()

    async def end_run(self, last_mep: int | None) -> None:
        """Say that nothing follows a MEP."""
        self._ended = EndOfRun(self.identity.run, last_mep)
        await self._sockets.tell(self._ended)

    async def finish(self, last_mep: int | None) -> None:
        """Say that this was all and wait until everything is acknowledged. Raises FeederRefusedError."""
        await self.end_run(last_mep)
        await self._until(lambda: self.window.unacknowledged == 0)

    async def _until(self, condition: Callable[[], bool]) -> None:
        async with self._changed:
            while not condition():
                self.check()
                await self._changed.wait()

    async def _notify(self) -> None:
        self._wake.set()
        if self.on_change is not None:
            self.on_change()
        async with self._changed:
            self._changed.notify_all()

    async def _send_frames(self) -> None:
        while True:
            frame = self.window.next_frame()
            if self.faults is not None:
                await self._send_with_faults(self.faults, frame)
            elif frame is not None:
                await self._send_frame(frame)
            else:
                self._wake.clear()
                await self._wake.wait()

    async def _send_frame(self, frame: bytes) -> None:
        await self._sockets.send_frame(frame)
        self.fragments += 1
        self.bytes += len(frame)

    async def _send_with_faults(self, faults: FaultInjector, frame: bytes | None) -> None:
        """Send what the faults leave of a frame, and what they held back; waits if there is nothing to send."""
        now_ns = time.monotonic_ns()
        spoiled = faults.due(now_ns) if frame is None else faults.take(now_ns, frame)
        for each in spoiled:
            await self._send_frame(each)
        if faults.kills:
            os.kill(os.getpid(), signal.SIGKILL)
        if frame is None and not spoiled:
            due_ns = faults.next_due_ns
            seconds = None if due_ns is None else (due_ns - now_ns) * 1e-9
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), seconds)

    async def _say_hello(self) -> None:
        oldest, oldest_since = -1, 0.0
        try:
            while True:
                if self.window.first_unacknowledged != oldest:
                    oldest, oldest_since = self.window.first_unacknowledged, time.monotonic()
                elif time.monotonic() - oldest_since > PASSED_OVER_SECONDS:
                    self.window.queue_passed_over(all_sent=self._ended is not None)
                    oldest = -1
                identity = self.identity
                await self._sockets.tell(
                    Hello(
                        feeder=identity.name,
                        session=self.session,
                        run=identity.run,
                        sources=identity.sources,
                        first_mep=self.floor(),
                        events_per_mep=identity.events_per_mep,
                        max_fragment_bytes=identity.max_fragment_bytes,
                    )
                )
                if self._ended is not None:
                    await self._sockets.tell(self._ended)
                if self.supervising and self.is_connected and self.window.revoked:
                    await self._sockets.tell(Revoked(identity.run, tuple(as_ranges(self.window.revoked))))
                await asyncio.sleep(HELLO_SECONDS)
                await self._notify()
                if self.node_session is None and self._limit.due("waiting") is not None:
                    log.info("waiting_for_node", feeder=identity.name)
                refused = self._refused_since
                if refused is not None and time.monotonic() - refused > REFUSED_SECONDS:
                    raise FeederRefusedError(self._refusal)
        finally:
            # Whoever waits for credit has to learn that this task is over.
            with contextlib.suppress(asyncio.CancelledError):
                await self._notify()

    async def _read_control(self) -> None:
        while True:
            raw = await self._sockets.hear()
            try:
                message = decode_message(raw)
            except ProtocolError as error:
                log.warning("bad_control_message", feeder=self.identity.name, error=str(error))
                continue
            self._take(message)
            await self._notify()

    def _take(self, message: ControlMessage) -> None:
        match message:
            case Welcome():
                self._welcome(message)
            case Credit():
                if not self._restart_on_welcome:
                    self.window.credit(message.meps)
            case Ack():
                for first, last in message.meps:
                    self.window.acknowledge(first, last)
            case Nack():
                self._nack(message)
            case Revoked():
                for first, last in message.meps:
                    self.window.revoked.difference_update(range(first, last + 1))
            case Goodbye():
                self._lose()
                log.info("node_leaves", feeder=self.identity.name, reason=message.reason)
            case Error():
                self._error(message)
            case _:
                log.warning("unexpected_message", feeder=self.identity.name, type=type(message).__name__)

    def _welcome(self, welcome: Welcome) -> None:
        self._refused_since = None
        if welcome.session != self.node_session or self._restart_on_welcome:
            log.info(
                "welcome",
                feeder=self.identity.name,
                node=welcome.node,
                session=welcome.session,
                unacknowledged=self.window.unacknowledged,
            )
            self.node_session = welcome.session
            self._max_frame_bytes = welcome.max_fragment_bytes + HEADER_SIZE
            self._restart_on_welcome = False
            self.is_connected = True
            self.lost_since = None
            self.window.restart()

    def _nack(self, nack: Nack) -> None:
        if self.window.refuse(nack):
            asyncio.get_running_loop().call_later(NO_CREDIT_SECONDS, self._queue_again, nack.mep, nack.source)
        left_out = self._limit.due(("nack", nack.reason))
        if left_out is not None:
            log.warning(
                "fragment_refused",
                feeder=self.identity.name,
                source=nack.source,
                mep=nack.mep,
                reason=nack.reason,
                resend=nack.resend,
                left_out=left_out,
            )

    def _queue_again(self, mep: int, source: int) -> None:
        self.window.queue_again(mep, source)
        self._wake.set()

    def _error(self, error: Error) -> None:
        if self._limit.due(("error", error.reason)) is not None:
            log.warning("node_refuses", feeder=self.identity.name, reason=error.reason, text=error.text)
        if error.reason == HelloRefusal.NAME_TAKEN:
            # Of two processes only one may send: this one has been away for so long that it has lost its place.
            self._lose()
        if error.reason == UNKNOWN_FEEDER:
            return
        if self._refused_since is None:
            self._refused_since = time.monotonic()
        self._refusal = f"node refuses feeder {self.identity.name}: {error.text}"

    async def _watch(self, monitor: zmq.asyncio.Socket) -> None:
        """After a lost connection nothing is sure: stop sending until the node has said welcome again.

        Raises FeederRefusedError for a handshake that will fail again and again.
        """
        try:
            while True:
                event = await next_trouble(monitor)
                if event in HOPELESS:
                    raise FeederRefusedError(f"feeder {self.identity.name}: {HOPELESS[event]}")
                if self._limit.due(("connection", event)) is not None:
                    log.warning("connection_lost", feeder=self.identity.name, trouble=event.name)
                if event == zmq.EVENT_DISCONNECTED:
                    self._lose()
        finally:
            # Whoever waits for credit has to learn that this task is over.
            with contextlib.suppress(asyncio.CancelledError):
                await self._notify()

    def _lose(self) -> None:
        self._restart_on_welcome = True
        self.window.credit(0)
        self.is_connected = False
        if self.lost_since is None:
            self.lost_since = time.monotonic()
