"""The event builder: fragments become MEPs in slots. A state machine without I/O and without a clock.

`EventBuilder.handle(now_ns, stimulus)` returns the effects, which the caller carries out in their order. State changes
nowhere else. Counts go to the plain integers of `Counters`; `accounting` says whether every fragment has ended in
exactly one class.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hltnode.daemon.building import (
    Abandon,
    CloseMep,
    CloseOpen,
    Drain,
    Effect,
    EndRun,
    FragmentArrived,
    GrantCredit,
    MepRecord,
    Place,
    Reject,
    Resume,
    SealSlot,
    SetTimes,
    SlotFreed,
    StartRun,
    Stimulus,
    Tick,
)
from hltnode.daemon.counters import Counters
from hltnode.daemon.credits import CreditWindow
from hltnode.daemon.slots import Slot, SlotPool, aligned
from hltnode.daemon.vocabulary import CloseReason
from hltnode.protocol.errors import RejectReason

# A new limit is worth a message when it moves by this part of the places that back it: one message per MEP and feeder
# would cost more than the MEP itself when MEPs are small. A tick sends what is left.
_CREDIT_STEP = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class BuilderLimits:
    """Times in ns of the injected clock, and the number of closed MEP ids that are remembered."""

    mep_timeout_ns: int
    flush_deadline_ns: int
    closed_ring: int


class EventBuilder:
    """Builds MEPs from fragments in the slots of a pool."""

    def __init__(self, pool: SlotPool, limits: BuilderLimits, counters: Counters) -> None:
        self.pool = pool
        self.counters = counters
        self.run: int | None = None
        self.sources: tuple[int, ...] = ()
        self.open: dict[int, MepRecord] = {}
        self.window = CreditWindow(0)
        self.draining = False
        self.closed = False
        self._limits = limits
        self._bit_of: dict[int, int] = {}
        self._all_sources = 0
        self._events_per_mep = 1
        # Ring of closed ids: entry mep % size holds the id and the sources that had come. Two flat lists, so that
        # nothing is allocated per MEP.
        self._closed_id = [-1] * limits.closed_ring
        self._closed_sources = [0] * limits.closed_ring
        self._handlers: dict[type, Callable[[int, Any], list[Effect]]] = {
            FragmentArrived: self._fragment_arrived,
            Tick: self._tick,
            SlotFreed: self._slot_freed,
            StartRun: self._start_run,
            Drain: self._drain,
            Resume: self._resume,
            SetTimes: self._set_times,
            EndRun: self._end_run,
            CloseOpen: self._close_open,
            Abandon: self._abandon,
        }

    def handle(self, now_ns: int, stimulus: Stimulus) -> list[Effect]:
        """Take one stimulus; returns the effects in the order in which they must be carried out."""
        return self._handlers[type(stimulus)](now_ns, stimulus)

    # Stimuli

    def _start_run(self, _now_ns: int, start: StartRun) -> list[Effect]:
        """Raises ValueError when a slot is in use or cannot hold a MEP of this run: the caller has to check first."""
        if self.open or self.pool.filling:
            raise ValueError(f"run {start.run} cannot start: {len(self.open)} MEPs of run {self.run} are open")
        if not 0 < start.events_per_mep <= self.pool.limits.events:
            raise ValueError(f"{start.events_per_mep} events per MEP do not fit a slot of {self.pool.limits.events}")
        self.pool.expect_sources(len(start.sources))
        self.run = start.run
        self.sources = tuple(sorted(start.sources))
        self._bit_of = {source: 1 << i for i, source in enumerate(self.sources)}
        self._all_sources = (1 << len(self.sources)) - 1
        self._events_per_mep = start.events_per_mep
        self._closed_id = [-1] * self._limits.closed_ring
        self.window = CreditWindow(start.first_mep)
        self.draining = False
        self.closed = False
        self.counters.run = start.run
        self.counters.expect_sources(self.sources)
        effects: list[Effect] = []
        self._grant(effects, at_least=1)
        return effects

    def _fragment_arrived(self, now_ns: int, fragment: FragmentArrived) -> list[Effect]:
        run, source, mep_id, size, first_event, n_events = fragment
        if run != self.run:
            reason = RejectReason.NO_CREDIT if self.run is None else RejectReason.FOREIGN_RUN
            return self._reject(reason, source, mep_id)
        bit = self._bit_of.get(source)
        if bit is None:
            return self._reject(RejectReason.UNKNOWN_SOURCE, source, mep_id)
        size = aligned(size)
        mep = self.open.get(mep_id)
        if mep is None:
            refusal = self._refusal(mep_id, bit, n_events, size)
            if refusal is not None:
                return self._reject(refusal, source, mep_id)
            opened = self._open_mep(now_ns, mep_id, first_event, n_events)
            if opened is None:
                return self._reject(RejectReason.NO_CREDIT, source, mep_id)
            mep = opened
        elif mep.sources & bit:
            return self._reject(RejectReason.DUPLICATE, source, mep_id)
        elif mep.n_events != n_events or mep.first_event != first_event:
            return self._reject(RejectReason.MISMATCH, source, mep_id)
        elif mep.bytes + size > self.pool.limits.mep_bytes:
            return self._reject(RejectReason.OVERSIZED, source, mep_id)
        slot = self.pool.slots[mep.slot]
        offset = slot.cursor
        slot.cursor = offset + size
        slot.reserved -= size
        mep.bytes += size
        mep.sources |= bit
        mep.fragments.append((source, offset, fragment.size))
        effects: list[Effect] = [Place(mep.slot, offset)]
        if mep.sources == self._all_sources:
            self._close(now_ns, mep, CloseReason.COMPLETE, effects)
            self._seal_if_due(now_ns, slot, effects)
            self._grant(effects, at_least=0)
        return effects

    def _tick(self, now_ns: int, _tick: Tick) -> list[Effect]:
        effects: list[Effect] = []
        # MEPs are in the order of opening, so the first ones that are not due end the search.
        due = []
        for mep in self.open.values():
            if mep.deadline_ns > now_ns:
                break
            due.append(mep)
        for mep in due:
            self._close(now_ns, mep, CloseReason.TIMEOUT, effects)
        self.window.forget_gaps(now_ns - self._limits.mep_timeout_ns)
        for slot in list(self.pool.filling):
            self._seal_if_due(now_ns, slot, effects)
        self._grant(effects, at_least=1)
        return effects

    def _slot_freed(self, _now_ns: int, freed: SlotFreed) -> list[Effect]:
        self.pool.free(freed.slot)
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
        # MEPs that are open keep their deadlines, so for one old timeout a new one may close a little late.
        self._limits = replace(
            self._limits, mep_timeout_ns=times.mep_timeout_ns, flush_deadline_ns=times.flush_deadline_ns
        )
        return []

    def _end_run(self, _now_ns: int, _end: EndRun) -> list[Effect]:
        self.draining = self.closed = True
        return []

    def _close_open(self, now_ns: int, _close: CloseOpen) -> list[Effect]:
        effects: list[Effect] = []
        for mep in list(self.open.values()):
            self._close(now_ns, mep, CloseReason.END_OF_RUN, effects)
        for slot in list(self.pool.filling):
            self._seal(slot, effects)
        return effects

    def _abandon(self, _now_ns: int, _abandon: Abandon) -> list[Effect]:
        for mep in self.open.values():
            slot = self.pool.slots[mep.slot]
            slot.abandon_mep(mep)
            self.counters.fragments_abandoned += len(mep.fragments)
            self.counters.meps_abandoned += 1
        self.open.clear()
        for slot in list(self.pool.filling):
            if not slot.meps:
                self.pool.free(slot.index)
        return []

    # What they share

    def _refusal(self, mep_id: int, bit: int, n_events: int, size: int) -> RejectReason | None:
        """Why a MEP that is not open cannot be opened, or None."""
        i = mep_id % self._limits.closed_ring
        if self._closed_id[i] == mep_id:
            return RejectReason.DUPLICATE if self._closed_sources[i] & bit else RejectReason.LATE
        if mep_id <= self.window.highest - self._limits.closed_ring:
            return RejectReason.LATE
        if mep_id >= self.window.limit or self.closed:
            return RejectReason.NO_CREDIT
        if n_events > self._events_per_mep or size > self.pool.limits.mep_bytes:
            return RejectReason.OVERSIZED
        # An id that was given up, or lies before the first one, has no credit: it may only use a place to spare.
        has_credit = mep_id > self.window.highest or mep_id in self.window.gaps
        if not has_credit and self.window.outstanding >= self._places():
            return RejectReason.NO_CREDIT
        return None

    def _open_mep(self, now_ns: int, mep_id: int, first_event: int, n_events: int) -> MepRecord | None:
        slot = self.pool.find_place(n_events)
        if slot is None:
            return None
        if not slot.meps:
            slot.deadline_ns = now_ns + self._limits.flush_deadline_ns
        mep = MepRecord(
            mep=mep_id,
            slot=slot.index,
            first_event=first_event,
            n_events=n_events,
            opened_ns=now_ns,
            deadline_ns=now_ns + self._limits.mep_timeout_ns,
        )
        slot.open_mep(mep)
        self.open[mep_id] = mep
        self.window.opened(mep_id, now_ns)
        self.counters.meps_opened += 1
        return mep

    def _close(self, now_ns: int, mep: MepRecord, reason: CloseReason, effects: list[Effect]) -> None:
        del self.open[mep.mep]
        i = mep.mep % self._limits.closed_ring
        self._closed_id[i] = mep.mep
        self._closed_sources[i] = mep.sources
        self.pool.slots[mep.slot].close_mep(mep)
        mep.close_reason = reason
        mep.closed_ns = now_ns
        if mep.sources != self._all_sources:
            mep.missing = tuple(source for source, bit in self._bit_of.items() if not mep.sources & bit)
            for source in mep.missing:
                self.counters.sources[source].missing += 1
        self.counters.meps_closed[reason] += 1
        self.counters.fragments_built += len(mep.fragments)
        self.counters.mep_build.observe((now_ns - mep.opened_ns) * 1e-9)
        effects.append(CloseMep(mep))

    def _seal_if_due(self, now_ns: int, slot: Slot, effects: list[Effect]) -> None:
        """Seal a slot whose MEPs are all closed when nothing more fits, or when its deadline has passed.

        A deadline waits while credits are out that only this slot backs: else MEPs that the feeders may send would
        find no place. Another slot that comes back, or this one being filled, ends the wait.
        """
        if slot.open_meps and slot.closing:
            return
        full = slot.open_meps == 0 and slot.places(self._events_per_mep) == 0
        if not full:
            if now_ns < slot.deadline_ns:
                return
            if not slot.closing and self.window.outstanding > self._places() - slot.places(self._events_per_mep):
                return
            slot.closing = True
            if slot.open_meps:
                return
        self._seal(slot, effects)

    def _places(self) -> int:
        return self.pool.free_places(self._events_per_mep) + self.pool.filling_places(self._events_per_mep)

    def _seal(self, slot: Slot, effects: list[Effect]) -> None:
        self.pool.seal(slot)
        effects.append(SealSlot(slot.index))

    def _grant(self, effects: list[Effect], at_least: int) -> None:
        """Raise the limit to what free slots back, so that the slot that fills can be sealed at its deadline.

        While none fills, one of the free slots is the next to fill. Without another free slot the places of the
        filling ones are granted: then the node is busy, and slots are sealed when full. ``at_least`` 0 stands for a
        step that is worth a message.
        """
        if self.draining or self.run is None:
            return
        free = self.pool.free_places(self._events_per_mep)
        backed = free if self.pool.filling else free - self.pool.empty_places(self._events_per_mep)
        places = backed if backed > 0 else self._places()
        before = self.window.limit
        if self.window.raise_limit(places, at_least or max(1, places // _CREDIT_STEP)):
            self.counters.credits_granted += self.window.limit - before
            effects.append(GrantCredit(self.window.limit))
        self.counters.credits_outstanding = self.window.outstanding

    def _reject(self, reason: RejectReason, source: int, mep: int) -> list[Effect]:
        self.counters.fragments_rejected[reason] += 1
        return [Reject(reason, source, mep, reason is RejectReason.NO_CREDIT)]
