"""Write the Grafana dashboard; needs the extra `dashboards` (grafana-foundation-sdk).

python tools/generate_dashboard.py            write deploy/grafana/hltnode.json
python tools/generate_dashboard.py --check    exit with 1 if the file is not what this program writes
"""

import argparse
import string
import sys
from dataclasses import dataclass
from pathlib import Path

from grafana_foundation_sdk.builders import bargauge, common, dashboard, heatmap, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import (
    BarGaugeDisplayMode,
    BarGaugeValueMode,
    BigValueColorMode,
    LegendDisplayMode,
    LegendPlacement,
    VizOrientation,
)
from grafana_foundation_sdk.models.dashboard import DataSourceRef, Threshold, ThresholdsMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

DASHBOARD = Path(__file__).resolve().parents[1] / "deploy" / "grafana" / "hltnode.json"

# The data source and the nodes are chosen at the top of the dashboard.
SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
NODES = 'instance=~"$instance"'
BUILD = f'{NODES}, stage="build"'


@dataclass(frozen=True)
class Query:
    """A PromQL expression, in which NODES selects the chosen instances, and the name of its curves."""

    expression: str
    legend: str


@dataclass(frozen=True)
class Panel:
    """One panel: its title, unit, and curves."""

    title: str
    unit: str
    queries: tuple[Query, ...]
    description: str = ""


@dataclass(frozen=True)
class Distribution:
    """A monitoring histogram of the nodes: as bars over the chosen time, and with `over_time` as a picture of it."""

    title: str
    histogram: str
    unit: str
    over_time: bool = False


def rate(metric: str, by: str = "instance") -> str:
    """Sum of the rates of a counter."""
    return f"sum by ({by}) (rate({metric}{{{NODES}}}[$__rate_interval]))"


def recent(metric: str, by: str) -> str:
    """Increase of a counter of rare events in the last five minutes, without the series that are 0."""
    return f"sum by ({by}) (increase({metric}{{{NODES}}}[5m])) > 0"


def quantile(metric: str, fraction: float, by: str = "instance", where: str = NODES) -> str:
    """A quantile of a histogram."""
    inner = f"sum by (le, {by}) (rate({metric}_bucket{{{where}}}[$__rate_interval]))"
    return f"histogram_quantile({fraction}, {inner})"


OVERVIEW = (
    Panel("Nodes that are ready", "none", (Query(f"sum(hlt1_ready{{{NODES}}})", "ready"),)),
    Panel("Events per second", "short", (Query(f"sum({rate('hlt1_events_processed_total')})", "processed"),)),
    Panel(
        "Accepted",
        "percentunit",
        (
            Query(
                f"sum({rate('hlt1_events_accepted_total')}) / sum({rate('hlt1_events_processed_total')})",
                "accepted",
            ),
        ),
    ),
    Panel(
        "Incomplete MEPs",
        "percentunit",
        (
            Query(
                f'sum(rate(hlt1_meps_closed_total{{{NODES},reason!="complete"}}[$__rate_interval]))'
                f" / sum({rate('hlt1_meps_closed_total')})",
                "incomplete",
            ),
        ),
    ),
)

