"""The timer that rings to the microsecond."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from hltnode.daemon.common.alarm import Alarm

US = 1_000
MS = 1_000_000


class Rings:
    """When an alarm rang, in monotonic ns."""

    def __init__(self) -> None:
        self.at_ns: list[int] = []
        self._rung = asyncio.Event()

    def ring(self) -> None:
        self.at_ns.append(time.monotonic_ns())
        self._rung.set()

    async def next(self) -> int:
        await asyncio.wait_for(self._rung.wait(), 5.0)
        self._rung.clear()
        return self.at_ns[-1]


@pytest.fixture
def rings() -> Rings:
    return Rings()


@pytest.fixture
async def alarm(rings: Rings) -> AsyncIterator[Alarm]:
    alarm = Alarm(asyncio.get_running_loop(), rings.ring)
    yield alarm
    alarm.close()


async def test_an_alarm_rings_within_a_millisecond_and_never_early(alarm: Alarm, rings: Rings) -> None:
    late = []
    for _ in range(50):
        due_ns = time.monotonic_ns() + 300 * US
        alarm.set(300 * US)
        late.append(await rings.next() - due_ns)
    assert min(late) >= 0
    # The loop's own timers are rounded to milliseconds; a busy machine delays some of them, but not all.
    assert min(late) < 300 * US
    assert len(rings.at_ns) == 50


async def test_a_later_call_replaces_an_earlier_one(alarm: Alarm, rings: Rings) -> None:
    begin_ns = time.monotonic_ns()
    alarm.set(10 * MS)
    alarm.set(50 * MS)
    assert await rings.next() - begin_ns >= 50 * MS
    alarm.set(10_000 * MS)
    alarm.set(1 * MS)
    await rings.next()
    await asyncio.sleep(0.02)
    assert len(rings.at_ns) == 2


@pytest.mark.parametrize("delay_ns", [0, -1, -5 * MS])
async def test_an_overdue_alarm_rings_at_once(alarm: Alarm, rings: Rings, delay_ns: int) -> None:
    alarm.set(delay_ns)
    await rings.next()
    assert len(rings.at_ns) == 1


async def test_an_expired_alarm_that_is_set_again_before_its_callback_rings_once(alarm: Alarm, rings: Rings) -> None:
    alarm.set(1)
    time.sleep(0.005)
    alarm.set(20 * MS)
    begin_ns = time.monotonic_ns()
    assert await rings.next() - begin_ns >= 19 * MS
    assert len(rings.at_ns) == 1


async def test_a_closed_alarm_does_not_ring(alarm: Alarm, rings: Rings) -> None:
    alarm.set(5 * MS)
    alarm.close()
    await asyncio.sleep(0.02)
    assert not rings.at_ns
    alarm.close()
