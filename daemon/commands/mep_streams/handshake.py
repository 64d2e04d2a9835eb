"""A handshake with a node that fails: the missing or wrong keys are named, instead of waiting in silence."""

from typing import Any

import zmq
from zmq.utils.monitor import parse_monitor_message

from hltnode.client.keys import SecurityError

_OPTIONS = "--server-key (public key of the node, NAME.key) and --key-file (own secret key, NAME.key_secret)"
_DIFFERENT = "the handshake failed: does the node use CURVE, and is --server-key its public key?"
_FAILED = {
    # Which of the two comes for the same cause depends on who ends the connection first.
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL: _DIFFERENT,
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL: _DIFFERENT,
    zmq.EVENT_HANDSHAKE_FAILED_AUTH: "the node does not know the key of --key-file: its public part must be in the "
    "folder of allowed keys of the node",
}
"""Failures of a client with keys, and their reasons."""


class Handshake:
    """Watches the handshakes of a socket that is not connected yet. Use it as context manager."""

    def __init__(self, socket: zmq.Socket[Any], endpoint: str, *, has_keys: bool) -> None:
        self._socket = socket
        self._endpoint = endpoint
        self._has_keys = has_keys
        self._monitor = socket.get_monitor_socket(sum(_FAILED))

    def __enter__(self) -> "Handshake":
        return self

    def __exit__(self, *_error: object) -> None:
        self._socket.disable_monitor()
        self._monitor.close(linger=0)

    def check(self) -> None:
        """Raise SecurityError if a handshake has failed; a further try cannot succeed."""
        if not self._monitor.poll(0):
            return
        event = zmq.Event(parse_monitor_message(self._monitor.recv_multipart())["event"])
        if self._has_keys:
            raise SecurityError(f"{self._endpoint}: {_FAILED[event]}")
        raise SecurityError(f"{self._endpoint}: the node uses CURVE, and no keys are given: expected {_OPTIONS}")
