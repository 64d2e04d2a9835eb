"""Times of events in ns, from their ODIN banks: in JSON results, arrays, decisions, and files of accepted events."""

from __future__ import annotations

import json
from asyncio import to_thread
from pathlib import Path

import pytest
import zmq
import zmq.asyncio
from typer.testing import CliRunner

import hltnode
from hltnode.daemon.cli import app
from hltnode.daemon.node.sizing import batch_limits, names_of_lists
from hltnode.daemon.replay.mep_source import Packing, meps_of_files
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.raw.chain import CHAIN
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.odin import Odin, encode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks
from hltnode.protocol.raw_data.source_id import USER_SUBDETECTORS, source_id
from hltnode.protocol.transport.decisions import decode_decision
from tests.daemon.fakes import RUN, eventually, make_config, make_feeder, node_of_engine

pytestmark = pytest.mark.loopback

N_EVENTS, EVENTS_PER_MEP = 24, 4
START_US = 1_764_412_345_678_901
TRIGGER = """
[sequence.raw_list_banks]
time_type = 16
time_offset = 8
time_unit_ns = 1000
[[lines]]
type = "Passthrough"
name = "All"
"""
TIMES = [[1000 * (START_US + 25 * i)] if i % 3 else [] for i in range(N_EVENTS)]
"""ns of each event. Every third one has no ODIN bank."""


def write_events(path: Path) -> None:
    board = RawBank(192, 1, source_id(USER_SUBDETECTORS[0], 1), memoryview(b"data"))
    with path.open("wb") as file:
        for i in range(N_EVENTS):
            odin = [encode_odin(Odin(run=RUN, event_id=i, gps_time_us=START_US + 25 * i))] if i % 3 else []
            file.write(encode_record(encode_banks([*odin, board]), run=RUN, checksum=False))


@pytest.mark.usefixtures("nothing_is_left_behind")
async def test_every_output_has_the_time_of_each_event_that_has_one(tmp_path: Path) -> None:
    events, trigger_file, result = (tmp_path / name for name in ("events.mdf", "trigger.toml", "out.json"))
    write_events(events)
    trigger_file.write_text(TRIGGER)
    arguments = ["process", str(events), "--chain", "raw", "--trigger", str(trigger_file), "--backend", "cpu"]
    done = await to_thread(CliRunner().invoke, app, [*arguments, "--json", str(result)])
    assert done.exit_code == 0, done.output
    of_json = json.loads(result.read_text())["per_event"]
    assert [event["time_ns"] for event in of_json] == TIMES
    assert [event["times"] for event in of_json] == [len(of_event) for of_event in TIMES]
    assert [event["flags"] for event in of_json] == [[] if of_event else ["NO_EVENT_TIME"] for of_event in TIMES]
    array = hltnode.process(events, "times.time_ns", chain="raw", trigger=trigger_file, backend="cpu", threads=1)
    assert array.times.time_ns.to_list() == TIMES

    stream = meps_of_files(
        [events], CHAIN.readout, Packing(events_per_mep=EVENTS_PER_MEP, max_fragment_bytes=1 << 20, run=RUN)
    )
    config = make_config(
        tmp_path, trigger={"chain": "raw"}, output={"lists": ("times",)}, decisions={"lists": ("times",)}
    )
    backend = create_backend("cpu", CHAIN.kernels, threads=1)
    trigger = CHAIN.load_trigger(trigger_file)
    engine = CHAIN.create_engine(backend, {}, trigger, batch_limits(config), with_lists=names_of_lists(config))
    n_meps = N_EVENTS // EVENTS_PER_MEP
    with zmq.asyncio.Context() as context, context.socket(zmq.SUB) as subscriber:
        async with (
            node_of_engine(config, engine, backend.name) as node,
            make_feeder(context, node, sources=stream.sources, events=EVENTS_PER_MEP, chain="raw") as feeder,
        ):
            subscriber.subscribe(b"")
            subscriber.connect(node.publisher.endpoint)
            await eventually(lambda: node.counters.decisions.subscribers > 0)
            report = await feed_meps(stream, [feeder])
            decisions = [decode_decision(await subscriber.recv()) for _ in range(n_meps)]
    assert report.complete
    found = {decision.mep: decision.output_lists()["times"] for decision in decisions}
    published = []
    for mep in range(n_meps):
        times = found[mep]
        assert times is not None
        published += [times.of_event(i)["time_ns"].tolist() for i in range(EVENTS_PER_MEP)]
    assert published == TIMES
    [file] = (tmp_path / "out").glob("*accepted*.mdf")
    written = [event.lists["times"]["time_ns"].tolist() for event in hltnode.open(file, chain="raw")]
    assert sorted(written) == sorted(TIMES)
