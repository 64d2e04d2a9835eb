"""A node whose back end needs a known time for each batch: python -m tests.farm.paced_node CONFIG.

One batch runs at a time, as on a GPU, and costs no processor time: several nodes of one machine do not slow each other
down. A batch needs `overhead_seconds + events * event_seconds`, times the number in the file `factor` beside the
configuration. The times that it really needed go to `times` there, a line with events and ns for each batch, and the
last status of each session to `last-status-PID.json`.
"""

import asyncio
import json
import math
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import uvloop
import zmq

from hltnode.daemon.commands.node.serving import follow_signals
from hltnode.daemon.common import log
from hltnode.daemon.common.vocabulary import LogFormat, SlowConsumerPolicy
from hltnode.daemon.configuration.loading import load_config
from hltnode.daemon.node.node import Node
from hltnode.daemon.node.sizing import batch_limits
from hltnode.daemon.run_control import controller
from hltnode.processing.framework.limits import BatchLimits
from tests.daemon.fakes import FakeEngine, FakeWorkspace

OVERHEAD_SECONDS = 0.08
EVENT_SECONDS = 3e-3
"""Long beside the delays of a machine with other work, which the model does not have."""
FACTOR, TIMES = "factor", "times"
LAST_STATUS = "last-status-"


SMALL_BUFFER = 4096


class SmallBuffers(zmq.Context[zmq.Socket[bytes]]):
    """A context whose sockets have small buffers in the kernel: a consumer that pauses is soon noticed."""

    def __init__(self, io_threads: int = 1) -> None:
        super().__init__(io_threads)
        self.setsockopt(zmq.SNDBUF, SMALL_BUFFER)


class BackEnd(threading.Thread):
    """Computes one batch after the other."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self._factor = folder / FACTOR
        self._times = (folder / TIMES).open("a")
        self._batches: queue.SimpleQueue[tuple[PacedWorkspace, int, Callable[[], None]]] = queue.SimpleQueue()
        self.start()

    def submit(self, workspace: "PacedWorkspace", events: int, ended: Callable[[], None]) -> None:
        """Queue a batch."""
        self._batches.put((workspace, events, ended))

    def run(self) -> None:
        """Compute for ever."""
        while True:
            workspace, events, ended = self._batches.get()
            begin = time.monotonic()
            factor = float(self._factor.read_text()) if self._factor.exists() else 1.0
            time.sleep(factor * (OVERHEAD_SECONDS + events * EVENT_SECONDS))
            self._times.write(f"{events} {round((time.monotonic() - begin) * 1e9)}\n")
            self._times.flush()
            workspace.note_end()
            ended()


class PacedWorkspace(FakeWorkspace):
    """A workspace whose batch ends when the back end has computed it."""

    back_end: BackEnd

    def submit(self, ended: Callable[[], None]) -> None:
        """Start a batch; an empty one of the warm-up needs no time."""
        events = sum(mep.n_events for mep in self._meps)
        if not events:
            super().submit(ended)
            return
        self._done_at = math.inf
        self.back_end.submit(self, events, ended)

    def note_end(self) -> None:
        """The batch is computed."""
        self._done_at = 0.0


class PacedEngine(FakeEngine):
    """The engine of the paced back end."""

    def __init__(self, limits: BatchLimits, back_end: BackEnd) -> None:
        super().__init__(limits)
        self._back_end = back_end

    def create_workspace(self) -> FakeWorkspace:
        """A workspace of a slot."""
        workspace = PacedWorkspace(len(self.workspaces), self._limits, self.behaviour, self._decisions)
        workspace.back_end = self._back_end
        self.workspaces.append(workspace)
        return workspace


async def main(config_file: Path) -> int:
    """Run the node; its exit code."""
    config = load_config(config_file)
    # A feeder that gets no processor for a quarter of a second would look like one that has used its credits.
    controller.DRAIN_QUIET_SECONDS = 2.0
    back_end = BackEnd(config_file.parent)
    if config.decisions.policy is SlowConsumerPolicy.WAIT:
        zmq.Context = SmallBuffers  # type: ignore[assignment, misc]

    def create_node() -> Node:
        engine = PacedEngine(batch_limits(config), back_end)
        return Node(config, engine, backend="paced", version="0", config_file=config_file)

    node, exit_code = await follow_signals(create_node)
    (config_file.parent / f"{LAST_STATUS}{os.getpid()}.json").write_text(json.dumps(node.status.full()))
    return exit_code


if __name__ == "__main__":
    log.configure("warning", LogFormat.JSON)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sys.exit(runner.run(main(Path(sys.argv[1]))))
