"""The credit policy: how many MEPs the feeders may send, and when a change is worth a message (no I/O, no clock)."""

from hltnode.daemon.event_building.slots import SlotPool

# Credits that grew by less than this part of the places behind them are not announced at once. One message per MEP and
# feeder would cost more than a small MEP itself. The next tick announces the remainder.
_CREDIT_STEP = 4


class CreditWindow:
    """The number of MEPs that each feeder may have unacknowledged at this node.

    The window is a level, not a list of ids, so that a supervisor can assign any MEP to any node. It is the sum of two
    numbers. `outstanding` credits are backed by places in slots. `held` MEPs are in slots or with the outputs, and are
    not acknowledged.
    """

    def __init__(self, pool: SlotPool) -> None:
        self.held = 0
        self.outstanding = 0
        self._pool = pool
        self._events_per_mep = 1
        self._places_of_a_slot = 0
        self._announced = 0

    def start_run(self, events_per_mep: int) -> None:
        """Reset the window for a run whose MEPs have up to this number of events."""
        self.held = self.outstanding = 0
        self._announced = -1
        self._events_per_mep = events_per_mep
        self._places_of_a_slot = self._pool.empty_places(events_per_mep)

    @property
    def limit(self) -> int:
        """MEPs that may be unacknowledged."""
        return self.held + self.outstanding

    @property
    def places(self) -> int:
        """Places for MEPs in the slots that are free or fill."""
        return self._free_places + self._pool.filling_places(self._events_per_mep)

    @property
    def _free_places(self) -> int:
        # A free slot is empty, and each MEP asks several times: so its places are not counted slot by slot.
        return self._pool.free_slots * self._places_of_a_slot

    @property
    def is_low(self) -> bool:
        """True below half a slot of credits: then more are granted before the next tick."""
        return self.outstanding * 2 < self._places_of_a_slot

    def opened(self) -> None:
        """A MEP uses a credit."""
        self.held += 1
        self.outstanding -= 1

    def freed(self, meps: int) -> None:
        """MEPs are acknowledged, so the feeders stop counting them: the limit falls by their number."""
        self.held -= meps

    def grant(self, *, small_steps: bool) -> int:
        """Raise the credits to the places that back them; returns by how many they grew. Credits are never revoked.

        The places of free slots back credits, so that the slot that fills can be sealed at its deadline. While no slot
        fills, one of the free slots is the next to fill and backs none. If no other slot is free, the node is busy and
        seals slots when they are full: then the places of the slots that fill back credits, too. Without `small_steps`
        the credits grow only by a step that is worth a message.
        """
        free = self._free_places
        backed = free if self._pool.filling else free - self._places_of_a_slot
        places = backed if backed > 0 else free + self._pool.filling_places(self._events_per_mep)
        growth = places - self.outstanding
        if growth < (1 if small_steps else max(1, places // _CREDIT_STEP)):
            return 0
        self.outstanding = places
        return growth

    def announce(self) -> bool:
        """Whether the feeders must be told the limit, because it is not the one that they know; notes that they are.

        A limit that falls is announced before the acknowledgements that lower it. Otherwise the feeders would send
        other MEPs in place of the acknowledged ones. If the credits grow by as many as MEPs are acknowledged, the limit
        stays, and the acknowledgement alone lets the feeders send.
        """
        if self.limit == self._announced:
            return False
        self._announced = self.limit
        return True
