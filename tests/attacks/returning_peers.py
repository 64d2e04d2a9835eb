"""Peers that connect again as soon as the node has ended their connection, in a process of their own.

python -m tests.attacks.returning_peers PORT CONTENT SECONDS PEERS ADDRESSES
"""

import contextlib
import random
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.attacks.attacked_node import MIB, ROOT, AttackedNode, PeakSampler, promised_bytes
from tests.attacks.honest_feeder import HonestFeeder
from tests.attacks.raw_peer import MORE, RESET_AT_CLOSE, frame, frame_header, greeting, ready, subscribe
from tests.attacks.stall_sampler import Stall

PEERS = 8
_HANDSHAKE_BYTES = 64 + 20
"""Greeting and at least the start of READY."""
NICE = 10
"""The machine of the test also runs the node: without this, the attack would take its processor."""


def _topics() -> bytes:
    rng = random.Random(1)
    return b"".join(subscribe(rng.randbytes(200)) for _ in range(1000))


PORTS = {
    b"DEALER": ("control", "requests"),
    b"PUSH": ("data",),
    b"SUB": ("decisions", "pub"),
    b"PULL": ("events",),
    b"": ("data", "control", "decisions"),
}
"""The ports at which a peer of each type is a nuisance."""
CONTENTS: dict[str, tuple[bytes, bytes]] = {
    "connections only": (b"", b""),
    "no handshake": (greeting(), b""),
    "empty parts without end": (b"DEALER", frame(b"", MORE) * 100_000),
    "empty messages": (b"DEALER", frame(b"") * 100_000),
    "tiny messages": (b"DEALER", frame(b"x") * 60_000),
    "unfinished large messages": (b"DEALER", frame_header(1000 * 1024) + bytes(999 * 1024)),
    "unfinished large frames": (b"PUSH", frame_header(32 * MIB) + bytes(32 * MIB - 1)),
    "empty frames": (b"PUSH", frame(b"") * 100_000),
    "empty parts of frames": (b"PUSH", frame(b"", MORE) * 100_000),
    "long topics": (b"SUB", _topics()),
    "short topics": (b"SUB", b"".join(subscribe(i.to_bytes(3, "little")) for i in range(20_000))),
    "messages to an output": (b"PULL", frame(b"x") * 60_000),
}
"""The type of the socket that the peer pretends to be (or its first bytes), and what it sends without end."""


def ports(content: str) -> tuple[str, ...]:
    """The names of the ports that a content attacks."""
    return PORTS.get(CONTENTS[content][0], PORTS[b""])


class Peer:
    """One peer: connects, says who it is, and sends; again from the start when the node has ended the connection."""

    def __init__(self, port: int, source: str, kind: bytes, content: bytes) -> None:
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
        self.socket.bind((source, 0))
        with contextlib.suppress(BlockingIOError):
            self.socket.connect(("127.0.0.1", port))
        is_type = bool(kind) and not kind.startswith(b"\xff")
        # Without this pause libzmq would refuse the first message as part of the handshake.
        self._awaited = _HANDSHAKE_BYTES if is_type else 0
        self._rest = memoryview(greeting() + ready(kind) if is_type else kind)
        self._content = memoryview(content)

    def send(self) -> int:
        """Send what fits; returns the bytes. Raises OSError when the connection has ended."""
        if not self._rest:
            if self._awaited > 0:
                if not (received := self.socket.recv(4096)):
                    raise ConnectionResetError("the node has ended the connection")
                self._awaited -= len(received)
                return 0
            self._rest = self._content
        if not self._rest:
            raise ConnectionResetError("nothing else to send: connect again")
        n = self.socket.send(self._rest)
        self._rest = self._rest[n:]
        return n


def attack(port: int, kind: bytes, content: bytes, seconds: float, n_peers: int, addresses: int) -> None:
    """Attack the port for some seconds; prints connections and bytes."""
    sources = _sources(addresses)
    connections = sent = 0
    end = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:

        def connect() -> None:
            nonlocal connections
            try:
                peer = Peer(port, next(sources), kind, content)
            except OSError:
                return  # no port is left for this address: some are at their end
            connections += 1
            selector.register(peer.socket, selectors.EVENT_WRITE, peer)

        while time.monotonic() < end:
            while len(selector.get_map()) < n_peers:
                before = len(selector.get_map())
                connect()
                if len(selector.get_map()) == before:
                    break
            for key, _ in selector.select(0.01):
                try:
                    sent += key.data.send()
                except BlockingIOError:
                    continue
                except OSError:
                    selector.unregister(key.data.socket)
                    key.data.socket.close()
    print(connections, sent)


def _sources(addresses: int) -> Iterator[str]:
    while True:
        for number in range(addresses):
            yield f"127.1.{number // 250}.{number % 250 + 1}"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What an attack has cost."""

    grown_bytes: int
    """Largest growth of the resident memory."""
    stall_s: float
    """Longest time that the event loop did not run although it had a processor."""
    honest: float
    """Rate of an honest feeder during the attack, in parts of its rate before."""
    connections: int
    is_alive: bool
    promised_bytes: int
    stalls: Sequence[Stall] = ()

    def broken(self) -> list[str]:
        """The promises that do not hold."""
        kept = {
            "memory": self.grown_bytes <= self.promised_bytes,
            "event loop": self.stall_s <= 1.0,
            "honest feeder": self.honest >= 0.5,
            "alive": self.is_alive,
        }
        return [promise for promise, holds in kept.items() if not holds]


def judge(attacked: AttackedNode, port: str, content: str, seconds: float, addresses: int) -> Judgement:
    """Attack a port of the node, by its name, beside an honest feeder."""
    honest = HonestFeeder(attacked)
    try:
        honest.wait_until_served()
        usual = honest.rate_for(min(3.0, seconds))
        before = attacked.resources()
        line = [sys.executable, "-m", "tests.attacks.returning_peers"]
        line += [str(getattr(attacked, port)), content, str(seconds), str(PEERS), str(addresses)]
        with PeakSampler(attacked) as sampler:
            attack_process = subprocess.Popen(
                ["nice", "-n", str(NICE), *line], cwd=ROOT, stdout=subprocess.PIPE, text=True
            )
            start, n_before = time.monotonic(), honest.acknowledged
            output, _ = attack_process.communicate(timeout=seconds + 120)
            rate = (honest.acknowledged - n_before) / (time.monotonic() - start)
            is_alive = attacked.is_alive
        stall_s, stalls = attacked.longest_stall(start) if is_alive else (float("inf"), [])
        grown = sampler.peak.rss - before.rss
        return Judgement(grown, stall_s, rate / usual, int(output.split()[0]), is_alive, promised_bytes(port), stalls)
    finally:
        honest.stop()


if __name__ == "__main__":
    _kind, _content = CONTENTS[sys.argv[2]]
    attack(int(sys.argv[1]), _kind, _content, float(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
