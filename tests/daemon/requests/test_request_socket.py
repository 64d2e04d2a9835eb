"""The request socket of a node with an engine without kernels: answers, limits, and clients that misbehave."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zmq.asyncio

import hltnode
from hltnode import client
from hltnode.client import aio
from hltnode.client.requests import BUSY_PAUSE_SECONDS, MOST_AT_ONCE, RequestPace, RequestRefusedError
from hltnode.daemon.common.vocabulary import ConnectionRefusal, Endpoint
from hltnode.daemon.node.node import Node
from hltnode.daemon.requests.request_socket import REFUSED_OF_ADDRESS, RequestSocket
from hltnode.daemon.requests.short_batches import DIRECT_SECONDS, ShortBatches
from hltnode.daemon.security.message_budget import FEEDER_AT_ONCE, FLOOD_MESSAGES
from hltnode.protocol import encode_mep
from hltnode.protocol.errors import MessageError
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.transport.requests import (
    Answer,
    Cancel,
    Refusal,
    Request,
    RequestRefusal,
    decode_answer,
    encode_request,
)
from tests.daemon.fakes import (
    SOURCES,
    TCK,
    TRACKS_PER_EVENT,
    FakeEngine,
    eventually,
    lines_of_event,
    make_config,
    running_node,
)

pytestmark = pytest.mark.loopback

LINES = tuple(f"line{i}" for i in range(40))


def mep(events: int = 5, *, first: int = 0, size: int = 24, align: int = 3) -> bytes:
    return encode_mep(
        [
            encode_mfp(
                source_id=source, event_id=first, version=1, types=[63] * events, fragments=[bytes(size)] * events
            )
            for source in SOURCES
        ],
        align=align,
    )


class Door:
    """A node with a request socket, and its engine for requests."""

    def __init__(self, node: Node) -> None:
        self.node = node
        assert node._sockets.requests is not None
        self.endpoint = node._sockets.requests.endpoint
        engine = node._core.request_engine
        assert isinstance(engine, FakeEngine)
        self.engine = engine
        self.counters = node.counters.requests


@asynccontextmanager
async def door(folder: Path, **requests: object) -> AsyncIterator[Door]:
    requests = {"endpoint": "tcp://127.0.0.1:*", "max_events": 16, **requests}
    async with running_node(make_config(folder, requests=requests), LINES) as (node, _):
        at = Door(node)
        # The empty batch of the start must not hang in tests of batches that do.
        await eventually(lambda: node._sockets.requests is not None and node._sockets.requests._is_warm)
        yield at


Connect = Callable[[str], zmq.asyncio.Socket]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Connects sockets that send any bytes; closes them at the end."""
    context = zmq.asyncio.Context()
    sockets: list[zmq.asyncio.Socket] = []

    def connected(endpoint: str) -> zmq.asyncio.Socket:
        socket = context.socket(zmq.DEALER)
        # A send to a node that has ended the connection would wait without end.
        socket.sndtimeo = 60_000
        sockets.append(socket)
        socket.connect(endpoint)
        return socket

    yield connected
    for socket in sockets:
        socket.close(linger=0)
    context.term()


async def answer_of(socket: zmq.asyncio.Socket) -> Answer | Refusal:
    return decode_answer(await asyncio.wait_for(socket.recv(), 10.0))


def check_answer(answer: Answer, events: int) -> None:
    expected = [lines_of_event(event, len(LINES)) for event in range(events)]
    assert [np.flatnonzero(row).tolist() for row in answer.fired()] == expected
    assert answer.accepted_events().tolist() == [bool(lines) for lines in expected]
    assert answer.counted()["tracks"].tolist() == [TRACKS_PER_EVENT] * events
    assert answer.event_flags().tolist() == [0] * events
    assert (answer.node, answer.tck, answer.chain, answer.output_lists()) == ("testnode", TCK, "lhcb", {})


