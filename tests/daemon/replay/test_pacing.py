"""Rates of a replay: fixed, recorded, greatest; and the pause."""

import asyncio
import re
from pathlib import Path

import pytest

from hltnode.client.mep import FeedMep
from hltnode.daemon.common import log
from hltnode.daemon.common.vocabulary import LogFormat
from hltnode.daemon.replay.input_files import FeedError
from hltnode.daemon.replay.pacing import Pace, Pacer, parse_rate
from tests.daemon.manual_clock import ManualClock
from tests.daemon.replay.test_input_files import record, stream_of


def test_a_rate_is_a_word_or_a_number() -> None:
    assert parse_rate("recorded") is Pace.RECORDED
    assert parse_rate("2.5e3") == 2500.0
    for text in ("fast", "0", "-1", "nan", "inf"):
        with pytest.raises(FeedError, match="--rate"):
            parse_rate(text)


def meps_at(folder: Path, *times_us: int) -> list[FeedMep]:
    path = folder / "x.mdf"
    path.write_bytes(b"".join(record(i, time_us=time_us) for i, time_us in enumerate(times_us)))
    return list(stream_of(path, events_per_mep=1))


async def test_recorded_times_set_the_pace_and_a_step_back_costs_none(tmp_path: Path) -> None:
    clock = ManualClock()
    begin_ns = clock.monotonic_ns()
    pacer = Pacer(Pace.RECORDED, clock)
    admitted = []

    async def admit_all() -> None:
        for mep in meps_at(tmp_path, 5_000_000, 5_250_000, 5_750_000, 1_000, 101_000):
            await pacer.admit(mep)
            admitted.append((clock.monotonic_ns() - begin_ns) // 1_000_000)

    task = asyncio.create_task(admit_all())
    while not task.done():
        await asyncio.sleep(0)
        await clock.advance(0.01)
    assert admitted == [0, 250, 750, 750, 850]


async def admitted_ms(meps: list[FeedMep], **options: float) -> list[int]:
    """Times at which MEPs are admitted."""
    clock = ManualClock()
    begin_ns = clock.monotonic_ns()
    pacer = Pacer(Pace.RECORDED, clock, **options)
    admitted = []

    async def admit_all() -> None:
        for mep in meps:
            await pacer.admit(mep)
            admitted.append((clock.monotonic_ns() - begin_ns) // 1_000_000)

    task = asyncio.create_task(admit_all())
    while not task.done():
        await asyncio.sleep(0)
        await clock.advance(0.1)
    return admitted


HOUR_US = 3_600_000_000


async def test_one_time_that_is_too_early_costs_nothing(tmp_path: Path) -> None:
    times = (2 * HOUR_US, HOUR_US, 2 * HOUR_US + 500_000)
    assert await admitted_ms(meps_at(tmp_path, *times)) == [0, 0, 500]


async def test_a_long_recorded_pause_is_shortened_and_announced(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log.configure("warning", LogFormat.CONSOLE)
    assert await admitted_ms(meps_at(tmp_path, 1, HOUR_US + 1), max_pause_s=7.0) == [0, 7000]
    log.drain()
    assert re.search(r"pause_of_recorded_times.*recorded_s=3600\.0.*waits_s=7\.0", capfd.readouterr().err)


async def test_a_time_of_zero_or_beyond_any_clock_is_no_time(tmp_path: Path) -> None:
    assert await admitted_ms(meps_at(tmp_path, 1_000_000, 0, 1 << 62, 1_400_000)) == [0, 0, 0, 400]


async def test_missing_recorded_times_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(FeedError, match="MEP 0 has no ODIN bank with a time"):
        await Pacer(Pace.RECORDED).admit(meps_at(tmp_path, 0)[0])


async def test_a_pause_admits_nothing_and_is_not_made_up_for(tmp_path: Path) -> None:
    [mep] = meps_at(tmp_path, 1)
    clock = ManualClock()
    pacer = Pacer(1.0, clock)
    await pacer.admit(mep)
    pacer.pause()
    waiting = asyncio.create_task(pacer.admit(mep))
    for _ in range(20):
        await clock.advance(1.0)
    assert not waiting.done()
    pacer.resume()
    await asyncio.sleep(0)
    await waiting
    late = asyncio.create_task(pacer.admit(mep))
    await asyncio.sleep(0)
    assert not late.done(), "the twenty seconds of the pause are not made up for"
    await clock.advance(1.1)
    await late
