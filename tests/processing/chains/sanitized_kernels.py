"""Run every sequence of a chain on damaged batches, with kernels built with AddressSanitizer and UBSan.

    LD_PRELOAD=libasan.so python -m tests.processing.chains.sanitized_kernels CHAIN LIBRARY SEED BATCHES REPORT

Each column has its own heap block, so an access behind its end is outside of the block; an error ends the process.
Prints the number of batches of each sequence.

Before that, a child process runs the undamaged batches with columns of half of their declared length, to prove that the
sanitizer reports such accesses: the file REPORT gets what it reports, and its exit status is printed first. A child
shares the imports of this process, which take longer under the sanitizer than its batches.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends import _executor
from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.batch import (
    N_SUBDETECTORS,
    BatchTables,
    MepInBatch,
    batch_header,
    event_flags,
    event_rows,
    mep_rows,
    mfp_rows,
    raw_input,
)
from hltnode.processing.framework.declaration import Algorithm, EventSizes
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.memory_plan import TAIL
from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.selection.trigger_chain import TriggerChain
from tests.processing.chains.chain_under_test import ChainUnderTest
from tests.processing.chains.every_chain import CHAINS
from tests.processing.framework.kernel_runner import Allocate, Launch, program_parts, run_algorithms


def damaged_meps(of: ChainUnderTest, chain: TriggerChain, seed: int, batches: int) -> Iterator[EncodedMep]:
    """Undamaged and damaged batches of events, in every encoding."""
    for mep in of.meps(chain, seed):
        yield mep
        yield from of.damage.damaged_batches(mep, seed, batches)


def given(mep: EncodedMep, limits: BatchLimits) -> dict[str, NDArray[Any]]:
    """The inputs of a batch of one MEP, by column."""
    columns = (mfp_rows, mep_rows, event_rows, event_flags)
    rows, ranges, events, flags = (np.zeros(column.count(limits), column.dtype) for column in columns)
    header = np.zeros(1, batch_header.dtype)
    tables = BatchTables(header, rows, ranges.reshape(-1, N_SUBDETECTORS), events, flags)
    tables.fill([MepInBatch(mep.n_events, mep.fragments)], mep.data)
    return {raw_input.name: mep.data} | dict(zip((c.name for c in columns), (rows, ranges, events, flags), strict=True))


def with_tail(nbytes: int, fill: int) -> NDArray[np.uint8]:
    """Memory, and the bytes behind it that kernels may read."""
    return np.full(nbytes + TAIL, fill, dtype=np.uint8)[:nbytes]


def half(nbytes: int, fill: int) -> NDArray[np.uint8]:
    """Memory that is shorter than its declared length."""
    return np.lib.stride_tricks.as_strided(np.full(nbytes // 2, fill, dtype=np.uint8), shape=(nbytes,))


def sanitized(sources: KernelSources) -> Launch:
    """Launches the kernels of a library."""
    kernels = KernelLibrary(sources)
    target = kernels.targets[0]
    executor = _executor.Executor(1)

    def launch(algorithm: Algorithm, _: EventSizes, parameters: NDArray[np.uint8], header: NDArray[np.void]) -> None:
        address = kernels.address(target, algorithm.kernel)
        step = (address, parameters.ctypes.data, int(algorithm.grid), parameters.nbytes)
        executor.run(_executor.Program([step], header.ctypes.data, parts=program_parts(algorithm)))

    return launch


def status_with_short_columns(of: ChainUnderTest, library: str, seed: int, report: Path) -> int:
    """Exit status of a child process that runs the undamaged batches with short columns."""
    child = os.fork()
    if child == 0:
        os.dup2(os.open(report, os.O_WRONLY | os.O_CREAT), sys.stderr.fileno())
        run(of, library, seed, 0, half)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run(of: ChainUnderTest, library: str, seed: int, batches: int, allocate: Allocate) -> None:
    """Run all sequences."""
    launch = sanitized(replace(of.chain.kernels, library=library))
    for sequence in of.chain.sequences or (None,):
        chain = of.chain.with_sequence(sequence)
        dtypes = {column.name: column.dtype for algorithm in chain.sequence for column in algorithm.columns}
        constants = {
            name: content.view(dtypes[name]) if name in dtypes and dtypes[name].names is None else content
            for name, content in chain.load_geometry(None).items()
        }
        n = 0
        for mep in damaged_meps(of, chain, seed, batches):
            limits = BatchLimits(
                events=mep.n_events,
                meps=1,
                input_bytes=-(-mep.data.nbytes // 8) * 8,
                rows=len(mep.fragments),
            )
            run_algorithms(
                tuple(chain.sequence),
                {**given(mep, limits), **constants},
                mep.n_events,
                limits,
                launch,
                allocate=allocate,
            )
            n += 1
        print(f"{sequence}: {n} batches")


def main() -> None:
    """Run all sequences twice, first with short columns."""
    name, library, seed, batches, report = sys.argv[1:]
    print(status_with_short_columns(CHAINS[name], library, int(seed), Path(report)), flush=True)
    run(CHAINS[name], library, int(seed), int(batches), with_tail)


if __name__ == "__main__":
    main()
