"""The state of the event builder and queries on it. Only `EventBuilder` changes the state (no I/O, no clock)."""

from collections.abc import Iterable

from hltnode.daemon.common.vocabulary import SlotState
from hltnode.daemon.event_building.awaited_feeders import AwaitedFeeders
from hltnode.daemon.event_building.closed_meps import ClosedMeps
from hltnode.daemon.event_building.credit_window import CreditWindow
from hltnode.daemon.event_building.history import History
from hltnode.daemon.event_building.slots import ALIGNMENT, Slot, SlotPool
from hltnode.daemon.event_building.stimuli_and_effects import BuilderLimits, MepRecord, Place
from hltnode.daemon.monitoring.counters import Counters
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.mep_ranges import as_ranges

# Most open MEPs in the text of the history: a full node may have thousands.
SHOWN_OPEN = 64
# Refusals of fragments that are in their MEP, or too late for it.
_AT_NODE = frozenset({RejectReason.DUPLICATE, RejectReason.LATE})
_PADDING = ALIGNMENT - 1
_WHOLE = -ALIGNMENT


class BuilderState:
    """The run, its open and closed MEPs, the slots and the credits."""

    def __init__(self, pool: SlotPool, limits: BuilderLimits, counters: Counters) -> None:
        self.pool = pool
        self.history = History()
        self.counters = counters
        self.run: int | None = None
        self.starts = 0
        """Number of run starts; a run that is resumed counts again."""
        self.sources: tuple[int, ...] = ()
        self.open: dict[int, MepRecord] = {}
        self.window = CreditWindow(pool)
        self.draining = False
        self.closed = False
        self._gathered: set[int] = set()
        self._limits = limits
        # Each run has a ring of its own; before the first one no MEP is accepted.
        self._closed_meps = ClosedMeps(1)
        self._mep_bytes = pool.limits.mep_bytes
        self._slots = pool.slots
        self._feeders = AwaitedFeeders(limits.feeder_timeout_ns, limits.overtaken_ns)
        self._column_of: dict[int, int] = {}
        self._all_sources = 0
        self._events_per_mep = 1
        self._complete_up_to = -1
        self._refused_up_to = -1
        self._last_opened = -1
        self._is_pressure_known = False

    @property
    def events_per_mep(self) -> int:
        """Most events of a MEP of the run."""
        return self._events_per_mep

    @property
    def span(self) -> int:
        """Number of MEP ids, counted from the floor, that are accepted."""
        return self._limits.closed_ring

    @property
    def floor(self) -> int:
        """All MEP ids below this one are acknowledged to the feeders."""
        return self._closed_meps.floor

    @property
    def is_idle(self) -> bool:
        """True when no MEP is open, every slot is free and every MEP is acknowledged."""
        return self.is_empty and not self._gathered

    @property
    def is_empty(self) -> bool:
        """True when no MEP is open and every slot is free. MEPs may still be written or acknowledged."""
        return not self.open and all(slot.state is SlotState.FREE for slot in self._slots)

    @property
    def is_computing(self) -> bool:
        """True when a slot is sealed, in the pipeline, or waits to be gathered."""
        return any(slot.state is not SlotState.FREE and slot.state is not SlotState.FILLING for slot in self._slots)

    @property
    def awaits_acknowledgement(self) -> bool:
        """True when built MEPs are in the pipeline or the outputs."""
        return bool(self._gathered) or self.is_computing

    @property
    def fragments_in_build(self) -> int:
        """Number of fragments in open MEPs."""
        return sum(mep.n_fragments for mep in self.open.values())

    def missing(self, mep: MepRecord) -> tuple[int, ...]:
        """The sources of the run whose fragments a MEP lacks."""
        return tuple(source for source, column in self._column_of.items() if not mep.arrived.has(column))

    def recent_history(self) -> list[str]:
        """The last stimuli and effects and the open MEPs, as text that explains a broken identity."""
        return [*self.history.lines(), *(f"open: {mep!r}" for mep in list(self.open.values())[:SHOWN_OPEN])]

    def unacknowledged_meps(self) -> set[int]:
        """The built MEPs that are not acknowledged yet: they are in slots or in the outputs."""
        return self._gathered | {mep.mep for slot in self._slots for mep in slot.meps if mep.mep not in self.open}

    def held(self, sources: Iterable[int], until_ns: int) -> list[tuple[int, int]]:
        """The (first, last) ranges of MEPs for which a feeder of these sources need not send anything more.

        These are the closed MEPs that are not acknowledged yet, and the open MEPs that have a fragment of each of the
        sources. MEPs that were opened after `until_ns` are left out.
        """
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
        # Revoked MEPs are left out: they are dropped after they were computed.
        held += [mep for mep in closed if self._closed_meps.is_closed(mep)]
        return as_ranges(sorted(held))

    def place_for(
        self, now_ns: int, run: int, source: int, mep_id: int, size: int, first_event: int, n_events: int
    ) -> Place | RejectReason:
        """The place of a fragment's MFP, or the reason to refuse the fragment. Sizes are in bytes.

        Compiled code places most fragments of open MEPs by the same rules (`OpenMeps.find`). The place is valid until
        `fragment_copied` is called for it or another stimulus is handled. The state does not change, so a fragment
        whose bytes turn out to be damaged leaves no trace.
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

    def refusal_of_copy(self, run: int, source: int, mep_id: int) -> RejectReason | None:
        """The reason to refuse every copy of a fragment: it is in its MEP, or too late for it. Otherwise None."""
        column = self._column_of.get(source)
        if column is None or run != self.run:
            return None
        mep = self.open.get(mep_id)
        if mep is not None:
            return RejectReason.DUPLICATE if mep.arrived.has(column) else None
        refusal = self._closed_meps.refusal(mep_id, 1 << column)
        return refusal if refusal in _AT_NODE else None

    def _foreign(self, run: int) -> RejectReason:
        """The reason to refuse a fragment of another run or of an unknown source."""
        if self.run is None:
            return RejectReason.NO_CREDIT
        return RejectReason.UNKNOWN_SOURCE if run == self.run else RejectReason.FOREIGN_RUN

    def _refusal(self, mep_id: int, bit: int, n_events: int, needed: int) -> RejectReason | None:
        """The reason why a MEP cannot be opened, or None."""
        refusal = self._closed_meps.refusal(mep_id, bit)
        if refusal is not None:
            return refusal
        if self.window.outstanding <= 0 or self.closed:
            return RejectReason.NO_CREDIT
        if n_events > self._events_per_mep or needed > self._mep_bytes:
            return RejectReason.OVERSIZED
        return None

    def _has_slot_pressure(self) -> bool:
        """True when no place for a MEP is left and the pipeline has no slot that could come back."""
        # Most MEPs are opened while a slot has room: that is found out first, without a sum over all slots.
        return self.pool.find_place(self._events_per_mep) is None and not self.is_computing

    def _is_full(self, slot: Slot) -> bool:
        """True when no further MEP fits and all MEPs of the slot are closed."""
        return slot.open_meps == 0 and not slot.has_place(self._events_per_mep)

    def _back_end_awaits(self, slot: Slot) -> bool:
        """True when the back end has no batch, and would compute this slot, whose MEPs are all closed, at once."""
        return (
            self._limits.seals_for_idle
            and slot.open_meps == 0
            and bool(slot.meps)
            and not any(each.state is SlotState.SEALED or each.state is SlotState.RUN for each in self._slots)
        )

    def _waits_for_credits(self, slot: Slot) -> bool:
        if slot.closing:
            return False
        others = self.window.places - slot.places(self._events_per_mep)
        return self.window.outstanding > others and bool(self.open or self.is_computing)
