"""Executes a program of attacks, each peer in a process of its own: python -m tests.attacks.hostile_peers FILE SECONDS.

FILE holds the JSON of a `Target` and of a program, a line each. A peer that dies is killed by SIGKILL, and another
process goes on with its next step. The peers repeat their steps until the time is over. Prints the number of executed
steps of each kind.
"""

import contextlib
import json
import mmap
import os
import random
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

import zmq
import zmq.error

from hltnode.protocol.errors import RejectReason
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.mep import encode_mep
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.transport.control_messages import ControlMessage, encode_message
from hltnode.protocol.transport.feeder_messages import (
    Ack,
    EndOfRun,
    Goodbye,
    Hello,
    Nack,
    Returned,
    Revoked,
    RunClosed,
)
from hltnode.protocol.transport.frame_header import encode_frame
from hltnode.protocol.transport.requests import Cancel, Request, encode_request
from hltnode.protocol.transport.run_control_messages import Command, CommandName
from hltnode.protocol.transport.shared_memory import Attach, encode_memory_message, encode_ranges
from tests.attacks.programs import PeerProgram, Port, Program, Step
from tests.attacks.raw_peer import (
    MORE,
    RESET_AT_CLOSE,
    RawPeer,
    frame,
    frame_header,
    greeting,
    item,
    ping,
    ready,
    subscribe,
)

MIB = 1 << 20
WAITS = {"short": 0.02, "long": 0.3}
SEND_SECONDS = 1.0
"""Longest time of one step that sends: a node that does not read ends it."""
CONNECT_SECONDS = 1.0
MESSAGES = (1, 20, 2000)
_TYPES = {
    Port.DATA: b"PUSH", Port.CONTROL: b"DEALER", Port.DECISIONS: b"SUB", Port.MONITOR: b"SUB", Port.TAP: b"SUB",
    Port.EVENTS: b"PULL", Port.REQUESTS: b"DEALER",
}  # fmt: skip
_STEP_BYTES = 8
FOREIGN_RUN = 1000
"""Added to the number of a run: no run of the honest feeders has the sum."""
TURN_SECONDS = 0.02
"""Pause after all steps: without it a program of one step would be a loop that takes a processor."""


@dataclass(frozen=True, slots=True)
class Target:
    """The attacked node, and the knowledge of its peers.

    `ports`: TCP ports by name; `memory_socket`: path of its Unix socket, empty if it has none. The run is fed by
    `feeders` from `sources`, and the MEPs below `finished_below` are acknowledged: their fragments change nothing.
    `tokens`: stolen from the feeders, the one that permits each source; a feeder that comes again has a new one.
    `request_events`: the most events that the node takes in a request.
    """

    ports: dict[str, int]
    memory_socket: str
    run: int
    feeders: tuple[str, ...]
    sources: tuple[int, ...]
    events_per_mep: int
    finished_below: int
    tokens: tuple[int, ...] = ()
    request_events: int = 64


def make_frame(target: Target, run: int, mep: int, source: int, token: int = 0) -> bytes:
    """A whole frame of the data socket. All frames of the hostile peers are made here."""
    n = target.events_per_mep
    first = mep * n % 2**60
    numbers = [(first + event).to_bytes(8, "little") for event in range(n)]
    mfp = encode_mfp(source_id=source, event_id=first, version=1, types=[LhcbBankType.TEST_DET] * n, fragments=numbers)
    return encode_frame(mfp, run=run, mep_id=mep, source_id=source, token=token)


