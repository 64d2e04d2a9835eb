"""Which node gets which MEP: the supervisor's list as plain state (no I/O, no clock)."""

from collections import deque
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from hltnode.protocol.transport.assignments import ACKNOWLEDGED

# What `node_for` of supervisor and followers says of a MEP that goes to no node.
DONE = -1
# Entries that a feeder may lag behind before it gets the present state instead of the steps that led to it.
REMEMBERED_ENTRIES = 65_536


class AssignmentList:
    """Assignments in the order in which they were made; a later entry for a MEP revokes it from the former node."""

    def __init__(self, next_mep: int = 0, node_of: Mapping[int, int] = MappingProxyType({})) -> None:
        self.next_mep = next_mep
        """Every MEP below it is assigned or acknowledged."""
        self.node_of = dict(node_of)
        """The node of each MEP that is assigned and not acknowledged."""
        self._entries: deque[tuple[int, int]] = deque(maxlen=REMEMBERED_ENTRIES)
        self._end = 0

    def assign(self, mep: int, node: int) -> None:
        """A MEP goes to a node, for the first time or instead of another one."""
        self.node_of[mep] = node
        self._append(mep, node)
        self.next_mep = max(self.next_mep, mep + 1)

    def is_acknowledged(self, mep: int) -> bool:
        """True if a MEP was assigned, or skipped, and is acknowledged."""
        return mep < self.next_mep and mep not in self.node_of

    def skip(self, mep: int) -> None:
        """A MEP is not sent: it was acknowledged to an earlier session of the feeder."""
        self.next_mep = max(self.next_mep, mep + 1)

    def acknowledged(self, mep: int) -> None:
        """A MEP that is assigned is acknowledged."""
        del self.node_of[mep]
        self._append(mep, ACKNOWLEDGED)

    def _append(self, mep: int, node: int) -> None:
        self._entries.append((mep, node))
        self._end += 1

    @property
    def end(self) -> int:
        """Position behind the last entry."""
        return self._end

    def since(self, position: int | None, at_most: int) -> tuple[list[tuple[int, int]], int, bool]:
        """The entries from a position on, up to a number, the position behind them, and False.

        A feeder that is new (None) or too far behind gets everything that is assigned and not acknowledged, and True.
        """
        begin = self._end - len(self._entries)
        if position is None or not begin <= position <= self._end:
            return sorted(self.node_of.items()), self._end, True
        first = position - begin
        chosen = [self._entries[i] for i in range(first, min(first + at_most, len(self._entries)))]
        return chosen, position + len(chosen), False


def choose_node(free_shares: Sequence[float], last: int) -> int | None:
    """The node of whose credits the largest part is free, None if all are full; of several the first after the `last`
    chosen.

    By parts and not by numbers, so that nodes with different numbers of slots are equally busy at every load.
    """
    best = max(free_shares, default=0.0)
    if best <= 0.0:
        return None
    order = [(last + 1 + i) % len(free_shares) for i in range(len(free_shares))]
    return next(node for node in order if free_shares[node] == best)
