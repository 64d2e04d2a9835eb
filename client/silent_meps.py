"""Detects MEPs that were lost on a live connection (no I/O, no clock).

A connection keeps the order of frames, and the node reports with each answer to a hello which MEPs it holds. So a MEP
is lost when a later frame has arrived and the node does not report the MEP. Until a later frame arrives, the MEP counts
as on its way without time limit: a node on a busy machine reads late.
"""

from collections import OrderedDict, deque

# Time from the arrival of a later frame to the decision. By then the node has answered a hello, and either reported the
# MEP as held (it reports those older than half a second) or refused a part of it.
OVERTAKEN_NS = 3_000_000_000
# When no later frame has arrived for this time, the last sent MEP is repeated; its arrival shows whether those before
# it have arrived. The kernel ends a connection that takes no data for 15 s, and then all MEPs are repeated anyway. So
# this finds only frames that a live connection lost.
UNHEARD_NS = 20_000_000_000


class SilentMeps:
    """Sent MEPs that the node has not mentioned yet. `turn` counts sent frames, `ns` is monotonic."""

    def __init__(self) -> None:
        self._meps: OrderedDict[int, tuple[int, int]] = OrderedDict()
        """Turn and time of the last frame of each MEP, ordered by turn."""
        self.clear()

    def clear(self) -> None:
        """The connection is new: nothing is on its way."""
        self._meps.clear()
        # The last turn that is known to have arrived, and its history with times.
        self._arrived = -1
        self._seen: deque[tuple[int, int]] = deque()

    def sent(self, mep: int, turn: int, now_ns: int) -> None:
        """The last frame of a MEP was sent."""
        self._meps[mep] = turn, now_ns
        self._meps.move_to_end(mep)

    def discard(self, mep: int) -> None:
        """Forget a MEP: the node mentioned it, or it is repeated."""
        self._meps.pop(mep, None)

    def arrived(self, turn: int) -> None:
        """The node has received the frames of this turn."""
        self._arrived = max(self._arrived, turn)

    def lost(self, now_ns: int) -> list[int]:
        """The MEPs to repeat. Call it after the node reported which MEPs it holds."""
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
