"""Events and captures as UDP datagrams, and their sender. UDP has no answers: nothing says what has arrived."""

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

from hltnode.daemon.replay.input_files import FeedError
from hltnode.daemon.replay.mep_source import MepStream
from hltnode.daemon.replay.pacing import Pace, Rate
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.raw_data.bank_types import NO_BANK
from hltnode.protocol.raw_data.mfp import Mfp, encode_mfp
from hltnode.protocol.transport.udp_datagram import (
    NO_FLAGS,
    DatagramFlags,
    DatagramHeader,
    decode_datagram,
    encode_datagram,
)

# With the rate of the input or of the user; a pause of the machine is not caught up beyond this.
MAX_CATCH_UP_S = 1.0
# Packets without a link layer, in files of any system (https://www.tcpdump.org/linktypes.html).
LINK_TYPE_RAW = 101


class Packet(NamedTuple):
    """A datagram, the number of events that it completes (0 if another source sends them later), and its time in s.

    The sender waits for its rate behind complete events only: the sources send a packet together, as boards do.
    """

    datagram: bytes
    n_events: int
    time_s: float | None = None


class SentDatagrams(NamedTuple):
    """What was sent; `skipped` are packets of a capture that are no datagrams of this protocol."""

    datagrams: int
    events: int
    bytes: int
    seconds: float
    skipped: int = 0


class _Pending:
    """Events of a source that do not fill a packet yet."""

    def __init__(self) -> None:
        self.first_event = self.version = 0
        self.types: list[int] = []
        self.fragments: list[bytes] = []

    def add(self, mfp: Mfp) -> None:
        if not self.types:
            self.first_event, self.version = mfp.event_id, mfp.version
        elif mfp.version != self.version or mfp.event_id != self.first_event + len(self.types):
            raise FeedError(
                f"source {mfp.source_id}: event {mfp.event_id} of version {mfp.version} does not follow event "
                f"{self.first_event + len(self.types) - 1} of version {self.version} in one packet"
            )
        types = mfp.types.tolist()
        self.types += types
        self.fragments += [b"" if kind == NO_BANK else bytes(mfp.fragment(i)) for i, kind in enumerate(types)]

    def take(self, source: int, n: int) -> bytes:
        """The MFP of the first n events."""
        mfp = encode_mfp(
            source_id=source,
            event_id=self.first_event,
            version=self.version,
            types=self.types[:n],
            fragments=self.fragments[:n],
            align=2,
        )
        del self.types[:n], self.fragments[:n]
        self.first_event += n
        return mfp


class _PacketMfps(NamedTuple):
    n_events: int
    mfps: dict[int, bytes]


def _packets_of_stream(stream: MepStream, events_per_packet: int) -> Iterator[_PacketMfps]:
    """The MFPs of each packet by source. All packets are full but the last one, also where the MEPs are not."""
    pending: dict[int, _Pending] = {}
    n_events = 0
    for mep in stream:
        for source, mfp in mep.mfps.items():
            pending.setdefault(source, _Pending()).add(Mfp.parse(mfp))
        n_events += mep.n_events
        while n_events >= events_per_packet:
            yield _PacketMfps(
                events_per_packet, {source: each.take(source, events_per_packet) for source, each in pending.items()}
            )
            n_events -= events_per_packet
    if n_events:
        yield _PacketMfps(n_events, {source: each.take(source, n_events) for source, each in pending.items()})


