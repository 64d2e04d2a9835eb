"""Feeders, sources, fragments and MEPs."""

from tools.dashboards.elements import NODES, Board, Panel, Query, Shape, gauge, number, quantiles, rate, recent

BUILD = f'{NODES}, stage="build"'

EVENT_BUILDER = Board(
    uid="hltnode-event-builder",
    title="HLT1: event builder",
    numbers=(
        number("Feeders connected", f"sum(hltnode_feeders_connected{{{NODES}}})"),
        number("Feeders lost", f"sum(hltnode_feeders_lost{{{NODES}}})", warn=1, alarm=1),
        number("Sources expected", f"sum(hltnode_sources_expected{{{NODES}}})"),
        number("Sources silent", f"sum(hltnode_sources_silent{{{NODES}}})", warn=1, alarm=10),
        number("MEPs per second", f"sum({rate('hltnode_meps_closed_total')})"),
        number(
            "Fragments rejected per second",
            f"sum({rate('hltnode_fragments_rejected_total')})",
            warn=0.1,
            alarm=10,
        ),
    ),
    rows={
        "Fragments": (
            Panel("Data received", "Bps", (Query(rate("hltnode_fragment_bytes_received_total"), "{{instance}}"),)),
            Panel(
                "Fragments",
                "short",
                (
                    Query(rate("hltnode_fragments_received_total"), "received {{instance}}"),
                    Query(rate("hltnode_fragments_built_total"), "built {{instance}}"),
                ),
            ),
            Panel(
                "Fragments rejected",
                "short",
                (Query(rate("hltnode_fragments_rejected_total", "reason"), "{{reason}}"),),
                "By reason; normally all are 0.",
            ),
        ),
        "Feeders and sources": (
            Panel(
                "Feeders",
                "none",
                (
                    gauge("hltnode_feeders_connected", "connected {{instance}}"),
                    gauge("hltnode_feeders_expected", "expected {{instance}}"),
                    gauge("hltnode_feeders_lost", "lost {{instance}}"),
                    gauge("hltnode_runs_deserted", "runs without feeders {{instance}}"),
                ),
            ),
            Panel(
                "MEPs without a source",
                "short",
                (Query(f"topk(10, {rate('hltnode_source_missing_total', 'source')})", "source {{source}}"),),
                "The ten sources that are missing most often.",
            ),
            Panel(
                "Silence of sources",
                "s",
                (
                    Query(
                        f"topk(10, (time() - hltnode_source_last_fragment_timestamp_seconds{{{NODES}}}) "
                        f"and on (instance) hltnode_run_active{{{NODES}}} == 1)",
                        "source {{source}} {{instance}}",
                    ),
                ),
                "Time since the last fragment in a run, the ten longest.",
                warn=5,
                alarm=30,
            ),
            Panel(
                "Refused feeders",
                "short",
                (Query(recent("hltnode_hellos_refused_total", "reason"), "{{reason}}"),),
                "Hellos in the last five minutes; a feeder repeats its hello every second.",
            ),
            Panel(
                "Bytes by source",
                "Bps",
                (
                    Query(
                        f"topk(10, {rate('hltnode_source_fragment_bytes_received_total', 'source')})",
                        "source {{source}}",
                    ),
                ),
                "The ten largest: a board with noise sends more than its neighbours.",
            ),
            Panel(
                "Silent sources",
                "none",
                (Query(f"sum by (feeder) (hltnode_sources_silent{{{NODES}}})", "feeder {{feeder}}"),),
                "By state of their feeder: connected or lost.",
            ),
        ),
        "Datagrams": (
            Panel(
                "Datagrams lost",
                "short",
                (
                    Query(rate("hltnode_udp_datagrams_dropped_total"), "dropped by the kernel {{instance}}"),
                    Query(rate("hltnode_udp_meps_lost_total"), "whole MEPs {{instance}}"),
                ),
                "Dropped: a receive buffer was full. Whole MEPs: not one of their datagrams came.",
            ),
            Panel(
                "Datagrams refused",
                "short",
                (Query(rate("hltnode_udp_datagrams_refused_total", "reason"), "{{reason}}"),),
                "By reason; normally all are 0.",
            ),
        ),
        "MEPs": (
            Panel(
                "MEPs closed",
                "short",
                (Query(rate("hltnode_meps_closed_total", "reason"), "{{reason}}"),),
                "",
                Shape.STACKED,
            ),
            Panel("MEPs open", "none", (gauge("hltnode_meps_open"),)),
            Panel("Time to build a MEP", "s", quantiles("hltnode_mep_stage_seconds", where=BUILD)),
            Panel(
                "Credits and acknowledgements",
                "short",
                (
                    gauge("hltnode_credits_outstanding", "MEPs allowed and not opened {{instance}}"),
                    Query(rate("hltnode_meps_acknowledged_total"), "acknowledged per second {{instance}}"),
                    Query(rate("hltnode_nacks_sent_total"), "refused per second {{instance}}"),
                ),
            ),
            Panel(
                "Dead time",
                "percentunit",
                (Query(rate("hltnode_dead_time_seconds_total", "reason"), "{{reason}}"),),
                "Fraction of the time without a free credit, by cause; summed over nodes.",
                Shape.STACKED,
            ),
            Panel("Runs kept", "none", (gauge("hltnode_runs_kept"),), "Runs that their feeders have not confirmed."),
        ),
    },
)
