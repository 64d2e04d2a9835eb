"""A node that holds its slices for a combiner, over TCP: its windows, and what happens if the combiner is silent."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import zmq
import zmq.asyncio

from hltnode.daemon.combiner import window_rows
from hltnode.daemon.combiner.combiner import Combiner, CombinerAccess
from hltnode.daemon.combiner.hold_stage import HoldStage
from hltnode.daemon.combiner.seed_joiner import JoinRules
from hltnode.daemon.common.vocabulary import CombinedSlice, CombinerRefusal, HeldEnd, SeedFault, WindowFault
from hltnode.daemon.event_building.accounting import closes
from hltnode.daemon.node.node import Node
from hltnode.daemon.node.sizing import batch_limits, names_of_lists
from hltnode.daemon.replay.mep_source import Packing, meps_of_files
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.daemon.security.curve_keys import create_key_pair
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.protocol.raw_data.time_windows import TimeWindow, join_windows
from hltnode.protocol.transport.decisions import SliceDecision, decode_decision
from hltnode.protocol.transport.seed_messages import Keep
from tests.daemon.fakes import RUN, eventually, make_config, make_feeder, node_of_engine
from tests.daemon.node.streamed_hits import (
    LENGTH,
    N_SUB_SLICES,
    Stream,
    check_windows,
    hits_of,
    make_stream,
    windows_in,
    write_slices,
)

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]

CORE = 5
N_SLICES = N_SUB_SLICES // CORE
FOREVER_MS = 600_000


@contextmanager
def running(combiner: Combiner) -> Iterator[Combiner]:
    """A combiner on a free port, in a thread."""
    combiner.open("tcp://127.0.0.1:*")
    stop = threading.Event()

    def serve() -> None:
        while not stop.is_set():
            combiner.turn()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield combiner
    finally:
        stop.set()
        thread.join()
        combiner.close()


@dataclass
class Run:
    """A run through a node."""

    node: Node
    fed: asyncio.Task[None]
    decisions: list[SliceDecision] = field(default_factory=list)
    most_held: list[int] = field(default_factory=list)

    def now(self) -> None:
        """Held slices leave now, without an answer or with one."""
        assert self.node._path.hold is not None
        held = self.node._path.hold._held
        held._hold_ns = held._timeout_ns = 0


@asynccontextmanager
async def run_of(
    folder: Path,
    stream: ModuleType,
    hits: Stream,
    *,
    max_bytes: int | None = None,
    closed_ring: int = 65_536,
    **combiner: object,
) -> AsyncIterator[Run]:
    """Feed a node that sends its seeds to a combiner; at the end all slices are acknowledged."""
    n_events = write_slices(folder / "slices.mdf", stream, hits, CORE)
    packing = Packing(events_per_mep=n_events, max_fragment_bytes=1 << 20, run=RUN)
    meps = meps_of_files([folder / "slices.mdf"], stream.STREAM.readout, packing)
    # One slice in a batch.
    config = make_config(
        folder,
        trigger={"chain": "stream"},
        combiner=combiner,
        pipeline={"max_events": n_events},
        builder={"closed_ring": closed_ring},
    )
    if max_bytes is not None:
        smaller = config.combiner.model_copy(update={"max_bytes": max_bytes})
        config = config.model_copy(update={"combiner": smaller})
    backend = create_backend("cpu", stream.STREAM.kernels, threads=1)
    engine = stream.STREAM.create_engine(
        backend, {}, stream.STREAM.load_trigger(None), batch_limits(config), with_lists=names_of_lists(config)
    )
    with zmq.asyncio.Context() as context, context.socket(zmq.SUB) as subscriber:
        async with (
            node_of_engine(config, engine, backend.name) as node,
            make_feeder(context, node, sources=stream.SOURCES, events=n_events, chain="stream") as feeder,
        ):
            subscriber.subscribe(b"")
            subscriber.connect(node.publisher.endpoint)
            await eventually(lambda: node.counters.decisions.subscribers > 0)

            async def feed() -> None:
                assert (await feed_meps(meps, [feeder])).complete

            run = Run(node, asyncio.create_task(feed()))
            yield run
            await run.fed
            while len(run.decisions) < N_SLICES:
                decision = decode_decision(await subscriber.recv())
                assert isinstance(decision, SliceDecision)
                run.decisions.append(decision)
            await eventually(lambda: node.counters.meps_acknowledged == N_SLICES)
            assert closes(node.status.full()["accounting"])
            assert node.counters.held.held_bytes == node.counters.held.held_slices == 0
            assert sum(node.counters.held.slices.values()) == N_SLICES


def published(run: Run) -> list[tuple[int, int, int, int]]:
    found: list[tuple[int, int, int, int]] = []
    for decision in run.decisions:
        windows = decision.time_windows()
        assert windows is not None
        columns = (windows.values[name].tolist() for name in ("start_ns", "end_ns", "lines", "n_hits"))
        found += list(zip(*columns, strict=True))
        begins = [windows.offsets[i] < windows.offsets[i + 1] for i in range(decision.n_events)]
        assert decision.accepted_events().tolist() == begins
        assert (decision.fired().any(axis=1) <= decision.accepted_events()).all()
    return sorted(found)


def records(folder: Path) -> list[TimeWindow]:
    return windows_in(list((folder / "out").glob("*accepted*.mdf")))


async def test_a_combiner_of_one_node_changes_nothing(stream: ModuleType, tmp_path: Path) -> None:
    hits = make_stream(stream.SOURCES)
    with running(Combiner(JoinRules(), CombinerAccess())) as combiner:
        async with run_of(tmp_path, stream, hits, endpoint=combiner.endpoint, timeout_ms=FOREVER_MS) as run:
            pass
        held = run.node.counters.held
        assert combiner.joiner.counts.slices[CombinedSlice.COMPLETE] == N_SLICES
        assert list(combiner.nodes) == ["testnode"]
        assert held.combiner == combiner.session
        assert run.node.controller._held_seconds == FOREVER_MS / 1000
    assert published(run) == hits.windows()
    check_windows(records(tmp_path), hits)
    assert held.slices == {HeldEnd.JOINED: N_SLICES, HeldEnd.TIMEOUT: 0, HeldEnd.NO_ROOM: 0}
    assert held.seeds_sent == held.windows_received == len(hits.windows())
    assert dict(run.node.counters.window_faults) == dict.fromkeys(WindowFault, 0)


@pytest.mark.parametrize("policy", ["keep", "drop"])
async def test_a_silent_combiner_costs_a_counted_timeout(stream: ModuleType, tmp_path: Path, policy: str) -> None:
    hits = make_stream(stream.SOURCES)
    with zmq.Context() as context, context.socket(zmq.ROUTER) as silent:
        port = silent.bind_to_random_port("tcp://127.0.0.1")
        endpoint = f"tcp://127.0.0.1:{port}"
        async with run_of(tmp_path, stream, hits, endpoint=endpoint, timeout_ms=50, silent=policy) as run:
            pass
    assert run.node.counters.held.slices == {HeldEnd.JOINED: 0, HeldEnd.TIMEOUT: N_SLICES, HeldEnd.NO_ROOM: 0}
    if policy == "keep":
        assert published(run) == hits.windows()
        check_windows(records(tmp_path), hits)
    else:
        assert published(run) == []
        assert records(tmp_path) == []
        assert run.node.counters.events_accepted == 0
        assert not any(run.node.counters.line_accepts)


async def test_a_node_and_its_combiner_with_keys(stream: ModuleType, tmp_path: Path) -> None:
    hits = make_stream(stream.SOURCES)
    for folder, name in (("own", "combiner"), ("nodes", "node"), ("others", "stranger")):
        create_key_pair(tmp_path / folder, name)
    access = CombinerAccess.load(tmp_path / "own" / "combiner.key_secret", tmp_path / "nodes", None)
    server_key = str(tmp_path / "own" / "combiner.key")
    with running(Combiner(JoinRules(), access)) as combiner:
        keys: dict[str, Any] = {"server_key": server_key, "key_file": str(tmp_path / "nodes" / "node.key_secret")}
        strange = keys | {"key_file": str(tmp_path / "others" / "stranger.key_secret")}
        (tmp_path / "with").mkdir()
        async with run_of(
            tmp_path / "with", stream, hits, endpoint=combiner.endpoint, timeout_ms=FOREVER_MS, **keys
        ) as run:
            pass
        assert run.node.counters.held.slices[HeldEnd.JOINED] == N_SLICES
        check_windows(records(tmp_path / "with"), hits)
        without: dict[str, Any] = {}
        for number, others in enumerate((without, strange)):
            place = tmp_path / f"without{number}"
            place.mkdir()
            async with run_of(place, stream, hits, endpoint=combiner.endpoint, timeout_ms=50, **others) as run:
                pass
            assert run.node.counters.held.slices[HeldEnd.TIMEOUT] == N_SLICES
            assert run.node.counters.held.combiner == ""
        assert list(combiner.nodes) == ["testnode"]
        assert combiner.joiner.counts.reports == N_SLICES


async def test_bursts_of_a_hundred_times_the_hits_stay_within_the_memory_and_follow_the_rule(
    stream: ModuleType, tmp_path: Path
) -> None:
    usual = make_stream(stream.SOURCES, seed=3)
    # One source sends 100 times its hits in two of the slices.
    source, per_slice = stream.SOURCES[0], -(-100 * len(usual.times) // (len(stream.SOURCES) * N_SLICES))
    rng = np.random.default_rng(8)
    times = np.concatenate([rng.integers(n * 1000, (n + 1) * 1000, per_slice) for n in (3, 4)])
    every = np.concatenate([usual.times, times])
    order = np.argsort(every, kind="stable")
    hits = Stream(
        every[order],
        np.concatenate([usual.sources, np.full(len(times), source, usual.sources.dtype)])[order],
        np.arange(len(every), dtype=np.uint16),
    )
    limit = 60_000
    # It waits for a second node, so slices leave this one only for lack of memory.
    rules = JoinRules(nodes=2, min_nodes=2, wait_ns=FOREVER_MS * 10**6)
    with running(Combiner(rules, CombinerAccess())) as combiner:
        async with run_of(
            tmp_path, stream, hits, max_bytes=limit, endpoint=combiner.endpoint, timeout_ms=FOREVER_MS
        ) as run:
            counters = run.node.counters.held
            await eventually(lambda: counters.held_slices + sum(counters.slices.values()) == N_SLICES)
            held_bytes, without_room = counters.held_bytes, counters.slices[HeldEnd.NO_ROOM]
            run.now()
    assert 0 < held_bytes <= limit
    assert 0 < without_room < N_SLICES
    assert sum(counters.slices.values()) == N_SLICES
    found = records(tmp_path)
    assert len({record.id for record in found}) == len(found)
    joined = join_windows(found)
    for window in joined:
        assert len(set(hits_of(window))) == len(hits_of(window))
        assert set(hits_of(window)) == hits.hits(window.start_ns, window.end_ns)
    # Windows apart from the burst and its neighbours are as usual.
    apart = [(start, end) for start, end in usual.merged() if end < 2000 or start >= 6000]
    assert len(apart) > 3
    assert set(apart) <= {(window.start_ns, window.end_ns) for window in joined}


async def test_held_memory_is_bounded_and_the_oldest_slices_leave_first(
    stream: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 0
    note = HoldStage._note_held

    def noting(self: HoldStage) -> None:
        nonlocal most
        note(self)
        most = max(most, self._counters.held_bytes)

    monkeypatch.setattr(HoldStage, "_note_held", noting)
    hits = make_stream(stream.SOURCES)
    # Three or four slices.
    limit = 40_000
    async with run_of(
        tmp_path, stream, hits, max_bytes=limit, endpoint="tcp://127.0.0.1:9", timeout_ms=FOREVER_MS
    ) as run:
        counters = run.node.counters.held
        await eventually(lambda: counters.held_slices + sum(counters.slices.values()) == N_SLICES)
        assert 1 < counters.held_slices < 6
        assert counters.slices[HeldEnd.NO_ROOM] > 3
        run.now()
    assert 0 < most <= limit
    assert counters.slices[HeldEnd.NO_ROOM] + counters.slices[HeldEnd.TIMEOUT] == N_SLICES
    assert counters.faults[SeedFault.UNSENT] >= N_SLICES
    check_windows(records(tmp_path), hits)


async def test_held_slices_stay_below_half_of_the_ids_that_the_builder_tells_apart(
    stream: ModuleType, tmp_path: Path
) -> None:
    hits = make_stream(stream.SOURCES)
    async with run_of(
        tmp_path, stream, hits, closed_ring=16, endpoint="tcp://127.0.0.1:9", timeout_ms=FOREVER_MS
    ) as run:
        counters = run.node.counters.held
        await eventually(lambda: counters.held_slices == 8 and counters.slices[HeldEnd.NO_ROOM] == N_SLICES - 8)
        run.now()
    check_windows(records(tmp_path), hits)


async def test_slices_with_more_seeds_than_a_message_holds_are_kept_as_a_whole(
    stream: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hits = make_stream(stream.SOURCES)
    starts = [start for start, *_ in hits.windows()]
    # A window belongs to the slice of its first hit, 100 ns behind its start.
    counts = [sum(n * 1000 <= start + 100 < (n + 1) * 1000 for start in starts) for n in range(N_SLICES)]
    limit = 30
    crowded = [n for n, count in enumerate(counts) if count > limit]
    assert crowded == [4, 5, 6]
    monkeypatch.setattr(window_rows, "MAX_SEED_BYTES", limit * 28)
    with running(Combiner(JoinRules(), CombinerAccess())) as combiner:
        async with run_of(tmp_path, stream, hits, endpoint=combiner.endpoint, timeout_ms=FOREVER_MS) as run:
            pass
        assert combiner.joiner.counts.whole == len(crowded)
    assert run.node.counters.held.faults[SeedFault.WHOLE_SLICE] == len(crowded)
    joined = join_windows(records(tmp_path))
    assert any(window.start_ns <= 4000 and window.end_ns >= 7000 for window in joined)
    for window in joined:
        assert set(hits_of(window)) == hits.hits(window.start_ns, window.end_ns)
        assert len(set(hits_of(window))) == len(hits_of(window))
    for start, end in hits.merged():
        assert any(max(start, window.start_ns) < min(end, window.end_ns) for window in joined)


async def test_an_external_window_keeps_hits_of_slices_that_are_held(stream: ModuleType, tmp_path: Path) -> None:
    hits = make_stream(stream.SOURCES)
    # Borders of slices lie inside, and so do windows of the chain.
    start, end = CORE * LENGTH + 250, 4 * CORE * LENGTH + 130
    with running(Combiner(JoinRules(), CombinerAccess())) as combiner:
        async with run_of(
            tmp_path, stream, hits, endpoint=combiner.endpoint, hold_ms=FOREVER_MS, timeout_ms=FOREVER_MS
        ) as run:
            counters = run.node.counters.held
            await eventually(lambda: counters.held_slices == N_SLICES)
            assert run.node.counters.meps_acknowledged == 0
            await eventually(lambda: combiner.joiner.counts.slices[CombinedSlice.COMPLETE] == N_SLICES)
            texts = [
                await asyncio.to_thread(ask, combiner.endpoint, *of)
                # The second one overlaps, and the third one lies in the first.
                for of in ((start, end - 500), (end - 1500, end), (start + 1, start + 2), (10**9, 2 * 10**9))
            ]
            assert texts[0] == "kept by all nodes that hold it"
            assert texts[1] == f"{texts[0]}; overlaps 1 earlier window: hits are kept once"
            assert texts[3].startswith("in the future: ")
            await eventually(lambda: counters.external_windows == 4)
            run.now()
        assert not any(combiner.refused.values())
    assert counters.slices[HeldEnd.JOINED] == N_SLICES
    of_chain = [window for window in published(run) if window[2]]
    assert of_chain == hits.windows()
    external = [window for window in published(run) if not window[2]]
    # The slices 1 to 4, each with its margin behind.
    assert {window[0] for window in external} == {start, start + 1, end - 1500, 2000, 3000, 4000}
    assert max(window[1] for window in external) == end

    found = records(tmp_path)
    assert len({record.id for record in found}) == len(found)
    assert all(set(hits_of(record)) == hits.hits(record.start_ns, record.end_ns) for record in found)
    joined = join_windows(found)
    covering = [window for window in joined if window.start_ns <= start and end <= window.end_ns]
    assert len(covering) == 1
    assert all(len(set(hits_of(window))) == len(hits_of(window)) for window in joined)
    wanted = sorted([*hits.merged(), (start, end)])
    merged = [wanted[0]]
    for each in wanted[1:]:
        if each[0] < merged[-1][1]:
            merged[-1] = merged[-1][0], max(each[1], merged[-1][1])
        else:
            merged.append(each)
    assert [(window.start_ns, window.end_ns) for window in joined] == merged


def ask(endpoint: str, start: int, end: int) -> str:
    from hltnode.daemon.commands.node.window import _ask

    reply = _ask(endpoint, Keep(1, RUN, start, end), 20.0, None)
    assert (reply.ok, reply.run) == (True, RUN)
    return reply.text


async def test_an_external_window_before_the_oldest_held_slice_is_refused(stream: ModuleType, tmp_path: Path) -> None:
    from hltnode.daemon.commands.node.window import _ask

    hits = make_stream(stream.SOURCES)
    with running(Combiner(JoinRules(), CombinerAccess())) as combiner:
        async with run_of(tmp_path, stream, hits, endpoint=combiner.endpoint, timeout_ms=FOREVER_MS) as run:
            # All slices were answered and have left.
            await eventually(lambda: sum(run.node.counters.held.slices.values()) == N_SLICES)
            held_from = N_SLICES * CORE * LENGTH
            await eventually(lambda: combiner.nodes["testnode"].held_from_ns == held_from)
            reply = await asyncio.to_thread(_ask, combiner.endpoint, Keep(1, RUN, 0, held_from), 20.0, None)
            assert not reply.ok
            assert reply.text.startswith(f"over: the window ends at {held_from} ns, and no node holds anything before")
            late = await asyncio.to_thread(ask, combiner.endpoint, held_from, held_from + 1)
            assert late.startswith(f"in the future: the nodes are at {held_from} ns")
        assert combiner.refused[CombinerRefusal.EXTERNAL] == 1
    check_windows(records(tmp_path), hits)


async def test_a_node_that_stops_forgets_held_slices_and_acknowledges_none(stream: ModuleType, tmp_path: Path) -> None:
    hits = make_stream(stream.SOURCES)
    n_events = write_slices(tmp_path / "slices.mdf", stream, hits, CORE)
    packing = Packing(events_per_mep=n_events, max_fragment_bytes=1 << 20, run=RUN)
    meps = meps_of_files([tmp_path / "slices.mdf"], stream.STREAM.readout, packing)
    config = make_config(
        tmp_path, trigger={"chain": "stream"}, combiner={"endpoint": "tcp://127.0.0.1:9", "timeout_ms": FOREVER_MS}
    )
    backend = create_backend("cpu", stream.STREAM.kernels, threads=1)
    engine = stream.STREAM.create_engine(
        backend, {}, stream.STREAM.load_trigger(None), batch_limits(config), with_lists=names_of_lists(config)
    )
    with zmq.asyncio.Context() as context:
        async with node_of_engine(config, engine, backend.name) as node:
            async with make_feeder(context, node, sources=stream.SOURCES, events=n_events, chain="stream") as feeder:
                fed = asyncio.create_task(feed_meps(meps, [feeder]))
                await eventually(lambda: node.counters.held.held_slices == N_SLICES)
                fed.cancel()
                await asyncio.gather(fed, return_exceptions=True)
            node.request_stop()
            node.request_stop()
    assert node.counters.meps_acknowledged == 0
    assert records(tmp_path) == []
