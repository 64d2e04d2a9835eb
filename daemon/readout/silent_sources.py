"""Detection of sources that do not deliver while others do: a state machine, and its log lines."""

from collections.abc import Callable, Collection, Mapping

from hltnode.daemon._native import SourceCounters
from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.monitoring.counters import Counters

# Interval of checks, short enough for a limit of seconds. A check of a thousand sources takes 0.5 ms.
LOOK_NS = 500_000_000
LOG_INTERVAL_NS = 10_000_000_000
# Most source ids in one log line.
SHOWN = 32

log = get_logger("silent_sources")


class SilentSources:
    """The silent sources of a run. Times are monotonic nanoseconds."""

    def __init__(self, silent_ns: int) -> None:
        self._silent_ns = silent_ns
        self._since_ns = 0
        self._is_pause = False
        self._waited_ns: dict[int, int] = {}
        self.silent: frozenset[int] = frozenset()

    def start_run(self, now_ns: int) -> None:
        """Start a run: the time of each source counts from now."""
        self._since_ns = now_ns
        self._is_pause = False
        self._waited_ns = {}
        self.silent = frozenset()

    def look(
        self, now_ns: int, sources: Mapping[int, SourceCounters], lacking: Collection[int] | None
    ) -> tuple[frozenset[int], frozenset[int]]:
        """Check the `sources` of the run; returns those that fell silent and those that deliver again.

        While no source delivers, none is silent: the beam is off, or the node grants no credits. After such a pause the
        time of all sources counts from the first fragment.

        `lacking` are the missing sources of the youngest open MEP, None if no MEP is open. The other sources have no
        credit for the next MEP, and wait for a slow feeder. Their time counts from the end of their last wait.
        """
        newest = max((of.last_seen_ns or 0 for of in sources.values()), default=0)
        before = self.silent
        if (pause_ns := now_ns - newest) < self._silent_ns:
            if self._is_pause and pause_ns < self._silent_ns // 2:
                self._since_ns = newest
            late = [
                source
                for source, of in sources.items()
                if newest - max(of.last_seen_ns or 0, self._since_ns) >= self._silent_ns
            ]
            if lacking is not None:
                self._waited_ns.update((source, now_ns) for source in late if source not in lacking)
            fallen = [source for source in late if newest - self._waited_ns.get(source, 0) >= self._silent_ns]
            still = [s for s in before if newest - (sources[s].last_seen_ns or 0) >= self._silent_ns]
            self.silent = frozenset((*fallen, *still))
        self._is_pause = pause_ns >= self._silent_ns // 2
        return self.silent - before, before - self.silent


class SilentSourceMonitor:
    """Watches the sources of the builder's run, and logs silent ones at a limited rate.

    Readiness does not depend on silent sources: they are no reason to refuse the others.
    """

    def __init__(
        self, builder: EventBuilder, counters: Counters, *, silent_ns: int, clock_ns: Callable[[], int]
    ) -> None:
        self._builder = builder
        self._counters = counters
        self._watch = SilentSources(silent_ns)
        self._limit = RateLimit(LOG_INTERVAL_NS, clock_ns)
        self._starts = 0
        self._next_look_ns = 0

    @property
    def silent(self) -> frozenset[int]:
        """The silent sources."""
        return self._watch.silent

    def look(self, now_ns: int) -> None:
        """Check the sources if it is time. Call it with every tick."""
        if now_ns < self._next_look_ns or self._builder.run is None:
            return
        self._next_look_ns = now_ns + LOOK_NS
        if self._builder.closed or self._builder.starts != self._starts:
            # Sources of an ended run send nothing; in a new run their time counts from now.
            self._starts = self._builder.starts
            self._watch.start_run(now_ns)
        sources = {source: self._counters.sources[source] for source in self._builder.sources}
        opened = self._builder.open
        lacking = frozenset(self._builder.missing(opened[max(opened)])) if opened else None
        fell_silent, came_back = self._watch.look(now_ns, sources, lacking)
        self._report("sources_silent", fell_silent)
        self._report("sources_deliver_again", came_back)

    def _report(self, event: str, sources: frozenset[int]) -> None:
        if sources and (left_out := self._limit.due(event)) is not None:
            log.warning(
                event, run=self._builder.run, sources=sorted(sources)[:SHOWN], n=len(sources), left_out=left_out
            )
