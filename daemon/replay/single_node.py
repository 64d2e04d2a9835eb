"""Feeding one node: each feeder sends its sources of every MEP. Also the report of a feed."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from hltnode.client.clock import SYSTEM_CLOCK, Clock
from hltnode.client.feeder import Feeder
from hltnode.client.mep import FeedMep
from hltnode.client.refused_fragments import RefusedCount, RefusedFragments
from hltnode.daemon.replay.made_ahead import in_order
from hltnode.daemon.replay.pacing import Pacer
from hltnode.protocol.transport.mep_ranges import MepRanges


class Stored(Protocol):
    """Called when the nodes have acknowledged all MEPs of a run; its errors end the feed."""

    def __call__(self, last_mep: int | None, complete: bool, /) -> None: ...


def not_noted(_last_mep: int | None, _complete: bool, /) -> None:
    """For a run that nothing follows."""


async def confirm_stored(feeders: Sequence[Feeder], last_mep: int | None) -> None:
    """Confirm a run that an earlier process has fed to its end; its node may not know that yet.

    Call `begin_after` before the feeders start. Raises FeederRefusedError, for example by a node that has another run.
    """
    await asyncio.gather(*(feeder.welcomed() for feeder in feeders))
    for feeder in feeders:
        await feeder.end_run(last_mep)
    await asyncio.gather(*(feeder.confirm() for feeder in feeders))


def begin_after(feeders: Iterable[Feeder], last_mep: int | None) -> None:
    """Have the first hello of feeders say that all MEPs up to this one are acknowledged."""
    for feeder in feeders:
        feeder.window.next_mep = 0 if last_mep is None else last_mep + 1


@dataclass(frozen=True, slots=True)
class FeedReport:
    """Report of a feed: offered MEPs and events, sent fragments (with repeats), refused and unacknowledged ones."""

    meps: int
    events: int
    fragments: int
    bytes: int
    resent: int
    refused: dict[str, RefusedCount]
    """Fragments that the node refused, and their MEPs, by reason."""
    unacknowledged: int
    unacknowledged_meps: list[tuple[int, int]]
    """Inclusive id ranges of these MEPs."""
    seconds: float
    injected: dict[str, int]
    """Injected faults, by kind."""
    earlier: int = 0
    """MEPs that were not sent: the node had acknowledged their numbers to an earlier replay of this run."""
    reassigned: int = 0
    """MEPs moved from a lost node to another node."""
    unconfirmed: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """Ranges of MEPs whose revocation the lost node has not confirmed, by data endpoint."""
    error: str = ""
    """Why the feed ended early; empty if all MEPs were sent and acknowledged."""

    @property
    def complete(self) -> bool:
        """True if the node accepted and acknowledged all MEPs."""
        return not self.unacknowledged and not self.refused and not self.error


async def feed_meps(
    meps: Iterable[FeedMep] | AsyncIterable[FeedMep],
    feeders: Sequence[Feeder],
    *,
    pacer: Pacer | None = None,
    stored: Stored = not_noted,
    clock: Clock = SYSTEM_CLOCK,
) -> FeedReport:
    """Send MEPs through all feeders, each with its sources, and wait for the acknowledgements.

    `pacer` limits the rate. `stored` is called when all MEPs are acknowledged, before the node is told that it may
    forget the run. Raises FeederRefusedError.
    """
    start_ns = clock.monotonic_ns()
    pacer = pacer or Pacer()
    n_meps = n_events = 0
    last: int | None = None
    # The pacer begins when the node gives credits, so a slow answer makes no MEP late.
    await asyncio.gather(*(feeder.welcomed() for feeder in feeders))
    async for mep in in_order(meps):
        # MEPs acknowledged to an earlier feeder are not paced, so a restarted feeder catches up.
        if not all(mep.mep in feeder.window.acked for feeder in feeders):
            await pacer.admit(mep)
        for feeder in feeders:
            await feeder.offer(mep)
        n_meps += 1
        n_events += mep.n_events
        last = mep.mep
    for feeder in feeders:
        await feeder.end_run(last)
    await asyncio.gather(*(feeder.acknowledged() for feeder in feeders))
    stored(last, not any(feeder.window.refused for feeder in feeders))
    await asyncio.gather(*(feeder.confirm() for feeder in feeders))
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
    """The report of all feeders so far."""
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
        earlier=max((feeder.window.acknowledged_before for feeder in feeders), default=0),
        reassigned=reassigned,
        unconfirmed=dict(unconfirmed),
        error=error,
    )


def join_reports(reports: Sequence[FeedReport], error: str = "") -> FeedReport:
    """The report of several processes that fed different sources of the same MEPs."""
    refused: dict[str, RefusedCount] = {}
    for reason in {reason for report in reports for reason in report.refused}:
        counts = [report.refused[reason] for report in reports if reason in report.refused]
        # The reports do not name the MEPs; the largest number of one process is a lower bound.
        refused[reason] = RefusedCount(sum(c.fragments for c in counts), max(c.meps for c in counts))
    unacknowledged = MepRanges(span for report in reports for span in report.unacknowledged_meps)
    unconfirmed: dict[str, list[tuple[int, int]]] = {}
    for report in reports:
        for node, ranges in report.unconfirmed.items():
            unconfirmed[node] = MepRanges([*unconfirmed.get(node, []), *ranges]).ranges()
    injected: Counter[str] = Counter()
    for report in reports:
        injected.update(report.injected)
    return FeedReport(
        meps=min(report.meps for report in reports),
        events=min(report.events for report in reports),
        fragments=sum(report.fragments for report in reports),
        bytes=sum(report.bytes for report in reports),
        resent=sum(report.resent for report in reports),
        refused=refused,
        unacknowledged=unacknowledged.count,
        unacknowledged_meps=unacknowledged.ranges(),
        seconds=max(report.seconds for report in reports),
        injected=dict(injected),
        earlier=max(report.earlier for report in reports),
        reassigned=max(report.reassigned for report in reports),
        unconfirmed=unconfirmed,
        error=error or next((report.error for report in reports if report.error), ""),
    )


def share(sources: Sequence[int], connections: int) -> list[tuple[int, ...]]:
    """Distribute source ids over connections; 0: one connection per source. No connection stays empty."""
    n = len(sources) if connections == 0 else min(connections, len(sources))
    return [tuple(sources[i::n]) for i in range(n)]
