"""Events and captures as UDP datagrams, and their sender. UDP has no answers: nothing says what has arrived."""

import socket
import time
from collections.abc import Callable, Iterator
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
    decode_datagram,
    encode_datagram,
)

# With the rate of the input or of the user; a pause of the machine is not caught up beyond this.
MAX_CATCH_UP_S = 1.0


class Packet(NamedTuple):
    """A datagram, its number of new events (0 for further sources of the same events), and its time in s or None."""

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


def packets_of_mfp(mfp: Mfp, events_per_packet: int) -> Iterator[bytes]:
    """The MFPs of consecutive events of an MFP, each with up to this number of events."""
    types = mfp.types.tolist()
    for first in range(0, mfp.n_fragments, events_per_packet):
        some = range(first, min(first + events_per_packet, mfp.n_fragments))
        yield encode_mfp(
            source_id=mfp.source_id,
            event_id=mfp.event_id + first,
            version=mfp.version,
            types=[types[i] for i in some],
            fragments=[b"" if types[i] == NO_BANK else mfp.fragment(i) for i in some],
            align=2,
        )


def datagrams_of_stream(stream: MepStream, events_per_packet: int, *, bursts: int = 1) -> Iterator[Packet]:
    """The datagrams of the events, as bursts of about equal length; the last one ends the run.

    Raises FeedError: the MEPs of the input have another number of events than whole packets.
    """
    if stream.events_per_mep % events_per_packet:
        raise FeedError(
            f"the input has MEPs of {stream.events_per_mep} events, expected a multiple of --events-per-packet "
            f"{events_per_packet}"
        )
    n_packets = -(-(stream.n_events or 0) // events_per_packet)
    per_burst = max(1, -(-n_packets // bursts))
    number = 0
    for mep in stream:
        by_source = {
            source: list(packets_of_mfp(Mfp.parse(mfp), events_per_packet)) for source, mfp in mep.mfps.items()
        }
        for i in range(max(map(len, by_source.values()))):
            burst, sequence = divmod(number, per_burst)
            is_last = number == n_packets - 1
            flags = DatagramFlags.START_OF_BURST if sequence == 0 else NO_FLAGS
            if sequence == per_burst - 1 or is_last:
                flags |= DatagramFlags.END_OF_BURST
            if is_last:
                flags |= DatagramFlags.END_OF_RUN
            n_events = min(events_per_packet, mep.n_events - i * events_per_packet)
            for source, packets in by_source.items():
                yield Packet(
                    encode_datagram(
                        packets[i], run=stream.run, burst=1 + burst, sequence=sequence, source=source, flags=flags
                    ),
                    n_events,
                )
                n_events = 0
            number += 1


def datagrams_of_capture(path: Path, skipped: Callable[[], None]) -> Iterator[Packet]:
    """The datagrams of a capture of tcpdump (pcap), with their times. Other packets are skipped.

    Raises FeedError: dpkt is not installed, or the file cannot be read as a capture.
    """
    try:
        import dpkt
    except ImportError:
        raise FeedError("a capture needs dpkt: pip install 'hltnode[captures]'") from None
    with path.open("rb") as file:
        try:
            reader = dpkt.pcap.UniversalReader(file)
            link_layer = {
                dpkt.pcap.DLT_EN10MB: dpkt.ethernet.Ethernet,
                dpkt.pcap.DLT_LINUX_SLL: dpkt.sll.SLL,
                dpkt.pcap.DLT_RAW: dpkt.ip.IP,
                dpkt.pcap.DLT_NULL: dpkt.loopback.Loopback,
            }.get(reader.datalink())
            if link_layer is None:
                raise FeedError(f"{path}: captures of link type {reader.datalink()} are not read")
            for time_s, frame in reader:
                try:
                    found = link_layer(frame)
                    while not isinstance(found, dpkt.udp.UDP | bytes):
                        found = found.data
                    datagram = b"" if isinstance(found, bytes) else bytes(found.data)
                    _, mfp = decode_datagram(datagram)
                    n_events = Mfp.parse(mfp).n_fragments
                except (dpkt.UnpackError, AttributeError, ProtocolError):
                    skipped()
                    continue
                yield Packet(datagram, n_events, float(time_s))
        except (ValueError, dpkt.UnpackError) as error:
            raise FeedError(f"{path}: not a capture of tcpdump: {error}") from None


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
            try:
                out.send(packet.datagram)
            except ConnectionRefusedError:
                # The answer (ICMP) to an earlier datagram: nothing listens yet. This one was not sent.
                out.send(packet.datagram)
            if isinstance(rate, float):
                next_s = max(next_s, time.monotonic() - MAX_CATCH_UP_S) + packet.n_events / rate
            n_datagrams += 1
            n_events += packet.n_events
            n_bytes += len(packet.datagram)
    return SentDatagrams(n_datagrams, n_events, n_bytes, time.monotonic() - begin)
