"""The event builder: fragments become MEPs in slots. A state machine without I/O and without a clock.

`EventBuilder.handle(now_ns, stimulus)` returns the effects, which the caller carries out in their order. State changes
nowhere else. Counts go to the plain integers of `Counters`; `accounting` says whether every fragment has ended in
exactly one class.

`wake_ns` is when the next tick is needed: the caller sleeps until then, unless something comes. Any stimulus may lower
it, and only a tick raises it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from hltnode.daemon.common.vocabulary import CloseReason, SlotState
from hltnode.daemon.event_building.awaited_feeders import AwaitedFeeders
from hltnode.daemon.event_building.closed_meps import ClosedMeps
from hltnode.daemon.event_building.credit_window import CreditWindow
from hltnode.daemon.event_building.deadlines import meps_to_close
from hltnode.daemon.event_building.history import History
from hltnode.daemon.event_building.slots import ALIGNMENT, Slot, SlotPool
from hltnode.daemon.event_building.stimuli_and_effects import (
    Abandon,
    AcknowledgedBelow,
    AwaitFeeders,
    Batch,
    BuilderLimits,
    CloseMep,
    CloseOpen,
    Drain,
    Effect,
    EndRun,
    FragmentArrived,
    FrameDamaged,
    GrantCredit,
    MepRecord,
    MepsAcknowledged,
    Place,
    Reject,
    Resume,
    ReturnMeps,
    RevokeMeps,
    SealSlot,
    SetTimes,
    SlotAdvanced,
    SlotFreed,
    StartRun,
    Stimulus,
    Tick,
)
from hltnode.daemon.monitoring.counters import Counters
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.mep_ranges import MepRanges, as_ranges

# More credits are worth a message when they grow by this part of the places that back them: one message per MEP and
# feeder would cost more than the MEP itself when MEPs are small. A tick sends what is left.
_CREDIT_STEP = 4
_PADDING = ALIGNMENT - 1
_WHOLE = -ALIGNMENT
# Open MEPs in the text of the history: a full node may have thousands.
SHOWN_OPEN = 64
# What changes with a MEP and is in no hurry (small grants, the end of a run, dead time) is looked at this much later,
# so that a burst of MEPs costs one tick.
SOON_NS = 5_000_000
# While MEPs are open their feeders are looked at this often, and the clock of the deadlines gets its reading.
LONGEST_LOOK_NS = 25_000_000
NEVER_NS = 1 << 62
# Reasons that pass: there will be a place; a feeder that does not know of a revocation will get to know it, or the MEP
# has just been assigned to this node again.
_PASSING = frozenset({RejectReason.NO_CREDIT, RejectReason.REVOKED})


class EventBuilder:
    """Builds MEPs from fragments in the slots of a pool."""

    def __init__(self, pool: SlotPool, limits: BuilderLimits, counters: Counters) -> None:
        self.wake_ns = NEVER_NS
        """When a tick is needed if nothing else comes."""
        self.wake_lowered: Callable[[], None] = lambda: None
        """Called when `wake_ns` has become earlier, other than by a tick."""
        self.pool = pool
        self.history = History()
        self.counters = counters
        self.run: int | None = None
        self.starts = 0
        """Runs that were started, those counted again that were taken up again."""
        self.sources: tuple[int, ...] = ()
        self.open: dict[int, MepRecord] = {}
        self.window = CreditWindow()
        self.draining = False
        self.closed = False
        self._gathered: set[int] = set()
        self._limits = limits
        self._look_ns = _look_ns(limits)
        self._settled = ClosedMeps(limits.closed_ring)
        self._mep_bytes = pool.limits.mep_bytes
        self._slots = pool.slots
        self._feeders = AwaitedFeeders(limits.feeder_timeout_ns)
        self._column_of: dict[int, int] = {}
        self._all_sources = 0
        self._events_per_mep = 1
        self._places_of_a_slot = 0
        self._sent_limit = 0
        self._complete_up_to = -1
        self._refused_up_to = -1
        self._last_opened = -1
        self._is_pressure_known = False
        self._handlers: dict[type, Callable[[int, Any], list[Effect]]] = {
            FragmentArrived: self._fragment_arrived,
            Tick: self._tick,
            AcknowledgedBelow: self._acknowledged_below,
            FrameDamaged: self._frame_damaged,
            SlotAdvanced: self._slot_advanced,
            SlotFreed: self._slot_freed,
            MepsAcknowledged: self._meps_acknowledged,
            StartRun: self._start_run,
            AwaitFeeders: self._await_feeders,
            Drain: self._drain,
            Resume: self._resume,
            SetTimes: self._set_times,
            EndRun: self._end_run,
            CloseOpen: self._close_open,
            Abandon: self._abandon,
            RevokeMeps: self._revoke_meps,
            ReturnMeps: self._return_meps,
        }

    def handle(self, now_ns: int, stimulus: Stimulus) -> list[Effect]:
        """Take one stimulus; returns the effects in the order in which they must be carried out."""
        kind = type(stimulus)
        effects = self._handlers[kind](now_ns, stimulus)
        if kind is Tick:
            self.wake_ns = self._next_wake_ns(now_ns)
        else:
            self._look_soon(now_ns)
        # Fragments are noted by `mep_complete` and `reject`.
        if kind is not FragmentArrived and (effects or kind is not Tick):
            self.history.note(now_ns, stimulus, effects)
        return effects

    def wake_by(self, wake_ns: int) -> None:
        """Ask for a tick at this time or before."""
        if wake_ns < self.wake_ns:
            self.wake_ns = wake_ns
            self.wake_lowered()

    # Questions

    @property
    def span(self) -> int:
        """Number of MEP ids, from the floor on, that are taken."""
        return self._settled.span

    @property
    def floor(self) -> int:
        """Every MEP id below it is acknowledged to the feeders."""
        return self._settled.floor

    @property
    def is_idle(self) -> bool:
        """True when no MEP is open, every slot is free and everything is acknowledged."""
        return not self.open and not self._gathered and all(slot.state is SlotState.FREE for slot in self._slots)

    @property
    def is_computing(self) -> bool:
        """True when slots are with the pipeline, or wait until they are gathered."""
        return any(slot.state is not SlotState.FREE and slot.state is not SlotState.FILLING for slot in self._slots)

    @property
    def awaits_acknowledgement(self) -> bool:
        """True when built MEPs are with the pipeline or the outputs."""
        return bool(self._gathered) or self.is_computing

    @property
    def fragments_in_build(self) -> int:
        """Fragments of the MEPs that are open."""
        return sum(mep.n_fragments for mep in self.open.values())

    def missing(self, mep: MepRecord) -> tuple[int, ...]:
        """The sources of the run that a MEP lacks."""
        return tuple(source for source, column in self._column_of.items() if not mep.arrived.has(column))

    def recent_history(self) -> list[str]:
        """The last stimuli and effects as text, and the MEPs that are open; what explains a broken identity."""
        return [*self.history.lines(), *(f"open: {mep!r}" for mep in list(self.open.values())[:SHOWN_OPEN])]

    def unacknowledged_meps(self) -> set[int]:
        """The closed MEPs that are in slots or with the outputs: built, and not acknowledged yet."""
        return self._gathered | {mep.mep for slot in self._slots for mep in slot.meps if mep.mep not in self.open}

    def held(self, sources: Iterable[int], until_ns: int) -> list[tuple[int, int]]:
        """The (first, last) ranges of the MEPs of which nothing more is needed from the feeder of some sources: those
        that were opened at this time or before and have all of them, or are closed and not acknowledged yet."""
        columns = {self._column_of[source] for source in sources if source in self._column_of}
        mask = sum(1 << column for column in columns)
        closed, held = list(self._gathered), []
        for slot in self._slots:
            for mep in slot.meps:
                if mep.opened_ns > until_ns:
                    break
                if mep.close_reason is not None:
                    closed.append(mep.mep)
                elif mep.sources & mask == mask:
                    held.append(mep.mep)
        # What was revoked is not: it is dropped when it has been computed.
        held += [mep for mep in closed if self._settled.is_closed(mep)]
        return as_ranges(sorted(held))

    # Stimuli

    def _start_run(self, _now_ns: int, start: StartRun) -> list[Effect]:
        """Raises ValueError when a slot is in use or cannot hold a MEP of this run: the caller has to check first."""
        if self.open or self.pool.filling:
            raise ValueError(f"run {start.run} cannot start: {len(self.open)} MEPs of run {self.run} are open")
        if not 0 < start.events_per_mep <= self.pool.limits.events:
            raise ValueError(f"{start.events_per_mep} events per MEP do not fit a slot of {self.pool.limits.events}")
        self.pool.expect_sources(len(start.sources))
        self.run = start.run
        self.starts += 1
        self.sources = tuple(sorted(start.sources))
        self._feeders = AwaitedFeeders(self._limits.feeder_timeout_ns)
        self.pool.meps.start_run(start.run, self.sources)
        self._column_of = {source: i for i, source in enumerate(self.sources)}
        self._all_sources = (1 << len(self.sources)) - 1
        self._events_per_mep = start.events_per_mep
        self._places_of_a_slot = self.pool.empty_places(start.events_per_mep)
        self._settled = ClosedMeps(self.span, start.first_mep, start.done, start.revoked)
        self._complete_up_to = -1
        self._refused_up_to = -1
        self._last_opened = -1
        self.window = CreditWindow()
        self.draining = False
        self.closed = False
        self.counters.expect_sources(self.sources)
        effects: list[Effect] = []
        self._grant(effects, at_least=1)
        return effects

    def _await_feeders(self, now_ns: int, awaited: AwaitFeeders) -> list[Effect]:
        columns = self._column_of
        masks = [sum(1 << columns[each] for each in columns.keys() & feeder.sources) for feeder in awaited.feeders]
        self._feeders.expect(now_ns, zip(masks, awaited.feeders, strict=True))
        return []

    def place_for(
        self, now_ns: int, run: int, source: int, mep_id: int, size: int, first_event: int, n_events: int
    ) -> Place | RejectReason:
        """Where the MFP of a fragment goes, or why the fragment is refused; nothing changes. Sizes in bytes.

        Compiled code places most fragments of open MEPs, by the same rules (`OpenMeps.find`). The place is free until
        `fragment_copied` is called for it, or another stimulus comes. If neither follows, because the bytes were
        damaged, no trace is left.
        """
        column = self._column_of.get(source)
        if column is None or run != self.run:
            return self._foreign(run)
        needed = (size + _PADDING) & _WHOLE
        mep = self.open.get(mep_id)
        if mep is None:
            refusal = self._refusal(mep_id, 1 << column, n_events, needed)
            if refusal is not None:
                return refusal
            slot = self.pool.find_place(n_events)
            if slot is None:
                return RejectReason.NO_CREDIT
            mep = MepRecord(
                mep=mep_id,
                slot=slot.index,
                first_event=first_event,
                n_events=n_events,
                opened_ns=now_ns,
                n_sources=len(self.sources),
                sent_again=mep_id < self._complete_up_to or mep_id <= self._refused_up_to,
            )
        elif mep.arrived.has(column):
            return RejectReason.DUPLICATE
        elif mep.n_events != n_events or mep.first_event != first_event:
            return RejectReason.MISMATCH
        elif mep.arrived.bytes + needed > self._mep_bytes:
            return RejectReason.OVERSIZED
        return Place(mep.slot, self.pool.meps.cursor(mep.slot), size, source, mep)

    def fragment_copied(self, now_ns: int, place: Place) -> Sequence[Effect]:
        """The MFP of a sound fragment lies at the place that `place_for` gave for it just before."""
        mep = place.record
        if not mep.n_fragments:
            self._open(now_ns, self._slots[place.slot], mep)
        is_complete = self.pool.meps.add(mep.mep, place.source, place.offset, place.size, now_ns)
        return self.mep_complete(now_ns, mep.mep) if is_complete else ()

    def mep_complete(self, now_ns: int, mep_id: int) -> list[Effect]:
        """The last fragment of an open MEP lies at its place."""
        mep = self.open[mep_id]
        effects: list[Effect] = []
        self._close(mep, CloseReason.COMPLETE, effects)
        self._seal_if_due(now_ns, self._slots[mep.slot], effects)
        self._look_soon(now_ns)
        # While half a slot of credits is out, the next tick is early enough for more.
        if self.window.outstanding * 2 < self._places_of_a_slot:
            self._grant(effects, at_least=0)
        self.history.mep_completed(mep_id)
        if len(effects) > 1:
            self.history.note(now_ns, None, effects[1:])
        return effects

    def reject(self, now_ns: int, reason: RejectReason, run: int, source: int, mep: int) -> list[Effect]:
        """Refuse a sound fragment for the reason that `place_for` gave."""
        self.counters.fragments_rejected[reason] += 1
        if reason is RejectReason.NO_CREDIT and run == self.run and mep < self._settled.floor + self.span:
            # Its feeder sends it again behind others.
            self._refused_up_to = max(self._refused_up_to, mep)
        effects: list[Effect] = [Reject(run, reason, source, mep, reason in _PASSING)]
        self.history.note(now_ns, None, effects)
        return effects

    def _fragment_arrived(self, now_ns: int, fragment: FragmentArrived) -> list[Effect]:
        """The two steps as one stimulus, for callers without bytes."""
        place = self.place_for(now_ns, *fragment)
        if isinstance(place, RejectReason):
            return self.reject(now_ns, place, fragment.run, fragment.source, fragment.mep)
        return [place, *self.fragment_copied(now_ns, place)]

    def _frame_damaged(self, _now_ns: int, frame: FrameDamaged) -> list[Effect]:
        self.counters.fragments_rejected[frame.reason] += 1
        return [Reject(self.run or 0, *frame)]

    def _tick(self, now_ns: int, _tick: Tick) -> list[Effect]:
        effects: list[Effect] = []
        while True:
            has_pressure = self._has_slot_pressure()
            due = self._meps_to_close(now_ns, has_pressure) if self.open else []
            for mep, reason in due:
                self._close(mep, reason, effects)
            for slot in list(self.pool.filling):
                self._seal_if_due(now_ns, slot, effects)
            # Others may be evicted now: of the slot of a MEP that is closed, or because a slot takes no more.
            if not due and self._has_slot_pressure() == has_pressure:
                break
        self._is_pressure_known = has_pressure
        self._grant(effects, at_least=1)
        return effects

    def _meps_to_close(self, now_ns: int, has_pressure: bool) -> list[tuple[MepRecord, CloseReason]]:
        return meps_to_close(
            now_ns,
            self.open.values(),
            self._slots if has_pressure else None,
            self._feeders,
            self._limits,
            all_sources=self._all_sources,
            complete_up_to=self._complete_up_to,
        )

    def _has_slot_pressure(self) -> bool:
        """No place is left for another MEP, and no slot is with the pipeline, from where it would come back."""
        return not self.is_computing and self._places() <= 0

    def _acknowledged_below(self, _now_ns: int, acknowledged: AcknowledgedBelow) -> list[Effect]:
        self._settled.raise_floor(acknowledged.below)
        return []

    def _slot_advanced(self, _now_ns: int, advanced: SlotAdvanced) -> list[Effect]:
        self._slots[advanced.slot].advance(advanced.state)
        return []

    def _slot_freed(self, _now_ns: int, freed: SlotFreed) -> list[Effect]:
        self._is_pressure_known = False
        self._gathered.update(mep.mep for mep in self._slots[freed.slot].meps)
        self.pool.free(freed.slot)
        effects: list[Effect] = []
        self._grant(effects, at_least=1)
        return effects

    def _meps_acknowledged(self, _now_ns: int, acknowledged: MepsAcknowledged) -> list[Effect]:
        self._gathered.difference_update(acknowledged.meps)
        self.window.freed(len(acknowledged.meps))
        effects: list[Effect] = []
        self._grant(effects, at_least=1)
        return effects

    def _drain(self, _now_ns: int, _drain: Drain) -> list[Effect]:
        self.draining = True
        return []

    def _resume(self, _now_ns: int, _resume: Resume) -> list[Effect]:
        self.draining = self.closed
        effects: list[Effect] = []
        self._grant(effects, at_least=1)
        return effects

    def _set_times(self, _now_ns: int, times: SetTimes) -> list[Effect]:
        self._limits = replace(
            self._limits, mep_timeout_ns=times.mep_timeout_ns, flush_deadline_ns=times.flush_deadline_ns
        )
        self._look_ns = _look_ns(self._limits)
        return []

    def _end_run(self, _now_ns: int, _end: EndRun) -> list[Effect]:
        self.draining = self.closed = True
        return []

    def _close_open(self, _now_ns: int, _close: CloseOpen) -> list[Effect]:
        effects: list[Effect] = []
        for mep in list(self.open.values()):
            self._close(mep, CloseReason.END_OF_RUN, effects)
        for slot in list(self.pool.filling):
            self._seal(slot, effects)
        return effects

    def _abandon(self, _now_ns: int, _abandon: Abandon) -> list[Effect]:
        for mep in list(self.open.values()):
            self._drop(mep)
            self.counters.fragments_abandoned += mep.n_fragments
        for slot in list(self.pool.filling):
            if not slot.meps:
                self.pool.free(slot.index)
        return []

    def _revoke_meps(self, _now_ns: int, revoke: RevokeMeps) -> list[Effect]:
        self._settled.revoke(revoke.meps)
        revoked = MepRanges(revoke.meps)
        for mep in [mep for mep in self.open.values() if mep.mep in revoked]:
            self._drop(mep)
            self.counters.fragments_lost_in_drop += mep.n_fragments
        return []

    def _return_meps(self, _now_ns: int, returned: ReturnMeps) -> list[Effect]:
        self._settled.give_back(returned.meps)
        return []

    # What they share

    def _drop(self, mep: MepRecord) -> None:
        self._is_pressure_known = False
        del self.open[mep.mep]
        self.pool.abandon_mep(mep)
        self.window.freed(1)
        self.counters.meps_abandoned += 1

    def _foreign(self, run: int) -> RejectReason:
        """Why a fragment of another run, or of a source that is not expected, is refused."""
        if self.run is None:
            return RejectReason.NO_CREDIT
        return RejectReason.UNKNOWN_SOURCE if run == self.run else RejectReason.FOREIGN_RUN

    def _refusal(self, mep_id: int, bit: int, n_events: int, needed: int) -> RejectReason | None:
        """Why a MEP that is not open cannot be opened, or None."""
        refusal = self._settled.refusal(mep_id, bit)
        if refusal is not None:
            return refusal
        if self.window.outstanding <= 0 or self.closed:
            return RejectReason.NO_CREDIT
        if n_events > self._events_per_mep or needed > self._mep_bytes:
            return RejectReason.OVERSIZED
        return None

    def _open(self, now_ns: int, slot: Slot, mep: MepRecord) -> None:
        if not slot.meps:
            slot.deadline_ns = now_ns + self._limits.flush_deadline_ns
        self.pool.open_mep(mep)
        if mep.mep < self._last_opened:
            # Feeders that keep to the order of ids open none too early: one that has strayed must not wait until all
            # have come to its id.
            for other in self.open.values():
                other.ahead |= other.mep > mep.mep
        self._last_opened = mep.mep
        self.open[mep.mep] = mep
        self.window.opened()
        self.counters.meps_opened += 1
        self._look_soon(now_ns)
        self.wake_by(min(slot.deadline_ns if slot.deadline_ns > now_ns else NEVER_NS, now_ns + self._look_ns))

    def _close(self, mep: MepRecord, reason: CloseReason, effects: list[Effect]) -> None:
        del self.open[mep.mep]
        self._settled.close(mep.mep, mep.sources)
        slot = self._slots[mep.slot]
        if slot.open_meps == len(slot.meps):
            # Those that are open beside it keep a closed one from being computed now.
            self._is_pressure_known = False
        self.pool.close_mep(mep)
        mep.close_reason = reason
        if reason is CloseReason.COMPLETE:
            self._complete_up_to = max(self._complete_up_to, mep.mep)
        else:
            mep.error_stream = reason in self._limits.error_on
            mep.missing = self.missing(mep)
            for source in mep.missing:
                self.counters.sources[source].missing += 1
        self.counters.meps_closed[reason] += 1
        self.counters.fragments_built += mep.n_fragments
        effects.append(CloseMep(mep))

    def _seal_if_due(self, now_ns: int, slot: Slot, effects: list[Effect]) -> None:
        """Seal a slot whose MEPs are all closed when nothing more fits, or when its deadline has passed.

        A deadline waits while credits are out that only this slot backs: else MEPs that the feeders may send would
        find no place. Another slot that comes back, or this one being filled, ends the wait. When no MEP is
        open and no slot is with the pipeline, neither may ever happen: then one is sealed, and comes back soon.
        """
        if slot.open_meps and slot.closing:
            return
        if not self._is_full(slot):
            if now_ns < slot.deadline_ns or self._waits_for_credits(slot):
                return
            slot.closing = True
            if slot.open_meps:
                return
        self._seal(slot, effects)

    def _is_full(self, slot: Slot) -> bool:
        """Nothing more fits, and all its MEPs are closed."""
        return slot.open_meps == 0 and slot.places(self._events_per_mep) == 0

    def _waits_for_credits(self, slot: Slot) -> bool:
        others = self._places() - slot.places(self._events_per_mep)
        return not slot.closing and self.window.outstanding > others and bool(self.open or self.is_computing)

    def _look_soon(self, now_ns: int) -> None:
        """MEPs, slots or credits have changed; a slot that had to wait for that may be due at once."""
        for slot in self.pool.filling:
            overdue = slot.deadline_ns <= now_ns and not slot.closing and not self._waits_for_credits(slot)
            if overdue or self._is_full(slot):
                self.wake_by(now_ns)
        if self.open and not self._is_pressure_known and self._has_slot_pressure():
            # MEPs may be evicted that a tick has not looked at; it says when.
            self.wake_by(now_ns)
        self.wake_by(now_ns + SOON_NS)

    def _next_wake_ns(self, now_ns: int) -> int:
        """When the next tick is needed, after one; what is overdue by now waits for a change."""
        limits = self._limits
        times = [slot.deadline_ns for slot in self.pool.filling]
        if self.open:
            times.append(now_ns + self._look_ns)
            last_ns = [mep.last_ns for mep in self.open.values()]
            times += [last + limits.mep_timeout_ns for last in last_ns]
            if self._has_slot_pressure():
                times += [last + limits.evict_ns for last in last_ns]
            overtaken = (mep.overtaken_ns for mep in self.open.values())
            times += [since + limits.overtaken_ns for since in overtaken if since is not None]
        return min((due for due in times if due > now_ns), default=NEVER_NS)

    def _places(self) -> int:
        return self.pool.free_places(self._events_per_mep) + self.pool.filling_places(self._events_per_mep)

    def _seal(self, slot: Slot, effects: list[Effect]) -> None:
        assert self.run is not None
        self.pool.seal(slot)
        effects.append(SealSlot(Batch(slot.index, self.run, tuple(slot.meps), self.floor)))

    def _grant(self, effects: list[Effect], at_least: int) -> None:
        """Raise the credits to what free slots back, so that the slot that fills can be sealed at its deadline.

        While none fills, one of the free slots is the next to fill. Without another free slot the places of the
        filling ones are granted: then the node is busy, and slots are sealed when full. ``at_least`` 0 stands for a
        step that is worth a message. When MEPs are about to be acknowledged the limit falls, and that has to be said
        before: else the feeders would take the acknowledgements as room for others.
        """
        if self.run is None:
            return
        window = self.window
        before = window.outstanding
        if not self.draining:
            free = self.pool.free_places(self._events_per_mep)
            backed = free if self.pool.filling else free - self.pool.empty_places(self._events_per_mep)
            places = backed if backed > 0 else self._places()
            if window.raise_to(places, at_least or max(1, places // _CREDIT_STEP)):
                self.counters.credits_granted += window.outstanding - before
        if window.limit < self._sent_limit or window.outstanding > before:
            self._sent_limit = window.limit
            effects.append(GrantCredit(self.run, window.limit))


def _look_ns(limits: BuilderLimits) -> int:
    """How often open MEPs are looked at: what has overtaken them is noticed by looking."""
    shortest = min(limits.mep_timeout_ns, limits.overtaken_ns, limits.evict_ns)
    return max(1, min(LONGEST_LOOK_NS, shortest // 4))