async def test_programs_with_and_without_a_loop_get_answers(tmp_path: Path) -> None:
    def ask(endpoint: str) -> list[Answer]:
        with client.Requester(endpoint) as requester:
            first = requester.ask(mep(7), timeout=10.0)
            sent = [requester.send(mep(n)) for n in (1, 2)]
            later = [requester.receive(10.0) for _ in sent]
            assert [each.id for each in later] == sent
            with pytest.raises(TimeoutError):
                requester.receive(0.05)
            return [first, *later]

    async with door(tmp_path) as at:
        for answer, events in zip(await asyncio.to_thread(ask, at.endpoint), (7, 1, 2), strict=True):
            check_answer(answer, events)
            assert repr(answer) == f"<testnode: request {answer.id}, {events // 2} of {events} events accepted>"
        async with aio.Requester(at.endpoint) as requester:
            answers = await asyncio.gather(*(requester.ask(mep(n), timeout=10.0) for n in range(1, 12)))
        for answer, events in zip(answers, range(1, 12), strict=True):
            check_answer(answer, events)
        await eventually(lambda: at.counters.events == 10 + sum(range(1, 12)))
        assert at.counters.answered == sum(at.counters.seconds.counts) == 14
        assert at.node.counters.events_processed == at.node.counters.meps_opened == 0


async def test_requests_of_several_clients_share_batches(tmp_path: Path, connect: Connect) -> None:
    async with door(tmp_path) as at:
        sockets = [connect(at.endpoint) for _ in range(6)]
        at.engine.behaviour.hang.set()
        await sockets[0].send_multipart([encode_request(Request(0, 0)), mep(2)])
        await eventually(lambda: at.engine.workspaces[0].batches[-1] == 1)
        for number, socket in enumerate(sockets[1:], 1):
            await socket.send_multipart([encode_request(Request(number, 0)), mep(2)])
        await eventually(lambda: at.counters.waiting == 5)
        at.engine.behaviour.hang.clear()
        answers = [await answer_of(socket) for socket in sockets]
        for answer in answers:
            assert isinstance(answer, Answer)
            check_answer(answer, 2)
        assert [each.id for each in answers] == list(range(6))
        assert at.engine.workspaces[0].batches[-2:] == [1, 5]


async def test_short_batches_are_computed_by_the_thread_of_requests(tmp_path: Path, connect: Connect) -> None:
    async with door(tmp_path) as at:
        (workspace,) = at.engine.workspaces
        at.engine.behaviour.seconds = 1e-6
        async with aio.Requester(at.endpoint) as requester:
            at.engine.behaviour.direct = True
            check_answer(await requester.ask(mep(3), timeout=10.0), 3)
            assert (workspace.batches[-1], workspace.directly) == (1, [])  # the time of an event is not known yet
            check_answer(await requester.ask(mep(4), timeout=10.0), 4)
            assert workspace.directly == [1]
            at.engine.behaviour.fail_next = 1
            with pytest.raises(client.RequestRefusedError, match="fallen off the bus") as refused:
                await requester.ask(mep(), timeout=10.0)
            assert refused.value.reason is RequestRefusal.FAILED
            # Smaller MEPs have more bytes of an event.
            for n in range(1, 10):
                await requester.ask(mep(n), timeout=10.0)
            before = sum(workspace.directly)
            # More requests than fit into a batch: each direct one starts the next.
            answers = await asyncio.gather(*(requester.ask(mep(n), timeout=10.0) for n in range(1, 10)))
            for answer, events in zip(answers, range(1, 10), strict=True):
                check_answer(answer, events)
            assert sum(workspace.directly) == before + 9
            # A slow event: batches go to the back end again.
            at.engine.behaviour.seconds = 0.05
            before = len(workspace.batches)
            while len(workspace.batches) == before:
                await requester.ask(mep(16), timeout=10.0)
            at.engine.behaviour.seconds, at.engine.behaviour.direct = 0.0, False
            check_answer(await requester.ask(mep(2), timeout=10.0), 2)
        await eventually(lambda: at.counters.batches == len(workspace.batches) - 1 + len(workspace.directly))


