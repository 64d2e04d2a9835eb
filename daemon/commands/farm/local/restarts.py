"""Restarts of nodes that end: the pause before each grows, and their number is limited (time is injected)."""

from collections.abc import Callable, Sequence
from typing import Protocol

from hltnode.daemon.commands.farm.local.processes import FarmFailedError

MOST_RESTARTS = 6
"""Restarts in a row. With the pauses below, a node that ends at once is tried for half a minute."""
FIRST_PAUSE_SECONDS = 1.0
"""Pause before the second restart in a row; each further one is twice as long. The first restart has none."""
STEADY_SECONDS = 60.0
"""A node that has run for this time has no restarts in a row any more."""


class Node(Protocol):
    """What a restart needs of a node."""

    name: str

    @property
    def is_alive(self) -> bool:
        """Whether its process runs."""

    def note_end(self) -> int:
        """Count a session that ended early; returns the exit code."""

    def last_lines(self) -> str:
        """The end of its log."""

    def start(self) -> None:
        """Start a session."""


class _State:
    """A node: restarts in a row, the time of its last start, and the time of the next one while it waits."""

    def __init__(self, now_s: float) -> None:
        self.in_a_row = 0
        self.started_s = now_s
        self.due_s: float | None = None


class Restarts:
    """Starts nodes again that have ended, as a supervisor of services does.

    Args:
        now_s: the present time; all nodes have just been started.
        say: gets a line for each end and each restart.
    """

    def __init__(self, nodes: Sequence[Node], now_s: float, say: Callable[[str], None]) -> None:
        self._nodes = {node: _State(now_s) for node in nodes}
        self._say = say

    def check(self, now_s: float) -> None:
        """Note nodes that have ended, and start those whose pause is over. Raises FarmFailedError at the limit."""
        for node, state in self._nodes.items():
            if state.due_s is None and not node.is_alive:
                self._ended(node, state, now_s)
            if state.due_s is not None and now_s >= state.due_s:
                self._start(node, state, now_s)

    def start_waiting(self, now_s: float) -> None:
        """Start the nodes that still wait: the farm ends, and their files must be recovered."""
        self.check(now_s)
        for node, state in self._nodes.items():
            if state.due_s is not None:
                self._start(node, state, now_s)

    def text(self, now_s: float) -> str:
        """The nodes that wait for a restart, for the status; empty without."""
        return "; ".join(
            f"{node.name} starts again in {max(0.0, state.due_s - now_s):.0f} s "
            f"(restart {state.in_a_row} of at most {MOST_RESTARTS})"
            for node, state in self._nodes.items()
            if state.due_s is not None
        )

    def _ended(self, node: Node, state: _State, now_s: float) -> None:
        exit_code = node.note_end()
        if now_s - state.started_s >= STEADY_SECONDS:
            state.in_a_row = 0
        if state.in_a_row == MOST_RESTARTS:
            raise FarmFailedError(
                f"{node.name} ended with exit code {exit_code}, after {MOST_RESTARTS} restarts in a row of which none "
                f"lasted {STEADY_SECONDS:.0f} s:\n{node.last_lines()}"
            )
        state.in_a_row += 1
        pause = 0.0 if state.in_a_row == 1 else FIRST_PAUSE_SECONDS * 2.0 ** (state.in_a_row - 2)
        state.due_s = now_s + pause
        again = f"in {pause:.0f} s" if pause else "at once"
        self._say(
            f"{node.name} ended with exit code {exit_code}; it starts again {again} "
            f"(restart {state.in_a_row} of at most {MOST_RESTARTS})"
        )

    def _start(self, node: Node, state: _State, now_s: float) -> None:
        node.start()
        state.started_s, state.due_s = now_s, None
        self._say(f"{node.name} is started again")
