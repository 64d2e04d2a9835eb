"""The identities of the accounts hold in every scrape of a busy node, not only at its end."""

import asyncio
import json
import time
import urllib.request
from pathlib import Path

import pytest
import zmq.asyncio

from hltnode.client.fault_injection import FaultInjector, FaultPlan
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.monitoring.snapshot import snapshot
from hltnode.daemon.node.node import Node
from hltnode.daemon.replay.single_node import feed_meps
from tests.daemon.fakes import SOURCES, make_config, make_feeder, running_node, synthetic_meps
from tests.daemon.pages import all_metrics


def total(metrics: dict[str, float], family: str) -> float:
    return sum(value for series, value in metrics.items() if series.partition("{")[0] == family)


def check_metrics(metrics: dict[str, float]) -> None:
    classes = {
        name: total(metrics, f"hltnode_fragments_{name}")
        for name in ("built_total", "lost_in_drop_total", "abandoned_total", "rejected_total", "in_build")
    }
    assert metrics["hltnode_fragments_received_total"] == sum(classes.values()), classes
    meps = {name: total(metrics, f"hltnode_meps_{name}") for name in ("closed_total", "abandoned_total", "open")}
    assert metrics["hltnode_meps_opened_total"] == sum(meps.values()), meps
    assert metrics['hltnode_mep_stage_seconds_count{stage="build"}'] == meps["closed_total"]
    by_source = total(metrics, "hltnode_source_fragments_received_total")
    assert by_source <= metrics["hltnode_fragments_received_total"]


def status_of(port: int) -> dict[str, dict[str, dict[str, int]]]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=10) as page:
        status: dict[str, dict[str, dict[str, int]]] = json.load(page)
        return status


async def scrape_all(node: Node, scrapes: int) -> tuple[int, float]:
    """Scrape the busy node; returns in how many scrapes it was building, and how many fragments it took meanwhile."""
    first = node.counters.fragments_received
    building = 0
    for number in range(scrapes):
        metrics = await asyncio.to_thread(all_metrics, node.http_port)
        check_metrics(metrics)
        building += metrics["hltnode_fragments_in_build"] > 0
        if number % 5 == 0:
            for account in (await asyncio.to_thread(status_of, node.http_port))["accounting"].values():
                assert account["unaccounted"] == 0
    return building, node.counters.fragments_received - first


@pytest.mark.loopback
@pytest.mark.timeout(300)
@pytest.mark.parametrize("scrapes", [80, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.usefixtures("nothing_is_left_behind")
async def test_the_identities_hold_in_every_scrape_of_a_busy_node(tmp_path: Path, scrapes: int) -> None:
    builder = {"min_feeders": 2, "max_feeders": 2, "mep_timeout_ms": 50, "overtaken_after_ms": 50, "evict_after_ms": 50}
    plan = FaultPlan.parse("drop=0.01,duplicate=0.02,reorder=0.05,corrupt=0.01")
    with zmq.asyncio.Context() as context:
        async with (
            running_node(make_config(tmp_path, builder=builder)) as (node, _),
            make_feeder(context, node, name="a", sources=SOURCES[:2]) as first,
            make_feeder(context, node, name="b", sources=SOURCES[2:]) as second,
        ):
            first.faults, second.faults = (FaultInjector(plan, seed) for seed in (1, 2))
            feeding = asyncio.create_task(feed_meps(synthetic_meps(1_000_000), [first, second]))
            building, fragments = await scrape_all(node, scrapes)
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)
    assert building > scrapes // 10
    assert fragments > 1000


def test_a_snapshot_does_not_change_with_the_counters() -> None:
    counters = Counters()
    counters.expect_sources([1])
    taken = snapshot(counters)
    counters.fragments_received += 1
    counters.sources[1].fragments += 1
    counters.mep_latency.observe(1.0)
    counters.meps_closed[next(iter(counters.meps_closed))] += 1
    counters.writer.streams[next(iter(counters.writer.streams))].events += 1
    counters.operation.reloads[next(iter(counters.operation.reloads))] += 1
    assert taken.fragments_received == taken.sources[1].fragments == sum(taken.mep_latency.counts) == 0
    assert not any(taken.meps_closed.values())
    assert not any(stream.events for stream in taken.writer.streams.values())
    assert not any(taken.operation.reloads.values())


def test_a_snapshot_of_a_thousand_sources_takes_milliseconds() -> None:
    counters = Counters()
    counters.expect_sources(range(1000))
    seconds = []
    for _ in range(10):
        begin = time.perf_counter()
        snapshot(counters)
        seconds.append(time.perf_counter() - begin)
    print(f"{min(seconds) * 1e3:.2f} ms")
    assert min(seconds) < 0.02
