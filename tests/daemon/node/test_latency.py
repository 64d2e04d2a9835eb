"""Latency from the first fragment of a MEP to its decision: the metrics, and no hand-over that waits for a timer."""

import asyncio
from pathlib import Path

import pytest
import zmq.asyncio

from hltnode.daemon.common.vocabulary import MepStage
from hltnode.daemon.node.periodic_tasks import HEARTBEAT_NS
from hltnode.daemon.replay.single_node import feed_meps
from tests.daemon.fakes import eventually, make_config, make_feeder, running_node, synthetic_meps
from tests.daemon.pages import all_metrics

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]

MEPS = 40


def stage(name: str, stage: str) -> str:
    return f'hltnode_mep_stage_seconds_{name}{{stage="{stage}"}}'


async def test_the_stages_of_a_mep_add_up_to_its_latency(tmp_path: Path) -> None:
    with zmq.asyncio.Context() as context:
        async with (
            running_node(make_config(tmp_path)) as (node, engine),
            make_feeder(context, node) as feeder,
        ):
            before = await asyncio.to_thread(all_metrics, node.http_port)
            assert {before[stage("count", each)] for each in MepStage} == {0.0}
            engine.behaviour.seconds = 0.01
            assert (await feed_meps(synthetic_meps(MEPS), [feeder])).complete
            after = await asyncio.to_thread(all_metrics, node.http_port)
    counts = {each: after[stage("count", each)] for each in MepStage}
    sums = {each: after[stage("sum", each)] for each in MepStage}
    assert counts == dict.fromkeys(MepStage, MEPS)
    assert after["hltnode_mep_latency_seconds_count"] == after["hltnode_end_to_end_seconds_count"] == MEPS
    assert sum(sums.values()) == pytest.approx(after["hltnode_mep_latency_seconds_sum"])
    assert min(sums.values()) >= 0.0
    assert sums[MepStage.COMPUTE] >= MEPS * 0.01


async def test_a_slot_that_is_not_full_is_sealed_within_its_deadline_of_microseconds(tmp_path: Path) -> None:
    deadline_us = 2_500
    late = []
    with zmq.asyncio.Context() as context:
        config = make_config(tmp_path, pipeline={"flush_deadline_us": deadline_us})
        async with running_node(config) as (node, _), make_feeder(context, node) as feeder:
            stages = node.counters.mep_stages
            for mep in synthetic_meps(30):
                before = sum(stages[each].total for each in (MepStage.BUILD, MepStage.SEAL))
                await feeder.offer(mep)
                while feeder.window.unacknowledged:
                    await asyncio.sleep(0.001)
                passed = sum(stages[each].total for each in (MepStage.BUILD, MepStage.SEAL)) - before
                late.append(passed - deadline_us * 1e-6)
    # It counts from the drain in which the first fragment came, and is never early.
    assert min(late) >= -1e-6
    # A busy machine delays some; with timers of whole milliseconds each one would be half a millisecond off.
    assert min(late) < 0.0004


async def test_a_lone_mep_goes_through_the_node_without_waiting_for_a_heartbeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hltnode.daemon.compute.pipeline.LOOK_SECONDS", 3600.0)
    monkeypatch.setattr("hltnode.daemon.compute.pipeline.IDLE_SECONDS", 3600.0)
    monkeypatch.setattr("hltnode.daemon.node.periodic_tasks.HEARTBEAT_NS", 3600 * 10**9)
    with zmq.asyncio.Context() as context:
        async with (
            running_node(make_config(tmp_path, pipeline={"max_events": 8})) as (node, _),
            make_feeder(context, node) as feeder,
        ):
            await eventually(lambda: feeder.window.limit > 0)
            for mep in synthetic_meps(20):
                await feeder.offer(mep)
                async with asyncio.timeout(5.0):
                    while feeder.window.unacknowledged:
                        await asyncio.sleep(0.001)
            assert node.counters.mep_latency.total < 20 * 0.25


async def test_a_node_that_sleeps_stops_at_once(tmp_path: Path) -> None:
    with zmq.asyncio.Context() as context:
        async with running_node(make_config(tmp_path)) as (node, _), make_feeder(context, node) as feeder:
            await eventually(lambda: feeder.is_connected)
            # After a tick without work the node sleeps for half a second.
            ticked_ns = node.health.loop_tick_ns
            await eventually(lambda: node.health.loop_tick_ns > ticked_ns + HEARTBEAT_NS // 2)
            loop = asyncio.get_running_loop()
            begin = loop.time()
            node.request_stop()
            while node.state != "draining":
                assert loop.time() - begin < 0.4
                await asyncio.sleep(0.001)