def test_a_batch_is_short_if_the_fastest_of_the_last_ones_says_so() -> None:
    short = ShortBatches()
    assert not short.has(1, 100)
    short.computed(4, 400, 4 * DIRECT_SECONDS / 8)
    assert short.has(8, 800)
    assert not short.has(9, 900)
    # An interrupted batch counts little, many of them count.
    short.computed(1, 100, 1.0)
    assert short.has(6, 600)
    assert not short.has(7, 700)
    for _ in range(20):
        short.computed(1, 100, 1.0)
    assert not short.has(1, 100)
    short.computed(1, 100, DIRECT_SECONDS)
    assert short.has(1, 100)


def test_the_time_of_small_events_says_nothing_about_large_ones() -> None:
    short = ShortBatches()
    short.computed(1, 64, 1e-6)
    assert short.has(1, 127)
    assert short.has(2, 254)
    assert not short.has(1, 128)
    assert not short.has(1, 63)
    short.computed(1, 128, 1.0)
    assert not short.has(1, 128)
    assert short.has(1, 127)


async def test_large_events_after_small_ones_go_to_the_back_end(tmp_path: Path) -> None:
    async with door(tmp_path) as at:
        (workspace,) = at.engine.workspaces
        at.engine.behaviour.seconds, at.engine.behaviour.direct = 1e-6, True
        async with aio.Requester(at.endpoint) as requester:
            for expected in ([], [1]):
                await requester.ask(mep(2), timeout=10.0)
                assert workspace.directly == expected
            at.engine.behaviour.seconds = 0.05
            for _ in range(3):
                await requester.ask(mep(2, size=2000), timeout=10.0)
            assert workspace.directly == [1]
            at.engine.behaviour.seconds = 1e-6
            await requester.ask(mep(2), timeout=10.0)
            assert workspace.directly == [1, 1]


@pytest.mark.parametrize("threads", [1, 4])
async def test_the_time_of_a_batch_of_several_threads_is_not_that_of_one(tmp_path: Path, threads: int) -> None:
    """The fake batch takes less than the limit on all threads together, and more on one of four."""
    async with door(tmp_path) as at:
        (workspace,) = at.engine.workspaces
        at.engine.behaviour.seconds, at.engine.behaviour.threads = 0.6 * DIRECT_SECONDS, threads
        at.engine.behaviour.direct = True
        async with aio.Requester(at.endpoint) as requester:
            for _ in range(3):
                await requester.ask(mep(8), timeout=10.0)
        assert workspace.directly == ([1, 1] if threads == 1 else [])


