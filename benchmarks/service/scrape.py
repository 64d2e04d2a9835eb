"""Cost of monitoring for a busy node with a thousand sources: a scrape of Prometheus, the status page of a browser.

The node is a separate process; `hltnode replay` feeds it the real events at the maximum rate. Short periods without
requests, with up to ten scrapes per second, and with the same number of status pages alternate. A farm scrapes every
five seconds, and a browser reloads its page as often, which costs correspondingly less. The cost is processor time of
all threads of the node, because the rate of a node on a busy machine depends on other programs. The metrics alone are
made in this process, by the node's writer and by the Prometheus client in turn.
"""

import os
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest

from benchmarks.lhcb.real_events import geometry_folder
from benchmarks.measure import Result, alternating_medians
from benchmarks.readout.readout_meps import real_mep
from benchmarks.readout.real_readout import (
    TRIGGER,
    cpu_seconds,
    numbered_events,
    process,
    status_of,
    wait_until_it_runs,
    write_config,
)
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.monitoring.health import Health
from hltnode.daemon.monitoring.metrics.collector import BuildInfo, NodeCollector, render
from hltnode.daemon.monitoring.node_state import NodeState
from hltnode.daemon.monitoring.snapshot import snapshot
from hltnode.processing.framework.memory_plan import SlotMemory

EVENTS_PER_MEP = 100
ROUNDS = 8
PAGES = 15
SECONDS = 3.0
"""Duration of each period."""
ASKED_PER_SECOND = 10
FARM_INTERVAL = 5.0
METRICS, STATUS_PAGE = "/metrics", "/"
TARGET_MS = 20.0
TARGET_FRACTION = 0.01
WARM_UP_EVENTS = 2000


def page_ms(n_sources: int) -> tuple[float, float]:
    """Processor time (ms) of the page with its snapshot, and of the Prometheus client for the same families."""
    counters = Counters()
    counters.expect_sources(range(n_sources))
    for source, of_source in counters.sources.items():
        of_source.fragments, of_source.bytes, of_source.last_seen_ns = source, source << 40, source
    health = Health(loop_tick_ns=0, pipeline_tick_ns=0, feeders_expected=1)
    info = BuildInfo(version="0", node="n", backend="cpu", chain="lhcb", tck="0x0")
    state, memory = NodeState(run_active=True, sources=range(n_sources)), SlotMemory(0, 0, 0, 0)

    def collector() -> NodeCollector:
        copied = snapshot(counters)
        return NodeCollector(copied, health, info, state, memory, health_ns=0, monotonic_ns=0, wall_s=0.0)

    def by_the_client() -> None:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(collector())
        generate_latest(registry)

    return alternating_medians(lambda: cpu_ms(lambda: render(collector())), lambda: cpu_ms(by_the_client), PAGES)


def cpu_ms(work: Callable[[], object]) -> float:
    """Processor time of this process."""
    begin = time.process_time()
    work()
    return (time.process_time() - begin) * 1e3


@dataclass(frozen=True, slots=True)
class Window:
    """A short period of a node: processor time in ms, events, and answered pages."""

    cpu_ms: float
    events: int
    pages: int

    @property
    def ms_per_event(self) -> float:
        """Processor time per event."""
        return self.cpu_ms / self.events


class Windows:
    """Short periods of a node, with or without requests."""

    def __init__(self, port: int, pid: int) -> None:
        self._port = port
        self._pid = pid
        self.answer_ms: dict[str, list[float]] = {METRICS: [], STATUS_PAGE: []}
        self.bytes: dict[str, int] = {}

    def take(self, path: str | None) -> Window:
        """The next period, with requests of this page."""
        begin, cpu, events, n_pages = time.monotonic(), cpu_seconds(self._pid), self._processed(), 0
        while (passed := time.monotonic() - begin) < SECONDS:
            if path is not None:
                self._get(path)
                n_pages += 1
            time.sleep(max(0.0, 1 / ASKED_PER_SECOND - (time.monotonic() - begin - passed)))
        return Window((cpu_seconds(self._pid) - cpu) * 1e3, self._processed() - events, n_pages)

    def _get(self, path: str) -> None:
        begin = time.perf_counter()
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=10) as page:
            self.bytes[path] = len(page.read())
        self.answer_ms[path].append((time.perf_counter() - begin) * 1e3)

    def _processed(self) -> int:
        status = status_of(self._port)
        if status is None:
            raise RuntimeError("the node does not answer")
        processed: int = status["events"]["processed"]
        return processed