class Hostile:
    """One peer of a program."""

    def __init__(self, target: Target, number: int, port: Port) -> None:
        self._target = target
        self._number = number
        self._port = port
        self._moves = 0
        self._peer: RawPeer | None = None
        self._memory: socket.socket | None = None
        self._random = random.Random(0)

    def do(self, step: Step) -> None:
        """Execute a step. A step without its connection does nothing: the node may have ended it."""
        self._random.seed(step.number)
        action = getattr(self, f"_{step.verb}")
        with contextlib.suppress(OSError, zmq.ZMQError):
            action(step.what)

    # Connections

    def skip_moves(self, n: int) -> None:
        """Take the address of a predecessor that moved n times."""
        self._moves = n

    def _connect(self, _what: str) -> None:
        self._close("")
        if self._port is Port.MEMORY:
            self._memory = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._memory.settimeout(CONNECT_SECONDS)
            self._memory.connect(self._target.memory_socket)
            return
        self._peer = RawPeer(self._target.ports[self._port], self._address, seconds=CONNECT_SECONDS)

    @property
    def _address(self) -> str:
        return f"127.{3 + self._number}.{self._moves // 250 % 250}.{self._moves % 250 + 1}"

    def _move(self, _what: str) -> None:
        self._moves += 1

    def _wait(self, what: str) -> None:
        time.sleep(WAITS[what] * self._random.random())

    def _close(self, _what: str) -> None:
        for connection in (self._peer, self._memory):
            if connection is not None:
                connection.close()
        self._peer = self._memory = None

    def _reset(self, _what: str) -> None:
        if self._peer is not None:
            self._peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
        self._close("")

    @staticmethod
    def _die(_what: str) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def _handshake(self, what: str) -> None:
        if self._peer is None:
            return
        kind = _TYPES[self._port]
        match what:
            case "right":
                self._peer.socket.settimeout(CONNECT_SECONDS)
                self._peer.shake_hands(kind)
            case "half":
                opening = greeting() + ready(kind)
                self._put(opening[: self._random.randrange(1, len(opening))])
            case "wrong":
                self._put(self._random.choice([greeting(b"CURVE"), greeting(b"GSSAPI"), greeting(major=4), bytes(64)]))
                self._put(self._random.randbytes(self._random.randrange(300)))
            case "other socket":
                self._put(greeting() + ready(self._random.choice([b"REQ", b"PUB", b"PAIR", b"X-none"])))
            case _:
                identity = b"\0" + self._random.randbytes(4)
                self._put(greeting() + ready(kind, item(b"Identity", identity)) + frame(b"x"))

    def _curve(self, what: str) -> None:
        """A handshake of CURVE with a key that the node does not know, or for another node."""
        self._close("")
        public, secret = zmq.curve_keypair()
        with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
            dealer.setsockopt(zmq.LINGER, 0)
            dealer.setsockopt(zmq.CURVE_PUBLICKEY, public)
            dealer.setsockopt(zmq.CURVE_SECRETKEY, secret)
            dealer.setsockopt(zmq.CURVE_SERVERKEY, public if what == "wrong server" else zmq.curve_keypair()[0])
            dealer.connect(f"tcp://{self._address}:0;127.0.0.1:{self._target.ports[self._port]}")
            dealer.send(encode_message(Goodbye("curve")), zmq.NOBLOCK)
            dealer.poll(200)

    # Bytes

    def _put(self, data: bytes) -> None:
        """Send until all is sent, the connection has ended, or the node has not read for long."""
        if self._peer is None:
            return
        end = time.monotonic() + SEND_SECONDS
        rest = memoryview(data)
        while rest and time.monotonic() < end:
            n = self._peer.send_what_fits(bytes(rest[: 4 * MIB]))
            if n < 0:
                self._close("")
                return
            rest = rest[n:]
            if not n:
                time.sleep(0.002)

    def _read(self, _what: str) -> None:
        if self._peer is not None and self._peer.is_cut():
            self._close("")

    def _bytes(self, _what: str) -> None:
        self._put(self._random.randbytes(self._random.choice([1, 100, 10_000])))

    def _ping(self, _what: str) -> None:
        self._put(ping(self._random.randrange(20), b"context") * self._random.choice(MESSAGES))

    def _oversized(self, what: str) -> None:
        length = 32 * MIB + 1000 if what == "frame" else self._random.choice([2**40, 2**63 - 1, 2**64 - 1])
        self._put(frame_header(length) + bytes(MIB))

    def _unfinished(self, what: str) -> None:
        body = 31 * MIB if what == "frame" and self._port is Port.DATA else 1000
        self._put(frame_header(body + 1000) + bytes(body))

    def _parts(self, what: str) -> None:
        self._put(frame(b"", MORE) * self._random.choice([60, 70, 50_000]) + (frame(b"") if what == "whole" else b""))

    def _flood(self, what: str) -> None:
        content = frame(b"") if what == "empty" else frame(encode_message(self._make_hello("name in use")))
        self._put(content * self._random.choice([500, 5000]))

    # Data

    def _fragments(self, what: str) -> None:
        target, draw = self._target, self._random
        again = draw.randrange(max(1, target.finished_below))
        source = draw.choice(target.sources)
        frames = b""
        match what:
            case "again":
                if target.finished_below:
                    frames = frame(self._frame(target.run, again, source))
            case "foreign run":
                run = draw.choice([0, 1, target.run + FOREIGN_RUN, 2**32 - 1])
                frames = frame(self._frame(run, again, source))
            case "unknown source":
                unknown = draw.choice([each for each in range(1, 65_536, 997) if each not in target.sources])
                frames = frame(self._frame(target.run, again, unknown))
            case "beyond credit":
                frames = frame(self._frame(target.run, draw.choice([2**40, 2**61]), source))
            case "damaged":
                damaged = bytearray(self._frame(target.run, again, source))
                damaged[draw.randrange(len(damaged))] ^= 1 << draw.randrange(8)
                frames = frame(bytes(damaged))
            case "tiny":
                frames = frame(draw.randbytes(draw.randrange(41)))
            case "wrong size":
                whole = self._frame(target.run, again, source)
                frames = frame(whole[: draw.randrange(len(whole))]) + frame(whole + bytes(100))
            case _:
                whole = self._frame(target.run, again, source)
                frames = frame(whole[:40], MORE) + frame(whole[40:])
        self._put(frames * draw.choice(MESSAGES))

    def _frame(self, run: int, mep: int, source: int) -> bytes:
        """A frame without a token, with a random one, or with a stolen one: of its own source or of another."""
        draw, stolen = self._random, self._target.tokens
        tokens = [0, draw.getrandbits(64)]
        if stolen:
            own = dict(zip(self._target.sources, stolen, strict=True)).get(source, stolen[0])
            tokens += [own, draw.choice(stolen), draw.choice(stolen)]
        return make_frame(self._target, run, mep, source, draw.choice(tokens))

    # Control

    def _hello(self, what: str) -> None:
        self._put(frame(encode_message(self._make_hello(what))) * self._random.choice([1, 1, 30]))

    def _make_hello(self, what: str) -> Hello:
        target, draw = self._target, self._random
        fields: dict[str, Any] = {
            "feeder": draw.choice(target.feeders) if draw.random() < 0.5 else f"stranger{draw.randrange(100)}",
            "session": draw.randbytes(8).hex(), "run": target.run, "sources": target.sources[:2], "first_mep": 0,
            "events_per_mep": target.events_per_mep, "max_fragment_bytes": 1000, "supervises": False,
        }  # fmt: skip
        changes: dict[str, dict[str, Any]] = {
            "stranger": {"feeder": f"stranger{draw.randrange(100)}"},
            "name in use": {"feeder": draw.choice(target.feeders)},
            "unknown sources": {"sources": tuple(range(20_000, 20_000 + draw.choice([0, 1, 1000])))},
            "many feeders": {"feeders": 65_535},
            "far first MEP": {"first_mep": 2**62},
            "foreign run": {"run": draw.choice([0, target.run + FOREIGN_RUN, 2**32 - 1])},
            "foreign chain": {"chain": "no-such-chain"},
            "foreign input": {"input": "another-input"},
            "supervisor": {"supervises": True},
            "impossible sizes": {"events_per_mep": draw.choice([0, 65_535]), "max_fragment_bytes": 2**32 - 1},
        }
        return Hello(**{**fields, **changes[what]})

    def _lie(self, what: str) -> None:
        target, draw = self._target, self._random
        first = draw.choice([0, 5, 2**60])
        from_node: list[ControlMessage] = [
            Ack(target.run, ((0, 2**60),)),
            Nack(target.run, target.sources[0], 3, RejectReason.BAD_CRC, True),
            RunClosed(target.run),
        ]
        messages: dict[str, ControlMessage] = {
            "end of run": EndOfRun(target.run, draw.choice([None, 0, 2**60])),
            "revoked": Revoked(target.run, ((first, first + 9),)),
            "returned": Returned(target.run, ((first, first + 9),)),
            "goodbye": Goodbye("x" * draw.randrange(200)),
            "of a node": draw.choice(from_node),
            # Without keys the node obeys this machine (SECURITY.md), so only the harmless command.
            "command": Command(draw.getrandbits(32), CommandName.STATUS, None),
        }
        body = draw.randbytes(draw.randrange(300)) if what == "garbage" else encode_message(messages[what])
        self._put(frame(body) * draw.choice([1, 1, 200]))

    # Requests

    def _ask(self, what: str) -> None:
        """Requests whose answers this peer does not read, and what is none."""
        draw = self._random
        number = 7 if what == "the same id" else draw.getrandbits(40)
        timeout_ms = 1 if what == "of no time" else draw.choice([0, 5, 2**32 - 1])
        head = encode_request(Request(number, timeout_ms))
        n = {"of most events": self._target.request_events, "of too many events": self._target.request_events + 1}.get(
            what, 1
        )
        mep = self._mep_of_request(n)
        if what == "damaged":
            damaged = bytearray(mep)
            damaged[draw.randrange(len(damaged))] ^= 1 << draw.randrange(8)
            mep = bytes(damaged)
        elif what == "not aligned":
            mep = mep[: draw.randrange(len(mep))]
        whole = frame(head, MORE) + frame(mep)
        match what:
            case "cancelled":
                whole += frame(encode_request(Cancel(number))) + frame(encode_request(Cancel(draw.getrandbits(60))))
            case "without a MEP":
                whole = frame(head) + frame(head, MORE) + frame(b"")
            case "garbage":
                whole = frame(draw.randbytes(draw.randrange(300)), MORE) + frame(mep)
        self._put(whole * draw.choice([1, 20, 300]))

    def _mep_of_request(self, n: int) -> bytes:
        numbers = [event.to_bytes(8, "little") for event in range(n)]
        types = [LhcbBankType.TEST_DET] * n
        mfps = [
            encode_mfp(source_id=source, event_id=0, version=1, types=types, fragments=numbers)
            for source in self._target.sources[:2]
        ]
        return encode_mep(mfps)

    # Outputs

    def _subscribe(self, what: str) -> None:
        draw = self._random
        match what:
            case "all":
                self._put(subscribe(b""))
            case "storm":
                self._put(b"".join(subscribe(draw.randbytes(3)) for _ in range(draw.choice([10, 5000]))))
            case "cancelled":
                self._put((subscribe(b"topic") + frame(b"\0topic") + frame(b"\0never")) * draw.choice([1, 1000]))
            case _:
                self._put(b"".join(subscribe(draw.randbytes(200)) for _ in range(draw.choice([5, 500]))))

    # HTTP

    def _request(self, what: str) -> None:
        page = self._random.choice(["metrics", "status", "", "readyz", "no-such-page"])
        head = f"GET /{page} HTTP/1.1\r\nHost: localhost\r\n"
        requests = {
            "unfinished": head[: self._random.randrange(1, len(head))],
            "unread": f"{head}\r\n" * self._random.choice([1, 50]),
            "no token": "POST /control/stop HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
            "foreign host": f"GET /{page} HTTP/1.1\r\nHost: example.org\r\n\r\n",
            "not HTTP": "\xff" * 3000,
            "long": head + f"X-Long: {'y' * self._random.choice([5000, 1_000_000])}\r\n\r\n",
        }
        self._put(requests[what].encode("latin-1"))

    # Memory socket

    def _attach(self, what: str) -> None:
        if self._memory is None:
            return
        name = self._random.choice(self._target.feeders) if what == "name in use" else "stranger"
        message = encode_memory_message(Attach(name, self._random.randbytes(8).hex(), MIB))
        match what:
            case "no descriptor":
                self._memory.send(message)
            case "no memory":
                with Path("/dev/null").open("rb") as file:
                    socket.send_fds(self._memory, [message], [file.fileno()])
            case _:
                descriptor = os.memfd_create("hostile")
                try:
                    os.ftruncate(descriptor, MIB)
                    socket.send_fds(self._memory, [message], [descriptor])
                finally:
                    os.close(descriptor)

    def _ranges(self, what: str) -> None:
        if self._memory is not None:
            garbage = self._random.randbytes(self._random.choice([1, 1000, 15_000]))
            self._memory.send(encode_ranges([(2**62, 4096)]) if what == "outside" else garbage)


