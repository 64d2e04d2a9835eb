"""A combiner over TCP: who may join and ask, what is refused, and its metrics."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import zmq
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from typer.testing import CliRunner

from hltnode.client.keys import ClientKeys, SecurityError, load_key_pair
from hltnode.daemon.cli import app
from hltnode.daemon.combiner import combiner as combiner_module
from hltnode.daemon.combiner.combiner import Combiner, CombinerAccess, Sender
from hltnode.daemon.combiner.combiner_metrics import CombinerCollector
from hltnode.daemon.combiner.seed_joiner import JoinRules
from hltnode.daemon.common.peer import Peer
from hltnode.daemon.common.vocabulary import CombinerRefusal, ConnectionRefusal, Endpoint
from hltnode.daemon.security.curve_keys import create_key_pair
from hltnode.daemon.security.descriptors import PER_CONNECTION, RESERVE
from hltnode.daemon.security.message_parts import CollectedMessage
from hltnode.protocol.transport.seed_messages import (
    MAX_SEED_MESSAGE,
    ExternalWindow,
    FromCombiner,
    Join,
    Joined,
    Keep,
    KeepReply,
    NotJoined,
    SliceSeeds,
    SliceWindows,
    ToCombiner,
    decode_from_combiner,
    encode_to_combiner,
)
from tests.attacks.raw_peer import RawPeer, frame, item

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]

NODE = Join("one", "s1", "stream")
SEEDS = SliceSeeds(7, 0, 1000, 10, 20, b"", b"")


class Client:
    """A DEALER of a combiner that runs in the same thread."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], combiner: Combiner, keys: ClientKeys | None) -> None:
        self._combiner = combiner
        self.socket = context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 0)
        if keys is not None:
            keys.apply(self.socket)
        self.socket.connect(combiner.endpoint)

    def send(self, message: ToCombiner | bytes) -> None:
        self.socket.send(message if isinstance(message, bytes) else encode_to_combiner(message))

    def receive(self, turns: int = 500) -> FromCombiner | None:
        for _ in range(turns):
            if self.socket.poll(0):
                return decode_from_combiner(self.socket.recv())
            self._combiner.turn()
        return None

    def ask(self, message: ToCombiner | bytes) -> FromCombiner | None:
        self.send(message)
        return self.receive()


@contextmanager
def opened(access: CombinerAccess | None = None, rules: JoinRules | None = None) -> Iterator[Combiner]:
    combiner = Combiner(rules or JoinRules(), access or CombinerAccess())
    combiner.open("tcp://127.0.0.1:*")
    try:
        yield combiner
    finally:
        combiner.close()


@contextmanager
def client(combiner: Combiner, keys: ClientKeys | None = None) -> Iterator[Client]:
    with zmq.Context() as context:
        made = Client(context, combiner, keys)
        try:
            yield made
        finally:
            made.socket.close()


def refusals(combiner: Combiner) -> dict[CombinerRefusal, int]:
    return {reason: n for reason, n in combiner.refused.items() if n}


def sender(identity: bytes, address: str = "127.0.0.1", key: str = "") -> Sender:
    made = Sender(identity, zmq.Frame())
    made.peer = Peer(address, key)
    return made


def test_a_node_joins_sends_seeds_and_gets_the_windows() -> None:
    with opened() as combiner, client(combiner) as node:
        assert isinstance(node.ask(SEEDS), NotJoined)
        assert node.ask(NODE) == Joined(combiner.session)
        assert node.ask(SEEDS) == SliceWindows(7, 0, True, b"", b"")
        assert combiner.nodes["one"].reports == 1
        assert refusals(combiner) == {CombinerRefusal.NOT_JOINED: 1}


def test_messages_that_cannot_be_read_are_refused() -> None:
    with opened() as combiner, client(combiner) as node:
        assert isinstance(node.ask(b"\xc1"), NotJoined)
        node.socket.send_multipart([b"one", b"two"])
        refused = node.receive()
        assert isinstance(refused, NotJoined)
        assert "one part expected, not of 2" in refused.text
        node.ask(NODE)
        node.ask(SEEDS)
        other = node.ask(SliceSeeds(7, 1, 999, 10, 20, b"", b""))
        assert isinstance(other, NotJoined)
        assert "slices of 999 ns" in other.text
        assert refusals(combiner) == {CombinerRefusal.MALFORMED: 2, CombinerRefusal.CONTRADICTION: 1}


def test_an_external_window_goes_to_all_nodes_also_to_those_that_join_later() -> None:
    with opened() as combiner, client(combiner) as one, client(combiner) as two, client(combiner) as operator:
        assert one.ask(NODE) == Joined(combiner.session)
        reply = operator.ask(Keep(5, 7, 10, 20))
        assert isinstance(reply, KeepReply)
        assert (reply.request, reply.ok, reply.run) == (5, True, 7)
        assert one.receive() == ExternalWindow(7, 10, 20)
        two.send(Join("two", "s2", "stream"))
        assert {type(two.receive()), type(two.receive())} == {Joined, ExternalWindow}
        assert one.ask(NODE) == Joined(combiner.session)


