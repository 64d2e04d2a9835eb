"""The event builder: it builds MEPs from fragments, in slots. A state machine without I/O and without a clock.

`EventBuilder.handle(now_ns, stimulus)` returns effects, which the caller carries out in order. Only stimuli change the
state. The builder counts in the plain integers of `Counters`; `accounting` checks that every fragment is counted in
exactly one class.

`wake_ns` is the time of the next tick: the caller sleeps until then or until input comes. Any stimulus may lower it,
and only a tick raises it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hltnode.daemon.common.vocabulary import CloseReason, SlotState
from hltnode.daemon.event_building.awaited_feeders import AwaitedFeeders
from hltnode.daemon.event_building.builder_state import BuilderState
from hltnode.daemon.event_building.closed_meps import ClosedMeps
from hltnode.daemon.event_building.deadlines import NEVER_NS, look_ns, meps_to_close, next_deadline_ns
from hltnode.daemon.event_building.head_room import HeadRoom
from hltnode.daemon.event_building.slots import Slot, SlotPool
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
from hltnode.protocol.transport.mep_ranges import MepRanges

# Delay of the tick for changes that are not urgent: small credit grants, the end of a run, dead time. With the delay a
# burst of MEPs costs one tick.
SOON_NS = 5_000_000
# Refusals after which the feeder sends the fragment again. NO_CREDIT: a place becomes free. REVOKED: either the feeder
# does not know of the revocation yet, or the MEP has just been assigned to this node again.
_REFUSING = frozenset({StartRun, EndRun, CloseOpen, Abandon, RevokeMeps})
_PASSING = frozenset({RejectReason.NO_CREDIT, RejectReason.REVOKED})


class EventBuilder(BuilderState):
    """Builds MEPs from fragments in the slots of a pool."""

    def __init__(self, pool: SlotPool, limits: BuilderLimits, counters: Counters) -> None:
        self.wake_ns = NEVER_NS
        """Time of the next tick if no other stimulus comes."""
        self.wake_lowered: Callable[[], None] = lambda: None
        """Called when a stimulus other than a tick has lowered `wake_ns`."""
        self.before_refusals: Callable[[], None] = lambda: None
        """Called before a stimulus after which a fragment may be refused that was acceptable."""
        super().__init__(pool, limits, counters)
        self._look_ns = look_ns(limits)
        self._head_room = HeadRoom(limits)
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
        """Handle one stimulus. Returns the effects, which must be carried out in this order."""
        kind = type(stimulus)
        if kind in _REFUSING:
            self.before_refusals()
        effects = self._handlers[kind](now_ns, stimulus)
        if kind is Tick:
            self.wake_ns = self._next_wake_ns(now_ns)
        elif kind is not FrameDamaged:
            # A damaged frame changes nothing. Compiled code refuses most of them without a call.
            self._look_soon(now_ns)
        # Fragments are noted by `mep_complete` and `reject`.
        if kind is not FragmentArrived and (effects or kind is not Tick):
            self.history.note(now_ns, stimulus, effects)
        return effects

    def wake_by(self, wake_ns: int) -> None:
        """Request a tick at this time or earlier."""
        if wake_ns < self.wake_ns:
            self.wake_ns = wake_ns
            self.wake_lowered()

    # Stimuli

    def _start_run(self, _now_ns: int, start: StartRun) -> list[Effect]:
        """Raises ValueError if a slot is in use or cannot hold a MEP of this run."""
        if self.open or self.pool.filling:
            raise ValueError(f"run {start.run} cannot start: {len(self.open)} MEPs of run {self.run} are open")
        if not 0 < start.events_per_mep <= self.pool.limits.events:
            raise ValueError(f"{start.events_per_mep} events per MEP do not fit a slot of {self.pool.limits.events}")
        self.pool.expect_sources(len(start.sources))
        self.run = start.run
        self.starts += 1
        self.sources = tuple(sorted(start.sources))
        self._feeders = AwaitedFeeders(self._limits.feeder_timeout_ns, self._limits.overtaken_ns)
        self.pool.meps.start_run(start.run, self.sources)
        self._column_of = {source: i for i, source in enumerate(self.sources)}
        self._all_sources = (1 << len(self.sources)) - 1
        self._events_per_mep = start.events_per_mep
        self._closed_meps = ClosedMeps(self.span, start.first_mep, start.done, start.revoked)
        self._complete_up_to = -1
        self._refused_up_to = -1
        self._last_opened = -1
        self.window.start_run(start.events_per_mep)
        self._head_room.start_run()
        self.draining = False
        self.closed = False
        self.counters.expect_sources(self.sources)
        effects: list[Effect] = []
        self._grant(effects)
        return effects

    def _await_feeders(self, now_ns: int, awaited: AwaitFeeders) -> list[Effect]:
        columns = self._column_of
        masks = [sum(1 << columns[each] for each in columns.keys() & feeder.sources) for feeder in awaited.feeders]
        self._feeders.expect(now_ns, zip(masks, awaited.feeders, strict=True))
        return []

    def fragment_copied(self, now_ns: int, place: Place) -> Sequence[Effect]:
        """Note that a valid MFP was copied to the place that `place_for` has just returned for it."""
        mep, slot = place.record, self._slots[place.slot]
        is_first = not mep.n_fragments
        if is_first:
            self._open(now_ns, slot, mep)
        is_complete = self.pool.meps.add(mep.mep, place.source, place.offset, place.size, now_ns)
        effects = self.mep_complete(now_ns, mep.mep) if is_complete else ()
        if is_first:
            self._wake_for_first(now_ns, slot, is_open=not is_complete)
        return effects

    def _wake_for_first(self, now_ns: int, slot: Slot, *, is_open: bool) -> None:
        """Request the ticks that a MEP with its first fragment needs. One with a single source may be sealed by now."""
        if is_open:
            self._look_soon(now_ns)
            self.wake_by(now_ns + self._look_ns)
        if slot.state is SlotState.FILLING and slot.deadline_ns > now_ns:
            self.wake_by(slot.deadline_ns)

    def mep_complete(self, now_ns: int, mep_id: int) -> list[Effect]:
        """Close a MEP whose last fragment was copied to its place."""
        mep = self.open[mep_id]
        effects: list[Effect] = []
        self._close(mep, CloseReason.COMPLETE, effects)
        self._seal_if_due(now_ns, self._slots[mep.slot], effects)
        self._look_soon(now_ns)
        if self.window.is_low:
            self._grant(effects, small_steps=False)
        self.history.mep_completed(mep_id)
        if len(effects) > 1:
            self.history.note(now_ns, None, effects[1:])
        return effects

    def close_incomplete(self, now_ns: int, mep_id: int) -> list[Effect]:
        """Close an open MEP whose missing fragments will not come; none if it is not open."""
        mep = self.open.get(mep_id)
        if mep is None:
            return []
        effects: list[Effect] = []
        self._close(mep, CloseReason.TIMEOUT, effects)
        self._seal_if_due(now_ns, self._slots[mep.slot], effects)
        self._look_soon(now_ns)
        self.history.note(now_ns, None, effects)
        return effects

    def reject(self, now_ns: int, reason: RejectReason, run: int, source: int, mep: int) -> list[Effect]:
        """Refuse a valid fragment for the reason that `place_for` returned."""
        self.counters.fragments_rejected[reason] += 1
        if reason is RejectReason.NO_CREDIT and run == self.run and mep < self._closed_meps.floor + self.span:
            # Its feeder sends it again after other MEPs, out of the order of ids.
            self._refused_up_to = max(self._refused_up_to, mep)
        effects: list[Effect] = [Reject(run, reason, source, mep, reason in _PASSING)]
        self.history.note(now_ns, None, effects)
        return effects

    def _fragment_arrived(self, now_ns: int, fragment: FragmentArrived) -> list[Effect]:
        """`place_for` and `fragment_copied` as one stimulus, for callers without bytes."""
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
            # Without open MEPs nothing can be evicted, and the next one needs a place.
            has_pressure = bool(self.open) and self._has_slot_pressure()
            due = self._meps_to_close(now_ns, has_pressure) if self.open else []
            for mep, reason in due:
                self._close(mep, reason, effects)
            has_changed = bool(due)
            for slot in list(self.pool.filling):
                has_changed |= self._seal_if_due(now_ns, slot, effects)
            # A closed MEP or a slot that accepts no more MEPs may make further MEPs due.
            if not has_changed or (not due and (bool(self.open) and self._has_slot_pressure()) == has_pressure):
                break
        self._is_pressure_known = has_pressure
        self._grant(effects)
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

    def _acknowledged_below(self, _now_ns: int, acknowledged: AcknowledgedBelow) -> list[Effect]:
        self._closed_meps.raise_floor(acknowledged.below)
        return []

    def _slot_advanced(self, _now_ns: int, advanced: SlotAdvanced) -> list[Effect]:
        self._slots[advanced.slot].advance(advanced.state)
        return []

    def _slot_freed(self, now_ns: int, freed: SlotFreed) -> list[Effect]:
        self._is_pressure_known = False
        self._gathered.update(mep.mep for mep in self._slots[freed.slot].meps)
        self.pool.free(freed.slot)
        effects: list[Effect] = []
        if self.window.is_low:
            self._grant(effects)
        # Otherwise the acknowledgement of its MEPs, or the next tick, grants its places without a message of their own.
        if self._limits.seals_for_idle:
            # MEPs that came during the batch. They waited for a slot that backs the credits of feeders.
            for slot in list(self.pool.filling):
                self._seal_if_due(now_ns, slot, effects)
        return effects

    def _meps_acknowledged(self, _now_ns: int, acknowledged: MepsAcknowledged) -> list[Effect]:
        self._gathered.difference_update(acknowledged.meps)
        self.window.freed(len(acknowledged.meps))
        effects: list[Effect] = []
        self._grant(effects)
        return effects

    def _drain(self, _now_ns: int, _drain: Drain) -> list[Effect]:
        self.draining = True
        return []

    def _resume(self, _now_ns: int, _resume: Resume) -> list[Effect]:
        self.draining = self.closed
        effects: list[Effect] = []
        self._grant(effects)
        return effects

    def _set_times(self, _now_ns: int, times: SetTimes) -> list[Effect]:
        self._limits = replace(
            self._limits, mep_timeout_ns=times.mep_timeout_ns, flush_deadline_ns=times.flush_deadline_ns
        )
        self._look_ns = look_ns(self._limits)
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
        self._closed_meps.revoke(revoke.meps)
        revoked = MepRanges(revoke.meps)
        dropped = [mep for mep in self.open.values() if mep.mep in revoked]
        for mep in dropped:
            self._drop(mep)
            self.counters.fragments_lost_in_drop += mep.n_fragments
        effects: list[Effect] = []
        if dropped:
            # At once: a hello before the next tick would be answered with a limit that is not the announced one.
            self._grant(effects)
        return effects

    def _return_meps(self, _now_ns: int, returned: ReturnMeps) -> list[Effect]:
        self._closed_meps.give_back(returned.meps)
        return []

    # Shared by the handlers

    def _drop(self, mep: MepRecord) -> None:
        self._is_pressure_known = False
        del self.open[mep.mep]
        self.pool.abandon_mep(mep)
        self.window.freed(1)
        self.counters.meps_abandoned += 1

    def _open(self, now_ns: int, slot: Slot, mep: MepRecord) -> None:
        if not slot.meps:
            slot.deadline_ns = now_ns + self._limits.flush_deadline_ns
        self.pool.open_mep(mep)
        if mep.mep > self._last_opened or not self._find_ahead(now_ns, mep.mep):
            self._last_opened = mep.mep
        self.open[mep.mep] = mep
        self.window.opened()
        self.counters.meps_opened += 1

    def _find_ahead(self, now_ns: int, older: int) -> bool:
        """Mark the MEPs that were opened ahead of this one; True if fragments of some may have overtaken its own.

        In-order feeders open no MEP early, but for such fragments. One that was opened out of order must not wait for
        every feeder to reach its id.
        """
        since_ns = now_ns - self._limits.overtaken_ns
        younger = [mep for mep in self.open.values() if mep.mep > older]
        for mep in younger:
            mep.ahead |= mep.opened_ns < since_ns
        return not all(mep.ahead for mep in younger)

    def _close(self, mep: MepRecord, reason: CloseReason, effects: list[Effect]) -> None:
        del self.open[mep.mep]
        self._closed_meps.close(mep.mep, None if reason is CloseReason.COMPLETE else mep.sources)
        slot = self._slots[mep.slot]
        if slot.open_meps == len(slot.meps):
            # This first closed MEP of the slot now waits for the open ones, which may therefore be evicted.
            self._is_pressure_known = False
        self.pool.close_mep(mep)
        mep.close_reason = reason
        if reason is CloseReason.COMPLETE:
            if mep.mep > self._complete_up_to:
                self._complete_up_to = mep.mep
        else:
            mep.error_stream = reason in self._limits.error_on
            mep.missing = self.missing(mep)
            for source in mep.missing:
                self.counters.sources[source].missing += 1
                if reason is CloseReason.TIMEOUT:
                    self.counters.sources[source].late += 1
        self.counters.meps_closed[reason] += 1
        self.counters.fragments_built += mep.n_fragments
        effects.append(CloseMep(mep))

    def _seal_if_due(self, now_ns: int, slot: Slot, effects: list[Effect]) -> bool:
        """Seal a slot whose MEPs are all closed when no MEP fits any more, or when its deadline has passed.

        With `seals_for_idle` also when the back end has nothing else to do. Returns whether the slot has changed: it is
        sealed, or accepts no more MEPs.

        A deadline is postponed while only this slot backs outstanding credits: otherwise MEPs that feeders may send
        would find no place. The delay ends when another slot comes back or this one is full. Neither may happen while
        no MEP is open and the pipeline has no slot: then the slot is sealed, and comes back soon.
        """
        if slot.open_meps and slot.closing:
            return False
        if not self._is_full(slot):
            is_due = now_ns >= slot.deadline_ns or self._back_end_awaits(slot)
            if not is_due or self._waits_for_credits(slot):
                return False
            slot.closing = True
            if slot.open_meps:
                return True
        self._seal(slot, effects)
        return True

    def _look_soon(self, now_ns: int) -> None:
        """Lower `wake_ns` after a change of MEPs, slots or credits: a postponed slot may be due at once."""
        if self.wake_ns <= now_ns:
            return
        for slot in self.pool.filling:
            is_due = slot.deadline_ns <= now_ns or self._back_end_awaits(slot)
            if (is_due and not slot.closing and not self._waits_for_credits(slot)) or self._is_full(slot):
                self.wake_by(now_ns)
        if self.open and not self._is_pressure_known and self._has_slot_pressure():
            # Only a tick finds the MEPs that may be evicted, and the time of their eviction.
            self.wake_by(now_ns)
        self.wake_by(now_ns + SOON_NS)

    def _next_wake_ns(self, now_ns: int) -> int:
        """The time of the next tick, computed after a tick."""
        # The tick has just found out whether there is pressure.
        has_pressure = bool(self.open) and self._is_pressure_known
        return next_deadline_ns(
            now_ns, self.pool.filling, self.open.values(), self._limits, self._look_ns, has_pressure=has_pressure
        )

    def _seal(self, slot: Slot, effects: list[Effect]) -> None:
        assert self.run is not None
        self.pool.seal(slot)
        dropped = self._head_room.drop(slot.meps, self._slots, slot)
        self.counters.meps_sealed += len(slot.meps) - dropped
        if dropped:
            self.counters.slices_dropped[self._limits.head_room] += dropped
        effects.append(SealSlot(Batch(slot.index, self.run, tuple(slot.meps), self.floor)))

    def _grant(self, effects: list[Effect], *, small_steps: bool = True) -> None:
        if self.run is None:
            return
        growth = 0 if self.draining else self.window.grant(small_steps=small_steps)
        self.counters.credits_granted += growth
        if self.window.announce():
            effects.append(GrantCredit(self.run, self.window.limit))
