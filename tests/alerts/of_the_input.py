"""Scenarios with feeders, sources and fragments, and cases that must raise no alert."""

import asyncio
import random

from tests.alerts.scenarios import Steps, again_and_again, scenario
from tests.alerts.site import NORMAL_RATE, Site
from tests.daemon.fakes import RUN, SOURCES, FakeEngine

TWO = {"builder": {"min_feeders": 2}}
SILENCE_IS_NOT_SCALED = {"HltnodeNoInput": "a killed feeder is lost after 5 s, which are not scaled"}
HELD_NS = 900_000_000


async def two_feeders(site: Site) -> None:
    """A node in a run with the feeders east and west."""
    await site.start()
    await asyncio.gather(site.feed("east", SOURCES[:2]), site.feed("west", SOURCES[2:]))
    await site.processed(50)


async def one_feeder(site: Site) -> None:
    """A node in a run with one feeder."""
    await site.start()
    await site.feed()
    await site.processed(50)


@scenario(
    "HltnodeFeederLost", "one of two feeders vanishes", settings=TWO, detection=6.0, tolerated=SILENCE_IS_NOT_SCALED
)
async def feeder_lost(site: Site) -> Steps:
    await two_feeders(site)
    yield
    await site.feeders[1].vanish()
    yield
    await site.feed("west", SOURCES[2:], first=site.feeders[0].sent + 1)


@scenario(
    "HltnodeFeederLost",
    "both feeders vanish, and their run is kept",
    settings=TWO,
    detection=6.0,
    # The node keeps a run without feeders after 60 s.
    held=90.0,
    tolerated={**SILENCE_IS_NOT_SCALED, "HltnodeRunKept": "half an hour, scaled"},
)
async def all_feeders_lost(site: Site) -> Steps:
    await two_feeders(site)
    yield
    for feeder in site.feeders:
        await feeder.vanish()
    yield
    sent = max(feeder.sent for feeder in site.feeders)
    await asyncio.gather(site.feed("east", SOURCES[:2], first=sent + 1), site.feed("west", SOURCES[2:], first=sent + 1))


@scenario("HltnodeFeedersMissing", "one of two feeders does not come", settings=TWO)
async def feeder_missing(site: Site) -> Steps:
    await site.start()
    yield
    await site.feed("east", SOURCES[:2])
    yield
    await site.feed("west", SOURCES[2:])


@scenario("HltnodeSourceSilent", "two sources of a feeder send nothing", detection=7.0)
async def source_silent(site: Site) -> Steps:
    await one_feeder(site)
    yield
    site.feeders[0].filter.lose = lambda source, _mep: source in SOURCES[1:3]
    yield
    site.feeders[0].filter.lose = lambda _source, _mep: False


@scenario("HltnodeErrorBanks", "error banks in one of 8 events")
async def error_banks(site: Site) -> Steps:
    await one_feeder(site)
    yield
    site.feeders[0].filter.error_type = next(iter(FakeEngine.error_types))
    yield
    site.feeders[0].filter.error_type = None


@scenario("HltnodeNoInput", "a feeder that is connected and sends nothing")
async def no_input(site: Site) -> Steps:
    await one_feeder(site)
    yield
    site.feeders[0].rate = 0
    yield
    site.feeders[0].rate = 8.0


@scenario("HltnodeIncompleteRatioHigh", "one fragment in ten is lost")
async def fragments_lost(site: Site) -> Steps:
    await one_feeder(site)
    draws = random.Random(5)
    yield
    site.feeders[0].filter.lose = lambda _source, _mep: draws.random() < 0.1
    yield
    site.feeders[0].filter.lose = lambda _source, _mep: False


@scenario(
    "HltnodeFragmentsLate",
    "a source is 0.9 s behind, and mep_timeout_ms is 300",
    settings={"builder": {"overtaken_after_ms": 100}},
)
async def fragments_late(site: Site) -> Steps:
    await one_feeder(site)
    yield
    site.feeders[0].filter.hold_ns = lambda source: HELD_NS if source == SOURCES[1] else 0
    yield
    site.feeders[0].filter.hold_ns = lambda _source: 0


@scenario("HltnodeFragmentsRejected", "one fragment in ten has a wrong bit")
async def fragments_damaged(site: Site) -> Steps:
    await one_feeder(site)
    yield
    site.feeders[0].filter.corrupt = True
    yield
    site.feeders[0].filter.corrupt = False


@scenario("HltnodeFeederRefused", "a feeder is started twice")
async def started_twice(site: Site) -> Steps:
    await one_feeder(site)
    yield

    async def start_again() -> None:
        second = await site.feed(feeding=False)
        # A refused feeder gives up after 30 s.
        await asyncio.sleep(20.0)
        await second.vanish()

    async with again_and_again(start_again):
        yield
    await asyncio.gather(*(feeder.vanish() for feeder in site.feeders[1:]))


@scenario("HltnodeDeadTimeHigh", "one of two feeders sends one MEP in two seconds", settings=TWO, detection=6.0)
async def slow_feeder(site: Site) -> Steps:
    await two_feeders(site)
    yield
    site.feeders[0].rate = 1000.0
    site.feeders[1].rate = 0.5
    yield
    east, west = site.feeders
    east.rate, west.rate = NORMAL_RATE, 1000.0
    # While one feeder is ahead of the other it waits for credits, which counts as dead time.
    while west.sent < east.sent:
        await asyncio.sleep(0.05)
    west.rate = NORMAL_RATE


@scenario(
    "HltnodeRunKept",
    "another run begins before a run is confirmed",
    tolerated={"HltnodeFeederLost": "the feeder of the kept run had more to send"},
)
async def run_kept(site: Site) -> Steps:
    await one_feeder(site)
    yield
    await site.feeders[0].leave()
    await site.feed(run=RUN + 1)
    yield
    await asyncio.to_thread(site.command, "close", "--run", str(RUN))


@scenario(None, "a node without a run and without feeders")
async def idle(site: Site) -> Steps:
    await site.start()
    yield
    yield


@scenario(None, "a run that is paused, and goes on")
async def paused(site: Site) -> Steps:
    await one_feeder(site)
    yield
    await asyncio.to_thread(site.command, "pause")
    await asyncio.sleep(40.0)
    await asyncio.to_thread(site.command, "resume")
    yield


@scenario(None, "a run that an operator stops, with its feeder connected")
async def ended_by_operator(site: Site) -> Steps:
    await one_feeder(site)
    yield
    await asyncio.to_thread(site.command, "stop")
    yield


@scenario(None, "three runs, each with other sources")
async def run_change(site: Site) -> Steps:
    await one_feeder(site)
    yield
    for number in (1, 2):
        await site.feeders[-1].finish()
        sources = (0, *range(4096 + 256 * number, 4096 + 256 * number + 20))
        await site.feed("feeder", sources, run=RUN + number)
        await site.processed(50)
    await site.feeders[-1].finish()
    yield


@scenario(None, "a feeder that is killed and started again at once", settings=TWO)
async def feeder_restarted(site: Site) -> Steps:
    await two_feeders(site)
    yield
    await site.feeders[1].vanish()
    await site.feed("west", SOURCES[2:], first=site.feeders[0].sent + 1)
    await site.processed(50)
    yield
