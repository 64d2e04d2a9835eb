"""Counters of the operation of the node: commands, reloads, connections and refused logins.

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

_OF_NODE = (*SOCKET_ENDPOINTS, Endpoint.HTTP)


@dataclass(slots=True)
class OperationCounters:
    """One node as its operators see it."""

    commands: dict[tuple[CommandName, Outcome], int] = field(
        default_factory=lambda: {(name, outcome): 0 for name in CommandName for outcome in Outcome}
    )
    reloads: dict[Outcome, int] = field(default_factory=lambda: dict.fromkeys(Outcome, 0))
    last_reload_refused: bool = False
    last_reload_s: float = 0.0
    """Unix time of the last applied reload; before the first reload, that of the start."""
    connections: dict[tuple[Endpoint, ConnectionEvent], int] = field(
        default_factory=lambda: {(endpoint, event): 0 for endpoint in SOCKET_ENDPOINTS for event in ConnectionEvent}
    )
    open_connections: dict[Endpoint, int] = field(default_factory=lambda: dict.fromkeys(SOCKET_ENDPOINTS, 0))
    """Open connections, including those just refused."""
    connections_refused: dict[tuple[Endpoint, ConnectionRefusal], int] = field(
        default_factory=lambda: {(endpoint, reason): 0 for endpoint in _OF_NODE for reason in ConnectionRefusal}
    )
    address_refusals: int = 0
    """Times that an address was refused, for what its connections had sent."""
    refused_addresses: int = 0
    """Addresses that are refused now."""
    refuses_unknown: bool = False
    """Whether new connections of all unknown addresses are refused."""
    unfinished_bytes: dict[Endpoint, int] = field(default_factory=lambda: {Endpoint.DATA: 0, Endpoint.CONTROL: 0})
    """Bytes read from peers that are not yet part of a complete message."""
    login_failures: dict[tuple[Endpoint, LoginFailure], int] = field(
        default_factory=lambda: {(endpoint, failure): 0 for endpoint in _OF_NODE for failure in LoginFailure}
    )

    @classmethod
    def of_socket(cls, endpoint: Endpoint) -> "OperationCounters":
        """Those of a process with one socket."""
        return cls(
            connections={(endpoint, event): 0 for event in ConnectionEvent},
            open_connections={endpoint: 0},
            connections_refused={(endpoint, reason): 0 for reason in ConnectionRefusal},
            unfinished_bytes={endpoint: 0},
            login_failures={},
        )

    def count_refused(self, endpoint: Endpoint, reason: ConnectionRefusal) -> None:
        """Count a connection ended by a limit."""
        self.connections_refused[endpoint, reason] += 1

    @property
    def config_version(self) -> int:
        """Rises with each applied reload; 1 is the configuration at the start."""
        return 1 + self.reloads[Outcome.OK]
