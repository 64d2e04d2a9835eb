"""The C library beside a node whose answers the test decides; the program has sanitizers."""

import random
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hltnode.protocol.errors import ProtocolError, RejectReason
from hltnode.protocol.transport.control_messages import ControlMessage, decode_message, encode_message
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
    RunClosed,
    Welcome,
)
from tests.client.c.conftest import Start
from tests.client.c.fake_node import RUN, FakeNode

pytestmark = pytest.mark.loopback

TIMING, BOARD = 0, 24 << 11
OF_BOTH = 2
"""Sources of the driver by default."""


@pytest.fixture
def node() -> Iterator[FakeNode]:
    with FakeNode() as node:
        yield node


def output(feeder: subprocess.Popen[str], status: int) -> str:
    printed, errors = feeder.communicate(timeout=60)
    assert feeder.returncode == status, printed + errors
    return printed


def test_a_feeder_says_hello_sends_against_credit_and_ends_the_run(node: FakeNode, start: Start) -> None:
    feeder = start(node.data, node.control, "--meps", 3)
    hello = node.admit(credit=2)
    assert (hello.feeder, hello.run, hello.sources, hello.first_mep) == ("feeder-in-c", RUN, (TIMING, BOARD), 0)
    assert (hello.events_per_mep, hello.supervises, hello.feeders) == (50, False, 1)
    assert node.frames(4) == [(0, TIMING), (0, BOARD), (1, TIMING), (1, BOARD)]
    # The next hello comes a second later: the third MEP would have come by then.
    assert node.hello().session == hello.session
    with pytest.raises(AssertionError, match="no frame"):
        node.frame(seconds=0)
    node.acknowledge(0, 1)
    node.welcome()
    assert node.frames(2) == [(2, TIMING), (2, BOARD)]
    while not node.ends:
        assert node.hello().first_mep == 2
        node.welcome()
    assert node.ends[0] == EndOfRun(RUN, 2)
    node.acknowledge(2, 2)
    while node.hello().first_mep != 3:
        node.welcome()
    node.welcome()
    while not isinstance(message := node.receive(), Goodbye):
        assert isinstance(message, EndOfRun)
    assert "3 MEPs acknowledged, 0 before, 0 kept, 6 fragments sent, 0 again" in output(feeder, 0)


def test_a_new_session_gets_all_kept_meps_again_with_the_new_token(node: FakeNode, start: Start) -> None:
    feeder = start(node.data, node.control, "--meps", 4)
    node.admit(credit=4)
    assert len(node.frames(8)) == 8
    node.acknowledge(1, 1)
    node.session, node.token = "second", 0x99
    node.admit(credit=1)
    assert node.frames(2) == [(0, TIMING), (0, BOARD)]
    node.acknowledge(0, 0)
    node.serve(feeder, OF_BOTH)
    assert "4 MEPs acknowledged, 0 before, 0 kept, 14 fragments sent, 6 again" in output(feeder, 0)


def test_held_meps_are_not_repeated_to_the_same_session(node: FakeNode, start: Start) -> None:
    feeder = start(node.data, node.control, "--meps", 3)
    node.admit(credit=3)
    node.frames(6)
    node.hello()
    node.send(Held(node.session, RUN, ((0, 1),)))
    node.send(Held("another", RUN, ((2, 2),)))
    node.token = 0x77
    node.welcome()
    node.send(Credit(RUN, 3))
    assert node.frames(2) == [(2, TIMING), (2, BOARD)]
    node.acknowledge(0, 2)
    node.serve(feeder, OF_BOTH)
    assert "8 fragments sent, 2 again" in output(feeder, 0)


