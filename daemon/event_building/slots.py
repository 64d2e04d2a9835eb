"""Slots of pinned memory: their states, and where the next fragment goes (no I/O, no clock).

A slot holds whole MEPs. Fragments of several MEPs interleave in it, each at the next 8-byte aligned offset
(bump allocation). A MEP reserves the largest size a MEP may have while it is open, so that an opened MEP can always
be completed; what it did not use is released when it closes.
"""

from dataclasses import dataclass

from hltnode.daemon._native import OpenMeps
from hltnode.daemon.common.vocabulary import SlotState
from hltnode.daemon.event_building.stimuli_and_effects import MepRecord

# MFPs are copied to 8-byte aligned offsets, because the kernels read 32- and 64-bit words from them.
ALIGNMENT = 8

_ORDER = list(SlotState)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotLimits:
    """What one slot holds, and the bytes that one MEP may need (reserved when it opens).

    ``fragments`` bounds the MFPs of a slot; how many MEPs that allows follows from the sources of the run.
    """

    input_bytes: int
    events: int
    meps: int
    fragments: int
    mep_bytes: int

    def __post_init__(self) -> None:
        if not 0 < self.mep_bytes <= self.input_bytes:
            raise ValueError(f"max MEP size {self.mep_bytes} B does not fit a slot of {self.input_bytes} B")
        if min(self.events, self.meps, self.fragments) < 1:
            raise ValueError("a slot must hold at least one event, MEP and fragment")


class Slot:
    """One slot: state, reservations and the MEPs in it, in the order in which they opened.

    ``committed`` are the bytes of closed MEPs and, of open ones, the bytes that they may come to need.
    """

    __slots__ = (
        "closing",
        "committed",
        "deadline_ns",
        "events",
        "index",
        "limits",
        "max_meps",
        "meps",
        "open_meps",
        "state",
    )

    def __init__(self, index: int, limits: SlotLimits) -> None:
        self.index = index
        self.limits = limits
        self.max_meps = limits.meps
        self.state = SlotState.FREE
        self.meps: list[MepRecord] = []
        self.open_meps = 0
        self.committed = 0
        self.events = 0
        self.deadline_ns = 0
        self.closing = False

    def places(self, events_per_mep: int) -> int:
        """How many more MEPs of the largest allowed size can certainly be opened here."""
        if self.closing or (self.state is not SlotState.FREE and self.state is not SlotState.FILLING):
            return 0
        limits = self.limits
        by_bytes = (limits.input_bytes - self.committed) // limits.mep_bytes
        by_events = (limits.events - self.events) // events_per_mep
        return min(by_bytes, by_events, self.max_meps - len(self.meps))

    def open_mep(self, mep: MepRecord) -> None:
        """Reserve room for a MEP; the caller has checked that there is a place."""
        self.state = SlotState.FILLING
        self.meps.append(mep)
        self.open_meps += 1
        self.events += mep.n_events
        self.committed += self.limits.mep_bytes

    def close_mep(self, mep: MepRecord) -> None:
        """Release what an open MEP had reserved and did not use."""
        self.open_meps -= 1
        self.committed -= self.limits.mep_bytes - mep.arrived.bytes

    def abandon_mep(self, mep: MepRecord) -> None:
        """Remove an open MEP; its bytes stay unused until the slot is free again."""
        self.close_mep(mep)
        self.events -= mep.n_events
        self.meps.remove(mep)

    def advance(self, state: SlotState) -> None:
        """Go forward in the order of the states, as the pipeline reports it; raises ValueError on a step back."""
        if _ORDER.index(state) < _ORDER.index(self.state):
            raise ValueError(f"slot {self.index} cannot go from {self.state} to {state}")
        self.state = state

    def free(self) -> None:
        """Drop the content: the slot can fill again."""
        self.state = SlotState.FREE
        self.meps = []
        self.open_meps = 0
        self.committed = 0
        self.events = 0
        self.closing = False


class SlotPool:
    """The slots of a node and the choice of one for a new MEP.

    `meps` is what compiled code knows of the open MEPs and of where the next fragment of each slot goes.
    """

    def __init__(self, count: int, limits: SlotLimits) -> None:
        # With one slot nothing could back the credits while it is computed: see `EventBuilder._seal_if_due`.
        if count < 2:
            raise ValueError("at least two slots are needed: one fills while the other computes")
        self.limits = limits
        self.meps = OpenMeps(count, limits.mep_bytes)
        self.slots = [Slot(index, limits) for index in range(count)]
        self.filling: list[Slot] = []

    def expect_sources(self, n_sources: int) -> None:
        """A run begins whose MEPs have up to this number of MFPs. Raises ValueError if a slot cannot hold one MEP."""
        if not 0 < n_sources <= self.limits.fragments:
            raise ValueError(f"{n_sources} sources: a slot holds 1 to {self.limits.fragments} fragments")
        for slot in self.slots:
            slot.max_meps = min(self.limits.meps, self.limits.fragments // n_sources)

    def find_place(self, n_events: int) -> Slot | None:
        """The slot for a new MEP: the one that fills longest and has room, else a free one, else None."""
        for slot in self.filling:
            if slot.places(n_events) > 0:
                return slot
        for slot in self.slots:
            if slot.state is SlotState.FREE and slot.places(n_events) > 0:
                return slot
        return None

    def open_mep(self, mep: MepRecord) -> None:
        """Open a MEP in its slot, for which there is a place."""
        slot = self.slots[mep.slot]
        if slot.state is SlotState.FREE:
            self.filling.append(slot)
        slot.open_mep(mep)
        self.meps.open(mep.mep, mep.slot, mep.first_event, mep.n_events, mep.arrived)

    def close_mep(self, mep: MepRecord) -> None:
        """Nothing more is added to an open MEP; what it had reserved and did not use is free."""
        self.meps.close(mep.mep)
        self.slots[mep.slot].close_mep(mep)

    def abandon_mep(self, mep: MepRecord) -> None:
        """Remove an open MEP from its slot."""
        self.meps.close(mep.mep)
        self.slots[mep.slot].abandon_mep(mep)

    def free_places(self, events_per_mep: int) -> int:
        """Places for MEPs in slots that are free."""
        return sum(slot.places(events_per_mep) for slot in self.slots if slot.state is SlotState.FREE)

    def empty_places(self, events_per_mep: int) -> int:
        """Places for MEPs in one slot that holds nothing."""
        by_bytes = self.limits.input_bytes // self.limits.mep_bytes
        return min(by_bytes, self.limits.events // events_per_mep, self.slots[0].max_meps)

    def filling_places(self, events_per_mep: int) -> int:
        """Places for MEPs in slots that fill."""
        return sum(slot.places(events_per_mep) for slot in self.filling)

    def seal(self, slot: Slot) -> None:
        """No more input for this slot: its batch goes to the pipeline now."""
        slot.state = SlotState.SEALED
        self.filling.remove(slot)

    def free(self, index: int) -> None:
        """The batch of a slot is finished: it can fill again."""
        slot = self.slots[index]
        if slot in self.filling:
            self.filling.remove(slot)
        slot.free()
        self.meps.set_cursor(index, 0)

    def by_state(self) -> dict[SlotState, int]:
        """Number of slots in each state, every state named."""
        count = dict.fromkeys(SlotState, 0)
        for slot in self.slots:
            count[slot.state] += 1
        return count
