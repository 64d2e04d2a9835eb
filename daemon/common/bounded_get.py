"""GET requests whose cost a hostile server cannot raise: limits on the bytes and the duration of an answer.

`urllib` limits the time of each read only, so a server that sends a byte a second would hold its client for hours.
"""

import socket
import ssl
import time
from functools import cache
from http import HTTPStatus
from urllib.parse import SplitResult, urlsplit

import h11

# The largest head of an answer; larger ones are refused.
MAX_HEAD_BYTES = 16 << 10
_READ_BYTES = 64 << 10
_PORTS = {"http": 80, "https": 443}


class NoAnswerError(ValueError):
    """The server does not answer, or not as expected; the message is the reason, without the address."""


def bounded_get(url: str, *, seconds: float, most_bytes: int) -> bytes:
    """The body of an answer with status 200. Redirects are not followed, and no proxy is used.

    Args:
        seconds: limit of the whole request, except for the look-up of the host name.
        most_bytes: limit of the body.

    Raises:
        NoAnswerError: no connection, no complete answer in time, a larger answer, or another status.
    """
    try:
        place = urlsplit(url)
        port = place.port or _PORTS[place.scheme]
    except (KeyError, ValueError):
        raise NoAnswerError("expected an address such as http://127.0.0.1:9105") from None
    try:
        with _Exchange(place, port, time.monotonic() + seconds) as exchange:
            return exchange.get(most_bytes)
    except TimeoutError:
        raise NoAnswerError(f"no answer in {seconds:g} s") from None
    except OSError as error:
        raise NoAnswerError((error.strerror or str(error)).lower()) from error
    except UnicodeError:
        # Raised by the look-up of names with empty or too long parts.
        raise NoAnswerError("not a host name") from None
    except h11.ProtocolError as error:
        if error.error_status_hint == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
            raise NoAnswerError(_above(most_bytes)) from error
        raise NoAnswerError("the answer is not HTTP") from error


def _above(most_bytes: int) -> str:
    return f"the answer has more than {most_bytes} bytes"


class _Exchange:
    """One request on a connection of its own; each call of the operating system gets the time that is left."""

    def __init__(self, place: SplitResult, port: int, end: float) -> None:
        self._place = place
        self._end = end
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
        self._socket = socket.create_connection((place.hostname or "", port), timeout=self._left())
        if place.scheme == "https":
            self._socket.settimeout(self._left())
            try:
                self._socket = _tls().wrap_socket(self._socket, server_hostname=place.hostname)
            except BaseException:
                self._socket.close()
                raise

    def __enter__(self) -> "_Exchange":
        return self

    def __exit__(self, *_error: object) -> None:
        self._socket.close()

    def get(self, most_bytes: int) -> bytes:
        place = self._place
        target = (place.path or "/") + (f"?{place.query}" if place.query else "")
        request = h11.Request(
            method="GET",
            target=target,
            headers=[("Host", place.netloc.rpartition("@")[2]), ("Accept", "*/*"), ("Connection", "close")],
        )
        self._socket.settimeout(self._left())
        self._socket.sendall(self._http.send(request) + self._http.send(h11.EndOfMessage()))
        body = bytearray()
        # Counts the head, chunk sizes and interim answers too, so that none of them is endless.
        received = 0
        while not isinstance(event := self._http.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                self._socket.settimeout(self._left())
                data = self._socket.recv(_READ_BYTES)
                received += len(data)
                self._http.receive_data(data)
            elif isinstance(event, h11.Response) and event.status_code != HTTPStatus.OK:
                raise NoAnswerError(f"answers with status {event.status_code}")
            elif isinstance(event, h11.Data):
                body += event.data
            if len(body) > most_bytes or received > most_bytes + MAX_HEAD_BYTES:
                raise NoAnswerError(_above(most_bytes))
        return bytes(body)

    def _left(self) -> float:
        """The time that is left. Raises TimeoutError."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


@cache
def _tls() -> ssl.SSLContext:
    """Reading the certificates of the authorities takes some 20 ms."""
    return ssl.create_default_context()
