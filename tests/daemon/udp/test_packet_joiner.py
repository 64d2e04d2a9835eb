"""Packets that become MEPs: order, loss, repetition, bursts, deadlines, refusals, damaged bytes."""

from __future__ import annotations

import random
import struct
from collections import Counter
from pathlib import Path

import pytest

from hltnode.daemon.common.vocabulary import UdpRefusal
from hltnode.protocol.transport.udp_datagram import DATAGRAM_HEADER_SIZE, NO_FLAGS, DatagramFlags, decode_datagram
from tests.daemon.udp.joiner import FLUSH_NS, HAND_OVER, MS, Step, join, sent
from tests.daemon.udp.packets import EVENTS, SOURCES, burst_of, packet, payload
from tests.protocol import fuzz

FIRST, SECOND = SOURCES


def test_packets_of_both_sources_become_one_fragment_each_with_all_banks(joiner: Path) -> None:
    joined = join(joiner, [sent(source, datagram) for source, _, datagram in burst_of(8)])
    assert [(f.mep, f.source, f.first_event) for f in joined.fragments] == [
        (mep, source, 1000 + 16 * mep) for mep in range(2) for source in SOURCES
    ]
    for fragment in joined.fragments:
        first = fragment.first_event
        assert fragment.payloads == [payload(event, fragment.source) for event in range(first, first + 16)]
    assert (joined.refused, joined.missing, joined.meps_lost) == ({}, [0, 0], 0)
    assert joined.bursts == [(1, 16, 0, 0, 2)]


def test_reordered_packets_give_the_same_fragments(joiner: Path) -> None:
    packets = burst_of(8)
    expected = join(joiner, [sent(source, datagram) for source, _, datagram in packets])
    random.Random(5).shuffle(packets)
    shuffled = join(joiner, [sent(source, datagram) for source, _, datagram in packets])
    by_place = sorted(shuffled.fragments, key=lambda each: (each.first_event, each.source))
    assert [(f.source, f.payloads) for f in by_place] == [(f.source, f.payloads) for f in expected.fragments]


def test_events_of_a_lost_packet_have_no_bank_of_its_source(joiner: Path) -> None:
    steps = [sent(*each[::2]) for each in burst_of(4) if each[:2] != (SECOND, 2)]
    joined = join(joiner, [*steps, Step(1, FLUSH_NS - 1)])
    # The joiner waits for the packet until the deadline, and no longer.
    assert joined.meps == 0
    joined = join(joiner, [*steps, Step(1, FLUSH_NS)])
    first, second = joined.fragments
    assert None not in first.payloads
    assert second.payloads == [
        None if event // EVENTS == 2 else payload(1000 + event, SECOND) for event in range(16)
    ]  # fmt: skip
    assert joined.missing == [0, 1]


def test_the_last_mep_of_a_burst_is_as_short_as_its_packets(joiner: Path) -> None:
    joined = join(joiner, [sent(*each[::2]) for each in burst_of(5, last_events=1)])
    assert [len(fragment.payloads) for fragment in joined.fragments] == [16, 16, 1, 1]
    assert joined.bursts == [(1, 10, 0, 0, 2)]


def test_a_new_burst_closes_the_batches_of_the_last_one_and_counts_anew(joiner: Path) -> None:
    """The end of the first burst is lost; packets of the second one begin with the number 0."""
    one = [sent(*each[::2]) for each in burst_of(6)[:-2]]
    two = [sent(*each[::2]) for each in burst_of(4, burst=2)]
    late = sent(FIRST, packet(5, FIRST))
    joined = join(joiner, [*one, *two, late])
    assert joined.events(FIRST) == [*range(1000, 1020), *range(2000, 2016)]
    assert joined.events(SECOND) == joined.events(FIRST)
    assert joined.bursts == [(1, 10, 0, 0, 2), (2, 8, 0, 0, 1)]
    assert joined.refused == {UdpRefusal.LATE: 1}


