"""The farm page. All texts of other nodes come from the network, so the template escapes all values."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from hltnode.daemon.monitoring.farm_page.farm_reader import NodeView
from hltnode.daemon.monitoring.farm_page.overview import Overview
from hltnode.daemon.monitoring.status_page.assets import REFRESH_SCRIPT, RELOAD_SECONDS, STYLE
from hltnode.daemon.monitoring.status_page.assets import TEMPLATES as SHARED_TEMPLATES
from hltnode.daemon.monitoring.status_page.numbers import counted, latency, number, seconds
from hltnode.processing.framework.page_templates import render

_TEMPLATES = Path(__file__).parent / "templates"
# The first answers come within this time; before it, a row without an answer is not red.
FIRST_ANSWER_NS = 5_000_000_000


@dataclass(frozen=True, slots=True)
class FarmRow:
    """A node: its overview if it answers, otherwise the reason. `age`: time since its last answer (s); None: never."""

    address: str
    overview: Overview | None
    age: float | None
    reason: str

    @property
    def is_lost(self) -> bool:
        """Whether the node does not answer."""
        return bool(self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class FarmSums:
    """Sums of the nodes that answer; `dead_time` is a mean of nodes with a run."""

    answering: int
    running: int
    ready: int
    events: float
    accepted: float
    bytes: float
    dead_time: float | None
    feeders: int
    missing_feeders: int
    silent_sources: int


def farm_rows(views: Sequence[NodeView], now_ns: int, fresh_ns: int) -> Sequence[FarmRow]:
    """The rows: first the nodes that do not answer, then the others in the configured order."""
    rows = [_row(view, now_ns, fresh_ns) for view in views]
    return sorted(rows, key=lambda row: not row.is_lost)


def _row(view: NodeView, now_ns: int, fresh_ns: int) -> FarmRow:
    age_ns = None if view.answered_ns is None else now_ns - view.answered_ns
    age = None if age_ns is None else age_ns * 1e-9
    if view.error:
        return FarmRow(view.address, None, age, view.error)
    if view.overview is not None and age_ns is not None and age_ns <= fresh_ns:
        return FarmRow(view.address, view.overview, age, "")
    # A request that hangs, for example in the look-up of a name, has neither an answer nor an error.
    since_ns = view.answered_ns if view.overview is not None else view.since_ns
    hangs = since_ns is not None and now_ns - since_ns > FIRST_ANSWER_NS
    return FarmRow(view.address, None, age, "no answer" if hangs else "")


def farm_sums(rows: Sequence[FarmRow]) -> FarmSums:
    """Sums over the rows."""
    found = [row.overview for row in rows if row.overview is not None]
    with_run = [it.dead_time for it in found if it.run is not None]
    return FarmSums(
        answering=len(found),
        running=sum(it.state == "running" for it in found),
        ready=sum(it.ready for it in found),
        events=sum(it.events_per_s for it in found),
        accepted=sum(it.accepted_per_s for it in found),
        bytes=sum(it.bytes_per_s for it in found),
        dead_time=sum(with_run) / len(with_run) if with_run else None,
        feeders=sum(it.feeders for it in found),
        missing_feeders=sum(it.n_missing_feeders for it in found),
        silent_sources=sum(it.n_silent_sources for it in found),
    )


def farm_page(rows: Sequence[FarmRow], *, node: str, period: float, time: str, documentation: str | None) -> bytes:
    """The page as HTML; may run in any thread.

    Args:
        node: name of the node that serves the page.
        period: time between two requests to a node (s).
        time: time of the page (UTC).
        documentation: address of the documentation.
    """
    sums = farm_sums(rows)
    keys = {row.overview.tck for row in rows if row.overview is not None and row.overview.run is not None}
    runs = {row.overview.run for row in rows if row.overview is not None and row.overview.run is not None}
    return render(
        "farm.html",
        _TEMPLATES,
        SHARED_TEMPLATES,
        rows=rows,
        sums=sums,
        lost=sum(row.is_lost for row in rows),
        keys=sorted(keys),
        runs=sorted(runs),
        node=node,
        period=period,
        time=time,
        documentation=documentation,
        number=number,
        latency=latency,
        counted=counted,
        seconds=seconds,
        style=Markup(STYLE),
        script=Markup(REFRESH_SCRIPT),
        refresh=RELOAD_SECONDS,
    ).encode()
