"""Read-only pages over HTTP/1.1, such as /, /metrics, /healthz and /status; commands by POST to /control.

The server is strict: one request per connection, GET and HEAD without a body, POST with a small JSON body (answered by
`http_control`). It limits the size and duration of a request and the number of connections, in total and per address.
If no place is free, the client that has kept a connection waiting for longest makes room for the next one.
h11 parses requests and writes responses; docs/decisions/0004 explains why there is no HTTP framework.
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
from hltnode.daemon.monitoring.http_places import HttpPlaces, may_displace
from hltnode.daemon.monitoring.shared_pages import SharedPages
from hltnode.daemon.monitoring.status_page.assets import HTML_TYPE, POLICY

MAX_REQUEST_BYTES = 8192
# Enough for a command with a run number, the largest POST body.
MAX_BODY_BYTES = 1024
CONTROL_PATH = "/control/"
# A client that needs longer to send its request, or to read the response, is broken or hostile.
REQUEST_SECONDS = 5.0
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
JSON_TYPE = "application/json"
# RFC 9110, section 5.3: list fields may be repeated, as proxies do. These are no lists: of two values, the node and a
# proxy in front of it might each use another.
SINGLE_FIELDS = frozenset((b"authorization", b"content-length", b"host"))

Headers = tuple[tuple[str, str], ...]

log = get_logger("http_server")


@dataclass(frozen=True, slots=True)
class Response:
    """Status, media type and body of a response."""

    status: HTTPStatus
    media_type: str
    body: bytes
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class Request:
    """Method, path without query, header fields by lower-case name, address of the client, and for POST the body."""

    method: str
    path: str
    fields: Mapping[bytes, bytes]
    body: bytes = b""
    address: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A further page. `collect` is called in the loop and returns a function that any thread may call."""

    media_type: str
    collect: Callable[[], Callable[[], bytes]]


class RefusedError(Exception):
    """A request that gets an error response."""

    def __init__(self, status: HTTPStatus, reason: str, headers: Headers = ()) -> None:
        super().__init__(reason)
        self.response = as_json(status, {"error": reason}, headers)


@dataclass(slots=True, eq=False)
class _Connection:
    address: str
    task: asyncio.Task[None]
    waits_for_client: bool = True
    """Whether the client has yet to send its request, or to read the response."""
    has_place: bool = True


