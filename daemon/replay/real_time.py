"""Time slices sent in real time: each one when its time is over, and how late they are."""

from dataclasses import dataclass

from hltnode.client.clock import SYSTEM_CLOCK, Clock
from hltnode.client.mep import FeedMep
from hltnode.daemon.replay.pacing import Pace, Pacer

IN_TIME_NS = 10_000_000
"""A slice is in time up to this long after its end. Timers and the scheduler of a busy machine alone cost some ms."""


@dataclass(frozen=True, slots=True)
class Lateness:
    """How late slices were sent. last_ns: that of the last one; largest_ns: the largest delay."""

    in_time: int = 0
    late: int = 0
    last_ns: int = 0
    largest_ns: int = 0

    def with_slice(self, late_ns: int) -> "Lateness":
        """The same with one slice more."""
        late_ns = max(late_ns, 0)
        is_late = late_ns > IN_TIME_NS
        return Lateness(
            in_time=self.in_time + (not is_late),
            late=self.late + is_late,
            last_ns=late_ns,
            largest_ns=max(self.largest_ns, late_ns),
        )


class RealTimePacer(Pacer):
    """Admits slice n when n + 1 slices of time have passed since the first call. It never forgives lost time.

    A slice is late if it was given to all feeders, within their credits, later than that. During a pause the time of
    the stream stands still.
    """

    def __init__(self, slice_ns: int, clock: Clock = SYSTEM_CLOCK) -> None:
        super().__init__(Pace.GREATEST, clock)
        self.lateness = Lateness()
        self._slice_ns = slice_ns
        self._begin_ns: int | None = None
        self._paused_ns: int | None = None
        self._next = 0
        self._has_ended = False

    @property
    def behind_ns(self) -> int:
        """How long ago the first slice that the feeders do not have was over; 0 during a pause and behind the end."""
        if self._begin_ns is None or self.is_paused or self._has_ended:
            return 0
        return max(0, self._clock.monotonic_ns() - self._due_ns(self._next))

    def pause(self) -> None:
        """Stop the time of the stream."""
        if not self.is_paused:
            self._paused_ns = self._clock.monotonic_ns()
        super().pause()

    def resume(self) -> None:
        """Let the time of the stream go on."""
        if self._paused_ns is not None and self._begin_ns is not None:
            self._begin_ns += self._clock.monotonic_ns() - self._paused_ns
        self._paused_ns = None
        super().resume()

    async def admit(self, mep: FeedMep) -> None:
        """Wait until the time of a slice is over."""
        await super().admit(mep)
        if self._begin_ns is None:
            self._begin_ns = await self.first_begin_ns()
        while (wait_ns := self._due_ns(mep.mep) - self._clock.monotonic_ns()) > 0:
            await self._clock.sleep(wait_ns * 1e-9)
            await super().admit(mep)

    async def first_begin_ns(self) -> int:
        """When the stream starts, by the monotonic clock; called when the first slice may be sent."""
        return self._clock.monotonic_ns()

    def count(self, late_ns: int) -> None:
        """Count a slice that was sent this long after it was due; negative: before."""
        self.lateness = self.lateness.with_slice(late_ns)

    def sent(self, mep: FeedMep) -> None:
        """Count a slice that all feeders have."""
        if self._begin_ns is not None:
            self._next = mep.mep + 1
            now_ns = self._clock.monotonic_ns() if self._paused_ns is None else self._paused_ns
            self.count(now_ns - self._due_ns(mep.mep))

    def ended(self) -> None:
        """The stream is over: nothing is late any more while the last slices wait for their acknowledgements."""
        self._has_ended = True

    def _due_ns(self, number: int) -> int:
        assert self._begin_ns is not None
        return self._begin_ns + (number + 1) * self._slice_ns
