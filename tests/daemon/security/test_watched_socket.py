"""The connections of one socket under the limiter."""

from typing import Any, cast

from hltnode.daemon.common.vocabulary import Endpoint
from hltnode.daemon.security.connection_table import ConnectionLimits, ConnectionTable
from hltnode.daemon.security.tcp_connection import TcpConnection
from hltnode.daemon.security.watched_socket import WatchedSocket


class FakeConnection:
    def __init__(self, nbytes: int | None) -> None:
        self._nbytes = nbytes
        self.closed = False

    def bytes_read(self) -> int:
        if self._nbytes is None:
            raise OSError("the connection has ended")
        return self._nbytes

    def close(self) -> None:
        self.closed = True


def watched(connections: dict[int, FakeConnection]) -> WatchedSocket:
    table = ConnectionTable(ConnectionLimits(16, 16, 16))
    monitor = FakeConnection(0)
    socket = WatchedSocket(cast(Any, None), cast(Any, monitor), Endpoint.DECISIONS, table, None)
    for descriptor, connection in connections.items():
        socket.connections[descriptor] = cast(TcpConnection, connection)
        socket.since_ns[descriptor] = 0
    return socket


def test_bytes_are_counted_for_open_connections_that_are_not_refused() -> None:
    socket = watched({3: FakeConnection(100), 4: FakeConnection(200), 5: FakeConnection(None)})
    socket.refused.add(4)
    assert socket.bytes_read() == {3: 100}


def test_close_closes_the_monitor_and_all_connections() -> None:
    connections = {3: FakeConnection(0), 4: FakeConnection(0)}
    socket = watched(connections)
    socket.refused.add(4)
    socket.close()
    assert all(connection.closed for connection in connections.values())
    assert cast(FakeConnection, socket.monitor).closed
    assert not socket.connections
