"""The data socket: bound, and drained into the handler of the frames."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import cast

import zmq

from hltnode.daemon.common.zmq_sockets import ACKNOWLEDGED_WITHIN_MS, SocketDrain, bind_socket, largest_frame
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.stimuli_and_effects import Effect
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.readout.frame_handler import FrameHandler
from hltnode.daemon.readout.input_tap import InputTap
from hltnode.daemon.readout.reading_clock import ReadingClock
from hltnode.daemon.security.received_input import ReceivedInput


class Receiver:
    """Owner of the PULL socket.

    Args:
        buffers: the pinned input of each slot, writable views of bytes.
        carry_out: takes the effects of the builder.
        prepare: makes the socket secure before it is bound.
        tap: gets each fragment that is taken.
        received: takes note of each frame and its connection.

    Raises:
        BindError: the endpoint cannot be bound.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        endpoint: str,
        builder: EventBuilder,
        buffers: Sequence[memoryview],
        counters: Counters,
        carry_out: Callable[[Sequence[Effect]], None],
        *,
        max_frame_bytes: int,
        received: ReceivedInput,
        prepare: Callable[[zmq.Socket[bytes]], None] = lambda _socket: None,
        clock: ReadingClock | None = None,
        tap: InputTap | None = None,
    ) -> None:
        # One time for all frames of a drain: they have waited together, and could have been read at its begin.
        self._clock = clock or ReadingClock(time.monotonic_ns)
        self.handler = FrameHandler(
            builder, buffers, counters, carry_out, max_frame_bytes=max_frame_bytes, clock=self._clock, tap=tap
        )
        # A frame is a buffer, which the types of pyzmq do not say.
        self._handle = cast(Callable[[zmq.Frame], None], self.handler.frame_arrived)
        self._received = received
        options = {zmq.MAXMSGSIZE: largest_frame(max_frame_bytes), zmq.TCP_MAXRT: ACKNOWLEDGED_WITHIN_MS}
        self._socket, self.endpoint = bind_socket(context, zmq.PULL, endpoint, options, prepare)
        self._drain: SocketDrain[zmq.Frame] | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to receive."""
        self._drain = SocketDrain(loop, self._socket, self._receive, self._frame_arrived, self._clock.read)
        self._drain.start()
        self._received.ask = self._drain.kick_from_thread

    def read(self) -> bool:
        """Take what is there; False if there is more than fits one turn of the loop."""
        return self._drain is None or self._drain.read()

    def close(self) -> None:
        """Stop receiving; frames that are on their way are lost here and sent again to the next session."""
        if self._drain is not None:
            self._drain.stop()
        self._socket.close()

    def _receive(self) -> zmq.Frame:
        try:
            return self._socket.recv(zmq.NOBLOCK, copy=False)
        except zmq.Again:
            self._received.empty()
            raise

    def _frame_arrived(self, frame: zmq.Frame) -> None:
        if self._received.take(frame, len(frame)):
            self._handle(frame)
