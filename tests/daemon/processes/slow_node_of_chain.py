"""`node_of_chain` with a back end that needs 300 ms for each batch: ... slow_node_of_chain CONFIG DIR.

Its batches still overlap, so a node with three slots computes at most ten of them in a second.
"""

import sys
import time
from typing import Any

from hltnode.daemon.cli import app
from hltnode.processing.framework.workspace import Workspace

SECONDS = 0.3


class SlowWorkspace:
    """Reports the end of a batch with a delay."""

    submit, poll = Workspace.submit, Workspace.poll

    @staticmethod
    def note_start(workspace: Any, ended: Any = None) -> None:
        _started[id(workspace)] = time.monotonic()
        SlowWorkspace.submit(workspace, ended)

    @staticmethod
    def poll_later(workspace: Any) -> bool:
        is_done = SlowWorkspace.poll(workspace)
        return is_done and (not workspace.n_events or time.monotonic() - _started[id(workspace)] >= SECONDS)


_started: dict[int, float] = {}

if __name__ == "__main__":
    config, directory = sys.argv[1:]
    sys.path.insert(0, directory)
    Workspace.submit = SlowWorkspace.note_start  # type: ignore[method-assign, assignment]
    Workspace.poll = SlowWorkspace.poll_later  # type: ignore[method-assign, assignment]
    app(["serve", "--config", config])
