"""A node with the fake engine as a process of its own: python -m tests.daemon.node_process CONFIG."""

import asyncio
import os
import sys
import time
from pathlib import Path

import uvloop

from hltnode.daemon.commands.node.serving import follow_signals
from hltnode.daemon.common import log
from hltnode.daemon.common.vocabulary import LogFormat
from hltnode.daemon.configuration.loading import load_config
from hltnode.daemon.node.node import Node
from hltnode.daemon.node.sizing import batch_limits, request_batch_limits
from hltnode.daemon.readout import run_feeders
from hltnode.daemon.storage.event_store import EventStore
from hltnode.daemon.storage.journal_content import Ranges
from tests.daemon.fakes import FakeEngine


async def main(config_file: Path) -> int:
    config = load_config(config_file)
    if seconds := os.environ.get("TEST_SILENT_SECONDS"):
        # For feeders that are started again: on a busy machine that takes longer than a node waits for them.
        run_feeders.SILENT_NS = int(float(seconds) * 1e9)
    if seconds := os.environ.get("TEST_COMMIT_SECONDS"):
        # For tests that kill a node between its decisions and its journal.
        commit, pause = EventStore.commit, float(seconds)

        def delayed(self: EventStore, run: int, meps: Ranges) -> None:
            time.sleep(pause)
            commit(self, run, meps)

        EventStore.commit = delayed  # type: ignore[method-assign]

    def create_node() -> Node:
        # For tests of a start that lasts, of long batches, and of a back end that never answers, or that ends the node.
        time.sleep(float(os.environ.get("TEST_START_SECONDS", "0")))
        engine = FakeEngine(batch_limits(config))
        engine.behaviour.seconds = float(os.environ.get("TEST_BATCH_SECONDS", "0.005"))
        engine.behaviour.deadly = bytes.fromhex(os.environ.get("TEST_DEADLY_BYTES", ""))
        if os.environ.get("TEST_HANG"):
            engine.behaviour.hang.set()
        request_engine = None
        if config.requests.endpoint is not None:
            request_engine = FakeEngine(request_batch_limits(config))
        return Node(config, engine, backend="fake", version="0", config_file=config_file, request_engine=request_engine)

    _, exit_code = await follow_signals(create_node)
    return exit_code


if __name__ == "__main__":
    log.configure("info", LogFormat.JSON)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sys.exit(runner.run(main(Path(sys.argv[1]))))
