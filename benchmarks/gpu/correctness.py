"""Every column that a physicist or the daemon may read, on the GPU and on the CPU, bit by bit."""

from collections.abc import Callable, Iterable, Sequence

from benchmarks.gpu.report import Section
from benchmarks.gpu.samples import Sample, engine_of, fill
from hltnode.processing.framework.backends.interface import Backend
from tests.processing.lhcb.whole_chain import reference_of

BLOCK_SIZES: Sequence[int | None] = (None, *range(32, 257, 32))
"""Threads of each block of all kernels; None: as in production, each kernel with its own number."""


def correctness(
    title: str,
    make_backend: Callable[[int | None], Backend],
    samples: Iterable[Sample],
    block_sizes: Sequence[int | None] = BLOCK_SIZES,
) -> Section:
    """`make_backend` takes the block size of all kernels."""
    n_columns = 0
    rows = []
    data: dict[str, dict[str, list[str]]] = {}
    for sample in samples:
        reference = reference_of(sample.mep, sample.geometry, sample.sequence)
        n_columns = max(n_columns, len(reference.made))
        data[sample.name] = {}
        for block_size in block_sizes:
            wrong = reference.differing(_columns(make_backend(block_size), sample, list(reference.made)))
            threads = "production" if block_size is None else str(block_size)
            data[sample.name][threads] = wrong
            rows.append((sample.name, str(reference.n_events), threads, ", ".join(wrong) or "none"))
    good = all(not wrong for of_sample in data.values() for wrong in of_sample.values())
    return Section(
        title=title,
        good=good,
        text=f"Up to {n_columns} columns, bit by bit.",
        header=("events", "number", "threads of a block", "columns that differ"),
        rows=rows,
        data=data,
    )


def _columns(backend: Backend, sample: Sample, names: Sequence[str]) -> dict[str, bytes]:
    engine = engine_of(backend, sample, 1, retain="all")
    workspace = engine.create_workspace()
    fill(workspace, [sample.mep])
    workspace.submit()
    workspace.wait()
    columns = {name: workspace.fetch(name).tobytes() for name in names}
    engine.close()
    return columns
