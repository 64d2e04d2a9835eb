"""Time of each kernel from CUDA events between the kernels; medians over batches."""

import statistics
from collections.abc import Mapping

from benchmarks.gpu.report import Section
from hltnode.processing.framework.backends.cuda import CudaQueue
from hltnode.processing.framework.workspace import Workspace


def measure(workspace: Workspace, batches: int) -> dict[str, float]:
    """Seconds per event of each kernel, in the order of the sequence. `workspace` is sealed."""
    queue = workspace.queue
    assert isinstance(queue, CudaQueue)
    taken: list[dict[str, float]] = []
    queue.profile = True
    for _ in range(batches + 1):
        workspace.submit()
        workspace.wait()
        taken.append(queue.take_profile())
    queue.profile = False
    # The first batch is the warm-up.
    return {kernel: statistics.median(one[kernel] for one in taken[1:]) / workspace.n_events for kernel in taken[0]}


def kernel_times(name: str, n_events: int, batches: int, seconds: Mapping[str, float]) -> Section:
    """`seconds`: per event, by kernel."""
    total = sum(seconds.values())
    rows = [
        (kernel, f"{1e9 * one:,.1f}", f"{one / total:.1%}")
        for kernel, one in sorted(seconds.items(), key=lambda item: -item[1])
    ]
    rows.append(("all", f"{1e9 * total:,.1f}", f"{1 / total:,.0f} events/s"))
    return Section(
        title=f"Kernel times: {name}",
        text=f"Medians of {batches} batches of {n_events} events; kernels launched one by one, an event after each.",
        header=("kernel", "ns per event", "share"),
        rows=rows,
        data={"events": n_events, "seconds_per_event": dict(seconds)},
    )
