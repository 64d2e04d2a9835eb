"""A run on a real node until its feeders have confirmed it: silence, restarts, other runs, and an operator's close."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgpack
import pytest
import zmq
import zmq.asyncio

from hltnode.client.feeder import FeederRefusedError
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.node.node import Node
from hltnode.daemon.output.gathering import GatheredBatch
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.transport.control_messages import ControlMessage, decode_message, encode_message
from hltnode.protocol.transport.feeder_messages import (
    Ack,
    EndOfRun,
    Error,
    Goodbye,
    Hello,
    Returned,
    Revoked,
    RunClosed,
)
from hltnode.protocol.transport.frame_header import encode_frame
from hltnode.protocol.transport.run_control_messages import Command, CommandName, Reply
from tests.daemon.fakes import (
    RUN,
    SOURCES,
    InterceptedConnection,
    eventually,
    make_config,
    make_feeder,
    running_node,
    synthetic_meps,
)

pytestmark = pytest.mark.loopback

MEPS = 20
# The engine of the tests accepts every second event.
KEPT_OF_A_MEP = 4


SOCKETS: list[zmq.asyncio.Socket] = []


@pytest.fixture
async def context() -> AsyncIterator[zmq.asyncio.Context]:
    """Context whose sockets are closed at the end of the test."""
    context = zmq.asyncio.Context()
    SOCKETS.clear()
    yield context
    for socket in SOCKETS:
        socket.close(linger=0)
    context.destroy(linger=0)


def data_socket(context: zmq.asyncio.Context, node: Node) -> zmq.asyncio.Socket:
    socket = context.socket(zmq.PUSH)
    socket.connect(node.receiver.endpoint)
    SOCKETS.append(socket)
    return socket


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Feeders are silent, and have left for good, sooner than in real life."""
    monkeypatch.setattr("hltnode.daemon.readout.run_feeders.SILENT_NS", 300_000_000)
    monkeypatch.setattr("hltnode.daemon.readout.run_feeders.RETURN_NS", 600_000_000)


class Peer:
    """A peer of the control socket that sends the messages of the test."""

    def __init__(self, context: zmq.asyncio.Context, node: Node, identity: bytes | None = None) -> None:
        self.socket = context.socket(zmq.DEALER)
        SOCKETS.append(self.socket)
        if identity is not None:
            self.socket.setsockopt(zmq.IDENTITY, identity)
        self.socket.connect(node.control.endpoint)

    async def say(self, *messages: ControlMessage) -> None:
        for message in messages:
            await self.socket.send(encode_message(message))

    async def hear(self, kind: type[ControlMessage]) -> ControlMessage:
        """The next message of a kind."""
        while True:
            message = decode_message(await asyncio.wait_for(self.socket.recv(), 5.0))
            if isinstance(message, kind):
                return message

    async def command(self, name: CommandName, run: int | None = None) -> Reply:
        await self.say(Command(1, name, run))
        reply = await self.hear(Reply)
        assert isinstance(reply, Reply)
        return reply


def hello(*, run: int = RUN, first_mep: int = 0, supervises: bool = False, session: str = "s") -> Hello:
    return Hello("feeder", session, run, SOURCES, first_mep, 8, 60_000, supervises)


def kept_events(directory: Path) -> list[tuple[int, int]]:
    """Run and number of each event in the finished files."""
    return sorted(
        (int(path.name.split("_")[2]), int.from_bytes(next(iter(record.banks())).payload[:8], "little"))
        for path in (directory / "out").glob("*_accepted_*.mdf")
        for record in iter_records(path.read_bytes())
    )


def is_each_event_kept_once(directory: Path, runs: dict[int, int]) -> bool:
    events = kept_events(directory)
    assert len(events) == len(set(events))
    return {run: sum(of_run == run for of_run, _ in events) for run in runs} == {
        run: meps * KEPT_OF_A_MEP for run, meps in runs.items()
    }


