"""Cost of the status page for a computing node: one request per second, with histograms and drawn events.

The node is a separate process, `hltnode serve` on the CPU with the default sequence, its histograms and a line that
keeps 3 % of the events; `hltnode replay` feeds it at the maximum rate. Windows with and without requests alternate in
one run; the result is the processor time of the node per event. On a shared machine its uncertainty exceeds the cost of
pages. So the time of a page is measured again in the same node after the feeder has stopped. Events are drawn only in
the windows; the time of one picture is measured in this process.
"""

import statistics
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

from benchmarks.lhcb.real_events import CHAIN, geometry_folder, real_events
from benchmarks.measure import Result
from benchmarks.readout.real_readout import TRIGGER, cpu_seconds, numbered_events, process
from benchmarks.service.latency import ServedNode, write_config
from hltnode.daemon.commands.demo_processes import free_ports

WINDOW_SECONDS = 8.0
PAIRS = 8
IDLE_SECONDS = 20.0
PERIOD_SECONDS = 1.0
PICTURE_PERIOD_SECONDS = 10.0
"""The default of http.event_picture_s."""
PICTURES = 7
TARGET_SHARE = 0.01
"""Target as a fraction of one processor; a busy node uses all processors."""


def look(port: int) -> int:
    """Request the page; returns its bytes."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30) as page:
        return len(page.read())


class Window:
    """Some seconds of a node: events, processor time, wall time, and requested pages."""

    def __init__(self, running: "subprocess.Popen[bytes]", node: ServedNode, port: int, seconds: float, pages: bool):
        events, cpu, begin = node.processed(), cpu_seconds(running.pid), time.monotonic()
        self.pages = self.bytes = 0
        while (left := begin + seconds - time.monotonic()) > 0:
            if pages:
                self.bytes = look(port)
                self.pages += 1
            time.sleep(min(PERIOD_SECONDS, left))
        self.events = node.processed() - events
        self.cpu = cpu_seconds(running.pid) - cpu
        self.seconds = time.monotonic() - begin


def picture_ms(shared: Path, geometry: Path) -> float:
    """Processor time of a picture (ms), median of the real events."""
    draw = CHAIN.picture_maker(CHAIN.load_geometry(geometry), CHAIN.load_trigger(None))
    events = real_events(shared)
    draw(events[0])
    took = []
    for banks in events[:PICTURES]:
        begin = time.process_time()
        draw(banks)
        took.append((time.process_time() - begin) * 1e3)
    return statistics.median(took)


def run(shared: Path) -> list[Result]:
    """Measure the windows of the node, then pages without a feeder, then pictures alone."""
    geometry = geometry_folder(shared)
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        events = directory / "events.mdf"
        numbered_events(shared, events)
        data, control, decisions, http = free_ports(4)
        config = write_config(directory, geometry, data, control, decisions, http)
        (directory / "trigger.toml").write_text(TRIGGER.partition("\n\n")[2])
        node = ServedNode(f"tcp://127.0.0.1:{data}", control, http)
        off: list[Window] = []
        on: list[Window] = []
        with process("serve", "--config", config) as running:
            node.wait_for_start(running)
            feed = ("replay", events, *node.endpoints, "--loop", "--events-per-mep", 64)
            with process(*feed):
                while node.processed() < 1000:
                    time.sleep(0.1)
                look(http)
                time.sleep(5)
                for _ in range(PAIRS):
                    off.append(Window(running, node, http, WINDOW_SECONDS, pages=False))
                    on.append(Window(running, node, http, WINDOW_SECONDS, pages=True))
            time.sleep(5)
            idle = Window(running, node, http, IDLE_SECONDS, pages=False)
            looked = Window(running, node, http, IDLE_SECONDS, pages=True)
    picture = picture_ms(shared, geometry)
    page_ms = (looked.cpu - idle.cpu) / looked.pages * 1e3
    cpu_off, cpu_on = (statistics.median(each.cpu / each.events for each in windows) * 1e6 for windows in (off, on))
    rate_off, rate_on = (statistics.median(each.events / each.seconds for each in windows) for windows in (off, on))
    costs = [each.cpu / each.events for each in off]
    spread = statistics.stdev(costs) / statistics.mean(costs)
    used = sum(each.cpu for each in off) / sum(each.seconds for each in off)
    share = (page_ms / PERIOD_SECONDS + picture / PICTURE_PERIOD_SECONDS) * 1e-3
    return [
        Result("events, no browser", rate_off, "Hz", "", None),
        Result("events, page once a second", rate_on, "Hz", "no browser", rate_on / rate_off),
        Result("processor time of an event, no browser", cpu_off, "µs", "", None),
        Result("spread of that, window to window", 100 * spread, "%", "", None),
        Result("the same, page once a second", cpu_on, "µs", "no browser", cpu_on / cpu_off),
        Result("processors that the node uses, no browser", used, "", "", None),
        Result("page", on[-1].bytes / 1024, "KiB", "", None),
        Result("processor time of a page", page_ms, "ms", "", None),
        Result("processor time of a picture", picture, "ms", "", None),
        Result("both, of one processor", 100 * share, "%", "1 %", TARGET_SHARE / share, 1.0),
    ]
