"""The engine: a sequence of algorithms on a back end, and its constants. It makes the workspaces of batches."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.interface import (
    Backend,
    DeviceMemory,
)
from hltnode.processing.framework.chain import Chain
from hltnode.processing.framework.channel_groups import CountedChannels
from hltnode.processing.framework.codegen import generated_source
from hltnode.processing.framework.collections import Column, DeclarationError, Role
from hltnode.processing.framework.declaration import Algorithm, AlgorithmSequence
from hltnode.processing.framework.histograms import HistogramShape
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.measured_quantities import MeasuredQuantity
from hltnode.processing.framework.memory_check import require_memory
from hltnode.processing.framework.memory_plan import (
    Retain,
    SlotMemory,
    plan_memory,
)
from hltnode.processing.framework.workspace import Workspace

MAX_BLOCKS = (1 << 31) - 1
"""The size limit of a grid (CUDA C++ Programming Guide, "Compute Capabilities")."""


class Engine:
    """A chain, its constants and the limits of a batch, on one back end.

    retain: names of columns for Workspace.fetch, or "all"; other columns share memory.

    Raises DeclarationError if generated headers are out of date or for a column that does not exist, ValueError for a
    constant of the wrong size, BackendError if memory is short.
    """

    def __init__(
        self,
        backend: Backend,
        chain: Chain,
        constants: Mapping[str, NDArray[np.uint8]],
        limits: BatchLimits,
        *,
        line_names: Sequence[str] = (),
        line_routing: NDArray[np.uint32] | None = None,
        histograms: Sequence[HistogramShape] = (),
        measured: Sequence[MeasuredQuantity] = (),
        channels: Callable[[Mapping[str, NDArray[np.uint8]]], tuple[CountedChannels, ...]] = lambda _: (),
        tck: int = 0,
        retain: Retain = (),
    ) -> None:
        chain.check_headers()
        self._sources = {
            algorithm.name: generated_source(algorithm, chain.kernels.folders)
            for algorithm in chain.sequence
            if algorithm.generated is not None
        }
        for algorithm in chain.sequence:
            if algorithm.generated is not None and not backend.compile(algorithm.name, self._sources[algorithm.name]):
                columns = [column.name for column in _kept_around(algorithm, chain.sequence)]
                retain = retain if retain == "all" else (*retain, *columns)
        _check_blocks(chain.sequence, limits)
        self.plan = plan_memory(chain.sequence, limits, retain=retain, fuse_events=backend.fuses_events)
        self.backend = backend
        self.chain = chain
        self.limits = limits
        self.lines = tuple(line_names)
        """Names of the selection lines; line i is bit i % 32 of word i // 32 in BatchOutput.lines."""
        self.line_routing = np.zeros((len(self.lines), 3), np.uint32) if line_routing is None else line_routing
        """Routing words that each line sets, u32[lines, 3]."""
        self.collections = tuple(chain.counts)
        """Names of the collections whose objects BatchOutput.counts counts."""
        self.summary = () if chain.summary is None else chain.summary.counters
        """The counters of luminosity summaries; none: summaries have the counts."""
        self.histograms = tuple(histograms)
        """The histograms of Workspace.take_histogram_counts, in order."""
        self.measured = tuple(measured)
        """The numbers of the constants that histograms measure."""
        self.channels = channels
        """Makes the groups of channels whose hits histograms count, for constants of which some are replaced."""
        self.lists = {each.name: each for each in chain.lists}
        """The output lists of BatchOutput.lists, by name."""
        self.streaming = chain.streaming
        """How the chain cuts time; None: its events are collisions."""
        self.windows = self.lists.get(chain.windows)
        """The list of the windows of a streaming chain."""
        self.flags = chain.flag_table
        """Names and kinds of the bits of BatchOutput.flags."""
        self.subdetectors = chain.readout.subdetectors
        """Names of the sub-detectors, by the top five bits of their source ids."""
        self.error_types = {each: chain.readout.bank_types[each] for each in sorted(chain.readout.error_types)}
        """Names of the types of error banks, which readout boards send in place of data."""
        self.tck = tck
        self._constants: dict[str, DeviceMemory] = {}
        for column in self.plan.constants:
            self._constants[column.name] = backend.allocate_device(column.nbytes(limits))
            self._write_constant(column, constants[column.name])

    def _write_constant(self, column: Column, content: NDArray[np.uint8]) -> None:
        if content.nbytes != column.nbytes(self.limits):
            raise ValueError(f"{column.name} has {content.nbytes} bytes, expected {column.nbytes(self.limits)}")
        self.backend.write(self._constants[column.name], content)

    def replace_constants(
        self, constants: Mapping[str, NDArray[np.uint8]], measured: Sequence[MeasuredQuantity], tck: int
    ) -> None:
        """Replace the content of some constant columns, and with it the key of the configuration.

        Call it while no workspace has a batch. Columns that the sequence does not read are left out. Raises ValueError
        for a constant of the wrong size, BackendError if the back end cannot write.
        """
        for column in self.plan.constants:
            if column.name in constants:
                self._write_constant(column, constants[column.name])
        self.measured, self.tck = tuple(measured), tck

    @property
    def memory(self) -> SlotMemory:
        """Memory of one workspace."""
        return self.plan.memory

    def require_memory(self, workspaces: int) -> None:
        """Raises BackendError, with the largest batch that would fit, if `workspaces` workspaces do not fit."""
        require_memory(self.backend, self.plan, workspaces)

    def require_direct_memory(self, run: "Engine", workspaces: int) -> None:
        """The same for one direct workspace, beside workspaces of another engine that are not allocated yet."""
        require_memory(self.backend, self.plan, 1, direct=True, beside=(run.plan, workspaces))

    def create_workspace(self) -> "Workspace":
        """Allocate the workspace of one batch."""
        return Workspace(self.backend, self.chain, self._constants, self.plan, self._sources)

    def create_direct_workspace(self) -> "Workspace":
        """Allocate the workspace of one batch, for `Workspace.compute_directly`; it takes memory of one thread more."""
        return Workspace(self.backend, self.chain, self._constants, self.plan, self._sources, direct=True)

    def close(self) -> None:
        """Stop the back end; workspaces must not be used any more."""
        self.backend.close()


