"""Which open MEPs are to be closed as they are, and why (no I/O, no clock)."""

from collections.abc import Collection, Iterable
from operator import attrgetter

from hltnode.daemon.common.vocabulary import CloseReason
from hltnode.daemon.event_building.awaited_feeders import AwaitedFeeders
from hltnode.daemon.event_building.slots import Slot
from hltnode.daemon.event_building.stimuli_and_effects import BuilderLimits, MepRecord

NEVER_NS = 1 << 62
# While MEPs are open their feeders are looked at this often, and the clock of the deadlines gets its reading.
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
    """The MEPs of `opened` (in the order of opening) whose time is up, oldest id first, each with its reason.

    A MEP that every missing source has overtaken is closed after `overtaken_ns`. One of which nothing has come for
    `mep_timeout_ns` is closed unless a feeder is awaited, and under slot pressure (`slots` given) the one that was
    opened first among those that keep complete ones from being computed, after `evict_ns`.
    """
    due: list[tuple[MepRecord, CloseReason]] = []
    quiet: list[MepRecord] = []
    youngest_first = sorted(opened, key=_mep_id, reverse=True)
    # `passed` are the sources that have delivered a younger MEP.
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
    victims = []
    if slots is not None and not due:
        victims = [mep for mep in opened if _may_be_evicted(now_ns, mep, slots, limits)]
    if quiet or victims:
        feeders.look(now_ns, youngest_first, complete_up_to)
        due += [(mep, CloseReason.TIMEOUT) for mep in quiet if not feeders.awaits(now_ns, mep)]
        due.sort(key=lambda each: each[0].mep)
        victim = next((mep for mep in victims if not feeders.awaits(now_ns, mep)), None)
        if victim is not None and not due:
            due.append((victim, CloseReason.EVICTED))
    else:
        due.reverse()
    return due


def _may_be_evicted(now_ns: int, mep: MepRecord, slots: list[Slot], limits: BuilderLimits) -> bool:
    slot = slots[mep.slot]
    return now_ns - mep.last_ns >= limits.evict_ns and slot.open_meps < len(slot.meps)


def look_ns(limits: BuilderLimits) -> int:
    """How often open MEPs are looked at: what has overtaken them is noticed by looking."""
    shortest = min(limits.mep_timeout_ns, limits.overtaken_ns, limits.evict_ns)
    return max(1, min(LONGEST_LOOK_NS, shortest // 4))


def next_deadline_ns(
    now_ns: int, filling: Iterable[Slot], opened: Collection[MepRecord], limits: BuilderLimits, *, has_pressure: bool
) -> int:
    """The next time at which a slot or an open MEP may be due; what is overdue by now waits for a change."""
    times = [slot.deadline_ns for slot in filling]
    if opened:
        times.append(now_ns + look_ns(limits))
        last_ns = [mep.last_ns for mep in opened]
        times += [last + limits.mep_timeout_ns for last in last_ns]
        if has_pressure:
            times += [last + limits.evict_ns for last in last_ns]
        overtaken = (mep.overtaken_ns for mep in opened)
        times += [since + limits.overtaken_ns for since in overtaken if since is not None]
    return min((due for due in times if due > now_ns), default=NEVER_NS)
