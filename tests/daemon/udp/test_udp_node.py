"""A node that reads datagrams: decisions, incomplete MEPs, refused senders, the end of a burst and of a run."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import zmq
import zmq.asyncio
from structlog.testing import capture_logs

from hltnode.daemon.common.vocabulary import CloseReason, UdpRefusal
from hltnode.daemon.compute.interruptions import RESERVED_MEPS
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.configuration.node_sections import NodeSection
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.node.node import Node
from hltnode.protocol.raw_data.bank_types import NO_BANK
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.transport.decisions import MepDecision, decode_decision
from hltnode.protocol.transport.udp_datagram import encode_datagram
from tests.daemon.fakes import eventually, make_config, running_node
from tests.daemon.udp.packets import EVENTS, RUN, SOURCES, burst_of, packet

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]

PACKETS = 8
"""Packets of a MEP."""


def udp_config(tmp_path: Path, **changes: object) -> NodeConfig:
    udp: dict[str, Any] = {
        "endpoint": "udp://127.0.0.1:0",
        "senders": [{"address": "127.0.0.1", "sources": SOURCES[:1]}, {"address": "127.0.0.2", "sources": SOURCES[1:]}],
        "events_per_packet": EVENTS,
        "packets_per_mep": PACKETS,
        "flush_us": 300_000,
        "max_datagram_bytes": 512,
        **changes,
    }
    return make_config(tmp_path, udp=udp)


@pytest.fixture
def senders() -> Iterator[dict[int, socket.socket]]:
    """A socket of each source, by its address."""
    sockets = {source: socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for source in (*SOURCES, 0)}
    for address, opened in zip(("127.0.0.1", "127.0.0.2", "127.0.0.3"), sockets.values(), strict=True):
        opened.bind((address, 0))
    yield sockets
    for opened in sockets.values():
        opened.close()


def port_of(node: Node) -> tuple[str, int]:
    receiver = node._sockets.udp_receiver
    assert receiver is not None
    return "127.0.0.1", int(receiver.endpoint.rpartition(":")[2])


def is_subscribed(node: Node) -> bool:
    return node.counters.decisions.subscribers > 0


def has_acknowledged(node: Node, n_meps: int) -> bool:
    return node.counters.meps_acknowledged == n_meps


def events_of(decisions: list[MepDecision]) -> list[int]:
    return sorted(event for d in decisions for event in range(d.first_event, d.first_event + d.n_events))


async def test_each_event_of_a_burst_is_decided_once_and_a_lost_packet_is_counted(
    tmp_path: Path, senders: dict[int, socket.socket]
) -> None:
    """Datagrams arrive out of order and twice, one does not arrive, and the last MEP of the burst is short."""
    n = 3 * PACKETS + 3
    lost, lost_mep = (SOURCES[1], 5), range(2 * PACKETS, 3 * PACKETS)
    packets = burst_of(n, last_events=1, ends_run=True)
    packets[2], packets[7] = packets[7], packets[2]
    packets.insert(12, packets[9])
    kept = [
        each for each in packets
        if each[:2] != lost and not (each[0] == SOURCES[1] and each[1] in lost_mep)
    ]  # fmt: skip
    with zmq.asyncio.Context() as context, closing(context.socket(zmq.SUB)) as subscriber:
        async with running_node(udp_config(tmp_path)) as (node, _):
            subscriber.subscribe(b"")
            subscriber.connect(node.publisher.endpoint)
            await eventually(lambda: node.counters.decisions.subscribers > 0)
            senders[0].sendto(packets[0][2], port_of(node))
            for source, _, datagram in kept:
                senders[source].sendto(datagram, port_of(node))
            decisions = [decode_decision(await subscriber.recv()) for _ in range(4)]
            await eventually(lambda: node.builder_control.registry.current is None)
            counters, accounts = node.counters, accounting(node.counters, node.builder)
    n_events = EVENTS * (n - 1) + 1
    assert events_of(decisions) == list(range(1000, 1000 + n_events))
    assert {d.run for d in decisions} == {RUN}
    by_first = {d.first_event: d for d in decisions}
    # The lost packet is absent from a joined fragment; the lost source makes its MEP incomplete.
    missing = {first: d.missing_sources for first, d in by_first.items()}
    third = 1000 + 2 * PACKETS * EVENTS
    assert missing == dict.fromkeys(by_first, ()) | {third: (SOURCES[1],)}
    assert counters.udp.missing == {SOURCES[0]: 0, SOURCES[1]: 1 + PACKETS}
    refused = {reason: n for reason, n in counters.udp.refused.items() if n}
    assert refused == {UdpRefusal.UNKNOWN_SENDER: 1, UdpRefusal.DUPLICATE: 1}
    assert counters.udp.datagrams == len(kept) - 1
    assert (counters.udp.bursts, counters.udp.meps, counters.udp.dropped) == (1, 4, 0)
    assert counters.meps_closed[CloseReason.COMPLETE] == 3
    assert closes(accounts)


async def test_a_node_takes_datagrams_over_ipv6_and_ipv4_at_once(tmp_path: Path) -> None:
    """Each source sends with a version of its own; the version of the other one gives it no right."""
    senders = [{"address": "::1", "sources": SOURCES[:1]}, {"address": "127.0.0.1", "sources": SOURCES[1:]}]
    config = udp_config(tmp_path, endpoint="udp://[::]:0", senders=senders)
    with (
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as v6,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as v4,
    ):
        try:
            v6.bind(("::1", 0))
        except OSError as error:
            pytest.skip(f"this machine has no IPv6: {error}")
        ways = {SOURCES[0]: (v6, "::1"), SOURCES[1]: (v4, "127.0.0.1")}
        async with running_node(config) as (node, _):
            _, port = port_of(node)
            packets = burst_of(PACKETS, ends_run=True)
            foreign = next(datagram for source, _, datagram in packets if source == SOURCES[0])
            v4.sendto(foreign, ("127.0.0.1", port))
            for source, _, datagram in packets:
                way, host = ways[source]
                way.sendto(datagram, (host, port))
            await eventually(lambda: has_acknowledged(node, 1))
            await eventually(lambda: node.counters.udp.refused[UdpRefusal.FOREIGN_SOURCE] == 1)
            assert node.counters.meps_closed[CloseReason.COMPLETE] == 1
            assert node.counters.udp.datagrams == 2 * PACKETS


ONLY_V6 = """
import pathlib, socket, sys
from hltnode.daemon._native import FragmentIntake, OpenMeps, SenderAnswers, SourceTable, UdpIntake
pathlib.Path("/proc/sys/net/ipv6/bindv6only").write_text("1")
intake = UdpIntake(
    FragmentIntake(OpenMeps(1, 1), SenderAnswers(), SourceTable(), [], 0, 1), "::", 0, n_sockets=1, receive_bytes=4096,
    packets_per_mep=1, events_per_packet=1, open_meps=1, datagram_bytes=512, flush_ns=1, sources=[3], senders=[],
)
try:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).bind(("0.0.0.0", intake.port))
except OSError as error:
    print(error.strerror)
