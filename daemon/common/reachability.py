"""Check that a node is running before a command starts to wait for it."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import zmq
from zmq.utils.monitor import parse_monitor_message

from hltnode.client.keys import ClientKeys
from hltnode.daemon.common.endpoints import REACHABLE_SECONDS, NotReachableError
from hltnode.protocol.transport.endpoints import is_ipv6

_FAILED = zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_AUTH
_POLL_MS = 50


def require_node(
    kind: int, endpoints: Sequence[str], keys: ClientKeys | None, seconds: float = REACHABLE_SECONDS
) -> None:
    """Return as soon as a node answers at one of the endpoints, even with a refusal.

    `kind`: type of a ZeroMQ socket that can connect to these endpoints. For shm://PATH, the socket file must exist.

    The function waits for the handshake: a connection that ends before it causes a warning in the log of the node.
    Raises NotReachableError after `seconds`.
    """
    end = time.monotonic() + seconds
    with ExitStack() as stack:
        context = stack.enter_context(zmq.Context())
        monitors = {}
        for endpoint in endpoints:
            if endpoint.startswith("shm://"):
                continue
            connection = stack.enter_context(context.socket(kind))
            connection.setsockopt(zmq.LINGER, 0)
            connection.setsockopt(zmq.IPV6, is_ipv6(endpoint))
            if keys is not None:
                keys.apply(connection)
            monitor = connection.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_CONNECT_RETRIED | _FAILED)
            stack.callback(monitor.close, linger=0)
            stack.callback(connection.disable_monitor)
            connection.connect(endpoint)
            monitors[endpoint] = monitor
        refused: set[str] = set()
        while time.monotonic() < end:
            if any(Path(each.removeprefix("shm://")).exists() for each in endpoints if each.startswith("shm://")):
                return
            for endpoint, monitor in monitors.items():
                while monitor.poll(_POLL_MS // len(monitors)):
                    event = parse_monitor_message(monitor.recv_multipart())["event"]
                    if event != zmq.EVENT_CONNECT_RETRIED:
                        return
                    refused.add(endpoint)
            if not monitors:
                time.sleep(_POLL_MS / 1000)
    reasons = (f"{each}: {_reason(each, each in refused, seconds)}" for each in endpoints)
    raise NotReachableError(f"{', '.join(reasons)}: is the node running?")


def _reason(endpoint: str, is_refused: bool, seconds: float) -> str:
    if endpoint.startswith("shm://"):
        return "there is no such socket"
    return "the connection is refused" if is_refused else f"no connection in {seconds:g} s"
