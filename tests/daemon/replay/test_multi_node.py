"""Several nodes for the same feeders: whole MEPs, and no event lost or doubled when one is lost."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import zmq.asyncio
from hypothesis import given
from hypothesis import strategies as st

from hltnode.client.feeder import Feeder, FeederRefusedError
from hltnode.client.send_window import SendWindow
from hltnode.daemon.commands.demo_processes import free_ports
from hltnode.daemon.common.vocabulary import CloseReason
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.node.node import Node
from hltnode.daemon.replay.assignment import AssignmentList, NodeChoice, node_for_moved
from hltnode.daemon.replay.assignment_memory import AssignmentMemory
from hltnode.daemon.replay.follower import Follower
from hltnode.daemon.replay.multi_node import distribute_meps
from hltnode.daemon.replay.nodes import NodeGroup, Nodes
from hltnode.daemon.replay.supervisor import Supervisor
from hltnode.protocol.errors import MessageError
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.transport.assignments import (
    ACKNOWLEDGED,
    Assignments,
    Follow,
    decode_assignment_message,
    encode_assignment_message,
)
from hltnode.protocol.transport.control_messages import encode_message
from hltnode.protocol.transport.feeder_messages import Goodbye, Revoked
from tests.client.test_feeder import Bench
from tests.daemon.fakes import (
    SOURCES,
    InterceptedConnection,
    eventually,
    make_config,
    make_feeder,
    running_node,
    synthetic_meps,
)

EVENTS = 8


def kept(*directories: Path) -> list[int]:
    """Numbers of all events in finished files."""
    return sorted(
        int.from_bytes(record.banks()[0].payload[:8], "little")
        for directory in directories
        for path in directory.glob("*.mdf")
        for record in iter_records(path.read_bytes())
    )


def wanted(n_meps: int) -> list[int]:
    """The fake engine accepts every second event of a MEP."""
    return [n for n in range(n_meps * EVENTS) if n % EVENTS % 2]


@pytest.fixture
def context() -> Iterator[zmq.asyncio.Context]:
    with zmq.asyncio.Context() as context:
        yield context


def config_of(directory: Path, name: str, **sections: Mapping[str, object]) -> NodeConfig:
    directory.mkdir(exist_ok=True)
    return make_config(directory, node={"name": name}, **sections)


@contextlib.asynccontextmanager
async def feeding(
    context: zmq.asyncio.Context, *nodes: Node, name: str = "feeder", sources: tuple[int, ...] = SOURCES
) -> AsyncIterator[Nodes]:
    async with contextlib.AsyncExitStack() as stack:
        feeders = [await stack.enter_async_context(make_feeder(context, n, name=name, sources=sources)) for n in nodes]
        yield Nodes([NodeGroup(n.receiver.endpoint, [f]) for n, f in zip(nodes, feeders, strict=True)])


def make_supervisor(
    nodes: Nodes, context: zmq.asyncio.Context | None = None, endpoint: str | None = None
) -> Supervisor:
    """One that remembers nothing over its end."""
    memory = AssignmentMemory(None, run=1, nodes=[group.endpoint for group in nodes.groups])
    return Supervisor(nodes, memory, context, endpoint)


def choice_among(shares: Sequence[float]) -> NodeChoice:
    choice = NodeChoice(len(shares))
    set_shares(choice, shares)
    return choice


def set_shares(choice: NodeChoice, shares: Iterable[float]) -> None:
    for node, share in enumerate(shares):
        choice.set_share(node, share)


def test_the_node_with_the_largest_free_part_is_chosen_and_equal_ones_take_turns() -> None:
    assert choice_among([0.0, 0.2, 0.5]).choose() == 2
    equal = choice_among([0.3, 0.3, 0.3])
    assert [equal.choose() for _ in range(4)] == [0, 1, 2, 0]
    assert choice_among([0.0, 0.0]).choose() is None
    assert choice_among([-0.5, 0.0]).choose() is None
    assert choice_among([]).choose() is None


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from((-0.5, 0.0, 0.2, 0.25, 0.5, 1.0))), max_size=40))
def test_after_any_changes_the_choice_is_that_of_a_search_through_all_nodes(changes: list[tuple[int, float]]) -> None:
    choice, shares, last = NodeChoice(5), [0.0] * 5, -1
    for node, share in changes:
        choice.set_share(node, share)
        shares[node] = share
        best = max(shares)
        order = [(last + 1 + i) % 5 for i in range(5)]
        expected = next((each for each in order if shares[each] == best), None) if best > 0.0 else None
        assert choice.choose() == expected
        last = last if expected is None else expected


def test_the_choice_forgets_shares_that_no_node_has_any_more() -> None:
    choice = choice_among([1.0, 0.0, 0.0])
    for i in range(1, 1000):
        choice.set_share(1, 1 / (i + 1))
        choice.set_share(2, 1 / (i + 1.5))
        assert choice.choose() == 0
    assert len(choice._largest) == len(choice._nodes) <= 6
    choice.set_share(0, 0.0)
    assert choice.choose() == 1


def test_a_moved_mep_goes_to_a_node_that_never_had_it_and_waits_for_a_pending_revocation() -> None:
    windows = windows_of([4, 8, 8])
    windows[0].add(6, {})
    windows[1].add(7, {})
    windows[1].revoke(7)
    assert node_for_moved(7, [0, 1, 2], windows) == 2
    assert node_for_moved(7, [1], windows) is None
    windows[1].confirm_revoked(7, 7)
    assert node_for_moved(7, [0, 1], windows) == 0
    assert node_for_moved(7, [1], windows) == 1
    assert node_for_moved(7, [], windows) is None


def windows_of(limits: list[int]) -> list[SendWindow]:
    windows = [SendWindow() for _ in limits]
    for window, limit in zip(windows, limits, strict=True):
        window.credit(limit)
    return windows


def test_without_credits_no_part_is_free() -> None:
    [window] = windows_of([0])
    assert window.free_share == 0.0
    window.credit(2)
    assert window.free_share == 1.0
    for mep in range(3):
        window.add(mep, {})
    assert window.free_share == -0.5


@given(st.lists(st.integers(0, 40), min_size=1, max_size=5), st.integers(0, 60), st.data())
def test_nodes_of_every_size_are_filled_alike(limits: list[int], n_meps: int, data: st.DataObject) -> None:
    windows = windows_of(limits)
    choice = NodeChoice(len(limits))
    for mep in range(n_meps):
        if data.draw(st.booleans()):
            busy = data.draw(st.sampled_from(windows))
            if busy.unacknowledged:
                busy.acknowledge(busy.first_unacknowledged, busy.first_unacknowledged)
        set_shares(choice, (window.free_share for window in windows))
        node = choice.choose()
        if node is None:
            assert all(window.room <= 0 for window in windows)
            break
        assert all(
            windows[node].room * limit >= window.room * limits[node]
            for window, limit in zip(windows, limits, strict=True)
        )
        windows[node].add(mep, {})


@pytest.mark.parametrize("limits", [[16, 48], [48, 16], [96, 3, 30]])
def test_at_low_load_a_node_with_fewer_slots_gets_as_many_meps_as_the_others(limits: list[int]) -> None:
    windows = windows_of(limits)
    got = [0] * len(limits)
    choice = NodeChoice(len(limits))
    for mep in range(60 * len(limits)):
        set_shares(choice, (window.free_share for window in windows))
        node = choice.choose()
        assert node is not None
        windows[node].add(mep, {})
        windows[node].acknowledge(mep, mep)
        got[node] += 1
    assert got == [60] * len(limits)


@pytest.mark.parametrize("limits", [[16, 48], [48, 16], [96, 3, 30]])
def test_without_acknowledgements_nodes_get_meps_by_their_credits(limits: list[int]) -> None:
    windows = windows_of(limits)
    choice = NodeChoice(len(limits))
    for mep in range(sum(limits) // 2):
        set_shares(choice, (window.free_share for window in windows))
        node = choice.choose()
        assert node is not None
        windows[node].add(mep, {})
    assert all(abs(w.unacknowledged - limit / 2) <= 1 for w, limit in zip(windows, limits, strict=True))


@given(st.lists(st.tuples(st.integers(0, 20), st.sampled_from((0, 1, 2, ACKNOWLEDGED)))), st.integers(1, 7))
def test_a_feeder_that_follows_the_list_ends_with_the_same_nodes(entries: list[tuple[int, int]], at_most: int) -> None:
    assignments = AssignmentList()
    followed: dict[int, int] = {}
    position: int | None = 0
    for mep, node in entries:
        if node != ACKNOWLEDGED:
            assignments.assign(mep, node)
        elif mep in assignments.node_of:
            assignments.acknowledged(mep)
    while position != assignments.end:
        found, position, everything = assignments.since(position, at_most)
        followed.update(found)
        assert not everything
    assert {mep: node for mep, node in followed.items() if node != ACKNOWLEDGED} == assignments.node_of
    found, _, everything = assignments.since(None, at_most)
    assert (dict(found), everything) == (assignments.node_of, True)


def test_assignment_messages_come_back_as_written_and_others_are_refused() -> None:
    for message in (Follow("f", 7, "tcp://a:1 tcp://b:1", "s", 3), Assignments("s", 4, 9, (1, 2), (0, 1), False, "")):
        assert decode_assignment_message(encode_assignment_message(message)) == message
    with pytest.raises(MessageError):
        encode_assignment_message(Assignments("s", 4, 9, (1, 2), (0,), False, ""))
    for raw in (b"", b"\x80", b"\xff" * 50):
        with pytest.raises(MessageError):
            decode_assignment_message(raw)


async def test_a_node_lost_for_three_seconds_loses_its_meps_to_the_other_and_revokes_them() -> None:
    a, b = Bench(), Bench()
    b.clock = a.clock
    b.feeder = Feeder(b.connection, b.feeder.identity, clock=a.clock)
    async with a.feeder, b.feeder:
        nodes = Nodes([NodeGroup("a", [a.feeder]), NodeGroup("b", [b.feeder])], clock=a.clock)
        supervisor = make_supervisor(nodes)
        working = asyncio.create_task(supervisor.work())
        await a.welcome(2)
        await b.welcome(1)
        for mep in synthetic_meps(3, sources=(1, 2)):
            node = supervisor.node_for(mep.mep)
            assert node is not None
            nodes.keep(mep, node)
        await a.node_leaves()
        await a.clock.advance(2.9)
        assert nodes.reassigned == 0
        await a.clock.advance(0.2)
        assert nodes.reassigned == 2
        assert a.feeder.window.unacknowledged == 0
        assert b.feeder.window.meps() == [0, 1, 2]
        assert nodes.unconfirmed(reachable=True) == {}
        assert list(nodes.unconfirmed(reachable=False)) == ["a"]
        await a.welcome(2, session="t")
        await a.clock.advance(1.0)
        [revoked, *_] = [m for m in a.connection.messages if isinstance(m, Revoked)]
        assert sum(last - first + 1 for first, last in revoked.meps) == 2
        await a.node_sends(revoked)
        assert nodes.unconfirmed(reachable=False) == {}
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def test_a_supervisor_runs_only_for_input_or_a_due_time(monkeypatch: pytest.MonkeyPatch) -> None:
    a = Bench()
    async with a.feeder:
        nodes = Nodes([NodeGroup("a", [a.feeder])], clock=a.clock)
        supervisor = make_supervisor(nodes)
        looks: list[int] = []
        monkeypatch.setattr(supervisor, "note_acknowledged", lambda: looks.append(a.clock.now_ns))
        working = asyncio.create_task(supervisor.work())
        await a.welcome(2)
        await a.clock.advance(0.5)
        # The welcome and the first hello; the next hello comes after a second.
        assert 1 <= len(looks) <= 2
        before = len(looks)
        await a.clock.advance(10.0)
        assert 9 <= len(looks) - before <= 12
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


@pytest.mark.loopback
async def test_two_nodes_share_the_meps_and_each_mep_is_complete_at_one(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    a_dir, b_dir = tmp_path / "a", tmp_path / "b"
    async with (
        running_node(config_of(a_dir, "a")) as (a, _),
        running_node(config_of(b_dir, "b")) as (b, _),
        feeding(context, a, b) as nodes,
    ):
        report = await distribute_meps(synthetic_meps(60), nodes, make_supervisor(nodes))
        assert report.complete
        assert report.meps == 60
    complete = [node.counters.meps_closed[CloseReason.COMPLETE] for node in (a, b)]
    assert sum(complete) == 60
    assert min(complete) > 0
    assert kept(a_dir / "out", b_dir / "out") == wanted(60)


@pytest.mark.loopback
async def test_feeders_of_two_processes_agree_through_the_supervisor(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    endpoint = f"tcp://127.0.0.1:{free_ports(1)[0]}"
    two = {"min_feeders": 2, "max_feeders": 2}
    async with (
        running_node(config_of(tmp_path / "a", "a", builder=two)) as (a, _),
        running_node(config_of(tmp_path / "b", "b", builder=two)) as (b, _),
        feeding(context, a, b, name="1", sources=SOURCES[:2]) as first,
        feeding(context, a, b, name="2", sources=SOURCES[2:]) as second,
    ):
        supervisor, follower = make_supervisor(first, context, endpoint), Follower(second, context, endpoint)
        try:
            reports = await asyncio.gather(
                distribute_meps(synthetic_meps(60, sources=SOURCES[:2]), first, supervisor),
                distribute_meps(synthetic_meps(60, sources=SOURCES[2:]), second, follower),
            )
        finally:
            supervisor.close()
            follower.close()
        assert all(report.complete for report in reports)
    assert sum(node.counters.meps_closed[CloseReason.COMPLETE] for node in (a, b)) == 60
    assert kept(tmp_path / "a" / "out", tmp_path / "b" / "out") == wanted(60)


@pytest.mark.loopback
async def test_a_feeder_with_other_nodes_than_the_supervisor_is_refused(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    endpoint = f"tcp://127.0.0.1:{free_ports(1)[0]}"
    async with (
        running_node(config_of(tmp_path / "a", "a", builder={"min_feeders": 2, "max_feeders": 2})) as (a, _),
        feeding(context, a, name="1", sources=SOURCES[:2]) as first,
        feeding(context, a, a, name="2", sources=SOURCES[2:]) as second,
    ):
        supervisor, follower = make_supervisor(first, context, endpoint), Follower(second, context, endpoint)
        serving = asyncio.create_task(supervisor.work())
        try:
            with pytest.raises(FeederRefusedError, match="supervisor has nodes"):
                await distribute_meps(synthetic_meps(3, sources=SOURCES[2:]), second, follower)
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            supervisor.close()
            follower.close()


@pytest.mark.loopback
async def test_a_hung_node_loses_its_meps_to_the_other_and_revokes_its_written_events(
    tmp_path: Path, context: zmq.asyncio.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hltnode.daemon.replay.supervisor.REASSIGN_SECONDS", 0.3)
    a_dir, b_dir = tmp_path / "a", tmp_path / "b"
    async with (
        running_node(config_of(a_dir, "a")) as (a, _),
        running_node(config_of(b_dir, "b")) as (b, _),
        make_feeder(context, a, connection=(connection := InterceptedConnection(context, a))) as leader,
        make_feeder(context, b) as other,
    ):
        nodes = Nodes([NodeGroup(n.receiver.endpoint, [f]) for n, f in ((a, leader), (b, other))])
        supervisor = make_supervisor(nodes)
        await eventually(lambda: leader.window.limit > 0)
        # Acknowledgements of node a do not arrive: its events are in its files, and the feeder does not know it.
        connection.received = lambda _raw: None
        task = asyncio.create_task(distribute_meps(synthetic_meps(60), nodes, supervisor))
        await eventually(
            lambda: leader.window.unacknowledged and a.counters.meps_acknowledged >= leader.window.unacknowledged
        )
        connection.received = lambda _raw: encode_message(Goodbye("node ends"))
        report = await asyncio.wait_for(task, 20)
        assert report.complete
        assert report.reassigned > 0
        assert leader.window.to_revoke
        connection.received = lambda raw: raw
        await eventually(lambda: not leader.window.to_revoke)
        for node in (a, b):
            assert closes(accounting(node.counters, node.builder))
    assert kept(a_dir / "out", b_dir / "out") == wanted(60)


@pytest.mark.parametrize("rightly", [False, True])
@pytest.mark.loopback
async def test_a_stranger_delays_the_end_of_the_supervisor_by_a_few_seconds_at_most(
    tmp_path: Path, context: zmq.asyncio.Context, monkeypatch: pytest.MonkeyPatch, rightly: bool
) -> None:
    if rightly:
        monkeypatch.setattr("hltnode.daemon.replay.supervisor.FINISH_NS", 300_000_000)
    endpoint = f"tcp://127.0.0.1:{free_ports(1)[0]}"
    async with (
        running_node(config_of(tmp_path / "a", "a")) as (a, _),
        running_node(config_of(tmp_path / "b", "b")) as (b, _),
        feeding(context, a, b) as nodes,
    ):
        supervisor = make_supervisor(nodes, context, endpoint)
        run = nodes.feeders[0].identity.run
        mine = " ".join(group.endpoint for group in nodes.groups)
        wrong = [Follow("x", run, "tcp://other:1", "s", 7), Follow("x", run + 1, mine, "s", 7)]
        requests = itertools.cycle([Follow("x", run, mine, "s", 7)] if rightly else wrong)
        answers = []
        with context.socket(zmq.DEALER) as stranger:
            stranger.connect(endpoint)

            async def ask() -> None:
                for follow in requests:
                    await stranger.send(encode_assignment_message(follow))
                    answers.append(decode_assignment_message(await stranger.recv()))

            asking = asyncio.create_task(ask())
            try:
                report = await asyncio.wait_for(distribute_meps(synthetic_meps(20), nodes, supervisor), 8)
            finally:
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
                supervisor.close()
    assert report.complete
    assert answers
    if not rightly:
        assert all(isinstance(answer, Assignments) and answer.error and not answer.meps for answer in answers)
