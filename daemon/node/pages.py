"""The pages of a node besides its state: /metrics, /histograms, and the HTML status page."""

import json
import time
from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from typing import Any

from hltnode.daemon.common.recent_lines import RECENT_LINES
from hltnode.daemon.monitoring.health import Condition
from hltnode.daemon.monitoring.histograms import as_uhi
from hltnode.daemon.monitoring.metrics import NodeCollector, render
from hltnode.daemon.monitoring.snapshot import snapshot
from hltnode.daemon.monitoring.status_page.drawings import DrawnHistogram, drawn_histogram
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
    """

    def __init__(
        self, core: NodeCore, status: NodeStatus, note: Callable[[], None], pictures: EventPictures | None
    ) -> None:
        self._core = core
        self._status = status
        self._note = note
        self._pictures = pictures
        self._page = b""
        self._page_ns: int | None = None
        self._histograms_ns: int | None = None
        self._drawn: list[DrawnHistogram] = []

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
    ) -> bytes:
        detectors, worst = source_rows(states, silent, now_ns, self._core.engine.subdetectors)
        self._page = status_page(
            PageContent(
                status=status,
                problems=problems,
                rates=rates,
                detectors=detectors,
                worst_sources=worst,
                histograms=self._drawn_histograms(now_ns),
                picture=picture,
                log=RECENT_LINES.newest_first(),
                time=time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()),
            )
        )
        self._page_ns = now_ns
        return self._page

    def _of_run(self) -> tuple[int | None, list[HistogramContent]]:
        run = self._core.tally.run
        return run, [] if run is None else self._core.tally.of_run(run) or []

    def _drawn_histograms(self, now_ns: int) -> list[DrawnHistogram]:
        """The histograms as SVG, redrawn every few seconds: they change slowly and cost more than the rest of the
        page."""
        if self._histograms_ns is None or now_ns - self._histograms_ns >= HISTOGRAMS_NS:
            self._histograms_ns = now_ns
            self._drawn = [drawn_histogram(content) for content in self._of_run()[1]]
        return self._drawn
