"""A fake engine of a streaming chain whose back end holds chosen slots, so that its buffers fill."""

from __future__ import annotations

from types import ModuleType

from hltnode.processing.framework.limits import BatchLimits
from tests.daemon.fakes import FakeEngine, FakeOutput, FakeWorkspace


class SlowStreamWorkspace(FakeWorkspace):
    """Results without windows."""

    engine: SlowStream

    @property
    def output(self) -> FakeOutput:
        found = super().output
        of = self.engine.windows
        assert of is not None
        found.lists = {of.name: of.empty(len(found.accepted))}
        return found


class SlowStream(FakeEngine):
    """The streaming test chain without its kernels. `behaviour.hanging_slots` are held by the back end."""

    def __init__(self, chain: ModuleType, limits: BatchLimits) -> None:
        super().__init__(limits)
        self.streaming = chain.STREAM.streaming
        self.windows = chain.WINDOWS
        self.lists = {chain.WINDOWS.name: chain.WINDOWS}

    def create_workspace(self) -> FakeWorkspace:
        made = SlowStreamWorkspace(len(self.workspaces), self._limits, self.behaviour, self._decisions)
        made.engine = self
        self.workspaces.append(made)
        return made