else:
    print("the port is free for IPv4")
"""


@pytest.mark.process
def test_sockets_of_all_addresses_take_ipv4_where_the_system_would_refuse_it() -> None:
    """In a network of its own, whose sockets for IPv6 take nothing else by default."""
    isolated = ["unshare", "--map-root-user", "--net"]
    if shutil.which("unshare") is None or subprocess.run([*isolated, "true"], capture_output=True).returncode:
        pytest.skip("unshare gives no network of its own here")
    found = subprocess.run([*isolated, sys.executable, "-c", ONLY_V6], capture_output=True, text=True, check=False)
    if "bindv6only" in found.stderr:
        pytest.skip("this machine has no IPv6, or /proc/sys is read-only")
    assert found.stdout == "Address already in use\n", found.stderr


async def test_a_run_that_the_node_does_not_take_is_discarded_and_counted(
    tmp_path: Path, senders: dict[int, socket.socket]
) -> None:
    config = udp_config(tmp_path).model_copy(update={"node": NodeSection(name="testnode", run=RUN + 1)})
    async with running_node(config) as (node, _):
        for source, _, datagram in burst_of(PACKETS):
            senders[source].sendto(datagram, port_of(node))
        await eventually(lambda: node.counters.udp.discarded == 2 * PACKETS)
        for source, _, datagram in burst_of(PACKETS, run=RUN + 1):
            senders[source].sendto(datagram, port_of(node))
        await eventually(lambda: node.counters.meps_acknowledged == 1)
        assert node.builder.run == RUN + 1
        assert sum(node.counters.fragments_rejected.values()) == 0


async def test_a_node_that_is_started_again_goes_on_behind_the_acknowledged_meps(
    tmp_path: Path, senders: dict[int, socket.socket]
) -> None:
    """The second session gets the second burst of the run; its MEPs must not be taken for those of the first one."""
    config = udp_config(tmp_path)
    seen: list[MepDecision] = []
    with zmq.asyncio.Context() as context:
        for burst in (1, 2):
            with closing(context.socket(zmq.SUB)) as subscriber:
                async with running_node(config) as (node, _):
                    subscriber.subscribe(b"")
                    subscriber.connect(node.publisher.endpoint)
                    await eventually(partial(is_subscribed, node))
                    for source, _, datagram in burst_of(2 * PACKETS, burst=burst):
                        senders[source].sendto(datagram, port_of(node))
                    seen += [decode_decision(await subscriber.recv()) for _ in range(2)]
                    await eventually(partial(has_acknowledged, node, 2))
    first = seen[2].mep
    assert [decision.mep for decision in seen] == [0, 1, first, first + 1]
    # The ids were reserved with the first batch, which had one MEP or both.
    assert first in (RESERVED_MEPS, 1 + RESERVED_MEPS)
    assert events_of(seen) == [*range(1000, 1000 + 2 * PACKETS * EVENTS), *range(2000, 2000 + 2 * PACKETS * EVENTS)]


async def test_late_datagrams_of_an_ended_run_are_refused_until_an_operator_starts_it(
    tmp_path: Path, senders: dict[int, socket.socket]
) -> None:
    """The MEP ids of the run are in use; a datagram must not open it again with the same ids."""
    late, source = packet(3, SOURCES[0], burst=2), SOURCES[0]
    async with running_node(udp_config(tmp_path)) as (node, _):
        for each, _, datagram in burst_of(PACKETS, ends_run=True):
            senders[each].sendto(datagram, port_of(node))
        await eventually(partial(has_acknowledged, node, 1))
        await eventually(lambda: node.builder_control.registry.current is None)
        senders[source].sendto(late, port_of(node))
        await eventually(lambda: node.counters.udp.refused[UdpRefusal.LATE] == 1)
        assert node.builder_control.registry.current is None
        node.builder_control.open_runs(RUN)
        for each, _, datagram in burst_of(PACKETS):
            senders[each].sendto(datagram, port_of(node))
        await eventually(partial(has_acknowledged, node, 2))


async def test_the_next_run_begins_although_the_end_of_the_last_one_was_lost(
    tmp_path: Path, senders: dict[int, socket.socket]
) -> None:
    async with running_node(udp_config(tmp_path, flush_us=50_000)) as (node, _):
        for source, _, datagram in burst_of(PACKETS):
            senders[source].sendto(datagram, port_of(node))
        await eventually(partial(has_acknowledged, node, 1))
        await asyncio.sleep(0.06)
        following = burst_of(PACKETS, run=RUN + 1)
        senders[SOURCES[0]].sendto(following[0][2], port_of(node))
        await eventually(lambda: node.builder_control.registry.current is None)
        for source, _, datagram in following:
            senders[source].sendto(datagram, port_of(node))
        await eventually(partial(has_acknowledged, node, 2))
        assert node.builder.run == RUN + 1
        assert node.counters.udp.refused[UdpRefusal.FOREIGN_RUN] == 1


async def test_a_draining_node_takes_meps_of_its_credits_and_counts_what_is_left(
    tmp_path: Path, senders: dict[int, socket.socket]
) -> None:
    """The second MEP comes after the drain began; three packets of a third one are left when the node stops."""
    async with running_node(udp_config(tmp_path, flush_us=10_000_000)) as (node, _):
        packets = burst_of(3 * PACKETS)
        for source, _, datagram in packets[: 2 * PACKETS]:
            senders[source].sendto(datagram, port_of(node))
        await eventually(partial(has_acknowledged, node, 1))
        node.builder_control.pause()
        for source, _, datagram in packets[2 * PACKETS : 4 * PACKETS + 3]:
            senders[source].sendto(datagram, port_of(node))
        await eventually(partial(has_acknowledged, node, 2))
        await eventually(lambda: node.counters.udp.datagrams == 4 * PACKETS + 3)
        assert node.counters.udp.discarded == 0
    assert node.counters.udp.discarded == 3


async def test_a_node_that_stops_does_not_report_datagrams_that_it_had_discarded_before(
    tmp_path: Path, senders: dict[int, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only ticks count, so the discarded datagrams of a foreign run are not counted yet."""
    config = udp_config(tmp_path).model_copy(update={"node": NodeSection(name="testnode", run=RUN + 1)})
    async with running_node(config) as (node, _):
        receiver = node._sockets.udp_receiver
        assert receiver is not None
        with monkeypatch.context() as patch:
            patch.setattr(receiver, "_count", lambda: None)
            for source, _, datagram in burst_of(PACKETS):
                senders[source].sendto(datagram, port_of(node))
            await eventually(lambda: receiver._intake.counts()["discarded"] == 2 * PACKETS)
        assert node.counters.udp.discarded == 0
        with capture_logs() as logs:
            receiver.close()
    assert node.counters.udp.discarded == 2 * PACKETS
    assert [line for line in logs if line["event"] == "udp_datagrams_discarded"] == []


