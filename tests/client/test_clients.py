"""Client classes for other programs, with and without an event loop, and a node."""

import asyncio
from pathlib import Path

import pytest

from hltnode import client
from hltnode.client import aio
from hltnode.client.consumers import GapCounter
from hltnode.daemon.commands.demo_processes import free_ports
from tests.daemon.fakes import RUN, SOURCES, eventually, lines_of_event, make_config, running_node, synthetic_meps

pytestmark = pytest.mark.loopback

MEPS, EVENTS = 12, 8
IDENTITY = client.FeederIdentity(
    name="program", run=RUN, sources=SOURCES, events_per_mep=EVENTS, max_fragment_bytes=32 * 1024
)


async def test_a_program_without_a_loop_feeds_and_receives_decisions_and_events(tmp_path: Path) -> None:
    events_at = f"tcp://127.0.0.1:{free_ports(1)[0]}"
    config = make_config(tmp_path, events={"endpoint": events_at})

    def work(data: str, control: str, decisions_at: str) -> tuple[list[int], list[client.ReceivedEvent]]:
        with (
            client.EventReceiver(events_at) as events,
            client.DecisionSubscriber(decisions_at) as decisions,
            client.Feeder(data, control, identity=IDENTITY) as feeder,
        ):
            with pytest.raises(TimeoutError):
                decisions.receive(0.3)
            for mep in synthetic_meps(MEPS, events=EVENTS):
                feeder.offer(mep, timeout=20.0)
            feeder.finish(timeout=20.0)
            assert (feeder.unacknowledged, feeder.refused) == (0, {})
            decided = [decisions.receive(10.0) for _ in range(MEPS)]
            assert (decisions.missed, events.missed) == (0, 0)
            kept = [events.receive(10.0) for _ in range(MEPS * EVENTS // 2)]
            return sorted(decision.mep for decision in decided), kept

    async with running_node(config, ("a", "b", "c", "d")) as (node, _):
        meps, kept = await asyncio.to_thread(
            work, node.receiver.endpoint, node.control.endpoint, node.publisher.endpoint
        )
    assert meps == list(range(MEPS))
    assert {event.run for event in kept} == {RUN}
    assert all(event.banks() for event in kept)
    assert {event.fired() for event in kept} == {tuple(lines_of_event(event, 4)) for event in range(1, EVENTS, 2)}
    assert "record" not in repr(kept[0])


async def test_a_program_with_a_loop_feeds_and_receives_decisions(tmp_path: Path) -> None:
    async with running_node(make_config(tmp_path)) as (node, _):
        with aio.DecisionSubscriber(node.publisher.endpoint) as decisions:
            await eventually(lambda: node.counters.decisions.subscribers > 0)
            async with aio.Feeder.connect(node.receiver.endpoint, node.control.endpoint, identity=IDENTITY) as feeder:
                for mep in synthetic_meps(MEPS, events=EVENTS):
                    await feeder.offer(mep)
                await feeder.finish(MEPS - 1)
            received = []
            async for decision in decisions:
                received.append(decision)
                if len(received) == MEPS:
                    break
    assert sorted(decision.mep for decision in received) == list(range(MEPS))
    assert decisions.missed == 0


def test_a_control_endpoint_that_cannot_be_derived_is_an_error_and_leaves_no_thread() -> None:
    with pytest.raises(ValueError, match="give the control endpoint"):
        client.Feeder("ipc:///tmp/nowhere", identity=IDENTITY)


def test_gaps_are_counted_and_a_new_session_is_none() -> None:
    gaps = GapCounter()
    for sequence in (5, 6, 9, 10, 0, 1, 3):
        gaps.came(sequence)
    assert gaps.missed == 3