def test_one_source_cannot_end_the_burst_of_the_others_without_the_flag_or_silence(joiner: Path) -> None:
    begun = [sent(*each[::2]) for each in burst_of(3)[:-2]]
    other = packet(0, FIRST, burst=2)
    flagged = packet(0, FIRST, burst=2, flags=DatagramFlags.START_OF_BURST)
    assert join(joiner, [*begun, sent(FIRST, other, FLUSH_NS - 1)]).refused == {UdpRefusal.OTHER_BURST: 1}
    assert join(joiner, [*begun, sent(FIRST, other, FLUSH_NS)]).refused == {}
    assert join(joiner, [*begun, sent(FIRST, flagged)]).refused == {}


def test_a_deadline_cuts_the_youngest_mep_and_later_packets_begin_the_next_one(joiner: Path) -> None:
    """A slow sender loses nothing: its packets after the deadline are joined, into further MEPs."""
    steps: list[Step] = []
    for sequence in range(6):
        now_ns = sequence * FLUSH_NS // 2
        steps += [Step(1, now_ns), *(sent(source, packet(sequence, source), now_ns) for source in SOURCES)]
    joined = join(joiner, [*steps, Step(1, 10 * FLUSH_NS)])
    assert [len(fragment.payloads) for fragment in joined.fragments[::2]] == [8, 8, 8]
    assert joined.events(SECOND) == list(range(1000, 1024))
    assert (joined.missing, joined.refused) == ([0, 0], {})


def test_packets_beyond_the_open_meps_wait_for_silence_and_the_skipped_ones_are_counted(joiner: Path) -> None:
    """With one MEP of four packets open and four at most, the packet 20 is the first beyond; MEPs 1 to 4 are lost."""
    begun = [sent(source, packet(0, source)) for source in SOURCES]
    last = join(joiner, [*begun, sent(FIRST, packet(19, FIRST))])
    assert (last.refused, last.meps) == ({}, 1)
    assert join(joiner, [*begun, sent(FIRST, packet(20, FIRST))]).refused == {UdpRefusal.AHEAD: 1}
    after = join(joiner, [*begun, sent(FIRST, packet(20, FIRST), FLUSH_NS), Step(1, 2 * FLUSH_NS)])
    assert (after.refused, after.meps_lost, after.events(FIRST)) == (
        {},
        4,
        [*range(1000, 1004), *range(1080, 1084)],
    )
    assert after.missing == [3 + 16, 3 + 16 + 1]


def test_a_burst_that_is_met_in_its_middle_has_lost_nothing_before(joiner: Path) -> None:
    steps = [sent(source, packet(sequence, source)) for sequence in range(401, 404) for source in SOURCES]
    joined = join(joiner, [*steps, Step(1, FLUSH_NS)])
    assert (joined.meps_lost, joined.missing) == (0, [1, 1])
    assert joined.events(FIRST) == list(range(1000 + 401 * EVENTS, 1000 + 404 * EVENTS))


def test_memory_is_bounded_and_packets_without_room_are_counted(joiner: Path) -> None:
    """Eight MEPs fit, until they are handed over."""
    packets = [sent(source, packet(sequence, source)) for sequence in range(36) for source in SOURCES]
    joined = join(joiner, packets)
    assert (joined.meps, joined.refused) == (8, {UdpRefusal.NO_ROOM: 8})
    assert joined.events(FIRST) == list(range(1000, 1000 + 8 * 16))
    joined = join(joiner, [*packets[:32], Step(HAND_OVER, 0), *packets[32:]])
    assert (joined.meps, joined.refused) == (9, {})


