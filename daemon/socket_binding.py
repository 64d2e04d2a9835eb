"""Sockets that the node binds: set up, made secure, bound, and not left open when the endpoint is taken."""

from collections.abc import Callable, Mapping

import zmq


def bind_socket(
    context: zmq.Context[zmq.Socket[bytes]],
    kind: int,
    endpoint: str,
    options: Mapping[zmq.SocketOption, int],
    prepare: Callable[[zmq.Socket[bytes]], None],
) -> tuple[zmq.Socket[bytes], str]:
    """A bound socket that does not linger, and where it is bound: the true port for tcp://127.0.0.1:*.

    Args:
        prepare: makes the socket secure before it is bound.

    Raises:
        zmq.ZMQError: the endpoint cannot be bound.
    """
    socket = context.socket(kind)
    try:
        socket.setsockopt(zmq.LINGER, 0)
        for option, value in options.items():
            socket.setsockopt(option, value)
        prepare(socket)
        socket.bind(endpoint)
    except zmq.ZMQError:
        socket.close()
        raise
    return socket, socket.getsockopt_string(zmq.LAST_ENDPOINT)
