"""A feeder that uses only pyzmq and the standard library, written from docs/reference/protocol.md.

python examples/bare_zmq_feeder.py tcp://127.0.0.1:5555 tcp://127.0.0.1:5556 --meps 20

It sends artificial data of a timing board and one detector board. It keeps every MEP until the node acknowledges it,
and repeats fragments that the node refused or lost by a restart. Programs that may import hltnode use `hltnode.client`;
programs in C use the library of client/c.
"""

import argparse
import secrets
import struct
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

import zmq

RUN = 7
CONTROL_VERSION = 3
SOURCES = (0, 24 << 11)
"""The timing board (ODIN), and a board with a number that is free for users."""
BANK_TYPES = (16, 192)
BANK_VERSIONS = (7, 1)
EVENTS_PER_MEP = 50
HELLO_SECONDS = 1.0
SILENT_HELLOS = 4
RETRY_SECONDS = 0.05
OVERTAKEN_SECONDS = 3.0
UNHEARD_SECONDS = 20.0
CONFIRM_SECONDS = 2.0
MAX_ATTEMPTS = 5
PASSING = ("no_credit", "revoked")
"""Refusals that are not the fragment's fault."""
HOPELESS = ("no_sources", "events_per_mep", "foreign_run", "bad_version", "malformed", "oversized")
"""Reasons of permanent errors."""


# ---- Frames


def make_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


CRC_TABLE = make_table()


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def padded(data: bytes, size: int) -> bytes:
    return data + bytes(-len(data) % size)


def make_frame(mep: int, column: int) -> bytes:
    """The transport header and the MFP of one source."""
    first = mep * EVENTS_PER_MEP
    events = range(first, first + EVENTS_PER_MEP)
    if column == 0:
        # Version 7 of the ODIN bank: run, event type, step, time in microseconds, four words, event id.
        payloads = [struct.pack("<IHHQIIIIQ", RUN, 0, 0, event * 25 + 1, 0, 0, 0, 0, event) for event in events]
    else:
        payloads = [event.to_bytes(8, "little") * 4 for event in events]
    head = bytes([3, BANK_VERSIONS[column]]) + bytes([BANK_TYPES[column]] * EVENTS_PER_MEP)
    head = padded(bytes(18) + head, 4)[18:]
    sizes = padded(struct.pack(f"<{EVENTS_PER_MEP}H", *map(len, payloads)), 4)
    body = head + sizes + b"".join(padded(payload, 8) for payload in payloads)
    mfp = struct.pack("<HHIQH", 0x40CE, EVENTS_PER_MEP, 18 + len(body), first, SOURCES[column]) + body
    header = struct.pack("<IHHIIQQHH", 0x464E4C48, 2, 0, RUN, len(mfp), mep, time.time_ns(), SOURCES[column], 0)
    # The token of the node is written before each sending; the CRC does not cover it.
    return header + struct.pack("<IQ", crc32c(header + mfp), 0) + mfp


# ---- Messages: msgpack maps with text keys


def pack(value: Any) -> bytes:
    """A number, text, bool, list or map in msgpack."""
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return bytes([value]) if value < 0x80 else b"\xcf" + value.to_bytes(8, "big")
    if isinstance(value, str):
        text = value.encode()
        return b"\xd9" + bytes([len(text)]) + text
    if isinstance(value, dict):
        return bytes([0x80 | len(value)]) + b"".join(pack(key) + pack(item) for key, item in value.items())
    return b"\xdc" + len(value).to_bytes(2, "big") + b"".join(map(pack, value))


def unpack(data: bytes, at: int = 0) -> tuple[Any, int]:
    """The value that starts at a byte, and its end."""

    def number(size: int) -> int:
        return int.from_bytes(data[at + 1 : at + 1 + size], "big")

    tag = data[at]
    if tag < 0x80:
        return tag, at + 1
    if tag in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[tag], at + 1
    if 0xCC <= tag <= 0xCF:
        size = 1 << tag - 0xCC
        return number(size), at + 1 + size
    if 0xA0 <= tag < 0xC0 or 0xD9 <= tag <= 0xDB:
        size = 0 if tag < 0xC0 else 1 << tag - 0xD9
        length = tag & 0x1F if tag < 0xC0 else number(size)
        begin = at + 1 + size
        return data[begin : begin + length].decode(), begin + length
    size = 0 if tag < 0xA0 else 2 << (tag & 1)
    n = tag & 0xF if tag < 0xA0 else number(size)
    is_map = tag < 0x90 or tag in (0xDE, 0xDF)
    items, end = [], at + 1 + size
    for _ in range(2 * n if is_map else n):
        item, end = unpack(data, end)
        items.append(item)
    return (dict(zip(items[::2], items[1::2], strict=True)) if is_map else items), end


# ---- The feeder


