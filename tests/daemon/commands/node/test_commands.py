"""Commands to a node in the test's own loop: over the control socket, over HTTP, and their effect on feeders."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgpack
import pytest
import zmq
import zmq.asyncio

from hltnode.daemon.common.vocabulary import Endpoint, LoginFailure, Outcome
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.node.hot_reload import HotReload
from hltnode.daemon.node.node import Node
from hltnode.daemon.replay.pacing import Pacer
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.daemon.run_control.controller import CommandFailedError
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.control_messages import decode_message, encode_message
from hltnode.protocol.transport.feeder_messages import Error, Goodbye
from hltnode.protocol.transport.frame_header import encode_frame
from hltnode.protocol.transport.messages import MAX_TEXT_LENGTH
from hltnode.protocol.transport.run_control_messages import Command, CommandName, Reply, RunState
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

TOKEN = "a token of the tests, quite long".replace(" ", "-")


@pytest.fixture
async def context() -> AsyncIterator[zmq.asyncio.Context]:
    """Context whose consoles are closed at the end of the test."""
    context = zmq.asyncio.Context()
    CONSOLES.clear()
    yield context
    for socket in CONSOLES:
        socket.close(linger=0)
    context.destroy(linger=0)


CONSOLES: list[zmq.asyncio.Socket] = []


class Console:
    """An operator at the control socket."""

    def __init__(self, context: zmq.asyncio.Context, node: Node) -> None:
        self.socket = context.socket(zmq.DEALER)
        # Few replies are queued here; the rest is queued or dropped by the node.
        self.socket.setsockopt(zmq.RCVHWM, 10)
        self.socket.connect(node.control.endpoint)
        CONSOLES.append(self.socket)
        self.requests = 0

    async def __call__(self, name: str, run: int | None = None) -> Reply:
        self.requests += 1
        await self.socket.send(encode_message(Command(self.requests, CommandName(name), run)))
        reply = decode_message(await self.socket.recv())
        assert isinstance(reply, Reply)
        assert reply.request == self.requests
        return reply


async def post(node: Node, path: str, token: str | None = TOKEN, body: bytes = b"") -> tuple[int, dict[str, Any]]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"http://127.0.0.1:{node.http_port}{path}", body, headers, method="POST")

    def send() -> tuple[int, dict[str, Any]]:
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    return await asyncio.to_thread(send)


async def test_commands_move_a_node_through_all_states(tmp_path: Path, context: zmq.asyncio.Context) -> None:
    async with running_node(make_config(tmp_path, node={"autostart": False})) as (node, _):
        ctl = Console(context, node)
        assert (await ctl("status")).state is RunState.IDLE
        reply = await ctl("configure")
        assert (reply.ok, reply.state) == (True, RunState.CONFIGURED)
        await eventually(lambda: node.state is RunState.READY)
        assert (await ctl("start", RUN)).state is RunState.RUNNING
        async with make_feeder(context, node) as feeder:
            assert (await feed_meps(synthetic_meps(10), [feeder])).complete
            assert (await ctl("pause")).state is RunState.PAUSED
            assert (await ctl("resume")).state is RunState.RUNNING
            assert (await ctl("stop")).state is RunState.DRAINING
            await eventually(lambda: node.state is RunState.READY)
        assert json.loads((await ctl("status")).text)["state"] == "ready"
        await eventually(lambda: len(list((tmp_path / "out").glob("*accepted*.mdf"))) == 1)


async def test_an_illegal_command_is_an_error_reply_that_names_state_and_command(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    async with running_node(make_config(tmp_path)) as (node, _):
        ctl = Console(context, node)
        for name in ("start", "resume", "configure"):
            reply = await ctl(name)
            assert (reply.ok, reply.state) == (False, RunState.RUNNING)
            assert name in reply.text
            assert "running" in reply.text
            assert node.counters.operation.commands[CommandName(name), Outcome.REFUSED] == 1
        reply = await ctl("stop", 7)
        assert not reply.ok
        assert node.state is RunState.RUNNING


async def test_a_stopped_run_continues_after_the_next_start_and_no_event_is_lost_or_doubled(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    async with running_node(make_config(tmp_path)) as (node, _), make_feeder(context, node) as feeder:
        ctl = Console(context, node)
        feeding = asyncio.create_task(feed_meps(synthetic_meps(400), [feeder], pacer=Pacer(4000.0)))
        for expected in (20, 120):
            await eventually(lambda: node.counters.meps_acknowledged >= expected)  # noqa: B023
            assert (await ctl("stop")).ok
            await eventually(lambda: node.state is RunState.READY)
            assert closes(accounting(node.counters, node.builder))
            assert (await ctl("start")).ok
        assert (await feeding).complete
        meps = accounting(node.counters, node.builder)["meps"]
        assert meps["complete"] == 400, meps
        assert node.counters.events_processed == 3200


async def test_a_paused_node_grants_no_credits_and_keeps_its_run(tmp_path: Path, context: zmq.asyncio.Context) -> None:
    async with running_node(make_config(tmp_path)) as (node, _), make_feeder(context, node) as feeder:
        ctl = Console(context, node)
        feeding = asyncio.create_task(feed_meps(synthetic_meps(300), [feeder]))
        await eventually(lambda: node.counters.meps_acknowledged >= 10)
        await ctl("pause")
        # The level of the credits falls as granted MEPs are acknowledged, until nothing more may be sent.
        await eventually(lambda: node.builder.window.limit == 0)
        assert node.builder.run is not None
        assert not feeding.done()
        assert "serving" in node.health.problems(node.health.loop_tick_ns)
        await ctl("resume")
        assert (await feeding).complete
    assert node.counters.events_processed == 2400


async def test_feeders_wait_without_error_until_the_node_is_started(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    async with (
        running_node(make_config(tmp_path, node={"autostart": False})) as (node, _),
        make_feeder(context, node) as feeder,
    ):
        feeding = asyncio.create_task(feed_meps(synthetic_meps(5), [feeder]))
        ctl = Console(context, node)
        await ctl("configure")
        await eventually(lambda: node.state is RunState.READY)
        assert node.builder.run is None
        await ctl("start")
        assert (await feeding).complete


async def test_a_feeder_that_has_sent_everything_waits_for_the_start_longer_than_a_refused_one(
    tmp_path: Path, context: zmq.asyncio.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hltnode.client.hello_refusals.PATIENCE_NS", 0)
    monkeypatch.setattr("hltnode.client.feeder.HELLO_SECONDS", 0.02)
    async with (
        running_node(make_config(tmp_path, node={"autostart": False})) as (node, _),
        make_feeder(context, node) as feeder,
    ):
        feeder.keep(next(synthetic_meps(1)))
        ending = asyncio.create_task(feeder.finish(0))
        # Each hello is followed by an end of run, which the node refuses: no feeder is registered.
        await eventually(lambda: node.counters.control_messages_received > 10)
        assert not ending.done()
        ctl = Console(context, node)
        await ctl("configure")
        await eventually(lambda: node.state is RunState.READY)
        await ctl("start")
        await asyncio.wait_for(ending, 10.0)


async def test_a_start_with_a_run_number_refuses_and_counts_the_fragments_of_another_run(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    async with running_node(make_config(tmp_path)) as (node, _), make_feeder(context, node, run=43) as feeder:
        ctl = Console(context, node)
        await ctl("stop")
        await eventually(lambda: node.state is RunState.READY)
        assert (await ctl("start", 43)).ok
        async with make_feeder(context, node, name="foreign", run=RUN) as foreign:
            await eventually(lambda: node.counters.control_messages_rejected >= 1)
            assert foreign.node_session is None
        await eventually(lambda: node.builder.run == 43)
        with context.socket(zmq.PUSH) as data:
            data.connect(node.receiver.endpoint)
            mfp = next(iter(synthetic_meps(1))).mfps[SOURCES[0]]
            async with asyncio.timeout(20.0):
                # The feeder has the token from before the stop until its next welcome.
                while not node.counters.fragments_rejected[RejectReason.FOREIGN_SOURCE]:
                    frame = encode_frame(mfp, run=RUN, mep_id=0, source_id=SOURCES[0], token=feeder.token)
                    await data.send(frame)
                    await asyncio.sleep(0.02)
        assert (await feed_meps(synthetic_meps(5), [feeder])).complete


async def test_commands_over_http_need_the_token_and_answer_with_the_state(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    config = make_config(tmp_path, security={"http_token_file": str(token)})
    async with running_node(config) as (node, _):
        assert await post(node, "/control/pause") == (200, {
            "ok": True, "state": "paused", "text": "no new credits; MEPs of granted credits are still built"
        })  # fmt: skip
        status, answer = await post(node, "/control/start")
        assert (status, answer["ok"], answer["state"]) == (409, False, "paused")
        assert (await post(node, "/control/resume", token=None))[0] == 401
        assert (await post(node, "/control/resume", token="x" * 30))[0] == 401
        assert node.state is RunState.PAUSED
        assert node.counters.operation.login_failures[Endpoint.HTTP, LoginFailure.NO_TOKEN] == 1
        assert node.counters.operation.login_failures[Endpoint.HTTP, LoginFailure.WRONG_TOKEN] == 1
        assert (await post(node, "/control/resume"))[0] == 200


HOSTILE_COMMANDS: list[dict[str, object]] = [
    {"v": 3, "type": "command", "request": 1, "command": "reboot", "run": None},
    {"v": 3, "type": "command", "request": -1, "command": "stop", "run": None},
    {"v": 3, "type": "command", "request": 1, "command": "stop"},
    {"v": 3, "type": "command", "request": 1, "command": "stop", "run": "7"},
    {"v": 3, "type": "command", "request": 1, "command": ["stop"], "run": None},
    {"v": 3, "type": "command", "request": 1, "command": "stop", "run": None, "sudo": True},
    {"v": 3, "type": "command", "request": 1, "command": "x" * 4096, "run": None},
    {"v": 1, "type": "command", "request": 1, "command": "stop", "run": None},
]


async def test_hostile_commands_are_refused_and_counted_and_change_nothing(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    async with running_node(make_config(tmp_path)) as (node, _):
        ctl = Console(context, node)
        for content in HOSTILE_COMMANDS:
            await ctl.socket.send(msgpack.packb(content))
            answer = msgpack.unpackb(await ctl.socket.recv())
            # The sender of another version can read the answer.
            assert (answer["type"], answer["v"]) == ("error", content["v"])
        # A reply is a message to operators, never to the node; here another peer sends one.
        await ctl.socket.send(encode_message(Reply(1, True, RunState.IDLE, "hello")))
        assert isinstance(decode_message(await ctl.socket.recv()), Error)
        assert node.counters.control_messages_rejected == len(HOSTILE_COMMANDS) + 1
        assert (await ctl("status")).state is RunState.RUNNING


async def test_a_refusal_with_a_long_text_of_special_characters_is_cut_and_sent(
    tmp_path: Path, context: zmq.asyncio.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_self: HotReload) -> str:
        raise CommandFailedError("é\udcff" * 4096)

    monkeypatch.setattr(HotReload, "reload", refuse)
    async with running_node(make_config(tmp_path)) as (node, _):
        reply = await Console(context, node)("reload")
        assert not reply.ok
        assert 0 < len(reply.text.encode()) <= MAX_TEXT_LENGTH
        assert node.state is RunState.RUNNING


async def test_a_flood_of_commands_from_a_peer_that_does_not_read_does_not_block_other_peers(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    async with running_node(make_config(tmp_path)) as (node, _), make_feeder(context, node) as feeder:
        flooder = Console(context, node).socket
        # As many as an address may send at once, but for those of the others; tests of the control socket send more.
        for request in range(480):
            await flooder.send(encode_message(Command(request, CommandName.START, None)))
        assert (await feed_meps(synthetic_meps(20), [feeder])).complete
        assert (await Console(context, node)("status")).ok
        await eventually(lambda: node.counters.operation.commands[CommandName.START, Outcome.REFUSED] == 480)


async def test_a_feeder_of_a_node_that_is_not_running_is_refused_with_the_state(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    async with running_node(make_config(tmp_path, node={"autostart": False})) as (node, _):
        connection = InterceptedConnection(context, node)
        heard: list[object] = []
        connection.received = lambda raw: heard.append(decode_message(raw))
        async with make_feeder(context, node, connection=connection):
            await eventually(lambda: heard)
        assert heard[0] == Goodbye("node is idle")


async def test_a_back_end_that_fails_to_warm_up_is_an_error_of_the_node(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    async with running_node(make_config(tmp_path, node={"autostart": False})) as (node, engine):
        engine.behaviour.broken = True
        assert (await Console(context, node)("configure")).ok
        await eventually(lambda: node.state is RunState.ERROR)
    assert node._exit_code == 1


async def test_a_stop_of_the_node_while_it_is_configured_waits_for_the_warm_up_and_ends(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    async with running_node(make_config(tmp_path, node={"autostart": False})) as (node, engine):
        engine.behaviour.hang.set()
        ctl = Console(context, node)
        assert (await ctl("configure")).state is RunState.CONFIGURED
        assert not (await ctl("start")).ok
        node.request_stop()
        engine.behaviour.hang.clear()
    assert node._exit_code == 0
