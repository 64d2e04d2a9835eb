"""Every column that a physicist or the daemon may read, on the GPU and on the CPU, bit by bit."""

from collections.abc import Callable, Iterable, Sequence

from benchmarks.gpu.report import Section
from benchmarks.gpu.samples import Sample, engine_of, fill
from hltnode.processing.framework.backends.interface import Backend
from tests.processing.lhcb.whole_chain import compared, reference_of

BLOCK_SIZES = range(32, 257, 32)


def correctness(
    make_backend: Callable[[int], Backend], samples: Iterable[Sample], block_sizes: Sequence[int] = BLOCK_SIZES
) -> Section:
    """`make_backend` takes the block size of all kernels."""
    rows = []
    data: dict[str, dict[str, list[str]]] = {}
    for sample in samples:
        made = reference_of(sample.mep, sample.geometry)
        data[sample.name] = {}
        for block_size in block_sizes:
            found = _columns(make_backend(block_size), sample)
            wrong = [name for name in compared() if found[name] != made.made[name]]
            data[sample.name][str(block_size)] = wrong
            rows.append((sample.name, str(made.n_events), str(block_size), ", ".join(wrong) or "none"))
    good = all(not wrong for of_sample in data.values() for wrong in of_sample.values())
    return Section(
        title="All kernels at all block sizes against the CPU",
        good=good,
        text=f"{len(compared())} columns, bit by bit.",
        header=("events", "number", "threads of a block", "columns that differ"),
        rows=rows,
        data=data,
    )


def _columns(backend: Backend, sample: Sample) -> dict[str, bytes]:
    engine = engine_of(backend, sample, 1, retain="all")
    workspace = engine.create_workspace()
    fill(workspace, [sample.mep])
    workspace.submit()
    workspace.wait()
    columns = {name: workspace.fetch(name).tobytes() for name in compared()}
    engine.close()
    return columns
