"""The data socket. Compiled code reads it and handles the fragments of open MEPs."""

import asyncio
from collections.abc import Callable

import zmq
from zmq.backend.cython import _zmq

from hltnode.daemon._native import Outcome, SocketIntake
from hltnode.daemon.common.zmq_sockets import ACKNOWLEDGED_WITHIN_MS, SocketDrain, bind_socket, largest_frame
from hltnode.daemon.readout.frame_handler import FrameHandler
from hltnode.daemon.security.received_input import ReceivedInput


class Receiver:
    """The PULL socket.

    Args:
        handler: handles the frames.
        prepare: applies keys and limits before the socket is bound.
        received: counts each frame for its connection.

    Raises:
        BindError: the endpoint cannot be bound.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        endpoint: str,
        handler: FrameHandler,
        *,
        max_frame_bytes: int,
        received: ReceivedInput,
        prepare: Callable[[zmq.Socket[bytes]], None] = lambda _socket: None,
    ) -> None:
        self._handler = handler
        self._received = received
        self._intake = SocketIntake(_zmq.__file__, handler.intake, received.tally)
        options = {zmq.MAXMSGSIZE: largest_frame(max_frame_bytes), zmq.TCP_MAXRT: ACKNOWLEDGED_WITHIN_MS}
        self._socket, self.endpoint = bind_socket(context, zmq.PULL, endpoint, options, prepare)
        self._drain: SocketDrain | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start to receive."""
        self._drain = SocketDrain(loop, self._socket, self._read_until)
        self._drain.start()
        self._received.ask = self._drain.kick_from_thread

    def bind_also(self, endpoint: str) -> None:
        """Bind a further endpoint, for a feeder in this process (inproc)."""
        self._socket.bind(endpoint)

    def read(self) -> bool:
        """Read the socket; False if more frames wait than fit one turn of the event loop."""
        return self._drain is None or self._drain.read()

    def close(self) -> None:
        """Stop receiving. Frames on their way are lost here, and sent again to the next session."""
        if self._drain is not None:
            self._drain.stop()
        self._socket.close()

    def _read_until(self, end_ns: int) -> bool:
        # All frames of a turn get one time: they waited together, and could have been read at the start of the turn.
        handler, intake = self._handler, self._intake
        clock = handler.begin_turn()
        while True:
            outcome = intake.receive(self._socket.underlying, clock.now_ns, clock.true_ns, end_ns)
            handler.taken(outcome)
            if outcome is Outcome.LEFT:
                frame, descriptor, number = intake.left_frame()
                if not handler.frame_arrived(frame):
                    self._received.tally.unpermitted(descriptor, number, clock.now_ns)
            elif outcome is Outcome.FAILED:
                raise zmq.ZMQError(intake.error)
            elif outcome is not Outcome.COMPLETE:
                return outcome is Outcome.EMPTY
