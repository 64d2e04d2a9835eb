"""The numbers that a node measures: in its metrics, in /status and in `hltnode top`."""

from __future__ import annotations

import asyncio
import io
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import zmq.asyncio
from rich.console import Console

from hltnode.daemon.commands.node.top import Watched
from hltnode.daemon.commands.node.top_screen import screen
from hltnode.daemon.node.node import Node
from hltnode.daemon.node.sizing import batch_limits
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.processing.framework.histograms import HistogramShape, n_counts
from hltnode.processing.framework.measured_quantities import MeasuredQuantity
from tests.daemon.fakes import (
    RUN,
    FakeEngine,
    FakeWorkspace,
    make_config,
    make_feeder,
    node_of_engine,
    running_node,
    synthetic_meps,
)

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]

SHAPE = HistogramShape(name="beam_x", bins=8, low=-4.0, high=4.0)
VALUES_PER_EVENT = 100
MEPS, EVENTS = 10, 8


class MeasuringWorkspace(FakeWorkspace):
    """Every event has values between 1 and 2."""

    def submit(self, ended: Callable[[], None]) -> None:
        self.counted[6] += np.uint32(VALUES_PER_EVENT * sum(mep.n_events for mep in self._meps))
        super().submit(ended)


class MeasuringEngine(FakeEngine):
    histograms = (SHAPE,)
    measured = (
        MeasuredQuantity(
            name="beam_x", histogram="beam_x", configured=1.25, tolerance=0.125, low=-3.5, high=3.5, unit="mm"
        ),
    )

    def create_workspace(self) -> FakeWorkspace:
        workspace = MeasuringWorkspace(len(self.workspaces), self._limits, self.behaviour, self._decisions)
        workspace.counted = np.zeros(n_counts(self.histograms), np.uint32)
        self.workspaces.append(workspace)
        return workspace


@pytest.fixture
def context() -> Iterator[zmq.asyncio.Context]:
    with zmq.asyncio.Context() as made:
        yield made


async def feed(context: zmq.asyncio.Context, node: Node) -> None:
    async with make_feeder(context, node, run=RUN) as feeder:
        assert (await feed_meps(synthetic_meps(MEPS, events=EVENTS), [feeder])).complete


def metrics(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return {
        name.partition("{")[0]: float(value)
        for name, value in (line.rsplit(" ", 1) for line in lines)
        if name.startswith("hltnode_detector_condition_") and name.endswith('{quantity="beam_x"}')
    }


def shown(watched: Watched) -> str:
    watched.read()
    console = Console(file=io.StringIO(), width=200)
    console.print(screen(watched.describe()))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


async def test_a_measured_number_is_on_every_page_beside_the_configured_one(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    config = make_config(tmp_path)
    async with node_of_engine(config, MeasuringEngine(batch_limits(config)), "fake") as node:
        watched = Watched([f"http://127.0.0.1:{node.http_port}"])
        before = await asyncio.to_thread(metrics, node.http_port)
        assert np.isnan(before.pop("hltnode_detector_condition_measured"))
        text = await asyncio.to_thread(shown, watched)
        assert "[conditions]" in text
        assert "beam_x  not measured yet, configured 1.250, tolerance 0.125 mm" in text
        await feed(context, node)
        after = await asyncio.to_thread(metrics, node.http_port)
        text = await asyncio.to_thread(shown, watched)
        [described] = watched.describe().values()
    assert after == {
        "hltnode_detector_condition_measured": 1.5,
        "hltnode_detector_condition_configured": 1.25,
        "hltnode_detector_condition_tolerance": 0.125,
        "hltnode_detector_condition_followed": 0.0,
        "hltnode_detector_condition_values_total": MEPS * EVENTS * VALUES_PER_EVENT,
    }
    assert "beam_x  measured 1.500, configured 1.250, tolerance 0.125 mm" in text
    assert described["conditions"] == {
        "beam_x": {
            "unit": "mm",
            "configured": 1.25,
            "measured": 1.5,
            "tolerance": 0.125,
            "values": MEPS * EVENTS * VALUES_PER_EVENT,
            "is_off": True,
            "followed": False,
        }
    }


async def test_a_node_that_measures_nothing_shows_no_conditions(tmp_path: Path) -> None:
    async with running_node(make_config(tmp_path)) as (node, _):
        assert await asyncio.to_thread(metrics, node.http_port) == {}
        assert "conditions" not in await asyncio.to_thread(shown, Watched([f"http://127.0.0.1:{node.http_port}"]))
