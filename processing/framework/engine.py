"""The engine: a sequence of algorithms on a back end, and the workspaces that batches go through.

A workspace owns everything that one batch needs, allocated once: pinned input, device input, arena, pinned output, the
parameter blocks of the kernels and a queue with the captured sequence. Nothing is allocated per batch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.interface import Backend, DeviceMemory, Launch, Mirror, Queue, Timings
from hltnode.processing.framework.batch import N_SUBDETECTORS, BatchLimits, BatchTables, MepInBatch
from hltnode.processing.framework.declaration import (
    Algorithm,
    AlgorithmSequence,
    Buffer,
    Grid,
    Role,
    batch_header,
    event_flags,
    event_rows,
    mep_rows,
    mfp_rows,
    raw_input,
)

BATCH_INPUTS = (batch_header, raw_input, mfp_rows, mep_rows, event_rows, event_flags)


@dataclass(frozen=True, slots=True)
class BatchOutput:
    """Views of the pinned output of one batch, one row per event; valid until the next submit().

    `lines` has shape (events, words): line i is bit i % 32 of word i // 32.
    """

    accepted: NDArray[np.uint8]
    lines: NDArray[np.uint32]
    flags: NDArray[np.uint32]
    velo_clusters: NDArray[np.uint32]
    velo_tracks: NDArray[np.uint32]
    pvs: NDArray[np.uint32]


class Engine:
    """A sequence, its constants and the limits of a batch, on one back end."""

    def __init__(
        self,
        backend: Backend,
        sequence: AlgorithmSequence,
        constants: Mapping[str, NDArray[np.uint8]],
        limits: BatchLimits,
        *,
        lines: Sequence[str] = (),
        tck: int = 0,
    ) -> None:
        self.backend = backend
        self.sequence = sequence
        self.limits = limits
        self.lines = tuple(lines)
        """Names of the selection lines; line i is bit i % 32 of word i // 32 in BatchOutput.lines."""
        self.tck = tck
        self._constants: dict[str, DeviceMemory] = {}
        for buffer in sequence.buffers:
            if buffer.role & Role.CONSTANT:
                content = constants[buffer.name]
                if content.nbytes != buffer.nbytes(limits):
                    raise ValueError(f"{buffer.name} has {content.nbytes} bytes, expected {buffer.nbytes(limits)}")
                self._constants[buffer.name] = backend.allocate_device(content.nbytes)
                backend.write(self._constants[buffer.name], content)

    def create_workspace(self) -> "Workspace":
        """Allocate what one batch needs."""
        return Workspace(self.backend, self.sequence, self._constants, self.limits)

    def close(self) -> None:
        """Stop the back end; workspaces must not be used any more."""
        self.backend.close()


