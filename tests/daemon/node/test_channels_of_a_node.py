"""Groups of channels that are dead or noisy: in the metrics and the status of a node."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zmq.asyncio
from numpy.typing import NDArray

from hltnode.daemon.node.core import NodeCore
from hltnode.daemon.node.node import Node
from hltnode.daemon.node.sizing import batch_limits
from hltnode.daemon.node.status import SHOWN_CHANNELS
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.processing.framework.channel_groups import ChannelGroups, CountedChannels
from hltnode.processing.framework.histograms import HistogramShape, n_counts
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.selection.configuration.conditions_folder import ConditionsFolder
from hltnode.processing.selection.followed_conditions import FollowedConditions
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

N = 200
SHAPE = HistogramShape(name="lanes", bins=N, low=0.0, high=float(N))
DEAD = tuple(range(4, N, 5))
"""More than are shown; every group has two neighbours with hits."""
HITS_PER_EVENT = 20
MEPS, EVENTS = 10, 8


class CountingWorkspace(FakeWorkspace):
    """Every event has the same hits in each group that is not dead."""

    def submit(self, ended: Callable[[], None]) -> None:
        hits = np.full(N, HITS_PER_EVENT * sum(mep.n_events for mep in self._meps), np.uint32)
        hits[list(DEAD)] = 0
        self.counted[1:-2] += hits
        super().submit(ended)


class CountingEngine(FakeEngine):
    histograms: tuple[HistogramShape, ...] = (SHAPE,)
    counted = (
        CountedChannels(
            groups=ChannelGroups(
                name="lane",
                condition="masked_lanes",
                numbers=np.arange(N),
                exists=np.ones(N, np.bool_),
                neighbours=np.stack([np.maximum(np.arange(N) - 1, 0), np.minimum(np.arange(N) + 1, N - 1)], axis=1),
            ),
            histogram="lanes",
            group_of_bin=np.arange(N),
            masked=np.zeros(N, np.bool_),
        ),
    )

    def __init__(self, limits: BatchLimits) -> None:
        super().__init__(limits)
        self.changed: list[frozenset[str]] = []

    def channels(self, changed: Mapping[str, NDArray[np.uint8]]) -> tuple[CountedChannels, ...]:
        self.changed.append(frozenset(changed))
        return self.counted

    def create_workspace(self) -> FakeWorkspace:
        workspace = CountingWorkspace(len(self.workspaces), self._limits, self.behaviour, self._decisions)
        workspace.counted = np.zeros(n_counts(self.histograms), np.uint32)
        self.workspaces.append(workspace)
        return workspace


@pytest.fixture
def context() -> Iterator[zmq.asyncio.Context]:
    with zmq.asyncio.Context() as made:
        yield made


def page(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        text: str = answer.read().decode()
        return text


async def shown(node: Node) -> tuple[dict[str, float], dict[str, Any]]:
    """The metrics of channels, and `channels` of the status."""
    lines = (await asyncio.to_thread(page, node.http_port, "/metrics")).splitlines()
    metrics = dict(line.rsplit(" ", 1) for line in lines if line.startswith("hltnode_channel_"))
    status = json.loads(await asyncio.to_thread(page, node.http_port, "/status"))
    return {name: float(value) for name, value in metrics.items()}, status["channels"]


async def test_dead_groups_are_in_metrics_and_status(tmp_path: Path, context: zmq.asyncio.Context) -> None:
    config = make_config(tmp_path)
    async with node_of_engine(config, CountingEngine(batch_limits(config)), "fake") as node:
        assert await shown(node) == (
            {'hltnode_channel_hits_total{kind="lane"}': 0.0},
            {"lane": {"condition": "masked_lanes", "hits": 0, "compared": False}},
        )
        async with make_feeder(context, node, run=RUN) as feeder:
            assert (await feed_meps(synthetic_meps(MEPS, events=EVENTS), [feeder])).complete
        metrics, status = await shown(node)
    hits = MEPS * EVENTS * HITS_PER_EVENT * (N - len(DEAD))
    assert metrics == {
        'hltnode_channel_hits_total{kind="lane"}': hits,
        'hltnode_channel_groups_off{finding="dead",kind="lane"}': len(DEAD),
        'hltnode_channel_groups_off{finding="noisy",kind="lane"}': 0.0,
    }
    assert status == {
        "lane": {
            "condition": "masked_lanes",
            "hits": hits,
            "compared": True,
            "dead": list(DEAD[:SHOWN_CHANNELS]),
            "noisy": [],
            "n_dead": len(DEAD),
            "n_noisy": 0,
        }
    }


def test_the_groups_have_the_constants_of_each_run(tmp_path: Path) -> None:
    (tmp_path / "masks.toml").write_text(
        "beam_x = 0\nbeam_y = 0\nvelo_opening = 0\nmagnet_polarity = 1\nmasked_velo_asics = [3]\n"
    )
    index = 'format = 1\nchain = "lhcb"\nversion = "v"\n[[runs]]\nfirst = 1\nfiles = ["masks.toml"]\n'
    (tmp_path / "conditions.toml").write_text(index)
    folder = ConditionsFolder.load(tmp_path, "lhcb", CHAIN.conditions)
    geometry = CHAIN.with_sequence("velo").load_geometry(None)
    followed = FollowedConditions(CHAIN, geometry, CHAIN.load_trigger(None, "velo"), folder)
    config = make_config(tmp_path)
    engine = CountingEngine(batch_limits(config))
    engine.measured = followed.configured.measured
    engine.histograms = (SHAPE, *(each.shape for each in CHAIN.filled_histograms(followed.configured.trigger)))
    core = NodeCore(config, engine, backend="fake", gpu=None, version="", clock_ns=time.monotonic_ns, followed=followed)
    assert engine.changed == [frozenset()]
    core.conditions_of_runs.begin(1)
    assert engine.changed == [frozenset(), frozenset(followed.current.constants)]


async def test_a_node_without_groups_of_channels_shows_none(tmp_path: Path) -> None:
    async with running_node(make_config(tmp_path)) as (node, _):
        assert await shown(node) == ({}, {})
