"""A node and feeders over real sockets on 127.0.0.1, with a fake engine."""

import asyncio
import errno
import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest
import zmq
import zmq.asyncio

from hltnode.client.feeder import Feeder, FeederRefusedError
from hltnode.client.mep import FeedMep
from hltnode.daemon.common.vocabulary import CloseReason
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.monitoring.health import Condition
from hltnode.daemon.node.node import Node
from hltnode.daemon.replay.single_node import FeedReport, feed_meps
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.reports import decode_dec_reports
from hltnode.protocol.transport.decisions import MepDecision, decode_decision, max_events_of_decision
from hltnode.protocol.transport.refusals import HelloRefusal
from tests.daemon.fakes import (
    SOURCES,
    TRACKS_PER_EVENT,
    eventually,
    lines_of_event,
    make_config,
    make_feeder,
    running_node,
    synthetic_meps,
)
from tests.daemon.pages import all_metrics

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]


@pytest.fixture
def context() -> Iterator[zmq.asyncio.Context]:
    with zmq.asyncio.Context() as context:
        yield context


async def feed_and_listen(
    context: zmq.asyncio.Context, node: Node, feeder: Feeder, n_meps: int, meps: Iterator[FeedMep] | None = None
) -> tuple[FeedReport, list[MepDecision]]:
    """Feed some MEPs, and what a subscriber hears of them."""
    with context.socket(zmq.SUB) as subscriber:
        subscriber.subscribe(b"")
        subscriber.connect(node.publisher.endpoint)
        await eventually(lambda: node.counters.decisions.subscribers)
        report = await feed_meps(meps or synthetic_meps(n_meps), [feeder])
        return report, [decode_decision(await subscriber.recv()) for _ in range(n_meps)]


def finished_files(directory: Path, run: int) -> list[Path]:
    return list((directory / "out").glob(f"*{run:010d}_accepted*.mdf"))


def check_accounts(node: Node) -> None:
    accounts = accounting(node.counters, node.builder)
    assert closes(accounts), accounts


async def test_every_mep_is_built_decided_and_acknowledged(tmp_path: Path, context: zmq.asyncio.Context) -> None:
    async with running_node(make_config(tmp_path)) as (node, _), make_feeder(context, node) as feeder:
        report, taken = await feed_and_listen(context, node, feeder, 50)
    assert report.complete
    assert (report.meps, report.events, report.fragments) == (50, 400, 200)
    assert sorted(d.mep for d in taken) == list(range(50))
    assert [d.seq for d in taken] == list(range(50))
    assert {d.accepted for d in taken} == {bytes([0b10101010])}
    assert {d.close_reason for d in taken} == {CloseReason.COMPLETE}
    assert node.counters.meps_acknowledged == 50
    assert node.counters.events_accepted == 200
    assert node.counters.line_accepts == [200]
    assert node.counters.objects == {"tracks": 400 * TRACKS_PER_EVENT}
    check_accounts(node)


async def test_accepted_events_are_in_the_files_bank_for_bank(tmp_path: Path, context: zmq.asyncio.Context) -> None:
    async with running_node(make_config(tmp_path)) as (node, _), make_feeder(context, node) as feeder:
        await feed_meps(synthetic_meps(20), [feeder])
    [path] = (tmp_path / "out").glob("*accepted*.mdf")
    records = list(iter_records(path.read_bytes()))
    assert len(records) == 80
    assert {record.header.run for record in records} == {42}
    sources = [bank.source_id for bank in records[0].banks()]
    assert sources[: len(SOURCES)] == list(SOURCES)
    assert not list((tmp_path / "out").glob("*.part"))
    [summary_file] = (tmp_path / "out").glob("*_summary.json")
    summary = json.loads(summary_file.read_text())
    assert (summary["run"], summary["node"]) == (42, "testnode")
    assert summary["files"] == {path.name: path.stat().st_size}
    assert (summary["fragments"]["built"], summary["meps"]["complete"]) == (80, 20)
    assert summary["events"] == {"processed": 160, "accepted": 80}
    assert summary["lines"] == {"every_second": 80}
    assert summary["objects"] == {"tracks": 160 * TRACKS_PER_EVENT}
    assert summary["identities"] == {"fragments": True, "meps": True}
    assert summary["accounting_closes"]


