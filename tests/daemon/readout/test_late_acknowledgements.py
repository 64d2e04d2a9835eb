"""A node that answers and acknowledges late: feeders send only lost MEPs again."""

from collections.abc import Callable

import pytest

from hltnode.client.feeder import Feeder, FeederIdentity
from hltnode.client.silent_meps import OVERTAKEN_NS, UNHEARD_NS
from hltnode.daemon.event_building.stimuli_and_effects import FragmentArrived
from hltnode.daemon.readout.feeder_protocol import HELD_AFTER_NS
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.control_messages import ControlMessage
from hltnode.protocol.transport.feeder_messages import Held
from hltnode.protocol.transport.frame_header import decode_header
from tests.client.sending import send_next
from tests.client.test_feeder import RecordedConnection
from tests.daemon.fakes import synthetic_meps
from tests.daemon.manual_clock import ManualClock
from tests.daemon.readout.bench import EVENTS, RUN, SECOND, Bench

LATE_SECONDS = 60


class FedBench(Bench):
    """A bench of two feeders: a is a real, connected feeder; the test sends for b."""

    def __init__(self) -> None:
        super().__init__(feeders=2)
        self.clock = ManualClock()
        identity = FeederIdentity(name="a", run=RUN, sources=(1,), events_per_mep=EVENTS, max_fragment_bytes=1000)
        self.feeder = Feeder(RecordedConnection(), identity, clock=self.clock)
        self.hello("b")
        self.second()
        for mep in synthetic_meps(20, sources=(1,)):
            self.feeder.window.add(mep.mep, mep.frames(RUN, 0, (1,)))

    def second(self, arrives: Callable[[int], bool] = lambda _mep: True) -> None:
        """Advance by one second: both feeders send hellos, and a sends MEPs with credit; `arrives`: by MEP."""
        self.clock.now_ns += SECOND
        self.pass_time(SECOND)
        self.hello("b")
        self.pass_on(self.hello("a", first_mep=self.feeder.floor()))
        while (frame := send_next(self.feeder.window, self.clock.now_ns)) is not None:
            mep = decode_header(memoryview(frame), max_bytes=len(frame)).mep_id
            if arrives(mep):
                self.connections.sent.clear()
                self.counters.fragments_received += 1
                self.carry_out(self.builder.handle(self.now, FragmentArrived(RUN, 1, mep, 100, mep * EVENTS, EVENTS)))
                self.pass_on(self.connections.take(b"a"))

    def pass_on(self, messages: list[ControlMessage]) -> None:
        for message in messages:
            self.feeder.take(message)

    @property
    def duplicates(self) -> int:
        return self.counters.fragments_rejected[RejectReason.DUPLICATE]


def test_no_mep_is_sent_twice_to_a_node_that_waits_for_a_feeder_and_then_computes_for_long() -> None:
    bench = FedBench()
    for _ in range(LATE_SECONDS):
        bench.second()
    assert bench.builder.unacknowledged_meps()
    bench.finish_batches()
    bench.second()
    assert 0 < bench.feeder.window.unacknowledged < 20
    for _ in range(LATE_SECONDS):
        bench.second()
    assert bench.feeder.window.resent == 0
    assert bench.duplicates == 0


def test_no_mep_is_sent_twice_to_a_node_that_answers_and_reads_late() -> None:
    bench = FedBench()
    late: list[int] = []

    def arrives_late(mep: int) -> bool:
        late.append(mep)
        return False

    for _ in range(UNHEARD_NS // SECOND):
        bench.second(arrives_late)
    assert late
    assert len(late) == len(set(late))


@pytest.mark.parametrize("lost", [{0}, {2}, set(range(20))], ids=["the first", "the third", "all"])
def test_only_a_mep_lost_on_an_open_connection_is_sent_again(lost: set[int]) -> None:
    bench = FedBench()
    swallowed: set[int] = set()

    def arrives(mep: int) -> bool:
        is_lost = mep in lost - swallowed
        swallowed.add(mep)
        return not is_lost

    for _ in range(2 * (UNHEARD_NS + OVERTAKEN_NS) // SECOND):
        bench.second(arrives)
    for _ in range(200):
        if not bench.feeder.window.unacknowledged:
            break
        bench.second(arrives)
        bench.work()
        bench.pass_on(bench.hello("a", first_mep=bench.feeder.floor()))
    assert not bench.feeder.window.unacknowledged
    assert bench.feeder.window.resent == len(lost & swallowed)


def test_a_node_tells_a_feeder_which_meps_it_holds_for_long() -> None:
    bench = Bench(feeders=2)
    bench.hello("a")
    bench.hello("b")
    bench.send_mep(0, "a", "b")
    bench.send_mep(1, "a")
    bench.send_mep(2, "b")

    def held(name: str) -> list[ControlMessage]:
        return [message for message in bench.hello(name) if isinstance(message, Held)]

    assert held("a") == held("b") == []
    bench.now += HELD_AFTER_NS
    bench.send_mep(3, "a")
    assert held("a") == [Held("s", RUN, ((0, 1),))]
    assert held("b") == [Held("s", RUN, ((0, 0), (2, 2)))]
    for _ in range(6):
        bench.pass_time(SECOND)
        bench.finish_batches()
    assert held("a") == held("b") == []


def test_a_revoked_mep_is_not_reported_as_held_while_it_is_computed() -> None:
    bench = Bench()
    bench.hello(supervises=True)
    bench.send_mep(0)
    bench.send_mep(1)
    bench.pass_time(SECOND)
    bench.revoke("a", (0, 0))
    assert Held("s", RUN, ((1, 1),)) in bench.hello(supervises=True)
