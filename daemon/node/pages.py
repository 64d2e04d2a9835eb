"""The pages of numbers that a node serves: /metrics and /histograms."""

import json
import time
from collections.abc import Callable
from functools import partial

from hltnode.daemon.monitoring.histograms import as_uhi
from hltnode.daemon.monitoring.metrics import NodeCollector, render
from hltnode.daemon.monitoring.snapshot import snapshot
from hltnode.daemon.node.core import NodeCore
from hltnode.daemon.node.status import NodeStatus


class NodePages:
    """Makes the pages of a node on request.

    Args:
        note: brings health and dead time up to date.
    """

    def __init__(self, core: NodeCore, status: NodeStatus, note: Callable[[], None]) -> None:
        self._core = core
        self._status = status
        self._note = note

    def metrics(self) -> Callable[[], bytes]:
        """Take a snapshot, in the event loop; returns what makes the page of it, in any thread."""
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
        """The histograms of the run that the node computes; in any thread."""
        run = self._core.tally.run
        contents = [] if run is None else self._core.tally.of_run(run) or []
        page = {
            **self._core.about,
            "run": run,
            "histograms": {content.shape.name: as_uhi(content) for content in contents},
        }
        return json.dumps(page).encode() + b"\n"
