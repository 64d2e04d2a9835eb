"""What a feeder keeps until it is acknowledged, what it may send next, and when it sends something again.

No I/O and no clock; times are monotonic nanoseconds.
"""

from collections import Counter, deque
from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from hltnode.daemon.common.mep_ranges import MepRanges
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.feeder_messages import Nack

# A fragment that arrives damaged more often is damaged here and not on the way.
MAX_RESENDS = 5
# A refused fragment is sent again after this: a slot is free again after some milliseconds.
RETRY_NS = 50_000_000
# The oldest MEP is unacknowledged for this time, far above the default MEP timeout: all its fragments may be lost.
PASSED_OVER_NS = 3_000_000_000
# The node has these, or has built the MEP without them: what is kept goes when the MEP is acknowledged.
_ENDED_BY_ACK = frozenset({RejectReason.DUPLICATE, RejectReason.LATE})


class SendWindow:
    """The MEPs of one feeder between production and acknowledgement by one node."""

    def __init__(self) -> None:
        self.limit = 0
        self.acked = MepRanges()
        self.revoked: set[int] = set()
        """MEPs that were assigned to this node and then to another one: this one must not keep their events."""
        self.refused: Counter[RejectReason] = Counter()
        """Fragments that the node will never accept, by reason."""
        self.resent = 0
        self.next_mep = 0
        self._kept: dict[int, dict[int, bytes]] = {}
        self._active: set[int] = set()
        self._queue: list[tuple[int, int]] = []
        self._attempts: Counter[tuple[int, int]] = Counter()
        self._retries: deque[tuple[int, int, int]] = deque()
        self._oldest: tuple[int, int] | None = None

    def __contains__(self, mep: int) -> bool:
        return mep in self._kept

    @property
    def first_unacknowledged(self) -> int:
        """The lowest MEP id that is kept, or the next one to be produced."""
        return min(self._kept, default=self.next_mep)

    @property
    def unacknowledged(self) -> int:
        """Number of MEPs that are kept."""
        return len(self._kept)

    @property
    def room(self) -> int:
        """MEPs that may be added and sent at once; negative when more are kept than the node has credits for."""
        return self.limit - len(self._kept)

    def meps(self) -> list[int]:
        """The MEPs that are kept, in the order of their ids."""
        return sorted(self._kept)

    def add(self, mep: int, frames: dict[int, bytes]) -> None:
        """Keep the frames of a MEP by source and queue them, unless it has been acknowledged to an earlier session."""
        self.next_mep = max(self.next_mep, mep + 1)
        self.revoked.discard(mep)
        if mep in self.acked:
            return
        self._kept[mep] = dict(frames)
        for source in frames:
            heappush(self._queue, (mep, source))

    def revoke(self, mep: int) -> dict[int, bytes]:
        """Revoke a MEP, because another node gets it; returns its frames, empty if it is not kept."""
        self.revoked.add(mep)
        self._active.discard(mep)
        return self._kept.pop(mep, {})

    def next_frame(self) -> bytes | None:
        """The next frame that credits allow, in the order of MEPs; None if there is none.

        Credits count MEPs that are not acknowledged: a MEP of which something was sent goes on to its end.
        """
        while self._queue:
            mep, source = self._queue[0]
            frame = self._kept.get(mep, {}).get(source)
            if frame is None:
                heappop(self._queue)
                continue
            if mep not in self._active:
                if len(self._active) >= self.limit:
                    return None
                self._active.add(mep)
            heappop(self._queue)
            return frame
        return None

    def credit(self, limit: int) -> None:
        """This many MEPs may be on their way or in the node without being acknowledged."""
        self.limit = limit

    def acknowledge(self, first: int, last: int) -> None:
        """The node has acknowledged these MEPs; the ids may reach beyond what has been produced."""
        for mep in [mep for mep in self._kept if first <= mep <= last]:
            self._forget(mep)
        self.acked.add(first, last)
        for mep in self.revoked:
            if first <= mep <= last:
                # The node has finished it all the same; but its events belong to the other node.
                self.acked.discard(mep)

    def refuse(self, now_ns: int, nack: Nack) -> None:
        """Take a refusal: the fragment is queued again by `retry`, or given to `refused` if that cannot help."""
        fragments = self._kept.get(nack.mep)
        if fragments is None or nack.source not in fragments or nack.reason in _ENDED_BY_ACK:
            return
        if nack.reason is not RejectReason.NO_CREDIT:
            self._attempts[nack.mep, nack.source] += 1
        helps = nack.resend and self._attempts[nack.mep, nack.source] <= MAX_RESENDS
        if helps or nack.reason is RejectReason.NO_CREDIT:
            self._retries.append((now_ns + RETRY_NS, nack.mep, nack.source))
            return
        self.refused[nack.reason] += 1
        del fragments[nack.source]
        if not fragments:
            self._forget(nack.mep)

    @property
    def next_retry_ns(self) -> int | None:
        """When `retry` has something to do; None if no refused fragment waits."""
        return self._retries[0][0] if self._retries else None

    def retry(self, now_ns: int) -> None:
        """Queue the refused fragments whose time has come."""
        while self._retries and self._retries[0][0] <= now_ns:
            _, mep, source = self._retries.popleft()
            self._queue_again(mep, source)

    def _queue_again(self, mep: int, source: int) -> None:
        if source in self._kept.get(mep, {}):
            self.resent += 1
            heappush(self._queue, (mep, source))

    def queue_passed_over(self, now_ns: int, *, all_sent: bool) -> None:
        """Queue MEPs again of which nothing seems to have arrived, when the oldest one has waited long enough.

        Younger ones are acknowledged, or (`all_sent`) none will come. To be called now and then.
        """
        oldest = self.first_unacknowledged
        if self._oldest is None or self._oldest[0] != oldest:
            self._oldest = (oldest, now_ns)
            return
        if now_ns - self._oldest[1] <= PASSED_OVER_NS:
            return
        self._oldest = None
        newest = max((last for _, last in self.acked.ranges()), default=-1)
        waiting = set(self._queue)
        for mep, fragments in self._kept.items():
            if mep < self.limit and (all_sent or mep < newest):
                for source in fragments:
                    if (mep, source) not in waiting:
                        self._queue_again(mep, source)

    def restart(self) -> None:
        """The connection or the node is new: no credit, and everything that is kept goes again."""
        self.limit = 0
        self._active.clear()
        self._retries.clear()
        waiting = set(self._queue)
        everything = [(mep, source) for mep, fragments in self._kept.items() for source in fragments]
        self.resent += sum(entry not in waiting for entry in everything)
        self._queue = everything
        heapify(self._queue)

    def _forget(self, mep: int) -> None:
        fragments: Iterable[int] = self._kept.pop(mep)
        self._active.discard(mep)
        for source in fragments:
            self._attempts.pop((mep, source), None)
