"""The rate of sent MEPs, and the pause."""

import asyncio
from enum import StrEnum, unique

from hltnode.client.clock import SYSTEM_CLOCK, Clock
from hltnode.client.mep import FeedMep
from hltnode.daemon.common.log import get_logger
from hltnode.daemon.replay.input_files import FeedError
from hltnode.protocol.errors import OdinError
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.mfp import Mfp
from hltnode.protocol.raw_data.odin import decode_odin
from hltnode.protocol.raw_data.source_id import ODIN_SOURCE

# Longest pause between two MEPs at the recorded rate: files of several runs jump by hours.
MAX_PAUSE_S = 60.0
# Pauses from this time on are announced.
ANNOUNCED_PAUSE_NS = 5_000_000_000
# 1 January 2200 in microseconds: no clock of a readout gives a later time.
BEYOND_ANY_CLOCK_US = 7_258_118_400_000_000
# A delayed sender catches up at most this much of the lost time.
MAX_CATCH_UP_NS = 1_000_000_000


log = get_logger("pacing")


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

    def __init__(
        self, rate: Rate = Pace.GREATEST, clock: Clock = SYSTEM_CLOCK, max_pause_s: float = MAX_PAUSE_S
    ) -> None:
        self._max_pause_ns = int(max_pause_s * 1e9)
        self._latest_us: int | None = None
        """The latest recorded time so far."""
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
            self._next_ns += self._recorded_pause_ns(mep)
        while (wait_ns := self._next_ns - self._clock.monotonic_ns()) > 0:
            await self._clock.sleep(wait_ns * 1e-9)
            await self._goes_on.wait()
        self._next_ns = max(self._next_ns, self._clock.monotonic_ns() - MAX_CATCH_UP_NS)
        if not isinstance(self._rate, Pace):
            self._next_ns += int(mep.n_events / self._rate * 1e9)

    def sent(self, mep: FeedMep) -> None:
        """Called when all feeders have a MEP."""

    def ended(self) -> None:
        """Called when all feeders have the last MEP."""

    def _recorded_pause_ns(self, mep: FeedMep) -> int:
        """Time between a MEP and the one before, at most the longest pause; 0 for a MEP without a time.

        Raises FeedError if no MEP so far has a time.
        """
        recorded_us = _recorded_us(mep)
        if recorded_us is None:
            if self._recorded_us is None:
                raise FeedError(
                    f"--rate recorded: MEP {mep.mep} has no ODIN bank with a time: give a number of events per second"
                )
            return 0
        # Times may go back between files, and from the last event to the first one of the next pass. Behind a single
        # time that is too early, the latest time counts, so that it does not cost the difference.
        known = (time_us for time_us in (self._recorded_us, self._latest_us) if time_us is not None)
        before_us = max((time_us for time_us in known if time_us <= recorded_us), default=recorded_us)
        self._recorded_us = recorded_us
        self._latest_us = max(self._latest_us, recorded_us) if self._latest_us is not None else recorded_us
        recorded_ns = (recorded_us - before_us) * 1000
        pause_ns = min(recorded_ns, self._max_pause_ns)
        if pause_ns >= ANNOUNCED_PAUSE_NS:
            log.warning(
                "pause_of_recorded_times",
                mep=mep.mep,
                recorded_s=round(recorded_ns * 1e-9, 1),
                waits_s=round(pause_ns * 1e-9, 1),
            )
        return pause_ns


def _recorded_us(mep: FeedMep) -> int | None:
    """The time of the first event of a MEP with an ODIN bank that has a time; None without one."""
    odin = mep.mfp(ODIN_SOURCE)
    if odin is not None:
        for bank in Mfp.parse(odin).banks():
            if bank is None or bank.type != BankType.ODIN:
                continue
            try:
                time_us = decode_odin(bank).gps_time_us
            except OdinError:
                continue
            if 0 < time_us < BEYOND_ANY_CLOCK_US:
                return time_us
    return None
