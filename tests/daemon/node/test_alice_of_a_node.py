"""A node of the chain `alice_tpc` over TCP: one bank a slice, all parts of all chambers, and a missing part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
import zmq
import zmq.asyncio

from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.node.sizing import batch_limits
from hltnode.daemon.replay.mep_source import MepStream, Packing, meps_of_files
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.processing.alice.chain import CHAIN
from hltnode.processing.alice.offline.simulation.sample import TpcOptions, TpcSample
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.protocol.alice.tpc_banks import CLUSTER, N_SOURCES, banks_of_clusters, tpc_source
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.transport.decisions import MepDecision, decode_decision
from tests.daemon.fakes import RUN, eventually, make_config, make_feeder, node_of_engine
from tests.processing.alice.toy_events import mep_of, run_chain

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]

N_EVENTS, EVENTS_PER_MEP = 8, 4
MIB = 1 << 20


def sample(sources: int) -> TpcSample:
    """Small pp events: ODIN and the sources of the TPC."""
    request = SampleRequest(seed=5, run=RUN, file_format="mep")
    return TpcSample(request, TpcOptions(sources=sources, pile_up=0.0))


def expected_objects(events: Sequence[Sequence[RawBank]], without: int | None = None) -> Counter[str]:
    """Clusters, tracks and merged tracks that the chain finds without a node."""
    counts: Counter[str] = Counter()
    for banks in events:
        payloads = {bank.source_id: bytes(bank.payload) for bank in banks_of_clusters(banks)}
        (found,) = run_chain(mep_of([{source: each for source, each in payloads.items() if source != without}]))
        counts.update({"clusters": found.n_clusters, "tracks": len(found.tracks), "merged_tracks": len(found.merged)})
    return counts


async def run_node(
    directory: Path, stream: MepStream, sources: Sequence[int], **builder: object
) -> tuple[list[MepDecision], Counter[str], int]:
    """Feed the stream from these sources: the decisions, counted objects, and events with the flag `incomplete`."""
    config = make_config(
        directory,
        trigger={"chain": "alice_tpc"},
        builder={"max_mep_bytes": 4 * MIB, "mep_timeout_ms": 20_000, **builder},
        pipeline={"slots": 2, "slot_bytes": 8 * MIB, "max_events": 16},
    )
    backend = create_backend("cpu", CHAIN.kernels, threads=1)
    engine = CHAIN.create_engine(backend, CHAIN.load_geometry(None), CHAIN.load_trigger(None), batch_limits(config))
    with zmq.asyncio.Context() as context, context.socket(zmq.SUB) as subscriber:
        async with (
            node_of_engine(config, engine, backend.name) as node,
            make_feeder(context, node, sources=sources, events=EVENTS_PER_MEP, chain="alice_tpc") as feeder,
        ):
            subscriber.subscribe(b"")
            subscriber.connect(node.publisher.endpoint)
            await eventually(lambda: node.counters.decisions.subscribers > 0)
            report = await feed_meps(stream, [feeder])
            decisions = [decode_decision(await subscriber.recv()) for _ in range(N_EVENTS // EVENTS_PER_MEP)]
    assert report.complete
    accounts = accounting(node.counters, node.builder)
    assert closes(accounts), accounts
    return decisions, Counter(node.counters.objects), node.counters.events_flagged["incomplete"]


def stream_of(directory: Path, made: TpcSample) -> MepStream:
    """The events of a sample as MEPs of a feeder."""
    file = directory / "events.mep"
    file.write_bytes(b"".join(block for _, block in made.blocks(N_EVENTS, 1)))
    return meps_of_files(
        [file], CHAIN.readout, Packing(events_per_mep=EVENTS_PER_MEP, max_fragment_bytes=1 << 16, run=RUN)
    )


@pytest.mark.parametrize("sources", [36, N_SOURCES])
async def test_events_of_all_sources_are_built_and_tracked(tmp_path: Path, sources: int) -> None:
    made = sample(sources)
    stream = stream_of(tmp_path, made)
    assert len(stream.sources) == 1 + sources
    decisions, objects, incomplete = await run_node(tmp_path, stream, stream.sources)
    assert {decision.missing_sources for decision in decisions} == {()}
    assert incomplete == 0
    expected = expected_objects(list(made.events(N_EVENTS)))
    assert expected["merged_tracks"] > 100
    assert {name: objects[name] for name in expected} == expected


async def test_a_missing_part_costs_its_rows_alone_and_flags_its_events(tmp_path: Path) -> None:
    made = sample(N_SOURCES)
    stream = stream_of(tmp_path, made)
    events = list(made.events(N_EVENTS))
    of_slice = [tpc_source(slice_number, 2, 3) for slice_number in range(36)]
    sizes = Counter({bank.source_id: len(bank.payload) for banks in events for bank in banks_of_clusters(banks)})
    missing = max(of_slice, key=lambda source: sizes[source])
    there = tuple(source for source in stream.sources if source != missing)
    decisions, objects, incomplete = await run_node(
        tmp_path, stream, there, expected_sources=stream.sources, mep_timeout_ms=50
    )
    assert {decision.missing_sources for decision in decisions} == {(missing,)}
    assert incomplete == N_EVENTS
    expected = expected_objects(events, without=missing)
    lost = sum(
        len(bank.payload) // CLUSTER.itemsize
        for banks in events
        for bank in banks_of_clusters(banks)
        if bank.source_id == missing
    )
    assert lost > 0
    assert expected["clusters"] == expected_objects(events)["clusters"] - lost
    assert {name: objects[name] for name in expected} == expected
