"""The attacks. Each takes a node and a size (1.0: full size), and returns at the end of the attack."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from tests.attacks.attacked_node import AT_REST, GIVEN_BACK, MIB, AttackedNode, PeakSampler, Resources, promised_bytes
from tests.attacks.raw_peer import (
    COMMAND,
    MORE,
    RawPeer,
    frame,
    frame_header,
    greeting,
    item,
    move_to_another_address,
    ping,
    ready,
    subscribe,
)

Attack = Callable[[AttackedNode, float], None]
BUSY_SECONDS = 60.0
"""A busy node accepts the connections of an attack only when its thread gets a processor."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An attack, and the memory in bytes that the node may use meanwhile."""

    attack: Attack
    peak: int

    def run(self, attacked: AttackedNode, size: float, seconds: float) -> "Cost":
        """Attack the node from an address of its own, then give it these seconds to come to rest."""
        move_to_another_address()
        before, error = attacked.resources(), ""
        with PeakSampler(attacked) as sampler:
            try:
                self.attack(attacked, size)
            except OSError as refused:
                error = repr(refused)
            is_alive = attacked.is_alive
            after = attacked.resources_at_rest(before, seconds) if is_alive else before
        return Cost(self.peak, before, sampler.peak, after, is_alive, error)


@dataclass(frozen=True, slots=True)
class Cost:
    """What an attack has cost: resources before, the largest ones, and at rest after it."""

    promised_bytes: int
    before: Resources
    peak: Resources
    after: Resources
    is_alive: bool
    error: str
    """Why the attack ended early; empty if it did not."""

    def broken(self) -> list[str]:
        """The promises that do not hold."""
        before, after = self.before, self.after
        kept = {
            "alive": self.is_alive,
            "memory": self.peak.rss - before.rss <= self.promised_bytes,
            "memory given back": after.rss - before.rss <= GIVEN_BACK,
            "descriptors given back": after.descriptors <= before.descriptors + AT_REST.descriptors,
        }
        return [promise for promise, holds in kept.items() if not holds]