async def test_a_menu_of_500_lines_goes_through_the_node(tmp_path: Path, context: zmq.asyncio.Context) -> None:
    lines = tuple(f"Hlt1Line{i}" for i in range(500))
    of_event = [lines_of_event(event, 500) for event in range(8)]
    async with running_node(make_config(tmp_path), lines) as (node, _), make_feeder(context, node) as feeder:
        report, taken = await feed_and_listen(context, node, feeder, 20)
        metrics = await asyncio.to_thread(all_metrics, node.http_port)
    assert report.complete
    assert len(taken) == 20
    for decision in taken:
        assert (decision.n_lines, decision.accepted) == (500, bytes([0b10101010]))
        words = np.frombuffer(decision.lines, dtype="<u4").reshape(8, 16)
        assert [[i for i in range(512) if row[i // 32] >> i % 32 & 1] for row in words] == of_event
    [path] = (tmp_path / "out").glob("*accepted*.mdf")
    records = list(iter_records(path.read_bytes()))
    assert len(records) == 80
    for record, fired in zip(records, of_event[1::2] * 20, strict=True):
        [bank] = [bank for bank in record.banks() if bank.type == BankType.HLT_DEC_REPORTS]
        reports = decode_dec_reports(bank).lines
        assert [line.decision_id for line in reports] == list(range(1, 501))
        assert [i for i, line in enumerate(reports) if line.decision] == fired
    expected = [20 * sum(line in fired for fired in of_event) for line in range(500)]
    assert {0, 20, 80} <= set(expected)
    assert [metrics[f'hltnode_line_accepts_total{{line="{line}"}}'] for line in lines] == expected
    assert node.counters.line_accepts == expected
    check_accounts(node)


async def test_a_batch_that_the_back_end_loses_has_a_decision_of_500_lines_too(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    lines = tuple(f"Hlt1Line{i}" for i in range(500))
    async with running_node(make_config(tmp_path), lines) as (node, engine), make_feeder(context, node) as feeder:
        engine.behaviour.fail_next = 1
        _, taken = await feed_and_listen(context, node, feeder, 1)
    assert (taken[0].n_lines, taken[0].lines) == (500, bytes(8 * 64))


async def test_the_decision_on_the_largest_mep_with_500_lines_is_published(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    events = 0xFFFF
    config = make_config(
        tmp_path,
        network={"max_frame_bytes": 8 << 20},
        builder={"max_mep_bytes": 16 << 20},
        pipeline={"slot_bytes": 16 << 20, "max_events": events},
    )
    lines = tuple(f"Hlt1Line{i}" for i in range(500))
    async with (
        running_node(config, lines) as (node, _),
        make_feeder(context, node, sources=SOURCES[:1], events=events, max_fragment_bytes=4 << 20) as feeder,
    ):
        meps = synthetic_meps(1, sources=SOURCES[:1], events=events, size=1)
        report, [decision] = await feed_and_listen(context, node, feeder, 1, meps)
    assert report.complete
    assert (decision.n_events, decision.n_lines) == (events, 500)
    assert len(decision.lines) == 64 * events


async def test_meps_whose_decisions_do_not_fit_a_message_are_refused_before_the_run(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    config = make_config(tmp_path, pipeline={"max_events": 20_000})
    lines = tuple(f"Hlt1Line{i}" for i in range(10_000))
    allowed = max_events_of_decision(len(lines))
    assert allowed < 20_000
    async with running_node(config, lines) as (node, _), make_feeder(context, node, events=allowed + 1) as feeder:
        await eventually(lambda: node.counters.hellos_refused[HelloRefusal.EVENTS_PER_MEP] >= 1)
        assert feeder.node_session is None
    async with running_node(config, lines) as (node, _), make_feeder(context, node, events=allowed) as feeder:
        await eventually(lambda: feeder.node_session == node.session)


async def test_sources_of_several_feeders_meet_in_one_mep(tmp_path: Path, context: zmq.asyncio.Context) -> None:
    config = make_config(tmp_path, builder={"min_feeders": 2, "max_feeders": 2})
    async with (
        running_node(config) as (node, _),
        make_feeder(context, node, name="a", sources=SOURCES[:2]) as a,
        make_feeder(context, node, name="b", sources=SOURCES[2:]) as b,
    ):
        report = await feed_meps(synthetic_meps(30), [a, b])
        assert node.builder.sources == SOURCES
    assert report.complete
    assert node.counters.meps_closed[CloseReason.COMPLETE] == 30
    check_accounts(node)


async def test_a_silent_source_is_named_and_its_meps_are_flagged(tmp_path: Path, context: zmq.asyncio.Context) -> None:
    config = make_config(tmp_path, builder={"expected_sources": (*SOURCES, 7777), "mep_timeout_ms": 50})
    async with running_node(config) as (node, _), make_feeder(context, node) as feeder:
        _, taken = await feed_and_listen(context, node, feeder, 5)
    assert {d.missing_sources for d in taken} == {(7777,)}
    assert {d.close_reason for d in taken} == {CloseReason.TIMEOUT}
    assert node.counters.events_flagged["incomplete"] == 40
    [path] = (tmp_path / "out").glob("*.mdf")
    assert "accepted" in path.name
    assert len(list(iter_records(path.read_bytes()))) == 20
    check_accounts(node)


async def test_the_error_policy_keeps_all_events_of_an_incomplete_mep_in_the_error_stream(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    builder = {"expected_sources": (*SOURCES, 7777), "mep_timeout_ms": 50, "on_timeout": "error"}
    async with running_node(make_config(tmp_path, builder=builder)) as (node, _), make_feeder(context, node) as feeder:
        _, taken = await feed_and_listen(context, node, feeder, 5)
    assert {d.accepted for d in taken} == {bytes([0])}
    assert node.counters.events_accepted == 0
    [path] = (tmp_path / "out").glob("*.mdf")
    assert "error" in path.name
    assert len(list(iter_records(path.read_bytes()))) == 40
    check_accounts(node)


async def test_a_batch_that_the_back_end_loses_is_kept_and_flagged(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    async with running_node(make_config(tmp_path)) as (node, engine), make_feeder(context, node) as feeder:
        engine.behaviour.fail_next = 1
        report = await feed_meps(synthetic_meps(20), [feeder])
    assert report.complete
    assert node.counters.backend_errors == 1
    lost = node.counters.events_flagged["backend_error"]
    assert lost > 0
    [path] = (tmp_path / "out").glob("*error*.mdf")
    assert len(list(iter_records(path.read_bytes()))) == lost
    check_accounts(node)


async def test_a_back_end_that_always_fails_stops_the_node_with_an_error(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    config = make_config(tmp_path)
    async with running_node(config) as (node, engine), make_feeder(context, node) as feeder:
        engine.behaviour.fail_next = 10**6
        for mep in synthetic_meps(200):
            if node.state == "error":
                break
            try:
                await asyncio.wait_for(feeder.offer(mep), 1.0)
            except TimeoutError:
                break
        await eventually(lambda: node.state == "error")
    assert node.counters.backend_errors >= 3
    check_accounts(node)


async def test_a_delivery_that_breaks_stops_the_node_with_an_error(
    tmp_path: Path, context: zmq.asyncio.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def publish(written: object) -> None:
        raise RuntimeError("an unknown reason")

    async with running_node(make_config(tmp_path)) as (node, _), make_feeder(context, node) as feeder:
        monkeypatch.setattr(node.outputs, "publish", publish)
        await feeder.offer(next(synthetic_meps(1)))
        await eventually(lambda: node.state == "error")
        assert feeder.window.unacknowledged == 1


async def test_a_run_ends_with_its_files_finished_and_another_one_can_start(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    async with running_node(make_config(tmp_path)) as (node, _):
        for run in (42, 43):
            async with make_feeder(context, node, run=run) as feeder:
                assert (await feed_meps(synthetic_meps(10), [feeder])).complete
            await eventually(lambda: node.builder_control.registry.current is None)
            await eventually(partial(finished_files, tmp_path, run))
            assert len(finished_files(tmp_path, run)) == 1
    assert node.counters.meps_closed[CloseReason.COMPLETE] == 20
    summaries = [json.loads(path.read_text()) for path in sorted((tmp_path / "out").glob("*_summary.json"))]
    assert [(s["run"], s["meps"]["complete"], s["fragments"]["received"]) for s in summaries] == [
        (42, 10, 40),
        (43, 10, 40),
    ]
    check_accounts(node)


async def test_a_broken_identity_is_counted_and_named(tmp_path: Path, context: zmq.asyncio.Context) -> None:
    async with running_node(make_config(tmp_path)) as (node, _), make_feeder(context, node) as feeder:
        await feed_meps(synthetic_meps(3), [feeder])
        node.counters.fragments_received += 1
    assert node.counters.accounting_broken > 0
    [summary_file] = (tmp_path / "out").glob("*_summary.json")
    summary = json.loads(summary_file.read_text())
    assert summary["identities"] == {"fragments": False, "meps": True}
    assert summary["fragments"]["unaccounted"] == 1


async def test_a_feeder_of_another_run_is_refused_while_a_run_is_on(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    async with (
        running_node(make_config(tmp_path, builder={"min_feeders": 2, "max_feeders": 2})) as (node, _),
        make_feeder(context, node, name="a", sources=SOURCES[:2]) as a,
    ):
        await eventually(lambda: a.node_session is not None)
        async with make_feeder(context, node, name="b", sources=SOURCES[2:], run=43) as b:
            await eventually(lambda: node.counters.control_messages_rejected >= 1)
            assert a.node_session == node.session
            assert b.node_session is None
            assert node.builder.run is None


async def test_a_fragment_that_the_node_cannot_take_ends_the_feed_with_a_reason(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    config = make_config(tmp_path, network={"max_frame_bytes": 1024})
    async with running_node(config) as (node, _), make_feeder(context, node, events=100) as feeder:
        with pytest.raises(FeederRefusedError, match=r"network\.max_frame_bytes"):
            await feed_meps(synthetic_meps(1, events=100), [feeder])


async def test_stopping_drains_what_was_sent_and_closes_what_is_open(
    tmp_path: Path, context: zmq.asyncio.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hltnode.daemon.run_control.controller.DRAIN_SECONDS", 0.5)
    config = make_config(tmp_path, builder={"mep_timeout_ms": 10_000, "expected_sources": (*SOURCES, 7777)})
    async with running_node(config) as (node, _), make_feeder(context, node) as feeder:
        for mep in synthetic_meps(3):
            await feeder.offer(mep)
        await eventually(lambda: len(node.builder.open) == 3)
        node.request_stop()
        await eventually(lambda: node.state == "ready", seconds=20)
        await eventually(lambda: feeder.window.unacknowledged == 0)
    assert node.counters.meps_closed[CloseReason.END_OF_RUN] == 3
    check_accounts(node)


async def test_a_new_session_of_the_node_gets_what_the_old_one_did_not_acknowledge(
    tmp_path: Path, context: zmq.asyncio.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_node(make_config(tmp_path)) as (first, engine):
        network = {
            "data": first.receiver.endpoint,
            "control": first.control.endpoint,
            "decisions": first.publisher.endpoint,
        }
        feeder = make_feeder(context, first)
        await feeder.__aenter__()
        engine.behaviour.hang.set()
        for mep in synthetic_meps(6):
            await feeder.offer(mep)
        await eventually(lambda: first.counters.fragments_received == 24)
        # The back end does not answer: this session ends without an acknowledgement.
        with monkeypatch.context() as impatient:
            impatient.setattr("hltnode.daemon.monitoring.health.PIPELINE_STALL_NS", 200_000_000)
            await eventually(lambda: first.state == "error")
        engine.behaviour.hang.clear()
        engine.behaviour.fail_next = 0
    assert feeder.window.unacknowledged == 6 or first.counters.meps_acknowledged > 0
    async with running_node(make_config(tmp_path, network=network)) as (second, _):
        report = await feed_meps(synthetic_meps(10, first=6), [feeder])
        await feeder.__aexit__()
    assert report.complete
    assert first.counters.meps_acknowledged + second.counters.meps_closed[CloseReason.COMPLETE] >= 16
    check_accounts(second)


async def test_a_back_end_that_hangs_turns_the_node_unhealthy_and_stops_it(
    tmp_path: Path, context: zmq.asyncio.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hltnode.daemon.monitoring.health.PIPELINE_STALL_NS", 1_000_000_000)
    monkeypatch.setattr("hltnode.daemon.node.node.STOP_SECONDS", 0.2)
    async with running_node(make_config(tmp_path)) as (node, engine), make_feeder(context, node) as feeder:
        engine.behaviour.hang.set()
        for mep in synthetic_meps(2):
            await feeder.offer(mep)
        await eventually(lambda: node.state == "error")
        assert node.counters.fragments_built == 8
        assert feeder.window.unacknowledged == 2
        assert Condition.PIPELINE in node.health.liveness_problems(node.clock.now_ns)
        engine.behaviour.hang.clear()


async def test_a_full_disk_holds_the_acknowledgements_until_there_is_room(
    tmp_path: Path, context: zmq.asyncio.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hltnode.daemon.output.output_stage.RETRY_SECONDS", 0.02)
    async with running_node(make_config(tmp_path)) as (node, _), make_feeder(context, node) as feeder:
        write = os.write
        full = True

        def write_to_full_disk(descriptor: int, data: memoryview) -> int:
            if full:
                raise OSError(errno.ENOSPC, "No space left on device")
            return write(descriptor, data)

        monkeypatch.setattr("hltnode.daemon.storage.event_writer.os.write", write_to_full_disk)
        for mep in synthetic_meps(2):
            await feeder.offer(mep)
        await eventually(lambda: node.health.disk_problem is not None)
        assert feeder.window.unacknowledged == 2
        full = False
        await eventually(lambda: feeder.window.unacknowledged == 0)
        await eventually(lambda: node.health.disk_problem is None)
    check_accounts(node)


async def test_the_status_page_shows_run_feeders_and_accounts(tmp_path: Path, context: zmq.asyncio.Context) -> None:
    async with running_node(make_config(tmp_path)) as (node, _), make_feeder(context, node) as feeder:
        for mep in synthetic_meps(3):
            await feeder.offer(mep)
        await eventually(lambda: feeder.window.unacknowledged == 0)
        status = json.loads(json.dumps(node.status.full()))
        assert (status["state"], status["run"], status["sources"]) == ("running", 42, 4)
        assert status["feeders"] == [
            {
                "name": "feeder",
                "sources": 4,
                "connected": True,
                "supervises": False,
                "ended": False,
                "last_mep": None,
                "confirmed_below": 0,
                "confirmed": False,
                "silent_seconds": 0.0,
            }
        ]
        assert (status["kept"], status["kept_runs"], status["closing"]) == (0, [], None)
        assert status["accounting"]["fragments"]["built"] == 12
        assert status["slot_bytes"] == {"device": 3 << 20, "pinned": 1 << 20, "thread": 0}
        assert status["events"] == {"processed": 24, "accepted": 12, "accepted_by_line": {"every_second": 12}}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("last", [4000, pytest.param(40_000, marks=pytest.mark.slow)])
async def test_memory_stays_flat_over_thousands_of_meps(
    tmp_path: Path, context: zmq.asyncio.Context, last: int
) -> None:
    process = psutil.Process()
    [mep] = synthetic_meps(1)
    begin = 1000

    def meps() -> Iterator[FeedMep]:
        for number in range(last):
            if number == begin:
                resident.append(process.memory_info().rss)
            yield FeedMep.of_mfps(number, mep.first_event, mep.mfps)

    resident: list[int] = []
    config = make_config(tmp_path, output={"fsync": "never"})
    async with running_node(config) as (node, engine), make_feeder(context, node) as feeder:
        slots = [workspace.input_data.ctypes.data for workspace in engine.workspaces]
        report = await feed_meps(meps(), [feeder])
        grown = process.memory_info().rss - resident[0]
        assert [workspace.input_data.ctypes.data for workspace in engine.workspaces] == slots
    assert report.complete
    # Less than a kilobyte for each MEP, and what allocators keep.
    assert grown < min(1024 * (last - begin), 8 * 1024 * 1024)
