"""`hltnode top` on a real node: what the screen and the JSON show of its error banks."""

import asyncio
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import zmq.asyncio
from rich.console import Console

from hltnode.client.mep import FeedMep
from hltnode.daemon.commands.node.top import SHOWN_SOURCES, Watched, screen
from hltnode.daemon.node.node import Node
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.mfp import encode_mfp
from tests.daemon.fakes import RUN, make_config, make_feeder, running_node

pytestmark = pytest.mark.loopback

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
