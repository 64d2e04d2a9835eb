"""The farm page: rows, sums, nodes that do not answer, and nodes that lie."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest

from hltnode.daemon.common.bounded_get import NoAnswerError
from hltnode.daemon.monitoring.farm_page.farm_reader import SHOWN_SECONDS, THREADS, FarmReader, NodeView
from hltnode.daemon.monitoring.farm_page.overview import MAX_MISSING, MAX_PROBLEMS, Overview, overview_of, read_overview
from hltnode.daemon.monitoring.farm_page.page import FIRST_ANSWER_NS, farm_page, farm_rows, farm_sums
from hltnode.daemon.monitoring.status_page.rates import Rates
from hltnode.protocol.transport.run_control_messages import RunState
from tests.daemon.manual_clock import ManualClock

HOSTILE = "</table><script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{ 7 * 7 }}"
SECOND = 1_000_000_000
FRESH_NS = 8 * SECOND


def overview(text: str = "plain", **changes: object) -> Overview:
    it = Overview(
        node="n1",
        state=RunState.RUNNING,
        run=7,
        ready=False,
        problems=(text,),
        version=text,
        chain=text,
        tck=text,
        events_per_s=1000.0,
        accepted_per_s=10.0,
        bytes_per_s=2e9,
        dead_time=0.25,
        latency_s=0.02,
        feeders=3,
        n_missing_feeders=9,
        missing_feeders=(text, text),
        n_silent_sources=0,
        silent_sources=(),
        time=1.8e9,
    )
    return msgspec.structs.replace(it, **changes)


def page(*views: NodeView, now_ns: int = 0) -> str:
    rows = farm_rows(views, now_ns, FRESH_NS)
    return farm_page(rows, node="n0", period=2.0, time="2026-11-28 05:00:00", documentation=None).decode()


class Elements(HTMLParser):
    """Tags and attributes of a page, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_texts_of_other_nodes_are_escaped_and_links_lead_to_configured_addresses_only() -> None:
    plain, hostile = (
        Elements(page(NodeView("http://a:1", overview(text), 0), NodeView("http://b:1", error=text, since_ns=0)))
        for text in ("plain", HOSTILE)
    )
    assert hostile.tags == plain.tags
    assert hostile.text.count(HOSTILE) == plain.text.count("plain") == 4
    links = {dict(attributes)["href"] for tag, attributes in hostile.tags if tag == "a"}
    assert links == {"http://a:1", "http://b:1", "."}


def test_a_node_that_does_not_answer_is_a_red_row_at_the_top_with_the_reason() -> None:
    html = page(
        NodeView("http://a:1", overview(), 12 * SECOND),
        NodeView("http://b:1", overview(), 2 * SECOND, "connection refused", 4 * SECOND),
        now_ns=14 * SECOND,
    )
    assert html.index("http://b:1") < html.index("http://a:1")
    assert re.search('<tr role="row" class="lost"><td [^>]+><a href="http://b:1"', html)
    text = Elements(html).text
    assert "✗ does not answer: connection refused" in text
    assert "12.0 s ago" in text
    assert "✗ 1 of 2 nodes do not answer" in text
    assert "1 lost, farm of 2 nodes" in text


def test_a_node_is_red_if_its_request_hangs_and_not_before_the_first_answer_can_come() -> None:
    asked = NodeView("http://a:1", since_ns=0)
    assert "is being asked" in page(asked, now_ns=FIRST_ANSWER_NS)
    assert "does not answer: no answer" in Elements(page(asked, now_ns=FIRST_ANSWER_NS + 1)).text
    answered = NodeView("http://a:1", overview(), 0)
    assert "does not answer" not in Elements(page(answered, now_ns=FRESH_NS)).text.partition("use strict")[0]
    assert "does not answer: no answer" in Elements(page(answered, now_ns=FRESH_NS + 1)).text


def test_sums_are_those_of_the_nodes_that_answer() -> None:
    views = [
        NodeView("http://a:1", overview(), 0),
        NodeView(
            "http://b:1",
            overview(ready=True, dead_time=0.75, state=RunState.PAUSED, n_missing_feeders=0, n_silent_sources=4),
            0,
        ),
        NodeView("http://c:1", overview(run=None, dead_time=1.0), 0),
        NodeView("http://d:1", overview(), 0, "connection refused", 0),
    ]
    sums = farm_sums(farm_rows(views, 0, FRESH_NS))
    assert (sums.answering, sums.running, sums.ready, sums.feeders) == (3, 2, 1, 9)
    assert (sums.missing_feeders, sums.silent_sources) == (18, 4)
    assert (sums.events, sums.accepted, sums.bytes, sums.dead_time) == (3000.0, 30.0, 6e9, 0.5)


def test_different_keys_and_runs_of_the_nodes_are_shown() -> None:
    html = page(NodeView("http://a:1", overview(), 0), NodeView("http://b:1", overview(run=8, tck="0x2"), 0))
    assert "different trigger configurations: TCK 0x2, plain" in html
    assert "different runs: 7, 8" in html


def test_the_page_tells_missing_feeders_from_silent_sources() -> None:
    def words(**changes: Any) -> str:
        return Elements(page(NodeView("http://a:1", overview(ready=True, **changes), 0))).text.partition("use strict")[
            0
        ]

    none: dict[str, Any] = {"n_missing_feeders": 0, "missing_feeders": ()}
    feeders = words(n_missing_feeders=1, missing_feeders=("west",))
    assert "✗ 1 feeder missing" in feeders
    assert "✗ missing feeders: west" in feeders
    assert "✗ silent" not in feeders
    assert "source silent" not in feeders
    sources = words(**none, n_silent_sources=2, silent_sources=(0x401,))
    assert "✗ 2 sources silent" in sources
    assert "✗ silent sources: 0x0401 …" in sources
    assert "✗ missing" not in sources
    assert "feeders missing" not in sources
    assert "✗" not in words(**none)