class Mep:
    """A MEP that is kept until it is acknowledged; `due`: the sending time of each frame that is still to be sent."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.frames = {source: make_frame(number, column) for column, source in enumerate(SOURCES)}
        self.due: dict[int, float] = dict.fromkeys(SOURCES, 0.0)
        self.attempts = dict.fromkeys(SOURCES, 0)
        self.sent_at = 0.0
        self.turn = 0
        """Number of sent frames, up to its last one."""
        self.overtaken_at: float | None = None
        """Time since which a later frame is known to have arrived."""
        self.at_node = self.held = False

    def begin_again(self) -> None:
        """Send all frames again."""
        self.due = dict.fromkeys(self.frames, 0.0)


class Feeder:
    """Sends MEPs against credits."""

    def __init__(self, data: str, control: str, name: str) -> None:
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
        self.endpoints = (control, data)
        self.control, self.data = context.socket(zmq.DEALER), context.socket(zmq.PUSH)
        self.data.setsockopt(zmq.SNDHWM, 8)
        # Frames wait in this program, not in a queue to an absent node.
        self.data.setsockopt(zmq.IMMEDIATE, 1)
        for socket, endpoint in zip((self.control, self.data), self.endpoints, strict=True):
            socket.setsockopt(zmq.LINGER, 500)
            socket.setsockopt(zmq.IPV6, endpoint.startswith("tcp://["))
            socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
            socket.setsockopt(zmq.TCP_KEEPALIVE_IDLE, 2)
            socket.connect(endpoint)
        self.name, self.session = name, secrets.token_hex(8)
        self.kept: dict[int, Mep] = {}
        self.begun: set[int] = set()
        self.next_mep = self.credit = self.welcomes = self.unanswered = 0
        self.node_session = ""
        self.token = 0
        self.is_welcome = self.has_ended = False
        self.hello_at = 0.0
        self.acknowledged = self.sent = self.refused = 0
        self.arrived = 0
        """The last turn that is known to have arrived."""

    def send_message(self, kind: str, **fields: Any) -> None:
        # A message that cannot be sent may be dropped: hellos repeat the information.
        try:
            self.control.send(pack({"v": CONTROL_VERSION, "type": kind, **fields}), zmq.NOBLOCK)
        except zmq.Again:
            print(f"{kind} could not be sent", file=sys.stderr)

    def say_hello(self) -> None:
        self.hello_at = time.monotonic() + HELLO_SECONDS
        self.send_message(
            "hello", feeder=self.name, session=self.session, run=RUN, sources=list(SOURCES),
            first_mep=min(self.kept, default=self.next_mep), events_per_mep=EVENTS_PER_MEP,
            max_fragment_bytes=1 << 16, supervises=False,
        )  # fmt: skip
        if self.has_ended:
            self.send_message("end_of_run", run=RUN, last_mep=self.next_mep - 1)

    def lose(self) -> None:
        """Send nothing until the next welcome."""
        self.is_welcome, self.credit = False, 0

    def reconnect(self) -> None:
        print("no answer: reconnects", file=sys.stderr)
        self.lose()
        self.unanswered = 0
        for socket, endpoint in zip((self.control, self.data), self.endpoints, strict=True):
            socket.disconnect(endpoint)
            socket.connect(endpoint)

    def take(self, message: dict[str, Any]) -> None:
        """Handle a message of the node."""
        self.unanswered = 0
        kind, is_ours = message["type"], message.get("run") == RUN
        if kind == "welcome":
            self.welcomes += 1
            is_new = (message["session"], message["token"]) != (self.node_session, self.token)
            if is_new or not self.is_welcome:
                is_same = message["session"] == self.node_session
                self.token = message["token"]
                self.node_session, self.is_welcome, self.credit, self.arrived = message["session"], True, 0, 0
                for mep in self.kept.values():
                    mep.held = mep.at_node = mep.held and is_same
                    if not mep.held:
                        mep.begin_again()
                self.begun = {number for number, mep in self.kept.items() if mep.held}
            else:
                self.repeat_lost()
        elif kind == "credit" and is_ours and self.is_welcome:
            self.credit = message["meps"]
        elif kind == "ack" and is_ours:
            for first, last in message["meps"]:
                for number in [number for number in self.kept if first <= number <= last]:
                    self.note_arrival(self.kept.pop(number))
                    self.begun.discard(number)
                    self.acknowledged += 1
        elif kind == "held" and is_ours and message["session"] == self.node_session:
            for first, last in message["meps"]:
                for mep in [self.kept[number] for number in self.begun if first <= number <= last]:
                    self.note_arrival(mep)
                    mep.held = mep.at_node = True
                    mep.due.clear()
        elif kind == "nack":
            self.take_nack(message)
        elif kind == "missed" and is_ours:
            self.refused += sum(last - first + 1 for first, last in message["meps"])
        elif kind == "goodbye":
            self.lose()
        elif kind == "run_closed" and is_ours:
            raise ValueError("an operator closed the run")
        elif kind == "error" and message["reason"] != "unknown_feeder":
            print(f"the node refuses: {message['text']}", file=sys.stderr)
            if message["reason"] in HOPELESS:
                raise ValueError(message["text"])

    def take_nack(self, message: dict[str, Any]) -> None:
        reason, source, mep = message["reason"], message["source"], self.kept.get(message["mep"])
        if reason == "foreign_run":
            self.lose()
        elif reason in ("duplicate", "late"):
            # The node has the MEP and will acknowledge it. `missed` counts late fragments.
            if mep is not None:
                mep.at_node = True
        elif mep is not None and source in mep.frames and source not in mep.due:
            mep.attempts[source] += reason not in PASSING
            if not message["resend"] or mep.attempts[source] > MAX_ATTEMPTS:
                del mep.frames[source]
                self.refused += 1
                return
            if reason == "no_credit":
                self.begun.discard(mep.number)
            mep.due[source] = time.monotonic() + RETRY_SECONDS

    def send_next(self) -> bool:
        """Send the next frame that credits allow; False if there is no frame or no room."""
        now = time.monotonic()
        if not self.is_welcome:
            return False
        for mep in self.kept.values():
            if mep.number not in self.begun and len(self.begun) >= self.credit:
                continue
            source = next((source for source, due in mep.due.items() if due <= now), None)
            if source is None:
                continue
            try:
                frame = mep.frames[source]
                self.data.send(frame[:40] + struct.pack("<Q", self.token) + frame[48:], zmq.NOBLOCK)
            except zmq.Again:
                return False
            del mep.due[source]
            self.begun.add(mep.number)
            mep.sent_at = now
            self.sent += 1
            mep.turn = self.sent
            return True
        return False

    def note_arrival(self, mep: Mep) -> None:
        """The node has a whole MEP, and so all frames sent before it."""
        if not mep.due:
            self.arrived = max(self.arrived, mep.turn)

    def repeat_lost(self) -> None:
        """Send lost MEPs again: a connection keeps the order, and a later frame has arrived.

        A frame that a busy node has not read yet is not lost. If no frame has arrived for long, the last MEP is sent
        again; its answer shows whether the others have arrived.
        """
        now = time.monotonic()
        sent = [mep for mep in map(self.kept.__getitem__, self.begun) if not mep.at_node and not mep.due]
        lost = []
        for mep in sent:
            if mep.turn >= self.arrived:
                mep.overtaken_at = None
            elif mep.overtaken_at is None:
                mep.overtaken_at = now
            elif now - mep.overtaken_at >= OVERTAKEN_SECONDS:
                lost.append(mep)
        last = max(sent, key=lambda mep: mep.turn, default=None)
        if not lost and last is not None and last.turn > self.arrived and now - last.sent_at >= UNHEARD_SECONDS:
            lost = [last]
        for mep in lost:
            mep.overtaken_at = None
            mep.begin_again()

    def turn(self) -> None:
        """Perform due work, and wait briefly if there is none."""
        if time.monotonic() >= self.hello_at:
            if self.unanswered >= SILENT_HELLOS:
                self.reconnect()
            self.unanswered += 1
            self.say_hello()
        has_sent = self.send_next()
        while self.control.poll(0 if has_sent else 5):
            self.take(unpack(self.control.recv())[0])
            has_sent = True

    def feed(self, meps: Iterable[int], seconds_per_mep: float) -> None:
        """Send these MEPs and return when all are acknowledged."""
        due = time.monotonic()
        for number in meps:
            while len(self.kept) >= self.credit or time.monotonic() < due:
                self.turn()
            due += seconds_per_mep
            self.kept[number] = Mep(number)
            self.next_mep = number + 1
        self.has_ended = True
        self.say_hello()
        while self.kept:
            self.turn()
        # The last hello confirms all MEPs; its welcome shows that the node received it.
        awaited, end = self.welcomes + 1, time.monotonic() + CONFIRM_SECONDS
        self.say_hello()
        while self.welcomes < awaited and time.monotonic() < end:
            self.turn()
        self.send_message("goodbye", reason="feeder ends")
        self.control.close()
        self.data.close()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Feed a node with artificial data, with pyzmq only.")
    parser.add_argument("data", help="data endpoint of the node, such as tcp://127.0.0.1:5555")
    parser.add_argument("control", help="control endpoint of the node, such as tcp://127.0.0.1:5556")
    parser.add_argument("--meps", type=int, default=20, help="MEPs to send")
    parser.add_argument("--rate", type=float, default=0.0, help="events per second; 0: as fast as possible")
    parser.add_argument("--name", default="bare-zmq-feeder", help="name of the feeder")
    options = parser.parse_args(arguments)
    feeder = Feeder(options.data, options.control, options.name)
    feeder.feed(range(options.meps), EVENTS_PER_MEP / options.rate if options.rate else 0.0)
    print(f"{feeder.acknowledged} MEPs acknowledged, {feeder.sent} fragments sent, {feeder.refused} refused")
    return 1 if feeder.refused else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
