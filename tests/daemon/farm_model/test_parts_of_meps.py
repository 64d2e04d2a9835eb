"""Two parts of a MEP stand for all of its fragments: until a refusal the builder closes and seals alike."""

from itertools import takewhile
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


def actions(n_sources: int, part_bytes: list[int], arrivals: list[tuple[int, int, int]], slots: int) -> list[Any]:
    """What a builder does: (time, effect) of all but places. arrivals: (time, MEP, source), by time."""
    limits = SlotLimits(
        input_bytes=1 << 16, events=64, meps=MEPS_OF_A_SLOT, fragments=MEPS_OF_A_SLOT * n_sources, mep_bytes=4096
    )
    builder = EventBuilder(
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
    found: list[Any] = []
    free: list[tuple[int, int, tuple[int, ...]]] = []

    def handle(now_ns: int, stimulus: Stimulus) -> None:
        for effect in builder.handle(now_ns, stimulus):
            match effect:
                case CloseMep(record):
                    found.append((now_ns, "close", record.mep, record.close_reason, record.slot))
                case SealSlot(batch):
                    found.append((now_ns, "seal", batch.slot, [record.mep for record in batch.meps]))
                    free.append((now_ns + SERVICE_NS, batch.slot, tuple(record.mep for record in batch.meps)))
                case GrantCredit(_, meps):
                    found.append((now_ns, "credit", meps))
                case Reject():
                    found.append((now_ns, "reject", effect.mep, effect.reason))
                case Place():
                    pass

    handle(0, StartRun(1, tuple(range(n_sources)), 0, 8))
    left = list(arrivals)
    while left or free or builder.wake_ns < NEVER_NS:
        due = [
            (builder.wake_ns, 0),
            (free[0][0] if free else NEVER_NS, 1),
            (left[0][0] if left else NEVER_NS, 2),
        ]
        now_ns, kind = min(due)
        if kind == 0:
            handle(now_ns, Tick())
        elif kind == 1:
            _, slot, meps = free.pop(0)
            handle(now_ns, SlotAdvanced(slot, SlotState.RUN))
            handle(now_ns, SlotFreed(slot))
            handle(now_ns, MepsAcknowledged(meps))
        else:
            _, mep, source = left.pop(0)
            handle(now_ns, FragmentArrived(1, source, mep, part_bytes[source], mep * 8, 8))
    return found


def acts_before_refusals(found: list[Any]) -> list[Any]:
    """Closed MEPs and sealed slots, with their times, before the first refusal.

    The times of credits are left out: each fragment asks for a tick within 5 ms, and ticks announce small numbers of
    credits.
    """
    return [entry for entry in takewhile(lambda entry: entry[1] != "reject", found) if entry[1] != "credit"]


def credits_of(found: list[Any]) -> int:
    """The level of credits at the end."""
    return int([entry[2] for entry in found if entry[1] == "credit"][-1])


@settings(max_examples=150, deadline=None)
@given(
    n_sources=st.integers(2, 6),
    starts=st.lists(st.integers(1, 60_000_000), min_size=1, max_size=8, unique=True),
    spreads=st.lists(st.integers(1, 10_000_000), min_size=8, max_size=8),
    data=st.data(),
    slots=st.integers(2, 4),
)
def test_the_builder_closes_and_seals_alike_with_two_parts_and_all_fragments(
    n_sources: int, starts: list[int], spreads: list[int], data: st.DataObject, slots: int
) -> None:
    all_fragments, parts = [], []
    for mep, (begin, spread) in enumerate(zip(sorted(starts), spreads, strict=False)):
        order = data.draw(st.permutations(range(n_sources)))
        between = sorted(
            data.draw(st.lists(st.integers(begin, begin + spread), min_size=n_sources - 2, max_size=n_sources - 2))
        )
        times = [begin, *between, begin + spread]
        all_fragments += [(at, mep, source) for at, source in zip(times, order, strict=True)]
        parts += [(begin, mep, 0), (begin + spread, mep, 1)]
    every = actions(n_sources, [FRAGMENT_BYTES] * n_sources, sorted(all_fragments, key=lambda each: each[0]), slots)
    two = actions(2, [FRAGMENT_BYTES, FRAGMENT_BYTES * (n_sources - 1)], sorted(parts, key=lambda each: each[0]), slots)
    every_acts, two_acts = acts_before_refusals(every), acts_before_refusals(two)
    if any(entry[1] == "reject" for entry in [*every, *two]):
        # A slot that becomes free between two fragments of a refused MEP takes a part of it: nothing holds afterwards.
        compared = min(len(every_acts), len(two_acts))
        assert two_acts[:compared] == every_acts[:compared]
    else:
        assert two_acts == every_acts
        assert credits_of(two) == credits_of(every)
