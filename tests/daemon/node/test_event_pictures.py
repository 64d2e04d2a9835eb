"""The picture of an accepted event: made when a browser shows the page, one at a time, at no cost for the node."""

from __future__ import annotations

import asyncio
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import zmq.asyncio

from hltnode.daemon.commands.node.serving import picture_loader
from hltnode.daemon.common.vocabulary import EventStream
from hltnode.daemon.node.event_pictures import MAX_RECORD_BYTES, Draw, EventPictures
from hltnode.daemon.node.sizing import batch_limits
from hltnode.daemon.output.gathering import GatheredBatch
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.daemon.storage.record_block import RecordBlock
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.followed_conditions import FollowedConditions
from hltnode.processing.selection.trigger_chain import Constants, TriggerChain
from hltnode.protocol import Odin, encode_banks, encode_odin, encode_record
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.reports import HltDecReports, LineReport
from tests.daemon.fakes import RUN, FakeEngine, make_config, make_feeder, node_of_engine, synthetic_meps
from tests.protocol.raw_data.report_encoders import encode_dec_reports

PERIOD_NS = 10_000_000_000
REPORT = encode_dec_reports(HltDecReports(1, 1, 1, (LineReport(True, 2), LineReport(False, 1), LineReport(True, 9))))


def batch_of(*records: bytes) -> GatheredBatch:
    ends = np.cumsum([len(record) for record in records]).astype(np.uint64)
    block = RecordBlock(7, memoryview(b"".join(records)), ends, np.zeros(len(records), np.uint64))
    return cast(GatheredBatch, SimpleNamespace(events={EventStream.ACCEPTED: [block]}))


RECORD = encode_record(encode_banks([encode_odin(Odin(run=7, event_id=99)), REPORT]), run=7)


class Bench:
    """Pictures of a clock that the test sets; `draw` is called for each one."""

    def __init__(self, draw: Callable[[Sequence[RawBank]], str] = lambda banks: f"<svg>{len(banks)}</svg>") -> None:
        self.loads = 0
        self.now_ns = 0
        self.tck = 1
        self._draw = draw
        self.pictures = EventPictures(self.load, ("a", "b"), PERIOD_NS, lambda: self.now_ns, lambda: self.tck)

    def load(self) -> Callable[[Sequence[RawBank]], str]:
        self.loads += 1
        return self._draw

    def offer(self, *records: bytes) -> None:
        self.pictures.offer(batch_of(*records))
        self.pictures.stop(10)


def test_no_picture_is_drawn_before_the_page_is_requested() -> None:
    bench = Bench()
    assert not bench.pictures.wanted
    assert bench.loads == 0


def test_a_request_orders_a_picture_and_the_next_request_shows_it() -> None:
    bench = Bench()
    assert bench.pictures.look().note == "Waiting for an accepted event."
    assert bench.pictures.wanted
    bench.offer(RECORD)
    bench.now_ns += 2_000_000_000
    seen = bench.pictures.look()
    assert (seen.svg, seen.title, seen.lines, seen.age, seen.note) == (
        "<svg>2</svg>",
        "Run 7, event 99",
        ("b",),
        2.0,
        "",
    )
    assert not bench.pictures.wanted


def test_the_next_event_is_drawn_after_the_period_with_the_same_picture_maker() -> None:
    bench = Bench()
    for _ in range(3):
        bench.pictures.look()
        assert bench.pictures.wanted
        bench.offer(RECORD)
        bench.now_ns += PERIOD_NS - 1
        bench.pictures.look()
        assert not bench.pictures.wanted
        bench.now_ns += 1
    assert bench.loads == 1


def test_an_event_after_a_change_of_the_tck_is_drawn_by_a_new_picture_maker() -> None:
    bench = Bench()
    loads = []
    for tck in (1, 2, 2, 1):
        bench.tck = tck
        bench.pictures.look()
        bench.offer(RECORD)
        bench.now_ns += PERIOD_NS
        loads.append(bench.loads)
    assert loads == [1, 2, 2, 3]


def test_a_batch_without_accepted_events_is_skipped() -> None:
    bench = Bench()
    bench.pictures.look()
    bench.pictures.offer(cast(GatheredBatch, SimpleNamespace(events={})))
    assert bench.pictures.wanted
    bench.pictures.offer(batch_of(bytes(MAX_RECORD_BYTES + 1)))
    assert bench.pictures.wanted
    assert bench.loads == 0


@pytest.mark.parametrize("record", [b"", b"\xff" * 4096, RECORD[:-5], RECORD[:60] + b"\xff" * (len(RECORD) - 60)])
def test_an_unreadable_record_costs_only_its_picture(record: bytes) -> None:
    bench = Bench()
    bench.pictures.look()
    bench.offer(record)
    assert "could not be drawn" in bench.pictures.look().note
    bench.now_ns += PERIOD_NS
    bench.pictures.look()
    bench.offer(RECORD)
    assert bench.pictures.look().note == ""


