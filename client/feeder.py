"""Feeders: they send MEPs against credits, and keep every MEP until the node has acknowledged it.

One `Feeder` sends some of the sources to one node. After a lost connection or a restart of the node, the feeder repeats
every MEP that is not acknowledged; the node refuses fragments that it already has.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Mapping

import zmq
import zmq.asyncio

from hltnode.client.clock import SYSTEM_CLOCK, Clock
from hltnode.client.fault_injection import FaultInjector
from hltnode.client.feeder_conversation import (
    FeederConversation,
    FeederIdentity,
    FeederRefusedError,
    Report,
    report_nothing,
)
from hltnode.client.memory_socket import MemoryRefusedError
from hltnode.client.mep import FeedMep
from hltnode.client.shared_memory import SharedMemory, SharedMemoryError
from hltnode.client.sockets import (
    HOPELESS,
    PLAIN,
    UNEXPLAINED,
    FeederConnection,
    FeederKeys,
    Trouble,
    connect_to_node,
    control_endpoint,
)
from hltnode.protocol.buffers import Buffer
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.transport.control_messages import decode_message
from hltnode.protocol.transport.feeder_messages import EndOfRun, Goodbye, Returned, Revoked, split_moved
from hltnode.protocol.transport.frame_header import set_frame_tokens

__all__ = ["Feeder", "FeederIdentity", "FeederRefusedError", "Report", "report_nothing"]

# Period of hellos. The node answers each one; that keeps the feeder known and repairs lost credits and
# acknowledgements.
HELLO_SECONDS = 1.0
# After this number of hellos in a row without any message from the node, the connection is lost. The limit counts
# hellos, not seconds: a feeder that was paused has received nothing either.
SILENT_HELLOS = 4
# How long to wait for the answer to the last hello, which confirms the acknowledged MEPs.
CONFIRM_NS = 2_000_000_000


# Frames to send before the event loop runs other tasks.
FRAMES_OF_A_TURN = 256


class Feeder(FeederConversation):
    """One connection to a node. Use as async context manager.

    `faults` injects faults between the window and the connection.
    """

    def __init__(
        self,
        connection: FeederConnection,
        identity: FeederIdentity,
        *,
        faults: FaultInjector | None = None,
        clock: Clock = SYSTEM_CLOCK,
        report: Report = report_nothing,
    ) -> None:
        super().__init__(identity, clock, report)
        self.faults = faults
        self.fragments = 0
        self.bytes = 0
        # Whether the same node welcomed another connection of this process.
        self.node_takes_others: Callable[[], bool] = lambda: False
        self.on_change: Callable[[], None] | None = None
        self._wake = asyncio.Event()
        self._changed = asyncio.Condition()
        self._tasks: list[asyncio.Task[None]] = []
        self._ended: EndOfRun | None = None
        self._connection = connection

    @classmethod
    def connect(
        cls,
        data: str,
        control: str | None = None,
        *,
        identity: FeederIdentity,
        keys: FeederKeys = PLAIN,
        report: Report = report_nothing,
        shared_memory: SharedMemory | None = None,
    ) -> "Feeder":
        """A feeder of the node at these endpoints; the control endpoint is the next port if not given.

        With the data endpoint shm:///PATH (the memory socket of a node on this machine) the fragments are not sent: the
        node reads them in `shared_memory`, by default memory of the default size. `report` logs the events between
        feeder and node. Raises ValueError if there is no next port.
        """
        context = zmq.asyncio.Context.instance()
        connection = connect_to_node(context, data, control or control_endpoint(data), keys, shared_memory)
        return cls(connection, identity, report=report)

    async def __aenter__(self) -> "Feeder":
        for work in (self._send_frames, self._read_control, self._say_hello):
            self._tasks.append(asyncio.create_task(work()))
        for trouble in self._connection.troubles:
            self._tasks.append(asyncio.create_task(self._watch(trouble)))
        return self

    async def __aexit__(self, *_error: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._connection.close(Goodbye("feeder ends"))

    async def offer(self, mep: FeedMep) -> None:
        """Keep and send the fragments of this feeder's sources; waits for credit.

        Raises FeederRefusedError when the node refuses this feeder, SharedMemoryError for a MEP that does not fit the
        shared memory.
        """
        await self._until(lambda: mep.mep in self.window.acked or (self.window.room > 0 and self._is_in_memory(mep)))
        self.keep(mep)

    async def offer_frames(self, mep: int, frames: Mapping[int, Buffer]) -> None:
        """Keep and send the sealed frames of a MEP by source, of any of this feeder's sources; waits for credit.

        For a feeder that repeats the MEPs of a node, where sources may be missing. Raises FeederRefusedError.
        """
        await self._until(lambda: mep in self.window.acked or self.window.room > 0)
        self.window.add(mep, frames)
        self._wake.set()

    @property
    def max_frame_bytes(self) -> int:
        """Size of the largest frame that the node accepts."""
        return self._max_frame_bytes

    def _is_in_memory(self, mep: FeedMep) -> bool:
        memory = self._connection.memory
        return memory is None or mep.move_to(memory)

    def keep(self, mep: FeedMep) -> None:
        """Keep the fragments of this feeder's sources and send them when there is credit.

        Raises FeederRefusedError, and SharedMemoryError if the shared memory has no room for them.
        """
        if mep.mep in self.window.acked and not self.window.retains:
            self.window.add(mep.mep, {})
            return
        if not self._is_in_memory(mep):
            raise SharedMemoryError(f"MEP {mep.mep}: the shared memory is full")
        identity = self.identity
        frames = mep.frames(identity.run, self._clock.wall_ns(), identity.sources)
        largest = max(map(len, frames.values()))
        if largest > self._max_frame_bytes:
            # The node closes the connection after a longer frame, and would do so again after every repeat.
            raise FeederRefusedError(
                f"MEP {mep.mep}: a fragment needs a frame of {largest} bytes, the node allows {self._max_frame_bytes}: "
                "feed fewer events per MEP, or raise network.max_frame_bytes"
            )
        self.window.add(mep.mep, frames)
        self._wake.set()

    def wake(self) -> None:
        """Wake the sender: there may be frames to send."""
        self._wake.set()

    def check(self) -> None:
        """Raise the error of a failed task, for example FeederRefusedError."""
        for task in self._tasks:
            if task.done():
                task.result()

    async def end_run(self, last_mep: int | None) -> None:
        """Announce the last MEP of the run."""
        self._ended = EndOfRun(self.identity.run, last_mep)
        await self._connection.send_message(self._ended)

    async def finish(self, last_mep: int | None) -> None:
        """End the run: wait until every MEP is acknowledged, and confirm it. Raises FeederRefusedError."""
        await self.end_run(last_mep)
        await self.acknowledged()
        await self.confirm()

    async def acknowledged(self) -> None:
        """Wait until every MEP is acknowledged. Raises FeederRefusedError."""
        await self._until(lambda: self.window.unacknowledged == 0)

    async def welcomed(self) -> None:
        """Wait until the node has welcomed this feeder. Raises FeederRefusedError."""
        await self._until(lambda: self.is_connected)

    async def confirm(self) -> None:
        """Confirm with a last hello that every MEP is acknowledged; returns after the answer or a short time-out.

        A node keeps the run until each feeder has confirmed all of its MEPs. Raises FeederRefusedError.
        """
        awaited = self._welcomes + self._hellos_without_welcome + 1
        end_ns = self._clock.monotonic_ns() + CONFIRM_NS
        await self._send_hello()
        await self._until(lambda: self._welcomes >= awaited or self._clock.monotonic_ns() >= end_ns)
        if self._welcomes < awaited:
            self._report("confirmation_unanswered", run=self.identity.run)

    async def _send_hello(self) -> None:
        self._silent_hellos += 1
        self._hellos_without_welcome += 1
        await self._connection.send_message(self.hello())

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
        try:
            await self._keep_sending()
        finally:
            # Wake a caller that waits for credit: this task has ended.
            with contextlib.suppress(asyncio.CancelledError):
                await self._notify()

    async def _keep_sending(self) -> None:
        while True:
            if self.window.next_retry_ns is not None:
                self.window.retry(self._clock.monotonic_ns())
            next_frames = self.window.next_frames(FRAMES_OF_A_TURN if self.faults is None else 1)
            # Kept frames may have the token of an earlier welcome or of another node.
            set_frame_tokens(next_frames.frames, self.token)
            if self.faults is not None:
                self.window.sent(self._clock.monotonic_ns(), next_frames, len(next_frames.frames))
                await self._send_with_faults(self.faults, next_frames.frames)
            elif next_frames.frames:
                n_sent = await self._send(next_frames.frames)
                self.window.sent(self._clock.monotonic_ns(), next_frames, n_sent)
                self._count(next_frames.frames[:n_sent])
                # Frames leave as long as there is room. The yield lets hellos and acknowledgements run too.
                await asyncio.sleep(0)
            else:
                await self._wait_until(self.window.next_retry_ns)

    async def _wait_until(self, due_ns: int | None) -> None:
        """Wait until this time of the clock, or until there may be frames to send."""
        self._wake.clear()
        seconds = None if due_ns is None else max(0, due_ns - self._clock.monotonic_ns()) * 1e-9
        await self._clock.wait(self._wake, seconds)

    async def _send(self, frames: list[Buffer]) -> int:
        try:
            return await self._connection.send_frames(frames)
        except MemoryRefusedError as refusal:
            raise self._refused(str(refusal)) from refusal

    def _count(self, frames: list[Buffer]) -> None:
        self.fragments += len(frames)
        self.bytes += sum(map(len, frames))

    async def _send_with_faults(self, faults: FaultInjector, frames: list[Buffer]) -> None:
        """Send the frames that the fault injection releases; waits if there is nothing to send."""
        now_ns = self._clock.monotonic_ns()
        damaged = list(faults.take(now_ns, frames[0]) if frames else faults.due(now_ns))
        is_idle = not frames and not damaged
        self._count(damaged)
        while damaged:
            del damaged[: await self._send(damaged)]
        if faults.kills:
            os.kill(os.getpid(), signal.SIGKILL)
        if is_idle:
            times = [due_ns for due_ns in (faults.next_due_ns, self.window.next_retry_ns) if due_ns is not None]
            await self._wait_until(min(times, default=None))

    async def _say_hello(self) -> None:
        clock = self._clock
        try:
            while True:
                if self._silent_hellos >= SILENT_HELLOS:
                    self._reconnect()
                await self._send_hello()
                if self._ended is not None:
                    await self._connection.send_message(self._ended)
                if self.supervising and self.may_revoke and self.is_connected:
                    for revoked in split_moved(Revoked, self.identity.run, self.window.to_revoke.ranges()):
                        await self._connection.send_message(revoked)
                    for returned in split_moved(Returned, self.identity.run, self.window.to_return.ranges()):
                        await self._connection.send_message(returned)
                await clock.sleep(HELLO_SECONDS)
                await self._notify()
                if self.node_session is None:
                    self._report("waiting_for_node")
                overdue = self._refusals.overdue(clock.monotonic_ns(), takes_others=self.node_takes_others())
                if overdue is not None:
                    raise self._refused(overdue)
        finally:
            # Wake a caller that waits for credit: this task has ended.
            with contextlib.suppress(asyncio.CancelledError):
                await self._notify()

    def _reconnect(self) -> None:
        """The node is silent: its process is stopped or its machine is unreachable."""
        self._silent_hellos = self._hellos_without_welcome = 0
        if self.is_connected:
            self._report("node_silent", hellos=SILENT_HELLOS)
        self._lose()
        self._connection.reconnect()

    async def _read_control(self) -> None:
        try:
            while True:
                raw = await self._connection.receive_message()
                try:
                    message = decode_message(raw)
                except ProtocolError as error:
                    self._report("bad_control_message", error=str(error))
                    continue
                self.take(message)
                await self._notify()
        finally:
            # Wake a caller that waits for acknowledgements: this task has ended.
            with contextlib.suppress(asyncio.CancelledError):
                await self._notify()

    async def _watch(self, trouble: Trouble) -> None:
        """Stop sending until the next welcome of the node: after a lost connection its state is unknown.

        Raises FeederRefusedError for a handshake that fails at every retry.
        """
        try:
            while True:
                event = await trouble()
                if event in HOPELESS:
                    raise FeederRefusedError(f"feeder {self.identity.name}: {HOPELESS[event]}")
                advice = {"text": UNEXPLAINED[event]} if event in UNEXPLAINED else {}
                self._report("connection_lost", reason=event.name, **advice)
                if event == zmq.EVENT_DISCONNECTED:
                    self._lose()
        finally:
            # Wake a caller that waits for credit: this task has ended.
            with contextlib.suppress(asyncio.CancelledError):
                await self._notify()
