"""Two parts of a MEP stand for all of its fragments: with the same ticks, until a refusal, effects are the same."""

from collections import deque
from operator import itemgetter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hltnode.daemon.common.vocabulary import SlotState
from hltnode.daemon.event_building.deadlines import NEVER_NS
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.slots import SlotLimits, SlotPool
from hltnode.daemon.event_building.stimuli_and_effects import (
    BuilderLimits,
    CloseMep,
    FragmentArrived,
    GrantCredit,
    MepsAcknowledged,
    Place,
    Reject,
    SealSlot,
    SlotAdvanced,
    SlotFreed,
    StartRun,
    Stimulus,
    Tick,
)
from hltnode.daemon.monitoring.counters import Counters

FRAGMENT_BYTES = 16
SERVICE_NS = 30_000_000
MEPS_OF_A_SLOT = 3


class Built:
    """A builder, what it does, and the slots that its back end has. Of effects, places are left out."""

    def __init__(self, n_sources: int, slots: int) -> None:
        limits = SlotLimits(
            input_bytes=1 << 16, events=64, meps=MEPS_OF_A_SLOT, fragments=MEPS_OF_A_SLOT * n_sources, mep_bytes=4096
        )
        self.builder = EventBuilder(
            SlotPool(slots, limits),
            BuilderLimits(
                mep_timeout_ns=1 << 40,
                feeder_timeout_ns=1 << 40,
                overtaken_ns=1 << 40,
                evict_ns=1 << 40,
                flush_deadline_ns=20_000_000,
                closed_ring=1024,
            ),
            Counters(),
        )
        self.found: list[Any] = []
        self._computed: list[tuple[int, int, tuple[int, ...]]] = []
        self.handle(0, StartRun(1, tuple(range(n_sources)), 0, 8))

    def handle(self, now_ns: int, stimulus: Stimulus) -> None:
        for effect in self.builder.handle(now_ns, stimulus):
            match effect:
                case CloseMep(record):
                    self.found.append((now_ns, "close", record.mep, record.close_reason, record.slot))
                case SealSlot(batch):
                    meps = tuple(record.mep for record in batch.meps)
                    self.found.append((now_ns, "seal", batch.slot, meps))
                    self._computed.append((now_ns + SERVICE_NS, batch.slot, meps))
                case GrantCredit(_, meps):
                    self.found.append((now_ns, "credit", meps))
                case Reject():
                    self.found.append((now_ns, "reject", effect.mep, effect.reason))
                case Place():
                    pass

    @property
    def computed_ns(self) -> int:
        """The time at which the back end returns its next batch."""
        return self._computed[0][0] if self._computed else NEVER_NS

    def take_back(self, now_ns: int) -> None:
        """The next batch is computed, written and acknowledged."""
        _, slot, meps = self._computed.pop(0)
        self.handle(now_ns, SlotAdvanced(slot, SlotState.RUN))
        self.handle(now_ns, SlotFreed(slot))
        self.handle(now_ns, MepsAcknowledged(meps))


Arrival = tuple[int, int, int, int]
"""Time in ns, MEP, source, bytes."""


def run_together(builders: list[Built], arrivals: list[list[Arrival]]) -> None:
    """Run builders with arrivals of their own. All tick as soon as one of them asks for a tick."""
    left = [deque(sorted(each, key=itemgetter(0))) for each in arrivals]
    while True:
        wake_ns = min(built.builder.wake_ns for built in builders)
        computed_ns = min(built.computed_ns for built in builders)
        now_ns = min(wake_ns, computed_ns, *(each[0][0] for each in left if each))
        if now_ns >= NEVER_NS:
            return
        for built, coming in zip(builders, left, strict=True):
            if now_ns == wake_ns:
                built.handle(now_ns, Tick())
            elif now_ns == computed_ns:
                if built.computed_ns == now_ns:
                    built.take_back(now_ns)
            elif coming and coming[0][0] == now_ns:
                _, mep, source, size = coming.popleft()
                built.handle(now_ns, FragmentArrived(1, source, mep, size, mep * 8, 8))


def first_refusal_ns(found: list[Any]) -> int:
    return next((int(now_ns) for now_ns, kind, *_ in found if kind == "reject"), NEVER_NS)


