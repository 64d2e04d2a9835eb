"""MEPs that the supervisor revoked from a node that did not confirm it before the run ended.

The files of this node may hold their events a second time, without the fragments that went to the next node.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hltnode.protocol.transport.mep_ranges import MepRanges


@dataclass(slots=True)
class Revocations:
    """The unconfirmed revocations of all runs, as the reports of the feeders name them."""

    of: dict[tuple[str, int], MepRanges] = field(default_factory=lambda: defaultdict(MepRanges))
    """By node and run."""
    spans: dict[int, tuple[float, float]] = field(default_factory=dict)
    """Start and end of each run."""

    def read(self, report: Mapping[str, Any], nodes: Mapping[str, str]) -> None:
        """Add the revocations of a report; `nodes` are the names of the nodes by data endpoint."""
        for endpoint, ranges in report["unconfirmed"].items():
            for first, last in ranges:
                self.of[nodes[endpoint], report["run"]].add(first, last)

    def include(self, node: str, run: int, mep: int) -> bool:
        """Whether a MEP was revoked from a node that did not confirm it."""
        return (node, run) in self.of and mep in self.of[node, run]
