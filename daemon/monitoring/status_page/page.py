"""The status page. Some of its content comes from the network, so the template escapes all values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from hltnode.daemon.common.recent_lines import RecentLine
from hltnode.daemon.monitoring.health import Condition
from hltnode.daemon.monitoring.status_page.assets import RELOAD_SECONDS, STATUS_SCRIPT, STYLE, TEMPLATES
from hltnode.daemon.monitoring.status_page.curves import CURVE_HEIGHT, CURVE_WIDTH, Curves
from hltnode.daemon.monitoring.status_page.drawings import HEIGHT, WIDTH, DrawnHistogram
from hltnode.daemon.monitoring.status_page.missing import SHOWN_MISSING, MissingRow
from hltnode.daemon.monitoring.status_page.numbers import counted, number, seconds
from hltnode.daemon.monitoring.status_page.rates import Rates
from hltnode.daemon.monitoring.status_page.sources import DetectorRow, SourceRow
from hltnode.processing.framework.page_templates import render

SHOWN_FEEDERS = 50
SHOWN_NODES = 100


@dataclass(frozen=True, slots=True)
class EventPicture:
    """The last drawn accepted event as SVG, or the reason for its absence."""

    svg: str
    title: str
    lines: Sequence[str]
    age: float
    """Seconds since the drawing."""
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContent:
    """Content of the page.

    status: content of /status; problems: why the node is not ready, by condition; picture: None if pictures are off.
    commands: commands that the state allows; None: the node takes no commands over HTTP.
    farm: addresses of the nodes of the farm; documentation: address of the documentation, if configured.
    time, histograms_time: times of the page and of its histograms (UTC).
    """

    status: Mapping[str, Any]
    missing: Sequence[MissingRow]
    problems: Mapping[Condition, str]
    rates: Rates
    detectors: Sequence[DetectorRow]
    worst_sources: Sequence[SourceRow]
    histograms: Sequence[DrawnHistogram]
    picture: EventPicture | None
    curves: Curves
    log: Sequence[RecentLine]
    commands: Sequence[str] | None
    farm: Sequence[str]
    documentation: str | None
    time: str
    histograms_time: str


def status_page(content: PageContent) -> bytes:
    """The page as HTML; may run in any thread."""
    status, rates = content.status, content.rates
    totals = status["events"]["accepted_by_line"]
    lines = [(name, rates.lines[name], totals[name]) for name in status["lines"]]
    active = sorted((line for line in lines if line[1] or line[2]), key=lambda line: (-line[1], -line[2]))
    return render(
        "status.html",
        TEMPLATES,
        content=content,
        status=status,
        rates=rates,
        active_lines=active,
        quiet_lines=[name for name, rate, total in lines if not (rate or total)],
        feeders=status["feeders"][:SHOWN_FEEDERS],
        more_feeders=max(0, len(status["feeders"]) - SHOWN_FEEDERS),
        missing=content.missing[:SHOWN_MISSING],
        more_missing=max(0, content.status["n_missing_feeders"] - SHOWN_MISSING),
        farm=content.farm[:SHOWN_NODES],
        fraction=rates.accepted / rates.events if rates.events else None,
        number=number,
        counted=counted,
        seconds=seconds,
        width=WIDTH,
        height=HEIGHT,
        curve_width=CURVE_WIDTH,
        curve_height=CURVE_HEIGHT,
        style=Markup(STYLE),
        script=Markup(STATUS_SCRIPT),
        refresh=RELOAD_SECONDS,
        # The node creates the SVG from numbers only.
        svg=Markup(content.picture.svg) if content.picture is not None else "",
    ).encode()
