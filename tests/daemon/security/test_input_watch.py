"""Which connections must end for unfinished messages, and which feeders stay."""

import pytest

from hltnode.daemon.common.vocabulary import ConnectionRefusal
from hltnode.daemon.security.input_watch import MEMORY_PER_PART, InputRules, InputWatch
from hltnode.daemon.security.received_input import UNPERMITTED_FRAMES, UNPERMITTED_NS, ReceivedInput

MIB = 1 << 20
LOOK_NS = 100_000_000
SECOND_NS = 1_000_000_000
RULES = InputRules(message_bytes=20 * MIB, total_bytes=100 * MIB, stalled_ns=10 * SECOND_NS, idle_ns=3600 * SECOND_NS)


class FakeFrame:
    """A frame of a connection."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def get(self, _option: int) -> int:
        return self.descriptor


class Wire:
    """Connections, the bytes read from each, and the clock."""

    def __init__(self, rules: InputRules = RULES) -> None:
        self.received = ReceivedInput()
        self.now_ns = 0
        self.watch = InputWatch(self.received, rules, 0)
        self.read: dict[int, int] = {}

    def opened(self, descriptor: int) -> None:
        self.watch.opened(descriptor)
        self.read[descriptor] = 100  # greeting and handshake

    def delivered(self, descriptor: int, nbytes: int) -> bool:
        return self.received.take(FakeFrame(descriptor), nbytes, 1)  # type: ignore[arg-type]

    def look(self, *, was_empty: bool = True, after_ns: int = LOOK_NS) -> list[tuple[int, ConnectionRefusal]]:
        if was_empty:
            self.received.tally.empty()
        self.now_ns += after_ns
        refused = self.watch.look(self.now_ns, self.read)
        for descriptor, _ in refused:
            self.watch.closed(descriptor)
            del self.read[descriptor]
        return refused

    def looks(self, n: int) -> list[tuple[int, ConnectionRefusal]]:
        return [refusal for _ in range(n) for refusal in self.look()]


class Frames:
    """Frames of one connection, a tenth of a second apart."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.n = 0
        wire.opened(7)

    def come(self, n: int, *, permitted: bool = False, step_ns: int = LOOK_NS) -> list[tuple[int, ConnectionRefusal]]:
        """The connections that must end after these frames."""
        for _ in range(n):
            self.wire.delivered(7, 100)
            self.n += 1
            self.wire.now_ns += step_ns
            if not permitted:
                self.wire.received.tally.unpermitted(7, self.n, self.wire.now_ns)
        return self.wire.look(after_ns=0)


def test_frames_without_permission_in_a_row_end_their_connection() -> None:
    frames = Frames(Wire())
    assert frames.come(UNPERMITTED_FRAMES - 1) == []
    assert frames.come(1) == [(7, ConnectionRefusal.UNPERMITTED)]


def test_a_permitted_frame_between_them_keeps_the_connection() -> None:
    frames = Frames(Wire())
    for _ in range(10):
        assert frames.come(UNPERMITTED_FRAMES - 1) == []
        assert frames.come(1, permitted=True) == []
    assert frames.come(UNPERMITTED_FRAMES) != []


def test_a_burst_without_permission_is_no_offence_before_its_time_is_over() -> None:
    frames = Frames(Wire())
    step_ns = UNPERMITTED_NS // (10 * UNPERMITTED_FRAMES)
    assert frames.come(10 * UNPERMITTED_FRAMES, step_ns=step_ns) == []
    assert frames.come(UNPERMITTED_FRAMES, step_ns=step_ns) == [(7, ConnectionRefusal.UNPERMITTED)]


def test_a_new_connection_with_the_same_descriptor_starts_a_new_row() -> None:
    frames = Frames(Wire())
    assert frames.come(UNPERMITTED_FRAMES - 1) == []
    frames.wire.watch.closed(7)
    frames.wire.opened(7)
    assert frames.come(UNPERMITTED_FRAMES - 1) == []
    assert frames.come(1) != []


def test_a_feeder_whose_frames_are_received_in_time_is_never_refused() -> None:
    wire = Wire()
    wire.opened(7)
    for second in range(1000):
        for _ in range(10 if second % 100 else 0):
            wire.delivered(7, MIB)
            wire.read[7] += MIB + 9
        wire.read[7] += 11  # a heartbeat
        assert wire.looks(10) == []
    assert wire.watch.held < 4096


@pytest.mark.parametrize("is_second", [False, True], ids=["first connection", "second with this descriptor"])
def test_frames_received_before_the_connection_was_reported_are_not_unfinished(is_second: bool) -> None:
    wire = Wire()
    if is_second:
        wire.opened(7)
        wire.delivered(7, MIB)
        wire.read[7] += MIB + 9
        wire.look()
        wire.watch.closed(7)
    for _ in range(30):
        wire.delivered(7, MIB)
    wire.opened(7)
    wire.read[7] += 30 * (MIB + 9)
    assert wire.looks(20) == []
    assert wire.watch.held < 4096


def test_frames_of_the_last_connection_hide_no_unfinished_message_of_the_next_one() -> None:
    wire = Wire()
    wire.opened(7)
    for _ in range(30):
        wire.delivered(7, MIB)  # since the last check
    wire.watch.closed(7)
    wire.opened(7)
    assert wire.look() == []
    wire.read[7] += 20 * MIB + 1
    assert wire.looks(3) == [(7, ConnectionRefusal.UNFINISHED)]


def test_a_message_above_the_size_limit_ends_its_connection_even_with_small_parts() -> None:
    wire = Wire()
    wire.opened(7)
    assert wire.looks(3) == []
    wire.read[7] += 20 * MIB + 1
    assert wire.looks(3) == [(7, ConnectionRefusal.UNFINISHED)]


