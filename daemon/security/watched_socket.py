"""One socket of the node under the connection limiter: its monitor, and its connections by descriptor."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import zmq

from hltnode.daemon.common.vocabulary import Endpoint
from hltnode.daemon.security.connection_table import ConnectionTable
from hltnode.daemon.security.input_watch import InputWatch
from hltnode.daemon.security.tcp_connection import TcpConnection

# Most bytes that a subscriber needs: a handshake (below 1 KiB with CURVE), a few short topics, later only heartbeats.
# libzmq uses up to 2 kB for each byte of a topic.
SUBSCRIBER_BYTES = 4096
SUBSCRIBER_BYTES_PER_SECOND = 64
# What the kernel takes from a subscriber before libzmq reads it. With 4 KiB, a burst from this machine stalled.
SUBSCRIBER_BUFFER_BYTES = 16 << 10


@dataclass(slots=True)
class WatchedSocket:
    """A socket and its open connections, including those that were just refused."""

    socket: zmq.Socket[bytes]
    monitor: zmq.Socket[bytes]
    endpoint: Endpoint
    table: ConnectionTable
    inputs: InputWatch | None
    """None for an output, whose peers send only subscriptions."""
    connections: dict[int, TcpConnection] = field(default_factory=dict)
    since_ns: dict[int, int] = field(default_factory=dict)
    """When each connection was opened."""
    refused: set[int] = field(default_factory=set)
    unfollowed: dict[int, bytes] = field(default_factory=dict)
    """Connections for which no second descriptor was free, with their endpoints: the next check tries again."""

    def admitted(self) -> Iterator[tuple[int, TcpConnection]]:
        """The connections that were not refused, with their descriptors."""
        return ((each, self.connections[each]) for each in self.connections if each not in self.refused)

    def bytes_read(self) -> dict[int, int]:
        """Bytes that libzmq has read from each of these connections, by descriptor."""
        read = {}
        for descriptor, connection in self.admitted():
            try:
                read[descriptor] = connection.bytes_read()
            except OSError:
                continue  # the connection has just ended
        return read

    def close(self) -> None:
        """Close the monitor and the second descriptor of each connection."""
        for connection in self.connections.values():
            connection.close()
        self.connections.clear()
        self.monitor.close()
