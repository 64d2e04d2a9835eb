"""The send window of a feeder: unacknowledged MEPs, credits, and repeats.

A MEP is kept from `add` to its acknowledgement. It is active from its first frame on: active MEPs count against the
credits of the node, and are sent to their end. A MEP for which the node has no slot becomes inactive and lets others go
first: MEPs that other feeders have begun hold the slots, and some of those may wait here for a credit. If the node
refused only a part of it, a slot became free meanwhile and the MEP has it: the other part follows at once. A frame is
repeated for one of three reasons:

- the node refused the fragment with a reason that allows a retry;
- the connection or the node is new: all kept MEPs are repeated;
- it was lost on a live connection: frames sent later have arrived, and the node does not report the MEP as held
  (`silent_meps`).

No I/O and no clock; times are monotonic nanoseconds. Only a restart loops over all kept MEPs.
"""

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Mapping
from heapq import heappop, heappush
from itertools import islice

from hltnode.client.kept_mep import KeptMep, NextFrames
from hltnode.client.refused_fragments import RefusedFragments
from hltnode.client.silent_meps import SilentMeps
from hltnode.protocol.buffers import Buffer
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.feeder_messages import Nack
from hltnode.protocol.transport.mep_ranges import MepRanges

# A fragment that arrives damaged more often is damaged in this process, not on the way.
MAX_RESENDS = 5
# Delay before a refused fragment is repeated: a slot becomes free within some milliseconds.
RETRY_NS = 50_000_000
# The node has these fragments, or built the MEP without them.
_AT_NODE = frozenset({RejectReason.DUPLICATE, RejectReason.LATE})
# The fragment is valid: the node will accept it later, or the supervisor assigns it to another node.
_PASSING = frozenset({RejectReason.NO_CREDIT, RejectReason.REVOKED})
_NO_FRAMES = NextFrames(-1, [], [])


