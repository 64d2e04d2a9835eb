"""Metrics of the node as a whole: its identity and run, its health, its connections and limits."""

from hltnode.daemon.monitoring.health import Condition
from hltnode.daemon.monitoring.metrics.rows import Kind, Row, counter, counters, gauge, gauges, info
from hltnode.protocol.transport.run_control_messages import RunState

NODE = (
    # Identity of node and run
    info("build", "Version, node, back end, chain and TCK.", lambda r: r.build),
    info(
        "run",
        "The run, its state, and the configuration of its selection.",
        lambda r: {
            "run": str(r.state.run),
            "state": r.state.run_state,
            "version": r.build["version"],
            "tck": r.build["tck"],
        },
    ),
    gauge("run_active", "1 from the arrival of all feeders of a run until its end.", lambda r: r.state.run_active),
    gauge("run_number", "Number of the current run; 0 before the first feeder.", lambda r: r.state.run),
    # Health
    gauge(
        "healthy",
        "1 if the loop and the pipeline tick, MEPs are acknowledged and the disk accepts events.",
        lambda r: r.is_healthy,
    ),
    gauge("ready", "1 if feeders may send.", lambda r: not r.problems),
    gauges(
        "condition",
        "1 if the condition of readiness holds.",
        "condition",
        lambda r: [(condition, condition not in r.problems) for condition in Condition],
    ),
    gauge("event_loop_lag_seconds", "Delay of the last timer of the event loop.", lambda r: r.counters.loop_lag),
    gauge(
        "event_loop_lag_max_seconds", "Largest delay of a timer of the event loop.", lambda r: r.counters.loop_lag_max
    ),
    counter(
        "event_loop_stalls",
        "Timers of the event loop that were more than 0.25 s late.",
        lambda r: r.counters.loop_stalls,
    ),
    Row(
        Kind.GAUGE,
        "thread_setting",
        "1 if the system took the setting of a thread (latency.cpus, latency.realtime_priority), 0 if it refused.",
        ("thread", "setting"),
        lambda r: r.counters.thread_settings.items(),
    ),
    counters(
        "garbage_collections",
        "Collections with latency.quiet_collector: without a MEP (idle), or 60 s after the last one (due).",
        "moment",
        lambda r: r.counters.collections.items(),
    ),
    counters(
        "exceptions",
        "Contained errors by part of the node.",
        "where",
        lambda r: r.counters.exceptions.items(),
    ),
    counter(
        "log_lines_lost",
        "Lines of the log that were not written: the reader stalls or has gone, or the disk is full.",
        lambda r: r.state.log_lines_lost,
    ),
    gauge("log_fails", "1 if the last line of the log was not written.", lambda r: r.state.log_fails),
    # Operation of the node
    gauges(
        "run_state",
        "1 for the state of the run control.",
        "state",
        lambda r: [(known, known is r.state.run_state) for known in RunState],
    ),
    Row(
        Kind.COUNTER,
        "commands",
        "Commands of operators.",
        ("command", "outcome"),
        lambda r: r.counters.operation.commands.items(),
    ),
    gauge(
        "config_version",
        "Generation of the configuration; rises with each applied reload.",
        lambda r: r.counters.operation.config_version,
    ),
    counters(
        "config_reloads", "Reloads of the configuration.", "outcome", lambda r: r.counters.operation.reloads.items()
    ),
    gauge(
        "last_reload_successful",
        "0 if the last reload was refused: the file or a key of it is not valid.",
        lambda r: not r.counters.operation.last_reload_refused,
    ),
    gauge(
        "last_reload_success_timestamp_seconds",
        "Unix time when the configuration in force was read.",
        lambda r: r.counters.operation.last_reload_s,
    ),
    Row(
        Kind.COUNTER,
        "connection_events",
        "Connections made, ended or failed.",
        ("socket", "event"),
        lambda r: r.counters.operation.connections.items(),
    ),
    gauges(
        "connections", "Connections that are open.", "socket", lambda r: r.counters.operation.open_connections.items()
    ),
    Row(
        Kind.COUNTER,
        "connections_refused",
        "Connections ended by a limit.",
        ("socket", "reason"),
        lambda r: r.counters.operation.connections_refused.items(),
    ),
    counter(
        "address_refusals",
        "Times that an address was refused, for what its connections had sent.",
        lambda r: r.counters.operation.address_refusals,
    ),
    gauge(
        "refused_addresses",
        "Addresses whose connections are refused now.",
        lambda r: r.counters.operation.refused_addresses,
    ),
    gauge(
        "refuses_unknown_addresses",
        "1 while new connections of all unknown addresses are refused.",
        lambda r: int(r.counters.operation.refuses_unknown),
    ),
    gauges(
        "unfinished_bytes",
        "Bytes read from peers that are not yet part of a complete message.",
        "socket",
        lambda r: r.counters.operation.unfinished_bytes.items(),
    ),
    Row(
        Kind.COUNTER,
        "login_failures",
        "Peers and commands refused.",
        ("socket", "reason"),
        lambda r: r.counters.operation.login_failures.items(),
    ),
)