class Workspace:
    """What one batch needs. Fill `input_data`, then seal(), submit(), poll() or wait(), read `output`."""

    def __init__(
        self,
        backend: Backend,
        sequence: AlgorithmSequence,
        constants: Mapping[str, DeviceMemory],
        limits: BatchLimits,
    ) -> None:
        self._backend = backend
        self._limits = limits
        self._mirrors: dict[str, Mirror] = {}
        self._memory: dict[str, DeviceMemory] = dict(constants)
        self._buffers: dict[str, Buffer] = {}
        for buffer in dict.fromkeys((*BATCH_INPUTS, *sequence.buffers)):
            self._buffers[buffer.name] = buffer
            if buffer.role & (Role.INPUT | Role.OUTPUT):
                mirror = backend.allocate_mirror(buffer.nbytes(limits))
                self._mirrors[buffer.name] = mirror
                self._memory[buffer.name] = mirror.device
            elif not buffer.role & Role.CONSTANT:
                self._memory[buffer.name] = backend.allocate_device(buffer.nbytes(limits))
        self._parameters = [self._parameter_block(algorithm) for algorithm in sequence]
        launches = [
            Launch(
                algorithm.name, block.pointer, algorithm.grid, self._max_blocks(algorithm.grid), algorithm.block_size
            )
            for algorithm, block in zip(sequence, self._parameters, strict=True)
        ]
        self.queue: Queue = backend.create_queue(launches, self._memory[batch_header.name])
        self._tables = BatchTables(
            header=self._host(batch_header),
            mfp_rows=self._host(mfp_rows),
            mep_rows=self._host(mep_rows).reshape(-1, N_SUBDETECTORS),
            event_rows=self._host(event_rows),
            event_flags=self._host(event_flags),
        )
        self.input_data: NDArray[np.uint8] = self._host(raw_input)
        """Pinned bytes for whole MFPs, at multiples of batch.MFP_ALIGNMENT."""
        self._input_used = 0

    def _host(self, buffer: Buffer) -> NDArray[Any]:
        return self._mirrors[buffer.name].host.view(buffer.dtype)

    def _max_blocks(self, grid: Grid) -> int:
        return {Grid.ONE: 1, Grid.ROWS: self._limits.rows, Grid.EVENTS: self._limits.events}[grid]

    def _parameter_block(self, algorithm: Algorithm) -> DeviceMemory:
        pointers = np.array([self._memory[buffer.name].pointer for buffer in algorithm.buffers], dtype=np.uint64)
        words = [constant.packed() for constant in algorithm.constants]
        words += [np.uint32(capacity.count(self._limits)) for capacity in algorithm.capacities]
        content = np.concatenate([pointers.view(np.uint8), np.array(words, dtype=np.uint32).view(np.uint8)])
        block = self._backend.allocate_device(content.nbytes)
        self._backend.write(block, content)
        return block

    @property
    def n_events(self) -> int:
        """Events of the sealed batch."""
        return int(self._tables.header["n_events"][0])

    def seal(self, meps: Sequence[MepInBatch]) -> None:
        """Write the tables for the MEPs whose MFPs lie in `input_data`. Raises ValueError above the limits."""
        self._tables.fill(meps, self.input_data)
        self._input_used = max((offset + size for mep in meps for _, offset, size in mep.fragments), default=0)

    def submit(self) -> None:
        """Start the sealed batch; returns at once. Raises BackendError."""
        self.queue.submit(self._uploads(), self._downloads())

    def _uploads(self) -> list[tuple[Mirror, int]]:
        header = self._tables.header[0]
        used = {
            batch_header.name: batch_header.dtype.itemsize,
            raw_input.name: self._input_used,
            mfp_rows.name: int(header["n_rows"]) * mfp_rows.dtype.itemsize,
            mep_rows.name: int(header["n_meps"]) * N_SUBDETECTORS * mep_rows.dtype.itemsize,
            event_rows.name: self.n_events * event_rows.dtype.itemsize,
            event_flags.name: self.n_events * event_flags.dtype.itemsize,
        }
        return [(self._mirrors[name], nbytes) for name, nbytes in used.items() if nbytes]

    def _downloads(self) -> list[tuple[Mirror, int]]:
        return [
            (self._mirrors[name], self.n_events * buffer.nbytes(self._limits) // self._limits.events)
            for name, buffer in self._buffers.items()
            if buffer.role & Role.OUTPUT and self.n_events
        ]

    def poll(self) -> bool:
        """Whether the batch is done. Raises BackendError if the back end failed on it."""
        return self.queue.poll()

    def wait(self) -> None:
        """Block until the batch is done. Raises BackendError if the back end failed on it."""
        self.queue.wait()

    @property
    def timings(self) -> Timings:
        """Seconds of the last batch in transfer to the device, kernels and transfer back."""
        return self.queue.timings

    @property
    def output(self) -> BatchOutput:
        """Results of the last batch; the sequence must make all of them."""
        n = self.n_events
        return BatchOutput(
            accepted=self.host_array("accepted")[:n],
            lines=self.host_array("lines").reshape(-1, self._limits.line_words)[:n],
            flags=self.host_array("event_flags")[:n],
            velo_clusters=self.host_array("velo_cluster_count")[:n],
            velo_tracks=self.host_array("velo_track_count")[:n],
            pvs=self.host_array("pv_count")[:n],
        )

    def host_array(self, name: str) -> NDArray[Any]:
        """The pinned copy of an input or output buffer, with its dtype."""
        return self._host(self._buffers[name])

    def fetch(self, name: str, count: int | None = None) -> NDArray[Any]:
        """Copy a device buffer, or its first `count` values, to a new host array. For validation and tests: it waits
        for the device."""
        buffer = self._buffers[name]
        nbytes = buffer.nbytes(self._limits) if count is None else count * buffer.dtype.itemsize
        return self._backend.read(self._memory[name], nbytes).view(buffer.dtype)
