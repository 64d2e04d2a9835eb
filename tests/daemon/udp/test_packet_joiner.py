"""Packets that become MEPs: order, loss, repetition, bursts, deadlines, refusals, damaged bytes."""

from __future__ import annotations

import random
import struct
from collections import Counter
from pathlib import Path

import pytest

from hltnode.daemon.common.vocabulary import UdpRefusal
from hltnode.protocol.transport.udp_datagram import DATAGRAM_HEADER_SIZE, NO_FLAGS, DatagramFlags, decode_datagram
from tests.daemon.udp.joiner import (
    END_RUN,
    FLUSH_NS,
    HAND_OVER,
    LEAVE_RUN,
    MS,
    REOPEN_RUNS,
    Step,
    join,
    sent,
)
from tests.daemon.udp.packets import EVENTS, SOURCES, burst_of, packet, payload
from tests.protocol import fuzz

# The first test waits for the compiler, which takes some seconds of a core, and minutes where others use it.
pytestmark = pytest.mark.timeout(900)

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
    alone = [sent(FIRST, packet(sequence, FIRST)) for sequence in (0, 19)]
    last = join(joiner, alone, sources=[FIRST])
    assert (last.refused, last.meps) == ({}, 1)
    beyond = join(joiner, [alone[0], sent(FIRST, packet(20, FIRST))], sources=[FIRST])
    assert beyond.refused == {UdpRefusal.AHEAD: 1}
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


def test_a_burst_begins_in_its_middle_from_the_first_packet_beyond_the_open_meps(joiner: Path) -> None:
    """Four MEPs of four packets may be open: with packet 15 the burst begins at 0, with packet 16 in its middle."""
    for first, meps_lost, missing in ((15, 3, 15), (16, 0, 0)):
        alone = sent(FIRST, packet(first, FIRST))
        joined = join(joiner, [alone, *(Step(1, n * FLUSH_NS) for n in (1, 2))], sources=[FIRST])
        assert joined.events(FIRST) == list(range(1000 + EVENTS * first, 1000 + EVENTS * (first + 1)))
        assert (joined.refused, joined.meps_lost, joined.missing) == ({}, meps_lost, [missing])


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


