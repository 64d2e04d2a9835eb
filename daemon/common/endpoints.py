"""Endpoints as people write them: what is right, and whether something listens there."""

import re
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

_ENDPOINT = re.compile(
    r"tcp://[^\s/:]+(:[^\s/:]+)*:(\d{1,5}|\*)|tcp://\[[0-9a-fA-F:.]+\]:(\d{1,5}|\*)|(ipc|inproc)://\S+"
)
# A node answers a connection within a round trip; one that starts may need this time.
REACHABLE_SECONDS = 3.0
_RETRY_SECONDS = 0.1


class NotReachableError(ValueError):
    """Nothing listens at an endpoint; names it."""


def check_endpoint(endpoint: str) -> str:
    """The endpoint itself. Raises ValueError with what is expected."""
    if _ENDPOINT.fullmatch(f"tcp://{endpoint}"):
        raise ValueError(f"expected the transport before it: tcp://{endpoint}")
    if not _ENDPOINT.fullmatch(endpoint):
        raise ValueError("expected a ZeroMQ endpoint such as tcp://127.0.0.1:5555, tcp://*:5555 or ipc:///run/x.sock")
    port = endpoint.rpartition(":")[2]
    if endpoint.startswith("tcp://") and port.isdigit() and int(port) > 65535:
        raise ValueError("expected a port of at most 65535")
    return endpoint


def check_option(option: str, endpoint: str) -> str:
    """The same for an option of a command, which the error names, too; shm://PATH is right there."""
    if endpoint.startswith("shm://"):
        return endpoint
    try:
        return check_endpoint(endpoint)
    except ValueError as error:
        raise ValueError(f"{option} {endpoint}: {error}") from None


def require_reachable(*endpoints: str, seconds: float = REACHABLE_SECONDS) -> None:
    """Return as soon as something listens at one of the endpoints (tcp, http, or the path of a Unix socket).

    Raises NotReachableError if nothing does for `seconds`; a machine that does not answer gets REACHABLE_SECONDS.
    """
    end = time.monotonic() + seconds
    while True:
        reasons = [_why_not(endpoint) for endpoint in endpoints]
        if None in reasons:
            return
        if time.monotonic() >= end:
            named = ", ".join(f"{endpoint}: {reason}" for endpoint, reason in zip(endpoints, reasons, strict=True))
            raise NotReachableError(f"{named}: is the node running?")
        time.sleep(_RETRY_SECONDS)


def _why_not(endpoint: str) -> str | None:
    place = urlsplit(endpoint)
    if place.scheme not in ("tcp", "http", "https"):
        return None if Path(endpoint.partition("://")[2]).exists() else "there is no such socket"
    try:
        with socket.create_connection((place.hostname or "", place.port or 80), timeout=REACHABLE_SECONDS):
            return None
    except TimeoutError:
        return f"no connection in {REACHABLE_SECONDS:g} s"
    except OSError as error:
        return error.strerror or str(error)