def test_a_node_that_was_started_again_takes_its_place() -> None:
    with opened(rules=JoinRules(nodes=2)) as combiner, client(combiner) as old:
        old.ask(NODE)
        old.send(SEEDS)
        with client(combiner) as new, client(combiner) as two:
            assert new.ask(Join("one", "s2", "stream")) == Joined(combiner.session)
            two.ask(Join("two", "s", "stream"))
            assert isinstance(two.ask(SEEDS), SliceWindows)
            # The report of the old session counts, and the answer goes to the new one.
            assert isinstance(new.receive(), SliceWindows)
            assert isinstance(old.ask(SEEDS), NotJoined)


def test_more_nodes_than_the_limit_are_refused_unless_one_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combiner_module, "MAX_NODES", 1)
    with opened() as combiner, client(combiner) as one, client(combiner) as two:
        one.ask(NODE)
        assert isinstance(two.ask(Join("two", "s2", "stream")), NotJoined)
        combiner.nodes["one"].seen_ns -= 2 * combiner_module.LOST_NS
        combiner.turn()
        assert combiner.nodes["one"].is_lost
        assert two.ask(Join("two", "s2", "stream")) == Joined(combiner.session)
        assert list(combiner.nodes) == ["two"]


def test_a_lost_node_gives_its_place_whatever_names_its_connection_has_joined_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(combiner_module, "MAX_NODES", 2)
    with opened() as combiner, client(combiner) as one, client(combiner) as two:
        for name in ("one", "two"):
            assert one.ask(Join(name, "s", "stream")) == Joined(combiner.session)
            combiner.nodes[name].seen_ns -= 2 * combiner_module.LOST_NS
        combiner.turn()
        for name in ("three", "four"):
            assert two.ask(Join(name, "s", "stream")) == Joined(combiner.session)
        assert list(combiner.nodes) == ["three", "four"]
        assert isinstance(two.ask(SEEDS), SliceWindows)
        assert isinstance(one.ask(SEEDS), NotJoined)


