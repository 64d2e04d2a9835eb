"""Feeders: they send MEPs against credits, and keep every MEP until the node has acknowledged it.

One `Feeder` is one connection pair (PUSH data, DEALER control) for some of the sources. `feed_meps` drives several of
them in one process, MEP by MEP. After a lost connection, or when the node is a new session, everything that is not
acknowledged goes again; the node knows what it has already.
"""

import asyncio
import contextlib
import secrets
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import zmq
import zmq.asyncio
from zmq.utils.monitor import parse_monitor_message

from hltnode.daemon.control import MAX_CONTROL_BYTES, set_heartbeat
from hltnode.daemon.curve_keys import ClientKeys
from hltnode.daemon.log import RateLimit, get_logger
from hltnode.daemon.mep_source import FeedMep
from hltnode.daemon.send_window import SendWindow
from hltnode.protocol.control import (
    Ack,
    ControlMessage,
    Credit,
    EndOfRun,
    Error,
    Goodbye,
    Hello,
    Nack,
    Welcome,
    decode_message,
    encode_message,
)
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.transport import HEADER_SIZE, encode_frame

# A hello is repeated so often: it keeps the feeder known, and repairs lost credits and acknowledgements.
HELLO_SECONDS = 1.0
# A MEP without place is offered again after this: a slot takes some milliseconds.
NO_CREDIT_SECONDS = 0.05
# Frames in the pipe to the node. They are kept here anyway; a few are enough to keep the connection busy.
DATA_HWM = 8
RECONNECT_MS = 100
RECONNECT_MAX_MS = 1000
# pyzmq's own threshold: below it copying a frame is cheaper than keeping track of its memory.
COPY_THRESHOLD = 65536
# A node that refuses the hello may still be busy with the last run; after this the feeder gives up.
REFUSED_SECONDS = 30.0
LINGER_MS = 500

# Handshakes that no repetition will mend.
_HOPELESS = {
    zmq.EVENT_HANDSHAKE_FAILED_AUTH: "the node does not know this key: it is not in security.clients",
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL: "the node and this feeder do not agree on CURVE, or on the key of the node",
}
_MONITORED = zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | sum(_HOPELESS)

log = get_logger("feeder")

AsyncSocket = zmq.asyncio.Socket


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


@dataclass(frozen=True, slots=True)
class FeederKeys:
    """CURVE of a feeder: its keys, None for plain connections, and whether the data are encrypted too."""

    keys: ClientKeys | None = None
    data: bool = False


@dataclass(frozen=True, slots=True)
class FeedReport:
    """What was fed: MEPs and events offered, fragments sent (with repeats), refused for good, left unacknowledged."""

    meps: int
    events: int
    fragments: int
    bytes: int
    resent: int
    refused: dict[str, int]
    unacknowledged: int
    seconds: float

    @property
    def complete(self) -> bool:
        """True when the node has taken and acknowledged everything."""
        return not self.unacknowledged and not self.refused


