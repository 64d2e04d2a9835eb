"""A process feeds one node: its feeders send MEP by MEP, each its sources; and the report of what was fed."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from hltnode.daemon.common.clock import SYSTEM_CLOCK, Clock
from hltnode.daemon.common.mep_ranges import MepRanges
from hltnode.daemon.feeder.feeder import Feeder
from hltnode.daemon.feeder.made_ahead import in_order
from hltnode.daemon.feeder.mep_source import FeedMep
from hltnode.daemon.feeder.pacing import Pacer
from hltnode.daemon.feeder.refused_fragments import RefusedCount, RefusedFragments


@dataclass(frozen=True, slots=True)
class FeedReport:
    """What was fed: MEPs and events offered, fragments sent (with repeats), refused for good, left unacknowledged."""

    meps: int
    events: int
    fragments: int
    bytes: int
    resent: int
    refused: dict[str, RefusedCount]
    """Fragments that the node has not accepted, and their MEPs, by reason."""
    unacknowledged: int
    unacknowledged_meps: list[tuple[int, int]]
    """First and last id of the ranges of these MEPs."""
    seconds: float
    injected: dict[str, int]
    """Faults put in on purpose, by kind."""
    reassigned: int = 0
    """MEPs that were revoked from a node that was lost and assigned to another one."""
    unconfirmed: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """By data endpoint the ranges of those MEPs of which the lost node has not confirmed the revocation."""
    error: str = ""
    """Why the feed ended before its input did, or before everything was acknowledged; empty if it did not."""

    @property
    def complete(self) -> bool:
        """True when the node has accepted and acknowledged everything."""
        return not self.unacknowledged and not self.refused and not self.error


async def feed_meps(
    meps: Iterable[FeedMep] | AsyncIterable[FeedMep],
    feeders: Sequence[Feeder],
    *,
    rate: float | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> FeedReport:
    """Send MEPs through all feeders, each its sources, and wait for the acknowledgements.

    `rate` limits the events per second. Raises FeederRefusedError.
    """
    start_ns = clock.monotonic_ns()
    pacer = Pacer(rate, clock)
    n_meps = n_events = 0
    last: int | None = None
    async for mep in in_order(meps):
        # What was acknowledged to an earlier feeder costs no time, so that one that was restarted catches up.
        if not all(mep.mep in feeder.window.acked for feeder in feeders):
            await pacer.admit(mep.n_events)
        for feeder in feeders:
            await feeder.offer(mep)
        n_meps += 1
        n_events += mep.n_events
        last = mep.mep
    await asyncio.gather(*(feeder.finish(last) for feeder in feeders))
    return make_report(feeders, n_meps, n_events, (clock.monotonic_ns() - start_ns) * 1e-9)


def make_report(
    feeders: Sequence[Feeder],
    meps: int,
    events: int,
    seconds: float,
    *,
    reassigned: int = 0,
    unconfirmed: Mapping[str, list[tuple[int, int]]] = MappingProxyType({}),
    error: str = "",
) -> FeedReport:
    """Sum up what the feeders have done so far."""
    injected: Counter[str] = Counter()
    for feeder in feeders:
        if feeder.faults is not None:
            injected.update({str(fault): count for fault, count in feeder.faults.counts.items()})
    unacknowledged = MepRanges((mep, mep) for feeder in feeders for mep in feeder.window.meps())
    return FeedReport(
        meps=meps,
        events=events,
        fragments=sum(feeder.fragments for feeder in feeders),
        bytes=sum(feeder.bytes for feeder in feeders),
        resent=sum(feeder.window.resent for feeder in feeders),
        refused=RefusedFragments.count(feeder.window.refused for feeder in feeders),
        unacknowledged=unacknowledged.count,
        unacknowledged_meps=unacknowledged.ranges(),
        seconds=seconds,
        injected=dict(injected),
        reassigned=reassigned,
        unconfirmed=dict(unconfirmed),
        error=error,
    )


def share(sources: Sequence[int], connections: int) -> list[tuple[int, ...]]:
    """Spread source ids over connections, one connection per source for 0; no connection stays empty."""
    n = len(sources) if connections == 0 else min(connections, len(sources))
    return [tuple(sources[i::n]) for i in range(n)]
