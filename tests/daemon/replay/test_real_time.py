"""Time slices in real time: each leaves when its time is over, and lost time is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from hltnode.daemon.replay.real_time import IN_TIME_NS, Lateness, RealTimePacer
from tests.daemon.fakes import synthetic_meps
from tests.daemon.manual_clock import ManualClock

MS = 1_000_000


async def send(
    clock: ManualClock, pacer: RealTimePacer, n: int, after: Callable[[int], Awaitable[None]]
) -> list[tuple[int, int]]:
    """Times in ms at which slices are admitted, and by how much the stream is behind then."""
    admitted = []

    async def send_all() -> None:
        for mep in synthetic_meps(n):
            await pacer.admit(mep)
            admitted.append((clock.now_ns // MS, pacer.behind_ns // MS))
            await after(mep.mep)
            pacer.sent(mep)

    task = asyncio.create_task(send_all())
    while not task.done():
        await clock.advance(0.001)
    await task
    return admitted


async def at_once(_mep: int) -> None:
    pass


async def test_a_slice_leaves_when_its_time_is_over() -> None:
    clock = ManualClock()
    pacer = RealTimePacer(20 * MS, clock)
    assert await send(clock, pacer, 4, at_once) == [(20, 0), (40, 0), (60, 0), (80, 0)]
    assert pacer.lateness == Lateness(in_time=4)


async def test_lost_time_is_neither_forgiven_nor_hidden() -> None:
    clock = ManualClock()
    pacer = RealTimePacer(20 * MS, clock)

    async def slow(mep: int) -> None:
        if mep == 1:
            await clock.sleep(0.05)

    # Slices 2 and 3 were over at 60 and 80 ms; slice 4 is in time again.
    assert await send(clock, pacer, 5, slow) == [(20, 0), (40, 0), (90, 30), (90, 10), (100, 0)]
    assert pacer.lateness == Lateness(in_time=3, late=2, last_ns=0, largest_ns=50 * MS)


async def test_a_slice_is_late_from_the_bound_on() -> None:
    assert Lateness().with_slice(IN_TIME_NS) == Lateness(1, 0, IN_TIME_NS, IN_TIME_NS)
    assert Lateness().with_slice(IN_TIME_NS + 1) == Lateness(0, 1, IN_TIME_NS + 1, IN_TIME_NS + 1)


async def test_a_stream_that_waits_for_credits_says_how_far_it_is_behind() -> None:
    clock = ManualClock()
    pacer = RealTimePacer(20 * MS, clock)
    [mep] = synthetic_meps(1)
    admitting = asyncio.create_task(pacer.admit(mep))
    await clock.advance(0.02)
    await admitting
    await clock.advance(0.5)
    assert pacer.behind_ns == 500 * MS
    pacer.sent(mep)
    assert pacer.behind_ns == 480 * MS


async def test_the_time_of_the_stream_stands_still_during_a_pause() -> None:
    clock = ManualClock()
    pacer = RealTimePacer(20 * MS, clock)

    async def pause_behind_the_first(mep: int) -> None:
        if mep == 0:
            pacer.pause()
            pacer.pause()
            await clock.sleep(0.1)
            assert pacer.behind_ns == 0
            pacer.resume()

    assert await send(clock, pacer, 3, pause_behind_the_first) == [(20, 0), (140, 0), (160, 0)]
    assert pacer.lateness.late == 0


async def test_a_pause_makes_no_slice_late_that_the_feeders_take_in_it() -> None:
    clock = ManualClock()
    pacer = RealTimePacer(20 * MS, clock)
    [mep] = synthetic_meps(1)
    admitting = asyncio.create_task(pacer.admit(mep))
    await clock.advance(0.02)
    await admitting
    await clock.advance(0.003)
    pacer.pause()
    await clock.advance(0.1)
    pacer.sent(mep)
    assert pacer.lateness == Lateness(in_time=1, last_ns=3 * MS, largest_ns=3 * MS)


async def test_a_stream_that_waits_for_its_last_acknowledgements_is_not_behind() -> None:
    clock = ManualClock()
    pacer = RealTimePacer(20 * MS, clock)
    await send(clock, pacer, 2, at_once)
    await clock.advance(0.5)
    assert pacer.behind_ns > 400 * MS, "the next slice is missing"
    pacer.ended()
    assert pacer.behind_ns == 0
