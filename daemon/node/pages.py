"""The pages of a node besides its state: /metrics, /histograms, /history, /overview, and the pages for people."""

import json
import time
from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from typing import Any

from hltnode.daemon.common.recent_lines import RECENT_LINES
from hltnode.daemon.monitoring.farm_page.farm_reader import FarmReader, NodeView
from hltnode.daemon.monitoring.farm_page.overview import overview_of
from hltnode.daemon.monitoring.farm_page.page import farm_page, farm_rows
from hltnode.daemon.monitoring.health import Condition
from hltnode.daemon.monitoring.histograms import as_uhi
from hltnode.daemon.monitoring.http_server import JSON_TYPE, Page
from hltnode.daemon.monitoring.metrics.collector import NodeCollector, render
from hltnode.daemon.monitoring.snapshot import snapshot
from hltnode.daemon.monitoring.status_page.assets import HTML_TYPE
from hltnode.daemon.monitoring.status_page.curves import Curves, drawn_curves
from hltnode.daemon.monitoring.status_page.drawings import DrawnHistogram, drawn_histogram
from hltnode.daemon.monitoring.status_page.last_hour import PERIOD_NS, Samples, as_columns
from hltnode.daemon.monitoring.status_page.missing import missing_rows
from hltnode.daemon.monitoring.status_page.numbers import utc
from hltnode.daemon.monitoring.status_page.page import EventPicture, PageContent, status_page
from hltnode.daemon.monitoring.status_page.rates import Rates
from hltnode.daemon.monitoring.status_page.sources import SourceState, source_rows
from hltnode.daemon.node.core import NodeCore
from hltnode.daemon.node.event_pictures import EventPictures
from hltnode.daemon.node.status import NodeStatus
from hltnode.processing.framework.histograms import HistogramContent

# Largest age of the status page: below the refresh period of one second.
PAGE_NS = 900_000_000
# Largest age of the histograms on the status page.
HISTOGRAMS_NS = 5_000_000_000


