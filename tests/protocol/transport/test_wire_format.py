"""The bytes of every message of version 2: control socket, decisions, assignments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.assignments import (
    Assignments,
    Follow,
    decode_assignment_message,
    encode_assignment_message,
)
from hltnode.protocol.transport.control_messages import ControlMessage, decode_message, encode_message
from hltnode.protocol.transport.decisions import MepDecision, decode_decision, encode_decision
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
    Returned,
    Revoked,
    RunClosed,
    Welcome,
)
from hltnode.protocol.transport.messages import Message
from hltnode.protocol.transport.run_control_messages import Command, CommandName, Reply, RunState

Codec = tuple[Callable[[Any], bytes], Callable[[bytes], Any]]
CONTROL: Codec = (encode_message, decode_message)
ASSIGNMENT: Codec = (encode_assignment_message, decode_assignment_message)
DECISION: Codec = (encode_decision, decode_decision)

# A change of these bytes requires a new version of the wire format.
BYTES: list[tuple[Message, str]] = [
    (
        Hello(
            feeder="feeder-a",
            session="5f3e",
            run=7,
            sources=(0, 4096, 65535),
            first_mep=12,
            events_per_mep=100,
            max_fragment_bytes=1048576,
            supervises=True,
        ),
        "8aa17603a474797065a568656c6c6fa6666565646572a86665656465722d61a773657373696f6ea435663365a372756e"
        "07a7736f75726365739300cd1000cdffffa966697273745f6d65700cae6576656e74735f7065725f6d657064b26d6178"
        "5f667261676d656e745f6279746573ce00100000aa73757065727669736573c3",
    ),
    (
        Hello(
            feeder="f",
            session="s",
            run=7,
            sources=(1,),
            first_mep=0,
            events_per_mep=8,
            max_fragment_bytes=1000,
            supervises=False,
            feeders=3,
            chain="alice_tpc",
        ),
        "8ca17603a474797065a568656c6c6fa6666565646572a166a773657373696f6ea173a372756e07a7736f757263657391"
        "01a966697273745f6d657000ae6576656e74735f7065725f6d657008b26d61785f667261676d656e745f6279746573cd"
        "03e8aa73757065727669736573c2a76665656465727303a5636861696ea9616c6963655f747063",
    ),
    (
        Hello(
            feeder="f",
            session="s",
            run=0,
            sources=(),
            first_mep=18446744073709551615,
            events_per_mep=65535,
            max_fragment_bytes=4294967295,
            supervises=False,
        ),
        "8aa17603a474797065a568656c6c6fa6666565646572a166a773657373696f6ea173a372756e00a7736f757263657390a966"
        "697273745f6d6570cfffffffffffffffffae6576656e74735f7065725f6d6570cdffffb26d61785f667261676d656e74"
        "5f6279746573ceffffffffaa73757065727669736573c2",
    ),
    (
        Welcome(node="node-1", session="a1", run=7, max_fragment_bytes=1048576, token=0x123456789ABCDEF0),
        "87a17603a474797065a777656c636f6d65a46e6f6465a66e6f64652d31a773657373696f6ea26131a372756e07b26d61"
        "785f667261676d656e745f6279746573ce00100000a5746f6b656ecf123456789abcdef0",
    ),
    (
        Credit(run=7, meps=100),
        "84a17603a474797065a6637265646974a372756e07a46d65707364",
    ),
    (
        Ack(run=7, meps=((0, 4), (7, 7), (300, 70000))),
        "84a17603a474797065a361636ba372756e07a46d6570739392000492070792cd012cce00011170",
    ),
    (
        Ack(run=7, meps=()),
        "84a17603a474797065a361636ba372756e07a46d65707390",
    ),
    (
        Revoked(run=7, meps=((1, 2), (18446744073709551615, 18446744073709551615))),
        "84a17603a474797065a77265766f6b6564a372756e07a46d6570739292010292cfffffffffffffffffcfffffffffffffffff",
    ),
    (
        Returned(run=7, meps=((1, 2),)),
        "84a17603a474797065a872657475726e6564a372756e07a46d65707391920102",
    ),
    (
        Nack(run=7, source=4096, mep=3, reason=RejectReason.BAD_MAGIC, resend=True),
        "87a17603a474797065a46e61636ba372756e07a6736f75726365cd1000a36d657003a6726561736f6ea96261645f6d61"
        "676963a6726573656e64c3",
    ),
    (
        Held(session="s", run=7, meps=((3, 3), (9, 10))),
        "85a17603a474797065a468656c64a773657373696f6ea173a372756e07a46d6570739292030392090a",
    ),
    (
        Missed(run=7, source=4096, meps=((3, 3), (9, 10))),
        "85a17603a474797065a66d6973736564a372756e07a6736f75726365cd1000a46d6570739292030392090a",
    ),
    (
        EndOfRun(run=7, last_mep=5),
        "84a17603a474797065aa656e645f6f665f72756ea372756e07a86c6173745f6d657005",
    ),
    (
        EndOfRun(run=7, last_mep=None),
        "84a17603a474797065aa656e645f6f665f72756ea372756e07a86c6173745f6d6570c0",
    ),
    (
        Goodbye(reason="run über"),
        "83a17603a474797065a7676f6f64627965a6726561736f6ea972756e20c3bc626572",
    ),
    (
        Error(reason="bad_version", text="control message: version 1 expected, 2 found"),
        "84a17603a474797065a56572726f72a6726561736f6eab6261645f76657273696f6ea474657874d92c636f6e74726f6c"
        "206d6573736167653a2076657273696f6e20312065787065637465642c203220666f756e64",
    ),
    (
        RunClosed(run=7),
        "83a17603a474797065aa72756e5f636c6f736564a372756e07",
    ),
    (
        Command(request=0, command=CommandName.CONFIGURE, run=None),
        "85a17603a474797065a7636f6d6d616e64a77265717565737400a7636f6d6d616e64a9636f6e666967757265a372756ec0",
    ),
    (
        Command(request=1, command=CommandName.START, run=4711),
        "85a17603a474797065a7636f6d6d616e64a77265717565737401a7636f6d6d616e64a57374617274a372756ecd1267",
    ),
    (
        Reply(request=0, ok=True, state=RunState.IDLE, text="{}"),
        "86a17603a474797065a57265706c79a77265717565737400a26f6bc3a57374617465a469646c65a474657874a27b7d",
    ),
    (
        Follow(feeder="feeder-a", run=7, nodes="tcp://a:1 tcp://b:2", session="s", position=65536),
        "87a17602a474797065a6666f6c6c6f77a6666565646572a86665656465722d61a372756e07a56e6f646573b37463703a"
        "2f2f613a31207463703a2f2f623a32a773657373696f6ea173a8706f736974696f6ece00010000",
    ),
    (
        Assignments(
            session="s",
            position=3,
            next_mep=1,
            meps=(1, 2, 1099511627776),
            nodes=(0, 1, 65535),
            everything=True,
            error="",
        ),
        "89a17602a474797065ab61737369676e6d656e7473a773657373696f6ea173a8706f736974696f6e03a86e6578745f6d"
        "657001a46d657073930102cf0000010000000000a56e6f646573930001cdffffaa65766572797468696e67c3a56572726f72a0",
    ),
    (
        Assignments(
            session="s", position=0, next_mep=0, meps=(), nodes=(), everything=False, error="another list of nodes"
        ),
        "89a17602a474797065ab61737369676e6d656e7473a773657373696f6ea173a8706f736974696f6e00a86e6578745f6d"
        "657000a46d65707390a56e6f64657390aa65766572797468696e67c2a56572726f72b5616e6f74686572206c697374206f66206e6f646573",
    ),
    (
        MepDecision(
            node="node",
            run=1,
            mep=2,
            seq=3,
            first_event=4,
            n_events=2,
            n_lines=33,
            tck=6,
            close_reason="timeout",
            missing_sources=(7, 4097),
            accepted=b"\x01",
            lines=bytes(range(16)),
            flags=bytes(range(8)),
        ),
        "8fa17602a474797065a86465636973696f6ea46e6f6465a46e6f6465a372756e01a36d657002a373657103ab66697273"
        "745f6576656e7404a86e5f6576656e747302a76e5f6c696e657321a374636b06ac636c6f73655f726561736f6ea77469"
        "6d656f7574af6d697373696e675f736f75726365739207cd1001a86163636570746564c40101a56c696e6573c4100001"
        "02030405060708090a0b0c0d0e0fa5666c616773c4080001020304050607",
    ),
    (
        MepDecision(
            node="node",
            run=1,
            mep=2,
            seq=3,
            first_event=4,
            n_events=1,
            n_lines=1,
            tck=6,
            close_reason="complete",
            missing_sources=(),
            accepted=b"\x01",
            lines=bytes(4),
            flags=bytes(4),
            chain="lhcb",
        ),
        "de0010a17602a474797065a86465636973696f6ea46e6f6465a46e6f6465a372756e01a36d657002a373657103ab6669"
        "7273745f6576656e7404a86e5f6576656e747301a76e5f6c696e657301a374636b06ac636c6f73655f726561736f6ea8"
        "636f6d706c657465af6d697373696e675f736f757263657390a86163636570746564c40101a56c696e6573c404000000"
        "00a5666c616773c40400000000a5636861696ea46c686362",
    ),
]


def codec_of(message: Message) -> Codec:
    if isinstance(message, (Follow, Assignments)):
        return ASSIGNMENT
    return DECISION if isinstance(message, MepDecision) else CONTROL


@pytest.mark.parametrize(("message", "expected"), BYTES, ids=lambda it: type(it).__name__)
def test_a_message_is_written_as_the_bytes_of_its_version(message: Message, expected: str) -> None:
    encode, _ = codec_of(message)
    assert encode(message).hex() == expected


@pytest.mark.parametrize(("message", "written"), BYTES, ids=lambda it: type(it).__name__)
def test_the_bytes_of_the_version_are_read_as_the_same_message(message: Message, written: str) -> None:
    _, decode = codec_of(message)
    found = decode(bytes.fromhex(written))
    assert found == message
    assert type(found) is type(message)


@pytest.mark.parametrize(
    ("message", "field", "word"),
    [
        *((Nack(7, 1, 2, reason, True), b"reason", reason.value) for reason in RejectReason),
        *((Command(1, name, None), b"command", name.value) for name in CommandName),
        *((Reply(1, True, state, ""), b"state", state.value) for state in RunState),
    ],
)
def test_a_name_is_on_the_wire_as_its_word(message: ControlMessage, field: bytes, word: str) -> None:
    packed = encode_message(message)
    assert field + bytes((0xA0 | len(word),)) + word.encode() in packed
    assert decode_message(packed) == message