def run(shared: Path) -> Iterator[Result]:
    """Measure one node in turn: without requests, with its metrics, with its status page."""
    geometry = geometry_folder(shared)
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        trigger, events = directory / "trigger.toml", directory / "events.mdf"
        trigger.write_text(TRIGGER)
        numbered_events(shared, events)
        mep = real_mep(shared, EVENTS_PER_MEP)
        config, to, port = write_config(directory, mep, trigger, geometry)
        with process("serve", "--config", config) as node:
            wait_until_it_runs(node, port)
            how = ("--sources", 1, "--loop", "--events-per-mep", EVENTS_PER_MEP)
            with process("replay", events, *to, *how):
                while (status := status_of(port)) is None or status["events"]["processed"] < WARM_UP_EVENTS:
                    time.sleep(0.1)
                windows = Windows(port, node.pid)
                rounds = [[windows.take(path) for path in (None, METRICS, STATUS_PAGE)] for _ in range(ROUNDS)]
                n_sources = status["sources"]
        busy_ms = statistics.median(windows.answer_ms[METRICS])
    taken_ms, shown_ms = (taken_by_a_page([(each[0], each[i]) for each in rounds]) for i in (1, 2))
    event_us = statistics.median(off.ms_per_event for off, *_ in rounds) * 1e3
    fraction, shown_fraction = (max(ms, 0.0) / (FARM_INTERVAL * 1e3) for ms in (taken_ms, shown_ms))
    own_ms, client_ms = page_ms(n_sources)
    yield Result(
        f"page of {n_sources:,} sources alone",
        own_ms,
        "ms of processor time",
        f"target: {TARGET_MS:.0f} ms; the Prometheus client: {client_ms:.0f} ms",
        TARGET_MS / own_ms,
        1.0,
    )
    yield Result(
        f"scrape of a busy node, {n_sources:,} sources, {windows.bytes[METRICS] / 1024:,.0f} KiB: median",
        busy_ms,
        "ms until the page is there, with a load of the machine of " + f"{os.getloadavg()[0]:.0f}",
        f"target: {TARGET_MS:.0f} ms",
        TARGET_MS / busy_ms,
    )
    yield Result(
        f"one scrape of it, median of {ROUNDS} pairs",
        taken_ms,
        "ms of processor time",
        f"an event: {event_us:,.0f} µs",
        None,
    )
    yield Result(
        f"one scrape in {FARM_INTERVAL:.0f} s",
        fraction * 100,
        "% of what one busy core computes",
        f"target: {TARGET_FRACTION:.0%}",
        TARGET_FRACTION / max(fraction, 1e-9),
        1.0,
    )
    yield Result(
        f"one status page, {windows.bytes[STATUS_PAGE] / 1024:,.0f} KiB, median of {ROUNDS} pairs",
        shown_ms,
        "ms of processor time",
        f"an event: {event_us:,.0f} µs",
        None,
    )
    yield Result(
        f"one scrape and one status page in {FARM_INTERVAL:.0f} s",
        (fraction + shown_fraction) * 100,
        "% of what one busy core computes",
        f"target: {TARGET_FRACTION:.0%}",
        TARGET_FRACTION / max(fraction + shown_fraction, 1e-9),
        1.0,
    )


def taken_by_a_page(pairs: list[tuple[Window, Window]]) -> float:
    """Extra processor time of the events of a period with pages over the period before, in ms per page."""
    return statistics.median((on.cpu_ms - off.ms_per_event * on.events) / on.pages for off, on in pairs)


def summary(results: list[Result]) -> dict[str, object]:
    """Time of a scrape, and the cost of one scrape per five seconds."""
    return {"scrape_ms": results[1].value, "page_cpu_ms": results[0].value, "scrape_percent": results[3].value}
