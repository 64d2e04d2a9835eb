"""A node with the fake engine; a file controls its back end: python -m tests.alerts.node_process CONFIG.

The file is behaviour.json beside CONFIG: the seconds of a batch (`seconds`), whether it hangs (`hang`), how many
batches fail (`fail`, counted again when `number` changes) and the flag of all events (`flag`, of LHCb's chain).
"""

import asyncio
import json
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import uvloop

from hltnode.daemon.commands.node.serve import follow_signals
from hltnode.daemon.common import log
from hltnode.daemon.common.vocabulary import LogFormat
from hltnode.daemon.configuration.loading import load_config
from hltnode.daemon.node.node import Node
from hltnode.daemon.node.sizing import batch_limits
from hltnode.processing.lhcb.chain import CHAIN
from tests.daemon.fakes import Behaviour, FakeEngine, FakeOutput, FakeWorkspace

LOOK_SECONDS = 0.05


class FlaggingWorkspace(FakeWorkspace):
    """A fake workspace that adds one flag to all events."""

    flag = 0

    @property
    def output(self) -> FakeOutput:
        output = super().output
        output.flags |= np.uint32(type(self).flag)
        return output


class FlaggingEngine(FakeEngine):
    """A fake engine with such workspaces and the flags of LHCb, which have alerts."""

    flags = CHAIN.flag_table

    def create_workspace(self) -> FakeWorkspace:
        slot = len(self.workspaces)
        self.workspaces.append(FlaggingWorkspace(slot, self._limits, self.behaviour, self._decisions))
        return self.workspaces[-1]


class BehaviourFile:
    """Watches the file in a thread."""

    def __init__(self, path: Path, behaviour: Behaviour) -> None:
        self._path = path
        self._behaviour = behaviour
        self._number = 0
        self.follow_once()
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        while True:
            threading.Event().wait(LOOK_SECONDS)
            self.follow_once()

    def follow_once(self) -> None:
        """Apply the file."""
        wanted: dict[str, Any] = json.loads(self._path.read_text()) if self._path.exists() else {}
        self._behaviour.seconds = wanted.get("seconds", 0.002)
        if wanted.get("hang", False):
            self._behaviour.hang.set()
        else:
            self._behaviour.hang.clear()
        if wanted.get("number", 0) != self._number:
            self._number = wanted["number"]
            self._behaviour.fail_next = wanted.get("fail", 0)
        FlaggingWorkspace.flag = FlaggingEngine.flags.masks[wanted["flag"]] if "flag" in wanted else 0


async def main(config_file: Path) -> int:
    """Run the node until a signal; returns its exit code."""
    config = load_config(config_file)

    def create_node() -> Node:
        engine = FlaggingEngine(batch_limits(config))
        BehaviourFile(config_file.with_name("behaviour.json"), engine.behaviour)
        return Node(config, engine, backend="fake", version="0", config_file=config_file)

    _, exit_code = await follow_signals(create_node)
    return exit_code


if __name__ == "__main__":
    log.configure("info", LogFormat.JSON)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sys.exit(runner.run(main(Path(sys.argv[1]))))