def _kept_around(algorithm: Algorithm, sequence: AlgorithmSequence) -> set[Column]:
    """The columns of an algorithm that runs on the host, and those that algorithms on both sides of it access."""
    place = sequence.algorithms.index(algorithm)
    before = {column for each in sequence.algorithms[:place] for column in each.columns}
    behind = {column for each in sequence.algorithms[place + 1 :] for column in each.columns}
    kept = {*algorithm.columns, *(before & behind)}
    return {column for column in kept if column in algorithm.columns or not column.role & (Role.INPUT | Role.CONSTANT)}


def _check_blocks(sequence: AlgorithmSequence, limits: BatchLimits) -> None:
    """Raises DeclarationError for a grid that is larger than a GPU allows, or than 32-bit numbers of parts, and for a
    column with more elements than kernels can count."""
    places = {column.name: column.count(limits) for column in sequence.columns if column.collection is not None}
    for algorithm in sequence:
        for scratch in algorithm.scratch:
            places[f"{algorithm.name}.{scratch.name}"] = scratch.width * scratch.per.capacity(limits)
        for capacity in algorithm.capacities:
            places[f"{algorithm.name}.{capacity.name}"] = capacity.count(limits)
    for name, count in places.items():
        if count >= 1 << 32:
            raise DeclarationError(
                f"{name}: {count} elements for a batch of {limits.events} events and {limits.input_bytes} bytes, but "
                "kernels count in 32 bits; use smaller batches (pipeline.max_events, pipeline.slot_bytes)"
            )
    for algorithm in sequence:
        blocks = algorithm.n_blocks(events=limits.events, rows=limits.rows, fragments=limits.fragments)
        if blocks > MAX_BLOCKS:
            raise DeclarationError(
                f"{algorithm.name}: {blocks} blocks for a batch of {limits.events} events, {MAX_BLOCKS} are allowed; "
                "use batches of fewer events"
            )
