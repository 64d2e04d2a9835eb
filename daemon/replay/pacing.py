"""The rate of sent MEPs, and the pause."""

import asyncio
from enum import StrEnum, unique

from hltnode.client.clock import SYSTEM_CLOCK, Clock
from hltnode.client.mep import FeedMep
from hltnode.daemon.replay.input_files import FeedError
from hltnode.protocol.raw_data.mfp import Mfp
from hltnode.protocol.raw_data.odin import decode_odin
from hltnode.protocol.raw_data.source_id import ODIN_SOURCE

# A delayed sender catches up at most this much of the lost time.
MAX_CATCH_UP_NS = 1_000_000_000


@unique
class Pace(StrEnum):
    """Rates without a number: as recorded, or the greatest rate that the node accepts."""

    RECORDED = "recorded"
    GREATEST = "greatest"


Rate = float | Pace
"""Events per second, or a pace."""


def parse_rate(text: str) -> Rate:
    """`recorded`, `greatest` or a number of events per second. Raises FeedError."""
    if text in list(Pace):
        return Pace(text)
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0.001 <= rate <= 1e9:
        raise FeedError(f"--rate {text}: expected recorded, greatest, or a number of events per second from 0.001")
    return rate


class Pacer:
    """Limits a sender to a rate, and stops it during a pause."""

    def __init__(self, rate: Rate = Pace.GREATEST, clock: Clock = SYSTEM_CLOCK) -> None:
        self._rate = rate
        self._clock = clock
        self._next_ns = clock.monotonic_ns()
        self._recorded_us: int | None = None
        self._goes_on = asyncio.Event()
        self._goes_on.set()

    @property
    def is_paused(self) -> bool:
        """True between `pause` and `resume`."""
        return not self._goes_on.is_set()

    def pause(self) -> None:
        """Admit no MEP until `resume`."""
        self._goes_on.clear()

    def resume(self) -> None:
        """Admit MEPs again; the time of the pause is not caught up."""
        if self.is_paused:
            self._next_ns = max(self._next_ns, self._clock.monotonic_ns())
            self._goes_on.set()

    async def admit(self, mep: FeedMep) -> None:
        """Wait until a MEP may be sent. Raises FeedError if the recorded time is needed and missing."""
        await self._goes_on.wait()
        if self._rate is Pace.GREATEST:
            return
        if self._rate is Pace.RECORDED:
            recorded_us = _recorded_us(mep)
            before_us = recorded_us if self._recorded_us is None else self._recorded_us
            self._recorded_us = recorded_us
            # Recorded times may go back between files, and from the last event to the first one of the next pass.
            self._next_ns += max(0, recorded_us - before_us) * 1000
        while (wait_ns := self._next_ns - self._clock.monotonic_ns()) > 0:
            await self._clock.sleep(wait_ns * 1e-9)
            await self._goes_on.wait()
        self._next_ns = max(self._next_ns, self._clock.monotonic_ns() - MAX_CATCH_UP_NS)
        if not isinstance(self._rate, Pace):
            self._next_ns += int(mep.n_events / self._rate * 1e9)


def _recorded_us(mep: FeedMep) -> int:
    """The time of the first event of a MEP with an ODIN bank that has a time. Raises FeedError."""
    odin = mep.mfp(ODIN_SOURCE)
    if odin is not None:
        for bank in Mfp.parse(odin).banks():
            if bank is not None and (time_us := decode_odin(bank).gps_time_us):
                return time_us
    raise FeedError(f"--rate recorded: MEP {mep.mep} has no ODIN bank with a time: give a number of events per second")
