"""Accepted events of lines, and their outputs."""

from tools.dashboards.elements import NODES, Board, Panel, Query, Shape, gauge, number, rate

TRIGGER = Board(
    uid="hltnode-trigger",
    title="HLT1: trigger rates",
    numbers=(
        number("Events per second", f"sum({rate('hltnode_events_processed_total')})"),
        number("Accepted per second", f"sum({rate('hltnode_events_accepted_total')})"),
        number(
            "Accepted",
            f"sum({rate('hltnode_events_accepted_total')}) / sum({rate('hltnode_events_processed_total')})",
            "percentunit",
        ),
        number("Events flagged per second", f"sum({rate('hltnode_events_flagged_total')})"),
        number("Written", f"sum({rate('hltnode_event_bytes_written_total')})", "Bps"),
        number("Decisions dropped per second", f"sum({rate('hltnode_decisions_dropped_total')})", warn=0.01, alarm=1),
    ),
    rows={
        "Lines": (
            Panel(
                "Events accepted by line",
                "short",
                (Query(rate("hltnode_line_accepts_total", "line"), "{{line}}"),),
                width=12,
            ),
            Panel(
                "Part of the events, by line",
                "percentunit",
                (
                    Query(
                        f"{rate('hltnode_line_accepts_total', 'line')}"
                        f" / on () group_left () sum({rate('hltnode_events_processed_total')})",
                        "{{line}}",
                    ),
                ),
                "A line whose fraction jumps has different data or a different threshold.",
                width=12,
            ),
        ),
        "Events": (
            Panel("Events with a flag", "short", (Query(rate("hltnode_events_flagged_total", "flag"), "{{flag}}"),)),
            Panel(
                "Objects of an event",
                "short",
                (
                    Query(
                        f"{rate('hltnode_objects_total', 'collection')}"
                        f" / on () group_left () sum({rate('hltnode_events_processed_total')})",
                        "{{collection}}",
                    ),
                ),
                "Mean number, by collection of the chain.",
            ),
            Panel(
                "Candidates left out of reports, lists left out of decisions",
                "short",
                (
                    Query(rate("hltnode_report_candidates_left_out_total"), "{{instance}}"),
                    Query(rate("hltnode_decision_lists_left_out_total"), "lists, {{instance}}"),
                ),
            ),
        ),
        "Time slices and windows": (
            Panel(
                "Slices",
                "short",
                (
                    Query(rate("hltnode_windows_total", "count", f'{NODES},count=~"slices|late_slices"'), "{{count}}"),
                    Query(rate("hltnode_slices_dropped_total", "rule"), "dropped by {{rule}}"),
                ),
                "Only a streaming chain has them. Late: closed by the deadline without a source.",
            ),
            Panel(
                "Windows kept",
                "short",
                (Query(rate("hltnode_windows_total", "count", f'{NODES},count=~"windows|records"'), "{{count}}"),),
            ),
            Panel(
                "Part of the time",
                "percentunit",
                (
                    Query(
                        rate("hltnode_stream_seconds_total", "time", f'{NODES},time!="taken"')
                        + " / on () group_left () clamp_min(sum("
                        + rate("hltnode_stream_seconds_total", where=f'{NODES},time="taken"')
                        + "), 1e-9)",
                        "{{time}}",
                    ),
                ),
                "Of the time of all slices: that of records of windows, of late slices, and of dropped ones.",
            ),
            Panel(
                "Late sources",
                "short",
                (Query(f"topk(10, {rate('hltnode_source_late_total', 'source')})", "source {{source}}"),),
                "Slices that were closed by their deadline without the source.",
            ),
            Panel(
                "Faults of windows",
                "short",
                (Query(rate("hltnode_window_faults_total", "fault"), "{{fault}}"),),
                "Windows, hits and bytes that are not kept as the chain wants.",
            ),
        ),
        "Combiner": (
            Panel(
                "Slices that were held",
                "short",
                (Query(rate("hltnode_held_slices_left_total", "end"), "{{end}}"),),
                "By their end: joined windows, or none in time or for lack of memory. Only nodes with a combiner.",
                Shape.STACKED,
            ),
            Panel(
                "Memory of held slices",
                "bytes",
                (
                    gauge("hltnode_held_bytes"),
                    gauge("hltnode_held_bytes_limit", "limit {{instance}}"),
                ),
            ),
            Panel(
                "Waiting",
                "s",
                (
                    gauge("hltnode_held_oldest_seconds", "oldest slice {{instance}}"),
                    gauge("hltnode_combiner_silent_seconds", "silence of the combiner {{instance}}"),
                ),
                "A combiner answers every second.",
            ),
            Panel(
                "Seeds and windows",
                "short",
                (
                    Query(rate("hltnode_seeds_sent_total"), "seeds {{instance}}"),
                    Query(rate("hltnode_combined_windows_total"), "windows {{instance}}"),
                ),
            ),
            Panel(
                "Faults with the combiner",
                "short",
                (Query(rate("hltnode_seed_faults_total", "fault"), "{{fault}}"),),
                "Messages, windows and slices that node and combiner could not exchange.",
            ),
            Panel(
                "At the combiner",
                "short",
                (
                    Query("sum by (end) (rate(hltnode_combiner_slices_total[$__rate_interval]))", "slices {{end}}"),
                    Query("sum by (node) (hltnode_combiner_node_lost)", "lost {{node}}"),
                    Query(
                        "sum by (reason) (rate(hltnode_combiner_refused_messages_total[$__rate_interval]))",
                        "refused {{reason}}",
                    ),
                ),
                "Of all combiners that Prometheus scrapes: decided slices, silent nodes, refused messages.",
            ),
        ),
        "Outputs": (
            Panel(
                "Event files",
                "Bps",
                (Query(rate("hltnode_event_bytes_written_total", "stream"), "{{stream}}"),),
                "",
                Shape.STACKED,
            ),
            Panel(
                "Files finished", "short", (Query(rate("hltnode_event_files_finished_total", "stream"), "{{stream}}"),)
            ),
            Panel(
                "Decisions",
                "short",
                (
                    Query(rate("hltnode_decisions_published_total"), "published {{instance}}"),
                    Query(rate("hltnode_decisions_dropped_total"), "dropped {{instance}}"),
                    gauge("hltnode_decision_subscriptions", "subscriptions {{instance}}"),
                ),
            ),
            Panel(
                "Messages sent", "short", (Query(rate("hltnode_output_messages_sent_total", "output"), "{{output}}"),)
            ),
            Panel(
                "Messages dropped",
                "short",
                (Query(rate("hltnode_output_messages_dropped_total", "output"), "{{output}}"),),
            ),
            Panel(
                "Consumers that do not keep up",
                "short",
                (
                    Query(rate("hltnode_output_blocked_total", "output"), "refused per second {{output}}"),
                    Query(f"sum by (output) (hltnode_output_messages_queued{{{NODES}}})", "kept for later {{output}}"),
                ),
            ),
        ),
    },
)
