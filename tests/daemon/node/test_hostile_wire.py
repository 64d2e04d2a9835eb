"""Garbage of every kind on the data, control and HTTP sockets is rejected and counted by reason; the node continues."""

import asyncio
import random
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import msgpack
import psutil
import pytest
import zmq
import zmq.asyncio

from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.node.node import Node
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.protocol.buffers import Buffer
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.transport.control_messages import CONTROL_VERSION, decode_message, encode_message
from hltnode.protocol.transport.feeder_messages import EndOfRun, Error, Hello, Nack, Welcome
from hltnode.protocol.transport.frame_header import HEADER_SIZE, TOKEN_AT, encode_frame
from tests.daemon.fakes import RUN, SOURCES, eventually, make_config, make_feeder, running_node, synthetic_meps

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]

MEP = next(iter(synthetic_meps(1)))
MFP = MEP.mfps[SOURCES[0]]
GOOD = encode_frame(MFP, run=RUN, mep_id=0, source_id=SOURCES[0])


def patched(offset: int, layout: str, value: int, frame: Buffer = GOOD) -> bytes:
    copy = bytearray(frame)
    struct.pack_into(layout, copy, offset, value)
    return bytes(copy)


def with_token(frame: bytes, token: int) -> bytes:
    """A frame of a feeder with this token, else the same."""
    return frame if len(frame) < HEADER_SIZE else patched(TOKEN_AT, "<Q", token, frame)


def of_type(bank_type: int) -> bytes:
    """An MFP of the first source; its first bank has this type."""
    return patched(20, "<B", bank_type, MFP)


FRAMES: dict[str, tuple[bytes, RejectReason]] = {
    "empty": (b"", RejectReason.TRUNCATED),
    "one byte": (b"H", RejectReason.TRUNCATED),
    "header cut": (GOOD[:47], RejectReason.TRUNCATED),
    "MFP cut": (GOOD[:-1], RejectReason.TRUNCATED),
    "wrong magic": (patched(0, "<I", 0xDEADBEEF), RejectReason.BAD_MAGIC),
    "wrong version": (patched(4, "<H", 9), RejectReason.BAD_VERSION),
    "length too small": (patched(12, "<I", 4), RejectReason.BAD_SIZE),
    "length too large": (patched(12, "<I", 2**32 - 1), RejectReason.OVERSIZED),
    "frame too large": (encode_frame(bytes(65 * 1024), run=RUN, mep_id=0, source_id=0), RejectReason.OVERSIZED),
    "bit flip in the MFP": (GOOD[:-9] + bytes([GOOD[-9] ^ 1]) + GOOD[-8:], RejectReason.BAD_CRC),
    "bit flip in the MEP id": (patched(16, "<Q", 1), RejectReason.BAD_CRC),
    "not an MFP": (encode_frame(bytes(64), run=RUN, mep_id=0, source_id=SOURCES[0]), RejectReason.BAD_MAGIC),
    "no MFP": (encode_frame(b"", run=RUN, mep_id=0, source_id=SOURCES[0]), RejectReason.TRUNCATED),
    "MFP of another source": (encode_frame(MFP, run=RUN, mep_id=0, source_id=SOURCES[1]), RejectReason.MALFORMED),
    "a bank of the trigger": (
        encode_frame(of_type(BankType.HLT_DEC_REPORTS), run=RUN, mep_id=0, source_id=SOURCES[0]),
        RejectReason.RESERVED_TYPE,
    ),
    "a TAE header": (
        encode_frame(of_type(BankType.TAE_HEADER), run=RUN, mep_id=0, source_id=SOURCES[0]),
        RejectReason.RESERVED_TYPE,
    ),
    "a MEP that no id confirms": (patched(16, "<Q", 2**64 - 1), RejectReason.MALFORMED),
    "foreign run": (encode_frame(MFP, run=RUN + 1, mep_id=0, source_id=SOURCES[0]), RejectReason.FOREIGN_SOURCE),
    "no credit": (encode_frame(MFP, run=RUN, mep_id=10**15, source_id=SOURCES[0]), RejectReason.NO_CREDIT),
    "unknown source": (
        encode_frame(patched(16, "<H", 999, MFP), run=RUN, mep_id=0, source_id=999),
        RejectReason.FOREIGN_SOURCE,
    ),
    "too many events": (
        encode_frame(next(iter(synthetic_meps(1, events=9))).mfps[SOURCES[0]], run=RUN, mep_id=0, source_id=SOURCES[0]),
        RejectReason.OVERSIZED,
    ),
}


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    # Frames are taken in groups, the hostile ones among them too.
    async with running_node(make_config(tmp_path, network={"copy_threads": 3})) as (node, _):
        yield node


