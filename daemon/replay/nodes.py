"""The nodes of one feeder process: its connections to each, and the MEPs that they keep."""

import asyncio
from collections.abc import Sequence

from hltnode.client.clock import SYSTEM_CLOCK, Clock
from hltnode.client.feeder import Feeder
from hltnode.client.mep import FeedMep
from hltnode.protocol.transport.mep_ranges import MepRanges


class NodeGroup:
    """The connections of this process to one node."""

    def __init__(self, endpoint: str, feeders: Sequence[Feeder]) -> None:
        self.endpoint = endpoint
        self.feeders = feeders

    @property
    def leader(self) -> Feeder:
        """The first connection, whose credits and acknowledgements decide."""
        return self.feeders[0]

    @property
    def unacknowledged(self) -> int:
        """MEPs kept by at least one connection."""
        return max(feeder.window.unacknowledged for feeder in self.feeders)


class Nodes:
    """Keeps MEPs for nodes, moves them between nodes, and records acknowledgements."""

    def __init__(self, groups: Sequence[NodeGroup], clock: Clock = SYSTEM_CLOCK) -> None:
        self.groups = groups
        self.clock = clock
        self.next_mep = 0
        self.reassigned = 0
        self.changed = asyncio.Event()
        """Set on changes that matter for sending."""
        self.news = asyncio.Event()
        """Set on messages from a node, and once a second, for the supervisor."""
        self.feeders = [feeder for group in groups for feeder in group.feeders]
        for feeder in self.feeders:
            feeder.on_change = self._has_news
            feeder.floor = self.floor
            feeder.window.in_order = len(groups) > 1

    def _has_news(self) -> None:
        self.changed.set()
        self.news.set()

    @property
    def unacknowledged(self) -> int:
        """Kept MEPs."""
        return sum(group.unacknowledged for group in self.groups)

    @property
    def retained(self) -> set[int]:
        """MEPs that are acknowledged to a connection of this process but may still move to another node."""
        return {mep for feeder in self.feeders for mep in feeder.window.retained}

    def unconfirmed(self, *, reachable: bool) -> dict[str, list[tuple[int, int]]]:
        """MEPs with an unconfirmed revocation, by endpoint of the node.

        Of connected nodes that have not refused it, or of all nodes.
        """
        unconfirmed = {}
        for group in self.groups:
            window = group.leader.window
            meps = MepRanges(window.to_revoke.ranges() if group.leader.is_connected or not reachable else ())
            for first, last in () if reachable else window.not_revoked.ranges():
                meps.add(first, last)
            if group.leader.supervising and meps:
                unconfirmed[group.endpoint] = meps.ranges()
        return unconfirmed

    def floor(self) -> int:
        """Every MEP below this id is acknowledged and will not move to another node."""
        windows = [feeder.window for feeder in self.feeders]
        return min(
            min((w.first_unacknowledged for w in windows if w.unacknowledged), default=self.next_mep),
            min(self.retained, default=self.next_mep),
        )

    def is_done(self, mep: int) -> bool:
        """True if a node acknowledged a MEP, to this or to an earlier session of the feeder."""
        return any(mep in group.leader.window.acked for group in self.groups)

    def keep(self, mep: FeedMep, node: int) -> None:
        """Keep a MEP for a node."""
        for feeder in self.groups[node].feeders:
            feeder.keep(mep)

    def move(self, mep: int, from_node: int | None, to: int) -> None:
        """Move a MEP to another node, from its current node or (None) from all nodes known to have it."""
        for index, group in enumerate(self.groups):
            if index == to:
                continue
            moved = False
            for old, new in zip(group.feeders, self.groups[to].feeders, strict=True):
                if old.window.holds(mep):
                    new.window.add(mep, old.window.revoke(mep))
                    new.wake()
                    moved = True
                elif index == from_node:
                    # An earlier process sent this MEP; this process has not reached it yet.
                    old.window.revoke(mep)
            self.reassigned += moved or index == from_node

    def release(self, mep: int) -> None:
        """Mark a MEP as acknowledged to the deciding connection: it cannot move to another node."""
        for feeder in self.feeders:
            feeder.window.release(mep)

    async def wait(self) -> None:
        """Wait for a change; every feeder signals one at least with its hellos. Raises FeederRefusedError."""
        await self.clock.wait(self.changed, None)
        self.changed.clear()
        for feeder in self.feeders:
            feeder.check()
