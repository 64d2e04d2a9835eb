"""A feeder's window and a simulated node, over a network that loses any message in both directions.

For any losses: no frame is sent without credit, frames that the node has are not sent again and again, and all MEPs are
acknowledged soon after the network delivers again.
"""

from collections import Counter, deque
from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from hltnode.client.send_window import MAX_RESENDS, RETRY_NS, SendWindow
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.feeder_messages import Ack, Credit, Held, Nack, Welcome
from hltnode.protocol.transport.mep_ranges import MepRanges, as_ranges
from tests.client.sending import send_next

SOURCES = (1, 2, 3)
MEPS = 24
PLACES = 6
SECOND = 10**9
MEP_TIMEOUT_NS = SECOND * 3 // 4
# All MEPs pass through the places of the node in this time, each after the longest retry delay of the window.
END_SECONDS = 200

Message = Ack | Credit | Held | Nack | Welcome


class SimulatedNode:
    """Builds MEPs of all sources in few places. A restart keeps finished MEPs and loses held fragments."""

    def __init__(self) -> None:
        self.finished = MepRanges()
        self.incomplete: set[int] = set()
        self.restart()

    def restart(self) -> None:
        self.open: dict[int, set[int]] = {}
        self.opened_ns: dict[int, int] = {}
        self.closed: dict[int, set[int]] = {}

    @property
    def credits(self) -> Credit:
        return Credit(1, PLACES)

    def answer_to_hello(self, first_mep: int) -> list[Message]:
        done = tuple(self.finished.ranges(first_mep))
        whole = [mep for mep, sources in self.open.items() if len(sources) == len(SOURCES)]
        held = tuple(as_ranges([*whole, *self.closed]))
        acks: list[Message] = [Ack(1, done)] if done else []
        return [*acks, *([Held("s", 1, held)] if held else []), Welcome("n", "s", 1, 1, 1), self.credits]

    def frame(self, now_ns: int, mep: int, source: int, damaged: bool) -> Nack | None:
        """Take a fragment; returns the refusal, if any."""
        if damaged:
            return Nack(1, source, mep, RejectReason.BAD_CRC, True)
        if mep in self.finished or source in self.open.get(mep, ()) or source in self.closed.get(mep, ()):
            return Nack(1, source, mep, RejectReason.DUPLICATE, False)
        if mep in self.closed:
            return Nack(1, source, mep, RejectReason.LATE, False)
        if mep not in self.open:
            if len(self.open) + len(self.closed) >= PLACES:
                return Nack(1, source, mep, RejectReason.NO_CREDIT, True)
            self.open[mep] = set()
            self.opened_ns[mep] = now_ns
        self.open[mep].add(source)
        if len(self.open[mep]) == len(SOURCES):
            self._close(mep)
        return None

    def _close(self, mep: int) -> None:
        self.closed[mep] = self.open.pop(mep)

    def time_out(self, now_ns: int) -> None:
        for mep in [mep for mep in self.open if now_ns - self.opened_ns[mep] > MEP_TIMEOUT_NS]:
            self.incomplete.add(mep)
            self._close(mep)

    def finish(self) -> Ack | None:
        """Finish closed MEPs."""
        if not self.closed:
            return None
        done = MepRanges((mep, mep) for mep in self.closed)
        for first, last in done.ranges():
            self.finished.add(first, last)
        self.closed.clear()
        return Ack(1, tuple(done.ranges()))


