"""The summary of a run on this node: counts of fragments, MEPs and events by class, for a JSON file beside the events.

The counters of a node continue from run to run, so a summary holds their growth since the start of the run. A killed
session writes no summary. The counters of the next summary cover only its session; `stored` and the names of the files,
which the event store adds, cover the killed one too.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from hltnode.daemon.common.vocabulary import RunEnd
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.monitoring.counters import Counters

SUMMARY_VERSION = 3


class RunSummary:
    """Copies the counters at the start of a run and computes their growth at its end."""

    def __init__(
        self,
        counters: Counters,
        builder: EventBuilder,
        *,
        node: str,
        session: str,
        chain: str,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        self._counters = counters
        self._builder = builder
        self._node = node
        self._session = session
        self._chain = chain
        self._wall_s = wall_s
        self.begin()

    def begin(self) -> None:
        """Start the summary of a run."""
        self._begin_s = self._wall_s()
        self._before = self._totals()

    def _totals(self) -> dict[str, Any]:
        counters = self._counters
        return {
            **accounting(counters, self._builder),
            "acknowledged": {"meps": counters.meps_acknowledged},
            "events": {"processed": counters.events_processed, "accepted": counters.events_accepted},
            "lines": dict(zip(counters.lines, counters.line_accepts, strict=True)),
            "objects": dict(counters.objects),
            "missing_by_source": {str(s): of_source.missing for s, of_source in counters.sources.items()},
        }

    def end(self, how: RunEnd) -> dict[str, Any]:
        """The summary of the builder's run. The writer of the file adds the names of the event files."""
        assert self._builder.run is not None
        return self._summary(self._builder.run, how, self._begin_s, self._before)

    def end_kept(self, run: int, how: RunEnd) -> dict[str, Any]:
        """The summary of a kept run that received nothing since it was left."""
        return self._summary(run, how, self._wall_s(), self._totals())

    def _summary(self, run: int, how: RunEnd, begin_s: float, before: dict[str, Any]) -> dict[str, Any]:
        totals = self._totals()
        grown = {part: _minus(values, before.get(part, {})) for part, values in totals.items()}
        grown["missing_by_source"] = {source: n for source, n in grown["missing_by_source"].items() if n}
        accounts = [part for part in ("fragments", "meps", "slices") if part in totals]
        return {
            "version": SUMMARY_VERSION,
            "run": run,
            "node": self._node,
            "session": self._session,
            "chain": self._chain,
            "ended": how,
            "begin": _iso(begin_s),
            "end": _iso(self._wall_s()),
            **grown,
            "identities": {part: totals[part]["unaccounted"] == 0 for part in accounts},
            "accounting_closes": closes({part: totals[part] for part in accounts}),
        }


def _minus(after: dict[str, int], before: dict[str, int]) -> dict[str, int]:
    return {name: value - before.get(name, 0) for name, value in after.items()}


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
