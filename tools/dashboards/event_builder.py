"""Feeders, sources, fragments and MEPs."""

from tools.dashboards.elements import NODES, Board, Panel, Query, Shape, gauge, number, quantiles, rate, recent

BUILD = f'{NODES}, stage="build"'

EVENT_BUILDER = Board(
    uid="hltnode-event-builder",
    title="HLT1: event builder",
    numbers=(
        number("Feeders connected", f"sum(hlt1_feeders_connected{{{NODES}}})"),
        number("Feeders lost", f"sum(hlt1_feeders_lost{{{NODES}}})", warn=1, alarm=1),
        number("Sources expected", f"sum(hlt1_sources_expected{{{NODES}}})"),
        number("Sources silent", f"sum(hlt1_sources_silent{{{NODES}}})", warn=1, alarm=10),
        number("MEPs per second", f"sum({rate('hlt1_meps_closed_total')})"),
        number(
            "Fragments rejected per second",
            f"sum({rate('hlt1_fragments_rejected_total')})",
            warn=0.1,
            alarm=10,
        ),
    ),
    rows={
        "Fragments": (
            Panel("Data received", "Bps", (Query(rate("hlt1_fragment_bytes_received_total"), "{{instance}}"),)),
            Panel(
                "Fragments",
                "short",
                (
                    Query(rate("hlt1_fragments_received_total"), "received {{instance}}"),
                    Query(rate("hlt1_fragments_built_total"), "built {{instance}}"),
                ),
            ),
            Panel(
                "Fragments rejected",
                "short",
                (Query(rate("hlt1_fragments_rejected_total", "reason"), "{{reason}}"),),
                "By reason; normally all are 0.",
            ),
        ),
        "Feeders and sources": (
            Panel(
                "Feeders",
                "none",
                (
                    gauge("hlt1_feeders_connected", "connected {{instance}}"),
                    gauge("hlt1_feeders_expected", "expected {{instance}}"),
                    gauge("hlt1_feeders_lost", "lost {{instance}}"),
                ),
            ),
            Panel(
                "MEPs without a source",
                "short",
                (Query(f"topk(10, {rate('hlt1_source_missing_total', 'source')})", "source {{source}}"),),
                "The ten sources that are missing most often.",
            ),
            Panel(
                "Silence of sources",
                "s",
                (
                    Query(
                        f"topk(10, time() - hlt1_source_last_fragment_timestamp_seconds{{{NODES}}})",
                        "source {{source}} {{instance}}",
                    ),
                ),
                "Time since the last fragment, the ten longest.",
                warn=5,
                alarm=30,
            ),
            Panel(
                "Refused feeders",
                "short",
                (Query(recent("hlt1_hellos_refused_total", "reason"), "{{reason}}"),),
                "Hellos in the last five minutes; a feeder repeats its hello every second.",
            ),
            Panel(
                "Bytes by source",
                "Bps",
                (
                    Query(
                        f"topk(10, {rate('hlt1_source_fragment_bytes_received_total', 'source')})", "source {{source}}"
                    ),
                ),
                "The ten largest: a board with noise sends more than its neighbours.",
            ),
            Panel(
                "Silent sources",
                "none",
                (Query(f"sum by (feeder) (hlt1_sources_silent{{{NODES}}})", "feeder {{feeder}}"),),
                "By whether their feeder is connected or lost.",
            ),
        ),
        "MEPs": (
            Panel(
                "MEPs closed",
                "short",
                (Query(rate("hlt1_meps_closed_total", "reason"), "{{reason}}"),),
                "",
                Shape.STACKED,
            ),
            Panel("MEPs open", "none", (gauge("hlt1_meps_open"),)),
            Panel("Time to build a MEP", "s", quantiles("hlt1_mep_stage_seconds", where=BUILD)),
            Panel(
                "Credits and acknowledgements",
                "short",
                (
                    gauge("hlt1_credits_outstanding", "MEPs allowed and not opened {{instance}}"),
                    Query(rate("hlt1_meps_acknowledged_total"), "acknowledged per second {{instance}}"),
                    Query(rate("hlt1_nacks_sent_total"), "refused per second {{instance}}"),
                ),
            ),
            Panel(
                "Dead time",
                "percentunit",
                (Query(rate("hlt1_dead_time_seconds_total", "reason"), "{{reason}}"),),
                "Part of the time without a free credit, by what is waited for; summed over nodes.",
                Shape.STACKED,
            ),
            Panel("Runs kept", "none", (gauge("hlt1_runs_kept"),), "Runs that their feeders have not confirmed."),
        ),
    },
)