def test_a_damaged_fragment_is_repeated_five_times_and_then_given_up(node: FakeNode, start: Start) -> None:
    feeder = start(node.data, node.control, "--meps", 1)
    node.admit(credit=1)
    node.frame()
    for _ in range(5):
        frame = node.frame()
        assert frame.source_id == BOARD
        node.refuse(frame, "bad_crc", resend=True)
    frame = node.frame()
    node.refuse(frame, "bad_crc", resend=True)
    # The second hello comes a second later: a repeated fragment would have come by then.
    node.admit(credit=1)
    node.admit(credit=1)
    with pytest.raises(AssertionError, match="no frame"):
        node.frame(seconds=0)
    node.acknowledge(0, 0)
    node.serve(feeder, OF_BOTH)
    printed = output(feeder, 6)
    assert "HLTNODE_FRAGMENTS_REFUSED: the node refused 1 fragments" in printed
    assert printed.splitlines()[-1] == "refused bad_crc 1"


def test_refused_fragments_count_once_under_their_first_reason(node: FakeNode, start: Start) -> None:
    feeder = start(node.data, node.control, "--meps", 4, "--first", 10)
    node.admit(credit=4)
    frames = [node.frame() for _ in range(8)]
    # Both fragments of the first MEP: the feeder forgets it.
    for _ in range(2):
        node.refuse(frames[0], "mismatch", resend=False)
        node.refuse(frames[1], "reserved_type", resend=False)
        node.send(Missed(RUN, BOARD, ((11, 12), (0, 2**64 - 1))))
        node.refuse(frames[5], "late", resend=False)
    node.refuse(frames[6], "late", resend=False)
    node.acknowledge(11, 13)
    node.serve(feeder, OF_BOTH)
    refused = [line for line in output(feeder, 6).splitlines() if line.startswith("refused ")]
    # MEPs 11 to 13 without the board, 13 without the timing board too; 10 for two reasons of its own.
    assert refused == ["refused late 4", "refused mismatch 1", "refused reserved_type 1"]


def test_a_mep_without_a_slot_lets_others_go_first(node: FakeNode, start: Start) -> None:
    feeder = start(node.data, node.control, "--meps", 2)
    node.admit(credit=2)
    first = [node.frame() for _ in range(4)]
    node.send(Credit(RUN, 1))
    for frame in first:
        node.refuse(frame, "no_credit", resend=True)
    assert {mep for mep, _ in node.frames(2)} == {0}
    node.acknowledge(0, 0)
    assert {mep for mep, _ in node.frames(2)} == {1}
    node.acknowledge(1, 1)
    node.serve(feeder, OF_BOTH)
    assert "8 fragments sent, 4 again" in output(feeder, 0)


def test_meps_that_an_earlier_process_finished_are_not_sent(node: FakeNode, start: Start) -> None:
    feeder = start(node.data, node.control, "--meps", 5)
    node.hello()
    node.send(Ack(RUN, ((0, 1), (3, 3))))
    node.welcome()
    node.send(Credit(RUN, 8))
    assert node.frames(4) == [(2, TIMING), (2, BOARD), (4, TIMING), (4, BOARD)]
    node.acknowledge(2, 4)
    node.serve(feeder, OF_BOTH)
    assert "2 MEPs acknowledged, 3 before" in output(feeder, 0)


def test_a_mep_that_a_later_one_overtook_is_sent_again(node: FakeNode, start: Start) -> None:
    feeder = start(node.data, node.control, "--meps", 3)
    node.admit(credit=3)
    node.frames(6)
    node.acknowledge(1, 2)
    began = time.monotonic()
    node.serve(feeder, OF_BOTH)
    assert time.monotonic() - began > 3.0
    assert "3 MEPs acknowledged, 0 before, 0 kept, 8 fragments sent, 2 again" in output(feeder, 0)


@pytest.mark.parametrize(
    ("message", "status", "text"),
    [
        (Error("foreign_chain", "this node is of chain lhcb"), 7, "HLTNODE_REFUSED: foreign_chain: this node is of"),
        (Error("bad_version", "version 4 expected"), 7, "HLTNODE_REFUSED: bad_version: version 4 expected"),
        (RunClosed(RUN), 8, "HLTNODE_RUN_CLOSED: run 7 was closed by an operator"),
    ],
)
def test_a_permanent_refusal_ends_the_feeder_with_the_reason(
    node: FakeNode, start: Start, message: Error | RunClosed, status: int, text: str
) -> None:
    feeder = start(node.data, node.control)
    node.hello()
    node.send(message)
    assert output(feeder, status).startswith(text)


