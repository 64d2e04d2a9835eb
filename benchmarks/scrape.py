"""What Prometheus costs a busy node with a thousand sources: the time of a scrape, and what the events cost beside it.

The node is a process of its own, fed as fast as it takes by `hltnode replay` with the real events. Short times without
scrapes and with ten of them per second follow each other in turn; a farm scrapes every five seconds, which costs a
fiftieth of the difference. Processor time is that of the node with all its threads.
"""

import statistics
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Result
from benchmarks.readout_meps import real_mep
from benchmarks.real_readout import (
    TRIGGER,
    cpu_seconds,
    numbered_events,
    process,
    status_of,
    wait_until_it_runs,
    write_config,
)

EVENTS_PER_MEP = 100
PAIRS = 8
SECONDS = 3.0
"""Of each half of a pair."""
SCRAPES_PER_SECOND = 10
FARM_INTERVAL = 5.0
TARGET_MS = 20.0
TARGET_FRACTION = 0.01
WARM_UP_EVENTS = 2000


class Windows:
    """Times in which a node is scraped or not."""

    def __init__(self, port: int, pid: int) -> None:
        self._port = port
        self._pid = pid
        self.scrape_ms: list[float] = []
        self.bytes = 0

    def cost_us(self, *, scraped: bool) -> float:
        """Processor time for each event (µs) of one window."""
        begin, cpu, events = time.monotonic(), cpu_seconds(self._pid), self._processed()
        while (passed := time.monotonic() - begin) < SECONDS:
            if scraped:
                self._scrape()
            time.sleep(max(0.0, 1 / SCRAPES_PER_SECOND - (time.monotonic() - begin - passed)))
        return (cpu_seconds(self._pid) - cpu) / (self._processed() - events) * 1e6

    def _scrape(self) -> None:
        begin = time.perf_counter()
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=10) as page:
            self.bytes = len(page.read())
        self.scrape_ms.append((time.perf_counter() - begin) * 1e3)

    def _processed(self) -> int:
        status = status_of(self._port)
        if status is None:
            raise RuntimeError("the node does not answer")
        processed: int = status["events"]["processed"]
        return processed


def run(shared: Path) -> Iterator[Result]:
    """One node, scraped and not, in turn."""
    geometry = shared / "data" / "lhcb-geometry"
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
                pairs = [(windows.cost_us(scraped=False), windows.cost_us(scraped=True)) for _ in range(PAIRS)]
                n_sources = status["sources"]
        off, on = (statistics.median(column) for column in zip(*pairs, strict=True))
        busy_ms = statistics.median(windows.scrape_ms)
    scale = SCRAPES_PER_SECOND * FARM_INTERVAL
    fraction = statistics.median(with_scrapes / without - 1 for without, with_scrapes in pairs)
    yield Result(
        f"scrape of a busy node, {n_sources:,} sources, {windows.bytes / 1024:,.0f} KiB: median",
        busy_ms,
        "ms until the page is there",
        f"target: {TARGET_MS:.0f} ms",
        TARGET_MS / busy_ms,
        1.0,
    )
    yield Result(
        f"event with {SCRAPES_PER_SECOND} scrapes per second",
        on,
        "µs of processor time",
        f"without: {off:,.0f} µs",
        off / on,
    )
    yield Result(
        f"one scrape in {FARM_INTERVAL:.0f} s, median of {PAIRS} pairs",
        max(fraction, 0.0) / scale * 100,
        "% of the throughput",
        f"{scale:.0f} times as many scrapes cost {fraction:.1%}",
        TARGET_FRACTION / max(fraction / scale, 1e-9),
        1.0,
    )


def summary(results: list[Result]) -> dict[str, object]:
    """Time of a scrape, and what one in five seconds costs."""
    return {"scrape_ms": results[0].value, "scrape_percent": results[2].value}