class Feeder:
    """One connection to a node. Use as async context manager."""

    def __init__(
        self,
        context: zmq.asyncio.Context,
        data: str,
        control: str,
        identity: FeederIdentity,
        security: FeederKeys = FeederKeys(),
    ) -> None:
        self.identity = identity
        self.window = SendWindow()
        self.session = secrets.token_hex(8)
        self.fragments = 0
        self.bytes = 0
        self.node_session: str | None = None
        self._max_frame_bytes = identity.max_fragment_bytes + HEADER_SIZE
        self._wake = asyncio.Event()
        self._changed = asyncio.Condition()
        self._tasks: list[asyncio.Task[None]] = []
        self._restart_on_welcome = True
        self._ended: EndOfRun | None = None
        self._refused_since: float | None = None
        self._limit = RateLimit(10_000_000_000, time.monotonic_ns)
        self._data: AsyncSocket = context.socket(zmq.PUSH)
        self._data.setsockopt(zmq.SNDHWM, DATA_HWM)
        # Frames wait here, where they are kept, and not in a pipe to a node that is not there.
        self._data.setsockopt(zmq.IMMEDIATE, 1)
        self._control: AsyncSocket = context.socket(zmq.DEALER)
        self._control.setsockopt(zmq.MAXMSGSIZE, MAX_CONTROL_BYTES)
        for socket in (self._data, self._control):
            socket.setsockopt(zmq.LINGER, LINGER_MS)
            socket.setsockopt(zmq.RECONNECT_IVL, RECONNECT_MS)
            socket.setsockopt(zmq.RECONNECT_IVL_MAX, RECONNECT_MAX_MS)
            set_heartbeat(socket)
        if security.keys is not None:
            security.keys.apply(self._control)
            if security.data:
                security.keys.apply(self._data)
        self._data_monitor: AsyncSocket = self._data.get_monitor_socket(_MONITORED)
        self._control_monitor: AsyncSocket = self._control.get_monitor_socket(_MONITORED)
        self._data.connect(data)
        self._control.connect(control)

    async def __aenter__(self) -> "Feeder":
        for work in (self._send_frames, self._read_control, self._say_hello):
            self._tasks.append(asyncio.create_task(work()))
        for monitor in (self._data_monitor, self._control_monitor):
            self._tasks.append(asyncio.create_task(self._watch(monitor)))
        return self

    async def __aexit__(self, *_error: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with contextlib.suppress(zmq.ZMQError):
            await self._control.send(encode_message(Goodbye("feeder ends")), zmq.NOBLOCK)
        for socket in (self._data, self._control):
            socket.disable_monitor()
            socket.close()
        for monitor in (self._data_monitor, self._control_monitor):
            monitor.close(linger=0)

    async def offer(self, mep: FeedMep) -> None:
        """Keep and send the fragments of this feeder's sources; returns when there was credit for them.

        Raises FeederRefusedError when the node does not take this feeder.
        """
        await self._until(lambda: mep.mep < self.window.limit or mep.mep in self.window.acked)
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

    async def finish(self, last_mep: int | None) -> None:
        """Say that this was all and wait until everything is acknowledged. Raises FeederRefusedError."""
        self._ended = EndOfRun(self.identity.run, last_mep)
        await self._tell(self._ended)
        await self._until(lambda: self.window.unacknowledged == 0)

    async def _until(self, condition: object) -> None:
        assert callable(condition)
        async with self._changed:
            while not condition():
                for task in self._tasks:
                    if task.done():
                        task.result()
                await self._changed.wait()

    async def _notify(self) -> None:
        self._wake.set()
        async with self._changed:
            self._changed.notify_all()

    async def _send_frames(self) -> None:
        while True:
            frame = self.window.next_frame()
            if frame is None:
                self._wake.clear()
                await self._wake.wait()
                continue
            await self._data.send(frame, copy=len(frame) < COPY_THRESHOLD)
            self.fragments += 1
            self.bytes += len(frame)

    async def _say_hello(self) -> None:
        try:
            while True:
                identity = self.identity
                await self._tell(
                    Hello(
                        feeder=identity.name,
                        session=self.session,
                        run=identity.run,
                        sources=identity.sources,
                        first_mep=self.window.first_unacknowledged,
                        events_per_mep=identity.events_per_mep,
                        max_fragment_bytes=identity.max_fragment_bytes,
                    )
                )
                if self._ended is not None:
                    await self._tell(self._ended)
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

    async def _tell(self, message: ControlMessage) -> None:
        await self._control.send(encode_message(message))

    async def _read_control(self) -> None:
        while True:
            raw = await self._control.recv()
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
                    self.window.credit(message.mep_limit)
            case Ack():
                for first, last in message.meps:
                    self.window.acknowledge(first, last)
            case Nack():
                self._nack(message)
            case Goodbye():
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
        if self._refused_since is None:
            self._refused_since = time.monotonic()
        self._refusal = f"node refuses feeder {self.identity.name}: {error.text}"

    async def _watch(self, monitor: AsyncSocket) -> None:
        """After a lost connection nothing is sure: stop sending until the node has said welcome again.

        Raises FeederRefusedError for a handshake that will fail again and again.
        """
        try:
            while True:
                event = zmq.Event(parse_monitor_message(await monitor.recv_multipart())["event"])
                if event in _HOPELESS:
                    raise FeederRefusedError(f"feeder {self.identity.name}: {_HOPELESS[event]}")
                if self._limit.due(("connection", event)) is not None:
                    log.warning("connection_lost", feeder=self.identity.name, trouble=event.name)
                if event == zmq.EVENT_DISCONNECTED:
                    self._restart_on_welcome = True
                    self.window.credit(0)
        finally:
            # Whoever waits for credit has to learn that this task is over.
            with contextlib.suppress(asyncio.CancelledError):
                await self._notify()


async def feed_meps(meps: Iterable[FeedMep], feeders: Sequence[Feeder], *, rate: float | None = None) -> FeedReport:
    """Send MEPs through all feeders, each its sources, and wait for the acknowledgements.

    `rate` limits the events per second. Raises FeederRefusedError.
    """
    start = time.monotonic()
    next_at = start
    n_meps = n_events = 0
    last: int | None = None
    for mep in meps:
        if rate is not None:
            await asyncio.sleep(max(0.0, next_at - time.monotonic()))
            next_at = max(next_at, time.monotonic() - 1.0) + mep.n_events / rate
        for feeder in feeders:
            await feeder.offer(mep)
        n_meps += 1
        n_events += mep.n_events
        last = mep.mep
    await asyncio.gather(*(feeder.finish(last) for feeder in feeders))
    return make_report(feeders, n_meps, n_events, time.monotonic() - start)


def make_report(feeders: Sequence[Feeder], meps: int, events: int, seconds: float) -> FeedReport:
    """Sum up what the feeders have done so far."""
    refused: Counter[str] = Counter()
    for feeder in feeders:
        refused.update({str(reason): count for reason, count in feeder.window.refused.items()})
    return FeedReport(
        meps=meps,
        events=events,
        fragments=sum(feeder.fragments for feeder in feeders),
        bytes=sum(feeder.bytes for feeder in feeders),
        resent=sum(feeder.window.resent for feeder in feeders),
        refused=dict(refused),
        unacknowledged=max((feeder.window.unacknowledged for feeder in feeders), default=0),
        seconds=seconds,
    )


def share(sources: Sequence[int], connections: int) -> list[tuple[int, ...]]:
    """Spread source ids over connections, one connection per source for 0; no connection stays empty."""
    n = len(sources) if connections == 0 else min(connections, len(sources))
    return [tuple(sources[i::n]) for i in range(n)]