def test_a_mep_whose_first_packets_had_no_room_takes_the_others_once_there_is_room(joiner: Path) -> None:
    packets = [sent(source, packet(sequence, source)) for sequence in range(36) for source in SOURCES]
    later = [step._replace(now_ns=3 * FLUSH_NS) for step in packets[68:]]
    joined = join(joiner, [*packets[:68], Step(1, 2 * FLUSH_NS), Step(HAND_OVER, 2 * FLUSH_NS), *later])
    assert (joined.meps, joined.meps_lost, joined.refused) == (8, 0, {UdpRefusal.NO_ROOM: 4})
    joined = join(
        joiner, [*packets[:68], Step(1, 2 * FLUSH_NS), Step(HAND_OVER, 2 * FLUSH_NS), *later, Step(1, 4 * FLUSH_NS)]
    )
    assert joined.events(FIRST)[-8:] == list(range(1000 + 34 * EVENTS, 1000 + 36 * EVENTS))
    assert joined.missing == [2, 2]


REFUSED: dict[UdpRefusal, list[Step]] = {
    UdpRefusal.UNKNOWN_SENDER: [Step(0, 0, 9, packet(1, FIRST))],
    UdpRefusal.TRUNCATED: [sent(FIRST, packet(1, FIRST)[:31])],
    UdpRefusal.BAD_MAGIC: [sent(FIRST, b"x" + packet(1, FIRST)[1:])],
    UdpRefusal.BAD_VERSION: [sent(FIRST, packet(1, FIRST)[:4] + b"\2" + packet(1, FIRST)[5:])],
    UdpRefusal.BAD_SIZE: [sent(FIRST, packet(1, FIRST) + b"\0"), sent(FIRST, packet(1, FIRST, n_events=40))],
    UdpRefusal.MALFORMED: [
        sent(FIRST, packet(1, FIRST, flags=DatagramFlags(8))),
        sent(FIRST, packet(1, FIRST, flags=DatagramFlags.END_OF_RUN)),
        sent(FIRST, packet(0xFFFFFFFF, FIRST, first_event=0)),
        sent(FIRST, packet(1, FIRST)[:22] + b"\1" + packet(1, FIRST)[23:]),
        sent(FIRST, packet(1, FIRST)[:28] + b"\1" + packet(1, FIRST)[29:]),
    ],
    UdpRefusal.BAD_MFP: [
        sent(FIRST, packet(1, FIRST)[:DATAGRAM_HEADER_SIZE] + b"x" + packet(1, FIRST)[DATAGRAM_HEADER_SIZE + 1 :]),
        sent(FIRST, packet(1, FIRST)[:20] + struct.pack("<H", SECOND) + packet(1, FIRST)[22:]),
    ],
    UdpRefusal.FOREIGN_SOURCE: [Step(0, 0, 1, packet(1, SECOND)), Step(0, 0, 1, packet(1, 77))],
    UdpRefusal.FOREIGN_RUN: [sent(FIRST, packet(1, FIRST, run=8))],
    UdpRefusal.OTHER_BURST: [sent(FIRST, packet(1, FIRST, burst=2))],
    UdpRefusal.LATE: [sent(FIRST, packet(1, FIRST, burst=0))],
    UdpRefusal.DUPLICATE: [sent(FIRST, packet(0, FIRST))],
    UdpRefusal.AHEAD: [sent(FIRST, packet(1000, FIRST))],
    UdpRefusal.MISMATCH: [
        sent(FIRST, packet(1, FIRST, first_event=1005)),
        sent(FIRST, packet(1, FIRST, n_events=EVENTS + 1)),
        sent(FIRST, packet(1, FIRST, n_events=EVENTS - 1)),
        sent(FIRST, packet(1, FIRST, version=2)),
    ],
}


@pytest.mark.parametrize("reason", REFUSED)
def test_a_refused_datagram_is_counted_and_changes_no_other(joiner: Path, reason: UdpRefusal) -> None:
    good = [sent(*each[::2]) for each in burst_of(4)]
    joined = join(joiner, [*good[:2], *REFUSED[reason], *good[2:]])
    assert joined.refused == {reason: len(REFUSED[reason])}
    assert joined.fragments == join(joiner, good).fragments


