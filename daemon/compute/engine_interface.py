"""The interface of an engine, as the daemon needs it.

`engine` and `workspace` of `hltnode.processing.framework` implement it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends._executor import DirectBatch
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.channel_groups import CountedChannels
from hltnode.processing.framework.flags import FlagTable
from hltnode.processing.framework.histograms import HistogramShape
from hltnode.processing.framework.measured_quantities import MeasuredQuantity
from hltnode.processing.framework.memory_plan import SlotMemory
from hltnode.processing.framework.output_lists import ListContent, OutputList
from hltnode.processing.framework.streaming import Streaming
from hltnode.protocol.raw_data.lumi_summary import CounterRange


class Output(Protocol):
    """Results of one batch, one row per event.

    accepted: u8[n]. lines: u32[n, words]; line i is bit i % 32 of word i // 32, and bits after the last line are 0.
    flags: u32[n]. selected: the candidates of the lines in accepted events (processing.selection.reports.selected); no
    words of other events. counts: u32[n] per collection name. lists: the output lists that are delivered, by name.
    summary: counters of luminosity summaries, u32[n, counters].
    """

    @property
    def accepted(self) -> NDArray[np.uint8]: ...
    @property
    def lines(self) -> NDArray[np.uint32]: ...
    @property
    def flags(self) -> NDArray[np.uint32]: ...
    @property
    def selected(self) -> ListContent: ...
    @property
    def counts(self) -> Mapping[str, NDArray[np.uint32]]: ...
    @property
    def lists(self) -> Mapping[str, ListContent]: ...
    @property
    def summary(self) -> NDArray[np.uint32]: ...


class StageTimings(Protocol):
    """Durations of the stages of a batch in seconds."""

    @property
    def h2d(self) -> float: ...
    @property
    def kernels(self) -> float: ...
    @property
    def d2h(self) -> float: ...


class Workspace(Protocol):
    """Buffers and state of one batch.

    `submit` returns immediately; `ended` is called in any thread when `poll` has news. All methods may raise
    `BackendError`; after a `DeviceLostError`, every later call fails.
    """

    @property
    def input_data(self) -> NDArray[np.uint8]: ...
    @property
    def output(self) -> Output: ...
    @property
    def decision_rows(self) -> tuple[NDArray[np.uint8], NDArray[np.uint32], NDArray[np.uint32]]:
        """`accepted`, `lines` and `flags` of the output, of which the first rows are valid."""

    @property
    def timings(self) -> StageTimings: ...
    @property
    def progress(self) -> int:
        """Number of finished steps of its batches at the last poll; never decreases."""

    def seal(self, meps: Sequence[MepInBatch], /) -> None: ...
    def submit(self, ended: Callable[[], None], /) -> None: ...
    def compute_here(self) -> bool:
        """Compute the sealed batch in this thread; `output` is then valid. False if the back end is a GPU."""

    def poll(self) -> bool: ...
    def take_histogram_counts(self) -> NDArray[np.uint32]: ...


class DirectWorkspace(Workspace, Protocol):
    """A workspace whose batches the calling thread may compute."""

    def compute_directly(self) -> bool:
        """Compute the sealed batch in this thread, beside the batches of other workspaces; `output` is then valid.

        False if the back end has no such way: nothing was computed.
        """

    @property
    def compiled_batch(self) -> DirectBatch | None:
        """The same for compiled code, which writes the batch, too; None if the back end has no such way."""

    @property
    def sharing_threads(self) -> int:
        """The most threads of the back end that share the sealed batch."""


class Engine(Protocol):
    """Creates workspaces.

    It knows the lines, their routing words (u32[lines, 3]), the counted collections, the counters of luminosity
    summaries, the output lists that it delivers, how a streaming chain cuts time, its list of windows, the flags of
    events, the names of sub-detectors (by the top five bits
    of their source ids) and of error banks (by bank type), the histograms, the numbers of the detector that they
    measure, and the trigger configuration key (TCK).
    """

    @property
    def lines(self) -> tuple[str, ...]: ...
    @property
    def line_routing(self) -> NDArray[np.uint32]: ...
    @property
    def collections(self) -> tuple[str, ...]: ...
    @property
    def summary(self) -> tuple[CounterRange, ...]: ...
    @property
    def lists(self) -> Mapping[str, OutputList]: ...
    @property
    def streaming(self) -> Streaming | None: ...
    @property
    def windows(self) -> OutputList | None: ...
    @property
    def flags(self) -> FlagTable: ...
    @property
    def subdetectors(self) -> Mapping[int, str]: ...
    @property
    def error_types(self) -> Mapping[int, str]: ...
    @property
    def histograms(self) -> tuple[HistogramShape, ...]: ...
    @property
    def measured(self) -> tuple[MeasuredQuantity, ...]: ...
    @property
    def channels(self) -> Callable[[Mapping[str, NDArray[np.uint8]]], tuple[CountedChannels, ...]]: ...
    @property
    def tck(self) -> int: ...
    @property
    def memory(self) -> SlotMemory: ...
    def create_workspace(self) -> Workspace: ...
    def create_direct_workspace(self) -> DirectWorkspace: ...
    def replace_constants(
        self, constants: Mapping[str, NDArray[np.uint8]], measured: Sequence[MeasuredQuantity], tck: int, /
    ) -> None:
        """Replace constants, the measured numbers among them and the key, while no workspace has a batch."""

    def close(self) -> None: ...
