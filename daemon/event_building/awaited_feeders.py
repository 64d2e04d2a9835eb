"""Which feeders may still send what is missing in open MEPs (no I/O, no clock).

A feeder sends its MEPs in the order of their ids, so it may still send a fragment of a MEP as long as it has sent
nothing of a younger one. One that is connected and behind the others is slow and not at fault: MEPs wait for it, and
the credits hold back the others. It is not awaited any more when it has delivered nothing for `feeder_timeout_ns`
although MEPs wait for it, until it delivers again.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from hltnode.daemon.event_building.stimuli_and_effects import AwaitedFeeder, MepRecord


class _Progress:
    """How far one feeder is; `position` is the youngest MEP of which it has sent something, as far as is known."""

    __slots__ = ("delivers", "last_mep", "mask", "position", "since_ns")

    def __init__(self, mask: int, now_ns: int) -> None:
        self.mask = mask
        self.last_mep: int | None = None
        self.position = -1
        self.since_ns = now_ns
        self.delivers = True

    def may_send(self, mep: MepRecord) -> bool:
        """Whether the feeder has sent nothing younger than a MEP, and not all of it."""
        return mep.mep >= self.position and bool(self.mask & ~mep.sources) and self.covers(mep.mep)

    def covers(self, mep: int) -> bool:
        """Whether the feeder sends this MEP, as far as it has announced its last one."""
        return self.last_mep is None or mep <= self.last_mep


class AwaitedFeeders:
    """The feeders of a run, and how far they are. Times in ns of the builder's clock."""

    def __init__(self, timeout_ns: int) -> None:
        self._timeout_ns = timeout_ns
        self._feeders: dict[int, _Progress] = {}
        self._behind: list[_Progress] = []

    def expect(self, now_ns: int, feeders: Iterable[tuple[int, AwaitedFeeder]]) -> None:
        """These feeders are connected, each with the bit mask of its sources; those that were known keep their state.

        From all other sources nothing is awaited.
        """
        known, self._feeders = self._feeders, {}
        for mask, feeder in feeders:
            progress = known.get(mask) or _Progress(mask, now_ns)
            progress.last_mep = feeder.last_mep
            self._feeders[mask] = progress

    def look(self, now_ns: int, meps: Sequence[MepRecord], complete_up_to: int) -> None:
        """Note how far the feeders are; `meps` are the open ones, the youngest first."""
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
            feeder.since_ns = now_ns
            feeder.delivers = True

    def awaits(self, now_ns: int, mep: MepRecord) -> bool:
        """Whether a connected feeder may still send fragments that this MEP lacks; after `look`."""
        if not mep.sent_again and not mep.ahead:
            return any(feeder.may_send(mep) for feeder in self._behind)
        if now_ns - mep.last_ns >= self._timeout_ns:
            return False
        # The order of ids says nothing about a MEP that is sent again: its feeders send it at different times.
        return any(
            feeder.delivers and feeder.covers(mep.mep) and not feeder.mask & mep.sources
            if mep.sent_again
            else feeder.may_send(mep)
            for feeder in self._feeders.values()
        )