ROWS: dict[str, tuple[Panel | Distribution, ...]] = {
    "Input": (
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
            (Query(rate("hlt1_fragments_rejected_total", "reason") + " > 0", "{{reason}}"),),
            "By reason; normally empty.",
        ),
        Panel(
            "Feeders",
            "none",
            (
                Query(f"hlt1_feeders_connected{{{NODES}}}", "connected {{instance}}"),
                Query(f"hlt1_feeders_expected{{{NODES}}}", "expected {{instance}}"),
            ),
        ),
        Panel(
            "MEPs without a source",
            "short",
            (Query(f"topk(10, {rate('hlt1_source_missing_total', 'source')} > 0)", "source {{source}}"),),
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
        ),
    ),
    "Event builder": (
        Panel("MEPs closed", "short", (Query(rate("hlt1_meps_closed_total", "reason"), "{{reason}}"),)),
        Panel("MEPs open", "none", (Query(f"hlt1_meps_open{{{NODES}}}", "{{instance}}"),)),
        Panel(
            "Time to build a MEP",
            "s",
            (
                Query(quantile("hlt1_mep_stage_seconds", 0.5, where=BUILD), "median {{instance}}"),
                Query(quantile("hlt1_mep_stage_seconds", 0.99, where=BUILD), "99 % {{instance}}"),
            ),
        ),
        Panel(
            "Credits and acknowledgements",
            "short",
            (
                Query(f"hlt1_credits_outstanding{{{NODES}}}", "MEPs allowed and not opened {{instance}}"),
                Query(rate("hlt1_meps_acknowledged_total"), "acknowledged per second {{instance}}"),
                Query(rate("hlt1_nacks_sent_total"), "refused per second {{instance}}"),
            ),
        ),
    ),
    "Pipeline": (
        Panel("Slots by state", "none", (Query(f"sum by (state) (hlt1_slots{{{NODES}}})", "{{state}}"),)),
        Panel(
            "Time of a batch by stage",
            "s",
            (
                Query(quantile("hlt1_stage_seconds", 0.5, "stage"), "median {{stage}}"),
                Query(quantile("hlt1_stage_seconds", 0.99, "stage"), "99 % {{stage}}"),
            ),
        ),
        Panel(
            "From the first fragment to the decision, by stage",
            "s",
            (
                Query(quantile("hlt1_mep_stage_seconds", 0.5, "stage"), "median {{stage}}"),
                Query(quantile("hlt1_mep_stage_seconds", 0.99, "stage"), "99 % {{stage}}"),
            ),
        ),
        Panel(
            "From the first fragment to the decision",
            "s",
            (
                Query(quantile("hlt1_mep_latency_seconds", 0.5), "median {{instance}}"),
                Query(quantile("hlt1_mep_latency_seconds", 0.99), "99 % {{instance}}"),
            ),
        ),
        Panel(
            "From close to decision",
            "s",
            (
                Query(quantile("hlt1_end_to_end_seconds", 0.5), "median {{instance}}"),
                Query(quantile("hlt1_end_to_end_seconds", 0.99), "99 % {{instance}}"),
            ),
        ),
        Panel(
            "Dead time",
            "percentunit",
            (Query(rate("hlt1_dead_time_seconds_total", "reason"), "{{reason}}"),),
            "Fraction of the time without a free credit, summed over nodes.",
        ),
    ),
    "Masses": (
        Distribution("K0S to two pions", "Hlt1KsToPiPi_mass", "MeV", over_time=True),
        Distribution("φ to two kaons", "phi_mass", "MeV", over_time=True),
        Distribution("J/ψ to two muons", "jpsi_mass", "MeV", over_time=True),
        Distribution("D0 to a kaon and a pion", "Hlt1D2KPi_mass", "MeV", over_time=True),
    ),
    "Detectors and tracks": (
        Distribution("Primary vertices along the beam", "pv_z", "mm", over_time=True),
        Distribution("VELO tracks of an event", "velo_tracks", "tracks"),
        Distribution("Long tracks of an event", "long_tracks", "tracks"),
        Distribution("pt of long tracks", "long_pt", "MeV"),
        Distribution("VELO hits along the beam", "velo_hit_z", "mm"),
        Distribution("UT hits across the beam", "ut_hit_x", "mm"),
        Distribution("SciFi hits across the beam", "scifi_hit_x", "mm"),
        Distribution("Muon hits across the beam", "muon_hit_x", "mm"),
        Panel(
            "Values that are not a number",
            "short",
            (
                Query(
                    "sum by (histogram) (increase(hlt1_histogram_outside_total"
                    f'{{{NODES},kind="not_a_number"}}[5m])) > 0',
                    "{{histogram}}",
                ),
            ),
            "In the last five minutes; some histograms have none by nature, others show a defect of a fit.",
        ),
    ),
    "Decisions and output": (
        Panel("Events accepted by line", "short", (Query(rate("hlt1_line_accepts_total", "line"), "{{line}}"),)),
        Panel("Events with a flag", "short", (Query(rate("hlt1_events_flagged_total", "flag"), "{{flag}}"),)),
        Panel(
            "Decisions",
            "short",
            (
                Query(rate("hlt1_decisions_published_total"), "published {{instance}}"),
                Query(rate("hlt1_decisions_dropped_total"), "dropped {{instance}}"),
                Query(f"hlt1_decision_subscriptions{{{NODES}}}", "subscriptions {{instance}}"),
            ),
        ),
        Panel(
            "Event files",
            "Bps",
            (Query(rate("hlt1_event_bytes_written_total", "stream"), "{{stream}}"),),
        ),
        Panel(
            "Waiting for the disk",
            "bytes",
            (Query(f"hlt1_event_bytes_pending{{{NODES}}}", "{{instance}}"),),
        ),
        Panel("Failed disk writes", "short", (Query(rate("hlt1_write_errors_total", "kind"), "{{kind}}"),)),
    ),
    "Operation": (
        Panel(
            "Reloads of the configuration",
            "short",
            (Query(recent("hlt1_config_reloads_total", "instance, outcome"), "{{outcome}} {{instance}}"),),
            "In the last five minutes. After a refused one the old values stay in force; the log has the reason.",
        ),
        Panel(
            "Refused logins",
            "short",
            (Query(recent("hlt1_login_failures_total", "socket, reason"), "{{socket}} {{reason}}"),),
            "In the last five minutes: unknown keys, missing or wrong tokens, commands without the role of operator.",
        ),
        Panel(
            "Refused feeders",
            "short",
            (Query(recent("hlt1_hellos_refused_total", "instance, reason"), "{{reason}} {{instance}}"),),
            "Hellos in the last five minutes; a feeder repeats its hello every second.",
        ),
        Panel(
            "Broken connections",
            "short",
            (
                Query(
                    f'sum by (socket, event) (increase(hlt1_connection_events_total{{{NODES},event!="connected"}}[5m]))'
                    " > 0",
                    "{{socket}} {{event}}",
                ),
            ),
            "In the last five minutes: ended, not accepted, and handshakes that failed.",
        ),
    ),
    "Process": (
        Panel("Memory", "bytes", (Query(f"process_resident_memory_bytes{{{NODES}}}", "{{instance}}"),)),
        Panel("CPU", "short", (Query(rate("process_cpu_seconds_total"), "{{instance}}"),)),
        Panel("Event loop lag", "s", (Query(f"hlt1_event_loop_lag_seconds{{{NODES}}}", "{{instance}}"),)),
        Panel(
            "Contained errors",
            "short",
            (
                Query(rate("hlt1_exceptions_total", "where"), "{{where}}"),
                Query(rate("hlt1_backend_errors_total"), "back end {{instance}}"),
            ),
        ),
    ),
}