def until_refusal(found: list[Any]) -> list[Any]:
    """The acts up to the first refusal, included."""
    refusals = [place for place, entry in enumerate(found) if entry[1] == "reject"]
    return found[: refusals[0] + 1] if refusals else found


def closes_before(found: list[Any], end_ns: int) -> list[Any]:
    """Time, MEP and reason of the closed MEPs."""
    return [(now_ns, *rest[:2]) for now_ns, kind, *rest in found if kind == "close" and now_ns < end_ns]


meps_of_fragments = st.integers(2, 6).flatmap(
    lambda n_sources: st.tuples(
        st.just(n_sources),
        st.lists(
            st.tuples(
                st.integers(1, 60_000_000),
                st.integers(1, 10_000_000),
                st.permutations(range(n_sources)),
                st.lists(st.floats(0.0, 1.0), min_size=n_sources - 2, max_size=n_sources - 2),
            ),
            min_size=1,
            max_size=8,
            unique_by=itemgetter(0),
        ),
    )
)
"""Sources, and for each MEP its begin, its duration in ns, the order of its fragments, and where those between lie."""


def fragments_and_parts(n_sources: int, meps: list[Any]) -> tuple[list[Arrival], list[Arrival]]:
    """All fragments of the MEPs, and the two parts that stand for them."""
    fragments, parts = [], []
    for mep, (begin, spread, order, between) in enumerate(sorted(meps)):
        times = [begin, *sorted(begin + int(place * spread) for place in between), begin + spread]
        fragments += [(at, mep, source, FRAGMENT_BYTES) for at, source in zip(times, order, strict=True)]
        parts += [(begin, mep, 0, FRAGMENT_BYTES), (begin + spread, mep, 1, FRAGMENT_BYTES * (n_sources - 1))]
    return fragments, parts


@settings(max_examples=150, deadline=None)
@given(meps=meps_of_fragments, slots=st.integers(2, 4))
def test_with_the_same_ticks_two_parts_and_all_fragments_have_the_same_effects(meps: Any, slots: int) -> None:
    """Credits, closed MEPs, sealed slots and the first refusal, with their times.

    Behind it nothing holds: a slot that becomes free between two fragments of a refused MEP takes a part of it.
    """
    n_sources, of = meps
    every, two = Built(n_sources, slots), Built(2, slots)
    run_together([every, two], list(fragments_and_parts(n_sources, of)))
    assert until_refusal(two.found) == until_refusal(every.found)


@settings(max_examples=150, deadline=None)
@given(meps=meps_of_fragments, slots=st.integers(2, 4))
def test_whatever_the_ticks_two_parts_and_all_fragments_close_meps_at_the_same_times(meps: Any, slots: int) -> None:
    n_sources, of = meps
    fragments, parts = fragments_and_parts(n_sources, of)
    every, two = Built(n_sources, slots), Built(2, slots)
    run_together([every], [fragments])
    run_together([two], [parts])
    refused_ns = min(first_refusal_ns(every.found), first_refusal_ns(two.found))
    assert closes_before(two.found, refused_ns) == closes_before(every.found, refused_ns)


def test_a_credit_of_another_tick_decides_when_a_slot_is_sealed() -> None:
    """Fragments in between ask for ticks, and a tick grants few credits, which stay.

    Without them a tick comes before MEP 3 takes a free slot, and grants one credit more. So slot 1 waits for MEP 5,
    and is not sealed at its deadline.
    """
    begins_and_ends = [(6.8, 11.4), (10.3, 16.2), (18.4, 26.2), (22.1, 27.8), (23.7, 29.3), (49.0, 58.1)]
    meps = [(round(begin * 1e6), round((end - begin) * 1e6), (0, 1, 2), [0.3]) for begin, end in begins_and_ends]
    fragments, parts = fragments_and_parts(3, meps)
    every, two = Built(3, 3), Built(2, 3)
    run_together([every], [fragments])
    run_together([two], [parts])
    second_slots = [[entry[3] for entry in built.found if entry[1] == "seal"][1] for built in (every, two)]
    assert second_slots == [(3, 4), (3, 4, 5)]
    assert first_refusal_ns(every.found) == first_refusal_ns(two.found) == NEVER_NS
    assert closes_before(every.found, NEVER_NS) == closes_before(two.found, NEVER_NS)
