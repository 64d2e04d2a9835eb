"""Metrics of sources stay until the next run starts, those of lost feeders until they are back."""

from __future__ import annotations

import asyncio
import subprocess
import time
from datetime import datetime
from pathlib import Path

import pytest
import zmq.asyncio

from hltnode.daemon.commands.node.top import Watched
from hltnode.daemon.monitoring.status_page.missing import missing_rows
from hltnode.daemon.node.node import Node
from tests.daemon.fakes import (
    RUN,
    SOURCES,
    InterceptedConnection,
    eventually,
    make_config,
    make_feeder,
    running_node,
    synthetic_meps,
)
from tests.daemon.pages import all_metrics, text_of

pytestmark = pytest.mark.loopback


async def metrics_of(node: Node) -> dict[str, float]:
    return await asyncio.to_thread(all_metrics, node.http_port)


def sources_of(metrics: dict[str, float]) -> set[int]:
    return {int(series.split('"')[1]) for series in metrics if series.startswith("hltnode_source_")}


async def test_sources_have_series_from_the_start_of_their_run_to_that_of_the_next(tmp_path: Path) -> None:
    with zmq.asyncio.Context() as context:
        async with running_node(make_config(tmp_path)) as (node, _):
            before = await metrics_of(node)
            assert (sources_of(before), before["hltnode_run_active"], before["hltnode_sources_expected"]) == (
                set(),
                0,
                0,
            )
            for run, sources in ((RUN, SOURCES), (RUN + 1, SOURCES[:2])):
                async with make_feeder(context, node, run=run, sources=sources) as feeder:
                    for mep in synthetic_meps(3, sources=sources):
                        await feeder.offer(mep)
                    await eventually(lambda: feeder.window.unacknowledged == 0)
                    during = await metrics_of(node)
                    assert sources_of(during) == set(sources)
                    assert (during["hltnode_run_active"], during["hltnode_sources_expected"]) == (1, len(sources))
                    assert (during["hltnode_run_number"], during["hltnode_feeders_lost"]) == (run, 0)
                    await feeder.finish(2)
                await eventually(lambda: not node.status.state().run_active)
                after = await metrics_of(node)
                assert sources_of(after) == set(sources)
                assert (after["hltnode_run_active"], after["hltnode_sources_expected"]) == (0, 0)
                assert not any(after[f'hltnode_source_silent{{source="{source}"}}'] for source in sources)


async def test_a_feeder_that_falls_silent_in_its_run_is_lost_until_it_says_hello_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hltnode.daemon.readout.run_feeders.SILENT_NS", 1_500_000_000)
    with zmq.asyncio.Context() as context:
        async with running_node(make_config(tmp_path)) as (node, _):
            connection = InterceptedConnection(context, node)
            async with make_feeder(context, node, connection=connection, name="west") as feeder:
                for mep in synthetic_meps(3):
                    await feeder.offer(mep)
                await eventually(lambda: feeder.window.unacknowledged == 0)
                connection.sends_messages = False
                await eventually(lambda: node.status.state().lost_feeders)
                lost = await metrics_of(node)
                assert lost["hltnode_feeders_lost"] == 1
                assert lost[f'hltnode_feeder_lost{{name="west",run="{RUN}"}}'] == 1
                status = node.status.full()
                [missing] = status["missing_feeders"]
                assert status["n_missing_feeders"] == 1
                assert (missing["run"], missing["feeder"]) == (RUN, "west")
                assert missing["silent_seconds"] >= 1.5
                since = datetime.fromisoformat(missing["since"]).timestamp()
                assert abs(time.time() - since - missing["silent_seconds"]) < 5.0
                connection.sends_messages = True
                await eventually(lambda: not node.status.state().lost_feeders)
                found = await metrics_of(node)
                assert (found["hltnode_feeders_lost"], found["hltnode_run_active"]) == (0, 1)
                assert f'hltnode_feeder_lost{{name="west",run="{RUN}"}}' not in found
                assert node.status.full()["missing_feeders"] == []


async def test_feeders_of_a_kept_run_stay_lost_and_are_named_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hltnode.daemon.readout.run_feeders.SILENT_NS", 1_500_000_000)
    monkeypatch.setattr("hltnode.daemon.readout.run_feeders.RETURN_NS", 2_000_000_000)
    with zmq.asyncio.Context() as context:
        async with running_node(make_config(tmp_path)) as (node, _):
            async with make_feeder(context, node, name="west") as feeder:
                for mep in synthetic_meps(3):
                    await feeder.offer(mep)
                await eventually(lambda: feeder.window.unacknowledged == 0)
            await eventually(lambda: node.builder_control.registry.kept)
            found = await metrics_of(node)
            assert (found["hltnode_runs_deserted"], found["hltnode_feeders_lost"], found["hltnode_runs_kept"]) == (
                1,
                0,
                1,
            )
            assert found[f'hltnode_feeder_lost{{name="west",run="{RUN}"}}'] == 1
            page = await asyncio.to_thread(text_of, node.http_port, "/")
            assert '<td class="error">west</td>' in page
            watched = Watched([f"http://127.0.0.1:{node.http_port}"])
            await asyncio.to_thread(watched.read)
            [row] = watched.describe().values()
            assert str(missing_rows(row["missing_feeders"])[0]).startswith("west since 20")
            async with make_feeder(context, node, name="west"):
                await eventually(lambda: not node.status.state().feeders_of_deserted_runs)
                assert (await metrics_of(node))["hltnode_feeders_lost"] == 0


async def test_promtool_finds_no_fault_in_the_metrics_of_a_node_in_a_run(tmp_path: Path, promtool: str) -> None:
    with zmq.asyncio.Context() as context:
        async with running_node(make_config(tmp_path)) as (node, _), make_feeder(context, node) as feeder:
            for mep in synthetic_meps(3):
                await feeder.offer(mep)
            await eventually(lambda: feeder.window.unacknowledged == 0)
            text = await asyncio.to_thread(text_of, node.http_port, "/metrics")
    assert "hltnode_source_fragments_received_total{" in text
    checked = subprocess.run(
        [promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False, timeout=30
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
