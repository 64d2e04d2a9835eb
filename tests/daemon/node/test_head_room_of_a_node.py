"""A node over TCP whose back end is slower than its input: what each rule does with the slices that do not fit."""

from __future__ import annotations

import asyncio
import io
import json
import re
from pathlib import Path
from types import ModuleType

import pytest
import zmq
import zmq.asyncio
from rich.console import Console

from hltnode.client.feeder import Feeder
from hltnode.client.mep import FeedMep
from hltnode.daemon.commands.node.node_pages import Pages, describe, read_pages
from hltnode.daemon.commands.node.top_screen import screen
from hltnode.daemon.common.bounded_get import bounded_get
from hltnode.daemon.common.vocabulary import HeadRoomRule, StreamTime, WindowCount
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.node.sizing import batch_limits
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.processing.framework.flags import EventFlag
from hltnode.protocol.transport.decisions import SliceDecision, decode_decision
from tests.daemon.fakes import eventually, make_config, make_feeder, node_of_engine, synthetic_meps
from tests.daemon.node.slow_stream import SlowStream
from tests.daemon.node.streamed_hits import BEFORE, BEHIND, LENGTH

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]

N_SLICES, EVENTS = 20, 8
CORE_NS = (EVENTS - BEFORE - BEHIND) * LENGTH


async def feed(meps: list[FeedMep], feeder: Feeder) -> None:
    report = await feed_meps(iter(meps), [feeder])
    assert report.complete


async def check_pages(url: str, before: Pages, n_dropped: int) -> None:
    """The status page, `hltnode top` and the metrics show slices and those that a rule dropped."""
    now = await asyncio.to_thread(read_pages, url)
    shown = describe(before, now)
    of = shown["streaming"]
    assert of["per_second"]["slices"] * (now.at - before.at) == pytest.approx(N_SLICES)
    assert of["per_second"]["dropped"] * (now.at - before.at) == pytest.approx(n_dropped)
    assert of["share"] == {"kept": 0.0, "late": 0.0, "dropped": pytest.approx(n_dropped / N_SLICES)}
    text = io.StringIO()
    Console(file=text, width=120).print(screen({url: shown}))
    assert f"({n_dropped / N_SLICES:.1%})" in text.getvalue()
    assert f"{n_dropped * EVENTS} dropped" in text.getvalue() or not n_dropped
    page = (await asyncio.to_thread(bounded_get, f"{url}/", seconds=10.0, most_bytes=1 << 22)).decode()
    assert "<h2>Slices and windows</h2>" in page
    counts = [int(n) for n in re.findall(r"(\d+) by (?:thin|drop)", page)]
    assert sum(counts) == n_dropped
    metrics = (await asyncio.to_thread(bounded_get, f"{url}/metrics", seconds=10.0, most_bytes=1 << 22)).decode()
    values = re.findall(r'^hltnode_slices_dropped_total\{rule="\w+"\} (\S+)$', metrics, re.MULTILINE)
    assert sum(map(float, values)) == n_dropped
    [taken] = re.findall(r'^hltnode_stream_seconds_total\{time="taken"\} (\S+)$', metrics, re.MULTILINE)
    assert float(taken) == pytest.approx(N_SLICES * CORE_NS / 1e9)


@pytest.mark.parametrize(
    ("rule", "dropped"),
    [
        # Slices 0 and 1 are held by the back end. All others pass through the third slot.
        (HeadRoomRule.KEEP, set()),
        (HeadRoomRule.THIN, {mep for mep in range(2, N_SLICES) if (mep - 2) % 3}),
        (HeadRoomRule.DROP, set(range(2, N_SLICES))),
    ],
)
async def test_each_rule_drops_its_slices_and_all_are_acknowledged_and_accounted_for(
    rule: HeadRoomRule, dropped: set[int], stream: ModuleType, tmp_path: Path
) -> None:
    config = make_config(
        tmp_path,
        pipeline={"max_events": EVENTS},
        streaming={"head_room": rule, "thin_to_one_of": 3},
        trigger={"chain": "stream"},
    )
    engine = SlowStream(stream, batch_limits(config))
    meps = list(synthetic_meps(N_SLICES, sources=stream.SOURCES, events=EVENTS))
    with zmq.asyncio.Context() as context, context.socket(zmq.SUB) as subscriber:
        async with (
            node_of_engine(config, engine, "fake") as node,
            make_feeder(context, node, sources=stream.SOURCES, events=EVENTS, chain="stream") as feeder,
        ):
            engine.behaviour.hanging_slots |= {0, 1}
            subscriber.subscribe(b"")
            subscriber.connect(node.publisher.endpoint)
            await eventually(lambda: node.counters.decisions.subscribers > 0)
            counters = node.counters
            url = f"http://127.0.0.1:{node.http_port}"
            before = await asyncio.to_thread(read_pages, url)
            feeding = asyncio.create_task(feed(meps, feeder))
            # The third slot takes all further slices, whatever the rule: the node never stops.
            await eventually(lambda: counters.meps_acknowledged == N_SLICES - 2)
            assert counters.events_processed == (N_SLICES - 2) * EVENTS
            accounts = accounting(counters, node.builder)
            assert closes(accounts)
            n_of = {HeadRoomRule.THIN: 0, HeadRoomRule.DROP: 0}
            if rule is not HeadRoomRule.KEEP:
                n_of[rule] = len(dropped)
            assert counters.slices_dropped == n_of
            assert accounts["slices"] == {
                "closed": N_SLICES,
                "computed": N_SLICES - len(dropped),
                **{of.value: n for of, n in n_of.items()},
                "in_slots": 0,
                "unaccounted": 0,
            }
            engine.behaviour.hanging_slots.clear()
            await feeding
            await eventually(lambda: counters.meps_acknowledged == N_SLICES)
            decisions = [decode_decision(await subscriber.recv()) for _ in range(N_SLICES)]
            status = node.status.full()
            assert status["streaming"]["dropped"] == {of.value: n for of, n in n_of.items()}
            await check_pages(url, before, len(dropped))
            assert counters.windows[WindowCount.SLICES] == N_SLICES
            assert counters.stream_ns[StreamTime.TAKEN] == N_SLICES * CORE_NS
            assert counters.stream_ns[StreamTime.DROPPED] == len(dropped) * CORE_NS
            assert counters.events_flagged["dropped"] == len(dropped) * EVENTS
    found = set()
    for decision in decisions:
        assert isinstance(decision, SliceDecision)
        flags = set(decision.event_flags().tolist())
        assert flags == ({int(EventFlag.DROPPED)} if decision.mep in dropped else {0})
        assert decision.accepted_events().any() == (decision.mep not in dropped)
        found.add(decision.mep)
    assert found == set(range(N_SLICES))
    [summary] = (tmp_path / "out").glob("*summary*.json")
    written = json.loads(summary.read_text())
    assert written["slices"]["computed"] == N_SLICES - len(dropped)
    assert (written["identities"]["slices"], written["accounting_closes"]) == (True, True)
    assert not list((tmp_path / "out").glob("*error*.mdf"))
