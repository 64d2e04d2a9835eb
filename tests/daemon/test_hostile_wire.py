"""Garbage of every kind on the data and control sockets: rejected, counted by reason, and the service goes on."""

import struct
from collections.abc import AsyncIterator
from pathlib import Path

import msgpack
import pytest
import zmq
import zmq.asyncio

from hltnode.daemon.accounting import accounting, closes
from hltnode.daemon.feeder import feed_meps
from hltnode.daemon.service import Node
from hltnode.protocol.control import (
    Credit,
    EndOfRun,
    Error,
    Hello,
    Nack,
    Welcome,
    decode_message,
    encode_message,
)
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport import encode_frame
from tests.daemon.fakes import RUN, SOURCES, eventually, make_config, make_feeder, running_node, synthetic_meps

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]

MEP = next(iter(synthetic_meps(1)))
MFP = MEP.mfps[SOURCES[0]]
GOOD = encode_frame(MFP, run=RUN, mep_id=0, source_id=SOURCES[0])


def patched(offset: int, layout: str, value: int, frame: bytes = GOOD) -> bytes:
    copy = bytearray(frame)
    struct.pack_into(layout, copy, offset, value)
    return bytes(copy)


FRAMES: dict[str, tuple[bytes, RejectReason]] = {
    "empty": (b"", RejectReason.TRUNCATED),
    "one byte": (b"H", RejectReason.TRUNCATED),
    "header cut": (GOOD[:39], RejectReason.TRUNCATED),
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
    "foreign run": (encode_frame(MFP, run=RUN + 1, mep_id=0, source_id=SOURCES[0]), RejectReason.FOREIGN_RUN),
    "no credit": (encode_frame(MFP, run=RUN, mep_id=10**15, source_id=SOURCES[0]), RejectReason.NO_CREDIT),
    "unknown source": (
        encode_frame(patched(16, "<H", 999, MFP), run=RUN, mep_id=0, source_id=999),
        RejectReason.UNKNOWN_SOURCE,
    ),
    "too many events": (
        encode_frame(next(iter(synthetic_meps(1, events=9))).mfps[SOURCES[0]], run=RUN, mep_id=0, source_id=SOURCES[0]),
        RejectReason.OVERSIZED,
    ),
}


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    async with running_node(make_config(tmp_path)) as (node, _):
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
        await eventually(lambda: node.builder.run == RUN)
        for name, (frame, reason) in FRAMES.items():
            before = dict(node.counters.fragments_rejected)
            received = node.counters.fragments_received
            await data.send(frame)
            await eventually(lambda: node.counters.fragments_received > received)  # noqa: B023
            after = node.counters.fragments_rejected
            changed = {r for r in RejectReason if after[r] != before[r]}
            assert changed == {reason}, name
        report = await feed_meps(synthetic_meps(5), [feeder])
        await data.send(GOOD)
        await eventually(lambda: node.counters.fragments_rejected[RejectReason.DUPLICATE] == 1)
    assert report.complete
    accounts = accounting(node.counters, node.builder)
    assert closes(accounts)
    assert accounts["fragments"]["received"] == len(FRAMES) + 21


async def test_a_frame_far_above_the_limit_costs_its_connection_and_nothing_else(
    node: Node, context: zmq.asyncio.Context, data: zmq.asyncio.Socket
) -> None:
    async with make_feeder(context, node) as feeder:
        await data.send(bytes(129 * 1024))
        report = await feed_meps(synthetic_meps(5), [feeder])
    assert report.complete
    assert node.counters.fragments_received == 20


async def test_a_feeder_is_told_why_its_fragment_was_refused(
    node: Node, data: zmq.asyncio.Socket, control: zmq.asyncio.Socket
) -> None:
    await control.send(encode_message(Hello("by hand", "s", RUN, SOURCES, 0, 8, 60_000)))
    assert isinstance(decode_message(await control.recv()), Welcome | Credit)
    assert isinstance(decode_message(await control.recv()), Welcome | Credit)
    await data.send(FRAMES["bit flip in the MFP"][0])
    await data.send(FRAMES["foreign run"][0])
    await data.send(FRAMES["frame too large"][0])
    answers = []
    while len(answers) < 3:
        message = decode_message(await control.recv())
        if isinstance(message, Nack):
            answers.append(message)
    assert answers == [
        Nack(RUN, SOURCES[0], 0, RejectReason.BAD_CRC, resend=True),
        Nack(RUN, SOURCES[0], 0, RejectReason.FOREIGN_RUN, resend=False),
        Nack(RUN, SOURCES[0], 0, RejectReason.OVERSIZED, resend=False),
    ]


GARBAGE: dict[str, list[bytes]] = {
    "no part": [b""],
    "not msgpack": [b"\xc1\xff\x00"],
    "not a map": [msgpack.packb([1, 2, 3])],
    "no version": [msgpack.packb({"type": "hello"})],
    "wrong version": [msgpack.packb({"v": 99, "type": "hello"})],
    "unknown type": [msgpack.packb({"v": 1, "type": "self_destruct"})],
    "wrong field type": [msgpack.packb({"v": 1, "type": "goodbye", "reason": 7})],
    "two parts": [encode_message(EndOfRun(RUN, 1)), b"more"],
    "deep nesting": [b"\x91" * 5000],
}


async def test_garbage_on_the_control_socket_is_answered_with_an_error_and_counted(
    node: Node, context: zmq.asyncio.Context, control: zmq.asyncio.Socket
) -> None:
    for number, (name, parts) in enumerate(GARBAGE.items(), 1):
        await control.send_multipart(parts)
        assert isinstance(decode_message(await control.recv()), Error), name
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
        (Hello("x", "s", RUN, (), 0, 8, 100), "no_sources"),
        (Hello("x", "s", RUN, SOURCES, 0, 5000, 100), "events_per_mep"),
        (Hello("x", "s", RUN, SOURCES, 0, 0, 100), "events_per_mep"),
    ):
        await control.send(encode_message(hello))
        answer = decode_message(await control.recv())
        assert isinstance(answer, Error)
        assert answer.reason == reason
    assert node.builder.run is None


async def test_a_second_feeder_cannot_take_the_sources_of_one_that_lives(
    node: Node, context: zmq.asyncio.Context, control: zmq.asyncio.Socket
) -> None:
    async with make_feeder(context, node) as feeder:
        await eventually(lambda: node.builder.run == RUN)
        await control.send(encode_message(Hello("thief", "s", RUN, SOURCES, 0, 8, 100)))
        answer = decode_message(await control.recv())
        assert isinstance(answer, Error)
        assert answer.reason == "too_many_feeders"
        assert (await feed_meps(synthetic_meps(3), [feeder])).complete