class FullQueue:
    """A socket whose queue takes some messages."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.sent: list[FromCombiner] = []

    def send_multipart(self, parts: tuple[bytes, bytes], _flags: int) -> None:
        if len(self.sent) == self.room:
            raise zmq.Again
        self.sent.append(decode_from_combiner(parts[1]))


def test_external_windows_that_the_queue_of_a_node_does_not_take_follow_later() -> None:
    combiner = Combiner(JoinRules(), CombinerAccess())
    queue = FullQueue(3)
    combiner._socket = cast(Any, queue)
    windows = [ExternalWindow(7, start, start + 5) for start in range(4)]
    combiner.joiner.external += windows
    found: list[FromCombiner] = []
    for _ in range(3):
        combiner._join(sender(b"identity"), NODE)
        found += queue.sent
        queue.sent.clear()
    joined = Joined(combiner.session)
    assert found == [joined, *windows[:2], joined, *windows[2:], joined]
    assert combiner.unsent == 1
    combiner._keep(sender(b"operator"), Keep(5, 7, 10, 20))
    assert queue.sent[0] == ExternalWindow(7, 10, 20)


def test_keys_decide_who_joins_and_who_asks(tmp_path: Path) -> None:
    pairs = {}
    for folder, name in (("own", "combiner"), ("nodes", "one"), ("operators", "op"), ("others", "stranger")):
        pairs[name] = load_key_pair(create_key_pair(tmp_path / folder, name)[1])
    access = CombinerAccess.load(tmp_path / "own/combiner.key_secret", tmp_path / "nodes", tmp_path / "operators")

    def keys(name: str) -> ClientKeys:
        return ClientKeys(pairs[name], pairs["combiner"].public)

    with opened(access) as combiner:
        with client(combiner, keys("one")) as node, client(combiner, keys("op")) as operator:
            assert node.ask(NODE) == Joined(combiner.session)
            refused = node.ask(Keep(1, 7, 1, 2))
            assert isinstance(refused, KeepReply)
            assert not refused.ok
            assert isinstance(operator.ask(NODE), NotJoined)
            assert isinstance(operator.ask(SEEDS), NotJoined)
            reply = operator.ask(Keep(1, 7, 1, 2))
            assert isinstance(reply, KeepReply)
            assert reply.ok
        for of in (keys("stranger"), None):
            with client(combiner, of) as stranger:
                stranger.send(NODE)
                assert stranger.receive(turns=20) is None
        assert list(combiner.nodes) == ["one"]


@pytest.mark.parametrize(
    ("known", "other", "is_taken"),
    [
        (("10.0.0.1", ""), ("10.0.0.1", ""), False),
        (("10.0.0.1", ""), ("10.0.0.2", ""), True),
        (("10.0.0.1", "key"), ("10.0.0.2", "key"), False),
        (("10.0.0.1", "key"), ("10.0.0.1", "other"), True),
    ],
)
def test_the_name_of_a_connected_node_belongs_to_its_key_or_its_address(
    known: tuple[str, str], other: tuple[str, str], is_taken: bool
) -> None:
    combiner = Combiner(JoinRules(), CombinerAccess())
    combiner._socket = cast(Any, FullQueue(100))
    combiner._join(sender(b"first", *known), NODE)
    combiner._join(sender(b"second", *other), NODE)
    assert combiner.nodes["one"].identity == (b"first" if is_taken else b"second")
    assert refusals(combiner) == ({CombinerRefusal.NAME_TAKEN: 1} if is_taken else {})
    combiner.nodes["one"].is_lost = True
    combiner._join(sender(b"third", *other), NODE)
    assert combiner.nodes["one"].identity == b"third"


def test_a_stranger_that_goes_on_with_garbage_is_not_answered_and_then_ended() -> None:
    with opened() as combiner, client(combiner) as node, client(combiner) as stranger:
        assert node.ask(NODE) == Joined(combiner.session)
        ended = combiner.operation.connections_refused
        sent = answers = 0
        while not ended[Endpoint.COMBINER, ConnectionRefusal.FLOOD]:
            assert sent < 100_000
            for _ in range(20):
                # A connection that was ended comes back; what its queue does not take is lost.
                with suppress(zmq.Again):
                    stranger.socket.send(b"\xc1", zmq.NOBLOCK)
                    sent += 1
            combiner.turn()
            while stranger.socket.poll(0):
                assert isinstance(decode_from_combiner(stranger.socket.recv()), NotJoined)
                answers += 1
        assert answers < combiner.refused[CombinerRefusal.MALFORMED]
        assert refusals(combiner) == {CombinerRefusal.MALFORMED: combiner.refused[CombinerRefusal.MALFORMED]}


def test_a_message_of_very_many_parts_ends_its_connection_and_others_are_served() -> None:
    with opened() as combiner, client(combiner) as node, client(combiner) as stranger:
        assert node.ask(NODE) == Joined(combiner.session)
        stranger.socket.send_multipart([b""] * 5000)
        ended = combiner.operation.connections_refused
        for _ in range(5000):
            if ended[Endpoint.COMBINER, ConnectionRefusal.MALFORMED]:
                break
            combiner.turn()
        assert ended[Endpoint.COMBINER, ConnectionRefusal.MALFORMED] == 1
        assert node.ask(SEEDS) == SliceWindows(7, 0, True, b"", b"")


def test_a_user_id_that_is_no_text_ends_nothing() -> None:
    with opened() as combiner, client(combiner) as node:
        port = int(combiner.endpoint.rpartition(":")[2])
        with RawPeer(port).shake_hands(b"DEALER", item(b"User-Id", b"\xff")) as stranger:
            stranger.send(frame(encode_to_combiner(Join("two", "s", "stream"))))
            for _ in range(5000):
                if "two" in combiner.nodes:
                    break
                combiner.turn()
            assert combiner.nodes["two"].peer.key == ""
            assert node.ask(NODE) == Joined(combiner.session)


def test_connections_leave_descriptors_for_the_other_files_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combiner_module, "raise_limit", lambda: RESERVE + 40 * PER_CONNECTION)
    with opened() as combiner:
        assert combiner._limiter._limits.connections == 40


def test_messages_that_wait_may_take_as_much_memory_as_seeds_but_never_less_than_a_burst() -> None:
    small, large = (Combiner(JoinRules(max_bytes=size), CombinerAccess()) for size in (1 << 20, 1 << 30))
    assert (small.input_rules.total_bytes, large.input_rules.total_bytes) == (128 << 20, 1 << 30)


def test_a_message_above_the_limit_ends_its_connection_before_it_is_read() -> None:
    with opened() as combiner, client(combiner) as node, client(combiner) as stranger:
        assert node.ask(NODE) == Joined(combiner.session)
        stranger.socket.send(bytes(MAX_SEED_MESSAGE + 1))
        assert stranger.receive(turns=50) is None
        assert node.ask(SEEDS) == SliceWindows(7, 0, True, b"", b"")
        assert refusals(combiner) == {}


def test_connections_above_the_limit_of_an_address_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = replace(combiner_module.LIMITS, this_machine=2)
    monkeypatch.setattr(combiner_module, "LIMITS", limits)
    with opened() as combiner, client(combiner) as one, client(combiner) as two:
        assert one.ask(Join("one", "s", "stream")) == Joined(combiner.session)
        assert two.ask(Join("two", "s", "stream")) == Joined(combiner.session)
        with client(combiner) as three:
            three.send(Join("three", "s", "stream"))
            ended = combiner.operation.connections_refused
            for _ in range(5000):
                if ended[Endpoint.COMBINER, ConnectionRefusal.ADDRESS_FULL]:
                    break
                combiner.turn()
            assert ended[Endpoint.COMBINER, ConnectionRefusal.ADDRESS_FULL]
        assert one.ask(SEEDS) == SliceWindows(7, 0, True, b"", b"")


@given(st.lists(st.binary(max_size=60), max_size=5), st.data())
@settings(max_examples=100)
def test_damaged_messages_are_refused_and_the_combiner_serves_on(garbage: list[bytes], data: st.DataObject) -> None:
    combiner = Combiner(JoinRules(), CombinerAccess())
    queue = FullQueue(1000)
    combiner._socket = cast(Any, queue)
    combiner._join(sender(b"node"), NODE)
    whole = [encode_to_combiner(Join("two", "s", "c", 3, 9)), encode_to_combiner(SEEDS)]
    for raw in (*whole, encode_to_combiner(Keep(1, 7, 2, 3))):
        at = data.draw(st.integers(0, len(raw) - 1))
        garbage.append(raw[:at] + data.draw(st.binary(max_size=9)) + raw[at + data.draw(st.integers(0, 9)) :])
    for raw in garbage:
        for identity in (b"node", b"stranger"):
            parts = [zmq.Frame(identity), zmq.Frame(raw)]
            combiner._arrived(sender(identity), CollectedMessage(parts, 2, len(raw)))
    queue.sent.clear()
    combiner._join(sender(b"honest"), Join("honest", "s", "stream"))
    combiner._take_seeds(sender(b"honest"), SliceSeeds(99, 0, 1000, 10, 20, b"", b""))
    assert Joined(combiner.session) in queue.sent
    assert SliceWindows(99, 0, True, b"", b"") in queue.sent
    assert 0 <= combiner.joiner.nbytes <= combiner.joiner.rules.max_bytes
    assert len(combiner.nodes) <= 2 + 2 * len(garbage)


def test_lists_without_a_key_and_a_key_without_lists_are_refused(tmp_path: Path) -> None:
    _, secret = create_key_pair(tmp_path, "combiner")
    with pytest.raises(ValueError, match="together with --secret-key"):
        CombinerAccess.load(None, tmp_path, None)
    with pytest.raises(ValueError, match="--nodes-dir is expected"):
        CombinerAccess.load(secret, None, None)
    with pytest.raises(SecurityError):
        CombinerAccess.load(secret, tmp_path / "missing", None)


def test_metrics_have_what_was_counted() -> None:
    with opened(rules=JoinRules(nodes=2)) as combiner, client(combiner) as node:
        node.ask(NODE)
        node.send(SEEDS)
        node.ask(NODE)
        registry = CollectorRegistry()
        registry.register(CombinerCollector(combiner))
        text = generate_latest(registry).decode()
    assert 'hltnode_combiner_reports_total{node="one"} 1.0' in text
    assert 'hltnode_combiner_node_lost{node="one"} 0.0' in text
    assert 'hltnode_combiner_slices_total{end="complete"} 0.0' in text
    assert "hltnode_combiner_open_slices 1.0" in text
    assert 'hltnode_combiner_refused_messages_total{reason="malformed"} 0.0' in text
    assert "hltnode_combiner_connections " in text


def test_the_command_asks_for_a_window_and_reports_a_refusal() -> None:
    stop = threading.Event()
    with opened() as combiner:

        def serve() -> None:
            while not stop.is_set():
                combiner.turn()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            endpoint = combiner.endpoint
            kept = CliRunner().invoke(app, ["window", endpoint, "5", "9", "--run", "7", "--timeout", "30"])
            assert kept.exit_code == 0, kept.output
            # The log of the combiner, which runs in this process, may stand in front.
            assert kept.stdout.endswith("run 7, 5 to 9 ns: no node has reported this run yet: kept when it comes\n")
            unknown = CliRunner().invoke(app, ["window", endpoint, "5", "9", "--timeout", "30"])
            assert unknown.exit_code == 1
            assert CliRunner().invoke(app, ["window", endpoint, "9", "9"]).exit_code == 2
        finally:
            stop.set()
            thread.join()
    assert CliRunner().invoke(app, ["combine", "--nodes", "2", "--min-nodes", "3"]).exit_code == 2
    assert CliRunner().invoke(app, ["combine", "--lines", "0x100000000"]).exit_code == 2