@pytest.fixture
async def context() -> AsyncIterator[zmq.asyncio.Context]:
    context = zmq.asyncio.Context()
    yield context
    context.destroy(linger=0)


@pytest.fixture
async def data(node: Node, context: zmq.asyncio.Context) -> AsyncIterator[zmq.asyncio.Socket]:
    """A hand on the data socket of the node."""
    with context.socket(zmq.PUSH) as socket:
        socket.connect(node.receiver.endpoint)
        yield socket


@pytest.fixture
async def control(node: Node, context: zmq.asyncio.Context) -> AsyncIterator[zmq.asyncio.Socket]:
    """A hand on the control socket of the node."""
    with context.socket(zmq.DEALER) as socket:
        socket.connect(node.control.endpoint)
        yield socket


async def test_each_bad_frame_is_counted_by_its_reason_and_good_ones_still_pass(
    node: Node, context: zmq.asyncio.Context, data: zmq.asyncio.Socket
) -> None:
    async with make_feeder(context, node) as feeder:
        await eventually(lambda: node.builder.run == RUN and feeder.token)
        for name, (frame, reason) in FRAMES.items():
            before = dict(node.counters.fragments_rejected)
            received = node.counters.fragments_received
            await data.send(with_token(frame, feeder.token))
            await eventually(lambda: node.counters.fragments_received > received)  # noqa: B023
            after = node.counters.fragments_rejected
            changed = {r for r in RejectReason if after[r] != before[r]}
            assert changed == {reason}, name
        report = await feed_meps(synthetic_meps(5), [feeder])
        await data.send(with_token(GOOD, feeder.token))
        await eventually(lambda: node.counters.fragments_rejected[RejectReason.DUPLICATE] == 1)
    assert (report.meps, report.unacknowledged) == (5, 0)
    accounts = accounting(node.counters, node.builder)
    assert closes(accounts)
    assert accounts["fragments"]["received"] == len(FRAMES) + 21


async def test_a_frame_far_above_the_limit_costs_its_connection_and_nothing_else(
    node: Node, context: zmq.asyncio.Context, data: zmq.asyncio.Socket
) -> None:
    async with make_feeder(context, node) as feeder:
        await data.send(bytes(129 * 1024))
        report = await feed_meps(synthetic_meps(5), [feeder])
    assert (report.meps, report.unacknowledged) == (5, 0)
    assert node.counters.fragments_received == 20


async def test_a_feeder_is_told_why_its_fragment_was_refused_and_nothing_of_other_runs(
    node: Node, data: zmq.asyncio.Socket, control: zmq.asyncio.Socket
) -> None:
    await control.send(encode_message(Hello("by-hand", "s", RUN, SOURCES, 0, 8, 60_000, False)))
    answered = [decode_message(await control.recv()) for _ in range(2)]
    (welcome,) = (message for message in answered if isinstance(message, Welcome))
    for name in ("bit flip in the MFP", "foreign run", "frame too large"):
        await data.send(with_token(FRAMES[name][0], welcome.token))
    answers: list[Nack] = []
    while len(answers) < 2:
        message = decode_message(await control.recv())
        if isinstance(message, Nack):
            answers.append(message)
    assert answers == [
        Nack(RUN, SOURCES[0], 0, RejectReason.BAD_CRC, resend=True),
        Nack(RUN, SOURCES[0], 0, RejectReason.OVERSIZED, resend=False),
    ]


