"""The elements of a dashboard, independent of Grafana."""

from dataclasses import dataclass
from enum import StrEnum, unique

# The nodes are selected at the top of each dashboard.
NODES = 'instance=~"$instance"'


@unique
class Shape(StrEnum):
    """Kind of a panel."""

    CURVES = "curves"
    STACKED = "stacked"
    NUMBER = "number"
    STATES = "states"
    TABLE = "table"


@dataclass(frozen=True)
class Query:
    """A PromQL expression, in which NODES stands for the selected instances, and the name of its curves."""

    expression: str
    legend: str


@dataclass(frozen=True)
class Panel:
    """One panel: title, unit and curves; values above `warn` are yellow, above `alarm` red.

    With `low_is_bad` values below these limits are yellow and red.
    """

    title: str
    unit: str
    queries: tuple[Query, ...]
    description: str = ""
    shape: Shape = Shape.CURVES
    warn: float | None = None
    alarm: float | None = None
    low_is_bad: bool = False
    width: int = 8


@dataclass(frozen=True)
class Distribution:
    """A monitoring histogram of the nodes: bars for the selected time, and with `over_time` a heat map over time."""

    title: str
    histogram: str
    unit: str
    over_time: bool = False


@dataclass(frozen=True)
class Board:
    """One dashboard: numbers at the top, and rows of panels by title."""

    uid: str
    title: str
    numbers: tuple[Panel, ...]
    rows: dict[str, tuple[Panel | Distribution, ...]]


def rate(metric: str, by: str = "instance", where: str = NODES) -> str:
    """Sum of the rates of a counter."""
    return f"sum by ({by}) (rate({metric}{{{where}}}[$__rate_interval]))"


def recent(metric: str, by: str, where: str = NODES) -> str:
    """Increase of a counter of rare events in the last five minutes."""
    return f"sum by ({by}) (increase({metric}{{{where}}}[5m]))"


def gauge(metric: str, legend: str = "{{instance}}") -> Query:
    """A gauge without a function."""
    return Query(f"{metric}{{{NODES}}}", legend)


def quantile(metric: str, fraction: float, by: str = "instance", where: str = NODES) -> str:
    """A quantile of a histogram."""
    inner = f"sum by (le, {by}) (rate({metric}_bucket{{{where}}}[$__rate_interval]))"
    return f"histogram_quantile({fraction}, {inner})"


def quantiles(metric: str, by: str = "instance", where: str = NODES) -> tuple[Query, ...]:
    """Median and 99 % quantile of a histogram."""
    return (
        Query(quantile(metric, 0.5, by, where), f"median {{{{{by}}}}}"),
        Query(quantile(metric, 0.99, by, where), f"99 % {{{{{by}}}}}"),
    )


def number(title: str, expression: str, unit: str = "short", **limits: float | bool) -> Panel:
    """A number at the top of a dashboard."""
    return Panel(title, unit, (Query(expression, title),), shape=Shape.NUMBER, width=4, **limits)  # type: ignore[arg-type]