class HttpServer:
    """Serves the pages from `start` to `close`.

    Args:
        metrics: called in the loop; takes a snapshot and returns a function that creates the body of /metrics from it.
            This function is called in a worker thread, one call at a time, so that a scrape of many series does not
            block the event loop. Waiting requests share a page (`shared_pages`).
        histograms: creates the body of /histograms, also in a worker thread.
        page: creates the status page in the same way as `metrics`.
        more: further pages by path.
        health: state behind /healthz and /readyz.
        status: returns the content of /status except the health, as JSON-serialisable mapping; called in the loop.
        post: answers a POST to /control/..., or raises RefusedError; called in the loop.
        refused: called when a connection is refused, with the reason.
        places: limits of connections.
        hosts: accepted names in the Host field.
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
        more: Mapping[str, Page] | None = None,
        refused: Callable[[ConnectionRefusal], None] = lambda _reason: None,
        places: HttpPlaces | None = None,
        hosts: HostNames | None = None,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        request_seconds: float = REQUEST_SECONDS,
    ) -> None:
        self._metrics = metrics
        self._histograms = histograms
        self._pages = {"/": Page(HTML_TYPE, page), **(more or {})}
        self._health = health
        self._status = status
        self._post = post
        self._monotonic_ns = monotonic_ns
        self._refused = refused
        self._places = places or HttpPlaces()
        self._hosts = hosts or HostNames()
        self._request_seconds = request_seconds
        self._server: asyncio.Server | None = None
        self._connections: dict[_Connection, None] = {}
        """In order of arrival."""
        self._shared = SharedPages(monotonic_ns)
        self._limit = RateLimit(60_000_000_000, monotonic_ns)

    async def bind(self, host: str, port: int) -> int:
        """Bind the port without listening, and return the port.

        Raises:
            OSError: the address is in use or does not exist.
        """
        self._server = await asyncio.start_server(self._serve, host, port, limit=MAX_REQUEST_BYTES, start_serving=False)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def listen(self) -> None:
        """Listen on the bound port and serve.

        Raises:
            OSError: another process has started to listen there.
        """
        assert self._server is not None
        await self._server.start_serving()

    async def close(self) -> None:
        """Stop listening and end the open connections."""
        if self._server is None:
            return
        self._server.close()
        tasks = [connection.task for connection in self._connections]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._shared.close()
        await self._server.wait_closed()
        self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = _address(writer)
        if not self._places.may_connect(address, self._monotonic_ns()):
            writer.transport.abort()
            self._refuse(address, ConnectionRefusal.TOO_OFTEN)
            return
        reason = self._places.take(address)
        if reason is not None and self._make_room(address, reason):
            reason = self._places.take(address)
        if reason is not None:
            writer.transport.abort()
            self._refuse(address, reason)
            return
        task = asyncio.current_task()
        assert task is not None
        connection = _Connection(address, task)
        self._connections[connection] = None
        try:
            async with asyncio.timeout(self._request_seconds):
                await self._answer(connection, reader, writer)
        except (TimeoutError, OSError):
            writer.transport.abort()
        except asyncio.CancelledError:
            # The server is closing, or another client needs the place; asyncio's stream protocol would log the
            # cancellation of its own task.
            writer.transport.abort()
        finally:
            self._connections.pop(connection)
            self._leave(connection)
            writer.close()

    def _make_room(self, address: str, reason: ConnectionRefusal) -> bool:
        """End the connection that has waited for its client for longest; False if there is none."""
        for connection in self._connections:
            is_free = connection.waits_for_client and connection.has_place
            if is_free and may_displace(address, connection.address, reason):
                self._leave(connection)
                connection.task.cancel()
                self._refuse(connection.address, reason)
                return True
        return False

    def _leave(self, connection: _Connection) -> None:
        if connection.has_place:
            connection.has_place = False
            self._places.leave(connection.address)

    def _refuse(self, address: str, reason: ConnectionRefusal) -> None:
        self._refused(reason)
        if (left_out := self._limit.due(reason)) is not None:
            log.warning("connection_refused", reason=reason, address=address, left_out=left_out)

    async def _answer(self, client: _Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # h11 refuses a longer incomplete request, so MAX_REQUEST_BYTES is the largest request.
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_REQUEST_BYTES - 1)
        method = b"GET"
        try:
            head = await _read_head(connection, reader)
            method = head.method
            request = _checked(head, self._hosts)
            if request.method == "POST":
                request = replace(request, body=await _read_body(connection, reader), address=client.address)
            client.waits_for_client = False
            if request.method == "POST":
                response = self._post(request)
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
        client.waits_for_client = True
        # uvloop raises RuntimeError for a write to a connection that the client has reset meanwhile.
        if writer.is_closing():
            return
        writer.write(connection.send(_head(response)))
        if method != b"HEAD":
            writer.write(connection.send(h11.Data(data=response.body)))
        connection.send(h11.EndOfMessage())
        await writer.drain()
        if writer.is_closing():
            return
        writer.write_eof()
        # Unread input would turn the close into a reset, and the client would lose the response.
        await reader.read(MAX_REQUEST_BYTES)

    async def _page(self, path: str) -> Response:
        if path == "/metrics":
            body = await self._shared.get(path, self._metrics)
            return Response(HTTPStatus.OK, METRICS_TYPE, body)
        if path == "/histograms":
            body = await self._shared.get(path, lambda: self._histograms)
            return Response(HTTPStatus.OK, JSON_TYPE, body)
        if (page := self._pages.get(path)) is not None:
            body = await self._shared.get(path, page.collect)
            policy = (("Content-Security-Policy", POLICY),) if page.media_type == HTML_TYPE else ()
            return Response(HTTPStatus.OK, page.media_type, body, policy)
        now = self._monotonic_ns()
        if path == "/healthz":
            return _verdict(self._health.health_problems(now))
        if path == "/readyz":
            return _verdict(self._health.problems(now))
        if path == "/status":
            return Response(
                HTTPStatus.OK, JSON_TYPE, await self._shared.get(path, self._status_content, in_thread=False)
            )
        if path.startswith(CONTROL_PATH):
            raise RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "expected POST for a command", (("Allow", "POST"),))
        known = sorted((*self._pages, "/metrics", "/histograms", "/healthz", "/readyz", "/status"))
        raise RefusedError(HTTPStatus.NOT_FOUND, f"pages are {', '.join(known)}")

    def _status_content(self) -> Callable[[], bytes]:
        problems = self._health.problems(self._monotonic_ns())
        return lambda: _encode({**self._status(), "ready": not problems, "problems": problems})


def _address(writer: asyncio.StreamWriter) -> str:
    peer = writer.get_extra_info("peername")
    # None if the client has closed the connection.
    return str(peer[0]) if peer else ""


async def _read_head(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Request:
    """The request line and the header fields; reads at most MAX_REQUEST_BYTES."""
    left = MAX_REQUEST_BYTES
    while (event := connection.next_event()) is h11.NEED_DATA:
        left -= await _receive(connection, reader, left)
    assert isinstance(event, h11.Request)
    return event


async def _read_body(connection: h11.Connection, reader: asyncio.StreamReader) -> bytes:
    """The body of a request with a checked length."""
    body = b""
    while not isinstance(event := connection.next_event(), h11.EndOfMessage):
        if isinstance(event, h11.Data):
            body += event.data
        else:
            await _receive(connection, reader, MAX_BODY_BYTES)
    return body


async def _receive(connection: h11.Connection, reader: asyncio.StreamReader, at_most: int) -> int:
    try:
        data = await reader.read(at_most)
    except ConnectionError:
        data = b""  # a reset ends the request like a regular end
    if not data:
        raise asyncio.IncompleteReadError(b"", None)
    connection.receive_data(data)
    return len(data)


def _checked(head: h11.Request, hosts: HostNames) -> Request:
    """The request, if this server accepts it. Raises RefusedError."""
    if not head.target.startswith(b"/") or head.http_version not in (b"1.1", b"1.0"):
        raise RefusedError(HTTPStatus.BAD_REQUEST, "expected a request line such as GET /metrics HTTP/1.1")
    path = head.target.partition(b"?")[0].decode("ascii")
    is_command = head.method == b"POST" and path.startswith(CONTROL_PATH)
    if head.method not in (b"GET", b"HEAD") and not is_command:
        raise RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "expected GET or HEAD", (("Allow", "GET, HEAD"),))
    fields: dict[bytes, bytes] = {}
    for name, value in head.headers:
        if name in fields and name in SINGLE_FIELDS:
            raise RefusedError(HTTPStatus.BAD_REQUEST, f"expected the field {name.decode('ascii')} once")
        fields[name] = b", ".join((fields[name], value)) if name in fields else value
    # HTTP/1.0 has no Host; no browser speaks it.
    if b"host" in fields and not hosts.accept(fields[b"host"].decode("latin-1")):
        raise RefusedError(HTTPStatus.MISDIRECTED_REQUEST, "expected localhost, an address or one of http.host_names")
    # A chunked body has no declared length, and two different declared lengths are a known attack (request smuggling).
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
    # The text after the colon comes from the client.
    reason = str(error).partition(":")[0]
    return as_json(HTTPStatus.BAD_REQUEST, {"error": f"expected a well-formed request: {reason}"})


def _verdict(problems: Mapping[Condition, str]) -> Response:
    status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
    return as_json(status, {"ok": not problems, "problems": problems})


def as_json(status: HTTPStatus, content: Mapping[str, Any], headers: Headers = ()) -> Response:
    """A JSON response; `headers`: names and values."""
    return Response(status, JSON_TYPE, _encode(content), headers)


def _encode(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, indent=2).encode() + b"\n"


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
