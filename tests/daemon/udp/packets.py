"""Packets of UDP senders for tests: each event has its number in its bank."""

from collections.abc import Iterable

from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.transport.udp_datagram import NO_FLAGS, DatagramFlags, encode_datagram

RUN = 7
EVENTS = 4
"""Events of a packet."""
SOURCES = (3, 900)


def payload(event: int, source: int) -> bytes:
    """A bank whose size differs from event to event; it begins with the number of the event (u64)."""
    return event.to_bytes(8, "little") + source.to_bytes(2, "little") * (1 + event % 5)


def packet(
    sequence: int,
    source: int,
    *,
    burst: int = 1,
    run: int = RUN,
    n_events: int = EVENTS,
    first_event: int | None = None,
    flags: DatagramFlags = NO_FLAGS,
    version: int = 1,
) -> bytes:
    """The datagram of a packet; `first_event` is 1000 × burst + 4 × sequence by default."""
    first = 1000 * burst + EVENTS * sequence if first_event is None else first_event
    mfp = encode_mfp(
        source_id=source,
        event_id=first,
        version=version,
        types=[1] * n_events,
        fragments=[payload(event, source) for event in range(first, first + n_events)],
    )
    return encode_datagram(mfp, run=run, burst=burst, sequence=sequence, source=source, flags=flags)


def burst_of(
    n: int,
    sources: Iterable[int] = SOURCES,
    *,
    burst: int = 1,
    run: int = RUN,
    last_events: int = EVENTS,
    ends_run: bool = False,
) -> list[tuple[int, int, bytes]]:
    """(source, sequence, datagram) of a burst of n packets, the sources in turn."""
    packets = []
    for sequence in range(n):
        is_last = sequence == n - 1
        flags = DatagramFlags.START_OF_BURST if sequence == 0 else NO_FLAGS
        if is_last:
            flags |= DatagramFlags.END_OF_BURST | (DatagramFlags.END_OF_RUN if ends_run else NO_FLAGS)
        for source in sources:
            n_events = last_events if is_last else EVENTS
            packets.append(
                (source, sequence, packet(sequence, source, burst=burst, run=run, n_events=n_events, flags=flags))
            )
    return packets
