"""The assignment of MEPs to nodes: the list of the supervisor as plain state (no I/O, no clock)."""

from collections import deque
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from hltnode.protocol.transport.assignments import ACKNOWLEDGED

# Result of `node_for` for a MEP that goes to no node.
DONE = -1
# A feeder that lags behind by more entries gets the current state instead of the missing entries.
REMEMBERED_ENTRIES = 65_536


class AssignmentList:
    """Assignments in order of decision. A later entry for a MEP revokes the MEP from its former node."""

    def __init__(self, next_mep: int = 0, node_of: Mapping[int, int] = MappingProxyType({})) -> None:
        self.next_mep = next_mep
        """Every MEP below this id is assigned or acknowledged."""
        self.node_of = dict(node_of)
        """Node of each MEP that is assigned and not acknowledged."""
        self._entries: deque[tuple[int, int]] = deque(maxlen=REMEMBERED_ENTRIES)
        self._end = 0

    def assign(self, mep: int, node: int) -> None:
        """Assign a MEP to a node, for the first time or instead of another node."""
        self.node_of[mep] = node
        self._append(mep, node)
        self.next_mep = max(self.next_mep, mep + 1)

    def is_acknowledged(self, mep: int) -> bool:
        """True if a MEP is acknowledged, after an assignment or as skipped."""
        return mep < self.next_mep and mep not in self.node_of

    def skip(self, mep: int) -> None:
        """Skip a MEP that was acknowledged to an earlier session of the feeder."""
        self.next_mep = max(self.next_mep, mep + 1)

    def acknowledged(self, mep: int) -> None:
        """Mark an assigned MEP as acknowledged."""
        del self.node_of[mep]
        self._append(mep, ACKNOWLEDGED)

    def _append(self, mep: int, node: int) -> None:
        self._entries.append((mep, node))
        self._end += 1

    @property
    def end(self) -> int:
        """Position after the last entry."""
        return self._end

    def since(self, position: int | None, at_most: int) -> tuple[list[tuple[int, int]], int, bool]:
        """At most `number` entries from a position on, the position after them, and False.

        A new feeder (position None), or one that lags too far behind, gets all assigned MEPs that are not acknowledged,
        and True.
        """
        begin = self._end - len(self._entries)
        if position is None or not begin <= position <= self._end:
            return sorted(self.node_of.items()), self._end, True
        first = position - begin
        chosen = [self._entries[i] for i in range(first, min(first + at_most, len(self._entries)))]
        return chosen, position + len(chosen), False


def choose_node(free_shares: Sequence[float], last: int) -> int | None:
    """The node with the largest fraction of free credits; None if no node has a free credit.

    Among equal nodes, the first one after `last`. Fractions instead of numbers keep nodes with different numbers of
    slots equally busy.
    """
    best = max(free_shares, default=0.0)
    if best <= 0.0:
        return None
    order = [(last + 1 + i) % len(free_shares) for i in range(len(free_shares))]
    return next(node for node in order if free_shares[node] == best)