def datagrams_of_stream(stream: MepStream, events_per_packet: int, *, bursts: int = 1) -> Iterator[Packet]:
    """The datagrams of the events, as bursts of about equal length; the last one ends the run.

    Raises FeedError: the events of a packet have several bank versions.
    """
    n_packets = -(-(stream.n_events or 0) // events_per_packet)
    per_burst = max(1, -(-n_packets // bursts))
    # The packet that follows says whether one is the last: damaged events of the input are left out.
    packets = chain(_packets_of_stream(stream, events_per_packet), (None,))
    for number, (packet, following) in enumerate(pairwise(packets)):
        assert packet is not None
        burst, sequence = divmod(number, per_burst)
        flags = DatagramFlags.START_OF_BURST if sequence == 0 else NO_FLAGS
        if sequence == per_burst - 1 or following is None:
            flags |= DatagramFlags.END_OF_BURST
        if following is None:
            flags |= DatagramFlags.END_OF_RUN
        last = next(reversed(packet.mfps), None)
        for source, mfp in packet.mfps.items():
            yield Packet(
                encode_datagram(mfp, run=stream.run, burst=1 + burst, sequence=sequence, source=source, flags=flags),
                packet.n_events if source == last else 0,
            )


class _Captured(NamedTuple):
    """A datagram of a capture: what it has, and when it was on its way, in s."""

    header: DatagramHeader
    n_events: int
    datagram: bytes
    time_s: float


def datagrams_of_capture(path: Path, skipped: Callable[[], None]) -> Iterator[Packet]:
    """The datagrams of a capture of tcpdump (pcap) over IPv4 or IPv6, with their times. Other packets are skipped.

    Events count for one source alone: the last one of the first packet.

    Raises FeedError: dpkt is not installed, or the file cannot be read as a capture.
    """
    counted: int | None = None
    for captured, following in pairwise(chain(_captured(path, skipped), (None,))):
        assert captured is not None
        header = captured.header
        if counted is None and (following is None or _packet_of(following.header) != _packet_of(header)):
            counted = header.source
        yield Packet(captured.datagram, captured.n_events if header.source == counted else 0, captured.time_s)


def _packet_of(header: DatagramHeader) -> tuple[int, int, int]:
    """What all sources of a packet have in common."""
    return header.run, header.burst, header.sequence


def _captured(path: Path, skipped: Callable[[], None]) -> Iterator[_Captured]:
    try:
        import dpkt
    except ImportError:
        raise FeedError("a capture needs dpkt: pip install 'hltnode[captures]'") from None
    with path.open("rb") as file:
        try:
            reader = dpkt.pcap.UniversalReader(file)

            def packet_of(frame: bytes) -> dpkt.Packet:
                """A packet of either version of IP, which begins with it."""
                return (dpkt.ip6.IP6 if frame[:1] and frame[0] >> 4 == 6 else dpkt.ip.IP)(frame)

            link_layer = {
                dpkt.pcap.DLT_EN10MB: dpkt.ethernet.Ethernet,
                dpkt.pcap.DLT_LINUX_SLL: dpkt.sll.SLL,
                dpkt.pcap.DLT_LINUX_SLL2: dpkt.sll2.SLL2,
                dpkt.pcap.DLT_RAW: packet_of,
                LINK_TYPE_RAW: packet_of,
                dpkt.pcap.DLT_NULL: dpkt.loopback.Loopback,
            }.get(reader.datalink())
            if link_layer is None:
                raise FeedError(f"{path}: captures of link type {reader.datalink()} are not read")
            for time_s, frame in reader:
                try:
                    found = link_layer(frame)
                    # ICMP quotes datagrams that nothing has received: they were captured on their way before.
                    while not isinstance(found, dpkt.udp.UDP | dpkt.icmp.ICMP | dpkt.icmp6.ICMP6 | bytes):
                        found = found.data
                    datagram = bytes(found.data) if isinstance(found, dpkt.udp.UDP) else b""
                    header, mfp = decode_datagram(datagram)
                    n_events = Mfp.parse(mfp).n_fragments
                except (dpkt.UnpackError, AttributeError, ProtocolError):
                    skipped()
                    continue
                yield _Captured(header, n_events, datagram, float(time_s))
        except (ValueError, dpkt.UnpackError) as error:
            raise FeedError(f"{path}: not a capture of tcpdump: {error}") from None


def _send(out: socket.socket, datagram: bytes) -> None:
    while True:
        # An error is the answer (ICMP) to an earlier datagram: nothing listens yet. This one was not sent. Each
        # datagram has one answer at most, so the errors end.
        with contextlib.suppress(ConnectionRefusedError):
            out.send(datagram)
            return


def send_datagrams(
    packets: Iterator[Packet], host: str, port: int, rate: Rate, *, sleep: Callable[[float], None] = time.sleep
) -> SentDatagrams:
    """Send datagrams to a node, at a rate in events per second or at the times of the packets.

    Raises OSError: the address cannot be reached. A port without receiver is no error.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    n_datagrams = n_events = n_bytes = 0
    begin = next_s = time.monotonic()
    first_time_s: float | None = None
    with socket.socket(family, socket.SOCK_DGRAM) as out:
        out.connect((host, port))
        for packet in packets:
            if rate is Pace.RECORDED and packet.time_s is not None:
                first_time_s = packet.time_s if first_time_s is None else first_time_s
                next_s = begin + packet.time_s - first_time_s
            if (wait_s := next_s - time.monotonic()) > 0:
                sleep(wait_s)
            _send(out, packet.datagram)
            if isinstance(rate, float):
                next_s = max(next_s, time.monotonic() - MAX_CATCH_UP_S) + packet.n_events / rate
            n_datagrams += 1
            n_events += packet.n_events
            n_bytes += len(packet.datagram)
    return SentDatagrams(n_datagrams, n_events, n_bytes, time.monotonic() - begin)
