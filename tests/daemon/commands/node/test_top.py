"""`hltnode top`: error banks of a real node, and rows, sums and keys of a farm."""

import asyncio
import io
import os
import termios
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq.asyncio
from rich.console import Console
from typer.testing import CliRunner

from hltnode.client.mep import FeedMep
from hltnode.daemon.cli import app
from hltnode.daemon.commands.node import node_pages
from hltnode.daemon.commands.node import top as top_module
from hltnode.daemon.commands.node.keyboard import Keyboard, parsed_keys
from hltnode.daemon.commands.node.node_pages import NodeUnreachableError, Pages, read_pages
from hltnode.daemon.commands.node.top import Watched
from hltnode.daemon.commands.node.top_screen import ORDERS, SHOWN_SOURCES, View, screen
from hltnode.daemon.node.node import Node
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.mfp import encode_mfp
from tests.daemon.fakes import RUN, make_config, make_feeder, running_node

THROTTLED, MISSING = LhcbBankType.DAQ_ERROR_FRAGMENT_THROTTLED, LhcbBankType.DAQ_ERROR_FRAGMENT_MISSING
DATA = LhcbBankType.TEST_DET
EVENTS = 8


def meps_of(types_of: Mapping[int, Sequence[int]], n: int) -> Iterator[FeedMep]:
    """MEPs whose sources send banks of these types."""
    for mep in range(n):
        mfps = {
            source: encode_mfp(
                source_id=source, event_id=mep * EVENTS, version=1, types=types, fragments=[b"x" * 8] * EVENTS
            )
            for source, types in types_of.items()
        }
        yield FeedMep.of_mfps(mep, mep * EVENTS, mfps)


async def feed(
    context: zmq.asyncio.Context, node: Node, run: int, types_of: Mapping[int, Sequence[int]], n: int
) -> None:
    async with make_feeder(context, node, run=run, sources=tuple(types_of)) as feeder:
        assert (await feed_meps(meps_of(types_of, n), [feeder])).complete


def screen_of(watched: Watched) -> str:
    console = Console(file=io.StringIO(), width=400)
    console.print(screen(watched.describe()))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.loopback
async def test_top_shows_error_banks_by_type_with_their_rate_and_sources(tmp_path: Path) -> None:
    with zmq.asyncio.Context() as context:
        async with running_node(make_config(tmp_path)) as (node, _):
            url = f"http://127.0.0.1:{node.http_port}"
            watched = Watched([url])
            good = {2: [DATA] * EVENTS, 70: [DATA] * EVENTS}
            await feed(context, node, RUN, good, 1)
            await asyncio.to_thread(watched.read)
            assert "error banks" not in screen_of(watched)
            bad = {2: [DATA] * 7 + [MISSING], 70: [THROTTLED] * 3 + [DATA] * 5}
            await feed(context, node, RUN + 1, bad, 2)
            await asyncio.to_thread(watched.read)
            shown = screen_of(watched)
            described = watched.describe()[url]
            await asyncio.to_thread(watched.read)
            later = watched.describe()[url]
    assert f"error banks in place of data: 6 {THROTTLED.name}, 2 {MISSING.name}; now " in shown
    assert f"sources with most of them: 70 (6 {THROTTLED.name}), 2 (2 {MISSING.name})\n" in shown.replace(" \n", "\n")
    assert described["error_banks"]["by_type"] == {THROTTLED.name: 6, MISSING.name: 2}
    assert described["per_second"]["error_banks"] > 0
    assert later["per_second"]["error_banks"] == 0


@pytest.mark.loopback
async def test_top_shortens_a_long_list_of_sources_with_error_banks(tmp_path: Path) -> None:
    sources = range(1, SHOWN_SOURCES + 3)
    with zmq.asyncio.Context() as context:
        async with running_node(make_config(tmp_path)) as (node, _):
            await feed(context, node, RUN, {source: [MISSING] * EVENTS for source in sources}, 1)
            watched = Watched([f"http://127.0.0.1:{node.http_port}"])
            await asyncio.to_thread(watched.read)
            shown = screen_of(watched)
    [line] = [line for line in shown.splitlines() if "sources with most of them" in line]
    assert line.count("(8 ") == SHOWN_SOURCES
    assert line.rstrip().endswith("...")
    assert "; now -/s" in shown