class LossyLink(RuleBasedStateMachine):
    """Carries frames one way and messages the other way; the test decides on each loss."""

    @initialize(
        base=st.sampled_from((0, 1000, 2**32 - 7, 2**63 - 100)), steps=st.lists(st.integers(1, 3), min_size=MEPS)
    )
    def begin(self, base: int, steps: list[int]) -> None:
        self.now_ns = 0
        self.node = SimulatedNode()
        self.window = SendWindow()
        self.ids = deque(base + sum(steps[:i]) for i in range(MEPS))
        self.all = list(self.ids)
        self.to_feeder: deque[Message] = deque()
        self.begun: set[int] = set()
        """MEPs with sent fragments since the last restart and without acknowledgement."""
        self.answered: Counter[tuple[int, int]] = Counter()
        """Number of fragments sent again after the node had answered that it has the MEP."""
        self.window.restart()
        self.window.credit(PLACES)

    @rule()
    def a_mep_is_produced(self) -> None:
        if self.ids:
            mep = self.ids.popleft()
            self.window.add(mep, {source: b"%d %d" % (mep, source) for source in SOURCES})

    @rule(outcomes=st.lists(st.sampled_from(("arrives", "arrives", "is lost", "is damaged")), max_size=3 * PLACES))
    def frames_are_sent(self, outcomes: list[str]) -> None:
        for outcome in outcomes:
            if (frame := self.send()) is None:
                return
            self.arrive(frame, outcome)

    @rule()
    def all_that_credits_allow_is_lost(self) -> None:
        while self.send() is not None:
            pass

    def send(self) -> tuple[int, int] | None:
        frame = send_next(self.window, self.now_ns)
        if frame is None:
            return None
        mep, source = map(int, bytes(frame).split())
        assert mep in self.begun or len(self.begun) < self.window.limit, "sent without a credit"
        self.begun.add(mep)
        if (mep, source) in self.answered:
            self.answered[mep, source] += 1
        return mep, source

    def arrive(self, frame: tuple[int, int], outcome: str) -> None:
        if outcome != "is lost":
            nack = self.node.frame(self.now_ns, *frame, damaged=outcome == "is damaged")
            if nack is not None:
                self.to_feeder.append(nack)

    @rule(lost=st.lists(st.booleans(), max_size=20))
    def messages_of_the_node_arrive(self, lost: list[bool]) -> None:
        for is_lost in lost:
            if self.to_feeder:
                message = self.to_feeder.popleft()
                if not is_lost:
                    self.take(message)

    def take(self, message: Message) -> None:
        match message:
            case Ack():
                for first, last in message.meps:
                    self.window.acknowledge(first, last)
                self.begun = {mep for mep in self.begun if mep in self.window}
            case Credit():
                self.window.credit(message.meps)
            case Held():
                for first, last in message.meps:
                    self.window.hold(first, last)
                    for mep in range(first, last + 1):
                        for source in SOURCES:
                            self.answered[mep, source] += 0
            case Welcome():
                self.window.queue_lost(self.now_ns)
            case Nack():
                if message.reason in (RejectReason.DUPLICATE, RejectReason.LATE):
                    for source in SOURCES:
                        self.answered[message.mep, source] += 0
                self.window.refuse(self.now_ns, message)
                if message.reason is RejectReason.NO_CREDIT:
                    self.begun.discard(message.mep)
                self.begun = {mep for mep in self.begun if mep in self.window}

    @rule()
    def the_node_writes_a_batch(self) -> None:
        if (ack := self.node.finish()) is not None:
            self.to_feeder.append(ack)

    @rule(lost=st.booleans())
    def the_feeder_says_hello(self, lost: bool) -> None:
        if not lost:
            self.to_feeder.extend(self.node.answer_to_hello(self.window.first_unacknowledged))

    @rule(ns=st.sampled_from((10**6, RETRY_NS, SECOND, 5 * SECOND)))
    def time_passes(self, ns: int) -> None:
        self.now_ns += ns
        self.node.time_out(self.now_ns)
        self.window.retry(self.now_ns)

    @rule(is_another_session=st.booleans(), stops_first=st.booleans())
    def the_connection_is_lost(self, is_another_session: bool, stops_first: bool) -> None:
        self.to_feeder.clear()
        if is_another_session:
            self.node.restart()
        if stops_first:
            self.window.stop()
            assert send_next(self.window, self.now_ns) is None
        self.window.restart()
        self.begun.clear()
        self.answered.clear()
        self.take(self.node.credits)

    @invariant()
    def what_the_node_has_is_not_sent_on_and_on(self) -> None:
        # Frames queued at the time of the answer may still leave, and fragments that were refused for other reasons.
        assert all(times <= 1 + MAX_RESENDS for times in getattr(self, "answered", {}).values())

    def teardown(self) -> None:
        if not hasattr(self, "window"):
            return
        while self.ids:
            self.a_mep_is_produced()
        for _ in range(END_SECONDS * SECOND // RETRY_NS):
            while (frame := self.send()) is not None:
                self.arrive(frame, "arrives")
            self.the_node_writes_a_batch()
            if self.now_ns // SECOND != (self.now_ns + RETRY_NS) // SECOND:
                self.the_feeder_says_hello(lost=False)
            self.messages_of_the_node_arrive([False] * len(self.to_feeder))
            if not self.window.unacknowledged:
                break
            self.time_passes(RETRY_NS)
        assert self.window.unacknowledged == 0
        finished = {mep for mep in self.all if mep in self.node.finished}
        refused = self.window.refused
        assert finished == set(self.all) or refused, "a MEP is neither finished nor refused"


TestLossyLink = LossyLink.TestCase
TestLossyLink.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ten_thousand_histories_of_a_lossy_link_end_with_everything_acknowledged() -> None:
    run_state_machine_as_test(LossyLink, settings=settings(max_examples=10_000, stateful_step_count=60, deadline=None))


@pytest.mark.parametrize("held_seconds", [10, 600])
def test_what_a_node_holds_for_long_is_not_sent_again(held_seconds: int) -> None:
    link = LossyLink()
    link.begin(2**63 - 100, [1] * MEPS)
    for _ in range(MEPS):
        link.a_mep_is_produced()
    frames = 0
    send: Callable[[], tuple[int, int] | None] = link.send
    for _ in range(held_seconds):
        while (frame := send()) is not None:
            frames += 1
            link.arrive(frame, "arrives")
        link.the_feeder_says_hello(lost=False)
        link.messages_of_the_node_arrive([False] * len(link.to_feeder))
        link.time_passes(SECOND)
    assert frames == PLACES * len(SOURCES)
    link.teardown()
