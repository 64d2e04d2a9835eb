"""A node with the chain `raw` takes feeders of any sources, without ODIN, and loses no odd event."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from asyncio import gather, to_thread
from collections import Counter
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import zmq.asyncio

from hltnode.client.mep import FeedMep
from hltnode.daemon.node.event_pictures import Draw
from hltnode.daemon.node.sizing import batch_limits
from hltnode.daemon.storage.root_file import load_library
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.raw.chain import CHAIN
from hltnode.processing.raw.offline.display.picture import bank_drawing
from hltnode.processing.raw.offline.tools.display import DISPLAY
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.protocol.raw_data.bank_types import NO_BANK, TYPES_OF_TRIGGER
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.mfp import encode_mfp
from tests.daemon.fakes import make_config, make_feeder, node_of_engine

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]

EVENTS = 8
MEPS = 4
LEFT, RIGHT = (5, 2047, 40_000), (2048, 65_535)
SILENT = 33
"""A source that the node expects and that no feeder has."""
LINES = """
[sequence.raw_list_banks]
max_bank_bytes = 1000
first_known_type = 0

[[lines]]
type = "SourceSize"
name = "LargeInTheLast"
source = 65535
min_size = 64

[[lines]]
type = "TypeAbsent"
name = "NoPulse"
bank_type = 0
"""

Bank = tuple[int, bytes]


def content(seed: int) -> list[dict[int, Bank]]:
    """The banks of each event; every source has some, and some events have none, error banks and odd ones."""
    rng = np.random.default_rng(seed)
    events = []
    for number in range(EVENTS * MEPS):
        banks = {
            source: (
                int(rng.choice([0, 192, 200])),
                number.to_bytes(4, "little") + rng.bytes(int(rng.integers(0, 120))),
            )
            for source in (*LEFT, *RIGHT)
        }
        banks[5] = (0, number.to_bytes(4, "little"))
        events.append(banks)
    del events[3][5]
    events[9] = {}
    events[14][2047] = (241, b"board error")
    events[20][40_000] = (251, b"?")
    events[21][40_000] = (192, bytes(1001))
    return events


def mep_of(events: list[dict[int, Bank]], mep: int, sources: tuple[int, ...]) -> FeedMep:
    """The fragments of some sources for one MEP."""
    first = mep * EVENTS
    mfps = {}
    for source in sources:
        banks = [event.get(source, (NO_BANK, b"")) for event in events[first : first + EVENTS]]
        types, payloads = zip(*banks, strict=True)
        mfps[source] = encode_mfp(source_id=source, event_id=first, version=3, types=types, fragments=payloads)
    return FeedMep.of_mfps(mep, first, mfps)


async def run_node(
    tmp_path: Path, events: list[dict[int, Bank]], text_of_page: str = "", **builder: object
) -> tuple[str, str]:
    """Feed the events by two feeders; the metrics, and the status page when it has a text."""
    # On a busy machine the import of uproot takes longer than the end of a node waits for histograms.
    load_library()
    config = make_config(tmp_path, trigger={"chain": "raw"}, builder={"min_feeders": 2, **builder})
    backend = create_backend("cpu", CHAIN.kernels, threads=1)
    trigger = TriggerConfig.from_toml(LINES, CHAIN.menu)
    engine = CHAIN.create_engine(backend, {}, trigger, batch_limits(config))
    reader = DISPLAY.reader(CHAIN, None, trigger)

    def load() -> Draw:
        return lambda banks: bank_drawing(reader.read(banks, "auto"))

    with zmq.asyncio.Context() as context, closing(reader):
        async with (
            node_of_engine(config, engine, backend.name, CHAIN.document(trigger), load) as node,
            make_feeder(context, node, name="a", sources=LEFT, events=EVENTS, chain="raw") as one,
            make_feeder(context, node, name="b", sources=RIGHT, events=EVENTS, chain="raw") as other,
        ):
            await to_thread(page, f"http://127.0.0.1:{node.http_port}/")
            for feeder, sources in ((one, LEFT), (other, RIGHT)):
                for mep in range(MEPS):
                    await feeder.offer(mep_of(events, mep, sources))
            await gather(one.finish(MEPS - 1), other.finish(MEPS - 1))
            metrics = await to_thread(page, f"http://127.0.0.1:{node.http_port}/metrics")
            status = await page_with(f"http://127.0.0.1:{node.http_port}/", text_of_page)
    return metrics, status


def records(tmp_path: Path, stream: str) -> Counter[frozenset[tuple[int, int, int, bytes]]]:
    """The banks of the boards of each event in the files of a stream: source, type, version and bytes."""
    return Counter(
        frozenset(
            (bank.source_id, int(bank.type), bank.version, bytes(bank.payload))
            for bank in record.banks()
            if bank.type not in TYPES_OF_TRIGGER
        )
        for path in (tmp_path / "out").glob(f"*{stream}*.mdf")
        for record in iter_records(path.read_bytes())
    )


def as_banks(event: dict[int, Bank]) -> frozenset[tuple[int, int, int, bytes]]:
    return frozenset((source, kind, 3, payload) for source, (kind, payload) in event.items())


def page(url: str) -> str:
    """The body of a page of the node."""
    with urllib.request.urlopen(url, timeout=10) as response:
        body: bytes = response.read()
    return body.decode()


async def page_with(url: str, text: str) -> str:
    """A page, when it has a text."""
    async with asyncio.timeout(20):
        while text not in (found := await to_thread(page, url)):
            await asyncio.sleep(0.02)
    return found


async def test_accepted_events_have_the_banks_of_all_boards_and_odd_ones_are_kept(tmp_path: Path) -> None:
    events = content(4)
    metrics, status = await run_node(tmp_path, events, "bytes of banks by source")
    assert "type 192</li>" in status or "type 0</li>" in status or "type 200</li>" in status
    flagged = [events[9], events[14]]
    accepted = [
        event
        for event in events
        if event not in flagged and (len(event[65_535][1]) >= 64 or not any(kind == 0 for kind, _ in event.values()))
    ]
    assert 5 < len(accepted) < 25
    assert records(tmp_path, "accepted") == Counter(map(as_banks, accepted))
    # The event without banks and that with an error bank; notes alone bring no event there.
    assert records(tmp_path, "error") == Counter(map(as_banks, flagged))
    for flag, n in {"missing_banks": 1, "bank_error": 1, "unknown_type": 1, "large_bank": 1}.items():
        assert f'hltnode_events_flagged_total{{flag="{flag}"}} {float(n)}' in metrics, flag
    n_banks = sum(map(len, events))
    assert f'hltnode_objects_total{{collection="banks"}} {float(n_banks)}' in metrics
    assert 'hltnode_objects_total{collection="error_banks"} 1.0' in metrics
    [summary] = (tmp_path / "out").glob("*_summary.json")
    assert json.loads(summary.read_text())["chain"] == "raw"


async def test_a_source_that_is_missing_flags_all_its_events_and_loses_none(tmp_path: Path) -> None:
    events = content(5)
    metrics, _ = await run_node(
        tmp_path, events, expected_sources=(*LEFT, *RIGHT, SILENT), mep_timeout_ms=50, on_timeout="error"
    )
    assert f'hltnode_events_flagged_total{{flag="incomplete"}} {float(len(events))}' in metrics
    assert records(tmp_path, "error") == Counter(map(as_banks, events))