def described(**changes: object) -> dict[str, Any]:
    """The shown values of a node."""
    return {
        **{"node": "n1", "state": "running", "run": 7, "backend": "cpu", "tck": "0x1", "events": 100, "accepted": 10},
        "per_second": {"events": 1000.0, "accepted": 10.0, "meps": 5.0, "error_banks": 0.0},
        **{"slots": {"free": 2, "filling": 1}, "dead_time": {"disk": 0.25}, "feeders": 1, "sources": 3},
        **{
            "silent_sources": [],
            "lagging_sources": [],
            "missing_feeders": [],
            "n_missing_feeders": 0,
            "conditions": {},
            "channels": {},
            "lines": {},
        },
        **{"error_banks": {"by_type": {}, "most": []}, "output_free_bytes": None, **changes},
    }


def printed(nodes: Mapping[str, Mapping[str, Any]], view: View | None = None) -> list[str]:
    console = Console(file=io.StringIO(), width=200)
    console.print(screen(nodes, view))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_dead_and_noisy_groups_of_channels_have_a_line_each() -> None:
    channels = {
        "velo_asics": {"hits": 9, "compared": True, "dead": [], "n_dead": 0, "noisy": [31], "n_noisy": 1},
        "scifi_sipms": {"hits": 9, "compared": True, "dead": list(range(32)), "n_dead": 40, "noisy": [], "n_noisy": 0},
        "ut_sectors": {"hits": 9, "compared": False},
    }
    found = [row.strip() for row in printed({"http://a": described(channels=channels)})]
    shown = ", ".join(map(str, range(SHOWN_SOURCES)))
    assert [row for row in found if "dead:" in row or "noisy:" in row] == [
        "velo_asics: 1 noisy: 31",
        f"scifi_sipms: 40 dead: {shown} ...",
    ]
    assert not any("ut_sectors" in row for row in found)


WEST = {"run": 7, "feeder": "west", "since": "2027-01-15T08:00:00Z", "silent_seconds": 3.0}
NODES = {
    "http://a:1": described(),
    "http://b:1": {"error": "http://b:1: connection refused"},
    "http://c:1": described(
        node="c", dead_time={"disk": 0.75}, missing_feeders=[WEST], n_missing_feeders=70, silent_sources=[5, 6]
    ),
}


def test_a_node_that_does_not_answer_has_a_row_and_the_sums_say_so() -> None:
    lines = printed(NODES)
    assert (lines[0].split()[-2:], lines[1].split()[-2:]) == (["feeders", "sources"], ["missing", "silent"])
    assert (lines[2].split()[-2:], lines[4].split()[-2:]) == (["0", "0"], ["70", "2"])
    assert lines[3].split() == ["http://b:1", "no", "answer"]
    sums = "2 of 3 nodes answer 2 running 2,000 20 10 2/6 50% mean 70 2"
    assert " ".join(lines[5].split()) == sums
    assert "http://b:1: connection refused" in lines
    assert (
        "  feeder missing: west since 2027-01-15T08:00:00Z (3.0 s): run 7 is open and has more to come from it" in lines
    )
    assert f"  and {70 - SHOWN_SOURCES} more feeders missing" in lines
    assert "  sources silent: 5, 6" in lines