def _act(target: Target, number: int, peer: PeerProgram, progress: memoryview, end: float) -> NoReturn:
    """The process of a peer, from the step after its predecessor's last one until the end."""
    hostile = Hostile(target, number, peer.port)
    done = int.from_bytes(progress, "little")
    turns, place = divmod(done, len(peer.steps))
    moves = [step.verb == "move" for step in peer.steps]
    hostile.skip_moves(turns * sum(moves) + sum(moves[:place]))
    while time.monotonic() < end:
        step = peer.steps[done % len(peer.steps)]
        if done and done % len(peer.steps) == 0:
            time.sleep(TURN_SECONDS)
        done += 1
        progress[:] = done.to_bytes(_STEP_BYTES, "little")
        hostile.do(step)
    os._exit(0)


def run(target: Target, program: Program, seconds: float) -> Counter[str]:
    """Execute a program in child processes; returns the number of executed steps of each kind.

    Raises RuntimeError for a peer that failed by an error of its own.
    """
    end = time.monotonic() + seconds
    shared = memoryview(mmap.mmap(-1, mmap.PAGESIZE * (1 + _STEP_BYTES * len(program.peers) // mmap.PAGESIZE)))
    places = [shared[_STEP_BYTES * i : _STEP_BYTES * (i + 1)] for i in range(len(program.peers))]
    running: dict[int, int] = {}

    def start(number: int) -> None:
        pid = os.fork()
        if not pid:
            try:
                _act(target, number, program.peers[number], places[number], end)
            except BaseException as error:
                print(f"peer {number}: {error!r}", file=sys.stderr, flush=True)
                os._exit(1)
        running[pid] = number

    for number, peer in enumerate(program.peers):
        if peer.steps:
            start(number)
    failed = []
    while running:
        pid, status = os.wait()
        number = running.pop(pid)
        if os.WIFSIGNALED(status) and time.monotonic() < end:
            start(number)
        elif not os.WIFSIGNALED(status) and os.WEXITSTATUS(status):
            failed.append(number)
    if failed:
        raise RuntimeError(f"peers {failed} ended with an error of their own")
    done: Counter[str] = Counter()
    for peer, place in zip(program.peers, places, strict=True):
        done.update(_executed(peer, int.from_bytes(place, "little")))
    return done


def _executed(peer: PeerProgram, n: int) -> Iterator[str]:
    for number in range(n):
        yield f"{peer.port} {peer.steps[number % len(peer.steps)].verb}"


def write(path: Path, target: Target, program: Program) -> None:
    """Write the file that this module executes."""
    path.write_text(f"{json.dumps(asdict(target))}\n{program.as_json()}\n")


def main() -> None:
    """Execute the program of a file."""
    first, second = Path(sys.argv[1]).read_text().splitlines()
    fields = json.loads(first)
    tuples = {name: tuple(fields[name]) for name in ("feeders", "sources", "tokens")}
    target = Target(**{**fields, **tuples})
    for kind, n in sorted(run(target, Program.of_json(second), float(sys.argv[2])).items()):
        print(f"{kind}: {n}")


if __name__ == "__main__":
    main()
