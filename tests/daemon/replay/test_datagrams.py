"""Events and captures as datagrams: bursts, packets, flags, times; and what is sent arrives."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from pathlib import Path

import dpkt
import pytest

from hltnode.daemon.replay.datagrams import Packet, datagrams_of_capture, datagrams_of_stream, send_datagrams
from hltnode.daemon.replay.input_files import FeedError
from hltnode.daemon.replay.mep_source import Packing, meps_of_files
from hltnode.daemon.replay.pacing import Pace
from hltnode.processing.na62.offline.simulation.sample import RichSimulation
from hltnode.processing.na62.readout import RICH_READOUT
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.protocol.na62.rich_banks import RICH_SOURCE
from hltnode.protocol.raw_data.mfp import Mfp
from hltnode.protocol.transport.udp_datagram import DatagramFlags, decode_datagram
from tests.daemon.udp.packets import EVENTS as EVENTS_OF_BURST
from tests.daemon.udp.packets import burst_of

N_EVENTS, EVENTS = 300, 16
LARGE = 64
"""Events of a packet that do not divide a MEP."""


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    simulation = RichSimulation()
    request = SampleRequest(seed=3, file_format="mdf")
    path = tmp_path_factory.mktemp("sample") / "rich.mdf"
    made = simulation.sample(request, simulation.options())
    path.write_bytes(b"".join(block for _, block in made.blocks(N_EVENTS, 1)))
    return path


def packets_of(path: Path, bursts: int) -> list[Packet]:
    packing = Packing(events_per_mep=10 * EVENTS, max_fragment_bytes=1 << 20, run=7)
    return list(datagrams_of_stream(meps_of_files([path], RICH_READOUT, packing), EVENTS, bursts=bursts))


def test_bursts_have_all_banks_of_the_events_and_flags_at_their_ends(sample: Path) -> None:
    """19 packets of each source: two bursts of ten and nine packets; the last packet has the last 12 events."""
    packing = Packing(events_per_mep=N_EVENTS, max_fragment_bytes=1 << 20, run=7)
    [whole] = meps_of_files([sample], RICH_READOUT, packing)
    packets = packets_of(sample, 2)
    decoded = [decode_datagram(packet.datagram) for packet in packets]
    assert sum(packet.n_events for packet in packets) == N_EVENTS
    banks: list[bytes] = []
    for header, mfp in decoded:
        if header.source == RICH_SOURCE:
            parsed = Mfp.parse(mfp)
            assert parsed.event_id == len(banks)
            banks += [bytes(parsed.fragment(i)) for i in range(parsed.n_fragments)]
    expected = Mfp.parse(whole.mfps[RICH_SOURCE])
    assert banks == [bytes(expected.fragment(i)) for i in range(N_EVENTS)]
    rich = [header for header, _ in decoded if header.source == RICH_SOURCE]
    assert [(header.burst, header.sequence) for header in rich] == [(1 + i // 10, i % 10) for i in range(19)]
    start, end, run_end = DatagramFlags
    flags = {i: header.flags for i, header in enumerate(rich) if header.flags}
    assert flags == {0: start, 9: end, 10: start, 18: end | run_end}


def test_a_sender_waits_after_all_sources_have_sent_a_packet_not_between_them(tmp_path: Path) -> None:
    """Boards send the events of a packet at once: a source that follows a period later would delay each MEP by it."""
    simulation, path = RichSimulation(), tmp_path / "rich.mep"
    made = simulation.sample(SampleRequest(seed=3, file_format="mep"), simulation.options())
    path.write_bytes(b"".join(block for _, block in made.blocks(N_EVENTS, 1)))
    packets = packets_of(path, 1)
    headers = [decode_datagram(packet.datagram)[0] for packet in packets]
    is_last = [i + 1 == len(headers) or headers[i + 1].sequence != header.sequence for i, header in enumerate(headers)]
    assert (len(packets), sum(is_last)) == (2 * 19, 19)
    assert [packet.n_events > 0 for packet in packets] == is_last


def test_meps_of_other_than_whole_packets_are_regrouped_into_full_packets(sample: Path) -> None:
    """MEPs of 100 events, of which 64 is no divisor: only the last packet of all is short."""
    packing = Packing(events_per_mep=100, max_fragment_bytes=1 << 20, run=7, repeat=2)
    whole = list(meps_of_files([sample], RICH_READOUT, packing))
    stream = meps_of_files([sample], RICH_READOUT, packing)
    packets = list(datagrams_of_stream(stream, LARGE, bursts=2))
    rich = [each for each in map(decode_datagram, (p.datagram for p in packets)) if each[0].source == RICH_SOURCE]
    mfps = [Mfp.parse(mfp) for _, mfp in rich]
    n_packets = -(-2 * N_EVENTS // LARGE)
    assert [mfp.n_fragments for mfp in mfps] == [LARGE] * (n_packets - 1) + [2 * N_EVENTS % LARGE]
    assert [mfp.event_id for mfp in mfps] == [LARGE * i for i in range(n_packets)]
    per_burst = -(-n_packets // 2)
    assert [(header.burst - 1, header.sequence) for header, _ in rich] == [
        divmod(i, per_burst) for i in range(n_packets)
    ]
    start, end, run_end = DatagramFlags
    flags = {i: header.flags for i, (header, _) in enumerate(rich) if header.flags}
    assert flags == {0: start, per_burst - 1: end, per_burst: start, n_packets - 1: end | run_end}
    expected = [Mfp.parse(mep.mfps[RICH_SOURCE]) for mep in whole]
    banks = [bytes(mfp.fragment(i)) for mfp in mfps for i in range(mfp.n_fragments)]
    assert banks == [bytes(mfp.fragment(i)) for mfp in expected for i in range(mfp.n_fragments)]
    assert sum(packet.n_events for packet in packets) == 2 * N_EVENTS


def frame_of(datagram: bytes) -> bytes:
    ip = dpkt.ip.IP(ipv4_of(datagram))
    return bytes(dpkt.ethernet.Ethernet(src=bytes(6), dst=bytes(6), type=dpkt.ethernet.ETH_TYPE_IP, data=ip))


def test_a_capture_gives_its_datagrams_with_their_times_and_skips_other_packets(tmp_path: Path) -> None:
    sent = [datagram for _, _, datagram in burst_of(3)]
    path = tmp_path / "boards.pcap"
    with path.open("wb") as file:
        writer = dpkt.pcap.Writer(file)
        for i, frame in enumerate([*map(frame_of, sent), frame_of(b"another protocol"), b"\0" * 9, bytes(60)]):
            writer.writepkt(frame, ts=1000 + 0.25 * i)
    skipped: list[None] = []
    packets = list(datagrams_of_capture(path, lambda: skipped.append(None)))
    assert [packet.datagram for packet in packets] == sent
    assert [packet.time_s for packet in packets] == [1000 + 0.25 * i for i in range(6)]
    # Two sources send the same events, which count once, behind both.
    assert [packet.n_events for packet in packets] == [0, EVENTS_OF_BURST] * 3
    assert len(skipped) == 3
    path.write_bytes(b"no capture at all, but 24 bytes or more")
    with pytest.raises(FeedError, match="not a capture of tcpdump"):
        next(datagrams_of_capture(path, lambda: None))


def udp_of(datagram: bytes) -> dpkt.udp.UDP:
    udp = dpkt.udp.UDP(sport=4000, dport=5560, data=datagram)
    udp.ulen = len(udp)
    return udp


def ipv4_of(datagram: bytes) -> bytes:
    ip = dpkt.ip.IP(src=bytes((10, 0, 0, 2)), dst=bytes((10, 0, 0, 1)), p=dpkt.ip.IP_PROTO_UDP, data=udp_of(datagram))
    ip.len = len(ip)
    return bytes(ip)


def ipv6_of(datagram: bytes, options: bytes = b"") -> bytes:
    """options: headers between that of IPv6 and that of UDP."""
    content = options + bytes(udp_of(datagram))
    first = 0 if options else dpkt.ip.IP_PROTO_UDP
    address = bytes(15) + b"\1"
    return bytes(dpkt.ip6.IP6(src=address, dst=address, nxt=first, hlim=64, plen=len(content), data=content))


def sll2_of(packet: bytes, ether_type: int) -> bytes:
    """As `tcpdump -i any` writes it today: type, 2 bytes, interface, ARPHRD type, kind, length and address."""
    return struct.pack(">HHIHBB8s", ether_type, 0, 1, 1, 0, 6, bytes(8)) + packet


HOP_BY_HOP = bytes((dpkt.ip.IP_PROTO_UDP, 0, 1, 4, 0, 0, 0, 0))
ETHERNET, RAW, RAW_OF_BSD, SLL2 = 1, 101, 12, 276


@pytest.mark.parametrize(
    ("link_type", "frame"),
    [
        (ETHERNET, lambda datagram: bytes(12) + b"\x86\xdd" + ipv6_of(datagram)),
        (ETHERNET, lambda datagram: bytes(12) + b"\x86\xdd" + ipv6_of(datagram, HOP_BY_HOP)),
        (RAW, ipv6_of),
        (RAW, ipv4_of),
        (RAW_OF_BSD, ipv6_of),
        (SLL2, lambda datagram: sll2_of(ipv6_of(datagram), 0x86DD)),
        (SLL2, lambda datagram: sll2_of(ipv4_of(datagram), 0x0800)),
    ],
)
def test_a_capture_of_each_link_type_gives_its_datagrams_over_ipv4_and_ipv6(
    tmp_path: Path, link_type: int, frame: Callable[[bytes], bytes]
) -> None:
    sent = [datagram for _, _, datagram in burst_of(3)]
    path = tmp_path / "boards.pcap"
    with path.open("wb") as file:
        writer = dpkt.pcap.Writer(file, linktype=link_type)
        for each in [*map(frame, sent), b"", b"\x60"]:
            writer.writepkt(each, ts=1.0)
    skipped: list[None] = []
    packets = list(datagrams_of_capture(path, lambda: skipped.append(None)))
    assert [packet.datagram for packet in packets] == sent
    assert len(skipped) == 2


def test_a_datagram_that_an_error_message_quotes_is_not_sent_again(tmp_path: Path) -> None:
    """Of a capture without a filter, while no node listened."""
    [(_, _, sent)] = burst_of(1)[:1]
    v4 = dpkt.ip.IP(
        src=bytes((10, 0, 0, 1)),
        dst=bytes((10, 0, 0, 2)),
        p=dpkt.ip.IP_PROTO_ICMP,
        data=dpkt.icmp.ICMP(type=3, code=3, data=dpkt.icmp.ICMP.Unreach(data=dpkt.ip.IP(ipv4_of(sent)))),
    )
    v4.len = len(v4)
    quote = struct.pack(">BBHI", 1, 4, 0, 0) + ipv6_of(sent)
    v6 = dpkt.ip6.IP6(src=bytes(16), dst=bytes(16), nxt=dpkt.ip.IP_PROTO_ICMP6, plen=len(quote), data=quote)
    path = tmp_path / "boards.pcap"
    with path.open("wb") as file:
        writer = dpkt.pcap.Writer(file, linktype=RAW)
        for each in (ipv4_of(sent), bytes(v4), ipv6_of(sent), bytes(v6)):
            writer.writepkt(each, ts=1.0)
    skipped: list[None] = []
    packets = list(datagrams_of_capture(path, lambda: skipped.append(None)))
    assert [packet.datagram for packet in packets] == [sent, sent]
    assert len(skipped) == 2


@pytest.mark.loopback
def test_datagrams_are_sent_at_the_times_of_a_capture_or_at_a_rate() -> None:
    packets = [Packet(bytes([i]) * 40, 4, 100 + 2.0 * i) for i in range(3)]
    slept: list[float] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(10)
        host, port = receiver.getsockname()
        sent = send_datagrams(iter(packets), host, port, Pace.RECORDED, sleep=slept.append)
        assert [receiver.recv(100) for _ in packets] == [packet.datagram for packet in packets]
        assert slept == pytest.approx([2, 4], abs=0.5)
        assert (sent.datagrams, sent.events, sent.bytes) == (3, 12, 120)
        slept.clear()
        send_datagrams(iter(packets), host, port, 2.0, sleep=slept.append)
        assert slept == pytest.approx([2, 4], abs=0.5)


def test_a_datagram_is_sent_again_after_each_answer_to_an_earlier_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing listens: two answers to earlier datagrams come before a datagram is sent."""
    sent: list[bytes] = []
    answers = iter([True, True, False, False])

    class Refusing(socket.socket):
        def send(self, data: bytes, *_: object) -> int:  # type: ignore[override]
            if next(answers):
                raise ConnectionRefusedError
            sent.append(data)
            return len(data)

    monkeypatch.setattr(socket, "socket", Refusing)
    result = send_datagrams(iter([Packet(b"a", 1), Packet(b"b", 1)]), "127.0.0.1", 9, 1e6)
    assert (sent, result.datagrams) == ([b"a", b"b"], 2)
