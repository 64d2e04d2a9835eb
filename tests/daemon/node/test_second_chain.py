"""A node with the real engine runs a chain that is not LHCb's: two sources, one kernel, one line."""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.request
from asyncio import to_thread
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import zmq
import zmq.asyncio

from hltnode.daemon.node.sizing import batch_limits
from hltnode.daemon.replay.mep_source import Packing, meps_of_files
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.mdf import encode_record, iter_records
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks
from hltnode.protocol.transport.decisions import decode_decision
from hltnode.protocol.transport.refusals import HelloRefusal
from tests.daemon.fakes import RUN, eventually, make_config, make_feeder, node_of_engine

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]

N_EVENTS, EVENTS_PER_MEP = 200, 8
THRESHOLD, MIN_HITS = 100, 10


async def test_a_node_decides_writes_and_counts_for_another_experiment(tiny: ModuleType, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    payloads = [[rng.bytes(int(rng.integers(0, 16))) for _ in tiny.SOURCES] for _ in range(N_EVENTS)]
    hits = [sum(byte >= THRESHOLD for byte in b"".join(event)) for event in payloads]
    accepted = [n >= MIN_HITS for n in hits]
    file = tmp_path / "events.mdf"
    file.write_bytes(b"".join(record_of(tiny, event) for event in payloads))
    packing = Packing(events_per_mep=EVENTS_PER_MEP, max_fragment_bytes=1 << 20, run=RUN)
    stream = meps_of_files([file], tiny.TINY.readout, packing)
    assert stream.sources == tiny.SOURCES

    config = make_config(tmp_path, trigger={"chain": "tiny"})
    backend = create_backend("cpu", tiny.TINY.kernels, threads=2)
    trigger = tiny.TINY.load_trigger(None)
    engine = tiny.TINY.create_engine(backend, tiny.TINY.load_geometry(None), trigger, batch_limits(config))
    with zmq.asyncio.Context() as context, context.socket(zmq.SUB) as subscriber:
        async with (
            node_of_engine(config, engine, backend.name) as node,
            make_feeder(context, node, sources=tiny.SOURCES, events=EVENTS_PER_MEP, chain="tiny") as feeder,
        ):
            subscriber.subscribe(b"")
            subscriber.connect(node.publisher.endpoint)
            await eventually(lambda: node.counters.decisions.subscribers > 0)
            report = await feed_meps(stream, [feeder])
            decisions = [decode_decision(await subscriber.recv()) for _ in range(N_EVENTS // EVENTS_PER_MEP)]
            metrics = await to_thread(page, f"http://127.0.0.1:{node.http_port}/metrics")
            status = json.loads(await to_thread(page, f"http://127.0.0.1:{node.http_port}/status"))
            answered = node.status.summary()

    assert report.complete
    decisions.sort(key=lambda decision: decision.mep)
    bits = [np.unpackbits(np.frombuffer(d.accepted, np.uint8), bitorder="little")[: d.n_events] for d in decisions]
    assert np.concatenate(bits).astype(bool).tolist() == accepted
    assert {(decision.chain, decision.tck) for decision in decisions} == {("tiny", engine.tck)}
    assert (status["chain"], answered["chain"]) == ("tiny", "tiny")
    assert 'chain="tiny"' in next(line for line in metrics.splitlines() if line.startswith("hltnode_build_info{"))

    [path] = (tmp_path / "out").glob("*accepted*.mdf")
    written = sorted(
        tuple(bytes(bank.payload) for bank in record.banks() if bank.source_id in tiny.SOURCES)
        for record in iter_records(path.read_bytes())
    )
    assert written == sorted(tuple(event) for event, kept in zip(payloads, accepted, strict=True) if kept)

    assert f'hltnode_objects_total{{collection="hits"}} {float(sum(hits))}' in metrics
    assert f'hltnode_line_accepts_total{{line="TinyManyHits"}} {float(sum(accepted))}' in metrics
    [summary] = (tmp_path / "out").glob("*_summary.json")
    assert json.loads(summary.read_text())["objects"] == {"hits": sum(hits), "unknown_selections": 0}
    assert json.loads(summary.read_text())["chain"] == "tiny"


async def test_a_node_refuses_data_of_another_chain_and_says_why_to_both_sides(
    tiny: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config = make_config(tmp_path, trigger={"chain": "tiny"})
    backend = create_backend("cpu", tiny.TINY.kernels, threads=1)
    engine = tiny.TINY.create_engine(backend, {}, tiny.TINY.load_trigger(None), batch_limits(config))
    async with node_of_engine(config, engine, backend.name) as node:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "hltnode.daemon", "replay", "--simulate", "-n", "4", "--name", "velo"),
            *("--to", node.receiver.endpoint, "--control", node.control.endpoint),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        _, said = await process.communicate()
        refused = node.counters.hellos_refused[HelloRefusal.FOREIGN_CHAIN]
        metrics = await to_thread(page, f"http://127.0.0.1:{node.http_port}/metrics")
        assert node.counters.fragments_received == 0
    assert process.returncode == 1
    text = "node testnode runs chain tiny; this feeder sends data of chain lhcb"
    lines = [line for line in said.decode().splitlines() if "error:" in line]
    assert lines == [
        f"error: node refuses feeder velo:1/1: {text}: "
        "feed a node of that chain, or name the chain that the data are for (--chain)"
    ]
    # A hello is repeated each second until the first answer is read.
    assert refused >= 1
    assert f'hltnode_hellos_refused_total{{reason="foreign_chain"}} {float(refused)}' in metrics
    assert text in capfd.readouterr().out


def record_of(tiny: ModuleType, event: list[bytes]) -> bytes:
    """The MDF record of one event."""
    banks = [
        RawBank(LhcbBankType.TEST_DET, 1, source, memoryview(payload))
        for source, payload in zip(tiny.SOURCES, event, strict=True)
    ]
    return encode_record(encode_banks(banks), run=RUN, checksum=False)


def page(url: str) -> str:
    """The body of a page of the node."""
    with urllib.request.urlopen(url, timeout=10) as response:
        body: bytes = response.read()
    return body.decode()
