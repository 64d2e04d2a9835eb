"""The rule for MEPs that come faster than the node computes (no I/O, no clock).

It decides when a slot is sealed. The buffers are full when every other slot waits for the back end or is in it. A slot
that waits for an output does not count: a full disk holds feeders back under every rule.
"""

from collections.abc import Iterable, Sequence

from hltnode.daemon.common.vocabulary import HeadRoomRule, SlotState
from hltnode.daemon.event_building.slots import Slot
from hltnode.daemon.event_building.stimuli_and_effects import BuilderLimits, MepRecord

_IN_BACK_END = (SlotState.SEALED, SlotState.RUN)


def are_full(slots: Iterable[Slot], sealed: Slot) -> bool:
    """Whether no slot but the sealed one can take a MEP before the back end returns a batch."""
    return all(slot.state in _IN_BACK_END for slot in slots if slot is not sealed)


class HeadRoom:
    """Marks the MEPs that the rule of a node drops."""

    def __init__(self, limits: BuilderLimits) -> None:
        self._rule = limits.head_room
        self._one_of = limits.thin_to_one_of
        self._seen = 0
        """MEPs that were sealed while the buffers were full."""

    def start_run(self) -> None:
        """Compute the first MEP of a run that the rule thin finds."""
        self._seen = 0

    def drop(self, meps: Sequence[MepRecord], slots: Iterable[Slot], sealed: Slot) -> int:
        """Mark those of the MEPs of a sealed slot that are dropped; returns their number."""
        if self._rule is HeadRoomRule.KEEP or not are_full(slots, sealed):
            return 0
        dropped = 0
        for mep in meps:
            # The ids of a farm's node may all be multiples of a number, so MEPs are counted.
            is_computed = self._rule is HeadRoomRule.THIN and self._seen % self._one_of == 0
            self._seen += 1
            if is_computed:
                continue
            mep.dropped_by = self._rule
            # Its policy for incomplete MEPs would keep what the rule drops.
            mep.error_stream = False
            dropped += 1
        return dropped