class SendWindow:
    """The MEPs of one feeder between production and acknowledgement by one node.

    With `retains`, the frames of acknowledged MEPs stay until `release`: another connection to the node may have missed
    the acknowledgement. Then the whole MEP goes to another node.
    """

    def __init__(self) -> None:
        self.limit = 0
        self.retains = False
        self.in_order = False
        """Whether MEPs come in order of ids, for several nodes: no MEP below a confirmed id comes any more."""
        self.acked = MepRanges()
        self.acknowledged_before = 0
        """MEPs that were not sent, because the node had acknowledged their ids to an earlier session."""
        self.revoked = MepRanges()
        """MEPs that were reassigned from this node to another: this node must not keep their events."""
        self.to_revoke = MepRanges()
        """Revoked MEPs that the node has not confirmed yet."""
        self.not_revoked = MepRanges()
        """MEPs whose revocation the node refused."""
        self.to_return = MepRanges()
        """Revoked MEPs that were assigned to this node again, not yet confirmed by the node."""
        self.confirmed = 0
        """Every MEP below this id is confirmed to the node."""
        self.refused = RefusedFragments()
        """Fragments that no MEP of the node contains."""
        self._missed: dict[int, MepRanges] = {}
        """MEPs that the node closed without a fragment of a source, in this window or not."""
        self.resent = 0
        self.next_mep = 0
        self._kept: dict[int, KeptMep] = {}
        self._ids: list[int] = []
        """The kept MEPs, in order."""
        self._retained: dict[int, dict[int, Buffer]] = {}
        self._is_stopped = False
        self._active = 0
        # MEPs with frames to send: active ones, and those that need a credit, ordered by their turns. Entries of MEPs
        # that are no longer kept, or have nothing to send, are skipped.
        self._going: list[int] = []
        self._new: list[tuple[int, int]] = []
        self._retries: deque[tuple[int, KeptMep, int, int]] = deque()
        # Active MEPs without frames to send.
        self._silent = SilentMeps()
        self._n_sent = 0
        self._floor_of_session = 0

    def __contains__(self, mep: int) -> bool:
        return mep in self._kept

    @property
    def first_unacknowledged(self) -> int:
        """The lowest kept MEP id, or the next id to be produced if none is kept."""
        return self._ids[0] if self._ids else self.next_mep

    @property
    def unacknowledged(self) -> int:
        """Number of kept MEPs."""
        return len(self._kept)

    @property
    def room(self) -> int:
        """Number of MEPs that may be added and sent at once; negative if more MEPs are kept than credits."""
        return self.limit - len(self._kept)

    @property
    def free_share(self) -> float:
        """Unused credits of the node; negative if more MEPs are kept than there are credits."""
        limit = self.limit
        return (limit - len(self._kept)) / (limit if limit > 1 else 1)

    def holds(self, mep: int) -> bool:
        """True if this window has the frames of a MEP."""
        return mep in self._kept or mep in self._retained

    @property
    def retained(self) -> list[int]:
        """The acknowledged MEPs whose frames are still kept."""
        return list(self._retained)

    def meps(self) -> list[int]:
        """The kept MEPs, ordered by id."""
        return self._ids.copy()

    def add(self, mep: int, frames: Mapping[int, Buffer]) -> None:
        """Keep and queue the frames of a MEP by source, unless it was acknowledged to an earlier session."""
        self.next_mep = max(self.next_mep, mep + 1)
        if mep in self.revoked:
            self.revoked.discard(mep)
            self.to_revoke.discard(mep)
            self.to_return.add(mep)
        for source, meps in self._missed.items():
            if mep in meps:
                self.refused.add(RejectReason.LATE, source, mep)
        if self.retains:
            # Another connection that decides has not received the acknowledgement; the node repeats it.
            self.acked.discard(mep)
            self._retained.pop(mep, None)
        if mep in self.acked:
            self.acknowledged_before += 1
            return
        self._kept[mep] = KeptMep(dict(frames))
        if not self._ids or mep > self._ids[-1]:
            self._ids.append(mep)
        else:
            insort(self._ids, mep)
        heappush(self._new, (0, mep))

    def revoke(self, mep: int) -> dict[int, Buffer]:
        """Revoke a MEP that another node gets; returns its frames, empty if this window has none."""
        self.revoked.add(mep)
        self.to_revoke.add(mep)
        self.to_return.discard(mep)
        self.acked.discard(mep)
        for meps in self._missed.values():
            meps.discard(mep)
        self.refused.discard(RejectReason.LATE, mep)
        entry = self._kept.get(mep)
        if entry is None:
            return self._retained.pop(mep, {})
        self._forget(mep, entry)
        del self._ids[bisect_left(self._ids, mep)]
        return entry.frames

    def remember_revoked(self, revoked: MepRanges) -> None:
        """Add MEPs that an earlier process revoked; it is unknown whether the node confirmed them."""
        self.revoked = MepRanges(revoked.ranges())
        self.to_revoke = MepRanges(revoked.ranges())

    def forget_revoked(self) -> None:
        """Drop remembered revocations that are out of date."""
        self.revoked = MepRanges()
        self.to_revoke = MepRanges()

    def revocation_refused(self) -> None:
        """The node refuses to revoke these MEPs."""
        for first, last in self.to_revoke.ranges():
            self.not_revoked.add(first, last)
        self.to_revoke = MepRanges()

    def confirm_revoked(self, first: int, last: int) -> None:
        """The node keeps no fragments of these MEPs, and accepts none."""
        self.to_revoke.discard(first, last)

    def confirm_returned(self, first: int, last: int) -> None:
        """The node accepts these MEPs again."""
        self.to_return.discard(first, last)

    def confirm_below(self, mep: int) -> None:
        """Every MEP below this id is confirmed to the node and will not be revoked."""
        self.confirmed = mep
        for ranges in (self.revoked, self.to_revoke, self.to_return):
            ranges.discard(0, mep - 1)
        if self.in_order and mep > 0:
            # The ids of one node lie between those of the others: their ranges would grow with every MEP.
            self.acked.add(0, mep - 1)

    def next_frames(self, most: int) -> NextFrames:
        """The next frames that credits allow, all of one MEP, or none. Report the sent ones with `sent`."""
        mep = self._next_mep()
        if mep is None:
            return _NO_FRAMES
        entry = self._kept[mep]
        sources = list(islice(reversed(entry.waiting), most))
        return NextFrames(mep, sources, [entry.frames[source] for source in sources])

    def _next_mep(self) -> int | None:
        if self._is_stopped:
            return None
        while self._going:
            entry = self._kept.get(self._going[0])
            if entry is not None and entry.active and entry.waiting:
                return self._going[0]
            heappop(self._going)
        while self._new and self._active < self.limit:
            _, mep = heappop(self._new)
            entry = self._kept.get(mep)
            if entry is not None and not entry.active and entry.waiting:
                entry.active = True
                self._active += 1
                heappush(self._going, mep)
                return mep
        return None

    def sent(self, now_ns: int, next_frames: NextFrames, n: int) -> None:
        """The first n of these frames were sent."""
        entry = self._kept.get(next_frames.mep)
        if entry is None or not n:
            return
        for source in next_frames.sources[:n]:
            entry.waiting.pop(source, None)
        if entry.nacked:
            for source in next_frames.sources[:n]:
                entry.nacked.pop(source, None)
        self._n_sent += n
        entry.last_turn = self._n_sent
        if entry.active and not entry.waiting and not entry.at_node:
            self._silent.sent(next_frames.mep, self._n_sent, now_ns)

    def credit(self, limit: int) -> None:
        """Set the number of MEPs that may be sent without acknowledgement."""
        self.limit = limit

    def acknowledge(self, first: int, last: int) -> None:
        """The node acknowledged these MEPs; the ids may include MEPs that are not produced yet."""
        i, j = bisect_left(self._ids, first), bisect_right(self._ids, last)
        for mep in self._ids[i:j]:
            entry = self._kept[mep]
            for source, reason in entry.nacked.items():
                # The node closed the MEP before the fragment was repeated.
                self.refused.add(reason, source, mep)
            if not entry.waiting:
                self._silent.arrived(entry.last_turn)
            self._forget(mep, entry)
            if self.retains:
                self._retained[mep] = entry.frames
        del self._ids[i:j]
        self.acked.add(first, last)
        if self.revoked:
            for begin, end in self.revoked.overlap(first, last):
                # The node finished them nevertheless, but their events belong to the other node.
                self.acked.discard(begin, end)

    def hold(self, first: int, last: int) -> None:
        """This session of the node holds these MEPs completely."""
        for mep in self._ids[bisect_left(self._ids, first) : bisect_right(self._ids, last)]:
            entry = self._kept[mep]
            # The node may have sent this before it dropped a MEP that was revoked and assigned again.
            if not entry.active or mep in self.to_return:
                continue
            if not entry.waiting:
                self._silent.arrived(entry.last_turn)
            self._silent.discard(mep)
            entry.held = entry.at_node = True
            entry.waiting.clear()
            entry.nacked.clear()

    def release(self, mep: int) -> None:
        """Confirm that a MEP stays at this node: the deciding connection received its acknowledgement."""
        if mep in self._kept:
            self.acknowledge(mep, mep)
        self._retained.pop(mep, None)

    def refuse(self, now_ns: int, nack: Nack) -> None:
        """Handle a refusal: `retry` queues the fragment again, or `refused` counts it if a retry cannot help."""
        mep, source, reason = nack.mep, nack.source, nack.reason
        if mep in self.revoked:
            return
        entry = self._kept.get(mep)
        if reason in _AT_NODE:
            # Below the floor of a session every fragment is late, even of MEPs that an earlier session built.
            if reason is RejectReason.LATE and mep >= self._floor_of_session:
                self.refused.add(reason, source, mep)
            if entry is not None:
                entry.at_node = True
                self._silent.discard(mep)
            return
        if not nack.resend:
            self._give_up(mep, source, reason)
        elif entry is not None and source in entry.frames and source not in entry.waiting:
            if reason not in _PASSING:
                entry.attempts[source] = entry.attempts.get(source, 0) + 1
                if entry.attempts[source] > MAX_RESENDS:
                    self._give_up(mep, source, reason)
                    return
            if reason is RejectReason.NO_CREDIT and entry.active:
                self._give_way(mep, entry)
            entry.nacked[source] = reason
            self._retries.append((now_ns + RETRY_NS, entry, mep, source))

    def _give_way(self, mep: int, entry: KeptMep) -> None:
        """The node has no slot for a MEP: its refused fragments wait for another credit, behind all other MEPs."""
        entry.active = False
        entry.turns += 1
        self._active -= 1
        self._silent.discard(mep)

    def miss(self, source: int, first: int, last: int) -> None:
        """The node closed these MEPs without a fragment of this source.

        The fragment counts as refused: now if its MEP is kept, else when the MEP is added. If the acknowledgement comes
        first, the node sends no refusal for frames that arrive later.
        """
        self._missed.setdefault(source, MepRanges()).add(first, last)
        for mep in self._ids[bisect_left(self._ids, first) : bisect_right(self._ids, last)]:
            self.refused.add(RejectReason.LATE, source, mep)

    def _give_up(self, mep: int, source: int, reason: RejectReason) -> None:
        self.refused.add(reason, source, mep)
        entry = self._kept.get(mep)
        if entry is None or entry.frames.pop(source, None) is None:
            return
        entry.waiting.pop(source, None)
        entry.nacked.pop(source, None)
        if not entry.frames:
            self._forget(mep, entry)
            del self._ids[bisect_left(self._ids, mep)]

    @property
    def next_retry_ns(self) -> int | None:
        """Time of the next retry; None if no refused fragment waits."""
        return self._retries[0][0] if self._retries else None

    def retry(self, now_ns: int) -> None:
        """Queue the refused fragments that are due."""
        while self._retries and self._retries[0][0] <= now_ns:
            _, entry, mep, source = self._retries.popleft()
            if self._kept.get(mep) is entry and source in entry.nacked and source not in entry.waiting:
                self._queue_again(mep, entry, source)

    def _queue_again(self, mep: int, entry: KeptMep, source: int) -> None:
        self.resent += 1
        has_place = not entry.active and entry.is_begun
        if has_place:
            entry.active = True
            self._active += 1
        if not entry.active:
            heappush(self._new, (entry.turns, mep))
        elif has_place or not entry.waiting:
            self._silent.discard(mep)
            heappush(self._going, mep)
        entry.waiting[source] = None

    def queue_lost(self, now_ns: int) -> None:
        """Queue lost MEPs again. Call it after the node reported which MEPs it holds."""
        for mep in self._silent.lost(now_ns):
            entry = self._kept[mep]
            for source in reversed(entry.frames):
                self._queue_again(mep, entry, source)

    def stop(self) -> None:
        """The connection is lost: send nothing until `restart`."""
        self.limit = 0
        self._is_stopped = True

    def restart(self, *, keeps_held: bool = False) -> None:
        """The connection or the node is new: drop all credit and queue all kept MEPs again.

        With `keeps_held` the session of the node is the same: MEPs that it reported as held are not repeated.
        """
        self.limit = 0
        self.to_revoke = MepRanges(self.revoked.ranges())
        self._is_stopped = False
        self._active = 0
        self._retries.clear()
        self._going.clear()
        self._new = []
        self._silent.clear()
        self._floor_of_session = self.first_unacknowledged
        for mep in self._ids:
            entry = self._kept[mep]
            entry.turns = 0
            entry.nacked.clear()
            entry.held &= keeps_held
            entry.active = entry.at_node = entry.held
            if entry.held:
                self._active += 1
                continue
            self.resent += len(entry.frames) - len(entry.waiting)
            entry.waiting = dict.fromkeys(reversed(entry.frames))
            # Sorted by id, so the list is a valid heap.
            self._new.append((0, mep))

    def _forget(self, mep: int, entry: KeptMep) -> None:
        del self._kept[mep]
        self._active -= entry.active
        self._silent.discard(mep)
