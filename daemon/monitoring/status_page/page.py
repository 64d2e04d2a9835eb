"""The status page. Some of its content comes from the network, so the template escapes all values."""

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from hltnode.daemon.common.recent_lines import RecentLine
from hltnode.daemon.monitoring.health import Condition
from hltnode.daemon.monitoring.status_page.drawings import HEIGHT, WIDTH, DrawnHistogram
from hltnode.daemon.monitoring.status_page.rates import Rates
from hltnode.daemon.monitoring.status_page.sources import DetectorRow, SourceRow
from hltnode.processing.framework.page_templates import render

HTML_TYPE = "text/html; charset=utf-8"
SHOWN_FEEDERS = 50
SHOWN_REFRESH_SECONDS = 5
_TEMPLATES = Path(__file__).parent / "templates"
_STYLE = (_TEMPLATES / "status.css").read_text()
_SCRIPT = (_TEMPLATES / "status.js").read_text()


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


POLICY = (
    f"default-src 'none'; style-src {_hash(_STYLE)}; script-src {_hash(_SCRIPT)}; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy: the browser uses only the script and the style of this page, even if the content contains
others."""


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
    """status: content of /status; problems: why the node is not ready, by condition; picture: None if pictures are
    off."""

    status: Mapping[str, Any]
    problems: Mapping[Condition, str]
    rates: Rates
    detectors: Sequence[DetectorRow]
    worst_sources: Sequence[SourceRow]
    histograms: Sequence[DrawnHistogram]
    picture: EventPicture | None
    log: Sequence[RecentLine]
    time: str


def status_page(content: PageContent) -> bytes:
    """The page as HTML; may run in any thread."""
    status, rates = content.status, content.rates
    totals = status["events"]["accepted_by_line"]
    lines = [(name, rates.lines[name], totals[name]) for name in status["lines"]]
    active = sorted((line for line in lines if line[1] or line[2]), key=lambda line: (-line[1], -line[2]))
    return render(
        "status.html",
        _TEMPLATES,
        content=content,
        status=status,
        rates=rates,
        active_lines=active,
        quiet_lines=[name for name, rate, total in lines if not (rate or total)],
        feeders=status["feeders"][:SHOWN_FEEDERS],
        more_feeders=max(0, len(status["feeders"]) - SHOWN_FEEDERS),
        fraction=rates.accepted / rates.events if rates.events else None,
        number=number,
        seconds=seconds,
        width=WIDTH,
        height=HEIGHT,
        style=Markup(_STYLE),
        script=Markup(_SCRIPT),
        refresh=SHOWN_REFRESH_SECONDS,
        # The node creates the SVG from numbers only.
        svg=Markup(content.picture.svg) if content.picture is not None else "",
    ).encode()


def number(value: float) -> str:
    """A number with three digits and an SI prefix: 1234567 is "1.23 M"."""
    if not math.isfinite(value):
        return "–"
    for size, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 0.9995 * size:
            return f"{_three_digits(value / size)} {prefix}"
    return f"{_three_digits(value)} "


def _three_digits(value: float) -> str:
    digits = 0 if abs(value) >= 99.95 or value == int(value) else 1 if abs(value) >= 9.995 else 2
    return f"{value:.{digits}f}"


def seconds(value: float | None) -> str:
    """A time in a suitable unit; None: never."""
    if value is None:
        return "never"
    if value < 1:
        return f"{value * 1e3:.0f} ms"
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.0f} h"