class NodePages:
    """Renders the pages of a node on request.

    Args:
        note: updates health and dead time.
        pictures: draws accepted events for the status page; None: no pictures.
        commands: the commands that the state allows; None: the node takes no commands over HTTP.
    """

    def __init__(
        self,
        core: NodeCore,
        status: NodeStatus,
        note: Callable[[], None],
        pictures: EventPictures | None,
        commands: Callable[[], Sequence[str] | None],
    ) -> None:
        self._core = core
        self._status = status
        self._note = note
        self._pictures = pictures
        self._commands = commands
        farm = core.config.http.farm_nodes
        self._farm = None if farm is None else FarmReader(farm)
        self._overview = b""
        self._overview_ns: int | None = None
        self._page = b""
        self._page_ns: int | None = None
        self._histograms_ns: int | None = None
        self._drawn: list[DrawnHistogram] = []
        self._drawn_s = 0.0
        self._curves: Curves | None = None
        self._curves_ns = 0

    def more(self) -> Mapping[str, Page]:
        """The pages besides metrics, histograms and status."""
        pages = {"/history": Page(JSON_TYPE, self.history), "/overview": Page(JSON_TYPE, self.overview)}
        if self._farm is not None:
            pages["/farm"] = Page(HTML_TYPE, partial(self.farm, self._farm))
        return pages

    def stop(self) -> None:
        """Ask no other node any more."""
        if self._farm is not None:
            self._farm.stop()

    def metrics(self) -> Callable[[], bytes]:
        """Take a snapshot in the event loop; returns a function that renders the page in any thread."""
        self._note()
        core = self._core
        collector = NodeCollector(
            snapshot(core.counters),
            snapshot(core.health),
            core.info,
            self._status.state(),
            core.engine.memory,
            health_ns=core.clock.now_ns,
            monotonic_ns=core.clock_ns(),
            wall_s=time.time(),
            histograms=core.tally.since_start(),
            histogram_buckets=core.config.histograms.buckets,
        )
        return partial(render, collector)

    def histograms(self) -> bytes:
        """The histograms of the current run; any thread."""
        run, contents = self._of_run()
        page = {
            **self._core.about(run),
            "run": run,
            "histograms": {content.shape.name: as_uhi(content) for content in contents},
        }
        return json.dumps(page).encode() + b"\n"

    def status_page(self) -> Callable[[], bytes]:
        """Collect the content in the event loop; returns a function that renders the page in any thread.

        A page is reused for a second, for all clients.
        """
        now_ns = self._core.clock_ns()
        if self._page_ns is not None and now_ns - self._page_ns < PAGE_NS:
            page = self._page
            return lambda: page
        self._note()
        core, builder = self._core, self._core.builder
        sources = core.counters.sources
        states = [
            SourceState(source, sources[source].last_seen_ns, sources[source].missing)
            for source in builder.sources
            if source in sources
        ]
        return partial(
            self._status_page,
            self._status.full(),
            core.health.problems(core.clock.now_ns),
            core.rates.rates(core.clock.true_ns),
            states,
            core.silence.silent,
            now_ns,
            None if self._pictures is None else self._pictures.look(),
            self._commands(),
            core.rates.hour.samples(),
            core.clock.true_ns,
            time.time(),
        )

    def _status_page(
        self,
        status: Mapping[str, Any],
        problems: Mapping[Condition, str],
        rates: Rates,
        states: Sequence[SourceState],
        silent: Set[int],
        now_ns: int,
        picture: EventPicture | None,
        commands: Sequence[str] | None,
        samples: Samples,
        true_ns: int,
        now_s: float,
    ) -> bytes:
        http = self._core.config.http
        detectors, worst = source_rows(states, silent, now_ns, self._core.engine.subdetectors)
        self._page = status_page(
            PageContent(
                status=status,
                missing=missing_rows(status["missing_feeders"]),
                problems=problems,
                rates=rates,
                detectors=detectors,
                worst_sources=worst,
                histograms=self._drawn_histograms(now_ns, now_s),
                picture=picture,
                curves=self._drawn_curves(samples, true_ns, now_s),
                log=RECENT_LINES.newest_first(),
                commands=commands,
                farm=http.farm_nodes or (),
                documentation=http.documentation,
                time=utc(now_s),
                histograms_time=utc(self._drawn_s)[-8:],
            )
        )
        self._page_ns = now_ns
        return self._page

    def history(self) -> Callable[[], bytes]:
        """The samples of the last hour, as JSON."""
        core = self._core
        samples, now_ns, now_s = core.rates.hour.samples(), core.clock.true_ns, time.time()

        def render() -> bytes:
            page = {
                "node": core.config.node.name,
                "time": round(now_s, 1),
                "period_s": PERIOD_NS * 1e-9,
                "samples": as_columns(samples, now_ns, now_s),
            }
            return json.dumps(page).encode() + b"\n"

        return render

    def overview(self) -> Callable[[], bytes]:
        """The state of the node for the farm page of another node; reused for a second."""
        now_ns = self._core.clock_ns()
        if self._overview_ns is None or now_ns - self._overview_ns >= PAGE_NS:
            self._note()
            core, status, now_s = self._core, self._status.full(), time.time()
            problems = [f"{name}: {text}" for name, text in core.health.problems(core.clock.now_ns).items()]
            latency = core.rates.hour.latest_latency()
            missing = [row.name for row in missing_rows(status["missing_feeders"])]
            self._overview = overview_of(
                status, problems, core.rates.rates(core.clock.true_ns), latency, missing, now_s
            )
            self._overview_ns = now_ns
        page = self._overview
        return lambda: page

    def farm(self, reader: FarmReader) -> Callable[[], bytes]:
        """The farm page. The views are copied in the event loop; the reader asks the nodes in its own threads."""
        return partial(self._farm_page, reader, reader.look(), time.time())

    def _farm_page(self, reader: FarmReader, views: Sequence[NodeView], now_s: float) -> bytes:
        http = self._core.config.http
        return farm_page(
            farm_rows(views, time.monotonic_ns(), reader.fresh_ns),
            node=self._core.config.node.name,
            period=reader.period_ns * 1e-9,
            time=utc(now_s),
            documentation=http.documentation,
        )

    def _of_run(self) -> tuple[int | None, list[HistogramContent]]:
        run = self._core.tally.run
        return run, [] if run is None else self._core.tally.of_run(run) or []

    def _drawn_curves(self, samples: Samples, true_ns: int, now_s: float) -> Curves:
        """The curves of the last hour, redrawn with each new sample."""
        newest_ns = int(samples.ends[-1]) if len(samples.ends) else 0
        if self._curves is None or newest_ns != self._curves_ns:
            self._curves_ns = newest_ns
            self._curves = drawn_curves(samples, true_ns, now_s)
        return self._curves

    def _drawn_histograms(self, now_ns: int, now_s: float) -> list[DrawnHistogram]:
        """The histograms as SVG, redrawn every few seconds: they change slowly and cost more than the rest of the
        page."""
        if self._histograms_ns is None or now_ns - self._histograms_ns >= HISTOGRAMS_NS:
            self._histograms_ns, self._drawn_s = now_ns, now_s
            self._drawn = [drawn_histogram(content) for content in self._of_run()[1]]
        return self._drawn
