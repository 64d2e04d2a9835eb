"""Feeding several nodes: every MEP goes completely to one node, and to another one if that node is lost.

The supervisor decides, and the feeders of other processes follow it. Each event is in the files of one node only.
"""

import asyncio
from collections.abc import AsyncIterable, Iterable
from typing import Protocol

from hltnode.client.mep import FeedMep
from hltnode.daemon.replay.assignment import DONE
from hltnode.daemon.replay.made_ahead import in_order
from hltnode.daemon.replay.nodes import Nodes
from hltnode.daemon.replay.pacing import Pacer
from hltnode.daemon.replay.single_node import FeedReport, Stored, make_report, not_noted


class Assigner(Protocol):
    """Chooses the node of each MEP."""

    def is_acknowledged(self, mep: int) -> bool:
        """True if a MEP is known to go to no node."""

    def node_for(self, mep: int) -> int | None:
        """Index of the node of a MEP; DONE if the MEP is acknowledged, None while unknown."""

    async def work(self) -> None:
        """Background work during the feed; never returns."""

    async def finish(self) -> None:
        """Wait until no MEP of this process can move to another node."""


async def distribute_meps(
    meps: Iterable[FeedMep] | AsyncIterable[FeedMep],
    nodes: Nodes,
    assigner: Assigner,
    *,
    pacer: Pacer | None = None,
    stored: Stored = not_noted,
) -> FeedReport:
    """Send each MEP to the node chosen by the assigner, and wait for all acknowledgements.

    `pacer` limits the rate. `stored` is called when all MEPs are acknowledged, before the nodes are told that they may
    forget the run. Raises FeederRefusedError.
    """
    clock = nodes.clock
    start_ns = clock.monotonic_ns()
    pacer = pacer or Pacer()
    n_meps = n_events = 0
    working = asyncio.create_task(assigner.work())
    working.add_done_callback(lambda _: nodes.changed.set())

    async def wait() -> None:
        await nodes.wait()
        if working.done():
            working.result()

    try:
        async for mep in in_order(meps):
            if not assigner.is_acknowledged(mep.mep):
                await pacer.admit(mep)
            while (node := assigner.node_for(mep.mep)) is None:
                await wait()
            nodes.next_mep = mep.mep + 1
            if node != DONE:
                nodes.keep(mep, node)
            n_meps += 1
            n_events += mep.n_events
        for feeder in nodes.feeders:
            await feeder.end_run(nodes.next_mep - 1 if n_meps else None)
        while nodes.unacknowledged or nodes.unconfirmed(reachable=True):
            await wait()
        await assigner.finish()
        stored(nodes.next_mep - 1 if n_meps else None, not any(feeder.window.refused for feeder in nodes.feeders))
        await asyncio.gather(*(feeder.confirm() for feeder in nodes.feeders if feeder.is_connected))
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    return make_report(
        nodes.feeders,
        n_meps,
        n_events,
        (clock.monotonic_ns() - start_ns) * 1e-9,
        reassigned=nodes.reassigned,
        unconfirmed=nodes.unconfirmed(reachable=False),
    )
