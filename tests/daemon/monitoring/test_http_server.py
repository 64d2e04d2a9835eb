"""The HTTP pages over real connections, friendly and hostile."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from http import HTTPStatus
from typing import Any

import pytest
import pytest_asyncio
import uvloop

from hltnode.daemon.common.vocabulary import ConnectionRefusal
from hltnode.daemon.monitoring.health import Health
from hltnode.daemon.monitoring.http_places import HttpPlaces
from hltnode.daemon.monitoring.http_server import (
    MAX_BODY_BYTES,
    MAX_REQUEST_BYTES,
    HttpServer,
    Request,
    Response,
    as_json,
)

pytestmark = pytest.mark.loopback

REQUEST_SECONDS = 0.5
HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Node:
    """A server with a health that the test sets."""

    def __init__(self, request_seconds: float) -> None:
        now = time.monotonic_ns()
        self.health = Health(
            loop_tick_ns=now,
            pipeline_tick_ns=now,
            feeders_expected=1,
            feeders_connected=1,
            configured=True,
            warmed_up=True,
        )
        self.server = HttpServer(
            lambda: self.metrics(),
            self.health,
            lambda: self.status(),
            self.post,
            page=lambda: lambda: self.page,
            refused=lambda reason: self.refused.append(reason),
            request_seconds=request_seconds,
        )
        self.page = b"<p>page</p>"
        self.broken = False
        self.posted: list[bytes] = []
        self.refused: list[ConnectionRefusal] = []
        self.port = 0

    def metrics(self) -> Callable[[], bytes]:
        def render() -> bytes:
            if self.broken:
                raise RuntimeError("collector broken")
            return b"hltnode_ready 1.0\n"

        return render

    def post(self, request: Request) -> Response:
        self.posted.append(request.body)
        return as_json(HTTPStatus.OK, {"path": request.path, "body": request.body.decode()})

    def status(self) -> Mapping[str, Any]:
        return {"node": "n1", "run": 7}

    async def raw(self, request: bytes) -> bytes:
        """Send `request` and read until the server closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(request)
            await writer.drain()
            return await asyncio.wait_for(reader.read(), 10)
        except ConnectionError:
            return b""
        finally:
            writer.close()

    async def ask(self, path: str, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
        return parse(await self.raw(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()))


def parse(answer: bytes) -> tuple[int, dict[str, str], bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *fields = head.decode().split("\r\n")
    headers = dict(field.split(": ", 1) for field in fields)
    return int(status.split()[1]), headers, body


@contextlib.asynccontextmanager
async def running_node(request_seconds: float = REQUEST_SECONDS) -> AsyncIterator[Node]:
    node = Node(request_seconds)
    node.port = await node.server.bind("127.0.0.1", 0)
    await node.server.listen()
    try:
        yield node
    finally:
        await asyncio.wait_for(node.server.close(), 2)


@pytest_asyncio.fixture
async def node() -> AsyncIterator[Node]:
    async with running_node() as node:
        yield node
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert left == []


async def test_metrics_are_served_as_prometheus_text(node: Node) -> None:
    status, headers, body = await node.ask("/metrics")
    assert status == 200
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert headers["Content-Length"] == str(len(body))
    assert body == b"hltnode_ready 1.0\n"


async def test_the_status_page_runs_only_its_own_script(node: Node) -> None:
    status, headers, body = await node.ask("/")
    assert (status, headers["Content-Type"], body) == (200, "text/html; charset=utf-8", b"<p>page</p>")
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert (await node.ask("/", "HEAD"))[2] == b""


async def test_a_query_string_is_ignored(node: Node) -> None:
    assert (await node.ask("/healthz?verbose=1"))[0] == 200


async def test_head_answers_with_the_length_and_without_the_body(node: Node) -> None:
    status, headers, body = await node.ask("/metrics", "HEAD")
    assert (status, headers["Content-Length"], body) == (200, "18", b"")


async def test_a_node_without_feeders_is_healthy_and_not_ready_with_a_reason(node: Node) -> None:
    node.health.feeders_connected = 0
    assert (await node.ask("/healthz"))[0] == 200
    status, _, body = await node.ask("/readyz")
    assert status == 503
    assert json.loads(body) == {"ok": False, "problems": {"feeders": "0 of 1 feeders connected"}}


async def test_a_node_whose_pipeline_stands_still_is_not_healthy(node: Node) -> None:
    node.health.pipeline_tick_ns -= 60_000_000_000
    status, _, body = await node.ask("/healthz")
    assert status == 503
    assert list(json.loads(body)["problems"]) == ["pipeline"]


async def test_a_ready_node_says_so(node: Node) -> None:
    status, _, body = await node.ask("/readyz")
    assert (status, json.loads(body)) == (200, {"ok": True, "problems": {}})


async def test_the_status_page_is_json_with_readiness(node: Node) -> None:
    status, headers, body = await node.ask("/status")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert json.loads(body) == {"node": "n1", "run": 7, "ready": True, "problems": {}}


async def test_an_unknown_page_is_404_and_names_the_pages(node: Node) -> None:
    status, _, body = await node.ask("/admin")
    assert status == 404
    assert "/metrics" in json.loads(body)["error"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get"])
@pytest.mark.parametrize("page", ["/metrics", "/"])
async def test_other_methods_are_405(node: Node, method: str, page: str) -> None:
    status, headers, _ = await node.ask(page, method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /metrics\r\n\r\n",
        b"GET /metrics HTTP/2.0\r\n\r\n",
        b"GET metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http://localhost/metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET  /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n: empty\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\n folded: b\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX\x00: b\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX : b\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: a\rInjected: b\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n",
        b"GET /\xff\xfe\x00%00.. HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /metrics\x00 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET * HTTP/1.1\r\nHost: a\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\ncontent-length: -1\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"\x00\x00\x00\x00 / \xff\r\n\r\n",
    ],
)
@pytest.mark.parametrize("page", [b"/metrics", b"/"])
async def test_a_malformed_request_is_400_and_the_next_one_is_served(
    node: Node, request_bytes: bytes, page: bytes
) -> None:
    status, _, body = parse(await node.raw(request_bytes.replace(b"/metrics", page)))
    assert status == 400
    assert "expected" in json.loads(body)["error"]
    assert (await node.ask("/healthz"))[0] == 200


async def test_a_command_arrives_with_its_body(node: Node) -> None:
    request = b"POST /control/start HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n" + b'{"run": 7}'
    status, _, body = parse(await node.raw(request))
    assert (status, json.loads(body)) == (200, {"path": "/control/start", "body": '{"run": 7}'})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (b"Content-Length: many", 400),
        (b"Content-Length: -1", 400),
        (b"Content-Length: 1\r\nContent-Length: 2", 400),
        (b"Transfer-Encoding: chunked", 400),
        (b"Content-Length: %d" % (MAX_BODY_BYTES + 1), 413),
        (b"Content-Length: 999999999999999999999", 400),
    ],
)
async def test_a_body_without_length_or_above_the_limit_is_refused(node: Node, fields: bytes, expected: int) -> None:
    request = b"POST /control/start HTTP/1.1\r\nHost: localhost\r\n" + fields + b"\r\n\r\n"
    assert parse(await node.raw(request))[0] == expected
    assert (await node.ask("/healthz"))[0] == 200


