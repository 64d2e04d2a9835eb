"""The histograms of a node: on its pages, in the terminal and in a file of each run."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import zmq.asyncio
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.daemon.node.node import Node
from hltnode.daemon.node.sizing import batch_limits
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.daemon.storage.root_file import read_root
from hltnode.processing.framework.histograms import HistogramShape
from tests.daemon.fakes import (
    RUN,
    FakeEngine,
    FakeWorkspace,
    eventually,
    make_config,
    make_feeder,
    node_of_engine,
    synthetic_meps,
)

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]

SHAPE = HistogramShape(name="fake_mass", bins=2, low=0.0, high=2.0, unit="MeV", description="one of each event")
MEPS, EVENTS = 20, 8


class CountingWorkspace(FakeWorkspace):
    """Counts each event in the second bin."""

    def submit(self, ended: Callable[[], None]) -> None:
        if not self.counted.size:
            self.counted = np.zeros(SHAPE.n_counts, np.uint32)
        self.counted[2] += np.uint32(sum(mep.n_events for mep in self._meps))
        super().submit(ended)


class CountingEngine(FakeEngine):
    histograms = (SHAPE,)

    def create_workspace(self) -> FakeWorkspace:
        slot = len(self.workspaces)
        self.workspaces.append(CountingWorkspace(slot, self._limits, self.behaviour, self._decisions))
        return self.workspaces[-1]


@pytest.fixture
def context() -> Iterator[zmq.asyncio.Context]:
    with zmq.asyncio.Context() as made:
        yield made


async def feed(context: zmq.asyncio.Context, node: Node) -> None:
    """A whole run."""
    async with make_feeder(context, node) as feeder:
        await feed_meps(synthetic_meps(MEPS), [feeder])


def page(port: int, name: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{name}", timeout=10) as answer:
        text: str = answer.read().decode()
    return text


async def test_each_event_is_counted_once_for_every_output(tmp_path: Path, context: zmq.asyncio.Context) -> None:
    config = make_config(tmp_path)
    engine = CountingEngine(batch_limits(config))
    async with node_of_engine(config, engine, "fake") as node:
        assert json.loads(await asyncio.to_thread(page, node.http_port, "histograms"))["histograms"] == {}
        await feed(context, node)
        await eventually(lambda: node.counters.events_processed == MEPS * EVENTS)
        shown = json.loads(await asyncio.to_thread(page, node.http_port, "histograms"))
        assert (shown["run"], shown["histograms"]["fake_mass"]["storage"]["values"]) == (RUN, [0, 0, MEPS * EVENTS, 0])
        metrics = await asyncio.to_thread(page, node.http_port, "metrics")
        assert f'hltnode_histogram_bucket{{histogram="fake_mass",le="2"}} {float(MEPS * EVENTS)}' in metrics
        address = f"http://127.0.0.1:{node.http_port}"
        listed = await asyncio.to_thread(CliRunner().invoke, app, ["histograms", address])
        assert f"fake_mass         {MEPS * EVENTS}" in listed.output
        drawn = await asyncio.to_thread(CliRunner().invoke, app, ["histograms", address, "fake_mass"])
        assert f"1 │{50 * '█'} {MEPS * EVENTS}" in drawn.output
    (path,) = (tmp_path / "out").glob("*.root")
    assert path.name == f"testnode_{node.session}_{RUN:010d}_histograms.root"
    assert [content.entries for content in read_root(path)] == [MEPS * EVENTS]


async def test_a_node_without_histograms_writes_no_file(tmp_path: Path, context: zmq.asyncio.Context) -> None:
    config = make_config(tmp_path)
    async with node_of_engine(config, FakeEngine(batch_limits(config)), "fake") as node:
        await feed(context, node)
        assert "fake_mass" not in await asyncio.to_thread(page, node.http_port, "metrics")
    assert list((tmp_path / "out").glob("*histograms*")) == []


def test_an_unknown_histogram_and_an_unreachable_node_are_reported(tmp_path: Path) -> None:
    wrong = CliRunner().invoke(app, ["histograms", "http://127.0.0.1:9"])
    assert wrong.exit_code == 2
    assert "127.0.0.1:9/histograms: cannot read histograms" in " ".join(wrong.output.split())
    wrong = CliRunner().invoke(app, ["histograms", str(tmp_path / "none.root")])
    assert (
        wrong.exit_code,
        "none.root: cannot read histograms written by hltnode" in wrong.output.replace("\n", ""),
    ) == (
        2,
        True,
    )
