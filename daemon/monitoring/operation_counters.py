"""What is counted of running the node itself: commands, reloads, connections and refused logins.

Plain integers of the event loop, as in `hltnode.daemon.monitoring.counters`.
"""

from dataclasses import dataclass, field

from hltnode.daemon.common.vocabulary import (
    SOCKET_ENDPOINTS,
    ConnectionEvent,
    ConnectionRefusal,
    Endpoint,
    LoginFailure,
    Outcome,
)
from hltnode.protocol.transport.run_control_messages import CommandName


@dataclass(slots=True)
class OperationCounters:
    """One node as its operators see it."""

    commands: dict[tuple[CommandName, Outcome], int] = field(
        default_factory=lambda: {(name, outcome): 0 for name in CommandName for outcome in Outcome}
    )
    reloads: dict[Outcome, int] = field(default_factory=lambda: dict.fromkeys(Outcome, 0))
    last_reload_s: float = 0.0
    """Unix time of the last reload that was applied; that of the start before the first."""
    connections: dict[tuple[Endpoint, ConnectionEvent], int] = field(
        default_factory=lambda: {(endpoint, event): 0 for endpoint in SOCKET_ENDPOINTS for event in ConnectionEvent}
    )
    open_connections: dict[Endpoint, int] = field(default_factory=lambda: dict.fromkeys(SOCKET_ENDPOINTS, 0))
    """Connections that are there now, those that have just been refused included."""
    connections_refused: dict[tuple[Endpoint, ConnectionRefusal], int] = field(
        default_factory=lambda: {(endpoint, reason): 0 for endpoint in Endpoint for reason in ConnectionRefusal}
    )
    unfinished_bytes: dict[Endpoint, int] = field(default_factory=lambda: {Endpoint.DATA: 0, Endpoint.CONTROL: 0})
    """Bytes that have been read from peers and are not yet part of a message that the node has taken."""
    login_failures: dict[tuple[Endpoint, LoginFailure], int] = field(
        default_factory=lambda: {(endpoint, failure): 0 for endpoint in Endpoint for failure in LoginFailure}
    )

    def count_refused(self, endpoint: Endpoint, reason: ConnectionRefusal) -> None:
        """Count a connection that a limit has ended."""
        self.connections_refused[endpoint, reason] += 1

    @property
    def config_version(self) -> int:
        """Rises with each reload that was applied; 1 is what the node started with."""
        return 1 + self.reloads[Outcome.OK]