async def test_the_wait_for_a_missing_body_ends_with_the_timeout_of_a_request(node: Node) -> None:
    assert await node.raw(b"POST /control/start HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{") == b""
    assert (await node.ask("/healthz"))[0] == 200


async def test_a_command_by_get_is_405(node: Node) -> None:
    status, headers, _ = await node.ask("/control/start")
    assert (status, headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "smuggled",
    [
        b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        b"Transfer-Encoding: identity\r\n\r\n",
        b"Transfer-Encoding : chunked\r\n\r\n",
        b"Transfer-Encoding:\x0bchunked\r\n\r\n",
        b"Content-Length: 0, 10\r\n\r\n",
        b"Content-Length: +10\r\n\r\n",
        b"Content-Length: 0x10\r\n\r\n",
        b"Content-Length: 1_0\r\n\r\n",
        b"Content-Length: \xb2\r\n\r\n",
        b"Content-Length: 10\r\nContent-Length: 0\r\n\r\n",
    ],
)
@pytest.mark.parametrize(
    "start",
    [
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n",
        b"POST /control/start HTTP/1.1\r\nHost: localhost\r\n",
    ],
)
async def test_a_request_with_another_hidden_in_its_body_is_400_and_the_hidden_one_is_not_answered(
    node: Node, start: bytes, smuggled: bytes
) -> None:
    hidden = b"POST /control/stop HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for body in (b"0\r\n\r\n" + hidden, hidden):
        answer = await node.raw(start + smuggled + body)
        assert answer.count(b"HTTP/1.1 ") == 1
        assert parse(answer)[0] == 400
    assert node.posted == []


