"""MEPs of datagrams that the receiving thread decides: the same decisions and accounts, and none is refused later."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zmq

from hltnode.daemon._native import Outcome
from hltnode.daemon.common.vocabulary import CloseReason, DecisionThread, ThreadSetting
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.event_building.stimuli_and_effects import EndRun
from hltnode.daemon.node import core
from hltnode.daemon.node.node import Node
from hltnode.daemon.node.sizing import batch_limits, decides_directly
from hltnode.daemon.storage.histogram_files import HistogramFiles
from hltnode.daemon.storage.root_file import load_library
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.raw.chain import CHAIN
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.protocol.errors import RejectReason
from tests.daemon.fakes import eventually, node_of_engine
from tests.daemon.udp.direct_experiment import LINES, PACKETS, SECONDS, SHORT, Experiment, config_of, experiment
from tests.daemon.udp.packets import EVENTS, RUN, SOURCES

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]

MEPS = 6
RUNS = RUN, RUN + 1
QUIET_SECONDS = 0.3


async def test_the_receiving_thread_decides_while_the_event_loop_is_blocked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with experiment(config_of(tmp_path), monkeypatch) as it:
        await it.begin()
        for mep in (1, 2, 3):
            it.send(mep)
            decision = it.take()
            assert decision is not None
            assert (decision.mep, decision.seq, decision.n_events) == (mep, mep, PACKETS * EVENTS)
            assert decision.first_event == 1000 + mep * PACKETS * EVENTS
            assert decision.accepted_events().tolist() == [False, True] * (PACKETS * EVENTS // 2)
            assert it.node.counters.meps_closed[CloseReason.COMPLETE] == mep
            await it.rest(mep + 1)
            it.receiver.read()
            assert it.intake.decided is None
        counters = it.node.counters
        assert counters.decisions_directly == 3
        assert counters.decisions_first == counters.decisions.sent == 4
        assert counters.events_processed == 4 * PACKETS * EVENTS
        assert it.batch.computed == 3
        assert closes(accounting(counters, it.node.builder))


@pytest.mark.parametrize("act", ["close", "leave", "abandon", "close_open"])
async def test_a_decided_mep_is_built_before_anything_refuses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    acts: dict[str, Callable[[Node], object]] = {
        "close": lambda node: node.builder_control.close(None),
        "leave": lambda node: node.builder_control.leave_run(),
        "abandon": lambda node: node.builder_control.abandon(),
        "close_open": lambda node: node.builder_control.close_open(),
    }
    async with experiment(config_of(tmp_path), monkeypatch) as it:
        await it.begin()
        it.send(1)
        it.wait_for_decision()
        acts[act](it.node)
        assert it.node.counters.meps_closed[CloseReason.COMPLETE] == 2
        await eventually(lambda: it.node.counters.meps_acknowledged == 2)
        assert (await it.next()).mep == 1
        assert it.take(QUIET_SECONDS) is None
    assert it.node.counters.udp.discarded == 0
    assert closes(accounting(it.node.counters, it.node.builder))


@pytest.mark.parametrize("act", ["close_open", "abandon"])
async def test_a_decided_mep_that_is_handed_over_in_part_is_built_before_anything_refuses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    async with experiment(config_of(tmp_path), monkeypatch) as it:
        await it.begin()
        it.send(1)
        it.wait_for_decision()
        it.receiver._handler.begin_turn()
        assert it.receiver._receive(time.monotonic_ns()) is Outcome.LEFT
        assert it.node.counters.meps_closed[CloseReason.COMPLETE] == 1
        getattr(it.node.builder_control, act)()
        assert it.node.counters.meps_closed[CloseReason.COMPLETE] == 2
        await eventually(lambda: it.node.counters.meps_acknowledged == 2)
        assert (await it.next()).mep == 1
        assert it.take(QUIET_SECONDS) is None
    assert it.node.counters.decisions_directly == 1
    assert closes(accounting(it.node.counters, it.node.builder))


async def test_a_mep_of_a_long_computation_goes_the_usual_way_and_is_decided_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with experiment(config_of(tmp_path), monkeypatch) as it:
        await it.begin()
        it.batch.may_compute.clear()
        it.send(1)
        assert it.batch.begun.wait(SECONDS)
        await asyncio.sleep(QUIET_SECONDS)
        assert it.take(0) is None
        pipeline = it.node._path.pipeline
        await eventually(lambda: pipeline.tick_ns == it.intake.computes_since_ns)
        assert pipeline.advanced_ns <= it.intake.computes_since_ns
        it.receiver.read()
        assert it.node.counters.meps_closed[CloseReason.COMPLETE] == 1
        it.node.builder.before_refusals()
        it.node._sockets.udp_receiver.schedule()  # type: ignore[union-attr]
        decision = await it.next()
        assert (decision.mep, decision.seq) == (1, 1)
        await it.rest(2)
        assert it.node.counters.decisions_directly == 0
        it.batch.may_compute.set()
        await eventually(lambda: not it.intake.computes_since_ns)
        assert it.take(QUIET_SECONDS) is None
        it.receiver.read()
        it.send(2)
        assert (await it.next()).seq == 2
        await it.rest(3)
        assert it.node.counters.decisions_directly == 1
        assert pipeline.tick_ns > 0


async def test_an_incomplete_mep_is_not_decided_directly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with experiment(config_of(tmp_path, udp={"flush_us": 500_000}), monkeypatch) as it:
        await it.begin()
        it.send(1, without=SOURCES[0])
        decision = await it.next()
        assert (decision.mep, decision.missing_sources) == (1, (SOURCES[0],))
        await it.rest(2)
        assert it.batch.computed == it.node.counters.decisions_directly == 0


async def test_decisions_do_not_overtake_those_of_a_batch_that_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with experiment(config_of(tmp_path), monkeypatch) as it:
        await it.begin()
        it.intake.disarm(0)
        it.behaviour.hang.set()
        it.send(1)
        # The event loop would give the permission again.
        it.wait_for_meps(2)
        await eventually(lambda: it.node.counters.meps_closed[CloseReason.COMPLETE] == 2)
        it.receiver.read()
        it.send(2)
        await eventually(lambda: it.node.counters.meps_closed[CloseReason.COMPLETE] == 3)
        it.behaviour.hang.clear()
        assert [(await it.next()).mep for _ in range(2)] == [1, 2]
        await it.rest(3)
        assert it.batch.computed == 0


async def test_a_mep_after_the_end_of_a_run_is_not_decided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with experiment(config_of(tmp_path), monkeypatch) as it:
        await it.begin()
        it.node.builder_control.handle(EndRun())
        it.receiver.read()
        it.send(1)
        await asyncio.sleep(QUIET_SECONDS)
        assert it.take(0) is None
        assert it.batch.computed == 0
    assert it.node.counters.udp.discarded == PACKETS * len(SOURCES)


async def test_a_mep_id_above_those_that_the_builder_accepts_is_not_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with experiment(config_of(tmp_path, builder={"closed_ring": 16}), monkeypatch) as it:
        # No hello raises the floor.
        monkeypatch.setattr(it.receiver._feeder, "is_hello_due", lambda _now_ns: False)
        await it.begin()
        for mep in range(1, 16):
            it.send(mep)
            assert (await it.next()).mep == mep
            await it.rest(mep + 1)
        it.receiver.read()
        computed = it.batch.computed
        it.send(16)
        await eventually(lambda: it.node.counters.fragments_rejected[RejectReason.NO_CREDIT] > 0)
        assert it.take(QUIET_SECONDS) is None
        assert it.batch.computed == computed > 1


async def test_a_mep_without_a_credit_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with experiment(config_of(tmp_path), monkeypatch) as it:
        await it.begin()
        it.node.builder_control.pause()
        mep = 1
        while it.node.builder.window.outstanding:
            it.send(mep)
            assert (await it.next()).mep == mep
            mep += 1
            await it.rest(mep)
        computed = it.batch.computed
        assert computed > 1
        it.send(mep)
        await asyncio.sleep(QUIET_SECONDS)
        assert it.take(0) is None
        it.node.builder_control.resume()
        assert (await it.next()).mep == mep
        await it.rest(mep + 1)
        assert it.batch.computed == computed


async def test_a_run_that_needs_fewer_sources_than_the_boards_have_goes_the_usual_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of(tmp_path, builder={"expected_sources": list(SOURCES[:1])})
    async with experiment(config, monkeypatch) as it:
        await it.begin()
        it.send(1)
        assert (await it.next()).mep == 1
        await it.rest(2)
        assert it.batch.computed == 0


async def test_a_run_that_is_left_ends_the_permission_to_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with experiment(config_of(tmp_path), monkeypatch) as it:
        await it.begin()
        it.intake.leave_run()
        it.send(0, burst=2)
        it.wait_for_meps(2)
        assert (await it.next()).mep == 1
        await it.rest(2)
        assert it.batch.computed == 0


async def test_meps_after_a_long_batch_are_not_decided_directly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with experiment(config_of(tmp_path), monkeypatch) as it:
        monkeypatch.setattr(SHORT, -1.0)
        await it.begin()
        it.send(1)
        assert (await it.next()).mep == 1
        await it.rest(2)
        assert it.batch.computed == 0


async def test_an_id_that_the_journal_does_not_keep_is_not_decided_directly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hltnode.daemon.compute.interruptions.RESERVED_MEPS", 2)
    async with experiment(config_of(tmp_path), monkeypatch) as it:
        await it.begin()
        for mep in (1, 2, 3):
            it.send(mep)
            assert (await it.next()).mep == mep
            await it.rest(mep + 1)
        # 0 reserved the ids below 2, and 2 those below 4.
        assert it.node.counters.decisions_directly == 2
        assert it.node._path.store.journal.begun_below(it.node.builder.run or 0) == 4


async def test_a_late_decision_has_its_mark_and_goes_the_usual_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of(tmp_path, latency={"deadline_us": 200_000})
    async with experiment(config, monkeypatch) as it:
        await it.begin()
        for mep, is_late in ((1, False), (2, True)):
            it.batch.may_compute.clear()
            it.send(mep)
            assert it.batch.begun.wait(SECONDS)
            if is_late:
                await asyncio.sleep(0.3)
            it.batch.may_compute.set()
            decision = await it.next()
            assert (decision.mep, decision.seq) == (mep, mep)
            assert decision.late or not is_late
            await it.rest(mep + 1)
        assert it.batch.computed == 2
        assert it.node.counters.decisions_directly <= 1


async def test_a_decision_that_no_subscriber_takes_goes_the_usual_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with experiment(config_of(tmp_path), monkeypatch) as it:
        await it.begin()
        early = it.node._path._early
        assert early is not None
        with monkeypatch.context() as patched:
            patched.setattr(early, "_send_written", lambda _write: False)
            it.send(1)
            assert (await it.next()).seq == 1
            await it.rest(2)
        assert it.node.counters.decisions_directly == 0
        it.send(2)
        assert (await it.next()).seq == 2
        await it.rest(3)
        assert it.node.counters.decisions_directly == 1


async def test_the_receiving_threads_get_the_cpus_of_decisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cpus, cpu = os.sched_getaffinity(0), max(os.sched_getaffinity(0))
    try:
        async with experiment(config_of(tmp_path, latency={"cpus": [cpu]}), monkeypatch) as it:
            await it.begin()
            it.send(1)
            assert (await it.next()).mep == 1
            assert it.cpus == [{cpu}]
            assert it.node.counters.thread_settings[DecisionThread.RECEIVE, ThreadSetting.CPUS]
    finally:
        os.sched_setaffinity(0, cpus)


async def test_several_ready_meps_are_decided_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with experiment(config_of(tmp_path), monkeypatch) as it:
        await it.begin()
        for mep in (1, 2, 3, 4):
            it.send(mep)
        decisions = [await it.next() for _ in range(4)]
        assert [(each.mep, each.seq) for each in decisions] == [(mep, mep) for mep in (1, 2, 3, 4)]
        await it.rest(5)
        assert it.node.counters.decisions_directly >= 1
        assert closes(accounting(it.node.counters, it.node.builder))


@pytest.mark.parametrize("n_sockets", [1, 2])
async def test_decisions_and_counts_of_a_chain_are_those_of_the_usual_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_sockets: int
) -> None:
    load_library()
    monkeypatch.setattr(SHORT, SECONDS)
    # It may come to the end of a run after the next one has begun.
    monkeypatch.setattr(HistogramFiles, "finish", lambda *_: None)
    found = []
    for is_direct in (True, False):
        (folder := tmp_path / str(is_direct)).mkdir()
        config = config_of(folder, trigger={"chain": "raw"}, udp={"sockets": n_sockets})
        backend = create_backend("cpu", CHAIN.kernels, threads=1)
        engine = CHAIN.create_engine(backend, {}, TriggerConfig.from_toml(LINES, CHAIN.menu), batch_limits(config))
        if not is_direct:
            monkeypatch.setattr(core, "decides_directly", lambda *_: False)
        with zmq.Context() as context, context.socket(zmq.SUB) as subscriber:
            async with node_of_engine(config, engine, backend.name) as node:
                subscriber.subscribe(b"")
                subscriber.connect(node.publisher.endpoint)
                it = Experiment(node, None, subscriber, [])
                await it.subscribed()
                decisions = []
                for i, run in enumerate(RUNS):
                    for mep in range(MEPS + i):
                        it.send(mep, run=run, burst=1 + i, ends_run=mep == MEPS + i - 1)
                        decisions.append(await it.next())
                        await it.rest(len(decisions))
                    await eventually(lambda: node.builder_control.registry.current is None)
                counters = node.counters
                # The first MEP of a run has no constants before it.
                assert counters.decisions_directly == (len(decisions) - len(RUNS)) * is_direct
                histograms = [[each.counts.tolist() for each in node._core.tally.of_run(run) or ()] for run in RUNS]
        found.append((decisions, histograms, counters.line_accepts, counters.objects, counters.events_flagged))
    assert found[0] == found[1]
    [accepts], (first, other) = found[0][2], found[0][1]
    assert 0 < accepts < (2 * MEPS + 1) * PACKETS * EVENTS
    assert first != other
    assert sum(map(sum, other)) > sum(map(sum, first)) > 0


async def test_an_error_in_the_receiving_thread_ends_the_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bool:
        raise RuntimeError("a defect")

    async with experiment(config_of(tmp_path), monkeypatch) as it:
        await it.begin()
        monkeypatch.setattr(it.node._path._early, "leave_directly", fail)
        it.send(1)
        await eventually(it.node._stop.is_set)
    assert it.node._exit_code == 1


async def test_a_node_whose_direct_computation_hangs_ends_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with experiment(config_of(tmp_path), monkeypatch) as it:
        await it.begin()
        it.batch.may_compute.clear()
        it.send(1)
        assert it.batch.begun.wait(SECONDS)
        it.node.request_stop()
        await eventually(lambda: not it.receiver.has_stopped)
    assert it.node.backend_hangs
    await eventually(lambda: it.batch.computed == 1)


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("latency", "serial", False),
        ("latency", "decisions_first", False),
        ("pipeline", "threads", 2),
        ("udp", "endpoint", None),
        ("decisions", "lists", ["tracks"]),
    ],
)
def test_receiving_threads_decide_only_in_a_serial_node_of_one_thread(
    tmp_path: Path, section: str, key: str, value: Any
) -> None:
    config = config_of(tmp_path)
    assert decides_directly(config, None)
    assert not decides_directly(config, 0)
    changed = getattr(config, section).model_copy(update={key: value})
    assert not decides_directly(config.model_copy(update={section: changed}), None)
