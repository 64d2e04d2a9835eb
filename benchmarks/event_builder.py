"""The core of the event builder: fragments per second of processor time, `place_for` and `fragment_copied` for each.

Nothing is received and nothing copied: this is the state machine alone, with a tick in every hundredth MEP and slots
freed at once. The baseline finds a MEP in a dictionary and sets a bit of a mask.
"""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.measure import Result, alternating_medians
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.slots import SlotLimits, SlotPool
from hltnode.daemon.event_building.stimuli_and_effects import (
    AcknowledgedBelow,
    BuilderLimits,
    MepsAcknowledged,
    Place,
    SealSlot,
    SlotFreed,
    StartRun,
    Tick,
)
from hltnode.daemon.monitoring.counters import Counters

KIB = 1024
FRAGMENTS = 400_000
SOURCES = (8, 32, 128)
EVENTS_PER_MEP = 64
FRAGMENT_BYTES = 1000
RUN = 7
RUNS = 5
MS = 1_000_000


def make_builder(sources: range) -> EventBuilder:
    """A builder in a run of these sources, with slots of 64 MEPs."""
    mep_bytes = len(sources) * KIB
    limits = SlotLimits(input_bytes=64 * mep_bytes, events=1 << 16, meps=1024, fragments=1 << 16, mep_bytes=mep_bytes)
    builder = EventBuilder(
        SlotPool(3, limits),
        BuilderLimits(
            mep_timeout_ns=750 * MS,
            feeder_timeout_ns=1000 * MS,
            overtaken_ns=250 * MS,
            evict_ns=100 * MS,
            flush_deadline_ns=20 * MS,
            closed_ring=65536,
        ),
        Counters(),
    )
    builder.handle(0, StartRun(RUN, tuple(sources), 0, EVENTS_PER_MEP))
    return builder


def build(n_sources: int) -> float:
    """Fragments per second, two MEPs open at a time."""
    sources = range(4096, 4096 + n_sources)
    builder = make_builder(sources)
    place_for, copied = builder.place_for, builder.fragment_copied
    n_meps = FRAGMENTS // n_sources & ~1
    now_ns = 0
    begin = time.process_time()
    for pair in range(0, n_meps, 2):
        for source in sources:
            for mep in (pair, pair + 1):
                now_ns += 1000
                first_event = mep * EVENTS_PER_MEP
                place = place_for(now_ns, RUN, source, mep, FRAGMENT_BYTES, first_event, EVENTS_PER_MEP)
                if not isinstance(place, Place):
                    raise RuntimeError(f"MEP {mep}, source {source}: {place}")
                for effect in copied(now_ns, place):
                    if type(effect) is SealSlot:
                        builder.handle(now_ns, SlotFreed(effect.batch.slot))
                        builder.handle(now_ns, MepsAcknowledged(tuple(mep.mep for mep in effect.batch.meps)))
        if pair % 100 == 0:
            builder.handle(now_ns, AcknowledgedBelow(pair))
            builder.handle(now_ns, Tick())
    elapsed = time.process_time() - begin
    if builder.counters.fragments_built != n_meps * n_sources:
        raise RuntimeError(f"{builder.counters.fragments_built} of {n_meps * n_sources} fragments built")
    return n_meps * n_sources / elapsed


def bare(n_sources: int) -> float:
    """The same loop with a dictionary of masks."""
    masks: dict[int, int] = {}
    n_meps = FRAGMENTS // n_sources & ~1
    everything = (1 << n_sources) - 1
    begin = time.process_time()
    for pair in range(0, n_meps, 2):
        for source in range(n_sources):
            for mep in (pair, pair + 1):
                mask = masks.get(mep, 0) | 1 << source
                masks[mep] = mask
                if mask == everything:
                    del masks[mep]
    return n_meps * n_sources / (time.process_time() - begin)


def run(_shared: Path) -> Iterator[Result]:
    """Measure MEPs of few and of many sources."""
    for n_sources in SOURCES:
        core, masks = alternating_medians(partial(build, n_sources), partial(bare, n_sources), RUNS)
        baseline = f"a dictionary of masks: {masks:,.0f}, in turn"
        yield Result(f"builder core, {n_sources} sources", core, "fragments/s", baseline, core / masks)