def test_under_loss_reordering_and_repetition_each_event_is_joined_once_or_counted_as_lost(joiner: Path) -> None:
    """Bursts of random lengths on a network that loses, repeats and delays datagrams, with clocks that run on."""
    rng = random.Random(20_261_128)
    steps: list[tuple[int, int, Step]] = []
    now_ns = sent_packets = 0
    expected: Counter[tuple[int, int]] = Counter()
    for burst in range(1, 40):
        n = rng.randrange(1, 40)
        for source, sequence, datagram in burst_of(n, burst=burst, last_events=rng.randrange(1, EVENTS + 1)):
            now_ns += rng.randrange(MS // 10)
            expected[burst, source] = max(expected[burst, source], sequence + 1)
            sent_packets += 1
            for _ in range(rng.choices((0, 1, 2), (3, 90, 3))[0]):
                delay_ns = rng.choices((0, rng.randrange(2 * MS), 4 * FLUSH_NS), (80, 18, 1))[0]
                steps.append((now_ns + delay_ns, len(steps), sent(source, datagram)))
        now_ns += rng.choice((0, MS, 3 * FLUSH_NS))
    timed: list[Step] = []
    for at_ns, _, step in sorted(steps):
        timed += [Step(1, at_ns), step._replace(now_ns=at_ns), Step(HAND_OVER, at_ns)]
    timed += [Step(1, now_ns + 100 * FLUSH_NS)]
    joined = join(joiner, timed)
    for source in SOURCES:
        events = joined.events(source)
        assert len(set(events)) == len(events)
    # Each datagram that came is in a MEP, or counted by its reason.
    assert joined.packets + sum(joined.refused.values()) == len(steps)
    assert {UdpRefusal.DUPLICATE, UdpRefusal.LATE} <= joined.refused.keys()
    banks = {
        (fragment.source, fragment.first_event + i): bank
        for fragment in joined.fragments
        for i, bank in enumerate(fragment.payloads)
        if bank is not None
    }
    assert all(bank == payload(event, source) for (source, event), bank in banks.items())
    came = {decode_datagram(step.datagram)[0][1:4] for _, _, step in steps}
    assert joined.packets <= len(came) < sent_packets
    # No MEP has the events of a source twice, and both sources agree in the events of a MEP.
    by_mep: dict[int, set[tuple[int, int]]] = {}
    for fragment in joined.fragments:
        by_mep.setdefault(fragment.mep, set()).add((fragment.first_event, len(fragment.payloads)))
    assert all(len(ranges) == 1 for ranges in by_mep.values())
    n_events = Counter(event for ranges in by_mep.values() for first, n in ranges for event in range(first, first + n))
    assert max(n_events.values()) == 1


def test_damaged_datagrams_end_nothing_and_each_is_counted(joiner: Path) -> None:
    good = packet(1, FIRST, flags=NO_FLAGS)
    damaged = [
        *fuzz.FORMLESS, *fuzz.truncations(good), *fuzz.extensions(good), *fuzz.wrong_sizes(good), *fuzz.bit_flips(good),
    ]  # fmt: skip
    steps = [sent(FIRST, datagram, i * MS // 100) for i, datagram in enumerate(damaged)]
    joined = join(joiner, [sent(FIRST, packet(0, FIRST)), *steps], datagram_bytes=8192)
    assert joined.packets + sum(joined.refused.values()) == 1 + len(damaged)
    assert joined.refused.keys() >= {
        UdpRefusal.TRUNCATED, UdpRefusal.BAD_MAGIC, UdpRefusal.BAD_VERSION, UdpRefusal.BAD_SIZE, UdpRefusal.MALFORMED,
        UdpRefusal.BAD_MFP, UdpRefusal.FOREIGN_RUN, UdpRefusal.MISMATCH,
    }  # fmt: skip
