"""GET requests to servers that are slow, endless, wrong or absent: each ends in time and with its reason."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from hltnode.daemon.common.bounded_get import MAX_HEAD_BYTES, NoAnswerError, bounded_get

pytestmark = pytest.mark.loopback

MOST = 1000
OK = b"HTTP/1.1 200 OK\r\n"


@contextlib.contextmanager
def server(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that answers each connection by a function; its address."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                connection.recv(4096)
                answer(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)
        assert not thread.is_alive()


def endless(first: bytes, piece: bytes, pause: float = 0.0) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        connection.sendall(first)
        while True:
            connection.sendall(piece)
            if pause:
                time.sleep(pause)

    return answer


def refusal(answer: Callable[[socket.socket], None], seconds: float = 5.0) -> str:
    with server(answer) as address, pytest.raises(NoAnswerError) as refused:
        bounded_get(f"{address}/overview", seconds=seconds, most_bytes=MOST)
    return str(refused.value)


def test_the_body_of_an_answer_is_returned_up_to_the_limit() -> None:
    with server(lambda it: it.sendall(OK + b"Content-Length: 1000\r\n\r\n" + b"x" * MOST)) as address:
        assert bounded_get(f"{address}/status?a=1", seconds=5, most_bytes=MOST) == b"x" * MOST


@pytest.mark.parametrize(
    "answer",
    [
        endless(OK + b"\r\n", b"x" * 4096),
        endless(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"a\r\n0123456789\r\n"),
        endless(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1;" + b"x" * 200 + b"\r\nx\r\n"),
        endless(OK, b"X: " + b"x" * MAX_HEAD_BYTES + b"\r\n"),
        endless(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
        lambda it: it.sendall(OK + b"Content-Length: 1001\r\n\r\n" + b"x" * 1001),
    ],
    ids=["until_close", "chunked", "chunk_extensions", "head", "interim_answers", "one_byte"],
)
def test_an_answer_above_the_limit_is_refused(answer: Callable[[socket.socket], None]) -> None:
    assert refusal(answer) == f"the answer has more than {MOST} bytes"


@pytest.mark.parametrize(
    "first", [b"", OK + b"X: ", OK + b"Content-Length: 900\r\n\r\n"], ids=["head", "field", "body"]
)
def test_a_server_that_sends_a_byte_now_and_then_is_left_in_time(first: bytes) -> None:
    start = time.monotonic()
    assert refusal(endless(first, b"H", pause=0.05), seconds=0.3) == "no answer in 0.3 s"
    assert time.monotonic() - start < 3


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
            "answers with status 302",
        ),
        (b"HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\n\r\n", "answers with status 421"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "the answer is not HTTP"),
        (b"", "the answer is not HTTP"),
        (OK + b"Content-Length: 9\r\n\r\nx", "the answer is not HTTP"),
    ],
)
def test_other_answers_are_refused_with_the_reason(answer: bytes, reason: str) -> None:
    assert refusal(lambda connection: connection.sendall(answer)) == reason


def test_a_closed_port_and_wrong_addresses_have_a_reason() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    reasons = {f"http://127.0.0.1:{port}": "connection refused", "http://a..b:1": "not a host name"}
    reasons |= dict.fromkeys(("ftp://host", "host:9105", "http://:99999", ""), "expected an address such as http://")
    for address, reason in reasons.items():
        with pytest.raises(NoAnswerError, match=reason):
            bounded_get(address, seconds=2, most_bytes=MOST)
