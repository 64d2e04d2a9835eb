"""A node with the real engine follows a beam that has moved from run to run."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zmq.asyncio
from rich.console import Console

from hltnode.client.mep import FeedMep
from hltnode.daemon.commands.node.top import Watched
from hltnode.daemon.commands.node.top_screen import screen
from hltnode.daemon.node.node import Node
from hltnode.daemon.node.sizing import batch_limits
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.offline_runner import EncodedMep, encode_meps
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.velo import BeamLine, VeloGeometry
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.processing.selection.configuration.tck import TckDocument
from hltnode.processing.selection.followed_conditions import FollowedConditions
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.reports import decode_dec_reports
from tests.daemon.fakes import eventually, make_config, make_feeder, node_of_engine

pytestmark = [pytest.mark.loopback, pytest.mark.physics, pytest.mark.usefixtures("nothing_is_left_behind")]

MOVED = (0.5, 0.0)
"""mm; the built-in geometry has the beam at 0, 0."""
N_EVENTS, EVENTS_PER_MEP = 1280, 16


@cache
def encoded() -> list[EncodedMep]:
    events = simulate_events(N_EVENTS, seed=5, geometry=replace(VeloGeometry.builtin(), beamline=BeamLine(*MOVED)))
    return list(encode_meps(CHAIN.with_sequence("velo"), events, EVENTS_PER_MEP))


def meps() -> Iterator[FeedMep]:
    for number, mep in enumerate(encoded()):
        places = np.asarray(mep.fragments).tolist()
        mfps = {source: mep.data[offset : offset + size].data for source, offset, size in places}
        yield FeedMep.of_mfps(number, number * EVENTS_PER_MEP, mfps)


def sources() -> tuple[int, ...]:
    return tuple(sorted(np.asarray(encoded()[0].fragments)[:, 0].tolist()))


class Session:
    """A session of a node with the VELO sequence."""

    def __init__(self, folder: Path, *, follows: bool, conditions: str = "") -> None:
        self.config = make_config(
            folder,
            network={"max_frame_bytes": 1 << 20},
            builder={"max_mep_bytes": 4 << 20, "mep_timeout_ms": 20_000},
            pipeline={"slots": 3, "slot_bytes": 8 << 20, "max_events": 64},
            http={"port": 0, "event_picture_s": 0.0},
        )
        path = folder / "trigger.toml"
        # Every event is kept.
        path.write_text(
            f'[sequence]\nname = "velo"\n{conditions}\n[[lines]]\ntype = "Passthrough"\nname = "Hlt1Passthrough"\n'
        )
        trigger = CHAIN.load_trigger(path)
        geometry = CHAIN.with_sequence("velo").load_geometry(None)
        backend = create_backend("cpu", CHAIN.kernels, threads=2)
        self.engine = CHAIN.create_engine(backend, geometry, trigger, batch_limits(self.config))
        self.document = CHAIN.document(trigger)
        self.followed = FollowedConditions(CHAIN, geometry, trigger) if follows else None

    @asynccontextmanager
    async def node(self) -> Any:
        async with node_of_engine(self.config, self.engine, "cpu", self.document, followed=self.followed) as node:
            yield node


async def feed(context: zmq.asyncio.Context, node: Node, run: int) -> int:
    """A whole run; the number of primary vertices that the node found in it."""
    before = node.counters.objects["pvs"]
    async with make_feeder(
        context, node, run=run, sources=sources(), events=EVENTS_PER_MEP, max_fragment_bytes=1 << 20
    ) as feeder:
        assert (await feed_meps(meps(), [feeder])).complete
    found: int = node.counters.objects["pvs"] - before
    return found


def keys_of_files(folder: Path, run: int) -> tuple[set[int], int]:
    """The TCKs in the reports of the events of a run, and their number."""
    records = [record for path in folder.glob(f"*_{run:010d}_*.mdf") for record in iter_records(path.read_bytes())]
    reports = [
        decode_dec_reports(bank)
        for record in records
        for bank in record.banks()
        if bank.type == BankType.HLT_DEC_REPORTS
    ]
    return {report.tck for report in reports}, len(reports)


def screen_of(node: Node) -> str:
    watched = Watched([f"http://127.0.0.1:{node.http_port}"])
    watched.read()
    console = Console(file=io.StringIO(), width=200)
    console.print(screen(watched.describe()))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


async def test_the_run_after_the_one_that_measured_a_moved_beam_finds_its_vertices(tmp_path: Path) -> None:
    """And the events of each run name the position that was used."""
    known = tmp_path / "known"
    known.mkdir()
    follows = Session(tmp_path, follows=True)
    best = Session(known, follows=False, conditions="[conditions]\nbeam_x = 0.5\nbeam_y = 0.0\n")
    with zmq.asyncio.Context() as context:
        async with best.node() as node:
            most = await feed(context, node, 1)
        async with follows.node() as node:
            first = await feed(context, node, 1)
            before = node.status.full()["tck"]
            second = await feed(context, node, 2)
            status = node.status.full()
            text = await asyncio.to_thread(screen_of, node)
    assert most > 4000
    assert first < 0.5 * most
    assert second >= 0.98 * most
    assert before == follows.document.name
    output = follows.config.output.directory
    # The document of the position in use lies beside the events, and each event names its own.
    documents = {path.name: TckDocument.load(path) for path in output.glob("0x*.json")}
    assert len(documents) == 2
    followed = documents[f"{status['tck']}.json"]
    assert followed.content["conditions"]["beam_x"] == pytest.approx(MOVED[0], abs=0.01)
    assert followed.content["conditions"].get("beam_y", 0.0) == pytest.approx(MOVED[1], abs=0.015)
    assert keys_of_files(output, 1) == ({follows.document.tck}, N_EVENTS)
    assert keys_of_files(output, 2) == ({followed.tck}, N_EVENTS)
    assert status["conditions"]["beam_x"]["followed"]
    assert not status["conditions"]["beam_x"]["is_off"]
    assert re.search(r"beam_x  measured 0\.(49|50)\d, followed 0\.(49|50)\d, tolerance 0\.05 mm", text)
    # The document can be used as a trigger file.
    assert CHAIN.trigger_of(followed).tck(CHAIN.with_sequence("velo").sequence) == followed.tck


async def test_a_node_that_does_not_follow_keeps_its_position(tmp_path: Path) -> None:
    session = Session(tmp_path, follows=False)
    with zmq.asyncio.Context() as context:
        async with session.node() as node:
            first, second = await feed(context, node, 1), await feed(context, node, 2)
            status = node.status.full()
    assert first == second
    assert (status["tck"], status["conditions"]["beam_x"]["is_off"]) == (session.document.name, True)
    assert [path.name for path in session.config.output.directory.glob("0x*.json")] == [session.document.file_name]


async def test_a_run_that_a_restart_interrupts_keeps_its_position(tmp_path: Path) -> None:
    half = len(encoded()) // 2
    first = Session(tmp_path, follows=True)
    with zmq.asyncio.Context() as context:
        async with first.node() as node:
            await feed(context, node, 1)
            acknowledged = node.counters.meps_acknowledged
            async with make_feeder(
                context, node, run=2, sources=sources(), events=EVENTS_PER_MEP, max_fragment_bytes=1 << 20
            ) as feeder:
                for mep in list(meps())[:half]:
                    await feeder.offer(mep)
                await eventually(lambda: node.counters.meps_acknowledged == acknowledged + half, 60.0)
            key = node.status.full()["tck"]
        assert key != first.document.name
        second = Session(tmp_path, follows=True)
        async with second.node() as node:
            assert node.status.full()["tck"] == second.document.name
            await feed(context, node, 2)
            assert node.status.full()["tck"] == key
    assert keys_of_files(first.config.output.directory, 2) == ({int(key, 16)}, N_EVENTS)
