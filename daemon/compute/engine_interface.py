"""What the daemon needs of an engine. `hltnode.processing.framework.engine` offers it; tests bring their own."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.memory_plan import SlotMemory


class Output(Protocol):
    """Results of one batch, one element per event: accepted u8, lines u64 (bit i is line i), flags u32."""

    @property
    def accepted(self) -> NDArray[np.uint8]: ...
    @property
    def lines(self) -> NDArray[np.uint64]: ...
    @property
    def flags(self) -> NDArray[np.uint32]: ...


class StageTimings(Protocol):
    """Seconds that the stages of a batch took."""

    @property
    def h2d(self) -> float: ...
    @property
    def kernels(self) -> float: ...
    @property
    def d2h(self) -> float: ...


class Workspace(Protocol):
    """What one batch needs; `submit` returns at once. All methods may raise `BackendError`."""

    @property
    def input_data(self) -> NDArray[np.uint8]: ...
    @property
    def output(self) -> Output: ...
    @property
    def timings(self) -> StageTimings: ...
    def seal(self, meps: Sequence[MepInBatch], /) -> None: ...
    def submit(self) -> None: ...
    def poll(self) -> bool: ...


class Engine(Protocol):
    """Makes workspaces; knows the lines and the trigger configuration key (TCK)."""

    @property
    def lines(self) -> tuple[str, ...]: ...
    @property
    def tck(self) -> int: ...
    @property
    def memory(self) -> SlotMemory: ...
    def create_workspace(self) -> Workspace: ...
    def close(self) -> None: ...
