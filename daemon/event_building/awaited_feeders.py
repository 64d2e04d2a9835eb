"""Which feeders may still send the missing fragments of open MEPs (no I/O, no clock).

A feeder sends its MEPs in the order of their ids. So it may still send a fragment of a MEP until it has sent a fragment
of a younger one, and for `overtaken_ns` after that, because fragments may overtake each other on their way. A connected
feeder that is behind the others is slow, not faulty: MEPs wait for it, and the credits hold back the others. If it
delivers nothing for `feeder_timeout_ns` while MEPs wait for it, it is no longer awaited. It is awaited again after its
next fragment.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence

from hltnode.daemon.event_building.stimuli_and_effects import AwaitedFeeder, MepRecord


class _Progress:
    """Progress of one feeder. `position` is the youngest MEP from which a fragment of this feeder is known."""

    __slots__ = ("delivers", "last_mep", "mask", "passed", "position", "positions", "since_ns")

    def __init__(self, mask: int, now_ns: int) -> None:
        self.mask = mask
        self.last_mep: int | None = None
        self.position = self.passed = -1
        self.positions: deque[tuple[int, int]] = deque()
        """Times and positions of the last `overtaken_ns`. `passed` is the position before them."""
        self.since_ns = now_ns
        self.delivers = True

    def may_send(self, mep: MepRecord) -> bool:
        """Whether the feeder is not past this MEP, and has not sent all of its fragments."""
        return mep.mep >= self.position and bool(self.mask & ~mep.sources) and self.covers(mep.mep)

    def has_just_passed(self, mep: MepRecord) -> bool:
        """Whether all fragments of this MEP may be on their way behind one of a younger MEP."""
        return self.passed <= mep.mep < self.position and not self.mask & mep.sources and self.covers(mep.mep)

    def forget(self, until_ns: int) -> None:
        """Forget the positions up to a time."""
        while self.positions and self.positions[0][0] <= until_ns:
            self.passed = self.positions.popleft()[1]

    def covers(self, mep: int) -> bool:
        """False for a MEP beyond the last one that the feeder has announced."""
        return self.last_mep is None or mep <= self.last_mep


class AwaitedFeeders:
    """The feeders of a run and their progress. Times are in ns of the builder's clock."""

    def __init__(self, timeout_ns: int, overtaken_ns: int) -> None:
        self._timeout_ns = timeout_ns
        self._overtaken_ns = overtaken_ns
        self._feeders: dict[int, _Progress] = {}
        self._behind: list[_Progress] = []

    def expect(self, now_ns: int, feeders: Iterable[tuple[int, AwaitedFeeder]]) -> None:
        """Set the connected feeders, each with the bit mask of its sources. Known feeders keep their progress.

        Sources of no connected feeder are not awaited.
        """
        known, self._feeders = self._feeders, {}
        for mask, feeder in feeders:
            progress = known.get(mask) or _Progress(mask, now_ns)
            progress.last_mep = feeder.last_mep
            self._feeders[mask] = progress

    def look(self, now_ns: int, meps: Sequence[MepRecord], complete_up_to: int) -> None:
        """Update the progress of the feeders; `meps` are the open MEPs, the youngest first."""
        in_order = [mep for mep in meps if not mep.sent_again]
        ahead = 0
        left = list(self._feeders.values())
        for mep in in_order:
            if not mep.sources & ~ahead:
                continue
            for feeder in left:
                if feeder.mask & mep.sources:
                    ahead |= feeder.mask
                    self._advance(now_ns, feeder, max(mep.mep, complete_up_to))
            ahead |= mep.sources
            left = [feeder for feeder in left if not feeder.mask & ahead]
        for feeder in left:
            self._advance(now_ns, feeder, complete_up_to)
        in_order.reverse()
        ids = [mep.mep for mep in in_order]
        self._behind = []
        for feeder in self._feeders.values():
            feeder.forget(now_ns - self._overtaken_ns)
            begin = bisect_left(ids, feeder.position)
            waiting = next((mep for mep in in_order[begin : begin + 2] if feeder.may_send(mep)), None)
            if waiting is None:
                feeder.since_ns = now_ns
            elif now_ns - max(feeder.since_ns, waiting.last_ns) >= self._timeout_ns:
                feeder.delivers = False
            elif feeder.delivers:
                self._behind.append(feeder)

    @staticmethod
    def _advance(now_ns: int, feeder: _Progress, position: int) -> None:
        if position > feeder.position:
            feeder.position = position
            feeder.positions.append((now_ns, position))
            feeder.since_ns = now_ns
            feeder.delivers = True

    def awaits(self, now_ns: int, mep: MepRecord) -> bool:
        """Whether a connected feeder may still send missing fragments of this MEP. Call `look` first."""
        in_order = not mep.sent_again and not mep.ahead
        if in_order and any(feeder.may_send(mep) for feeder in self._behind):
            return True
        # After the few feeders that are behind: there may be hundreds of others.
        if not mep.sent_again and any(feeder.has_just_passed(mep) for feeder in self._feeders.values()):
            return True
        if in_order:
            return False
        if now_ns - mep.last_ns >= self._timeout_ns:
            return False
        # Feeders send a MEP again at different times, so the order of ids says nothing about its missing fragments.
        return any(
            feeder.delivers and feeder.covers(mep.mep) and not feeder.mask & mep.sources
            if mep.sent_again
            else feeder.may_send(mep)
            for feeder in self._feeders.values()
        )
