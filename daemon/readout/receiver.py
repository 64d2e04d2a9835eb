"""The data socket: bound, and drained into the handler of the frames."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import cast

import zmq

from hltnode.daemon.common.zmq_sockets import SocketDrain, bind_socket
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.stimuli_and_effects import Effect
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.readout.frame_handler import FrameHandler

# A frame above the configured size is refused with a message. One larger by this factor, which no feeder of ours makes,
# is not even read: libzmq closes the connection.
HARD_LIMIT = 2


class Receiver:
    """Owner of the PULL socket.

    Args:
        buffers: the pinned input of each slot, writable views of bytes.
        carry_out: takes the effects of the builder.
        prepare: makes the socket secure before it is bound.

    Raises:
        zmq.ZMQError: the endpoint cannot be bound.
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
        hwm: int,
        prepare: Callable[[zmq.Socket[bytes]], None] = lambda _socket: None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        handler = FrameHandler(
            builder, buffers, counters, carry_out, max_frame_bytes=max_frame_bytes, clock_ns=clock_ns
        )
        # A frame is a buffer, which the types of pyzmq do not say.
        self._frame_arrived = cast(Callable[[zmq.Frame], None], handler.frame_arrived)
        options = {zmq.RCVHWM: hwm, zmq.MAXMSGSIZE: HARD_LIMIT * max_frame_bytes}
        self._socket, self.endpoint = bind_socket(context, zmq.PULL, endpoint, options, prepare)
        self._drain: SocketDrain[zmq.Frame] | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to receive."""
        self._drain = SocketDrain(loop, self._socket, self._receive, self._frame_arrived)
        self._drain.start()

    def close(self) -> None:
        """Stop receiving; frames that are on their way are lost here and sent again to the next session."""
        if self._drain is not None:
            self._drain.stop()
        self._socket.close()

    def _receive(self) -> zmq.Frame:
        return self._socket.recv(zmq.NOBLOCK, copy=False)