def test_temporary_refusals_goodbyes_and_runs_of_others_do_not_end_a_feeder(node: FakeNode, start: Start) -> None:
    feeder = start(node.data, node.control, "--meps", 2)
    node.hello()
    messages: list[ControlMessage] = [
        Error("run_active", "run 6 is not over"), Error("unknown_feeder", "say hello"), Goodbye("restart"),
        RunClosed(RUN + 1), Nack(RUN, TIMING, 0, RejectReason.FOREIGN_RUN, True),
    ]  # fmt: skip
    for message in messages:
        node.send(message)
    node.serve(feeder, OF_BOTH)
    assert "2 MEPs acknowledged" in output(feeder, 0)


def test_an_mfp_above_the_limit_of_the_node_is_an_error_of_the_call(node: FakeNode, start: Start) -> None:
    feeder = start(node.data, node.control)
    node.hello()
    node.welcome(max_fragment_bytes=1000)
    node.send(Credit(RUN, 1))
    assert output(feeder, 5).startswith("HLTNODE_TOO_LARGE: MEP 0: an MFP of 2")


def test_calls_return_after_their_time_without_a_node(node: FakeNode, start: Start) -> None:
    feeder = start(node.data, node.control, "--timeout", 300)
    assert output(feeder, 1).startswith("HLTNODE_TIMEOUT: MEP 0: no welcome of the node")


def test_wrong_arguments_are_errors_that_name_them(start: Start) -> None:
    endpoint = "tcp://127.0.0.1:1"
    for arguments, text in (
        (("ipc:///tmp/x", "-"), "ipc:///tmp/x: give the control endpoint: there is no next port"),
        ((endpoint, "tcp://:"), "tcp://::"),
        ((endpoint, "-", "--events", 0), "events_per_mep: at least 1 expected"),
        ((endpoint, "-", "--memory", -1), "shared memory: a size expected"),
    ):
        printed, _ = start(*arguments).communicate(timeout=60)
        assert text in printed.splitlines()[0]


# Messages as a hostile or broken node sends them.

NAMES = ("a", "node-1", "x" * 64)


def some_messages(rng: random.Random) -> list[bytes]:
    """Valid messages of all types for feeders, with numbers of all widths."""

    def number(bits: int) -> int:
        return rng.randrange(1 << rng.randrange(1, bits + 1))

    def ranges() -> tuple[tuple[int, int], ...]:
        pairs = [sorted((number(64), number(64))) for _ in range(rng.choice((0, 1, 3, 20, 1024)))]
        return tuple((first, last) for first, last in pairs)

    name, text = rng.choice(NAMES), rng.choice(("", "é" * 400, "why not\n" * 9))
    messages: list[ControlMessage] = [
        Welcome(name, rng.choice(NAMES), number(32), number(32), number(64)),
        Credit(number(32), number(32)),
        Ack(number(32), ranges()),
        Held(name, number(32), ranges()),
        Nack(number(32), number(16), number(64), rng.choice(list(RejectReason)), rng.random() < 0.5),
        Missed(number(32), number(16), ranges()),
        Goodbye(text),
        Error(name, text),
        RunClosed(number(32)),
    ]
    return [encode_message(message) for message in messages]


def damaged(rng: random.Random, raw: bytes) -> bytes:
    """The message with a few bytes changed, cut, doubled, or put in."""
    changed = bytearray(raw)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(changed) + 1)
        kind = rng.randrange(5)
        if kind == 0:
            del changed[at:]
        elif kind == 1:
            changed[at:at] = bytes(rng.choice((0x81, 0x92, 0xC1, 0xC6, 0xD9, 0xDB, 0xDD, 0xDF, 0xFF)) for _ in range(5))
        elif kind == 2:
            changed[at : at + 1] = bytes([rng.randrange(256)])
        elif kind == 3:
            changed[at:at] = changed[: rng.randrange(40)]
        else:
            del changed[at : at + rng.randrange(8)]
    return bytes(changed)


