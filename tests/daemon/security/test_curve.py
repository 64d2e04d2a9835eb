"""CURVE between real sockets: peers with the right keys are admitted, all others are refused and counted."""

import asyncio
import functools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import uvloop
import zmq
import zmq.asyncio

from hltnode.client.feeder import Feeder, FeederIdentity, FeederRefusedError
from hltnode.client.keys import ClientKeys, SecurityError, load_client_keys, load_key_pair, load_public_key
from hltnode.client.sockets import FeederKeys, FeederSockets
from hltnode.daemon.common.vocabulary import ConnectionEvent, Endpoint, EventStream, LoginFailure
from hltnode.daemon.configuration.loading import ConfigError, load_config
from hltnode.daemon.node.node import Node
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.daemon.security.curve_keys import create_key_pair
from hltnode.protocol.transport.control_messages import decode_message, encode_message
from hltnode.protocol.transport.decisions import decode_decision
from hltnode.protocol.transport.feeder_messages import Error, Hello
from hltnode.protocol.transport.run_control_messages import Command, CommandName, Reply, RunState
from tests.daemon.fakes import RUN, SOURCES, eventually, make_config, running_node, synthetic_meps

pytestmark = [
    pytest.mark.loopback,
    pytest.mark.skipif(not zmq.has("curve"), reason="libzmq has no CURVE"),
]


FOLDERS = {"node": "node", "feeders": "feeder", "operators": "shift", "consumers": "display", "else": "stranger"}


