"""Slots of pinned memory: their states, reservations, and the choice of a slot for a new MEP (no I/O, no clock).

A slot holds whole MEPs. Fragments of several MEPs interleave in it, each at the next 8-byte aligned offset (bump
allocation). An open MEP reserves the largest allowed size, so that it can always be completed. The unused rest is
released when the MEP closes.
"""

from dataclasses import dataclass

from hltnode.daemon._native import OpenMeps
from hltnode.daemon.common.vocabulary import SlotState
from hltnode.daemon.event_building.stimuli_and_effects import MepRecord

# MFPs are copied to 8-byte aligned offsets: the kernels read 32- and 64-bit words from them.
ALIGNMENT = 8

_ORDER = {state: place for place, state in enumerate(SlotState)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotLimits:
    """Capacity of one slot, and the largest size of a MEP in bytes, which an open MEP reserves.

    ``fragments`` limits the number of MFPs in a slot. With the number of sources of the run it limits the MEPs.
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
    """One slot: its state, its reservations, and its MEPs in the order of opening.

    ``committed`` is the sum of the bytes of closed MEPs and the reserved bytes of open ones.
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
        """Number of further MEPs of the largest allowed size that fit."""
        if self.closing or (self.state is not SlotState.FREE and self.state is not SlotState.FILLING):
            return 0
        limits = self.limits
        places = self.max_meps - len(self.meps)
        by_events = (limits.events - self.events) // events_per_mep
        if by_events < places:
            places = by_events
        by_bytes = (limits.input_bytes - self.committed) // limits.mep_bytes
        return by_bytes if by_bytes < places else places

    def has_place(self, n_events: int) -> bool:
        """Whether a further MEP with this number of events fits."""
        limits, state = self.limits, self.state
        return (
            not self.closing
            and (state is SlotState.FILLING or state is SlotState.FREE)
            and len(self.meps) < self.max_meps
            and self.events + n_events <= limits.events
            and self.committed + limits.mep_bytes <= limits.input_bytes
        )

    def open_mep(self, mep: MepRecord) -> None:
        """Reserve memory for a MEP. The caller has checked that there is a place."""
        self.state = SlotState.FILLING
        self.meps.append(mep)
        self.open_meps += 1
        self.events += mep.n_events
        self.committed += self.limits.mep_bytes

    def close_mep(self, mep: MepRecord) -> None:
        """Release the unused part of the reservation of an open MEP."""
        self.open_meps -= 1
        self.committed -= self.limits.mep_bytes - mep.arrived.bytes

    def abandon_mep(self, mep: MepRecord) -> None:
        """Remove an open MEP. Its bytes stay unused until the slot is free again."""
        self.close_mep(mep)
        self.events -= mep.n_events
        self.meps.remove(mep)

    def advance(self, state: SlotState) -> None:
        """Set the state that the pipeline reports. Raises ValueError for a step back in the order of states."""
        if _ORDER[state] < _ORDER[self.state]:
            raise ValueError(f"slot {self.index} cannot go from {self.state} to {state}")
        self.state = state

    def free(self) -> None:
        """Remove all MEPs: the slot can fill again."""
        self.state = SlotState.FREE
        self.meps = []
        self.open_meps = 0
        self.committed = 0
        self.events = 0
        self.closing = False


class SlotPool:
    """The slots of a node.

    `meps` is the view of compiled code: the open MEPs, and the offset of the next fragment in each slot.
    """

    def __init__(self, count: int, limits: SlotLimits) -> None:
        # A single slot could back no credits while it is computed: see `CreditWindow.grant`.
        if count < 2:
            raise ValueError("at least two slots are needed: one fills while the other computes")
        self.limits = limits
        self.meps = OpenMeps(count, limits.mep_bytes)
        self.slots = [Slot(index, limits) for index in range(count)]
        self.filling: list[Slot] = []

    def expect_sources(self, n_sources: int) -> None:
        """Prepare for a run with this number of sources. Raises ValueError if a slot cannot hold one of its MEPs."""
        if not 0 < n_sources <= self.limits.fragments:
            raise ValueError(f"{n_sources} sources: a slot holds 1 to {self.limits.fragments} fragments")
        for slot in self.slots:
            slot.max_meps = min(self.limits.meps, self.limits.fragments // n_sources)

    def find_place(self, n_events: int) -> Slot | None:
        """The slot for a new MEP: the first filling slot with a place, else a free slot, else None."""
        for slot in self.filling:
            if slot.has_place(n_events):
                return slot
        for slot in self.slots:
            if slot.state is SlotState.FREE and slot.has_place(n_events):
                return slot
        return None

    def open_mep(self, mep: MepRecord) -> None:
        """Open a MEP in its slot, which has a place for it."""
        slot = self.slots[mep.slot]
        if slot.state is SlotState.FREE:
            self.filling.append(slot)
        slot.open_mep(mep)
        self.meps.open(mep.mep, mep.slot, mep.first_event, mep.n_events, mep.arrived)

    def close_mep(self, mep: MepRecord) -> None:
        """Close an open MEP and release the unused part of its reservation."""
        self.meps.close(mep.mep)
        self.slots[mep.slot].close_mep(mep)

    def abandon_mep(self, mep: MepRecord) -> None:
        """Remove an open MEP from its slot."""
        self.meps.close(mep.mep)
        self.slots[mep.slot].abandon_mep(mep)

    @property
    def free_slots(self) -> int:
        """Number of free slots."""
        free = 0
        for slot in self.slots:
            if slot.state is SlotState.FREE:
                free += 1
        return free

    def empty_places(self, events_per_mep: int) -> int:
        """Number of places for MEPs in one empty slot."""
        by_bytes = self.limits.input_bytes // self.limits.mep_bytes
        return min(by_bytes, self.limits.events // events_per_mep, self.slots[0].max_meps)

    def filling_places(self, events_per_mep: int) -> int:
        """Number of places for MEPs in filling slots."""
        places = 0
        for slot in self.filling:
            places += slot.places(events_per_mep)
        return places

    def seal(self, slot: Slot) -> None:
        """Seal a filling slot: its batch goes to the pipeline."""
        slot.state = SlotState.SEALED
        self.filling.remove(slot)

    def free(self, index: int) -> None:
        """Free a slot whose batch is finished."""
        slot = self.slots[index]
        if slot in self.filling:
            self.filling.remove(slot)
        slot.free()
        self.meps.set_cursor(index, 0)

    def by_state(self) -> dict[SlotState, int]:
        """Number of slots in each state; every state is a key."""
        count = dict.fromkeys(SlotState, 0)
        for slot in self.slots:
            count[slot.state] += 1
        return count
