"""Converts elements of a dashboard to Grafana's JSON; needs the extra `dashboards` (grafana-foundation-sdk)."""

import string
from typing import Any

from grafana_foundation_sdk.builders import (
    bargauge,
    common,
    dashboard,
    heatmap,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import (
    BarGaugeDisplayMode,
    BarGaugeValueMode,
    BigValueColorMode,
    GraphThresholdsStyleMode,
    LegendDisplayMode,
    LegendPlacement,
    StackingMode,
    VizOrientation,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
    Threshold,
    ThresholdsMode,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from tools.dashboards.elements import NODES, Board, Distribution, Panel, Query, Shape

# The data source is selected at the top of the dashboard.
SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
TAG = "hltnode"
# A region for each active run.
RUNS = f'count by (run) (hltnode_run_info{{{NODES}, run!="0"}} and on (instance) hltnode_run_active{{{NODES}}} == 1)'


def render(board: Board) -> str:
    """The dashboard as JSON text."""
    built = (
        dashboard.Dashboard(board.title)
        .uid(board.uid)
        .tags([TAG, "daq"])
        .description("Written by tools/generate_dashboard.py; changes made in Grafana are lost.")
        .refresh("10s")
        .time("now-1h", "now")
        .timezone("utc")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .link(
            dashboard.DashboardLink("HLT1")
            .type(DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .include_vars(True)
            .keep_time(True)
        )
        .annotation(
            dashboard.AnnotationQuery().name("Runs").datasource(SOURCE).enable(True).icon_color("blue").expr(RUNS)
        )
        .with_variable(dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
        .with_variable(
            dashboard.QueryVariable("instance")
            .label("Node")
            .datasource(SOURCE)
            .query("label_values(hltnode_build_info, instance)")
            .multi(True)
            .include_all(True)
            .all_value(".*")
        )
    )
    for panel in board.numbers:
        built = built.with_panel(_panel(panel).height(4).span(panel.width))
    for title, panels in board.rows.items():
        built = built.with_row(dashboard.Row(title))
        for each in panels:
            if isinstance(each, Panel):
                built = built.with_panel(_panel(each).height(8).span(each.width))
                continue
            built = built.with_panel(_bars(each).height(8).span(12 if each.over_time else 6))
            if each.over_time:
                built = built.with_panel(_over_time(each).height(8).span(12))
    text: str = JSONEncoder(sort_keys=True, indent=2).encode(built.build())
    return text + "\n"


def _panel(panel: Panel) -> Any:
    """The builder of a panel, with its queries and thresholds."""
    makers = {
        Shape.CURVES: _curves,
        Shape.STACKED: _stacked,
        Shape.NUMBER: _number,
        Shape.STATES: _states,
        Shape.TABLE: _table,
    }
    picture: Any = makers[panel.shape](panel)
    picture = picture.title(panel.title).unit(panel.unit).datasource(SOURCE)
    if panel.shape is not Shape.TABLE:
        picture = picture.thresholds(_thresholds(panel))
    if panel.description:
        picture = picture.description(panel.description)
    for name, query in zip(string.ascii_uppercase, panel.queries, strict=False):
        target = _target(name, query)
        picture = picture.with_target(
            target.instant().format(PromQueryFormat.TABLE) if panel.shape is Shape.TABLE else target
        )
    return picture


def _thresholds(panel: Panel) -> dashboard.ThresholdsConfig:
    if panel.warn is None or panel.alarm is None:
        steps = [Threshold(color="blue")]
    elif panel.low_is_bad:
        steps = [
            Threshold(color="red"),
            Threshold(color="yellow", value=panel.alarm),
            Threshold(color="green", value=panel.warn),
        ]
    else:
        steps = [
            Threshold(color="green"),
            Threshold(color="yellow", value=panel.warn),
            Threshold(color="red", value=panel.alarm),
        ]
    return dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)


def _number(_panel: Panel) -> stat.Panel:
    latest = common.ReduceDataOptions().calcs(["lastNotNull"])
    return stat.Panel().color_mode(BigValueColorMode.VALUE).reduce_options(latest)


def _curves(panel: Panel) -> timeseries.Panel:
    legend = (
        common.VizLegendOptions()
        .display_mode(LegendDisplayMode.LIST)
        .placement(LegendPlacement.BOTTOM)
        .show_legend(True)
    )
    picture = timeseries.Panel().legend(legend).min(0)
    if panel.warn is not None:
        picture = picture.thresholds_style(common.GraphThresholdsStyleConfig().mode(GraphThresholdsStyleMode.DASHED))
    return picture


def _stacked(panel: Panel) -> timeseries.Panel:
    return _curves(panel).stacking(common.StackingConfig().mode(StackingMode.NORMAL)).fill_opacity(30)


def _states(_panel: Panel) -> statetimeline.Panel:
    return statetimeline.Panel().merge_values(True)


def _table(_panel: Panel) -> table.Panel:
    hidden = {"Time": True, "Value": True, "job": True, "__name__": True}
    return table.Panel().with_transformation(
        DataTransformerConfig(id_val="organize", options={"excludeByName": hidden})
    )


def _entries(of: Distribution, time: str) -> prometheus.Dataquery:
    """Entries of each bucket; in the heat-map format, Grafana converts cumulative buckets to single ones."""
    selector = f'{{{NODES},histogram="{of.histogram}"}}'
    expression = f"sum by (le) (increase(hltnode_histogram_bucket{selector}[{time}]))"
    return _target("A", Query(expression, "{{le}}")).format(PromQueryFormat.HEATMAP)


def _bars(of: Distribution) -> bargauge.Panel:
    """The distribution in the selected time, one bar per bucket, named by its upper end."""
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
    """The distribution over time."""
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
