"""Which MEPs are lost on a connection that stands (no I/O, no clock).

A connection keeps the order of what is sent over it. So a MEP is lost when something that was sent after it has arrived
and the node, which says with each answer to a hello what it holds, does not have it. As long as nothing that was sent
later has arrived it is on its way, however long that takes: a node on a busy machine reads late.
"""

from collections import OrderedDict, deque

# From the arrival of what was sent later to the verdict. By then the node has answered a hello, and has said that it
# holds the MEP (it says so of those that are there for half a second) or has refused a part of it.
OVERTAKEN_NS = 3_000_000_000
# When nothing that was sent later has arrived for this time, the MEP that was sent last goes again: what becomes of it
# shows whether those before it have arrived. The kernel ends a connection that takes no data for 15 s, and then
# everything goes again anyway; only what a connection that stands has swallowed is still missing after that.
UNHEARD_NS = 20_000_000_000


class SilentMeps:
    """MEPs that were sent and of which the node has said nothing. `turn` counts what was sent, `ns` is monotonic."""

    def __init__(self) -> None:
        self._meps: OrderedDict[int, tuple[int, int]] = OrderedDict()
        """Turn and time of the last frame, in this order."""
        self.clear()

    def clear(self) -> None:
        """The connection is new: nothing is on its way."""
        self._meps.clear()
        # The last turn of which the node has shown that it has arrived, and how that was at the last looks.
        self._arrived = -1
        self._seen: deque[tuple[int, int]] = deque()

    def sent(self, mep: int, turn: int, now_ns: int) -> None:
        """The last frame of a MEP has left."""
        self._meps[mep] = turn, now_ns
        self._meps.move_to_end(mep)

    def discard(self, mep: int) -> None:
        """The node has said something of a MEP, or it is sent again."""
        self._meps.pop(mep, None)

    def arrived(self, turn: int) -> None:
        """The node has everything that was sent in a turn."""
        self._arrived = max(self._arrived, turn)

    def lost(self, now_ns: int) -> list[int]:
        """The MEPs that are to be sent again; to be called when the node has said what it holds."""
        if not self._seen or self._seen[-1][1] < self._arrived:
            self._seen.append((now_ns, self._arrived))
        while len(self._seen) > 1 and now_ns - self._seen[1][0] >= OVERTAKEN_NS:
            self._seen.popleft()
        seen_ns, arrived = self._seen[0]
        lost: list[int] = []
        if now_ns - seen_ns >= OVERTAKEN_NS:
            for mep, (turn, _) in self._meps.items():
                if turn >= arrived:
                    break
                lost.append(mep)
        if not lost and self._meps:
            mep = next(reversed(self._meps))
            turn, sent_ns = self._meps[mep]
            if turn > self._arrived and now_ns - sent_ns >= UNHEARD_NS:
                lost.append(mep)
        return lost
