"""The status page: a large node, escaped strings from the network, and a run in a browser."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hltnode.daemon.common.recent_lines import RecentLine
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.monitoring.health import Condition, Health
from hltnode.daemon.monitoring.http_server import HttpServer, as_json
from hltnode.daemon.monitoring.status_page.assets import POLICY
from hltnode.daemon.monitoring.status_page.curves import HOUR_NS, drawn_curves
from hltnode.daemon.monitoring.status_page.drawings import HEIGHT, MAX_STEPS, WIDTH, drawn_histogram
from hltnode.daemon.monitoring.status_page.last_hour import PERIOD_NS, SAMPLES, Samples
from hltnode.daemon.monitoring.status_page.missing import SHOWN_MISSING, MissingRow, missing_rows
from hltnode.daemon.monitoring.status_page.numbers import latency, number, seconds
from hltnode.daemon.monitoring.status_page.page import EventPicture, PageContent, status_page
from hltnode.daemon.monitoring.status_page.rates import WINDOW, Rates, RateWindow
from hltnode.daemon.monitoring.status_page.sources import SHOWN, SourceState, source_rows
from hltnode.processing.framework.histograms import HistogramContent, HistogramShape
from hltnode.processing.lhcb.readout import LHCB_READOUT
from hltnode.protocol.lhcb.subdetectors import SubDetector
from hltnode.protocol.raw_data.source_id import source_id
from tests.chromium import needs_chromium, page_after_scripts, picture

HOSTILE = "</table><script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{ 7 * 7 }}"
SECOND = 1_000_000_000
NAMES = LHCB_READOUT.subdetectors
SHAPE = HistogramShape(name="mass", bins=4, low=0.0, high=2.0, unit="MeV", description="mass of a pair")


def samples_of_an_hour() -> Samples:
    ends = np.arange(1, SAMPLES + 1) * PERIOD_NS
    wave = np.sin(np.arange(SAMPLES) / 20)
    return Samples(ends, np.stack([1e6 + 1e5 * wave, 1e3 + wave, 0.1 + 0.1 * wave, 0.02 + 0.001 * wave], 1, dtype="f4"))


def content(*, text: str = "plain", lines: int = 200, sources: int = 1000, feeders: int = 60) -> PageContent:
    """Content of the page. Every string that can come from the network contains `text`."""
    names = [f"Hlt1{text}{i}" for i in range(lines)]
    status: dict[str, Any] = {
        "node": text,
        "shadow_of": text,
        "streaming": {
            "late_slices": 1,
            "late_sources": [{"source": 1, "slices": 2}],
            "dropped": {text: 1},
            "flagged": {text: 1},
            "faults": {text: 1},
        },
        "combiner": {
            **{"endpoint": text, "session": text, "answers": True, "silent_seconds": 0.4, "oldest_seconds": 1.5},
            **{"held_bytes": 1_230_000, "max_bytes": 4_560_000, "held_slices": 3, "external_windows": 2},
            **{"slices": {text: 7}, "faults": {text: 8, "unsent": 0}},
        },
        "shadow_meps": {"taken": 5, "lost": {text: 2}},
        "state": "running",
        "run": 7,
        "kept": 0,
        "version": text,
        "backend": text,
        "chain": text,
        "tck": "0x00000001",
        "lines": names,
        "feeders": [
            {
                **{"name": f"{text} {i}", "sources": 3, "connected": i % 7 != 0},
                **{"silent_seconds": 8.0, "ended": False, "last_mep": i},
            }
            for i in range(feeders)
        ],
        "n_missing_feeders": 1,
        "missing_feeders": [
            {"run": 7, "feeder": text, "since": "2026-11-23T04:59:00Z", "silent_seconds": 60.0},
            {"run": 6, "feeder": None, "since": None, "silent_seconds": None},
        ],
        "sources": sources,
        "silent_sources": [1],
        "error_banks": {
            "by_type": {text: 12345},
            "most": [{"type": text, "source": 4097, "banks": 12345}],
        },
        "oldest_open_mep": {"mep": 3, "n_missing": 1, "missing": [1]},
        "output_free_bytes": None,
        "output_queue_bytes": 12,
        "credits": 4,
        "slots": {"free": 2, "filling": 1},
        "events": {
            **{"processed": 1000, "accepted": 10},
            "accepted_by_line": {name: i % 3 for i, name in enumerate(names)},
        },
        "accounting": {"fragments": {"unaccounted": 0}},
    }
    states = [SourceState(source_id(SubDetector.VELO_A, i), i * SECOND, 0) for i in range(sources)]
    detectors, worst = source_rows(states, {source_id(SubDetector.VELO_A, 0)}, 5000 * SECOND, NAMES)
    shape = HistogramShape(name=text, bins=4, low=0, high=1, unit=text, description=text, line=text)
    return PageContent(
        status=status,
        missing=[MissingRow(text, text, text)] * 60,
        problems={Condition.DISK: text},
        rates=Rates(
            **{"seconds": 10.0, "events": 1e6, "accepted": 1e3, "bytes": 4e9},
            lines=dict.fromkeys(names, 0.0),
            dead_time={"no_slot": 0.1},
            stream={"slices": 9.0, "windows": 3.0, "late": 1.0, "dropped": 0.0, "taken": 0.5, "kept": 0.01},
        ),
        detectors=detectors,
        worst_sources=worst,
        histograms=[drawn_histogram(HistogramContent(shape, np.arange(7, dtype=np.uint64)))],
        picture=EventPicture("<svg></svg>", text, (text,), 3.0, text),
        curves=drawn_curves(samples_of_an_hour(), HOUR_NS, 1.8e9),
        log=[RecentLine(text, "warning", text, text, text)],
        commands=["pause", "stop"],
        farm=["http://node-1:9105", "http://node-2:9105"],
        documentation="https://docs.example/hltnode/",
        time="2026-11-23 05:00:00",
        histograms_time="04:59:57",
    )


class Elements(HTMLParser):
    """Tags and attributes of a page, and its text."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.text = ""
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_strings_from_the_network_are_escaped_everywhere() -> None:
    plain, hostile = (Elements(status_page(content(text=text))) for text in ("plain", HOSTILE))
    assert hostile.tags == plain.tags
    shown = plain.text.count("plain")
    assert shown > 200
    assert hostile.text.count(HOSTILE) == shown