N_FLOOD, FLOOD_BYTES = 20_000, 65_507
FLOOD = """
import socket, sys
datagram = sys.stdin.buffer.read()
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.bind(("127.0.0.1", 0))
while True:
    out.sendto(datagram, (sys.argv[1], int(sys.argv[2])))
"""


async def test_the_intake_stops_while_datagrams_flood_in(tmp_path: Path) -> None:
    """Each read of the flooded socket is a full batch: its thread never waits, and must end nevertheless.

    A process sends packets of 20,000 events faster than a thread checks them. Their number of events is a mismatch.
    """
    source = SOURCES[0]
    mfp = encode_mfp(source_id=source, event_id=0, version=1, types=[NO_BANK] * N_FLOOD, fragments=[b""] * N_FLOOD)
    datagram = encode_datagram(mfp, run=RUN, burst=1, sequence=0, source=source)
    config = make_config(
        tmp_path,
        network={"max_frame_bytes": FLOOD_BYTES},
        builder={"max_mep_bytes": FLOOD_BYTES},
        udp={
            "endpoint": "udp://127.0.0.1:0",
            "senders": [{"address": "127.0.0.1", "sources": [source]}],
            "packets_per_mep": 1,
            "max_datagram_bytes": FLOOD_BYTES,
        },
    )
    async with running_node(config) as (node, _):
        receiver, (host, port) = node._sockets.udp_receiver, port_of(node)
        assert receiver is not None
        command = [sys.executable, "-S", "-c", FLOOD, host, str(port)]
        sender = subprocess.Popen(command, stdin=subprocess.PIPE)
        assert sender.stdin is not None
        stopping = threading.Thread(target=receiver.close)
        try:
            sender.stdin.write(datagram)
            sender.stdin.close()
            await eventually(lambda: node.counters.udp.dropped > 1000)
            stopping.start()
            await asyncio.to_thread(stopping.join, 2.0)
            hangs = stopping.is_alive()
        finally:
            sender.kill()
            sender.wait()
            stopping.join()
        assert not hangs
