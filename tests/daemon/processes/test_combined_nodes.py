"""Two nodes and a combiner as processes; the combiner and one node are killed while they take slices."""

from __future__ import annotations

import signal
import urllib.request
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from hltnode.daemon.commands.demo_processes import free_ports
from hltnode.daemon.event_building.accounting import closes
from hltnode.protocol.raw_data.time_windows import join_windows
from tests.daemon.fakes import RUN
from tests.daemon.node.streamed_hits import (
    LENGTH,
    N_SUB_SLICES,
    Stream,
    hits_of,
    make_stream,
    windows_in,
    write_slices,
)
from tests.daemon.processes.test_processes import Site

pytestmark = [pytest.mark.process, pytest.mark.loopback]

DISTANCE = 60


def without_some(stream: Stream, chosen: np.ndarray) -> Stream:
    return Stream(stream.times[chosen], stream.sources[chosen], stream.channels[chosen])


def confirmed(streams: list[Stream]) -> list[tuple[int, int]]:
    """The windows that both streams have within the distance, merged."""
    windows = [[(start, end) for start, end, *_ in stream.windows()] for stream in streams]
    found = []
    for own, others in ((windows[0], windows[1]), (windows[1], windows[0])):
        found += [
            (start, end) for start, end in own if any(s <= end + DISTANCE and e >= start - DISTANCE for s, e in others)
        ]
    merged: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


class Farm:
    """Two nodes, each with a feeder, and a combiner."""

    def __init__(self, folder: Path, stream: ModuleType, streams: list[Stream]) -> None:
        self.package = str(stream.STREAM.source.parents[1])
        port, self.http = free_ports(2)
        self.endpoint = f"tcp://127.0.0.1:{port}"
        self.sites = []
        self.slices = []
        for name, hits in zip(("one", "two"), streams, strict=True):
            directory = folder / name
            directory.mkdir()
            site = Site(directory, 1, meps=1)
            text = site.config.read_text().replace('"testnode"', f'"{name}"')
            combiner = f'[combiner]\nendpoint = "{self.endpoint}"\ntimeout_ms = 600000\n'
            site.config.write_text(text + '[trigger]\nchain = "stream"\n' + combiner)
            self.n_events = write_slices(directory / "slices.mdf", stream, hits, core=1)
            self.slices.append(directory / "slices.mdf")
            self.sites.append(site)
        self.site = self.sites[0]

    def start_combiner(self) -> None:
        self.combiner = self.site.start(
            *("hltnode.daemon", "combine", "--listen", self.endpoint, "--nodes", "2", "--min-nodes", "2"),
            *("--distance", str(DISTANCE), "--wait", "600000", "--http-port", str(self.http)),
        )

    def start_node(self, site: Site) -> None:
        site.node = site.start("tests.daemon.processes.node_of_chain", str(site.config), self.package)  # type: ignore[attr-defined]

    def start_feeder(self, site: Site, slices: Path) -> None:
        site.feeder = site.start(  # type: ignore[attr-defined]
            *("tests.daemon.processes.command_of_chain", self.package, "replay", str(slices), "--chain", "stream"),
            *("--to", site.data, "--control", site.control, "--run", str(RUN), "--rate", "40", "--wait"),
            *("--events-per-mep", str(self.n_events)),
        )

    def processed(self, site: Site) -> int:
        status = site.status()
        return 0 if status is None else int(status["events"]["processed"]) // self.n_events

    def metrics(self) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/metrics", timeout=10) as response:
            return str(response.read(), "utf-8")

    def end(self) -> None:
        for site in self.sites:
            for process in site.processes:
                if process.poll() is None:
                    process.kill()
                    process.wait()

    def logs(self) -> str:
        return "\n".join(site.logs() for site in self.sites)


def test_windows_of_two_nodes_are_joined_once_in_spite_of_kills(stream: ModuleType, tmp_path: Path) -> None:
    hits = make_stream(stream.SOURCES, seed=8)
    # No window in the last slices: that of the last one would wait for the slice behind it.
    hits = without_some(hits, hits.times < (N_SUB_SLICES - 5) * LENGTH)
    # The second node sees a part of the coincidences.
    streams = [hits, without_some(hits, (hits.times // 450) % 3 != 1)]
    wanted = confirmed(streams)
    assert 3 < len(wanted) < len(hits.merged())
    farm = Farm(tmp_path, stream, streams)
    one, two = farm.sites
    try:
        farm.start_combiner()
        for site, slices in zip(farm.sites, farm.slices, strict=True):
            farm.start_node(site)
            farm.start_feeder(site, slices)
        one.wait_for(lambda: min(farm.processed(site) for site in farm.sites) >= 12, 180.0)
        farm.combiner.kill()
        assert one.wait(farm.combiner) == -signal.SIGKILL
        farm.start_combiner()
        one.wait_for(lambda: farm.processed(two) >= 30, 180.0)
        two.node.kill()  # type: ignore[attr-defined]
        assert two.wait(two.node) == -signal.SIGKILL  # type: ignore[attr-defined]
        farm.start_node(two)
        for site in farm.sites:
            assert site.wait(site.feeder, 240.0) == 0, farm.logs()  # type: ignore[attr-defined]
        metrics = farm.metrics()
        for site in farm.sites:
            status = site.status()
            assert status is not None
            assert closes(status["accounting"])
            assert status["combiner"]["session"]
            assert status["combiner"]["slices"]["timeout"] == status["combiner"]["slices"]["no_room"] == 0
            assert status["combiner"]["held_bytes"] == 0
            site.node.terminate()  # type: ignore[attr-defined]
            assert site.wait(site.node) == 0, farm.logs()  # type: ignore[attr-defined]
        farm.combiner.terminate()
        assert one.wait(farm.combiner) == 0, farm.logs()
    finally:
        farm.end()
    assert 'hltnode_combiner_slices_total{end="incomplete"} 0.0' in metrics
    assert 'hltnode_combiner_reports_total{node="two"}' in metrics
    for site, of_node in zip(farm.sites, streams, strict=True):
        records = windows_in(sorted(site.output.glob("*accepted*.mdf")))
        assert len({record.id for record in records}) == len(records)
        joined = join_windows(records)
        assert [(window.start_ns, window.end_ns) for window in joined] == wanted
        for window in joined:
            found = hits_of(window)
            assert len(set(found)) == len(found)
            assert set(found) == of_node.hits(window.start_ns, window.end_ns)
