"""The assignment of MEPs to nodes: the policy of the supervisor, and two others for comparison."""

from collections.abc import Callable
from typing import Protocol

from hltnode.client.send_window import SendWindow
from hltnode.daemon.farm_model.description import Policy
from hltnode.daemon.replay.assignment import NodeChoice

LOST = -1.0
"""Share of a node without a connection."""


class Choice(Protocol):
    """Chooses a node by the shares of all nodes."""

    def set_share(self, node: int, share: float) -> None:
        """Set the share of a node: above 0 with a free credit, LOST without a connection."""

    def choose(self) -> int | None:
        """The chosen node; None if the MEP must wait."""


class RoundRobin:
    """Every connected node in turn. A MEP waits for the credit of its node, also while others have one."""

    def __init__(self, n_nodes: int) -> None:
        self._share = [0.0] * n_nodes
        self._next = 0

    def set_share(self, node: int, share: float) -> None:
        """Set the share of a node."""
        self._share[node] = share

    def choose(self) -> int | None:
        """The next connected node if it has a credit."""
        n = len(self._share)
        for i in range(n):
            node = (self._next + i) % n
            share = self._share[node]
            if share > LOST:
                if share <= 0.0:
                    return None
                self._next = (node + 1) % n
                return node
        return None


def _free_share(window: SendWindow) -> float:
    # A window above its credits must not pass for a lost node.
    share = window.free_share
    return share if share > 0.0 else 0.0


def _few_meps(window: SendWindow) -> float:
    return 1.0 / (1 + window.unacknowledged) if window.room > 0 else 0.0


def choice_and_share(policy: Policy, n_nodes: int) -> tuple[Choice, Callable[[SendWindow], float]]:
    """The choice of a policy, and the share of a connected node."""
    if policy is Policy.ROUND_ROBIN:
        return RoundRobin(n_nodes), _free_share
    return NodeChoice(n_nodes), _free_share if policy is Policy.CREDITS else _few_meps
