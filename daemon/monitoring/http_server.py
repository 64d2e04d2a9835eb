"""Read-only pages over HTTP/1.1: /, /metrics, /histograms, /healthz, /readyz and /status; commands by POST to /control.

Strict: one request per connection, GET and HEAD without a body, POST of little JSON (`http_control` answers it), a
limit on the size of a request, on the time it may take and on the number of connections, in all and of one address.
h11 parses the requests and writes the answers; docs/decisions/0004 says why there is no HTTP framework.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

import h11

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import ConnectionRefusal
from hltnode.daemon.monitoring.health import Condition, Health
from hltnode.daemon.monitoring.http_hosts import HostNames
from hltnode.daemon.monitoring.http_places import HttpPlaces
from hltnode.daemon.monitoring.status_page.page import HTML_TYPE, POLICY

MAX_REQUEST_BYTES = 8192
# A command with its run number; nothing that is posted is larger.
MAX_BODY_BYTES = 1024
CONTROL_PATH = "/control/"
# A client that needs longer to say GET, or to take the answer, is broken or hostile.
REQUEST_SECONDS = 5.0
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
JSON_TYPE = "application/json"
# RFC 9110, section 5.3: fields that are lists may come in several lines, as proxies add them; these are none, and of
# two values the node and a proxy before it might each believe another one.
SINGLE_FIELDS = frozenset((b"authorization", b"content-length", b"host"))

Headers = tuple[tuple[str, str], ...]

log = get_logger("http_server")


@dataclass(frozen=True, slots=True)
class Response:
    """Status, media type and body of an answer."""

    status: HTTPStatus
    media_type: str
    body: bytes
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class Request:
    """Method, path without query, header fields by lower-case name, and for POST the body."""

    method: str
    path: str
    fields: Mapping[bytes, bytes]
    body: bytes = b""


class RefusedError(Exception):
    """A request that gets an error answer."""

    def __init__(self, status: HTTPStatus, reason: str, headers: Headers = ()) -> None:
        super().__init__(reason)
        self.response = as_json(status, {"error": reason}, headers)


class HttpServer:
    """Serves the pages from `start` to `close`.

    Args:
        metrics: called in the loop, takes a snapshot and gives the function that makes the body of /metrics of it;
            that one is called in a worker thread, one call at a time, so that a scrape of many series does not hold up
            the event loop.
        histograms: makes the body of /histograms, in a worker thread likewise.
        page: makes the status page, as `metrics` does.
        health: state behind /healthz and /readyz.
        status: gives what /status shows besides the health, as JSON-able mapping; called in the loop.
        post: answers a POST to /control/..., or raises RefusedError; called in the loop.
        refused: called when a connection is refused, with the reason.
        places: which connections are taken.
        hosts: the names by which the pages may be asked for.
    """

    def __init__(
        self,
        metrics: Callable[[], Callable[[], bytes]],
        health: Health,
        status: Callable[[], Mapping[str, Any]],
        post: Callable[[Request], Response],
        *,
        histograms: Callable[[], bytes] = lambda: b"{}\n",
        page: Callable[[], Callable[[], bytes]] = lambda: lambda: b"",
        refused: Callable[[ConnectionRefusal], None] = lambda _reason: None,
        places: HttpPlaces | None = None,
        hosts: HostNames | None = None,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        request_seconds: float = REQUEST_SECONDS,
    ) -> None:
        self._metrics = metrics
        self._histograms = histograms
        self._status_page = page
        self._health = health
        self._status = status
        self._post = post
        self._monotonic_ns = monotonic_ns
        self._refused = refused
        self._places = places or HttpPlaces()
        self._hosts = hosts or HostNames()
        self._request_seconds = request_seconds
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._scraping = asyncio.Lock()
        self._limit = RateLimit(60_000_000_000, monotonic_ns)

    async def bind(self, host: str, port: int) -> int:
        """Take the port, without listening, and return it.

        Raises:
            OSError: the address is taken or does not exist.
        """
        self._server = await asyncio.start_server(self._serve, host, port, limit=MAX_REQUEST_BYTES, start_serving=False)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def listen(self) -> None:
        """Serve at what was bound.

        Raises:
            OSError: another process listens there since.
        """
        assert self._server is not None
        await self._server.start_serving()

    async def close(self) -> None:
        """Stop listening and end the connections that are left."""
        if self._server is None:
            return
        self._server.close()
        for task in tuple(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = _address(writer)
        if (reason := self._places.take(address)) is not None:
            writer.transport.abort()
            self._refused(reason)
            if (left_out := self._limit.due(reason)) is not None:
                log.warning("connection_refused", reason=reason, address=address, left_out=left_out)
            return
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            async with asyncio.timeout(self._request_seconds):
                await self._answer(reader, writer)
        except (TimeoutError, OSError):
            writer.transport.abort()
        except asyncio.CancelledError:
            # The server is closing; asyncio's stream protocol would log the cancellation of its own task.
            writer.transport.abort()
        finally:
            self._connections.discard(task)
            self._places.leave(address)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # h11 refuses what is longer than this without being complete: a request of MAX_REQUEST_BYTES is the largest.
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_REQUEST_BYTES - 1)
        method = b"GET"
        try:
            head = await _read_head(connection, reader)
            method = head.method
            request = _checked(head, self._hosts)
            if request.method == "POST":
                response = self._post(replace(request, body=await _read_body(connection, reader)))
            else:
                response = await self._page(request.path)
        except RefusedError as refused:
            response = refused.response
        except h11.RemoteProtocolError as error:
            response = _malformed(error)
        except asyncio.IncompleteReadError:
            return
        except Exception:
            if self._limit.due("page") is not None:
                log.exception("page_failed")
            response = as_json(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": "page failed, see the log"})
        writer.write(connection.send(_head(response)))
        if method != b"HEAD":
            writer.write(connection.send(h11.Data(data=response.body)))
        connection.send(h11.EndOfMessage())
        await writer.drain()
        writer.write_eof()
        # What the client has not been read of would turn the close into a reset, and the answer would be lost with it.
        await reader.read(MAX_REQUEST_BYTES)

    async def _page(self, path: str) -> Response:
        if path == "/metrics":
            async with self._scraping:
                body = await asyncio.to_thread(self._metrics())
            return Response(HTTPStatus.OK, METRICS_TYPE, body)
        if path == "/histograms":
            async with self._scraping:
                body = await asyncio.to_thread(self._histograms)
            return Response(HTTPStatus.OK, JSON_TYPE, body)
        if path == "/":
            async with self._scraping:
                body = await asyncio.to_thread(self._status_page())
            return Response(HTTPStatus.OK, HTML_TYPE, body, (("Content-Security-Policy", POLICY),))
        now = self._monotonic_ns()
        if path == "/healthz":
            return _verdict(self._health.health_problems(now))
        if path == "/readyz":
            return _verdict(self._health.problems(now))
        if path == "/status":
            problems = self._health.problems(now)
            return as_json(HTTPStatus.OK, {**self._status(), "ready": not problems, "problems": problems})
        if path.startswith(CONTROL_PATH):
            raise RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "commands are sent by POST", (("Allow", "POST"),))
        raise RefusedError(HTTPStatus.NOT_FOUND, "pages are /, /metrics, /histograms, /healthz, /readyz and /status")


def _address(writer: asyncio.StreamWriter) -> str:
    peer = writer.get_extra_info("peername")
    # None if the client has gone already.
    return str(peer[0]) if peer else ""


async def _read_head(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Request:
    """The request line and the header fields; no more than MAX_REQUEST_BYTES are read."""
    left = MAX_REQUEST_BYTES
    while (event := connection.next_event()) is h11.NEED_DATA:
        left -= await _receive(connection, reader, left)
    assert isinstance(event, h11.Request)
    return event


async def _read_body(connection: h11.Connection, reader: asyncio.StreamReader) -> bytes:
    """The body of a request whose length has been checked."""
    body = b""
    while not isinstance(event := connection.next_event(), h11.EndOfMessage):
        if isinstance(event, h11.Data):
            body += event.data
        else:
            await _receive(connection, reader, MAX_BODY_BYTES)
    return body


async def _receive(connection: h11.Connection, reader: asyncio.StreamReader, at_most: int) -> int:
    data = await reader.read(at_most)
    if not data:
        raise asyncio.IncompleteReadError(b"", None)
    connection.receive_data(data)
    return len(data)


def _checked(head: h11.Request, hosts: HostNames) -> Request:
    """The request, if it is one that this server takes. Raises RefusedError."""
    if not head.target.startswith(b"/") or head.http_version not in (b"1.1", b"1.0"):
        raise RefusedError(HTTPStatus.BAD_REQUEST, "expected a request line such as GET /metrics HTTP/1.1")
    path = head.target.partition(b"?")[0].decode("ascii")
    is_command = head.method == b"POST" and path.startswith(CONTROL_PATH)
    if head.method not in (b"GET", b"HEAD") and not is_command:
        raise RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are answered", (("Allow", "GET, HEAD"),))
    fields: dict[bytes, bytes] = {}
    for name, value in head.headers:
        if name in fields and name in SINGLE_FIELDS:
            raise RefusedError(HTTPStatus.BAD_REQUEST, f"expected the field {name.decode('ascii')} once")
        fields[name] = b", ".join((fields[name], value)) if name in fields else value
    # HTTP/1.0 has no Host; no browser speaks it.
    if b"host" in fields and not hosts.accept(fields[b"host"].decode("latin-1")):
        raise RefusedError(HTTPStatus.MISDIRECTED_REQUEST, "expected localhost, an address or one of http.host_names")
    # A chunked body has no announced length, and lengths that are announced twice in different ways are an old attack.
    if b"transfer-encoding" in fields:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "expected no Transfer-Encoding")
    length = int(fields.get(b"content-length", b"0"))
    if length and not is_command:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "expected no body")
    if length > MAX_BODY_BYTES:
        raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {MAX_BODY_BYTES} bytes")
    return Request(head.method.decode("ascii"), path, fields)


def _malformed(error: h11.RemoteProtocolError) -> Response:
    if error.error_status_hint == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
        reason = f"a request has at most {MAX_REQUEST_BYTES} bytes"
        return as_json(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, {"error": reason})
    # What follows the colon are bytes of the client.
    reason = str(error).partition(":")[0]
    return as_json(HTTPStatus.BAD_REQUEST, {"error": f"expected a well-formed request: {reason}"})


def _verdict(problems: Mapping[Condition, str]) -> Response:
    status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
    return as_json(status, {"ok": not problems, "problems": problems})


def as_json(status: HTTPStatus, content: Mapping[str, Any], headers: Headers = ()) -> Response:
    """A JSON answer; `headers` are names and values."""
    return Response(status, JSON_TYPE, json.dumps(content, indent=2).encode() + b"\n", headers)


def _head(response: Response) -> h11.Response:
    return h11.Response(
        status_code=response.status,
        reason=response.status.phrase.encode("ascii"),
        headers=[
            ("Content-Type", response.media_type),
            ("Content-Length", str(len(response.body))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("Connection", "close"),
            *response.headers,
        ],
    )