def build() -> str:
    """The dashboard as JSON text."""
    board = (
        dashboard.Dashboard("HLT1 trigger nodes")
        .uid("hltnode")
        .tags(["hlt1", "daq"])
        .description("Written by tools/generate_dashboard.py; changes made in Grafana are lost.")
        .refresh("10s")
        .time("now-1h", "now")
        .timezone("utc")
        .with_variable(dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
        .with_variable(
            dashboard.QueryVariable("instance")
            .label("Node")
            .datasource(SOURCE)
            .query("label_values(hlt1_build_info, instance)")
            .multi(True)
            .include_all(True)
            .all_value(".*")
        )
    )
    for number in OVERVIEW:
        board = board.with_panel(_number(number).height(4).span(6))
    for title, panels in ROWS.items():
        board = board.with_row(dashboard.Row(title))
        for panel in panels:
            if isinstance(panel, Panel):
                board = board.with_panel(_curves(panel).height(8).span(8 if len(panels) == 6 else 6))
                continue
            board = board.with_panel(_bars(panel).height(8).span(12 if panel.over_time else 6))
            if panel.over_time:
                board = board.with_panel(_over_time(panel).height(8).span(12))
    text: str = JSONEncoder(sort_keys=True, indent=2).encode(board.build())
    return text + "\n"


def main() -> int:
    """Write or check the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing, fail if the file is out of date")
    check = parser.parse_args().check
    text = build()
    if DASHBOARD.exists() and DASHBOARD.read_text(encoding="utf-8") == text:
        return 0
    if check:
        print(f"{DASHBOARD} is out of date: run tools/generate_dashboard.py", file=sys.stderr)
        return 1
    DASHBOARD.parent.mkdir(parents=True, exist_ok=True)
    DASHBOARD.write_text(text, encoding="utf-8")
    print(f"{DASHBOARD} written")
    return 0


def _number(panel: Panel) -> stat.Panel:
    thresholds = dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps([Threshold(color="blue")])
    picture = stat.Panel().title(panel.title).unit(panel.unit).datasource(SOURCE).thresholds(thresholds)
    latest = common.ReduceDataOptions().calcs(["lastNotNull"])
    picture = picture.color_mode(BigValueColorMode.VALUE).reduce_options(latest)
    for name, query in zip(string.ascii_uppercase, panel.queries, strict=False):
        picture = picture.with_target(_target(name, query))
    return picture


def _curves(panel: Panel) -> timeseries.Panel:
    legend = (
        common.VizLegendOptions()
        .display_mode(LegendDisplayMode.LIST)
        .placement(LegendPlacement.BOTTOM)
        .show_legend(True)
    )
    picture = timeseries.Panel().title(panel.title).unit(panel.unit).datasource(SOURCE).legend(legend).min(0)
    if panel.description:
        picture = picture.description(panel.description)
    for name, query in zip(string.ascii_uppercase, panel.queries, strict=False):
        picture = picture.with_target(_target(name, query))
    return picture


def _entries(of: Distribution, time: str) -> prometheus.Dataquery:
    """Entries of each bucket; Grafana makes single buckets of cumulative ones in the format of heatmaps."""
    selector = f'{{{NODES},histogram="{of.histogram}"}}'
    expression = f"sum by (le) (increase(hlt1_histogram_bucket{selector}[{time}]))"
    return _target("A", Query(expression, "{{le}}")).format(PromQueryFormat.HEATMAP)


def _bars(of: Distribution) -> bargauge.Panel:
    """The distribution over the chosen time, one bar for each bucket, named by its upper end."""
    return (
        bargauge.Panel()
        .title(of.title)
        .description(
            f"Entries of {of.histogram} in the chosen time; below each bar the upper end of its bin, {of.unit}."
        )
        .datasource(SOURCE)
        .unit("short")
        .min(0)
        .orientation(VizOrientation.VERTICAL)
        .display_mode(BarGaugeDisplayMode.BASIC)
        .value_mode(BarGaugeValueMode.HIDDEN)
        .min_viz_width(0)
        .show_unfilled(False)
        .thresholds(dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps([Threshold(color="blue")]))
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .with_target(_entries(of, "$__range").instant())
    )


def _over_time(of: Distribution) -> heatmap.Panel:
    """The distribution as it changes with time."""
    return (
        heatmap.Panel()
        .title(f"{of.title}, over time")
        .description(f"Entries of {of.histogram}; up: {of.unit}.")
        .datasource(SOURCE)
        .calculate(False)
        .with_target(_entries(of, "$__rate_interval"))
    )


def _target(name: str, query: Query) -> prometheus.Dataquery:
    return prometheus.Dataquery().ref_id(name).expr(query.expression).legend_format(query.legend).datasource(SOURCE)


if __name__ == "__main__":
    sys.exit(main())
