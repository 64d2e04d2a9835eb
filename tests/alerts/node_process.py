"""A node with the fake engine; a file controls its back end: python -m tests.alerts.node_process CONFIG.

The file is behaviour.json beside CONFIG: the seconds of a batch (`seconds`), whether it hangs (`hang`), how many
batches fail (`fail`, counted again when `number` changes), the flag of all events (`flag`, of LHCb's chain), the
position of the beam (`beam_x`), whether events have primary vertices (`has_pv`), and whether one group of channels is
dead (`dead`).
"""

import asyncio
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import uvloop

from hltnode.daemon.commands.node.serving import follow_signals
from hltnode.daemon.common import log
from hltnode.daemon.common.vocabulary import LogFormat
from hltnode.daemon.configuration.loading import load_config
from hltnode.daemon.node.node import Node
from hltnode.daemon.node.sizing import batch_limits
from hltnode.processing.framework.channel_groups import ChannelGroups, CountedChannels
from hltnode.processing.framework.histograms import HistogramShape, n_counts
from hltnode.processing.framework.measured_quantities import MeasuredQuantity
from hltnode.processing.lhcb.chain import CHAIN
from tests.daemon.fakes import Behaviour, FakeEngine, FakeOutput, FakeWorkspace

LOOK_SECONDS = 0.05


BEAM_X = HistogramShape(name="beam_x", bins=80, low=-4.0, high=4.0)
HAS_PV = HistogramShape(name="has_pv", bins=2, low=-0.5, high=1.5)
ASICS = HistogramShape(name="asics", bins=8, low=-0.5, high=7.5)
DEAD_ASIC = 3
_ASIC = np.arange(ASICS.bins)
_NEIGHBOURS = _ASIC[:, None] + np.array([-2, -1, 1, 2])
CHANNELS = CountedChannels(
    groups=ChannelGroups(
        name="ASIC",
        condition="masked_asics",
        numbers=_ASIC,
        exists=np.ones(ASICS.bins, np.bool_),
        neighbours=np.where(np.isin(_NEIGHBOURS, _ASIC), _NEIGHBOURS, -1),
    ),
    histogram=ASICS.name,
    group_of_bin=_ASIC,
    masked=np.zeros(ASICS.bins, np.bool_),
)
VALUES_PER_EVENT = 100


class FlaggingWorkspace(FakeWorkspace):
    """A fake workspace that adds one flag to all events, and fills three histograms."""

    flag = 0
    beam_x = 0.0
    has_pv = True
    dead = False

    def submit(self, ended: Callable[[], None]) -> None:
        n = sum(mep.n_events for mep in self._meps)
        if n:
            place = int(np.searchsorted(BEAM_X.edges, type(self).beam_x, side="right"))
            self.counted[place] += np.uint32(VALUES_PER_EVENT * n)
            self.counted[BEAM_X.n_counts + 1 + type(self).has_pv] += np.uint32(n)
            hits = np.full(ASICS.bins, VALUES_PER_EVENT * n, np.uint32)
            hits[DEAD_ASIC] *= not type(self).dead
            self.counted[BEAM_X.n_counts + HAS_PV.n_counts + 1 :][: ASICS.bins] += hits
        super().submit(ended)

    @property
    def output(self) -> FakeOutput:
        output = super().output
        output.flags |= np.uint32(type(self).flag)
        return output


class FlaggingEngine(FakeEngine):
    """A fake engine with such workspaces and the flags of LHCb, which have alerts."""

    flags = CHAIN.flag_table
    histograms = (BEAM_X, HAS_PV, ASICS)
    counted = (CHANNELS,)
    measured = (
        MeasuredQuantity(
            name="beam_x", histogram="beam_x", configured=0.05, tolerance=0.1, low=-3.5, high=3.5, unit="mm"
        ),
    )

    def create_workspace(self) -> FakeWorkspace:
        workspace = FlaggingWorkspace(len(self.workspaces), self._limits, self.behaviour, self._decisions)
        workspace.counted = np.zeros(n_counts(self.histograms), np.uint32)
        self.workspaces.append(workspace)
        return workspace


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
        FlaggingWorkspace.beam_x = wanted.get("beam_x", 0.0)
        FlaggingWorkspace.has_pv = wanted.get("has_pv", True)
        FlaggingWorkspace.dead = wanted.get("dead", False)
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