class Keyring:
    """Key files of a site: node, feeder, operator, consumer, and a stranger with keys of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for folder, name in FOLDERS.items():
            create_key_pair(directory / folder, name)

    def of(self, folder: str) -> ClientKeys:
        own = self.directory / folder / f"{FOLDERS[folder]}.key_secret"
        keys = load_client_keys(self.directory / "node" / "node.key", own)
        assert keys is not None
        return keys

    def config(self, tmp_path: Path, **changes: Any) -> Any:
        security = {
            "server_key": str(self.directory / "node" / "node.key_secret"),
            **{role: str(self.directory / role) for role in ("feeders", "operators", "consumers")},
            **changes,
        }
        return make_config(tmp_path, security=security)


@pytest.fixture
def keys(tmp_path: Path) -> Keyring:
    return Keyring(tmp_path / "keys")


@pytest.fixture
async def context() -> AsyncIterator[zmq.asyncio.Context]:
    context = zmq.asyncio.Context()
    yield context
    context.destroy(linger=0)


def curve_feeder(context: zmq.asyncio.Context, node: Node, keys: FeederKeys) -> Feeder:
    identity = FeederIdentity(name="f", run=RUN, sources=SOURCES, events_per_mep=8, max_fragment_bytes=60_000)
    return Feeder(FeederSockets(context, node.receiver.endpoint, node.control.endpoint, keys), identity)


def failed_handshakes(node: Node, endpoint: Endpoint) -> int:
    """Either side may notice the other protocol first."""
    connections = node.counters.operation.connections
    return (
        connections[endpoint, ConnectionEvent.HANDSHAKE_PROTOCOL] + connections[endpoint, ConnectionEvent.HANDSHAKE_CUT]
    )


@pytest.mark.parametrize("encrypt_data", [False, True])
async def test_a_feeder_with_a_known_key_feeds_and_a_consumer_with_one_gets_decisions(
    tmp_path: Path, keys: Keyring, context: zmq.asyncio.Context, encrypt_data: bool
) -> None:
    mine = keys.of("feeders")
    async with running_node(keys.config(tmp_path, encrypt_data=encrypt_data)) as (node, _):
        with context.socket(zmq.SUB) as subscriber:
            keys.of("consumers").apply(subscriber)
            subscriber.subscribe(b"")
            subscriber.connect(node.publisher.endpoint)
            await eventually(lambda: node.counters.decisions.subscribers)
            async with curve_feeder(context, node, FeederKeys(mine, encrypt_data)) as feeder:
                assert (await feed_meps(synthetic_meps(5), [feeder])).complete
            assert {decode_decision(await subscriber.recv()).mep for _ in range(5)} == set(range(5))
        connections = node.counters.operation.connections
        await eventually(lambda: connections[Endpoint.CONTROL, ConnectionEvent.DISCONNECTED] == 1)
        assert {
            endpoint: connections[endpoint, ConnectionEvent.CONNECTED] for endpoint in (Endpoint.DATA, Endpoint.CONTROL)
        } == {
            Endpoint.DATA: 1,
            Endpoint.CONTROL: 1,
        }


async def test_a_feeder_with_an_unlisted_key_is_refused_counted_and_told(
    tmp_path: Path, keys: Keyring, context: zmq.asyncio.Context
) -> None:
    async with running_node(keys.config(tmp_path)) as (node, _):
        async with curve_feeder(context, node, FeederKeys(keys.of("else"))) as feeder:
            with pytest.raises(FeederRefusedError, match=r"security\.feeders"):
                await feed_meps(synthetic_meps(1), [feeder])
        operation = node.counters.operation
        assert operation.login_failures[Endpoint.CONTROL, LoginFailure.UNKNOWN_KEY] >= 1
        await eventually(lambda: operation.connections[Endpoint.CONTROL, ConnectionEvent.HANDSHAKE_REFUSED] >= 1)
        assert node.counters.control_messages_received == 0


async def test_a_feeder_without_keys_is_refused_counted_and_told(
    tmp_path: Path, keys: Keyring, context: zmq.asyncio.Context
) -> None:
    async with running_node(keys.config(tmp_path)) as (node, _):
        async with curve_feeder(context, node, FeederKeys()) as feeder:
            with pytest.raises(FeederRefusedError, match="CURVE"):
                await feed_meps(synthetic_meps(1), [feeder])
        await eventually(lambda: failed_handshakes(node, Endpoint.CONTROL))
        assert node.counters.control_messages_received == 0


async def test_a_client_with_the_key_of_another_node_cannot_send(
    tmp_path: Path, keys: Keyring, context: zmq.asyncio.Context
) -> None:
    mine = keys.of("feeders")
    wrong = ClientKeys(mine.own, load_public_key(keys.directory / "else" / "stranger.key"))
    async with running_node(keys.config(tmp_path)) as (node, _), curve_feeder(context, node, FeederKeys(wrong)):
        connections = node.counters.operation.connections
        await eventually(lambda: failed_handshakes(node, Endpoint.CONTROL))
        assert node.counters.control_messages_received == 0
        assert connections[Endpoint.CONTROL, ConnectionEvent.CONNECTED] == 0


async def test_a_subscriber_without_keys_receives_nothing(
    tmp_path: Path, keys: Keyring, context: zmq.asyncio.Context
) -> None:
    async with running_node(keys.config(tmp_path)) as (node, _):
        with context.socket(zmq.SUB) as subscriber:
            subscriber.subscribe(b"")
            subscriber.connect(node.publisher.endpoint)
            await eventually(lambda: failed_handshakes(node, Endpoint.DECISIONS))
            node.publisher.changed()
            assert node.counters.decisions.subscribers == 0


async def ask(context: zmq.asyncio.Context, node: Node, keys: ClientKeys, name: CommandName) -> Reply:
    with context.socket(zmq.DEALER) as socket:
        keys.apply(socket)
        socket.connect(node.control.endpoint)
        await socket.send(encode_message(Command(1, name, None)))
        reply = decode_message(await socket.recv())
        assert isinstance(reply, Reply)
        return reply


ROLES = {
    # The sockets to which each role is admitted.
    Endpoint.DATA: {"feeders"},
    Endpoint.CONTROL: {"feeders", "operators"},
    Endpoint.DECISIONS: {"consumers", "operators"},
    Endpoint.EVENTS: {"consumers", "operators"},
}


@pytest.mark.parametrize("endpoint", ROLES)
async def test_a_key_is_admitted_to_the_sockets_of_its_role_only(
    tmp_path: Path, keys: Keyring, context: zmq.asyncio.Context, endpoint: Endpoint
) -> None:
    config = keys.config(tmp_path, encrypt_data=True)
    config = config.model_copy(
        update={"events": config.events.model_copy(update={"endpoint": "tcp://127.0.0.1:*", "policy": "drop_new"})}
    )
    async with running_node(config) as (node, _):
        address, kind = {
            Endpoint.DATA: (node.receiver.endpoint, zmq.PUSH),
            Endpoint.CONTROL: (node.control.endpoint, zmq.DEALER),
            Endpoint.DECISIONS: (node.publisher.endpoint, zmq.SUB),
            Endpoint.EVENTS: (node.outputs.events[EventStream.ACCEPTED].endpoint, zmq.PULL),
        }[endpoint]
        operation = node.counters.operation
        for role in ("feeders", "operators", "consumers", "else"):
            before = operation.connections[endpoint, ConnectionEvent.CONNECTED]
            failure = LoginFailure.UNKNOWN_KEY if role == "else" else LoginFailure.WRONG_ROLE
            refusals = operation.login_failures[endpoint, failure]
            with context.socket(kind) as socket:
                keys.of(role).apply(socket)
                socket.connect(address)
                if role in ROLES[endpoint]:
                    await eventually(lambda: operation.connections[endpoint, ConnectionEvent.CONNECTED] > before)  # noqa: B023
                else:
                    await eventually(lambda: operation.login_failures[endpoint, failure] > refusals)  # noqa: B023
                    assert operation.connections[endpoint, ConnectionEvent.CONNECTED] == before, role


async def test_an_operator_key_may_command_and_may_not_feed(
    tmp_path: Path, keys: Keyring, context: zmq.asyncio.Context
) -> None:
    async with running_node(keys.config(tmp_path)) as (node, _):
        with context.socket(zmq.DEALER) as socket:
            keys.of("operators").apply(socket)
            socket.connect(node.control.endpoint)
            await socket.send(encode_message(Hello("f", "s", RUN, SOURCES, 0, 8, 100, supervises=False)))
            answer = decode_message(await socket.recv())
        assert isinstance(answer, Error)
        assert answer.reason == "not_a_feeder"
        assert node.counters.operation.login_failures[Endpoint.CONTROL, LoginFailure.NOT_A_FEEDER] == 1
        assert node.builder.run is None


async def test_operators_may_command_and_feeders_may_not(
    tmp_path: Path, keys: Keyring, context: zmq.asyncio.Context
) -> None:
    async with running_node(keys.config(tmp_path)) as (node, _):
        refused = await ask(context, node, keys.of("feeders"), CommandName.PAUSE)
        assert (refused.ok, refused.state) == (False, RunState.RUNNING)
        assert node.counters.operation.login_failures[Endpoint.CONTROL, LoginFailure.NOT_AN_OPERATOR] == 1
        obeyed = await ask(context, node, keys.of("operators"), CommandName.PAUSE)
        assert (obeyed.ok, obeyed.state) == (True, RunState.PAUSED)


async def test_keys_work_on_uvloop_as_in_production(tmp_path: Path) -> None:
    async def scenario() -> tuple[type, bool, list[bool], set[LoginFailure]]:
        keys = Keyring(tmp_path / "keys")
        mine = keys.of("feeders")
        with zmq.asyncio.Context() as context:
            async with running_node(keys.config(tmp_path)) as (node, _):
                async with curve_feeder(context, node, FeederKeys(keys.of("else"))) as stranger:
                    with pytest.raises(FeederRefusedError):
                        await feed_meps(synthetic_meps(1), [stranger])
                async with curve_feeder(context, node, FeederKeys(mine)) as feeder:
                    complete = (await feed_meps(synthetic_meps(5), [feeder])).complete
                shift = keys.of("operators")
                obeyed = [(await ask(context, node, who, CommandName.PAUSE)).ok for who in (mine, shift)]
                failures = {failure for (_, failure), n in node.counters.operation.login_failures.items() if n}
        return type(asyncio.get_running_loop()), complete, obeyed, failures

    assert await asyncio.to_thread(functools.partial(uvloop.run, scenario())) == (
        uvloop.Loop,
        True,
        [False, True],
        {LoginFailure.UNKNOWN_KEY, LoginFailure.NOT_AN_OPERATOR},
    )


def test_a_bad_key_file_stops_the_start_and_is_named(tmp_path: Path, keys: Keyring) -> None:
    async def start() -> None:
        async with running_node(keys.config(tmp_path)):
            pass

    (keys.directory / "node" / "node.key_secret").chmod(0o644)
    with pytest.raises(SecurityError, match=r"node\.key_secret: it is readable"):
        asyncio.run(start())


def test_keys_without_an_allow_list_and_a_list_without_keys_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    for text, key in (
        ('server_key = "a"', "security.feeders"),
        ('server_key = "a"\noperators = "a"', "security.feeders"),
        ('feeders = "a"', "security.server_key"),
        ('consumers = "a"', "security.server_key"),
        ("encrypt_data = true", "security.server_key"),
    ):
        path.write_text(f"[security]\n{text}\n")
        with pytest.raises(ConfigError, match=key):
            load_config(path)


def test_keys_may_lie_in_the_credentials_directory_of_systemd(
    tmp_path: Path, keys: Keyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "node.toml"
    path.write_text('[security]\nserver_key = "$CREDENTIALS_DIRECTORY/node.key_secret"\nfeeders = "/c"\n')
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    with pytest.raises(ConfigError, match="CREDENTIALS_DIRECTORY"):
        load_config(path)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(keys.directory / "node"))
    server_key = load_config(path).security.server_key
    assert server_key is not None
    assert load_key_pair(server_key)