async def feed_and_vanish(context: zmq.asyncio.Context, node: Node, *, run: int = RUN, meps: int = MEPS) -> None:
    """Feed a run to its end, and vanish without a confirmation and without a goodbye."""
    connection = InterceptedConnection(context, node)
    async with make_feeder(context, node, connection=connection, run=run) as feeder:
        for mep in synthetic_meps(meps):
            await feeder.offer(mep)
        await feeder.end_run(meps - 1)
        await eventually(lambda: feeder.window.unacknowledged == 0)
        connection.sends_messages = False
        await connection._sockets.close(EndOfRun(run, meps - 1))


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("away_s", [0.0, 0.4, 1.0])
async def test_a_feeder_that_vanished_at_its_end_and_restarts_duplicates_nothing(
    tmp_path: Path, context: zmq.asyncio.Context, away_s: float
) -> None:
    async with running_node(make_config(tmp_path)) as (node, _):
        await feed_and_vanish(context, node)
        await asyncio.sleep(away_s)
        async with make_feeder(context, node) as feeder:
            assert (await feed_meps(synthetic_meps(MEPS), [feeder])).complete
        await eventually(lambda: node.builder_control.registry.current is None)
        assert not node.builder_control.registry.kept
        assert closes(accounting(node.counters, node.builder))
    assert is_each_event_kept_once(tmp_path, {RUN: MEPS})


@pytest.mark.usefixtures("impatient")
async def test_runs_that_take_turns_are_each_kept_once(tmp_path: Path, context: zmq.asyncio.Context) -> None:
    async with running_node(make_config(tmp_path)) as (node, _):
        for run, meps in ((RUN, 5), (RUN + 1, 5), (RUN, 10), (RUN + 1, 10)):
            await feed_and_vanish(context, node, run=run, meps=meps)
            await eventually(lambda: node.builder_control.registry.connected(node.clock.now_ns) == 0)
        for run in (RUN, RUN + 1):
            async with make_feeder(context, node, run=run) as feeder:
                assert (await feed_meps(synthetic_meps(MEPS), [feeder])).complete
        await eventually(lambda: node.builder_control.registry.current is None)
        await eventually(lambda: not node.builder_control.registry.kept)
    assert is_each_event_kept_once(tmp_path, {RUN: MEPS, RUN + 1: MEPS})


