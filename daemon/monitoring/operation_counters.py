"""What is counted of running the node itself: commands, reloads, connections and refused logins.

Plain integers of the event loop, as in `hltnode.daemon.monitoring.counters`; `operation_metrics` makes families of
them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from hltnode.daemon.common.vocabulary import (
    SOCKET_ENDPOINTS,
    ConnectionEvent,
    ConnectionRefusal,
    Endpoint,
    LoginFailure,
    Outcome,
)
from hltnode.protocol.transport.run_control_messages import CommandName, RunState

PREFIX = "hltnode_"


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


def operation_metrics(counters: OperationCounters, run_state: RunState) -> Iterator[Metric]:
    """All families of these counters; every label value is there from the start."""
    state = GaugeMetricFamily(PREFIX + "run_state", "1 for the state of the run control.", labels=["state"])
    for known in RunState:
        state.add_metric([known], float(known is run_state))
    yield state
    commands = CounterMetricFamily(PREFIX + "commands", "Commands of operators.", labels=["command", "outcome"])
    for (name, outcome), count in counters.commands.items():
        commands.add_metric([name, outcome], count)
    yield commands
    yield GaugeMetricFamily(
        PREFIX + "config_version", "Rises with each reload that was applied.", value=counters.config_version
    )
    reloads = CounterMetricFamily(PREFIX + "config_reloads", "Reloads of the configuration.", labels=["outcome"])
    for outcome, count in counters.reloads.items():
        reloads.add_metric([outcome], count)
    yield reloads
    yield GaugeMetricFamily(
        PREFIX + "last_reload_success_timestamp_seconds",
        "Unix time when the configuration in force was read.",
        value=counters.last_reload_s,
    )
    connections = CounterMetricFamily(
        PREFIX + "connection_events",
        "Connections made, ended or failed.",
        labels=["socket", "event"],
    )
    for (endpoint, event), count in counters.connections.items():
        connections.add_metric([endpoint, event], count)
    yield connections
    yield _gauges("connections", "Connections that are open.", counters.open_connections)
    refused = CounterMetricFamily(
        PREFIX + "connections_refused", "Connections that a limit has ended.", labels=["socket", "reason"]
    )
    for (endpoint, reason), count in counters.connections_refused.items():
        refused.add_metric([endpoint, reason], count)
    yield refused
    text = "Bytes read from peers that are not yet part of a message taken by the node."
    yield _gauges("unfinished_bytes", text, counters.unfinished_bytes)
    logins = CounterMetricFamily(PREFIX + "login_failures", "Peers and commands refused.", labels=["socket", "reason"])
    for (endpoint, failure), count in counters.login_failures.items():
        logins.add_metric([endpoint, failure], count)
    yield logins


def _gauges(name: str, text: str, values: Mapping[Endpoint, int]) -> Metric:
    family = GaugeMetricFamily(PREFIX + name, text, labels=["socket"])
    for endpoint, value in values.items():
        family.add_metric([endpoint], value)
    return family
