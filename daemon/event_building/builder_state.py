"""The state of the event builder, and questions about it. Only `EventBuilder` changes this state (no I/O, no clock)."""

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

# Open MEPs in the text of the history: a full node may have thousands.
SHOWN_OPEN = 64
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
        """Runs that were started, those counted again that were taken up again."""
        self.sources: tuple[int, ...] = ()
        self.open: dict[int, MepRecord] = {}
        self.window = CreditWindow(pool)
        self.draining = False
        self.closed = False
        self._gathered: set[int] = set()
        self._limits = limits
        self._closed_meps = ClosedMeps(limits.closed_ring)
        self._mep_bytes = pool.limits.mep_bytes
        self._slots = pool.slots
        self._feeders = AwaitedFeeders(limits.feeder_timeout_ns)
        self._column_of: dict[int, int] = {}
        self._all_sources = 0
        self._events_per_mep = 1
        self._complete_up_to = -1
        self._refused_up_to = -1
        self._last_opened = -1
        self._is_pressure_known = False

    @property
    def span(self) -> int:
        """Number of MEP ids, from the floor on, that are taken."""
        return self._closed_meps.span

    @property
    def floor(self) -> int:
        """Every MEP id below it is acknowledged to the feeders."""
        return self._closed_meps.floor

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
        held += [mep for mep in closed if self._closed_meps.is_closed(mep)]
        return as_ranges(sorted(held))

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

    def _foreign(self, run: int) -> RejectReason:
        """Why a fragment of another run, or of a source that is not expected, is refused."""
        if self.run is None:
            return RejectReason.NO_CREDIT
        return RejectReason.UNKNOWN_SOURCE if run == self.run else RejectReason.FOREIGN_RUN

    def _refusal(self, mep_id: int, bit: int, n_events: int, needed: int) -> RejectReason | None:
        """Why a MEP that is not open cannot be opened, or None."""
        refusal = self._closed_meps.refusal(mep_id, bit)
        if refusal is not None:
            return refusal
        if self.window.outstanding <= 0 or self.closed:
            return RejectReason.NO_CREDIT
        if n_events > self._events_per_mep or needed > self._mep_bytes:
            return RejectReason.OVERSIZED
        return None

    def _has_slot_pressure(self) -> bool:
        """No place is left for another MEP, and no slot is with the pipeline, from where it would come back."""
        return not self.is_computing and self.window.places <= 0

    def _is_full(self, slot: Slot) -> bool:
        """Nothing more fits, and all its MEPs are closed."""
        return slot.open_meps == 0 and slot.places(self._events_per_mep) == 0

    def _waits_for_credits(self, slot: Slot) -> bool:
        others = self.window.places - slot.places(self._events_per_mep)
        return not slot.closing and self.window.outstanding > others and bool(self.open or self.is_computing)
