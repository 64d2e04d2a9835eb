"""A node whose every answer the test decides: control and data socket, without event building."""

import subprocess
import time
from collections import Counter
from types import TracebackType
from typing import Self

import zmq

from hltnode.protocol.errors import RejectReason
from hltnode.protocol.raw_data.mfp import Mfp
from hltnode.protocol.transport.control_messages import ControlMessage, decode_message, encode_message
from hltnode.protocol.transport.feeder_messages import Ack, Credit, EndOfRun, Hello, Nack, Welcome
from hltnode.protocol.transport.frame_header import HEADER_SIZE, FrameHeader, check_crc, decode_header

RUN = 7
SECONDS = 30.0


class FakeNode:
    """Binds to free ports. Use as context manager."""

    def __init__(self) -> None:
        self._context = zmq.Context()
        self._data: zmq.Socket[bytes] = self._context.socket(zmq.PULL)
        self._control: zmq.Socket[bytes] = self._context.socket(zmq.ROUTER)
        self.data = f"tcp://127.0.0.1:{self._data.bind_to_random_port('tcp://127.0.0.1')}"
        self.control = f"tcp://127.0.0.1:{self._control.bind_to_random_port('tcp://127.0.0.1')}"
        self._peer = b""
        self.session, self.token = "first", 0x1122334455667788
        self.ends: list[EndOfRun] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._context.destroy(linger=0)

    def send(self, message: ControlMessage) -> None:
        self.send_bytes(encode_message(message))

    def send_bytes(self, raw: bytes) -> None:
        self._control.send_multipart([self._peer, raw])

    def receive(self, seconds: float = SECONDS) -> ControlMessage:
        assert self._control.poll(round(seconds * 1000)), "no message of the feeder"
        self._peer, raw = self._control.recv_multipart()
        return decode_message(raw)

    def hello(self) -> Hello:
        """The next hello."""
        while not isinstance(message := self.receive(), Hello):
            assert isinstance(message, EndOfRun), message
            self.ends.append(message)
        return message

    def welcome(self, max_fragment_bytes: int = 65536) -> None:
        self.send(Welcome("fake", self.session, RUN, max_fragment_bytes, self.token))

    def admit(self, credit: int) -> Hello:
        """Answer the next hello with a welcome and this credit."""
        hello = self.hello()
        self.welcome()
        self.send(Credit(RUN, credit))
        return hello

    def acknowledge(self, first: int, last: int) -> None:
        self.send(Ack(RUN, ((first, last),)))

    def refuse(self, frame: FrameHeader, reason: str, *, resend: bool) -> None:
        self.send(Nack(RUN, frame.source_id, frame.mep_id, RejectReason(reason), resend))

    def frame(self, seconds: float = SECONDS) -> FrameHeader:
        """The next frame, after a check of its CRC, its token and its MFP."""
        assert self._data.poll(round(seconds * 1000)), "no frame of the feeder"
        raw = self._data.recv()
        header = decode_header(raw, max_bytes=1 << 20)
        check_crc(header, raw)
        assert header.token == self.token
        mfp = Mfp.parse(memoryview(raw)[HEADER_SIZE:])
        assert mfp.source_id == header.source_id
        return header

    def frames(self, n: int) -> list[tuple[int, int]]:
        """MEP and source of the next frames."""
        return [(header.mep_id, header.source_id) for header in (self.frame() for _ in range(n))]

    def serve(self, feeder: subprocess.Popen[str], n_sources: int, credit: int = 8) -> None:
        """Answer hellos, and acknowledge each MEP when its last fragment came, until the feeder ends."""
        arrived: Counter[int] = Counter()
        poller = zmq.Poller()
        poller.register(self._data, zmq.POLLIN)
        poller.register(self._control, zmq.POLLIN)
        end = time.monotonic() + 2 * SECONDS
        while feeder.poll() is None:
            assert time.monotonic() < end, "the feeder does not end"
            ready = dict(poller.poll(50))
            if self._control in ready:
                message = self.receive()
                if isinstance(message, Hello):
                    self.welcome()
                    self.send(Credit(RUN, credit))
                elif isinstance(message, EndOfRun):
                    self.ends.append(message)
            if self._data in ready:
                mep = self.frame().mep_id
                arrived[mep] += 1
                if arrived[mep] == n_sources:
                    self.acknowledge(mep, mep)