def as_printed(raw: bytes) -> str:
    """What the driver prints of a message that the decoder of the node accepts."""
    message = decode_message(raw)
    values = {name: getattr(message, name) for name in message.__struct_fields__}
    meps = values.get("meps", ())
    ranges = "".join(f"{first}-{last}," for first, last in meps) if isinstance(meps, tuple) else ""
    texts = {
        name: "".join(
            "?" if ord(c) < 0x20 else c
            for c in str(values.get(name, "")).encode()[:1000].decode(errors="surrogateescape")
        )
        for name in ("reason", "text")
    }
    return (
        f"{message.__struct_config__.tag} run={values.get('run', 0)} source={values.get('source', 0)} "
        f"mep={values.get('mep', 0)} credit={0 if isinstance(meps, tuple) else meps} "
        f"max={values.get('max_fragment_bytes', 0)} token={values.get('token', 0)} "
        f"resend={int(values.get('resend', False))} node={values.get('node', '')} "
        f"session={values.get('session', '')} ranges={ranges} reason={texts['reason']} text={texts['text']}"
    )


def parsed(driver: Path, messages: list[bytes]) -> list[str]:
    stream = b"".join(struct.pack("<I", len(raw)) + raw for raw in messages)
    done = subprocess.run([str(driver), "parse"], input=stream, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode(errors="surrogateescape").splitlines()


def test_the_parser_reads_valid_messages_and_no_damaged_one_harms_it(driver: Path) -> None:
    rng = random.Random(20261128)
    valid = [raw for _ in range(25) for raw in some_messages(rng)]
    assert parsed(driver, valid) == [as_printed(raw) for raw in valid]
    bad = [damaged(rng, rng.choice(valid)) for _ in range(6_000)]
    bad += [rng.randbytes(rng.randrange(300)) for _ in range(1_000)]
    # Lists that announce more than there is, and lists in lists.
    bad += [b"\xdf\xff\xff\xff\xff", b"\x81\xa1x" + b"\xdd\xff\xff\xff\xff" * 6000, b"\x81\xa1x" + b"\x91" * 30_000]
    bad += [b"\x81\xa1x" + b"\xdf\xff\xff\xff\xff" * 6000, b""]
    results = parsed(driver, bad)
    assert len(results) == len(bad)
    assert results.count("malformed") > 3_000
    for raw, result in zip(bad, results, strict=True):
        try:
            expected = as_printed(raw)
        except ProtocolError:
            continue
        if not isinstance(decode_message(raw), Hello | EndOfRun):
            assert result in (expected, "unknown"), raw


@pytest.mark.parametrize("seed", [1])
def test_garbage_of_a_node_costs_a_feeder_nothing_but_the_garbage(node: FakeNode, start: Start, seed: int) -> None:
    """Damaged messages come in each state of the feeder; its MEPs are acknowledged all the same."""
    rng = random.Random(seed)
    feeder = start(node.data, node.control, "--meps", 6)
    # Messages that are well-formed by chance must not end the run of the feeder: they are of other runs.
    others: list[ControlMessage] = [
        Ack(RUN + 1, ((0, 5), (9, 2**64 - 1))), Missed(RUN + 1, BOARD, ((0, 9),)), Credit(RUN + 1, 9)
    ]  # fmt: skip
    valid = [encode_message(message) for message in others]
    n = 0
    for _ in range(3):
        node.hello()
        for _ in range(400):
            node.send_bytes(
                rng.randbytes(rng.randrange(1, 200)) if rng.random() < 0.3 else damaged(rng, rng.choice(valid))
            )
            n += 1
        node.welcome()
        node.send(Credit(RUN, 2))
    node.serve(feeder, OF_BOTH, credit=2)
    printed = output(feeder, 0)
    assert "6 MEPs acknowledged, 0 before, 0 kept" in printed
    assert 600 < int(printed.split(", ")[5].split()[0]) <= n
