"""Device and pinned memory: planned and allocated bytes."""

from dataclasses import dataclass

from benchmarks.gpu.report import Section
from hltnode.processing.framework.engine import Engine

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Taken:
    """Free bytes of the device at three times."""

    at_first: int
    with_engine: int
    with_workspaces: int


def memory(engine: Engine, name: str, workspaces: int, taken: Taken) -> Section:
    """Compare with the plan."""
    plan = engine.memory
    planned, used = workspaces * plan.device, taken.with_engine - taken.with_workspaces
    figures = {
        "pinned, all slots": workspaces * plan.pinned,
        "device, all slots, as planned": planned,
        "device, all slots, as taken": used,
        "device, kernels and constants": taken.at_first - taken.with_engine,
        "device, still free": taken.with_workspaces,
    }
    return Section(
        title=f"Memory: {name}",
        text=f"{workspaces} slots of {engine.limits.events} events, {engine.limits.input_bytes / MIB:.1f} MiB each.",
        header=("what", "MiB"),
        rows=[(what, f"{nbytes / MIB:,.1f}") for what, nbytes in figures.items()],
        data=figures,
    )
