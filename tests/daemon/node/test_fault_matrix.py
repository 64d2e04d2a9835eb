"""Faults of network and feeders, one by one and together, against a node in this loop: all is accounted for."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import zmq
import zmq.asyncio

from hltnode.client.fault_injection import Fault, FaultInjector, FaultPlan
from hltnode.client.feeder import Feeder, FeederIdentity
from hltnode.client.sockets import FeederSockets
from hltnode.daemon.common.vocabulary import CloseReason, DeadTimeReason
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.node.node import Node
from hltnode.daemon.replay.single_node import FeedReport, feed_meps
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.transport.frame_header import encode_frame
from tests.daemon.fakes import RUN, SOURCES, eventually, make_config, make_feeder, running_node, synthetic_meps

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]

MEPS = 60
EVENTS = 8
ACCEPTED = {n for n in range(MEPS * EVENTS) if n % EVENTS % 2}


@pytest.fixture
async def context() -> AsyncIterator[zmq.asyncio.Context]:
    context = zmq.asyncio.Context()
    yield context
    context.destroy(linger=0)


def kept_events(directory: Path) -> Counter[int]:
    """Numbers of the events in all files of a node."""
    return Counter(
        int.from_bytes(record.banks()[0].payload[:8], "little")
        for path in (directory / "out").glob("*.mdf")
        for record in iter_records(path.read_bytes())
    )


async def feed(context: zmq.asyncio.Context, node: Node, plan: FaultPlan) -> FeedReport:
    """Feed through two connections under faults."""
    feeders = []
    for number, sources in enumerate((SOURCES[:2], SOURCES[2:])):
        identity = FeederIdentity(
            name=f"f{number}", run=RUN, sources=sources, events_per_mep=EVENTS, max_fragment_bytes=60_000
        )
        injector = FaultInjector(plan, number)
        sockets = FeederSockets(context, node.receiver.endpoint, node.control.endpoint)
        feeders.append(Feeder(sockets, identity, faults=injector))
    async with feeders[0], feeders[1]:
        return await feed_meps(synthetic_meps(MEPS, events=EVENTS), feeders)


@pytest.mark.parametrize(
    "plan",
    [
        FaultPlan(drop=0.05),
        FaultPlan(duplicate=0.2),
        FaultPlan(reorder=0.3),
        FaultPlan(corrupt=0.1),
        FaultPlan(delay=0.05),
        FaultPlan(drop=0.03, duplicate=0.05, reorder=0.1, corrupt=0.03, delay=0.02),
    ],
    ids=["drop", "duplicate", "reorder", "corrupt", "delay", "all"],
)
async def test_under_faults_every_event_is_kept_once_and_every_fragment_has_its_class(
    tmp_path: Path, context: zmq.asyncio.Context, plan: FaultPlan
) -> None:
    async with running_node(make_config(tmp_path, builder={"min_feeders": 2, "max_feeders": 2})) as (node, _):
        report = await feed(context, node, plan)
        assert report.unacknowledged == 0
        # Only a fragment that arrives after the close of its MEP is not accepted.
        loses = plan.drop or plan.delay or plan.corrupt
        assert report.refused.keys() <= ({RejectReason.LATE} if loses else set())
        counters = node.counters
        # A frame may be held back by its fault until after the last acknowledgement; the feed ends before it.
        await asyncio.sleep(0.1)
        accounts = accounting(counters, node.builder)
        assert closes(accounts), accounts
    times = kept_events(tmp_path)
    assert set(times.values()) == {1}
    assert set(times) >= ACCEPTED
    assert sum(report.injected.values()) > 0
    closed = counters.meps_closed
    incomplete = MEPS - closed[CloseReason.COMPLETE]
    assert sum(closed.values()) == MEPS
    assert counters.events_flagged["incomplete"] == incomplete * EVENTS
    # The feeders know of each MEP that lacks one of their fragments.
    late = report.refused.get(RejectReason.LATE)
    assert (late.meps if late else 0) == incomplete
    rejected = counters.fragments_rejected
    if plan.drop == plan.corrupt == plan.delay == 0:
        assert incomplete == 0
        assert rejected[RejectReason.DUPLICATE] == report.injected[Fault.DUPLICATE]
    elif plan.delay == plan.corrupt == plan.duplicate == 0:
        missing = sum(source.missing for _, source in counters.sources.items())
        # A MEP that is lost as a whole is sent again, and then it is not missing.
        assert missing <= report.injected[Fault.DROP] <= missing + report.resent


async def test_a_node_slower_than_its_feeders_gets_everything_in_its_own_time(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    async with running_node(make_config(tmp_path)) as (node, engine), make_feeder(context, node) as feeder:
        # The first batches last until every slot is full; the others take their normal time.
        engine.behaviour.hang.set()
        feeding = asyncio.create_task(feed_meps(synthetic_meps(200), [feeder]))
        await eventually(lambda: node.counters.dead_time[DeadTimeReason.COMPUTING] > 0)
        engine.behaviour.seconds = 0.1
        engine.behaviour.hang.clear()
        report = await feeding
    assert report.complete
    assert node.counters.fragments_rejected[RejectReason.NO_CREDIT] == 0
    assert set(kept_events(tmp_path)) == {n for n in range(1600) if n % EVENTS % 2}


@pytest.mark.parametrize("jump", [1, 7, 10**6, 2**63, -5])
async def test_a_jump_of_mep_ids_is_refused_or_built_and_the_run_continues(
    tmp_path: Path, context: zmq.asyncio.Context, jump: int
) -> None:
    async with running_node(make_config(tmp_path)) as (node, _), make_feeder(context, node) as feeder:
        assert await asyncio.wait_for(feed_five(feeder), 10)
        with context.socket(zmq.PUSH) as socket:
            socket.connect(node.receiver.endpoint)
            jumped = 5 + jump
            [mep] = synthetic_meps(1, first=5)
            received = node.counters.fragments_received
            for source in SOURCES:
                frame = encode_frame(mep.mfps[source], run=RUN, mep_id=jumped, source_id=source, token=feeder.token)
                await socket.send(frame)
            await eventually(lambda: node.counters.fragments_received == received + len(SOURCES))
        for mep in synthetic_meps(3, first=5):
            await feeder.offer(mep)
        await eventually(lambda: feeder.window.unacknowledged == 0)
        accounts = accounting(node.counters, node.builder)
        assert closes(accounts), accounts
    rejected = node.counters.fragments_rejected
    if jump >= 10**6:
        assert rejected[RejectReason.NO_CREDIT] == len(SOURCES)
    elif jump < 0:
        assert rejected[RejectReason.DUPLICATE] == len(SOURCES)
    else:
        # The jumped MEP is built: 12 beside those of the feeder, or 6 in the place of the feeder's.
        assert node.counters.meps_closed[CloseReason.COMPLETE] == (9 if jump == 7 else 8)
        assert rejected[RejectReason.DUPLICATE] == (0 if jump == 7 else len(SOURCES))


async def feed_five(feeder: Feeder) -> bool:
    for mep in synthetic_meps(5):
        await feeder.offer(mep)
    while feeder.window.unacknowledged:
        await asyncio.sleep(0.005)
    return True


async def test_a_send_time_from_the_far_future_changes_nothing(tmp_path: Path, context: zmq.asyncio.Context) -> None:
    async with running_node(make_config(tmp_path)) as (node, _), make_feeder(context, node) as feeder:
        await eventually(lambda: feeder.window.limit > 0)
        [mep] = synthetic_meps(1)
        with context.socket(zmq.PUSH) as socket:
            socket.connect(node.receiver.endpoint)
            for source, when in zip(SOURCES, (0, 1, 2**63, 2**64 - 1), strict=True):
                await socket.send(
                    encode_frame(
                        mep.mfps[source],
                        run=RUN,
                        mep_id=0,
                        source_id=source,
                        send_time_ns=when,
                        token=feeder.token,
                    )
                )
            await eventually(lambda: node.counters.meps_acknowledged == 1)
    assert node.counters.meps_closed[CloseReason.COMPLETE] == 1