def pieces(chunk: bytes, total: int) -> Iterator[bytes]:
    """The chunk repeatedly, about `total` bytes in all."""
    for _ in range(max(1, total // len(chunk))):
        yield chunk


@contextmanager
def peers(port: int, socket_type: bytes, n: int) -> Iterator[list[RawPeer]]:
    """Peers with a complete handshake, up to the number that the node accepts."""
    with ExitStack() as stack:
        connected = []
        for _ in range(n):
            try:
                connected.append(stack.enter_context(RawPeer(port)).shake_hands(socket_type))
            except OSError:
                continue
        yield connected


def flood(connected: list[RawPeer], chunk: bytes, total: int, seconds: float) -> None:
    """Send the chunk over all connections in turn, until the limit of bytes or time, or until no connection is left."""
    end = time.monotonic() + seconds
    rest = dict.fromkeys(connected, b"")
    sent = 0
    while rest and sent < total and time.monotonic() < end:
        moved = 0
        for peer, left in list(rest.items()):
            left = left or chunk
            n = peer.send_what_fits(left)
            if n < 0:
                del rest[peer]
            else:
                rest[peer] = left[n:]
                moved += n
        sent += moved
        if not moved:
            time.sleep(0.005)


def reset_with_a_full_queue(port: int, socket_type: bytes, size: float) -> None:
    """More messages than any queue holds, heartbeats included, and a reset before the node has read them.

    Each turn has an address of its own: the node refuses one that has done this.
    """
    blob = (frame(b"x") * 50 + ping()) * 200
    for _ in range(max(1, int(10 * size))):
        move_to_another_address()
        with peers(port, socket_type, 3) as connected:
            for peer in connected:
                peer.send_what_fits(blob)
            time.sleep(0.05)
            for peer in connected:
                peer.reset()
        time.sleep(0.1)


def reset_control(attacked: AttackedNode, size: float) -> None:
    reset_with_a_full_queue(attacked.control, b"DEALER", size)


def reset_data(attacked: AttackedNode, size: float) -> None:
    reset_with_a_full_queue(attacked.data, b"PUSH", size)


def reset_decisions(attacked: AttackedNode, size: float) -> None:
    reset_with_a_full_queue(attacked.decisions, b"SUB", size)


def reset_events(attacked: AttackedNode, size: float) -> None:
    reset_with_a_full_queue(attacked.events, b"PULL", size)


def reset_monitor(attacked: AttackedNode, size: float) -> None:
    reset_with_a_full_queue(attacked.pub, b"SUB", size)


def claimed_routing_ids(attacked: AttackedNode, size: float) -> None:
    """Peers that claim the numbers which libzmq gives to the next peers by default: the C library's first `rand`."""
    first = 0x6B8B4567
    claimed = [
        RawPeer(attacked.control).shake_hands(b"DEALER", item(b"Identity", b"\0" + (first + i).to_bytes(4, "big")))
        for i in range(100)
    ]
    with peers(attacked.control, b"DEALER", max(5, int(50 * size))) as connected:
        flood(connected, frame(b"x") * 10, 1000, 1.0)
    for peer in claimed:
        peer.close()


def unfinished_frames(attacked: AttackedNode, size: float) -> None:
    """Frames of 32 MiB without their last byte."""
    begin = frame_header(32 * MIB) + bytes(31 * MIB)
    with peers(attacked.data, b"PUSH", max(6, int(60 * size))) as connected:
        threads = [threading.Thread(target=peer.send, args=(begin,)) for peer in connected]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        time.sleep(1.0)


def small_frames_after_large_ones(attacked: AttackedNode, size: float) -> None:
    """Connections that send whole frames of 32 MiB, then empty ones."""
    with peers(attacked.data, b"PUSH", 4) as connected:
        for peer in connected:
            peer.send(frame_header(32 * MIB) + bytes(32 * MIB))
        flood(connected, frame(b"") * 500_000, int(100 * MIB * size), 20.0)


def endless_parts_on(port: int, socket_type: bytes, size: float) -> None:
    with peers(port, socket_type, 3) as connected:
        flood(connected, frame(b"", MORE) * 30_000, int(200 * MIB * size), 20.0)
        time.sleep(1.0)


def endless_parts_on_data(attacked: AttackedNode, size: float) -> None:
    """Messages with endless empty parts: 2 bytes each on the wire, 64 in memory."""
    endless_parts_on(attacked.data, b"PUSH", size)


def endless_parts_on_control(attacked: AttackedNode, size: float) -> None:
    """The same on the control socket."""
    endless_parts_on(attacked.control, b"DEALER", size)


def messages_of_many_parts(attacked: AttackedNode, size: float) -> None:
    """Whole messages of 100,000 empty parts."""
    with peers(attacked.control, b"DEALER", 10) as connected:
        flood(connected, frame(b"", MORE) * 99_999 + frame(b""), int(20 * MIB * size), 20.0)


def empty_frames(attacked: AttackedNode, size: float) -> None:
    """Whole frames without content, faster than the node can refuse them."""
    with peers(attacked.data, b"PUSH", 3) as connected:
        flood(connected, frame(b"") * 30_000, int(60 * MIB * size), 20.0)


def empty_messages(attacked: AttackedNode, size: float) -> None:
    """The same on the control socket."""
    with peers(attacked.control, b"DEALER", 3) as connected:
        flood(connected, frame(b"") * 30_000, int(60 * MIB * size), 20.0)


def heartbeats(attacked: AttackedNode, size: float) -> None:
    """Endless heartbeats, some with a timeout of a tenth of a second for the node."""
    with peers(attacked.control, b"DEALER", 3) as connected:
        flood(connected, (ping(1, b"context") + ping()) * 5000, int(40 * MIB * size), 10.0)


def subscriptions_on(port: int, size: float) -> None:
    rng = random.Random(1)
    topics = b"".join(subscribe(rng.randbytes(200)) for _ in range(2000))
    with peers(port, b"SUB", 20) as connected:
        flood(connected, topics, int(86 * MIB * size), 20.0)


def subscriptions(attacked: AttackedNode, size: float) -> None:
    """428,500 subscriptions to long topics."""
    subscriptions_on(attacked.decisions, size)


def subscriptions_to_the_monitor(attacked: AttackedNode, size: float) -> None:
    """The same on a PUB socket."""
    subscriptions_on(attacked.pub, size)


def messages_to_a_push_socket(attacked: AttackedNode, size: float) -> None:
    """A consumer that sends instead of receiving, and disconnects."""
    for _ in range(max(10, int(200 * size))):
        move_to_another_address()
        with peers(attacked.events, b"PULL", 1) as connected:
            if not connected:
                return  # the node refuses all unknown addresses by now
            for peer in connected:
                peer.send_what_fits(frame(b"x") * 3000)


def connections(attacked: AttackedNode, size: float) -> None:
    """Silent connections to every socket: before the greeting, after half a greeting, and after the handshake."""
    n = max(50, int(2000 * size))
    with ExitStack() as stack:
        for port in (attacked.data, attacked.control, attacked.decisions, attacked.events):
            for i in range(n // 4):
                try:
                    peer = stack.enter_context(RawPeer(port))
                except OSError:
                    continue
                if i % 2:
                    peer.send_what_fits(greeting()[: 1 + i % 63])
        time.sleep(1.0)


def http_clients(attacked: AttackedNode, size: float) -> None:
    """HTTP clients that do not complete their request, or do not read the answer."""
    n = max(40, int(400 * size))
    with ExitStack() as stack:
        for i in range(n):
            peer = stack.enter_context(RawPeer(attacked.http))
            peer.send_what_fits(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" if i % 2 else b"GET /met")
        time.sleep(0.5)


def malformed_handshakes(attacked: AttackedNode, _size: float) -> None:
    """All other mechanisms, protocols and properties, and invalid ones."""
    long_name, long_value = item(b"X" * 255, b"y"), item(b"Identity", b"z" * 255)
    openings = [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        bytes(5000),
        b"\xff" * 5000,
        greeting(b"CURVE") + frame(b"\x05HELLO" + bytes(194), COMMAND),
        greeting(b"PLAIN") + frame(b"\x05HELLO\x01a\x01b", COMMAND),
        greeting(b"GSSAPI"),
        greeting(b"NOTHING"),
        greeting(major=4),
        # ZMTP 1 without and with a version, ZMTP 2.
        b"\x01\x00" + b"\x06\x00hello" * 100,
        greeting()[:10] + b"\x00\x05" + b"\x00\x00" + b"\x00\x03abc" * 100,
        greeting()[:10] + b"\x01\x05" + b"\x00\x00" + frame(b"abc") * 100,
        greeting()[:10] + b"\x02\x05" + frame(b"id") + frame(b"abc", MORE) * 100,
        greeting() + ready(b""),
        greeting() + ready(b"DEALER", long_name, long_value),
        greeting() + ready(b"NO SUCH SOCKET"),
        greeting() + frame(b"\x05READY" + b"\x0bSocket-Type\xff\xff\xff\xff", COMMAND),
        greeting() + frame(b"\x05READY\xff", COMMAND),
        greeting() + frame(b"\xff", COMMAND),
        greeting() + frame(b"", COMMAND),
        greeting() + frame(b"\x05ERROR\xff", COMMAND),
        greeting() + frame(b"\x05ERROR\x03no!", COMMAND),
        greeting() + frame(b"\x05READY", COMMAND) * 3,
        greeting() + frame_header(2**63 - 1, COMMAND) + b"READY",
        greeting() + frame_header(2**64 - 1) + b"x",
        greeting() + frame(b"no handshake"),
        *(
            greeting() + ready(kind) + after
            for kind in (b"DEALER", b"PUSH", b"SUB", b"PULL", b"REQ")
            for after in (
                frame(b"\x04PING", COMMAND),
                frame(b"\x04PI", COMMAND),
                frame(b"", COMMAND),
                frame(b"\xff", COMMAND),
                frame(b"\x09SUBSCRIBE", COMMAND) + frame(b"\x06CANCEL", COMMAND) + frame(b"\x06CANCELx", COMMAND),
                frame(b"\x01") + frame(b"\x00") + frame(b"\x00never subscribed") + frame(b"") + frame(b"\x02", MORE),
                frame(b"\x04PONG", COMMAND | MORE) * 10 + frame(b"x"),
                frame(b"x", 0xF8),
                frame_header(2**40),
            )
        ),
    ]
    for port in (attacked.data, attacked.control, attacked.decisions, attacked.events, attacked.pub):
        for opening in openings:
            with RawPeer(port, seconds=BUSY_SECONDS) as peer:
                peer.send_what_fits(opening)
            with RawPeer(port, seconds=BUSY_SECONDS) as peer:
                peer.send_what_fits(opening)
                peer.reset()


def mutated_streams(attacked: AttackedNode, size: float) -> None:
    """Correct connections with changed, missing and doubled bytes."""
    rng = random.Random(20261130)
    ports = {
        attacked.data: (b"PUSH", frame(b"x" * 60) * 5),
        attacked.control: (b"DEALER", frame(b"x" * 20) * 5 + frame(b"a", MORE) + frame(b"b")),
        attacked.decisions: (b"SUB", subscribe(b"") + subscribe(b"topic") + frame(b"\x09SUBSCRIBEtopic", COMMAND)),
        attacked.events: (b"PULL", frame(b"x")),
    }
    for _ in range(max(50, int(2000 * size))):
        port, (kind, after) = rng.choice(list(ports.items()))
        stream = bytearray(
            greeting() + ready(kind, item(b"Identity", rng.randbytes(rng.randrange(8)))) + ping() + after
        )
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(stream))
            match rng.randrange(3):
                case 0:
                    stream[at] = rng.randrange(256)
                case 1:
                    del stream[at : at + rng.randint(1, 8)]
                case _:
                    stream[at:at] = stream[at : at + rng.randint(1, 64)]
        with RawPeer(port) as peer:
            peer.send_what_fits(bytes(stream))
            if rng.random() < 0.5:
                peer.reset()


ATTACKS: dict[str, Entry] = {
    attack.__name__: Entry(attack, peak)
    for attack, peak in (
        (reset_control, 100 * MIB),
        (reset_data, 100 * MIB),
        (reset_decisions, 100 * MIB),
        (reset_events, 100 * MIB),
        (reset_monitor, 100 * MIB),
        (claimed_routing_ids, 100 * MIB),
        (unfinished_frames, promised_bytes("data")),
        (small_frames_after_large_ones, promised_bytes("data")),
        (endless_parts_on_data, promised_bytes("data")),
        (endless_parts_on_control, promised_bytes("control")),
        (messages_of_many_parts, promised_bytes("control")),
        (empty_frames, promised_bytes("data")),
        (empty_messages, promised_bytes("control")),
        (heartbeats, 200 * MIB),
        (subscriptions, promised_bytes("decisions")),
        (subscriptions_to_the_monitor, promised_bytes("pub")),
        (messages_to_a_push_socket, 100 * MIB),
        (connections, 200 * MIB),
        (http_clients, 100 * MIB),
        (malformed_handshakes, 100 * MIB),
        (mutated_streams, 100 * MIB),
    )
}