def test_the_browser_is_told_the_hashes_of_script_and_style() -> None:
    page = status_page(content()).decode()
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        (inside,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in POLICY
    # An attribute with style or script would be refused by that policy.
    assert not re.search(r'<[^>]+ (?:style|on\w+)="', page)
    assert not re.search(r'src="', page)


def test_links_lead_to_pages_of_the_node_and_to_configured_addresses() -> None:
    page = status_page(content()).decode()
    links = re.findall(r'<(\w+)[^>]* href="([^"]+)"', page)
    assert {tag for tag, _ in links} == {"a"}
    own = {"metrics", "histograms", "status", "history", "farm"}
    configured = {"http://node-1:9105", "http://node-2:9105", "https://docs.example/hltnode/"}
    assert {to for _, to in links} == own | configured
    alone = status_page(replace(content(), farm=(), documentation=None)).decode()
    assert set(re.findall(r'href="([^"]+)"', alone)) == own - {"farm"}


def test_a_node_without_a_token_is_read_only_and_says_so() -> None:
    page = status_page(replace(content(), commands=None)).decode()
    assert not re.search("<(?:button|input)", page)
    assert "takes no commands: security.http_token_file is not set" in page
    page = status_page(content()).decode()
    assert re.findall('<button value="([^"]+)"', page) == ["start", "pause", "resume", "stop"]
    assert 'data-legal="pause stop"' in page


def test_missing_feeders_are_shown_in_red_with_the_time_and_the_reason() -> None:
    rows = missing_rows(
        [
            {"run": 7, "feeder": "west-1", "since": "2027-01-15T07:58:30Z", "silent_seconds": 90.0},
            {"run": 6, "feeder": None, "since": None, "silent_seconds": None},
        ]
    )
    assert rows == [
        MissingRow("west-1", "2027-01-15T07:58:30Z (90.0 s)", "run 7 is open and has more to come from it"),
        MissingRow("all feeders", "", "none of run 6 has come back since the node started"),
    ]
    it = content()
    page = status_page(replace(it, missing=rows, status={**it.status, "n_missing_feeders": 70})).decode()
    assert "✗ 70 feeders missing</h2>" in page
    assert f"and {70 - SHOWN_MISSING} more" in page
    assert '<td class="error">west-1</td>' in page
    assert "✗ 1 feeder missing</h2>" in status_page(replace(it, missing=rows[:1])).decode()
    assert "missing</h2>" not in status_page(replace(it, missing=[])).decode()


def test_the_page_of_a_large_node_is_small_and_quickly_made() -> None:
    of_node = content()
    took = []
    for _ in range(5):
        begin = time.process_time()
        page = status_page(of_node)
        took.append(time.process_time() - begin)
    print(f"{min(took) * 1e3:.1f} ms, {len(page)} bytes")
    assert len(page) < 130_000
    text = Elements(page).text
    assert "1 MHz" in text
    assert "4 GB/s" in text
    assert "The 20 sources with the largest lag" in text
    assert "Error banks in place of data: 12345 plain" in text
    assert "0x1001" in text
    assert "and 10 more" in text
    assert "67 lines without an event" in text


def test_the_page_tells_whether_the_combiner_answers_and_what_waits_for_it() -> None:
    shown = content()
    text = status_page(shown).decode()
    for expected in (
        "400 ms ago",
        "3 slices, the oldest for 1.5 s",
        "1.23 MB of 4.56 MB",
        "<td>7 plain</td>",
        "<td>8 plain</td>",
    ):
        assert expected in text
    for changes, expected in (
        ({"answers": False, "silent_seconds": 7.0}, "silent for 7.0 s"),
        ({"answers": False, "session": None}, "none yet"),
    ):
        other = replace(shown, status={**shown.status, "combiner": shown.status["combiner"] | changes})
        assert expected in status_page(other).decode()
    without = status_page(replace(shown, status={**shown.status, "combiner": None})).decode()
    assert "<h2>Combiner</h2>" in text
    assert "<h2>Combiner</h2>" not in without


def test_a_node_before_its_first_run_has_a_page() -> None:
    first = content(lines=0, sources=0, feeders=0)
    status = {
        **first.status,
        "run": None,
        "oldest_open_mep": None,
        "error_banks": {"by_type": {}, "most": []},
        "streaming": None,
        "combiner": None,
    }
    rates = Rates(seconds=0.0, events=0.0, accepted=0.0, bytes=0.0, lines={}, dead_time={})
    page = PageContent(
        status=status,
        missing=[],
        problems={},
        rates=rates,
        detectors=[],
        worst_sources=[],
        histograms=[],
        picture=None,
        curves=drawn_curves(Samples(np.zeros(0, np.int64), np.zeros((0, 4), np.float32)), 0, 0.0),
        log=[],
        commands=[],
        farm=[],
        documentation=None,
        time="now",
        histograms_time="now",
    )
    text = Elements(status_page(page)).text
    assert "no run" in text
    assert "✓ ready" in text
    assert "Error banks" not in text


def test_rates_are_those_of_the_window() -> None:
    counters = Counters()
    counters.set_lines(["a", "b"])
    window = RateWindow(counters)
    for tick in range(0, 100):
        window.note(tick * SECOND // 2)
        counters.events_processed += 50
        counters.line_accepts[1] += 5
        counters.dead_time[next(iter(counters.dead_time))] += 0.1
    rates = window.rates(50 * SECOND)
    assert WINDOW <= rates.seconds <= WINDOW + 1
    assert rates.events == pytest.approx(100, rel=0.02)
    assert rates.lines == {"a": 0.0, "b": pytest.approx(10, rel=0.02)}
    assert max(rates.dead_time.values()) == pytest.approx(0.2, rel=0.02)


def test_rates_before_the_first_tick_are_zero() -> None:
    assert RateWindow(Counters()).rates(SECOND).events == 0.0


def test_sources_are_grouped_by_detector_and_the_worst_ones_come_first() -> None:
    states = [SourceState(source_id(SubDetector.UT_A, i), i * SECOND, i) for i in range(1, 400)]
    states += [SourceState(source_id(SubDetector.MUON_C, 3), None, 9), SourceState(31 << 11, 400 * SECOND, 0)]
    detectors, worst = source_rows(states, {states[5].source}, 400 * SECOND, NAMES)
    assert [(row.detector, row.sources, row.silent, row.worst_lag) for row in detectors] == [
        ("UT A", 399, 1, 399.0),
        ("MUON C", 1, 0, None),
        ("detector 31", 1, 0, 0.0),
    ]
    assert len(worst) == SHOWN
    assert [(row.detector, row.number, row.lag) for row in worst[:2]] == [("MUON C", 3, None), ("UT A", 1, 399.0)]


def test_a_histogram_is_drawn_as_steps_from_its_low_to_its_high_end() -> None:
    counts = np.array([1, 0, 2, 4, 1, 3, 0], np.uint64)
    drawn = drawn_histogram(HistogramContent(SHAPE, counts))
    quarter = HEIGHT // 4
    assert drawn.path == (f"M0 {HEIGHT}V{HEIGHT}H65V{2 * quarter}H130V0H195V{3 * quarter}H{WIDTH}V{HEIGHT}Z")
    assert (drawn.entries, drawn.below, drawn.above, drawn.highest, drawn.mean) == (11, 1, 3, 4, "1.179")
    assert drawn_histogram(HistogramContent(SHAPE, np.zeros(7, np.uint64))).path == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0 "), (1.5, "1.50 "), (12.34, "12.3 "), (999.9, "1.00 k"), (1234567.0, "1.23 M"), (float("nan"), "–")],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_times_have_a_suitable_unit() -> None:
    times = {None: "never", 0.0123: "12 ms", 5.0: "5.0 s", 600.0: "10 min", 7200.0: "2 h"}
    assert {value: seconds(value) for value in times} == times
    latencies = {None: "–", 0.0001234: "0.123 ms", 0.0205: "20.5 ms", 1.5: "1.5 s"}
    assert {value: latency(value) for value in latencies} == latencies


@pytest.mark.slow
@pytest.mark.loopback
@needs_chromium
async def test_a_browser_shows_and_refreshes_the_page_and_runs_no_foreign_script(tmp_path: Path) -> None:
    served: list[int] = []

    def page() -> bytes:
        served.append(len(served))
        return status_page(content(text=f"{HOSTILE}{served[-1]}")).replace(b"05:00:00", f"served {served[-1]}".encode())

    health = Health(loop_tick_ns=0, pipeline_tick_ns=0, feeders_expected=0)
    server = HttpServer(lambda: lambda: b"", health, dict, lambda _: as_json(200, {}), page=lambda: page)  # type: ignore[arg-type]
    address = f"http://127.0.0.1:{await server.bind('127.0.0.1', 0)}/"
    await server.listen()
    try:
        document = await asyncio.to_thread(page_after_scripts, tmp_path / "profile", address)
        assert "served 1" in document
        assert '<img src="x"' not in document
        for width in (1280, 400):
            for dark in (False, True):
                name = tmp_path / f"{width}_{dark}.png"
                shot = await asyncio.to_thread(
                    picture, tmp_path / "profile", address, name, width=width, height=1600, dark=dark
                )
                assert len(shot) > 20_000
    finally:
        await server.close()


def test_narrow_bins_are_drawn_together() -> None:
    shape = HistogramShape(name="sipms", bins=3 * MAX_STEPS, low=0.0, high=1.0)
    counts = np.zeros(shape.n_counts, np.uint64)
    counts[1:4] = 1, 2, 3
    drawn = drawn_histogram(HistogramContent(shape, counts))
    assert (drawn.highest, drawn.path.count("V")) == (6, MAX_STEPS + 1)