async def test_random_damage_is_refused_for_some_reason_and_never_taken(
    node: Node, context: zmq.asyncio.Context, data: zmq.asyncio.Socket
) -> None:
    rng = random.Random(20261121)
    async with make_feeder(context, node) as feeder:
        await eventually(lambda: node.builder.run == RUN and feeder.token)
        good = with_token(GOOD, feeder.token)
        for _ in range(500):
            frame = bytearray(good)
            for _ in range(rng.randint(1, 8)):
                frame[rng.randrange(len(frame))] ^= 1 << rng.randrange(8)
            if frame[:TOKEN_AT] + frame[HEADER_SIZE:] == good[:TOKEN_AT] + good[HEADER_SIZE:]:
                frame[0] ^= 1
            await data.send(bytes(frame[: rng.randint(0, len(frame))] if rng.random() < 0.3 else frame))
        # Sent after the garbage on the same connection, so all of that is received before.
        await data.send(b"")
        await eventually(lambda: node.counters.fragments_received == 501)
        assert sum(node.counters.fragments_rejected.values()) == node.counters.fragments_received == 501
        # Some of the garbage named a MEP of the feeder, which may be told of that while it feeds; no event is lost.
        report = await feed_meps(synthetic_meps(3), [feeder])
        assert (report.meps, report.unacknowledged) == (3, 0)
    assert closes(accounting(node.counters, node.builder))


async def test_a_flood_of_garbage_does_not_make_the_memory_grow(
    node: Node, context: zmq.asyncio.Context, data: zmq.asyncio.Socket, control: zmq.asyncio.Socket
) -> None:
    process = psutil.Process()
    async with make_feeder(context, node) as feeder:
        await eventually(lambda: node.builder.run == RUN)
        resident = []
        for _ in range(2):
            for i in range(3000):
                # Sources, MEPs and words that were never seen before, each of them.
                await data.send(encode_frame(MFP, run=RUN, mep_id=10**9 + i, source_id=i % 65536))
                if i % 20 == 0:
                    await control.send(msgpack.packb({"v": 3, "type": f"word{i}"}))
                    await control.recv()
            before = node.counters.fragments_received
            await data.send(b"")
            await eventually(lambda: node.counters.fragments_received > before)  # noqa: B023
            resident.append(process.memory_info().rss)
        assert resident[1] - resident[0] < 8 << 20
        assert len(node.counters.sources) == len(SOURCES)
        assert (await feed_meps(synthetic_meps(3), [feeder])).complete


async def test_clients_without_zeromq_are_disconnected_and_feeding_continues(
    node: Node, context: zmq.asyncio.Context
) -> None:
    greetings = (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, b"\x00" * 5000, b"")
    async with make_feeder(context, node) as feeder:
        writers = []
        for endpoint in (node.receiver.endpoint, node.control.endpoint, node.publisher.endpoint):
            host, port = endpoint.removeprefix("tcp://").rsplit(":", 1)
            for greeting in greetings:
                _, writer = await asyncio.open_connection(host, int(port))
                writer.write(greeting)
                writers.append(writer)
        assert (await feed_meps(synthetic_meps(5), [feeder])).complete
        for writer in writers:
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)
    assert node.counters.fragments_received == 20


