"""The judgements of single attacks and of peers that connect again."""

import socket
import time
from contextlib import suppress
from dataclasses import replace

import pytest

from tests.attacks.attacked_node import AT_REST, GIVEN_BACK, MIB, PROMISED, PROMISED_BY_PORT, Resources, promised_bytes
from tests.attacks.catalogue import Cost
from tests.attacks.returning_peers import Judgement, Peer

BEFORE = Resources(100 * MIB, 20)
KEPT = Cost(
    promised_bytes=300 * MIB,
    before=BEFORE,
    peak=Resources(400 * MIB, 90),
    after=Resources(100 * MIB + GIVEN_BACK, 20 + AT_REST.descriptors),
    is_alive=True,
    error="",
)


def test_an_attack_within_all_promises_breaks_none() -> None:
    assert KEPT.broken() == []


@pytest.mark.parametrize(
    ("found", "broken"),
    [
        (replace(KEPT, is_alive=False), "alive"),
        (replace(KEPT, peak=Resources(400 * MIB + 1, 90)), "memory"),
        (replace(KEPT, after=Resources(100 * MIB + GIVEN_BACK + 1, 20)), "memory given back"),
        (replace(KEPT, after=Resources(100 * MIB, 21 + AT_REST.descriptors)), "descriptors given back"),
    ],
)
def test_each_promise_about_an_attack_is_judged_alone(found: Cost, broken: str) -> None:
    assert found.broken() == [broken]


def test_peers_that_connect_again_may_take_the_memory_of_their_port() -> None:
    kept = Judgement(promised_bytes("control"), 1.0, 0.5, 100, True, promised_bytes("control"))
    assert kept.broken() == []
    assert replace(kept, grown_bytes=promised_bytes("control") + 1).broken() == ["memory"]
    assert replace(kept, stall_s=1.01).broken() == ["event loop"]
    assert replace(kept, honest=0.49).broken() == ["honest feeder"]
    assert replace(kept, is_alive=False).broken() == ["alive"]


def test_the_promise_about_all_ports_is_the_sum_of_their_promises() -> None:
    others = sum(PROMISED_BY_PORT[port] for port in ("control", "requests"))
    assert promised_bytes("data") + others == PROMISED
    assert promised_bytes("decisions") == promised_bytes("data")


def test_a_peer_whose_connection_the_node_ends_in_its_handshake_comes_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        peer = Peer(server.getsockname()[1], "127.0.0.1", b"DEALER", b"content")
        connection, _ = server.accept()
        connection.send(b"part of a greeting")
        connection.shutdown(socket.SHUT_WR)
        with connection, peer.socket, pytest.raises(ConnectionResetError):
            send_for(peer, 60.0)


def send_for(peer: Peer, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(BlockingIOError):
            peer.send()
