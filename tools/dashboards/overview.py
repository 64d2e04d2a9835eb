"""The farm and its nodes: run, state, readiness, version, alerts, disk, process."""

from tools.dashboards.elements import NODES, Board, Panel, Query, Shape, gauge, number, rate, recent

ALERTS = f'ALERTS{{{NODES}, alertstate="firing", alertname=~"Hltnode.+"}}'

OVERVIEW = Board(
    uid="hltnode-overview",
    title="HLT1: farm and nodes",
    numbers=(
        number("Nodes that answer", f"sum(up{{{NODES}}})"),
        number("Nodes in a run", f"sum(hltnode_run_active{{{NODES}}})"),
        number("Events per second", f"sum({rate('hltnode_events_processed_total')})"),
        number(
            "Accepted",
            f"sum({rate('hltnode_events_accepted_total')}) / sum({rate('hltnode_events_processed_total')})",
            "percentunit",
        ),
        number(
            "Incomplete MEPs",
            f'sum(rate(hltnode_meps_closed_total{{{NODES},reason!="complete"}}[$__rate_interval]))'
            f" / sum({rate('hltnode_meps_closed_total')})",
            "percentunit",
            warn=0.001,
            alarm=0.01,
        ),
        number("Alerts", f"count({ALERTS}) or vector(0)", warn=1, alarm=5),
    ),
    rows={
        "Nodes": (
            Panel(
                "What runs",
                "none",
                (
                    Query(
                        f"hltnode_run_info{{{NODES}}} * on (instance) group_left (node, backend)"
                        f" hltnode_build_info{{{NODES}}}",
                        "",
                    ),
                ),
                "One row for each node: run, state, version, trigger configuration, back end.",
                Shape.TABLE,
                width=24,
            ),
            Panel(
                "State",
                "none",
                (Query(f"hltnode_run_state{{{NODES}}} == 1", "{{instance}} {{state}}"),),
                "",
                Shape.STATES,
            ),
            Panel("Ready", "none", (gauge("hltnode_ready"),), "1 while feeders may send.", Shape.STATES),
            Panel(
                "Conditions that do not hold",
                "none",
                (Query(f"sum by (condition) (1 - hltnode_condition{{{NODES}}})", "{{condition}}"),),
                "Number of nodes, by condition of readiness.",
            ),
            Panel(
                "Alerts that fire",
                "none",
                (Query(f"count by (alertname) ({ALERTS})", "{{alertname}}"),),
                "Number of nodes, by alert; docs/how-to/respond-to-alerts.md describes the response.",
                Shape.STACKED,
                width=24,
            ),
        ),
        "Rates": (
            Panel(
                "Events processed",
                "short",
                (Query("instance:hltnode_events_processed:rate1m{" + NODES + "}", "{{instance}}"),),
            ),
            Panel(
                "Data received",
                "Bps",
                (Query("instance:hltnode_fragment_bytes_received:rate1m{" + NODES + "}", "{{instance}}"),),
            ),
            Panel(
                "Dead time",
                "percentunit",
                (Query(f"avg by (reason) (instance_reason:hltnode_dead_time:ratio_rate5m{{{NODES}}})", "{{reason}}"),),
                "Fraction of the time without a free credit, by cause; mean of the nodes.",
                Shape.STACKED,
                warn=0.01,
                alarm=0.05,
            ),
        ),
        "Disk": (
            Panel(
                "Free for events",
                "bytes",
                (gauge("hltnode_output_free_bytes"),),
                "",
                warn=50e9,
                alarm=10e9,
                low_is_bad=True,
            ),
            Panel(
                "Free in four hours",
                "bytes",
                (
                    Query(
                        f"clamp_min(predict_linear(hltnode_output_free_bytes{{{NODES}}}[30m], 14400), 0)",
                        "{{instance}}",
                    ),
                ),
                "Forecast from the last half hour.",
                warn=50e9,
                alarm=10e9,
                low_is_bad=True,
            ),
            Panel("Failed disk writes", "short", (Query(rate("hltnode_write_errors_total", "kind"), "{{kind}}"),)),
        ),
        "Operation": (
            Panel(
                "Reloads of the configuration",
                "short",
                (Query(recent("hltnode_config_reloads_total", "outcome"), "{{outcome}}"),),
                "In the last five minutes. After a refused reload the old values stay; the log has the reason.",
            ),
            Panel(
                "Refused logins",
                "short",
                (Query(recent("hltnode_login_failures_total", "reason"), "{{reason}}"),),
                "In the last five minutes: unknown keys, missing or wrong tokens, commands without permission.",
            ),
            Panel(
                "Broken connections",
                "short",
                (
                    Query(
                        recent("hltnode_connection_events_total", "event", f'{NODES},event!="connected"'), "{{event}}"
                    ),
                ),
                "In the last five minutes: ended and refused connections, and failed handshakes.",
            ),
        ),
        "Process": (
            Panel("Memory", "bytes", (gauge("process_resident_memory_bytes"),)),
            Panel("CPU", "short", (Query(rate("process_cpu_seconds_total"), "{{instance}}"),), "Cores in use."),
            Panel("Event loop lag", "s", (gauge("hltnode_event_loop_lag_seconds"),), "", warn=0.05, alarm=0.25),
            Panel("Open files", "none", (gauge("process_open_fds"),)),
            Panel(
                "Started", "dateTimeFromNow", (Query(f"process_start_time_seconds{{{NODES}}} * 1000", "{{instance}}"),)
            ),
            Panel(
                "Time of a scrape",
                "s",
                (gauge("scrape_duration_seconds"),),
                "Measured by Prometheus.",
                warn=0.5,
                alarm=2.0,
            ),
        ),
    },
)
