"""Scenarios that provoke the alerts. A scenario prepares, yields, provokes, yields, and repairs.

An alert without a scenario is in `UNIT_TESTED`, with the reason; tests/deploy/test_alerts.py compares both with the
rules.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from tests.alerts.site import Site

Steps = AsyncIterator[None]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One way to provoke an alert.

    detection: seconds that the node itself needs, which are not scaled. held: seconds for which the fault is held, and
    the alert must stand, where the times of the node are longer than ten scaled minutes. tolerated: other alerts that
    are true at the same time, with the reason.
    """

    alert: str | None
    how: str
    steps: Callable[[Site], Steps]
    settings: dict[str, dict[str, object]] = field(default_factory=dict)
    detection: float = 2.0
    held: float = 0.0
    tolerated: dict[str, str] = field(default_factory=dict)
    events: int = 8
    needs_mount: bool = False


SCENARIOS: list[Scenario] = []

UNIT_TESTED = {
    "HltnodeLossUnaccounted": "a defect of the node, which has none that is known",
    "HltnodeErrorContained": "a defect of the node, which has none that is known",
    "HltnodeLogLinesLost": "the tests of processes close the reader of the log",
    "HltnodeRevokedOutOfReach": "needs two nodes and a file that is finished between two messages",
    "HltnodeSlicesDropped": "needs a streaming chain; tests/daemon/node/test_head_room_of_a_node.py drops slices",
    "HltnodeWindowFaults": "needs a streaming chain; tests/daemon/output/test_window_records.py makes the faults",
    "HltnodeCombinerSilent": "needs a streaming chain; tests/daemon/node/test_combined_windows.py has a silent one",
    "HltnodeHeldMemoryHigh": "needs a streaming chain; tests/daemon/node/test_combined_windows.py fills the memory",
    "HltnodeSlicesWithoutAnswer": "needs a streaming chain; tests/daemon/node/test_combined_windows.py has both ends",
    "HltnodeCombinerNodeLost": "needs a combiner; tests/daemon/combiner/test_combiner.py loses a node",
    "HltnodeGpuSlowedDown": "needs a GPU that is too hot",
    "HltnodeGpuMemoryErrors": "needs a GPU with damaged memory",
}
"""Alerts that only the unit tests of promtool cover, with the reason."""


def scenario(
    alert: str | None, how: str, **options: object
) -> Callable[[Callable[[Site], Steps]], Callable[[Site], Steps]]:
    """Register a function as a scenario; without `alert` no alert may fire."""

    def register(steps: Callable[[Site], Steps]) -> Callable[[Site], Steps]:
        SCENARIOS.append(Scenario(alert, how, steps, **options))  # type: ignore[arg-type]
        return steps

    return register


@contextlib.asynccontextmanager
async def again_and_again(action: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
    """Repeat an action until the end of the block: the fault goes on."""

    async def repeat() -> None:
        while True:
            await action()

    task = asyncio.create_task(repeat())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


NODE_IS_DOWN = {"HltnodeNodeDown": "on a busy machine, a start may take longer than the 30 s, which are not scaled"}
ANSWERS_ARE_NOT_SCALED = 30.0
"""Seconds without an answer until HltnodeNodeDown fires (scaled.SLOWER)."""
