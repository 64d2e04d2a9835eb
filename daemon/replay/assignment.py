"""The assignment of MEPs to nodes: the list of the supervisor as plain state (no I/O, no clock)."""

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from types import MappingProxyType

from hltnode.client.send_window import SendWindow
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


class NodeChoice:
    """The node for the next MEP: the one with the largest fraction of free credits, if it has a free credit.

    Equal nodes take turns: the first one after the last chosen node. Fractions instead of numbers keep nodes with
    different numbers of slots equally busy. A change of a share costs about the logarithm of the number of nodes.
    """

    def __init__(self, n_nodes: int) -> None:
        self._share = [0.0] * n_nodes
        self._nodes: dict[float, list[int]] = {}
        """Nodes with a share above 0, in order, by their share. A list may be empty: there are at most two shares for
        each node."""
        self._largest: list[float] = []
        """Heap of the keys of `_nodes`, as negative numbers."""
        self._last = -1

    def set_share(self, node: int, share: float) -> None:
        """Set the unused part of the credits of a node; 0 or less for a node without a free credit."""
        before = self._share[node]
        if share == before:
            return
        self._share[node] = share
        if before > 0.0:
            nodes = self._nodes[before]
            del nodes[bisect_left(nodes, node)]
        if share > 0.0:
            nodes_of_share = self._nodes.get(share)
            if nodes_of_share is None:
                self._nodes[share] = [node]
                heappush(self._largest, -share)
                if len(self._largest) > 2 * len(self._share):
                    self._forget_empty()
            else:
                insort(nodes_of_share, node)

    def _forget_empty(self) -> None:
        """Forget the shares without nodes. Those with nodes are at most as many as nodes, so this is rare."""
        self._nodes = {share: nodes for share, nodes in self._nodes.items() if nodes}
        self._largest = [-share for share in self._nodes]
        heapify(self._largest)

    def choose(self) -> int | None:
        """The chosen node; None if no node has a free credit."""
        while self._largest:
            share = -self._largest[0]
            nodes = self._nodes[share]
            if nodes:
                i = bisect_right(nodes, self._last)
                self._last = nodes[i] if i < len(nodes) else nodes[0]
                return self._last
            heappop(self._largest)
            del self._nodes[share]
        return None


def node_for_moved(mep: int, connected: Sequence[int], windows: Sequence[SendWindow]) -> int | None:
    """The connected node that gets a MEP of a lost node; None if none can have it now.

    A node with a pending revocation of a MEP could not distinguish its fragments from a second attempt. A node that had
    the MEP before may still receive old fragments, and would mix them with the new ones, so it comes last.
    """
    able = [i for i in connected if mep not in windows[i].to_revoke]
    return max(able, key=lambda i: (mep not in windows[i].revoked, windows[i].free_share), default=None)
