"""Checks of configured endpoints: syntax, and whether a server listens."""

import re
import socket
from ipaddress import ip_address
from urllib.parse import urlsplit

from hltnode.protocol.transport.endpoints import MAX_UNIX_PATH, fits_unix_address

_ENDPOINT = re.compile(
    r"tcp://[^\s/:]+(:[^\s/:]+)*:(\d{1,5}|\*)|tcp://\[[0-9a-fA-F:.]+\]:(\d{1,5}|\*)|(ipc|inproc)://\S+"
)
# Visible ASCII characters, so that the address is the same for people, browsers and sockets.
_HTTP_ADDRESS = re.compile(r"https?://[A-Za-z0-9._\[\]:-]+(/[A-Za-z0-9._~/-]*)?")
MAX_HTTP_ADDRESS = 300
# A running node answers within a round trip; a starting node may need this time.
REACHABLE_SECONDS = 3.0


class NotReachableError(ValueError):
    """Nothing listens at an endpoint; the message names the endpoint."""


def check_endpoint(endpoint: str) -> str:
    """The endpoint, if it is valid. Raises ValueError with the expected syntax."""
    if _ENDPOINT.fullmatch(f"tcp://{endpoint}"):
        raise ValueError(f"expected the transport before it: tcp://{endpoint}")
    if not _ENDPOINT.fullmatch(endpoint):
        raise ValueError("expected a ZeroMQ endpoint such as tcp://127.0.0.1:5555, tcp://*:5555 or ipc:///run/x.sock")
    port = endpoint.rpartition(":")[2]
    if endpoint.startswith("tcp://") and port.isdigit() and int(port) > 65535:
        raise ValueError("expected a port of at most 65535")
    if not fits_unix_address(endpoint):
        raise ValueError(f"expected a path of at most {MAX_UNIX_PATH} bytes: it is the address of a Unix socket")
    return endpoint


def check_udp_endpoint(endpoint: str) -> str:
    """An endpoint udp://ADDRESS:PORT with an IP address, if it is valid. Raises ValueError with the expected syntax."""
    host, _, port = endpoint.removeprefix("udp://").rpartition(":")
    try:
        address = ip_address(host.removeprefix("[").removesuffix("]"))
        is_valid = endpoint.startswith("udp://") and port.isdecimal() and int(port) <= 65535
        is_valid = is_valid and host.startswith("[") == (address.version == 6)
        has_scope = address.version == 6 and address.scope_id is not None
    except ValueError:
        is_valid = has_scope = False
    if has_scope:
        raise ValueError("expected an IPv6 address without a scope (%...): the node binds no link-local address")
    if not is_valid:
        raise ValueError("expected an IP address and a port such as udp://10.0.0.1:5560 or udp://[::1]:5560")
    return endpoint


def check_http_address(address: str) -> str:
    """An HTTP address without query and user, if it is valid. Raises ValueError with the expected syntax."""
    if not _HTTP_ADDRESS.fullmatch(address) or len(address) > MAX_HTTP_ADDRESS:
        raise ValueError("expected an address such as http://node-1:9105")
    try:
        place = urlsplit(address)
        is_valid = bool(place.hostname) and place.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise ValueError("expected an address with a valid host and a port from 1 to 65535")
    return address


def check_option(option: str, endpoint: str) -> str:
    """The same for an option of a command; the error names the option, and shm://PATH is valid."""
    if endpoint.startswith("shm://"):
        return endpoint
    try:
        return check_endpoint(endpoint)
    except ValueError as error:
        raise ValueError(f"{option} {endpoint}: {error}") from None


def require_address(url: str) -> None:
    """Return if a server listens at an HTTP address. Raises NotReachableError."""
    place = urlsplit(url)
    try:
        with socket.create_connection((place.hostname or "", place.port or 80), timeout=REACHABLE_SECONDS):
            return
    except OSError as error:
        is_late = isinstance(error, TimeoutError)
        reason = f"no connection in {REACHABLE_SECONDS:g} s" if is_late else error.strerror or str(error)
        raise NotReachableError(f"{url}: {reason}: is the node running?") from error
