"""Which open MEPs must be closed incomplete, why, and when the next deadline passes (no I/O, no clock)."""

from collections.abc import Collection, Iterable
from operator import attrgetter

from hltnode.daemon.common.vocabulary import CloseReason
from hltnode.daemon.event_building.awaited_feeders import AwaitedFeeders
from hltnode.daemon.event_building.slots import Slot
from hltnode.daemon.event_building.stimuli_and_effects import BuilderLimits, MepRecord

NEVER_NS = 1 << 62
# Longest time between two checks of open MEPs. Each check also gives the clock of the deadlines a reading.
LONGEST_LOOK_NS = 25_000_000

_mep_id = attrgetter("mep")


def meps_to_close(
    now_ns: int,
    opened: Collection[MepRecord],
    slots: list[Slot] | None,
    feeders: AwaitedFeeders,
    limits: BuilderLimits,
    *,
    all_sources: int,
    complete_up_to: int,
) -> list[tuple[MepRecord, CloseReason]]:
    """The MEPs of `opened` (in the order of opening) that are due, by ascending id, each with its close reason.

    - overtaken: every missing source has sent a younger MEP, `overtaken_ns` ago.
    - timeout: no fragment came for `mep_timeout_ns`, and no feeder is awaited.
    - evicted: under slot pressure (`slots` given), the first-opened MEP that keeps closed MEPs of its slot from being
      computed, after `evict_ns` without a fragment.
    """
    due: list[tuple[MepRecord, CloseReason]] = []
    quiet: list[MepRecord] = []
    youngest_first = sorted(opened, key=_mep_id, reverse=True)
    # `passed` has a bit for each source that has sent a younger MEP.
    passed = 0
    for mep in youngest_first:
        sources = mep.sources
        if mep.sent_again:
            overtaken = False
        else:
            overtaken = mep.mep < complete_up_to or passed | sources == all_sources
            passed |= sources
        if not overtaken:
            mep.overtaken_ns = None
        elif mep.overtaken_ns is None:
            mep.overtaken_ns = now_ns
        if mep.overtaken_ns is not None and now_ns - mep.overtaken_ns >= limits.overtaken_ns:
            due.append((mep, CloseReason.OVERTAKEN))
        elif now_ns - mep.last_ns >= limits.mep_timeout_ns:
            quiet.append(mep)
    candidates = []
    if slots is not None and not due:
        candidates = [mep for mep in opened if _may_be_evicted(now_ns, mep, slots, limits)]
    if quiet or candidates:
        feeders.look(now_ns, youngest_first, complete_up_to)
        due += [(mep, CloseReason.TIMEOUT) for mep in quiet if not feeders.awaits(now_ns, mep)]
        due.sort(key=lambda each: each[0].mep)
        evicted = next((mep for mep in candidates if not feeders.awaits(now_ns, mep)), None)
        if evicted is not None and not due:
            due.append((evicted, CloseReason.EVICTED))
    else:
        due.reverse()
    return due


def _may_be_evicted(now_ns: int, mep: MepRecord, slots: list[Slot], limits: BuilderLimits) -> bool:
    slot = slots[mep.slot]
    return now_ns - mep.last_ns >= limits.evict_ns and slot.open_meps < len(slot.meps)


def look_ns(limits: BuilderLimits) -> int:
    """Time between two checks of open MEPs: only a check notices that a MEP is overtaken."""
    shortest = min(limits.mep_timeout_ns, limits.overtaken_ns, limits.evict_ns)
    return max(1, min(LONGEST_LOOK_NS, shortest // 4))


def next_deadline_ns(
    now_ns: int,
    filling: Iterable[Slot],
    opened: Collection[MepRecord],
    limits: BuilderLimits,
    look: int,
    *,
    has_pressure: bool,
) -> int:
    """The next time at which a slot or an open MEP becomes due. Overdue ones wait for a change, not for a time.

    look: the time between two checks of open MEPs, from `look_ns`.
    """
    soonest = NEVER_NS
    for slot in filling:
        if now_ns < slot.deadline_ns < soonest:
            soonest = slot.deadline_ns
    if not opened:
        return soonest
    soonest = min(soonest, now_ns + look)
    for mep in opened:
        last_ns = mep.last_ns
        if now_ns < last_ns + limits.mep_timeout_ns < soonest:
            soonest = last_ns + limits.mep_timeout_ns
        if has_pressure and now_ns < last_ns + limits.evict_ns < soonest:
            soonest = last_ns + limits.evict_ns
        if mep.overtaken_ns is not None and now_ns < mep.overtaken_ns + limits.overtaken_ns < soonest:
            soonest = mep.overtaken_ns + limits.overtaken_ns
    return soonest