async def test_a_chunked_body_is_refused_before_it_comes(node: Node) -> None:
    chunked = b"POST /control/start HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert parse(await node.raw(chunked))[0] == 400
    assert parse(await node.raw(chunked + b"a\r\n" + b'{"run": 7}' + b"\r\n0\r\n\r\n"))[0] == 400
    assert node.posted == []


async def test_only_the_first_of_several_requests_is_answered(node: Node) -> None:
    request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
    command = b"POST /control/stop HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for following in (request * 20, command, b"\x00" * 100):
        status, headers, body = parse(await node.raw(request + following))
        assert (status, headers["Connection"], body) == (200, "close", b"hltnode_ready 1.0\n")
    assert node.posted == []


async def test_bytes_after_the_body_of_a_command_are_ignored(node: Node) -> None:
    request = b"POST /control/start HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}{}"
    assert parse(await node.raw(request))[0] == 200
    assert node.posted == [b"{}"]


async def test_a_request_that_comes_byte_by_byte_is_answered(node: Node) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
    for byte in b"POST /control/start HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}":
        writer.write(bytes((byte,)))
        await writer.drain()
        await asyncio.sleep(0)
    assert parse(await reader.read())[0] == 200
    writer.close()
    assert node.posted == [b"{}"]


async def test_repeated_list_fields_are_joined_and_other_repeated_fields_are_refused(node: Node) -> None:
    start = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    assert parse(await node.raw(start + b"Via: 1.1 a\r\nVia: 1.1 b\r\nAccept: x/y\r\nAccept: */*\r\n\r\n"))[0] == 200
    for twice in (b"Authorization: a\r\nAuthorization: a\r\n", b"Host: localhost\r\n"):
        assert parse(await node.raw(start + twice + b"\r\n"))[0] == 400


async def test_a_request_with_a_foreign_host_name_is_refused(node: Node) -> None:
    for method in ("GET /status", "GET /", "POST /control/start"):
        request = f"{method} HTTP/1.1\r\nHost: rebound.example:{node.port}\r\n\r\n"
        status, _, body = parse(await node.raw(request.encode()))
        assert status == 421
        assert "http.host_names" in json.loads(body)["error"]
    assert node.posted == []


async def test_a_request_of_http_1_0_needs_no_host(node: Node) -> None:
    assert parse(await node.raw(b"GET /healthz HTTP/1.0\r\n\r\n"))[0] == 200