def test_keys_sort_select_and_quit() -> None:
    view = View(selected="http://a:1")
    given = list(NODES)
    for order in ("missing feeders", "silent sources"):
        assert View(order=order).sorted(NODES) == [given[1], given[2], given[0]]
    for _ in range(list(ORDERS).index("dead time")):
        view.press("s", NODES)
    assert view.sorted(NODES) == ["http://b:1", "http://c:1", "http://a:1"]
    view.press("r", NODES)
    assert view.sorted(NODES) == ["http://a:1", "http://c:1", "http://b:1"]
    for key, selected in (("down", "c"), ("j", "b"), ("down", "b"), ("up", "c"), ("k", "a"), ("up", "a")):
        view.press(key, NODES)
        assert view.selected == f"http://{selected}:1"
    assert not [line for line in printed(NODES, view) if "west" in line]
    view.press("a", NODES)
    assert view.selected is None
    assert [line for line in printed(NODES, view) if "west" in line]
    view.press("?", NODES)
    assert [line for line in printed(NODES, view) if line.endswith("reverse the order")]
    view.press("x", NODES)
    assert not view.wants_to_quit
    view.press("q", NODES)
    assert view.wants_to_quit


def test_arrows_and_characters_are_keys_and_other_bytes_are_none() -> None:
    assert parsed_keys(b"s\x1b[A\x1bOBq\x00\xff\x1b[5~") == ["s", "up", "down", "q", "[", "5", "~"]


def test_a_terminal_gives_single_keys_and_has_its_mode_back_afterwards() -> None:
    ours, terminal = os.openpty()
    wake_reader, wake_writer = os.pipe()
    try:
        before = termios.tcgetattr(terminal)
        with Keyboard(terminal) as keyboard:
            os.write(ours, b"s")
            assert keyboard.keys(10, wake_reader) == ["s"]
            os.write(wake_writer, b".")
            assert keyboard.keys(None, wake_reader) == []
            assert not termios.tcgetattr(terminal)[3] & termios.ICANON
        assert termios.tcgetattr(terminal) == before
        with Keyboard(terminal) as keyboard:
            os.close(ours)
            assert keyboard.keys(10, wake_reader) == ["q"]
    finally:
        for descriptor in (terminal, wake_reader, wake_writer):
            os.close(descriptor)


@pytest.mark.parametrize(
    "change",
    [
        {"slots": "3"},
        {"state": None},
        {"events": []},
        {"feeders": [1]},
        {"conditions": {"x": 1}},
        {"channels": {"x": 1}},
        {"run": "7"},
    ],
)
def test_the_status_of_another_program_is_not_shown(change: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    status = {
        **{"node": "n1", "session": "s", "state": "running", "run": 7, "backend": "cpu", "tck": "0x1", "sources": 0},
        **{"feeders": [], "silent_sources": [], "oldest_open_mep": None, "output_free_bytes": 1, "slots": {"free": 3}},
        "events": {"processed": 1, "accepted": 1, "accepted_by_line": {}},
        "accounting": {"meps": {"opened": 1}, "fragments": {"received": 1}},
        "error_banks": {"by_type": {}, "most": []},
    }
    metrics = b'# HELP x\nhltnode_dead_time_seconds_total{reason="disk"} 2.5\nother{reason="x"} 1\n'

    def get(shown: Mapping[str, Any], url: str) -> bytes:
        return metrics if url.endswith("/metrics") else msgspec.json.encode(shown)

    monkeypatch.setattr(node_pages, "bounded_get", lambda url, **_: get(status, url))
    assert read_pages("http://a:1").dead_seconds == {"disk": 2.5}
    monkeypatch.setattr(node_pages, "bounded_get", lambda url, **_: get({**status, **change}, url))
    with pytest.raises(NodeUnreachableError, match="http://a:1: not a node"):
        read_pages("http://a:1")


def test_once_ends_with_1_if_a_node_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: dict[str, Pages | str] = {"http://a:1": Pages(0.0, {}), "http://b:1": "http://b:1: connection refused"}
    monkeypatch.setattr(top_module, "_read", answers.__getitem__)
    monkeypatch.setattr(top_module, "ONCE_SECONDS", 0.0)
    monkeypatch.setattr(top_module, "describe", lambda _before, _now: described())
    for option in ("--once", "--json"):
        assert CliRunner().invoke(app, ["top", option, "http://a:1", "http://b:1"]).exit_code == 1
        assert CliRunner().invoke(app, ["top", option, "http://a:1"]).exit_code == 0
