"""A peer without keys that sends forged messages to every port of a node: python -m tests.soak.forger --help

Without the token of a feeder it may send whole fragments of any MEP, also of those to come: the node must refuse all.
Prints the number of messages of each kind.
"""

import argparse
import contextlib
import random
import signal
import socket
import struct
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import zmq

from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.control_messages import ControlMessage, encode_message
from hltnode.protocol.transport.decisions import decode_decision
from hltnode.protocol.transport.feeder_messages import (
    Ack,
    Credit,
    EndOfRun,
    Error,
    Goodbye,
    Held,
    Hello,
    Missed,
    Nack,
    Revoked,
    RunClosed,
    Welcome,
)
from hltnode.protocol.transport.frame_header import encode_frame
from tests.soak.content import EVENTS_PER_MEP, FEEDERS, SOURCES, mfp

PAUSE_SECONDS = 0.01
CONNECT_SECONDS = 0.5
# Messages of one burst, before the connection is reset.
BURST = 64
# ZMTP 3.1: greeting of a client with the NULL mechanism, and its READY command.
_GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"NULL".ljust(20, b"\0") + bytes(32)
_RESET = struct.pack("ii", 1, 0)


class Forger:
    """Sends forged messages of every kind to one node."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.told: Counter[str] = Counter()
        self._ending = threading.Event()
        self._random = random.Random(options.seed)
        self._run = options.run
        self._data, self._control, self._decisions = options.data, options.control, options.decisions
        self._http = options.http
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        # After many frames without permission the node refuses their address, which must not be that of the feeders.
        self._frames = self._socket(zmq.PUSH, f"tcp://127.3.0.1:0;{self._data.removeprefix('tcp://')}")
        self._messages = self._socket(zmq.DEALER, self._control)
        self._sample = self._socket(zmq.SUB, options.monitor)
        self._sample.subscribe(b"")
        self._decided: list[tuple[int, int]] = []
        self._lies: list[Callable[[], None]] = [
            self.frames_of_another_run, self.frames_of_an_unknown_source, self.frames_sent_again,
            self.frames_of_meps_to_come, self.damaged_frames, self.hellos_under_new_names,
            self.hellos_under_names_in_use, self.revocations, self.ends_of_run, self.goodbyes,
            self.messages_of_a_node, self.garbage, self.subscriptions, self.half_connections, self.resets,
            self.http_requests,
        ]  # fmt: skip

    def run(self, seconds: float) -> None:
        """Send each kind once in random order, then at random until the time is over."""
        signal.signal(signal.SIGTERM, lambda *_: self._ending.set())
        end = time.monotonic() + seconds
        first = self._random.sample(self._lies, len(self._lies))
        while time.monotonic() < end and not self._ending.is_set():
            self._look()
            lie = first.pop() if first else self._random.choice(self._lies)
            with contextlib.suppress(zmq.Again, OSError):
                lie()
            self.told[lie.__name__] += 1
            time.sleep(PAUSE_SECONDS)
        self._context.destroy(linger=0)

    def _look(self) -> None:
        """Learn the decided MEPs of the node: sending them again is harmless."""
        with contextlib.suppress(zmq.Again):
            while True:
                decision = decode_decision(self._sample.recv(zmq.NOBLOCK))
                self._decided.append((decision.run, decision.mep))

    def _socket(self, kind: int, endpoint: str) -> zmq.Socket[bytes]:
        created = self._context.socket(kind)
        created.setsockopt(zmq.LINGER, 0)
        created.setsockopt(zmq.SNDHWM, BURST)
        created.connect(endpoint)
        return created

    # Data

    def frames_of_another_run(self) -> None:
        """Whole fragments of a run that the node does not accept."""
        run = self._random.choice([0, 1, self._run - 1, self._run + 1000, 2**32 - 1])
        self._send_frame(run, self._random.randrange(10_000), self._random.choice(SOURCES))

    def frames_of_an_unknown_source(self) -> None:
        """Whole fragments of a source that no feeder sends."""
        source = self._random.choice([source for source in range(1, 40_000, 997) if source not in SOURCES])
        self._send_frame(self._run, self._random.randrange(10_000), source)

    def frames_sent_again(self) -> None:
        """Original fragments of finished MEPs."""
        if self._decided:
            run, mep = self._random.choice(self._decided)
            self._send_frame(run, mep, self._random.choice(SOURCES))

    def frames_of_meps_to_come(self) -> None:
        """Whole fragments of MEPs that the feeders have not sent yet."""
        newest = max((mep for run, mep in self._decided if run == self._run), default=0)
        self._send_frame(self._run, newest + self._random.randrange(1, 200), self._random.choice(SOURCES))

    def damaged_frames(self) -> None:
        """Fragments with a flipped bit, with a wrong length, or of random bytes."""
        mep = self._random.randrange(10_000)
        frame = bytearray(self._frame(self._run, mep, self._random.choice(SOURCES)))
        match self._random.randrange(4):
            case 0:
                frame[self._random.randrange(len(frame))] ^= 1 << self._random.randrange(8)
            case 1:
                del frame[self._random.randrange(len(frame)) :]
            case 2:
                frame += self._random.randbytes(100)
            case _:
                frame = bytearray(self._random.randbytes(self._random.randrange(5000)))
        self._frames.send(bytes(frame), zmq.NOBLOCK)

    def _send_frame(self, run: int, mep: int, source: int) -> None:
        self._frames.send(self._frame(run, mep, source), zmq.NOBLOCK)

    def _frame(self, run: int, mep: int, source: int) -> bytes:
        return encode_frame(mfp(run, mep, source), run=run, mep_id=mep, source_id=source)

    # Control

    def hellos_under_new_names(self) -> None:
        """One feeder too many, of this run or another."""
        run = self._random.choice([self._run, self._run + 1000, 7])
        self._say(self._hello(f"stranger{self._random.randrange(100)}", run))

    def hellos_under_names_in_use(self) -> None:
        """A second process under the name of a feeder."""
        self._say(self._hello(f"soak:{self._random.randint(1, FEEDERS)}/{FEEDERS}", self._run))

    def revocations(self) -> None:
        """A revocation of MEPs that this peer never sent."""
        first = self._random.choice([0, self._random.randrange(10_000), 2**63])
        ranges = tuple((first + 10 * i, first + 10 * i + self._random.choice([0, 9])) for i in range(60))
        self._say(Revoked(self._run, self._random.choice([ranges, ranges[:1], ((0, 65_535),)])))

    def ends_of_run(self) -> None:
        """The end of the run, from a peer that is not a feeder."""
        self._say(EndOfRun(self._run, self._random.choice([None, 0, 5, 2**63])))

    def goodbyes(self) -> None:
        """A goodbye from a feeder that was never connected."""
        self._say(Goodbye("x" * self._random.choice([0, 5, 200])))

    def messages_of_a_node(self) -> None:
        """Messages that only a node sends."""
        messages: list[ControlMessage] = [
            Welcome("a", "s", self._run, 100, 1),
            Credit(self._run, 2**31),
            Ack(self._run, ((0, 2**62),)),
            Held("s", self._run, ((0, 2**62),)),
            Nack(self._run, SOURCES[0], 3, RejectReason.BAD_CRC, True),
            Missed(self._run, SOURCES[0], ((0, 2**62),)),
            Error("name_taken", "go away"),
            RunClosed(self._run),
        ]
        self._say(self._random.choice(messages))

    def garbage(self) -> None:
        """Bytes, empty messages and many parts."""
        parts = [self._random.randbytes(self._random.randrange(300)) for _ in range(self._random.randint(1, 5))]
        self._messages.send_multipart(parts, zmq.NOBLOCK)

    def _hello(self, name: str, run: int) -> Hello:
        session = self._random.randbytes(8).hex()
        fields: dict[str, Any] = {
            "feeder": name, "session": session, "run": run, "sources": SOURCES[:2], "first_mep": 0,
            "events_per_mep": EVENTS_PER_MEP, "max_fragment_bytes": 1000,
            "supervises": True,
        }  # fmt: skip
        return Hello(**fields)

    def _say(self, message: ControlMessage) -> None:
        self._messages.send(encode_message(message), zmq.NOBLOCK)

    # Decisions, connections, HTTP

    def subscriptions(self) -> None:
        """Subscribe to many topics, and read nothing."""
        subscriber = self._socket(zmq.SUB, self._decisions)
        for number in range(BURST):
            subscriber.subscribe(number.to_bytes(4, "little"))
        time.sleep(PAUSE_SECONDS)
        subscriber.close(linger=0)

    def half_connections(self) -> None:
        """A part of a greeting, then silence, then the end of the connection."""
        with self._raw() as raw:
            raw.sendall(_GREETING[: self._random.randrange(len(_GREETING))])
            time.sleep(PAUSE_SECONDS)

    def resets(self) -> None:
        """A whole handshake, a burst of messages, and a reset instead of a regular end."""
        with self._raw() as raw:
            raw.sendall(_GREETING)
            raw.sendall(_command(b"READY", {b"Socket-Type": self._random.choice([b"DEALER", b"PUSH", b"SUB"])}))
            message = encode_message(Goodbye("reset"))
            raw.sendall((b"\0" + bytes([len(message)]) + message) * BURST)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)

    def http_requests(self) -> None:
        """Commands without a token, wrong methods, and bytes that are not HTTP."""
        method, path = self._random.choice(
            [
                ("POST", "/control/stop"),
                ("DELETE", "/status"),
                ("GET", "/%00"),
                ("POST", "/control/x"),
                ("GET", "/status"),
            ]
        )
        data = b"{}" if method == "POST" else None
        request = urllib.request.Request(f"http://127.0.0.1:{self._http}{path}", data, method=method)
        if self._random.random() < 0.5:
            with contextlib.suppress(urllib.error.URLError), urllib.request.urlopen(request, timeout=1) as page:
                page.read()
        else:
            with socket.create_connection(("127.0.0.1", self._http), CONNECT_SECONDS) as raw:
                raw.sendall(self._random.randbytes(200))

    def _raw(self) -> socket.socket:
        endpoint = urlsplit(self._random.choice([self._data, self._control, self._decisions]))
        assert endpoint.hostname is not None
        assert endpoint.port is not None
        return socket.create_connection((endpoint.hostname, endpoint.port), CONNECT_SECONDS)


def _command(name: bytes, properties: dict[bytes, bytes]) -> bytes:
    body = bytes([len(name)]) + name
    for key, value in properties.items():
        body += bytes([len(key)]) + key + len(value).to_bytes(4, "big") + value
    return b"\x04" + bytes([len(body)]) + body


def main() -> None:
    """Parse the arguments and send forged messages."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.forger", description=__doc__)
    for name in ("data", "control", "decisions", "monitor"):
        parser.add_argument(f"--{name}", required=True, metavar="ENDPOINT")
    parser.add_argument("--http", type=int, required=True, metavar="PORT")
    parser.add_argument("--run", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    forger = Forger(options)
    forger.run(options.seconds)
    for name, count in sorted(forger.told.items()):
        print(name, count)


if __name__ == "__main__":
    main()