RATES = Rates(seconds=10.0, events=1e6, accepted=1e3, bytes=4e9, lines={}, dead_time={"disk": 0.7, "computing": 0.4})


def status() -> dict[str, object]:
    return {
        **{"node": "n1", "state": "running", "run": 7, "version": "0.5.0", "chain": "lhcb", "tck": "0x1"},
        "feeders": [{"connected": True}, {"connected": False}],
        "n_missing_feeders": 5000,
        "silent_sources": list(range(70_000)),
    }


def test_the_overview_of_a_large_node_in_trouble_is_read_back_and_small() -> None:
    body = overview_of(status(), ["x" * 5000] * 40, RATES, float("nan"), ["y" * 900] * 5000, 1.8e9)
    read = read_overview(body)
    assert len(body) < 16_000
    assert (len(read.problems), len(read.missing_feeders), read.n_missing_feeders) == (MAX_PROBLEMS, MAX_MISSING, 5000)
    assert (read.silent_sources, read.n_silent_sources) == (tuple(range(MAX_MISSING)), 70_000)
    assert (read.dead_time, read.latency_s, read.feeders, read.ready) == (1.0, None, 1, False)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"null", b"{}", b"\xff", b"[" * 60_000, b'{"a":' * 10_000, b"<html>", b"1" * 60_000,
        msgspec.json.encode(overview(node=HOSTILE)),
        msgspec.json.encode(overview(state="busy")),
        msgspec.json.encode(overview(events_per_s=-1.0)),
        msgspec.json.encode(overview(events_per_s=1e300)),
        msgspec.json.encode(overview(dead_time=1.5)),
        msgspec.json.encode(overview(run=-1)),
        msgspec.json.encode(overview(problems=("x" * 301,))),
        msgspec.json.encode(overview(missing_feeders=("x",) * 17)),
        msgspec.json.encode(overview(silent_sources=(1,) * (MAX_MISSING + 1))),
        msgspec.json.encode(overview(silent_sources=("<b>",))),
        msgspec.json.encode(overview(n_silent_sources=-1)),
        msgspec.json.encode(overview(feeders="3")),
        msgspec.json.encode(overview()).replace(b"1000.0", b"1e999"),
        msgspec.json.encode(overview()).replace(b"1000.0", b"NaN"),
    ],
)  # fmt: skip
def test_an_answer_that_is_not_an_overview_is_refused(body: bytes) -> None:
    with pytest.raises(NoAnswerError, match="not that of a node"):
        read_overview(body)


class Farm:
    """Nodes whose answers a test holds back."""

    def __init__(self, n: int) -> None:
        self.addresses = [f"http://n{i}:1" for i in range(n)]
        self.asked: list[str] = []
        self.at_a_time = self.most_at_a_time = 0
        self.answer = threading.Event()
        self.lock = threading.Lock()
        self.lost = ""

    def read(self, address: str) -> Overview:
        with self.lock:
            self.asked.append(address)
            self.at_a_time += 1
            self.most_at_a_time = max(self.most_at_a_time, self.at_a_time)
        try:
            assert self.answer.wait(10)
        finally:
            with self.lock:
                self.at_a_time -= 1
        if address == self.lost:
            raise NoAnswerError("connection refused")
        return overview()


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_hanging_nodes_delay_no_page_and_take_a_few_threads_only() -> None:
    farm = Farm(3 * THREADS)
    reader = FarmReader(farm.addresses, read=farm.read)
    try:
        start = time.monotonic()
        assert all(view.overview is None for view in reader.look())
        assert time.monotonic() - start < 5  # a node hangs for 10 s
        wait_until(lambda: len(farm.asked) == THREADS)
        farm.lost = farm.addresses[3]
        farm.answer.set()
        wait_until(lambda: all(view.overview or view.error for view in reader.look()))
        assert farm.most_at_a_time == THREADS
        assert set(farm.asked) == set(farm.addresses)
        [lost] = [view for view in reader.look() if view.error]
        assert (lost.address, lost.error, lost.overview) == (farm.lost, "connection refused", None)
    finally:
        farm.answer.set()
        reader.stop()
    for thread in reader._threads:
        thread.join(5)
        assert not thread.is_alive()


def test_no_node_is_asked_before_a_page_is_shown_or_long_after() -> None:
    clock = ManualClock()
    farm = Farm(1)
    farm.answer.set()
    reader = FarmReader(farm.addresses, read=farm.read, clock_ns=clock.monotonic_ns)
    try:
        assert not reader._threads
        reader.look()
        wait_until(lambda: reader.look()[0].overview is not None)
        clock.now_ns += int((SHOWN_SECONDS + 1) * SECOND)
        # The old answer is not shown as one of now.
        assert replace(reader.look()[0], answered_ns=None).overview is None
        wait_until(lambda: len(farm.asked) == 2)
    finally:
        reader.stop()
    for thread in reader._threads:
        thread.join(5)


def test_a_large_farm_is_asked_less_often() -> None:
    assert FarmReader(["http://a:1"] * 8).period_ns == 2 * SECOND
    assert FarmReader([f"http://n{i}:1" for i in range(256)]).period_ns == 8 * SECOND