def test_one_source_cannot_run_ahead_of_the_others_unless_they_agree_or_are_silent(joiner: Path) -> None:
    """Half of four open MEPs are eight packets: FIRST may send the packet 8 after packet 0 of SECOND, and not 9."""
    begun = [sent(source, packet(0, source)) for source in SOURCES]
    assert join(joiner, [*begun, sent(FIRST, packet(8, FIRST))]).refused == {}
    jump = [sent(FIRST, packet(9, FIRST)), sent(FIRST, packet(0xFFFF_FFF0, FIRST))]
    normal = [sent(source, packet(sequence, source)) for sequence in range(1, 4) for source in SOURCES]
    joined = join(joiner, [*begun, *jump, *normal])
    assert (joined.refused, joined.meps, joined.meps_lost) == ({UdpRefusal.AHEAD: 2}, 1, 0)
    assert joined.events(SECOND) == list(range(1000, 1016))
    agreed = join(joiner, [*begun, jump[0], sent(SECOND, packet(10, SECOND)), jump[0], Step(1, FLUSH_NS)])
    assert (agreed.refused, agreed.events(FIRST)[-4:]) == ({UdpRefusal.AHEAD: 1}, list(range(1036, 1040)))
    silent = [*begun, sent(FIRST, packet(1, FIRST), FLUSH_NS // 2), sent(FIRST, packet(10, FIRST), FLUSH_NS)]
    assert join(joiner, silent).refused == {}


def test_one_source_cannot_begin_a_far_burst_unless_another_agrees_or_all_are_silent(joiner: Path) -> None:
    begin = DatagramFlags.START_OF_BURST
    ended = [sent(*each[::2]) for each in burst_of(4)]
    far = {source: packet(0, source, burst=900, flags=begin) for source in SOURCES}
    next_burst = [sent(*each[::2]) for each in burst_of(4, burst=2)]
    joined = join(joiner, [*ended, sent(FIRST, far[FIRST]), *next_burst])
    assert (joined.refused, joined.meps) == ({UdpRefusal.OTHER_BURST: 1}, 2)
    assert joined.events(SECOND) == [*range(1000, 1016), *range(2000, 2016)]
    both = [sent(source, far[source]) for source in (FIRST, SECOND, FIRST)]
    agreed = join(joiner, [*ended, *both, *next_burst])
    assert agreed.refused == {UdpRefusal.OTHER_BURST: 1, UdpRefusal.LATE: 8}
    # A burst of one source alone, which began after a silence, gives way to an earlier one of another source.
    later = [step._replace(now_ns=FLUSH_NS) for step in next_burst]
    wrong = join(joiner, [*ended, sent(FIRST, far[FIRST], FLUSH_NS), *later[1:], later[0]])
    assert (wrong.refused, wrong.events(SECOND)[-16:]) == ({}, list(range(2000, 2016)))
    late = join(joiner, [*ended, sent(FIRST, far[FIRST], FLUSH_NS), sent(SECOND, packet(3, SECOND), FLUSH_NS)])
    assert late.refused == {UdpRefusal.LATE: 1}


def test_one_source_cannot_give_the_meps_of_the_others_wrong_events(joiner: Path) -> None:
    """The sources agree in the events of the first MEP. Then FIRST opens the second MEP with a wrong event."""
    packets = [sent(*each[::2]) for each in burst_of(8)]
    joined = join(joiner, [*packets[:8], sent(FIRST, packet(4, FIRST, first_event=5)), *packets[8:]])
    assert (joined.refused, joined.fragments) == ({UdpRefusal.MISMATCH: 1}, join(joiner, packets).fragments)
    # Event numbers may jump between MEPs: it costs the packets before two sources agree in the new numbers.
    jumped = [sent(source, packet(n, source, first_event=9000 + 4 * n)) for n in range(4, 8) for source in SOURCES]
    moved = join(joiner, [*packets[:8], *jumped, Step(1, FLUSH_NS)])
    assert (moved.refused, moved.events(SECOND)[16:]) == ({UdpRefusal.MISMATCH: 1}, list(range(9016, 9032)))


def test_a_burst_has_one_end_and_none_before_packets_of_its_source(joiner: Path) -> None:
    """A second end of FIRST must not stand for the end of SECOND."""
    end = DatagramFlags.END_OF_BURST
    steps = [
        *(sent(FIRST, packet(sequence, FIRST)) for sequence in (0, 1)),
        sent(FIRST, packet(0, FIRST, flags=end)),
        sent(FIRST, packet(3, FIRST, flags=end)),
        sent(FIRST, packet(2, FIRST, flags=end)),
        sent(SECOND, packet(0, SECOND)),
        sent(FIRST, packet(2, FIRST)),
    ]
    joined = join(joiner, steps)
    assert (joined.refused, joined.meps, joined.bursts) == ({UdpRefusal.MISMATCH: 2}, 0, [])
    # The other source is still awaited, and its part is complete with its own four packets.
    rest = [sent(SECOND, packet(n, SECOND, flags=end if n == 3 else NO_FLAGS)) for n in (1, 2, 3)]
    assert join(joiner, [*steps, *rest]).bursts == [(1, 8, 0, 2, 1)]


def test_sources_whose_burst_has_ended_are_neither_awaited_nor_missing(joiner: Path) -> None:
    """The burst of FIRST ends with packet 1, that of SECOND with packet 5, in the next MEP; no time passes."""
    end = DatagramFlags.END_OF_BURST
    first = [sent(FIRST, packet(n, FIRST, flags=end if n == 1 else NO_FLAGS)) for n in range(2)]
    second = [sent(SECOND, packet(n, SECOND, flags=end if n == 5 else NO_FLAGS)) for n in range(6)]
    for steps in ([*first, *second], [*second, *first]):
        joined = join(joiner, steps)
        assert (joined.meps, joined.missing, joined.refused) == (2, [0, 0], {})
        assert joined.bursts == [(1, 8, 0, 0, 2)]


def test_late_datagrams_of_an_ended_run_do_not_begin_it_again_until_it_is_opened(joiner: Path) -> None:
    run = [sent(*each[::2]) for each in burst_of(4, ends_run=True)]
    ended = [*run, Step(HAND_OVER, 0), Step(END_RUN, 0)]
    late = [sent(FIRST, packet(5, FIRST, burst=2))]
    other = [sent(*each[::2]) for each in burst_of(4, run=8)]
    joined = join(joiner, [*ended, *late, *other, *late])
    assert (joined.refused, joined.meps) == ({UdpRefusal.LATE: 2}, 2)
    again = join(joiner, [*ended, Step(REOPEN_RUNS, 0), *run])
    assert (again.refused, again.meps) == ({}, 2)


def test_a_lost_end_of_run_does_not_keep_the_next_run_out(joiner: Path) -> None:
    """The next run needs the first packet of a burst and a silence; the last MEP of the run before is closed."""
    begun = [sent(source, packet(n, source)) for n in range(2) for source in SOURCES]

    def then(now_ns: int) -> list[Step]:
        other = burst_of(4, run=8)
        packets = [other[0], *other]
        return [*begun, *(step for i, each in enumerate(packets) for step in (
            [sent(each[0], each[2], now_ns), Step(HAND_OVER, now_ns), Step(END_RUN, now_ns)] if i == 0
            else [sent(each[0], each[2], now_ns)]
        ))]  # fmt: skip

    joined = join(joiner, then(FLUSH_NS))
    assert (joined.refused, joined.meps) == ({UdpRefusal.FOREIGN_RUN: 1}, 2)
    assert joined.events(SECOND) == [*range(1000, 1008), *range(1000, 1016)]
    assert join(joiner, then(FLUSH_NS - 1)).refused == {UdpRefusal.FOREIGN_RUN: 9}
    # Another packet of the other run closes no MEP.
    assert join(joiner, [*begun, sent(FIRST, packet(1, FIRST, run=8), FLUSH_NS)]).meps == 0


def test_packets_of_a_run_that_is_left_are_counted_as_discarded(joiner: Path) -> None:
    packets = [sent(*each[::2]) for each in burst_of(6)[:-2]]
    assert join(joiner, [*packets, Step(LEAVE_RUN, 0)]).discarded == len(packets)