async def test_a_feeder_of_a_run_of_an_earlier_session_can_end_before_the_others_connect(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    halves = {"a": SOURCES[:2], "b": SOURCES[2:]}
    config = make_config(tmp_path, builder={"min_feeders": 2, "max_feeders": 2})
    async with running_node(config) as (node, _):
        connections = {name: InterceptedConnection(context, node) for name in halves}
        feeders = [
            make_feeder(context, node, connection=connections[name], name=name, sources=sources)
            for name, sources in halves.items()
        ]
        async with feeders[0], feeders[1]:
            for mep in synthetic_meps(MEPS):
                await asyncio.gather(*(feeder.offer(mep) for feeder in feeders))
            await eventually(lambda: not any(feeder.window.unacknowledged for feeder in feeders))
            for connection in connections.values():
                connection.sends_messages = False
    async with running_node(config) as (node, _):
        for name, sources in halves.items():
            async with make_feeder(context, node, name=name, sources=sources) as feeder:
                assert (await asyncio.wait_for(feed_meps(synthetic_meps(MEPS), [feeder]), 10.0)).complete
        await eventually(lambda: node.builder_control.registry.current is None)
    assert is_each_event_kept_once(tmp_path, {RUN: MEPS})


async def test_an_operator_closes_a_run_whose_feeders_wait_for_a_missing_one(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    config = make_config(tmp_path, builder={"min_feeders": 2, "max_feeders": 2})
    async with running_node(config) as (node, _), make_feeder(context, node, name="a", sources=SOURCES[:2]) as feeder:
        operator = Peer(context, node)
        await eventually(lambda: feeder.is_connected)
        assert (await operator.command(CommandName.CLOSE, RUN + 1)).text == f"run {RUN + 1} is not known: known are 42"
        reply = await operator.command(CommandName.CLOSE)
        assert (reply.ok, reply.text) == (True, f"run {RUN} is closed")
        with pytest.raises(FeederRefusedError, match=f"run {RUN} was closed by an operator"):
            await feed_meps(synthetic_meps(MEPS), [feeder])
        assert node.builder_control.registry.current is None


async def test_a_closed_run_has_its_files_and_the_received_part_of_open_meps(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    config = make_config(tmp_path, builder={"mep_timeout_ms": 60_000})
    async with running_node(config) as (node, _), make_feeder(context, node) as feeder:
        await eventually(lambda: feeder.is_connected)
        meps = list(synthetic_meps(3))
        for mep in meps[:2]:
            await feeder.offer(mep)
        await eventually(lambda: feeder.window.unacknowledged == 0)
        data = data_socket(context, node)
        source = SOURCES[0]
        await data.send(encode_frame(meps[2].mfps[source], run=RUN, mep_id=2, source_id=source, token=feeder.token))
        await eventually(lambda: node.builder.open)
        operator = Peer(context, node)
        assert "1 MEPs that were open" in (await operator.command(CommandName.CLOSE)).text
        await eventually(lambda: node.builder_control.closing is None)
        with pytest.raises(FeederRefusedError):
            await feeder.finish(2)
        await eventually(lambda: len(kept_events(tmp_path)) == 3 * KEPT_OF_A_MEP)
        late = Peer(context, node)
        await late.say(hello())
        assert await late.hear(RunClosed) == RunClosed(RUN)


async def test_a_mep_revoked_between_its_write_and_its_free_slot_can_be_sent_again(
    tmp_path: Path, context: zmq.asyncio.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_node(make_config(tmp_path)) as (node, _):
        publish = node.outputs.publish
        written, may_go_on = asyncio.Event(), asyncio.Event()

        async def hold(batch: GatheredBatch) -> None:
            written.set()
            await may_go_on.wait()
            await publish(batch)

        monkeypatch.setattr(node.outputs, "publish", hold)
        supervisor = Peer(context, node)
        await supervisor.say(hello(supervises=True))
        data = data_socket(context, node)
        [mep] = synthetic_meps(1)
        await eventually(lambda: node.builder.run == RUN)
        run = node.builder_control.registry.current
        assert run is not None
        [of_supervisor] = run.feeders()
        frames = [
            encode_frame(mfp, run=RUN, mep_id=0, source_id=source, token=of_supervisor.token)
            for source, mfp in mep.mfps.items()
        ]
        for frame in frames:
            await data.send(frame)
        await written.wait()
        await supervisor.say(Revoked(RUN, ((0, 0),)))
        assert await supervisor.hear(Revoked) == Revoked(RUN, ((0, 0),))
        may_go_on.set()
        await eventually(lambda: node.builder.is_idle)
        await supervisor.say(Returned(RUN, ((0, 0),)))
        assert await supervisor.hear(Returned) == Returned(RUN, ((0, 0),))
        for frame in frames:
            await data.send(frame)
        assert await supervisor.hear(Ack) == Ack(RUN, ((0, 0),))
        await supervisor.say(EndOfRun(RUN, 0), hello(supervises=True, first_mep=1), Goodbye("done"))
        await eventually(lambda: node.builder_control.registry.current is None)
    assert is_each_event_kept_once(tmp_path, {RUN: 1})


async def test_a_stranger_with_the_identity_of_a_connected_feeder_is_ignored(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    async with running_node(make_config(tmp_path)) as (node, _):
        feeder = Peer(context, node, b"feeder")
        await feeder.say(hello(supervises=True))
        await eventually(lambda: node.builder.run == RUN)
        thief = Peer(context, node, b"feeder")
        before = node.counters.control_messages_received
        await thief.say(EndOfRun(RUN, 0), Goodbye("thief"))
        await asyncio.sleep(0.3)
        assert node.counters.control_messages_received == before
        current = node.builder_control.registry.current
        assert current is not None
        assert not current.feeders()[0].gone
        await feeder.say(hello(supervises=True))
        await eventually(lambda: node.counters.control_messages_received > before)


async def test_a_name_of_thousands_of_letters_is_refused_and_the_node_continues(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    async with running_node(make_config(tmp_path)) as (node, _):
        peer = Peer(context, node)
        content = msgpack.unpackb(encode_message(hello()))
        for field in ("feeder", "session"):
            await peer.socket.send(msgpack.packb(content | {field: "x" * 4090}))
            error = await peer.hear(Error)
            assert isinstance(error, Error)
            assert error.reason == "malformed"
        async with make_feeder(context, node) as feeder:
            assert (await feed_meps(synthetic_meps(MEPS), [feeder])).complete