def test_a_large_frame_on_a_slow_network_must_arrive_within_the_time_limit() -> None:
    wire = Wire()
    wire.opened(7)
    for _ in range(90):
        wire.read[7] += 16 * MIB // 100
        assert wire.look() == []
    assert wire.looks(20) == [(7, ConnectionRefusal.STALLED)]


def test_frames_that_wait_for_a_busy_node_end_no_connection() -> None:
    wire = Wire()
    wire.opened(7)
    wire.read[7] += 90 * MIB
    for _ in range(3000):
        assert wire.look(was_empty=False) == []


@pytest.mark.parametrize("mib", [1, 30])
def test_frames_that_come_after_a_long_silence_may_wait_for_a_busy_node(mib: int) -> None:
    wire = Wire()
    wire.opened(7)
    wire.delivered(7, MIB)
    wire.read[7] += MIB
    # The feeder has no credit for the next MEP.
    assert not wire.looks(300)
    wire.read[7] += mib * MIB
    assert not wire.look()
    wire.delivered(7, mib * MIB)
    assert not wire.looks(300)
    # An unfinished frame still ends its connection.
    wire.read[7] += mib * MIB
    assert wire.looks(120) == [(7, ConnectionRefusal.STALLED if mib == 1 else ConnectionRefusal.UNFINISHED)]


def test_a_pause_of_the_whole_node_ends_no_connection() -> None:
    wire = Wire()
    wire.opened(7)
    assert wire.looks(5) == []
    wire.read[7] += MIB
    assert wire.look(after_ns=7200 * SECOND_NS) == []
    wire.delivered(7, MIB)
    assert wire.looks(5) == []


def test_above_the_total_limit_the_largest_connections_end_first() -> None:
    wire = Wire()
    for descriptor in range(8):
        wire.opened(descriptor)
        wire.read[descriptor] += (10 + descriptor) * MIB
    # 10 + ... + 17 = 108 MiB
    assert wire.look() == [(7, ConnectionRefusal.UNFINISHED)]
    assert wire.looks(3) == []
    assert wire.watch.held < 100 * MIB


def test_small_frames_count_with_the_memory_that_each_uses() -> None:
    wire = Wire()
    wire.opened(7)
    wire.delivered(7, 32 * MIB)
    wire.read[7] += 32 * MIB + 9
    assert wire.look() == []
    for _ in range(1000):
        wire.delivered(7, 0)
    wire.read[7] += 2000 + 2 * (100 * MIB // MEMORY_PER_PART)
    assert wire.look(was_empty=False) == [(7, ConnectionRefusal.UNFINISHED)]


def test_queued_messages_of_a_refused_connection_are_dropped_until_its_descriptor_is_reused() -> None:
    wire = Wire()
    wire.opened(7)
    wire.received.tally.refuse(7)
    assert not wire.delivered(7, 100)
    assert wire.delivered(8, 100)
    wire.opened(7)
    assert wire.delivered(7, 100)


def test_frames_of_an_earlier_connection_do_not_count_for_the_next_one() -> None:
    wire = Wire()
    wire.opened(7)
    wire.watch.closed(7)
    wire.opened(7)
    wire.delivered(7, 50 * MIB)  # queued messages of the first connection
    assert wire.look() == []
    wire.read[7] += 20 * MIB + 4096
    assert wire.looks(3) == [(7, ConnectionRefusal.UNFINISHED)]


def test_a_connection_with_heartbeats_and_no_messages_is_closed() -> None:
    wire = Wire(InputRules(message_bytes=MIB, total_bytes=MIB, stalled_ns=SECOND_NS, idle_ns=60 * SECOND_NS))
    wire.opened(7)
    for _ in range(60):
        assert wire.looks(10) == []
        wire.read[7] += 11
    assert wire.looks(10) == [(7, ConnectionRefusal.IDLE)]


@pytest.mark.parametrize("n", [1, 100])
def test_the_connection_that_explains_growth_of_the_heap_is_found(n: int) -> None:
    wire = Wire()
    for descriptor in range(n):
        wire.opened(descriptor)
        wire.delivered(descriptor, MIB)
        wire.read[descriptor] += MIB + 9
    wire.opened(n)
    wire.read[n] += 4 * MIB
    assert wire.looks(7) == []
    assert [descriptor for descriptor, _ in wire.watch.amplified()] == [n]
    assert wire.watch.amplified()[0][1] == pytest.approx(4 * MIB * 33, rel=0.01)
    assert wire.watch.is_tense


def test_growth_of_the_heap_without_input_of_peers_ends_no_connection() -> None:
    wire = Wire()
    wire.opened(7)
    wire.delivered(7, MIB)
    wire.read[7] += 9 * MIB
    assert wire.look() == []
    assert wire.watch.amplified() == []
    assert not wire.watch.is_tense


def test_messages_that_a_closed_connection_left_count_until_the_queue_was_empty_twice() -> None:
    wire = Wire()
    wire.opened(7)
    wire.read[7] += MIB
    wire.look()
    before = wire.watch.memory
    assert before > MIB
    assert wire.watch.closed(7) == before
    assert wire.watch.memory == before
    wire.received.tally.empty()
    assert wire.watch.memory == before
    wire.received.tally.empty()
    assert wire.watch.memory == 0


def test_a_closed_connection_that_held_little_leaves_nothing() -> None:
    wire = Wire()
    wire.opened(7)
    wire.look()
    wire.watch.closed(7)
    assert wire.watch.memory == 0
