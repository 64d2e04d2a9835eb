"""The stalls of the event loop of an attacked node."""

import asyncio
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tests.attacks.stall_sampler import STACKS, Stall, StallSampler, longest_stall, read_stalls

BOUND_SECONDS = 60.0


def wait_until(until: Callable[[], object]) -> None:
    end = time.monotonic() + BOUND_SECONDS
    while not until() and time.monotonic() < end:
        time.sleep(0.01)


def test_a_stall_is_recorded_with_the_function_that_keeps_the_loop(tmp_path: Path) -> None:
    stacks = tmp_path / STACKS

    async def keep_the_loop() -> None:
        await asyncio.sleep(0)
        wait_until(lambda: stacks.stat().st_size)
        end = time.monotonic() + BOUND_SECONDS
        while not read_stalls(tmp_path) and time.monotonic() < end:
            await asyncio.sleep(0.01)

    began = time.monotonic()
    sampler = StallSampler(tmp_path)
    with closing(sampler), asyncio.Runner(loop_factory=sampler.make_loop) as runner:
        runner.run(keep_the_loop())
    stalls = read_stalls(tmp_path)
    assert stalls
    seconds, shown = longest_stall(stalls, began)
    assert seconds > 0
    assert any("in keep_the_loop" in str(stall) for stall in shown)


def test_only_the_time_after_the_start_of_an_attack_with_a_processor_counts() -> None:
    started = Stall(at=99.0, seconds=5.0, computed_s=5.0, queued_s=0.0, stack=("start",))
    starved = Stall(at=101.0, seconds=3.0, computed_s=0.1, queued_s=2.8, stack=("starved",))
    waiting = Stall(at=102.0, seconds=0.4, computed_s=0.0, queued_s=0.0, stack=())
    assert longest_stall([started, starved, waiting], since=100.0) == (0.4, [starved])
    assert longest_stall([started, starved, waiting], since=0.0)[0] == 5.0
    assert longest_stall([], since=0.0) == (0.0, [])


def test_a_node_without_the_sampler_has_no_record_of_stalls(tmp_path: Path) -> None:
    assert read_stalls(tmp_path) is None