def test_a_failed_or_hung_drawing_delays_nothing() -> None:
    released = threading.Event()

    def hang(_: Sequence[RawBank]) -> str:
        released.wait(30)
        raise RuntimeError("broken")

    bench = Bench(hang)
    bench.pictures.look()
    bench.pictures.offer(batch_of(RECORD))
    bench.now_ns += 10 * PERIOD_NS
    assert bench.pictures.look().note == "The event is being drawn."
    assert not bench.pictures.wanted
    released.set()
    bench.pictures.stop(10)
    assert "could not be drawn" in bench.pictures.look().note


@pytest.mark.loopback
@pytest.mark.parametrize("follows", [True, False])
async def test_a_node_draws_with_the_conditions_that_it_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, follows: bool
) -> None:
    loaded: list[dict[str, object]] = []

    def load(_chain: TriggerChain, _geometry: Constants, trigger: TriggerConfig) -> Draw:
        loaded.append(dict(trigger.conditions))
        return lambda _banks: "<svg></svg>"

    monkeypatch.setattr(TriggerChain, "picture_maker", load)
    config = make_config(tmp_path, http={"event_picture_s": 0.001})
    engine = FakeEngine(batch_limits(config))
    geometry, trigger = CHAIN.with_sequence("velo").load_geometry(None), CHAIN.load_trigger(None, "velo")
    followed = FollowedConditions(CHAIN, geometry, trigger)
    engine.tck = followed.current.tck
    draw = picture_loader(CHAIN, geometry, trigger, followed if follows else None)
    async with node_of_engine(config, engine, "fake", draw=draw) as node:
        pictures = node._pictures
        assert pictures is not None
        for values in ({}, {"beam_x": 0.5}):
            # As the conditions of a run do, before its first batch.
            followed.current = followed.with_values(values)
            engine.tck = followed.current.tck
            pictures.look()
            pictures.offer(batch_of(RECORD))
            await asyncio.to_thread(pictures.stop, 10)
    assert loaded == [{}, {"beam_x": 0.5} if follows else {}]


def status_page_of(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
        text: str = answer.read().decode()
    return text


@pytest.mark.loopback
@pytest.mark.usefixtures("nothing_is_left_behind")
async def test_the_page_of_a_node_shows_its_state_and_an_accepted_event(tmp_path: Path) -> None:
    config = make_config(tmp_path)
    drawn: list[int] = []

    def draw(banks: Sequence[RawBank]) -> str:
        drawn.append(len(banks))
        return '<svg id="drawn"></svg>'

    engine = FakeEngine(batch_limits(config), ("<b>every_second",))
    with zmq.asyncio.Context() as context:
        async with node_of_engine(config, engine, "fake", draw=lambda: draw) as node:
            assert "Waiting for an accepted event" in await asyncio.to_thread(status_page_of, node.http_port)
            async with make_feeder(context, node, name="feeder-7") as feeder:
                await feed_meps(synthetic_meps(20), [feeder])
                # A page is cached for a second, for all clients.
                while 'id="drawn"' not in (page := await asyncio.to_thread(status_page_of, node.http_port)):
                    await asyncio.sleep(0.05)
                assert "feeder-7" in page
                assert "&lt;b&gt;every_second" in page
                assert f"run {RUN}" in page
            assert "<b>every_second" not in page
    assert len(drawn) == 1


@pytest.mark.loopback
async def test_a_node_with_pictures_off_draws_nothing(tmp_path: Path) -> None:
    config = make_config(tmp_path, http={"event_picture_s": 0})

    def load() -> Any:
        raise AssertionError("nothing is to be drawn")

    engine = FakeEngine(batch_limits(config))
    with zmq.asyncio.Context() as context:
        async with node_of_engine(config, engine, "fake", draw=load) as node:
            await asyncio.to_thread(status_page_of, node.http_port)
            async with make_feeder(context, node) as feeder:
                await feed_meps(synthetic_meps(3), [feeder])
            assert "An accepted event" not in await asyncio.to_thread(status_page_of, node.http_port)


@pytest.mark.loopback
async def test_a_page_is_created_once_per_second_for_any_number_of_clients(tmp_path: Path) -> None:
    config = make_config(tmp_path)
    async with node_of_engine(config, FakeEngine(batch_limits(config)), "fake") as node:
        begin = time.monotonic()
        pages = {await asyncio.to_thread(status_page_of, node.http_port) for _ in range(40)}
        assert len(pages) <= 2 + (time.monotonic() - begin) / 0.9
