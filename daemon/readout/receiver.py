"""The data socket: frames are checked and each MFP is copied once, to its place in the slot of its MEP."""

import asyncio
import time
from collections.abc import Callable, Sequence

import zmq

from hltnode.daemon.common.zmq_sockets import SocketDrain, bind_socket
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.stimuli_and_effects import Effect, FrameDamaged, Place
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.readout.reading_clock import ReadingClock
from hltnode.protocol.errors import ProtocolError, RejectReason
from hltnode.protocol.raw_data.mfp import Mfp
from hltnode.protocol.transport.frame_header import HEADER_SIZE, FrameHeader, check_crc, decode_header

# A frame above the configured size is refused with a message. One larger by this factor, which no feeder of ours makes,
# is not even read: libzmq closes the connection.
HARD_LIMIT = 2

# A frame that the wire has damaged may be whole the next time; other damage was made by the feeder and stays.
_WORTH_SENDING_AGAIN = frozenset({RejectReason.BAD_CRC})


class Receiver:
    """Owner of the PULL socket.

    Args:
        buffers: the pinned input of each slot, writable views of bytes.
        carry_out: takes the effects that are not about the bytes of the frame.
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
        clock: ReadingClock | None = None,
    ) -> None:
        self._builder = builder
        self._buffers = buffers
        self._counters = counters
        self._carry_out = carry_out
        self._max_mfp_bytes = max_frame_bytes - HEADER_SIZE
        # One time for all frames of a drain: they have waited together, and could have been read at its begin.
        self._clock = clock or ReadingClock(time.monotonic_ns)
        options = {zmq.RCVHWM: hwm, zmq.MAXMSGSIZE: HARD_LIMIT * max_frame_bytes}
        self._socket, self.endpoint = bind_socket(context, zmq.PULL, endpoint, options, prepare)
        self._drain: SocketDrain[zmq.Frame] | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to receive."""
        self._drain = SocketDrain(loop, self._socket, self._receive, self._frame_arrived, self._clock.read)
        self._drain.start()

    def read(self) -> bool:
        """Take what is there; False if there is more than fits one turn of the loop."""
        return self._drain is None or self._drain.read()

    def close(self) -> None:
        """Stop receiving; frames that are on their way are lost here and sent again to the next session."""
        if self._drain is not None:
            self._drain.stop()
        self._socket.close()

    def _receive(self) -> zmq.Frame:
        return self._socket.recv(zmq.NOBLOCK, copy=False)

    def _frame_arrived(self, received: zmq.Frame) -> None:
        frame = received.buffer
        counters = self._counters
        counters.fragments_received += 1
        counters.fragment_bytes_received += len(frame)
        now_ns = self._clock.now_ns
        header: FrameHeader | None = None
        try:
            header = decode_header(frame, max_bytes=len(frame))
            source = counters.sources.get(header.source_id)
            if source is not None:
                source.fragments += 1
                source.bytes += len(frame)
                source.last_seen_ns = self._clock.true_ns
            if header.length > self._max_mfp_bytes:
                self._reject(now_ns, RejectReason.OVERSIZED, header)
                return
            check_crc(header, frame)
            payload = frame[HEADER_SIZE:]
            mfp = Mfp.parse(payload)
        except ProtocolError as error:
            self._reject(now_ns, error.reason, header)
            return
        if mfp.source_id != header.source_id:
            self._reject(now_ns, RejectReason.MALFORMED, header)
            return
        effects = self._builder.fragment_arrived(
            now_ns, header.run, header.source_id, header.mep_id, header.length, mfp.event_id, mfp.n_fragments
        )
        first = effects[0]
        if type(first) is Place:
            slot, offset = first
            self._buffers[slot][offset : offset + header.length] = payload
            if len(effects) > 1:
                self._carry_out(effects[1:])
        else:
            self._carry_out(effects)

    def _reject(self, now_ns: int, reason: RejectReason, header: FrameHeader | None) -> None:
        """Refuse a damaged frame; without a readable header its feeder is not known."""
        if header is None:
            self._counters.fragments_rejected[reason] += 1
            return
        damaged = FrameDamaged(reason, header.source_id, header.mep_id, reason in _WORTH_SENDING_AGAIN)
        self._carry_out(self._builder.handle(now_ns, damaged))
