"""The requester of the C library, in a program with sanitizers, beside a node and beside a socket that lies."""

import asyncio
import random
import re
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgpack
import pytest
import zmq

from hltnode import client
from hltnode.client.requests import BUSY_PAUSE_SECONDS, MOST_AT_ONCE
from hltnode.protocol import encode_mep
from hltnode.protocol.errors import MessageError
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.transport.requests import (
    MAX_ANSWER_SIZE,
    MAX_COLLECTIONS,
    REQUEST_VERSION,
    Answer,
    Cancel,
    Refusal,
    Request,
    RequestRefusal,
    decode_answer,
    decode_request,
    encode_answer,
)
from tests.client.c.conftest import LIBRARY
from tests.daemon.fakes import eventually, make_config, running_node
from tests.daemon.requests.test_request_socket import BAD_MAGIC, door, mep
from tests.daemon.security.test_curve import Keyring

SOURCE = (LIBRARY / "hltnode_client.c").read_text(encoding="utf-8")


def sized(raw: bytes) -> bytes:
    return struct.pack("<I", len(raw)) + raw


class Program:
    """A requester in C that does one command after the other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def does(self, command: str, data: bytes = b"") -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.buffer.write(command.encode() + data)  # type: ignore[attr-defined]
        self.process.stdin.flush()
        line = self.process.stdout.readline().strip()
        assert line, self.process.communicate(timeout=30)[1]
        return line

    async def ask(self, data: bytes) -> str:
        return await asyncio.to_thread(self.does, "a", sized(data))

    async def ask_long(self, data: bytes) -> str:
        return await asyncio.to_thread(self.does, "w", sized(data))

    async def send(self, data: bytes) -> str:
        return await asyncio.to_thread(self.does, "s", sized(data))

    async def receive(self) -> str:
        return await asyncio.to_thread(self.does, "r")

    async def cancel(self, number: int) -> str:
        return await asyncio.to_thread(self.does, "c", struct.pack("<I", number))

    def end(self) -> None:
        """Close its input. The program ends without an error of memory and without a leak."""
        _, errors = self.process.communicate(timeout=60)
        assert (self.process.returncode, errors) == (0, "")


Ask = Callable[..., Program]


@pytest.fixture
def requester(driver: Path) -> Iterator[Ask]:
    """Starts the program with an endpoint, a time-out in ms and key files; checks at the end that it ended well."""
    programs: list[Program] = []

    def started(*arguments: object) -> Program:
        process = subprocess.Popen(
            [str(driver), "ask", *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        programs.append(Program(process))
        return programs[-1]

    yield started
    for program in programs:
        program.end()


def as_printed(answer: Answer) -> str:
    counts, fired, accepted, flags = (
        answer.counted(), answer.fired(), answer.accepted_events(), answer.event_flags(),
    )  # fmt: skip
    text = f"id={answer.id} node={answer.node} chain={answer.chain} tck={answer.tck} lists={answer.lists.hex()}"
    for event in range(answer.n_events):
        bits = "".join("01"[bit] for bit in fired[event].astype(int))
        numbers = "".join(f" {name}:{of_events[event]}" for name, of_events in counts.items())
        text += f" [{accepted[event]:d} {bits} {flags[event]}{numbers}]"
    return text


@pytest.mark.loopback
async def test_answers_and_refusals_are_those_of_the_client_in_python(requester: Ask, tmp_path: Path) -> None:
    meps = [mep(1), mep(5), mep(16), BAD_MAGIC, mep(1, size=25, align=2), mep(17), mep(2)]

    def ask_in_python(endpoint: str) -> list[str]:
        answers = []
        with client.Requester(endpoint) as python:
            for data in meps:
                try:
                    answers.append(as_printed(python.ask(data, timeout=10.0)))
                except client.RequestRefusedError as refused:
                    answers.append(f"HLTNODE_REQUEST_REFUSED {refused.reason} {refused.request}: {refused}")
        return answers

    async with door(tmp_path) as at:
        expected = await asyncio.to_thread(ask_in_python, at.endpoint)
        program = requester(at.endpoint, 10000)
        assert [await program.ask(data) for data in meps] == expected
        assert [line.split()[1] for line in expected[3:6]] == ["bad_mep", "bad_mep", "too_large"]
        assert [await program.send(mep(n)) for n in (3, 4)] == ["s 8", "s 9"]
        later = [await program.receive() for _ in range(2)]
        assert [line.split()[0] for line in later] == ["id=8", "id=9"]
        assert [line.count("tracks:3") for line in later] == [3, 4]


@pytest.mark.loopback
async def test_a_busy_node_refuses_and_cancelled_requests_have_no_answer(requester: Ask, tmp_path: Path) -> None:
    async with door(tmp_path, queue_per_client=3) as at:
        at.engine.behaviour.hang.set()
        program = requester(at.endpoint, 5000)
        assert await program.send(mep(16)) == "s 1"
        await eventually(lambda: at.engine.workspaces[0].batches[-1] == 1)
        for number in (2, 3, 4, 5):
            assert await program.send(mep(16)) == f"s {number}"
        assert (await program.receive()).startswith("HLTNODE_REQUEST_REFUSED busy 5: request 5 was refused: busy: ")
        assert await program.cancel(3) == "c 3"
        await eventually(lambda: at.counters.cancelled == 1)
        at.engine.behaviour.hang.clear()
        assert [(await program.receive()).split()[0] for _ in range(3)] == ["id=1", "id=2", "id=4"]


async def test_a_requester_that_asks_a_busy_node_again_and_again_does_so_after_pauses(
    requester: Ask, tmp_path: Path
) -> None:
    async with door(tmp_path, queue=1, timeout_ms=120_000) as at:
        at.engine.behaviour.hang.set()
        first, program = requester(at.endpoint, 5000), requester(at.endpoint, 5000)
        await first.send(mep(16))
        await eventually(lambda: at.engine.workspaces[0].batches[-1] == 1)
        await first.send(mep(16))
        await eventually(lambda: at.counters.waiting == 1)
        times = []
        for _ in range(6):
            assert (await program.ask(mep(16))).startswith("HLTNODE_REQUEST_REFUSED busy")
            times.append(time.monotonic())
        assert times[-1] - times[0] >= 5 * 0.9 * BUSY_PAUSE_SECONDS
        at.engine.behaviour.hang.clear()
        assert [(await first.receive()).split()[0] for _ in range(2)] == ["id=1", "id=2"]


@pytest.mark.loopback
async def test_a_request_that_times_out_is_dropped_and_the_next_gets_its_own_answer(
    requester: Ask, tmp_path: Path
) -> None:
    async with door(tmp_path) as at:
        at.engine.behaviour.hang.set()
        program = requester(at.endpoint, 300)
        assert await program.send(mep(2)) == "s 1"
        await eventually(lambda: at.engine.workspaces[0].batches[-1:] == [1])
        assert (await program.ask(mep(3))).split(":")[0] in ("HLTNODE_TIMEOUT  0", "HLTNODE_REQUEST_REFUSED expired 2")
        await eventually(lambda: at.counters.cancelled + at.counters.refused[RequestRefusal.EXPIRED] == 1)
        at.engine.behaviour.hang.clear()
        await eventually(lambda: at.counters.answered == 1)
        third = await program.ask_long(mep(4))
        assert (third.split()[0], third.count("[")) == ("id=3", 4)
        assert await program.receive() == f"HLTNODE_TIMEOUT  0: {at.endpoint}: no answer of the node"


@pytest.mark.loopback
async def test_a_node_with_keys_answers_consumers_and_refuses_other_keys(requester: Ask, tmp_path: Path) -> None:
    keys = Keyring(tmp_path / "keys")
    at = keys.directory
    roles = {role: str(at / role) for role in ("feeders", "operators", "consumers")}
    config = make_config(
        tmp_path, requests={"endpoint": "tcp://127.0.0.1:*"},
        security={"server_key": str(at / "node" / "node.key_secret"), **roles},
    )  # fmt: skip
    [consumer] = (at / "consumers").glob("*.key_secret")
    async with running_node(config) as (node, _):
        assert node._sockets.requests is not None
        endpoint, server = node._sockets.requests.endpoint, at / "node" / "node.key"
        stranger = await requester(endpoint, 10000, at / "else" / "stranger.key_secret", server).ask(mep(1))
        assert stranger.startswith("HLTNODE_REFUSED  0: the node does not know this key")
        assert (await requester(endpoint, 10000, consumer, server).ask(mep(3))).count("tracks:3") == 3
        without = await requester(endpoint, 10000).ask(mep(1))
        assert without.startswith("HLTNODE_REFUSED  0: the node and this requester do not agree on CURVE")
        foreign = await requester(endpoint, 200, consumer, at / "else" / "stranger.key").ask(mep(1))
        assert foreign == f"HLTNODE_TIMEOUT  0: {endpoint}: no connection to a node"


def test_an_absent_node_and_wrong_endpoints_have_statuses_of_their_own(requester: Ask) -> None:
    program = requester("tcp://127.0.0.1:1", 50)
    assert program.does("r") == "HLTNODE_INVALID  0: no request was sent"
    assert program.does("c", bytes(4)) == "HLTNODE_INVALID  0: no request was sent"
    assert program.does("k") == "HLTNODE_SYSTEM  0: own: cannot be read: No such file or directory"
    assert program.does("a", sized(mep(1))) == "HLTNODE_TIMEOUT  0: tcp://127.0.0.1:1: no connection to a node"
    assert program.does("k") == "HLTNODE_INVALID  0: keys are set before the first request"
    assert program.does("a", sized(b"")) == "HLTNODE_INVALID  0: a MEP expected"
    assert requester("nonsense", 50).does("a", sized(b"x")) == "HLTNODE_SYSTEM  0: nonsense: Invalid argument"
    long = requester("tcp://" + 256 * "a", 50).does("a", sized(b"x"))
    assert long == "HLTNODE_INVALID  0: endpoint: 1 to 255 bytes expected"


def some_answer(rng: random.Random, number: int | None = None) -> Answer:
    n, n_lines, n_collections = rng.randrange(12), rng.choice((0, 1, 31, 32, 33, 70)), rng.randrange(4)
    return Answer(
        rng.randrange(1 << 64) if number is None else number, "node-1", "lhcb", rng.randrange(1 << 32), n, n_lines,
        rng.randbytes((n + 7) // 8), rng.randbytes(n * 4 * -(-n_lines // 32)), rng.randbytes(4 * n),
        tuple(f"name{i}" for i in range(n_collections)), rng.randbytes(4 * n * n_collections),
        rng.randbytes(rng.choice((0, 3, 300, 70_000))),
    )  # fmt: skip


def parsed(driver: Path, messages: list[bytes]) -> list[str]:
    done = subprocess.run(
        [str(driver), "answers"], input=b"".join(map(sized, messages)), capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode(errors="surrogateescape").splitlines()


def with_fields(answer: Answer, **changes: object) -> bytes:
    """The message with other fields; None takes one away."""
    fields = msgpack.unpackb(encode_answer(answer)) | changes
    return bytes(msgpack.packb({key: value for key, value in fields.items() if value is not None}))


def test_the_reader_takes_whole_answers_and_no_damaged_one_harms_it(driver: Path) -> None:
    rng = random.Random(20261128)
    answers = [some_answer(rng) for _ in range(60)]
    valid = [encode_answer(answer) for answer in answers]
    assert parsed(driver, valid) == [as_printed(answer) for answer in answers]
    one = Answer(7, "node-1", "lhcb", 5, 3, 33, b"\5", bytes(24), bytes(12), ("a", "b"), bytes(24), b"lists")
    small = encode_answer(one)
    cut = [small[:size] for size in range(len(small))]
    wrong = [with_fields(one, **{name: None}) for name in msgpack.unpackb(small)]
    wrong += [with_fields(one, **{name: size}) for name in ("n_events", "n_lines") for size in (0, 65, 65535, 65536)]
    # Numbers that would fit if their upper bits were lost.
    wrong += [with_fields(one, n_events=65536 + 3), with_fields(one, n_lines=65536 + 33)]
    for name in ("accepted", "lines", "flags", "counts"):
        whole: bytes = getattr(one, name)
        wrong += [with_fields(one, **{name: whole[:-1]}), with_fields(one, **{name: whole + b"\0"})]
        wrong += [with_fields(one, **{name: "text"}), with_fields(one, **{name: -1})]
    wrong += [with_fields(one, collections=["a"] * size) for size in (0, 1, 3, MAX_COLLECTIONS + 1)]
    wrong += [with_fields(one, collections=[1, 2]), with_fields(one, collections="ab"), with_fields(one, other=1)]
    wrong += [with_fields(one, id=-1), with_fields(one, tck=1 << 32), with_fields(one, chain=""), small + b"\0"]
    wrong += [with_fields(one, type="refusal"), b"", b"\x80", b"\xdf\xff\xff\xff\xff", b"\xc1", b"\x81\xa1v\xdd"]
    for raw in (*cut, *wrong):
        with pytest.raises(MessageError):
            decode_answer(raw)
    results = parsed(driver, cut + wrong)
    assert len(results) == len(cut + wrong)
    assert {line.split(":")[0] for line in results} == {"HLTNODE_UNREADABLE"}
    [version] = parsed(driver, [with_fields(one, v=REQUEST_VERSION + 1)])
    assert version == "HLTNODE_UNREADABLE: a message of version 2, this library reads 1"
    twice = bytes([0xDE, 0, 2 * (small[2] if small[0] == 0xDE else small[0] & 15)])
    body = small[3 if small[0] == 0xDE else 1 :]
    assert parsed(driver, [twice + body + body])[0].startswith("HLTNODE_UNREADABLE: a malformed message")

    bad = []
    for _ in range(4000):
        damaged = bytearray(rng.choice(valid[:20]) if rng.random() < 0.02 else small)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        bad.append(bytes(damaged))
    for raw, result in zip(bad, parsed(driver, bad), strict=True):
        try:
            expected = decode_answer(raw)
        except MessageError:
            continue
        if isinstance(expected, Answer) and expected.node.isprintable() and "".join(expected.collections).isprintable():
            assert result == as_printed(expected)


@pytest.mark.loopback
def test_a_socket_that_lies_costs_a_requester_one_status_each(requester: Ask) -> None:
    rng = random.Random(4)
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.setsockopt(zmq.LINGER, 0)
        port = router.bind_to_random_port("tcp://127.0.0.1")
        program = requester(f"tcp://127.0.0.1:{port}", 10000)

        def next_request(number: int) -> bytes:
            assert program.does("s", sized(b"data")) == f"s {number}"
            assert router.poll(10000)
            peer, header, data = router.recv_multipart()
            assert decode_request(header) == Request(number, 0)
            assert data == b"data"
            return bytes(peer)

        peer = next_request(1)
        whole = encode_answer(some_answer(rng, 1))
        lies = {
            (whole[:-1],): "HLTNODE_UNREADABLE  0: a malformed message",
            (b"",): "HLTNODE_UNREADABLE  0: a malformed message of 0 bytes",
            (whole, b"more", b"parts"): "HLTNODE_UNREADABLE  0: a message of several parts",
            (encode_answer(Refusal(5, RequestRefusal.BUSY, "5 wait")),):
                "HLTNODE_REQUEST_REFUSED busy 5: request 5 was refused: busy: 5 wait",
        }  # fmt: skip
        for parts, expected in lies.items():
            router.send_multipart([peer, *parts])
            assert program.does("r").startswith(expected)
        # Answers and refusals of other requests are not those of this one.
        answer = some_answer(rng, 2)
        for message in (some_answer(rng, 1), Refusal(1, RequestRefusal.FAILED, ""), answer):
            router.send_multipart([peer, encode_answer(message)])
        assert program.does("a", sized(b"data")) == as_printed(answer)
        router.send_multipart([peer, encode_answer(Refusal(0, RequestRefusal.MALFORMED, "no"))])
        assert program.does("a", sized(b"data")).startswith("HLTNODE_REQUEST_REFUSED malformed 0:")
        # A requester that gives up says so. Its time is also that of the request in the node.
        hasty = requester(f"tcp://127.0.0.1:{port}", 200)
        assert hasty.does("s", sized(b"data")) == "s 1"
        assert hasty.does("a", sized(b"data")) == f"HLTNODE_TIMEOUT  0: tcp://127.0.0.1:{port}: no answer of the node"
        sent: list[Request | Cancel] = []
        while Cancel(2) not in sent:
            assert router.poll(10000), sent
            sender, header, *_ = router.recv_multipart()
            if sender != peer:
                sent.append(decode_request(header))
        assert sent == [Request(1, 0), Request(2, 200), Cancel(2)]


def written(driver: Path, mfps: list[bytes], room: int) -> tuple[int, bytes]:
    done = subprocess.run(
        [str(driver), "mep", str(room)], input=b"".join(map(sized, mfps)), capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    size, _, content = done.stdout.decode().partition(" ")
    return int(size), bytes.fromhex(content)


def test_written_meps_are_those_of_python_and_wrong_mfps_give_none(driver: Path) -> None:
    def mfp(source: int, *, first: int = 3, events: int = 2, size: int = 5, align: int = 3) -> bytes:
        return encode_mfp(
            source_id=source, event_id=first, version=1, types=[63] * events, fragments=[b"\xaa" * size] * events,
            align=align,
        )  # fmt: skip

    for mfps in (
        [mfp(0)],
        [mfp(0), mfp(4096, size=9)],
        [mfp(2048, align=2), mfp(4096, size=11, align=2), mfp(65535, size=1)],
    ):
        expected = encode_mep(mfps, align=3)
        assert written(driver, mfps, len(expected)) == (len(expected), expected)
        assert written(driver, mfps, len(expected) - 1) == (len(expected), b"")
    for mfps in (
        [],
        [mfp(4096), mfp(0)],
        [mfp(4096), mfp(4096)],
        [mfp(0), mfp(1)],
        [mfp(0), mfp(4096, first=4)],
        [mfp(0), mfp(4096, events=3)],
        [mfp(0), mfp(4096)[:-1]],
        [mfp(0), mfp(4096) + b"\0"],
        [mfp(0), b"\0" + mfp(4096)[1:]],
        [mfp(0)[:19]],
    ):
        assert written(driver, mfps, 1 << 16)[1] == b""


def test_wrong_arguments_are_refused_before_they_are_used(driver: Path) -> None:
    assert subprocess.run([str(driver), "corners"], check=False, timeout=60).returncode == 0


def test_the_library_knows_the_fields_and_limits_of_the_request_socket() -> None:
    read = set(re.findall(r'strcmp\(key, "(\w+)"\)', SOURCE[SOURCE.index("static hltnode_status read_answer(") :]))
    assert read == {"v", "type", *Answer.__struct_fields__, *Refusal.__struct_fields__}
    written_fields = set(re.findall(r'write_field\(to, "(\w+)"', SOURCE[SOURCE.index("send_request(") :]))
    assert written_fields == set(Request.__struct_fields__)
    assert f"REQUEST_VERSION = {REQUEST_VERSION} }}" in SOURCE
    assert f"MAX_COLLECTIONS = {MAX_COLLECTIONS}, MAX_ANSWER_BYTES = {MAX_ANSWER_SIZE >> 20} << 20," in SOURCE
    assert f"MOST_AT_ONCE = {MOST_AT_ONCE}, BUSY_PAUSE_MS = {BUSY_PAUSE_SECONDS * 1000:.0f} }}" in SOURCE