REQUESTS: dict[str, tuple[bytes, int]] = {
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
    "no path": (b"GET\r\n\r\n", 400),
    "absolute path": (b"GET http://other/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "path upwards": (b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
    "unknown page": (b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
    "unknown method": (b"DELETE /status HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
    "header without end": (b"GET /status HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 20_000, 431),
    "header without colon": (b"GET /status HTTP/1.1\r\nHost: localhost\r\nnonsense\r\n\r\n", 400),
    "NUL in the path": (b"GET /sta\x00tus HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "two kinds of length": (
        b"GET /status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello",
        400,
    ),
}


async def test_garbage_on_the_http_port_gets_an_error_answer_and_the_next_request_its_page(node: Node) -> None:
    for name, (request, expected) in REQUESTS.items():
        assert await http_status(node, request) == expected, name
        assert await http_status(node, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") == 200, name


async def http_status(node: Node, request: bytes) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", node.http_port)
    writer.write(request)
    line = await asyncio.wait_for(reader.readline(), 5)
    writer.close()
    await asyncio.gather(writer.wait_closed(), return_exceptions=True)
    return int(line.split()[1])


async def test_clients_that_never_read_or_never_ask_do_not_delay_the_data(
    node: Node, context: zmq.asyncio.Context
) -> None:
    writers = []
    for i in range(100):
        _, writer = await asyncio.open_connection("127.0.0.1", node.http_port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" if i % 2 else b"GET /metr")
        writers.append(writer)
    async with make_feeder(context, node) as feeder:
        assert (await feed_meps(synthetic_meps(20), [feeder])).complete
    for writer in writers:
        writer.close()
    await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)


GARBAGE: dict[str, list[bytes]] = {
    "no part": [b""],
    "not msgpack": [b"\xc1\xff\x00"],
    "not a map": [msgpack.packb([1, 2, 3])],
    "no version": [msgpack.packb({"type": "hello"})],
    "wrong version": [msgpack.packb({"v": 99, "type": "hello"})],
    "unknown type": [msgpack.packb({"v": 3, "type": "self_destruct"})],
    "wrong field type": [msgpack.packb({"v": 3, "type": "goodbye", "reason": 7})],
    "two parts": [encode_message(EndOfRun(RUN, 1)), b"more"],
    "deep nesting": [b"\x91" * 5000],
    "far too long": [b"\xc4" * 100_000],
    "announces four gigabytes": [b"\xc6\xff\xff\xff\xff"],
    "a million keys": [b"\xdf\x00\x0f\x42\x40"],
    "same key twice": [b"\x82\xa1v\x01\xa1v\x01"],
}
SPOKEN = {"wrong version": 99, "same key twice": 1}
"""The version of a message, if it is another one."""


async def test_garbage_on_the_control_socket_is_answered_with_an_error_and_counted(
    node: Node, context: zmq.asyncio.Context, control: zmq.asyncio.Socket
) -> None:
    for number, (name, parts) in enumerate(GARBAGE.items(), 1):
        await control.send_multipart(parts)
        answer = msgpack.unpackb(await control.recv())
        # A peer of another version would not read an answer in this one.
        assert (answer["type"], answer["v"]) == ("error", SPOKEN.get(name, CONTROL_VERSION)), name
        assert node.counters.control_messages_rejected == number, name
    async with make_feeder(context, node) as feeder:
        assert (await feed_meps(synthetic_meps(3), [feeder])).complete


async def test_messages_that_only_a_node_sends_and_strangers_are_refused(
    node: Node, control: zmq.asyncio.Socket
) -> None:
    await control.send(encode_message(EndOfRun(RUN, 1)))
    answer = decode_message(await control.recv())
    assert isinstance(answer, Error)
    assert answer.reason == "unknown_feeder"
    for hello, reason in (
        (Hello("x", "s", RUN, (), 0, 8, 100, False), "no_sources"),
        (Hello("x", "s", RUN, SOURCES, 0, 5000, 100, False), "events_per_mep"),
        (Hello("x", "s", RUN, SOURCES, 0, 0, 100, False), "events_per_mep"),
    ):
        await control.send(encode_message(hello))
        answer = decode_message(await control.recv())
        assert isinstance(answer, Error)
        assert answer.reason == reason
    assert node.builder.run is None


async def test_a_second_feeder_cannot_take_the_sources_of_a_connected_feeder(
    node: Node, context: zmq.asyncio.Context, control: zmq.asyncio.Socket
) -> None:
    async with make_feeder(context, node) as feeder:
        await eventually(lambda: node.builder.run == RUN)
        await control.send(encode_message(Hello("thief", "s", RUN, SOURCES, 0, 8, 100, False)))
        answer = decode_message(await control.recv())
        assert isinstance(answer, Error)
        assert answer.reason == "source_taken"
        assert (await feed_meps(synthetic_meps(3), [feeder])).complete
