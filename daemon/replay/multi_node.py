"""Several nodes serve the same feeders: every MEP goes as a whole to one node, and to another one if that node is lost.

The supervisor decides, the feeders of other processes follow it; each event is in the files of one node.
"""

import asyncio
from collections.abc import AsyncIterable, Iterable
from typing import Protocol

from hltnode.client.mep import FeedMep
from hltnode.daemon.replay.assignment import DONE
from hltnode.daemon.replay.made_ahead import in_order
from hltnode.daemon.replay.nodes import Nodes
from hltnode.daemon.replay.pacing import Pacer
from hltnode.daemon.replay.single_node import FeedReport, make_report


class Assigner(Protocol):
    """Decides where a MEP goes."""

    def is_acknowledged(self, mep: int) -> bool:
        """True if a MEP goes to no node, as far as is known."""

    def node_for(self, mep: int) -> int | None:
        """The node of a MEP as index, DONE for a MEP that is acknowledged; None as long as it is not known."""

    async def work(self) -> None:
        """The work beside the feeding; never returns."""

    async def finish(self) -> None:
        """Return when no MEP of this process can go to another node any more."""


async def distribute_meps(
    meps: Iterable[FeedMep] | AsyncIterable[FeedMep], nodes: Nodes, assigner: Assigner, *, pacer: Pacer | None = None
) -> FeedReport:
    """Send each MEP to the node that the assigner names, and wait for all acknowledgements.

    `pacer` holds MEPs back. Raises FeederRefusedError.
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