async def test_a_node_that_ends_begins_no_direct_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread comes late to a direct batch: the node waits no longer, and closes."""
    reached, go = threading.Event(), threading.Event()

    def slow(requests: RequestSocket) -> bool:
        reached.set()
        go.wait(60.0)
        return compute_directly(requests)

    compute_directly = RequestSocket._compute_directly
    monkeypatch.setattr(RequestSocket, "_compute_directly", slow)
    async with door(tmp_path) as at:
        (workspace,) = at.engine.workspaces
        at.engine.behaviour.direct = True
        requests = at.node._sockets.requests
        assert requests is not None
        async with aio.Requester(at.endpoint) as requester:
            await requester.ask(mep(), timeout=10.0)
            asked = asyncio.ensure_future(requester.ask(mep(), timeout=10.0))
            await eventually(reached.is_set)
            assert not requests.stop(0.01)
            requests.close(0)
            go.set()
            await eventually(lambda: not requests._thread.is_alive())
            assert requests._socket.closed
            assert workspace.directly == []
            asked.cancel()


async def test_a_client_that_does_not_read_loses_answers_which_are_counted(tmp_path: Path, connect: Connect) -> None:
    async with door(tmp_path, endpoint=f"ipc://{tmp_path}/requests") as at:
        silent = connect(at.endpoint)
        large = [encode_request(Request(1, 0)), mep(16)]
        async with aio.Requester(at.endpoint) as other:
            while not at.counters.undelivered:
                for _ in range(20):
                    await silent.send_multipart(large)
                await other.ask(mep(1), timeout=20.0)
                # With more waiting requests than a client may have, the node would end the connection as a flood.
                await eventually(lambda: at.counters.waiting == 0)
            check_answer(await other.ask(mep(3), timeout=20.0), 3)


BAD_MAGIC = b"\0\0" + mep()[2:]


@pytest.mark.parametrize(
    ("parts", "number", "reason", "text"),
    [
        ([b""], 0, RequestRefusal.MALFORMED, "msgpack"),
        ([b"\xff" * 9000], 0, RequestRefusal.MALFORMED, "at most 8192"),
        ([encode_request(Request(3, 0))], 3, RequestRefusal.MALFORMED, "second part"),
        ([encode_request(Request(4, 0)), mep(), b""], 0, RequestRefusal.MALFORMED, "one or two parts, got 3"),
        ([encode_request(Request(5, 0)), b""], 5, RequestRefusal.BAD_MEP, "truncated"),
        ([encode_request(Request(6, 0)), BAD_MAGIC], 6, RequestRefusal.BAD_MEP, "bad_magic"),
        ([encode_request(Request(7, 0)), mep(1, size=25, align=2)], 7, RequestRefusal.BAD_MEP, "multiples of 8"),
        ([encode_request(Request(8, 0)), mep(17)], 8, RequestRefusal.TOO_LARGE, "at most 16 events"),
    ],
)
async def test_what_cannot_be_computed_is_refused_with_its_reason(
    tmp_path: Path,
    connect: Connect,
    parts: list[bytes],
    number: int,
    reason: RequestRefusal,
    text: str,
) -> None:
    async with door(tmp_path) as at:
        socket = connect(at.endpoint)
        await socket.send_multipart(parts)
        refusal = await answer_of(socket)
        assert isinstance(refusal, Refusal)
        assert (refusal.id, refusal.reason) == (number, reason)
        assert text in refusal.text
        assert at.counters.refused[reason] == 1
        await socket.send_multipart([encode_request(Request(9, 0)), mep(16)])
        answer = await answer_of(socket)
        assert isinstance(answer, Answer)
        check_answer(answer, 16)


async def test_a_flood_waits_for_itself_and_the_queue_refuses_more(tmp_path: Path, connect: Connect) -> None:
    async with door(tmp_path, queue_per_client=3) as at:
        flood, other = connect(at.endpoint), connect(at.endpoint)
        at.engine.behaviour.hang.set()
        await flood.send_multipart([encode_request(Request(0, 0)), mep(16)])
        await eventually(lambda: at.engine.workspaces[0].batches[-1] == 1)
        for number in range(1, 10):
            await flood.send_multipart([encode_request(Request(number, 0)), mep(16)])
        refused = [await answer_of(flood) for _ in range(6)]
        assert [(each.id, each.reason) for each in refused if isinstance(each, Refusal)] == [
            (number, RequestRefusal.BUSY) for number in range(4, 10)
        ]
        await other.send_multipart([encode_request(Request(1, 0)), mep(16)])
        await eventually(lambda: at.counters.waiting == 4)
        at.engine.behaviour.hang.clear()
        assert isinstance(await answer_of(other), Answer)
        assert [(await answer_of(flood)).id for _ in range(4)] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([b""], RequestRefusal.MALFORMED),
        ([encode_request(Request(1, 0)), BAD_MAGIC], RequestRefusal.BAD_MEP),
        ([encode_request(Request(1, 0)), mep(17)], RequestRefusal.TOO_LARGE),
        ([encode_request(Request(1, 0)), mep(1)], RequestRefusal.BUSY),
    ],
)
async def test_a_client_with_too_many_refused_messages_is_not_answered_and_then_ended(
    tmp_path: Path, connect: Connect, parts: list[bytes], reason: RequestRefusal
) -> None:
    async with door(tmp_path) as at:
        flood, other = connect(at.endpoint), connect(at.endpoint)
        await other.send_multipart([encode_request(Request(1, 0)), mep()])
        assert isinstance(await answer_of(other), Answer)

        if reason is RequestRefusal.BUSY:
            at.engine.behaviour.hang.set()

        async def send_on() -> None:
            while True:
                await flood.send_multipart(parts)
                # A send that succeeds at once does not give the event loop its turn.
                await asyncio.sleep(0)

        sending = asyncio.create_task(send_on())
        operation = at.node.counters.operation
        await eventually(lambda: operation.connections_refused[Endpoint.REQUESTS, ConnectionRefusal.FLOOD] >= 1)
        sending.cancel()
        # Messages that were on their way when the connection ended may be another flood.
        assert operation.address_refusals >= 1
        answered = FEEDER_AT_ONCE if reason is RequestRefusal.BUSY else REFUSED_OF_ADDRESS[0]
        assert at.counters.refused[reason] > answered + FLOOD_MESSAGES
        at.engine.behaviour.hang.clear()
        # An open connection of the same address is not affected.
        await other.send_multipart([encode_request(Request(2, 0)), mep(3)])
        answer = await answer_of(other)
        assert isinstance(answer, Answer)
        check_answer(answer, 3)


async def test_programs_that_ask_a_busy_node_again_and_again_keep_their_connections(tmp_path: Path) -> None:
    def ask_again(endpoint: str) -> list[float]:
        times: list[float] = []
        with client.Requester(endpoint) as requester:
            while len(times) < 8:
                with pytest.raises(client.RequestRefusedError, match="busy"):
                    requester.ask(mep(1), timeout=20.0)
                times.append(time.monotonic())
            with pytest.raises(TimeoutError, match="the node is busy"):
                requester.ask(mep(1), timeout=0.001)
        return times

    async def until_answered(requester: aio.Requester) -> Answer:
        while True:
            try:
                return await requester.ask(mep(2), timeout=120.0)
            except client.RequestRefusedError as refused:
                if refused.reason is not RequestRefusal.BUSY:
                    raise

    async with door(tmp_path, queue=1, timeout_ms=120_000) as at, aio.Requester(at.endpoint) as requester:
        at.engine.behaviour.hang.set()
        asking = [asyncio.create_task(until_answered(requester)) for _ in range(200)]
        await eventually(lambda: at.counters.refused[RequestRefusal.BUSY] >= 198)
        times = np.array(await asyncio.to_thread(ask_again, at.endpoint))
        assert (np.diff(times) >= 0.9 * BUSY_PAUSE_SECONDS).all()
        await asyncio.sleep(0.5)
        # All are answered: a flood would not be.
        assert at.counters.refused[RequestRefusal.BUSY] < FEEDER_AT_ONCE
        at.engine.behaviour.hang.clear()
        for answer in await asyncio.gather(*asking):
            check_answer(answer, 2)
        assert not any(at.node.counters.operation.connections_refused.values())


def test_the_pace_of_requests_follows_the_room_of_the_node() -> None:
    now = [0.0]
    pace = RequestPace(lambda: now[0])
    for _ in range(MOST_AT_ONCE):
        assert pace.wait() == 0
        pace.sent()
    # One more at once, then one for each pause or each answer.
    pace.sent()
    assert pace.wait() == BUSY_PAUSE_SECONDS
    pace.ended()
    assert pace.wait() == 0
    pace.sent()
    now[0] += BUSY_PAUSE_SECONDS
    assert pace.wait() == 0
    busy = RequestRefusedError(Refusal(1, RequestRefusal.BUSY, ""))
    for _ in range(MOST_AT_ONCE - 2):
        pace.ended(busy)
    # Three are on their way: the node has room for as many.
    assert pace.wait() == BUSY_PAUSE_SECONDS
    pace.ended()
    assert pace.wait() == 0
    pace.sent()
    assert pace.wait() == BUSY_PAUSE_SECONDS
    for _ in range(3):
        pace.ended(RequestRefusedError(Refusal(1, RequestRefusal.EXPIRED, "")))
    assert pace.wait() == 0


async def test_requests_expire_and_can_be_cancelled(tmp_path: Path, connect: Connect) -> None:
    async with door(tmp_path, timeout_ms=300) as at:
        socket = connect(at.endpoint)
        at.engine.behaviour.hang.set()
        await socket.send_multipart([encode_request(Request(1, 0)), mep()])
        await eventually(lambda: at.engine.workspaces[0].batches[-1] == 1)
        begin = time.monotonic()
        await socket.send_multipart([encode_request(Request(2, timeout_ms=50)), mep()])
        await socket.send_multipart([encode_request(Request(3, 0)), mep()])
        # The node has a longest time.
        await socket.send_multipart([encode_request(Request(5, timeout_ms=3_600_000)), mep()])
        await socket.send_multipart([encode_request(Request(4, 0)), mep()])
        await socket.send(encode_request(Cancel(4)))
        late = [await answer_of(socket) for _ in range(3)]
        assert time.monotonic() - begin >= 0.2
        assert [(each.id, each.reason) for each in late if isinstance(each, Refusal)] == [
            (2, RequestRefusal.EXPIRED),
            (3, RequestRefusal.EXPIRED),
            (5, RequestRefusal.EXPIRED),
        ]
        assert at.counters.cancelled == 1
        at.engine.behaviour.hang.clear()
        assert isinstance(await answer_of(socket), Answer)
        assert sum(at.engine.workspaces[0].batches) == 1


async def test_a_client_that_gives_up_has_its_request_dropped(tmp_path: Path) -> None:
    async with door(tmp_path) as at:
        at.engine.behaviour.hang.set()
        async with aio.Requester(at.endpoint) as requester:
            first = asyncio.create_task(requester.ask(mep(), timeout=20.0))
            await eventually(lambda: at.engine.workspaces[0].batches[-1:] == [1])
            second = asyncio.create_task(requester.ask(mep(), timeout=20.0))
            await eventually(lambda: at.counters.waiting == 1)
            second.cancel()
            await eventually(lambda: at.counters.cancelled == 1)
            at.engine.behaviour.hang.clear()
            check_answer(await first, 5)


async def test_answers_to_a_client_that_has_gone_are_counted_and_its_requests_forgotten(
    tmp_path: Path, connect: Connect
) -> None:
    async with door(tmp_path, max_events=5) as at:
        gone, other = connect(at.endpoint), connect(at.endpoint)
        at.engine.behaviour.hang.set()
        for number in range(4):
            await gone.send_multipart([encode_request(Request(number, 0)), mep()])
        await eventually(lambda: at.counters.waiting == 3)
        gone.close()
        operation = at.node.counters.operation
        await eventually(lambda: any(n for (_, event), n in operation.connections.items() if event == "disconnected"))
        at.engine.behaviour.hang.clear()
        await eventually(lambda: at.counters.undelivered == 1)
        assert at.counters.cancelled == 3
        await other.send_multipart([encode_request(Request(1, 0)), mep()])
        assert isinstance(await answer_of(other), Answer)
        assert sum(at.engine.workspaces[0].batches) == 2


async def test_a_batch_that_fails_is_refused_and_the_next_one_computed(tmp_path: Path) -> None:
    async with door(tmp_path) as at:
        async with aio.Requester(at.endpoint) as requester:
            at.engine.behaviour.fail_next = 1
            with pytest.raises(client.RequestRefusedError, match="fallen off the bus") as refused:
                await requester.ask(mep(), timeout=10.0)
            assert refused.value.reason is RequestRefusal.FAILED
            check_answer(await requester.ask(mep(3), timeout=10.0), 3)
        assert at.node._exit_code == 0


async def test_a_stop_refuses_what_waits_and_answers_the_batch_in_progress(tmp_path: Path, connect: Connect) -> None:
    async with door(tmp_path, max_events=5) as at:
        socket = connect(at.endpoint)
        at.engine.behaviour.hang.set()
        for number in (1, 2):
            await socket.send_multipart([encode_request(Request(number, 0)), mep()])
        await eventually(lambda: at.counters.waiting == 1)
        at.node.request_stop()
        refusal = await answer_of(socket)
        assert isinstance(refusal, Refusal)
        assert (refusal.id, refusal.reason) == (2, RequestRefusal.STOPPING)
        at.engine.behaviour.hang.clear()
        answer = await answer_of(socket)
        assert isinstance(answer, Answer)
        assert answer.id == 1


async def test_new_constants_hold_from_the_next_batch_on(tmp_path: Path) -> None:
    async with door(tmp_path) as at:
        async with aio.Requester(at.endpoint) as requester:
            assert (await requester.ask(mep(), timeout=10.0)).tck == TCK
            constants: dict[str, Any] = {"a": np.zeros(3, np.uint8)}
            for follow in at.node._core.conditions_of_runs.followers:
                follow(constants, (), 5)
            assert (await requester.ask(mep(), timeout=10.0)).tck == 5
        assert at.engine.constants == constants


async def test_a_message_of_a_thousand_parts_ends_its_connection(tmp_path: Path, connect: Connect) -> None:
    async with door(tmp_path) as at:
        socket = connect(at.endpoint)
        await socket.send_multipart([b""] * 1000)
        refused = at.node.counters.operation.connections_refused
        await eventually(lambda: any(n for (_, reason), n in refused.items() if reason is ConnectionRefusal.MALFORMED))


async def test_the_library_refuses_answers_of_another_chain(tmp_path: Path) -> None:
    images = tmp_path / "images.mdf"
    hltnode.simulate(images, 2, chain="ccl")
    async with door(tmp_path) as at:
        with pytest.raises(ValueError, match="runs chain 'lhcb', not 'ccl'"):
            await asyncio.to_thread(lambda: next(hltnode.ask(images, at.endpoint, chain="ccl")))


async def test_an_answer_of_another_version_is_an_error() -> None:
    with zmq.asyncio.Context() as context, context.socket(zmq.ROUTER) as router:
        port = router.bind_to_random_port("tcp://127.0.0.1")

        async def answer_badly() -> None:
            identity, *_ = await router.recv_multipart()
            await router.send_multipart([identity, b"\x80"])

        task = asyncio.create_task(answer_badly())
        async with aio.Requester(f"tcp://127.0.0.1:{port}") as requester:
            with pytest.raises(MessageError):
                await requester.ask(mep(), timeout=10.0)
        await task
        router.setsockopt(zmq.LINGER, 0)


async def test_a_batch_that_hangs_does_not_keep_the_node_from_ending(tmp_path: Path, connect: Connect) -> None:
    async with door(tmp_path) as at:
        at.engine.behaviour.hang.set()
        await connect(at.endpoint).send_multipart([encode_request(Request(1, 0)), mep()])
        await eventually(lambda: at.engine.workspaces[0].batches[-1] == 1)
        at.node.request_stop()
        at.node.request_stop()
    assert at.node.backend_hangs
    assert at.node._exit_code == 1


async def test_a_direct_batch_that_hangs_does_not_keep_the_node_from_ending(tmp_path: Path, connect: Connect) -> None:
    async with door(tmp_path) as at:
        at.engine.behaviour.direct = True
        async with aio.Requester(at.endpoint) as requester:
            await requester.ask(mep(), timeout=10.0)
        at.engine.behaviour.hang.set()
        await connect(at.endpoint).send_multipart([encode_request(Request(1, 0)), mep()])
        await eventually(lambda: at.engine.workspaces[0].directly == [1])
        at.node.request_stop()
        at.node.request_stop()
    assert at.node.backend_hangs
    assert at.node._exit_code == 1
    assert at.node._sockets.requests is not None
    thread = at.node._sockets.requests._thread
    assert thread.is_alive()
    at.engine.behaviour.hang.clear()
    await eventually(lambda: not thread.is_alive())
