"""Two nodes of the test chain `stream` and a combiner as processes, and the windows that they must keep."""

from __future__ import annotations

import urllib.request
from pathlib import Path
from types import ModuleType

import numpy as np

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

    def check_end(self) -> None:
        """Each node has taken all slices, no slice has left without an answer, and all stop in order."""
        for site in self.sites:
            assert site.wait(site.feeder, 240.0) == 0, self.logs()  # type: ignore[attr-defined]
        for site in self.sites:
            # A node that was killed behind the end of its stream may still be starting.
            site.wait_for(lambda site=site: bool((now := site.status()) and now["combiner"]["session"]), 120.0)  # type: ignore[misc]
            status = site.status()
            assert status is not None
            assert closes(status["accounting"])
            assert status["combiner"]["session"]
            assert status["combiner"]["slices"]["timeout"] == status["combiner"]["slices"]["no_room"] == 0
            assert status["combiner"]["held_bytes"] == 0
            site.node.terminate()  # type: ignore[attr-defined]
            assert site.wait(site.node) == 0, self.logs()  # type: ignore[attr-defined]
        self.combiner.terminate()
        assert self.site.wait(self.combiner) == 0, self.logs()

    def check_windows(self, streams: list[Stream], wanted: list[tuple[int, int]]) -> None:
        """Each node has the hits of each confirmed window once, and no other."""
        for site, of_node in zip(self.sites, streams, strict=True):
            records = windows_in(sorted(site.output.glob("*accepted*.mdf")))
            assert len({record.id for record in records}) == len(records)
            joined = join_windows(records)
            assert [(window.start_ns, window.end_ns) for window in joined] == wanted
            for window in joined:
                found = hits_of(window)
                assert len(set(found)) == len(found)
                assert set(found) == of_node.hits(window.start_ns, window.end_ns)


def two_streams(stream: ModuleType, seed: int) -> list[Stream]:
    """The hits of two nodes; the second one sees a part of the coincidences of the first."""
    hits = make_stream(stream.SOURCES, seed=seed)
    # No window in the last slices: that of the last one would wait for the slice behind it.
    hits = without_some(hits, hits.times < (N_SUB_SLICES - 5) * LENGTH)
    return [hits, without_some(hits, (hits.times // 450) % 3 != 1)]
