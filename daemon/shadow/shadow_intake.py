"""The input of a shadow node: it reads whole MEPs at the tap of a productive node, and feeds them to this node.

The feeder lies in this process and uses the sockets of the node inside it (inproc), so a shadow builds, computes and
drains as any node. It is the only feeder that the shadow takes. The productive node knows nothing of it but a
subscription: a shadow has no credits of it, and acknowledges nothing to its feeders. While this node has no credits,
nothing is read from the tap, and the tap drops MEPs.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any

import zmq
import zmq.asyncio

from hltnode.client._native import allocate_frames
from hltnode.client.feeder import Feeder, FeederIdentity, FeederRefusedError
from hltnode.client.keys import ClientKeys
from hltnode.client.sockets import FeederSockets
from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import ShadowLoss
from hltnode.daemon.monitoring.counters import ShadowCounters
from hltnode.protocol.buffers import byte_view
from hltnode.protocol.errors import MessageError, ProtocolError
from hltnode.protocol.packing import PackedFrames, frames_of_mfps
from hltnode.protocol.raw_data.mep import mep_places
from hltnode.protocol.transport.endpoints import is_ipv6
from hltnode.protocol.transport.tap_message import TappedMep, decode_tapped

DATA_ENDPOINT, CONTROL_ENDPOINT = "inproc://shadow-data", "inproc://shadow-control"
"""Where the sockets of the node are bound for this feeder."""
# Messages that wait in this process; MEPs are large, and the tap keeps more.
QUEUE = 4
# A productive node closes incomplete MEPs later than others. MEPs that are older by more than this number of ids are
# lost.
MAX_LATE_MEPS = 1024
# The last MEPs of a run are decided within this time, or given up.
END_OF_RUN_SECONDS = 5.0
# After a refusal of this node, the run is offered again after this time.
RETRY_NS = 10_000_000_000
LOG_INTERVAL_NS = 10_000_000_000

log = get_logger("shadow")


class ShadowIntake:
    """Reads a tap and feeds this node. All calls come from the event loop.

    Args:
        context: the context of the sockets of this node.
        tap: endpoint of the tap of the productive node.
        keys: CURVE keys for it; None for a plain connection.
        node, chain: name and chain of this node.
        max_mep_bytes: largest MEP of this node.
        only: called with the session of the only feeder that this node may take.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        tap: str,
        keys: ClientKeys | None,
        counters: ShadowCounters,
        *,
        node: str,
        chain: str,
        max_mep_bytes: int,
        max_frame_bytes: int,
        only: Callable[[str], None],
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._context = zmq.asyncio.Context.shadow(context.underlying)
        self._tap = tap
        self._keys = keys
        self._counters = counters
        self._node = node
        self._chain = chain
        self._max_mep_bytes = max_mep_bytes
        self._max_frame_bytes = max_frame_bytes
        self._only = only
        self._clock_ns = clock_ns
        self._limit = RateLimit(LOG_INTERVAL_NS, clock_ns)
        self._next_sequence: int | None = None
        self._feeder: Feeder | None = None
        self._run: int | None = None
        self._sources: frozenset[int] = frozenset()
        self._retry_ns = 0
        self._task: asyncio.Task[None] | None = None
        self._leaving: asyncio.Future[None] | None = None
        only("")

    def start(self, loop: asyncio.AbstractEventLoop, failed: Callable[[str], None]) -> None:
        """Start to read. `failed` is called with the reason if that ends by an unexpected error."""

        def ended(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and (error := task.exception()) is not None:
                failed(f"shadow intake: {error!r}")

        self._task = loop.create_task(self._read())
        self._task.add_done_callback(ended)

    async def stop_reading(self) -> None:
        """Read no more; MEPs that this node has credited are still sent to it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def close(self) -> None:
        """Stop, and close all sockets."""
        await self.stop_reading()
        await self._leave()

    async def _read(self) -> None:
        socket = self._context.socket(zmq.SUB)
        try:
            socket.setsockopt(zmq.LINGER, 0)
            socket.setsockopt(zmq.IPV6, is_ipv6(self._tap))
            socket.setsockopt(zmq.RCVHWM, QUEUE)
            # The MEP, its header and its arrays of 6 bytes for each source.
            socket.setsockopt(zmq.MAXMSGSIZE, 2 * self._max_mep_bytes)
            socket.setsockopt(zmq.SUBSCRIBE, b"")
            if self._keys is not None:
                self._keys.apply(socket)
            socket.connect(self._tap)
            log.info("shadow_of", tap=self._tap)
            while True:
                await self._take(await socket.recv_multipart(copy=False))
        finally:
            socket.close()

    async def _take(self, parts: list[Any]) -> None:
        try:
            tapped = decode_tapped([part.buffer for part in parts])
        except MessageError as error:
            self._lost(ShadowLoss.DAMAGED, error=f"{self._tap}: expected a tap of whole MEPs: {error}")
            return
        if tapped is None:
            return
        header = tapped.header
        if self._next_sequence is not None and header.sequence > self._next_sequence:
            missed = header.sequence - self._next_sequence
            self._lost(ShadowLoss.SLOW, missed, before_mep=header.mep)
        self._next_sequence = header.sequence + 1
        try:
            await self._feed(tapped)
        except FeederRefusedError as error:
            self._lost(ShadowLoss.REFUSED, run=header.run, mep=header.mep, error=str(error))
            self._retry_ns = self._clock_ns() + RETRY_NS
            await self._leave()

    async def _feed(self, tapped: TappedMep) -> None:
        run, mep = tapped.header.run, tapped.header.mep
        if tapped.chain != self._chain:
            self._lost(ShadowLoss.FOREIGN, error=f"MEPs of chain {tapped.chain}, this node runs chain {self._chain}")
            return
        if run == self._run and self._feeder is None and self._clock_ns() < self._retry_ns:
            self._lost(ShadowLoss.REFUSED)
            return
        try:
            packed = _packed(tapped, self._max_mep_bytes, self._max_frame_bytes)
        except (ProtocolError, ValueError) as error:
            self._lost(ShadowLoss.DAMAGED, run=run, mep=mep, error=str(error))
            return
        if run != self._run:
            await self._end_run()
        if self._feeder is None:
            self._feeder = await self._begin_run(tapped, packed)
        feeder = self._feeder
        if not self._sources.issuperset(packed.sources):
            self._lost(ShadowLoss.FOREIGN, run=run, mep=mep, error="the MEP has sources that the run began without")
        elif mep < feeder.window.confirmed:
            self._lost(ShadowLoss.LATE)
        elif mep in feeder.window or mep in feeder.window.acked:
            self._lost(ShadowLoss.REPEATED)
        else:
            # A tap with a prescale leaves gaps: without this each acknowledged MEP would stay a range of its own.
            if (confirmed := feeder.window.confirmed) > 0:
                feeder.window.acked.add(0, confirmed - 1)
            packed.seal(run=run, mep=mep, send_time_ns=time.time_ns())
            await feeder.offer_frames(mep, packed.frames())
            self._counters.meps += 1

    async def _begin_run(self, tapped: TappedMep, packed: PackedFrames) -> Feeder:
        run = tapped.header.run
        sources = tuple(sorted({*packed.sources, *tapped.missing}))
        identity = FeederIdentity(
            name=f"shadow-of-{self._node}"[:63],
            run=run,
            sources=sources,
            events_per_mep=tapped.events_per_mep,
            max_fragment_bytes=self._max_frame_bytes,
            chain=self._chain,
        )
        feeder = Feeder(FeederSockets(self._context, DATA_ENDPOINT, CONTROL_ENDPOINT), identity, report=_report)
        feeder.window.next_mep = tapped.header.mep
        feeder.floor = lambda: max(0, feeder.window.first_unacknowledged - MAX_LATE_MEPS)
        self._only(feeder.session)
        self._run, self._sources = run, frozenset(sources)
        await feeder.__aenter__()
        log.info("shadow_run", run=run, sources=len(sources), first_mep=tapped.header.mep)
        return feeder

    async def _end_run(self) -> None:
        """The productive node has another run: finish this one."""
        feeder = self._feeder
        if feeder is not None:
            feeder.floor = lambda: feeder.window.first_unacknowledged
            with contextlib.suppress(FeederRefusedError, TimeoutError):
                async with asyncio.timeout(END_OF_RUN_SECONDS):
                    await feeder.finish(max(0, feeder.window.next_mep - 1))
        await self._leave()
        self._run = None

    async def _leave(self) -> None:
        feeder, self._feeder = self._feeder, None
        if feeder is not None:
            self._leaving = asyncio.ensure_future(feeder.__aexit__())
        if self._leaving is not None:
            # The sockets must be closed also if the task that reads is cancelled here.
            await asyncio.shield(self._leaving)
            self._leaving = None

    def _lost(self, reason: ShadowLoss, n: int = 1, **details: object) -> None:
        self._counters.lost[reason] += n
        if (left_out := self._limit.due(reason)) is not None:
            log.warning("shadow_loses_meps", reason=reason, n=n, left_out=left_out, **details)


def _packed(tapped: TappedMep, max_mep_bytes: int, max_frame_bytes: int) -> PackedFrames:
    """The frames of a MEP. Raises MepError, and ValueError for a MEP that this node cannot hold."""
    n_events, places = mep_places(tapped.content)
    if n_events > tapped.events_per_mep:
        raise ValueError(f"{n_events} events, the run has at most {tapped.events_per_mep}")
    if int(places[:, 2].sum()) > max_mep_bytes:
        raise ValueError(f"{places[:, 2].sum()} bytes of MFPs, builder.max_mep_bytes allows {max_mep_bytes}")
    view = byte_view(tapped.content)
    mfps = {source: view[begin : begin + size] for source, begin, size in places.tolist()}
    packed = frames_of_mfps(mfps, allocate=allocate_frames)
    if packed.largest > max_frame_bytes:
        raise ValueError(f"a frame of {packed.largest} bytes, network.max_frame_bytes allows {max_frame_bytes}")
    return packed


def _report(event: str, /, **details: object) -> None:
    log.debug(event, **details)
