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

from hltnode.daemon.common.vocabulary import EventStream
from hltnode.daemon.node.event_pictures import MAX_RECORD_BYTES, EventPictures
from hltnode.daemon.node.sizing import batch_limits
from hltnode.daemon.output.gathering import GatheredBatch
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.daemon.storage.record_block import RecordBlock
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
        self._draw = draw
        self.pictures = EventPictures(self.load, ("a", "b"), PERIOD_NS, lambda: self.now_ns)

    def load(self) -> Callable[[Sequence[RawBank]], str]:
        self.loads += 1
        return self._draw

    def offer(self, *records: bytes) -> None:
        self.pictures.offer(batch_of(*records))
        self.pictures.stop(10)


def test_nothing_is_made_before_somebody_looks() -> None:
    bench = Bench()
    assert not bench.pictures.wanted
    assert bench.loads == 0


def test_a_look_asks_for_an_event_and_the_next_one_shows_it() -> None:
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


def test_the_next_event_is_taken_after_the_period_and_what_draws_is_made_once() -> None:
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


def test_a_batch_without_accepted_events_is_passed_over() -> None:
    bench = Bench()
    bench.pictures.look()
    bench.pictures.offer(cast(GatheredBatch, SimpleNamespace(events={})))
    assert bench.pictures.wanted
    bench.pictures.offer(batch_of(bytes(MAX_RECORD_BYTES + 1)))
    assert bench.pictures.wanted
    assert bench.loads == 0


@pytest.mark.parametrize("record", [b"", b"\xff" * 4096, RECORD[:-5], RECORD[:60] + b"\xff" * (len(RECORD) - 60)])
def test_a_record_that_cannot_be_read_costs_the_picture_alone(record: bytes) -> None:
    bench = Bench()
    bench.pictures.look()
    bench.offer(record)
    assert "could not be drawn" in bench.pictures.look().note
    bench.now_ns += PERIOD_NS
    bench.pictures.look()
    bench.offer(RECORD)
    assert bench.pictures.look().note == ""


def test_a_drawing_that_fails_or_hangs_is_not_waited_for() -> None:
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


def status_page_of(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
        text: str = answer.read().decode()
    return text


@pytest.mark.loopback
@pytest.mark.usefixtures("nothing_is_left_behind")
async def test_the_page_of_a_node_shows_what_it_does_and_an_event_that_it_has_accepted(tmp_path: Path) -> None:
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
async def test_a_node_that_is_told_to_draw_nothing_draws_nothing(tmp_path: Path) -> None:
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
async def test_a_page_is_made_once_a_second_however_many_look(tmp_path: Path) -> None:
    config = make_config(tmp_path)
    async with node_of_engine(config, FakeEngine(batch_limits(config)), "fake") as node:
        begin = time.monotonic()
        pages = {await asyncio.to_thread(status_page_of, node.http_port) for _ in range(40)}
        assert len(pages) <= 2 + (time.monotonic() - begin) / 0.9