async def test_a_header_continued_on_a_second_line_is_one_field(node: Node) -> None:
    assert parse(await node.raw(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n"))[0] == 200


async def test_the_text_of_an_error_holds_nothing_of_the_request(node: Node) -> None:
    status, headers, body = parse(await node.raw(b"GET /metrics HTTP/1.1\r\n<script>\r\n\r\n"))
    assert (status, headers["X-Content-Type-Options"]) == (400, "nosniff")
    assert b"script" not in body


@pytest.mark.parametrize("size", [MAX_REQUEST_BYTES, MAX_REQUEST_BYTES + 1])
async def test_a_request_is_read_up_to_the_limit_and_431_over_it(node: Node, size: int) -> None:
    start, end = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ", b"\r\n\r\n"
    request = start + b"a" * (size - len(start) - len(end)) + end
    assert parse(await node.raw(request))[0] == (200 if size == MAX_REQUEST_BYTES else 431)


async def test_many_small_headers_are_431_like_one_huge_header(node: Node) -> None:
    request = (
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"X%d: y\r\n" % i for i in range(4000)) + b"\r\n"
    )
    answer = await node.raw(request)
    # Unread input may reset the connection.
    assert answer == b"" or parse(answer)[0] == 431
    assert (await node.ask("/healthz"))[0] == 200


async def test_a_huge_header_is_431_and_not_read_to_its_end(node: Node) -> None:
    request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * (4 * MAX_REQUEST_BYTES) + b"\r\n\r\n"
    answer = await node.raw(request)
    # The unread rest of the request may reset the connection before the answer is seen.
    assert answer == b"" or parse(answer)[0] == 431
    assert (await node.ask("/healthz"))[0] == 200


@pytest.mark.parametrize(
    "start",
    [
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: ",
        b"POST /control/start HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n",
    ],
    ids=["header", "body"],
)
async def test_a_client_that_sends_too_slowly_is_disconnected(node: Node, start: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
    writer.write(start)
    started = time.monotonic()
    ended = asyncio.create_task(reader.read())
    while not ended.done():
        writer.write(b"a")
        await asyncio.sleep(0.02)
    with contextlib.suppress(ConnectionError):
        assert await ended == b""
    writer.close()
    assert time.monotonic() - started < 60 * REQUEST_SECONDS
    assert (await node.ask("/healthz"))[0] == 200


async def test_a_client_that_does_not_read_the_answer_is_disconnected(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()

    def status() -> Mapping[str, Any]:
        asked.set()
        return {"large": "x" * (32 << 20)}

    monkeypatch.setattr(node, "status", status)
    reader, writer = await asyncio.open_connection("127.0.0.1", node.port, limit=1024)
    writer.write(b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await asyncio.wait_for(asked.wait(), 10)
    await asyncio.sleep(2 * REQUEST_SECONDS)
    came = 0
    with contextlib.suppress(ConnectionError):
        while part := await reader.read(1 << 16):
            came += len(part)
    writer.close()
    assert came < 32 << 20
    assert (await node.ask("/healthz"))[0] == 200


async def test_a_client_that_disconnects_at_once_is_no_error(node: Node) -> None:
    for request in (b"", b"GE", b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"):
        _, writer = await asyncio.open_connection("127.0.0.1", node.port)
        writer.write(request)
        writer.transport.abort()
    assert (await node.ask("/healthz"))[0] == 200


async def test_above_the_limit_the_client_that_waits_for_longest_makes_room() -> None:
    async with running_node(request_seconds=60) as node:
        held = [await asyncio.open_connection("127.0.0.1", node.port) for _ in range(HttpPlaces().in_all)]
        # Connections are accepted in the order in which they come.
        assert parse(await node.raw(HEALTHZ))[0] == 200
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(held[0][0].read(), 10) == b""
        held[1][1].write(HEALTHZ)
        assert parse(await held[1][0].read())[0] == 200
        assert node.refused == [ConnectionRefusal.SOCKET_FULL]
        for _, writer in held:
            writer.close()


async def test_connections_above_the_limit_are_refused_while_all_answers_are_being_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running_node(request_seconds=60) as node:
        made = threading.Event()
        monkeypatch.setattr(node, "metrics", lambda: lambda: str(made.wait(30)).encode())
        scrapes = [asyncio.create_task(node.ask("/metrics")) for _ in range(HttpPlaces().in_all)]
        try:
            while (await node.raw(HEALTHZ)) != b"":
                await asyncio.sleep(0.01)
        finally:
            made.set()
        assert {status for status, _, _ in await asyncio.gather(*scrapes)} == {200}
        assert parse(await node.raw(HEALTHZ))[0] == 200


async def test_slow_clients_that_come_again_leave_room_for_health_checks() -> None:
    async with running_node(request_seconds=60) as node:
        ended = asyncio.Event()

        async def slow() -> None:
            while True:
                reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
                try:
                    writer.write(b"GET /metrics HTTP/1.1\r\nX: ")
                    await reader.read()
                except ConnectionError:
                    continue
                finally:
                    ended.set()
                    writer.close()

        attackers = [asyncio.create_task(slow()) for _ in range(60)]
        # All places are taken when one of the connections has to make room.
        await asyncio.wait_for(ended.wait(), 10)
        answered = 0
        for _ in range(50):
            with contextlib.suppress(ConnectionError):
                answered += (await node.raw(HEALTHZ)) != b""
        for attacker in attackers:
            attacker.cancel()
        await asyncio.gather(*attackers, return_exceptions=True)
        await asyncio.sleep(0.05)
        assert answered >= 30


async def test_a_client_that_resets_its_connection_is_no_error(node: Node) -> None:
    for request in (b"", b"GE", b"POST /control/stop HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"):
        _, writer = await asyncio.open_connection("127.0.0.1", node.port)
        writer.write(request)
        # This answer comes after the server has begun to read the request.
        assert (await node.ask("/healthz"))[0] == 200
        raw = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        assert (await node.ask("/healthz"))[0] == 200


async def test_a_page_that_fails_is_500_and_tells_no_details(node: Node) -> None:
    node.broken = True
    status, _, body = await node.ask("/metrics")
    assert status == 500
    assert b"collector broken" not in body
    node.broken = False
    assert (await node.ask("/metrics"))[0] == 200


async def test_several_scrapes_at_once_are_all_answered(node: Node) -> None:
    answers = await asyncio.gather(*(node.ask("/metrics") for _ in range(10)))
    assert [status for status, _, _ in answers] == [200] * 10


async def test_a_port_in_use_is_an_error_at_the_start(node: Node) -> None:
    second = HttpServer(node.metrics, node.health, node.status, node.post)
    with pytest.raises(OSError, match="address already in use"):
        await second.bind("127.0.0.1", node.port)


async def test_closing_ends_connections_that_wait() -> None:
    async with running_node(request_seconds=60) as node:
        reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
        # This answer comes after the first connection has been accepted.
        assert (await node.ask("/healthz"))[0] == 200
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await reader.readexactly(1)
    writer.close()


def test_uvloop_gives_the_same_answers_to_good_and_hostile_clients() -> None:
    async def scenario() -> list[dict[str, Any]]:
        failures: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
        async with running_node() as node:
            await test_metrics_are_served_as_prometheus_text(node)
            await test_a_malformed_request_is_400_and_the_next_one_is_served(node, b"GET\r\n\r\n", b"/")
            await test_a_huge_header_is_431_and_not_read_to_its_end(node)
            await test_a_client_that_sends_too_slowly_is_disconnected(node, b"GET /metrics HTTP/1.1\r\nX: ")
            await test_a_client_that_disconnects_at_once_is_no_error(node)
            await test_a_client_that_resets_its_connection_is_no_error(node)
        await test_above_the_limit_the_client_that_waits_for_longest_makes_room()
        await test_closing_ends_connections_that_wait()
        # Transports close in the turn after the call.
        await asyncio.sleep(0.05)
        return failures

    assert uvloop.run(scenario()) == []
