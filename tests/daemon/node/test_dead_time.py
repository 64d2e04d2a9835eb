"""Dead time is elapsed time, independent of late ticks of the event loop."""

import asyncio
import time
from pathlib import Path

import pytest

from hltnode.daemon.common.vocabulary import DeadTimeReason
from hltnode.daemon.node.dead_time import DeadTimeClock
from hltnode.protocol.transport.run_control_messages import CommandName
from tests.daemon.fakes import eventually, make_config, running_node
from tests.daemon.pages import all_metrics

SECOND = 1_000_000_000


def counted() -> dict[DeadTimeReason, float]:
    return dict.fromkeys(DeadTimeReason, 0.0)


def test_the_time_between_two_ticks_counts_for_the_reason_at_the_first() -> None:
    seconds = counted()
    clock = DeadTimeClock(seconds)
    clock.note(10 * SECOND, None)
    clock.note(12 * SECOND, DeadTimeReason.COMPUTING)
    clock.note(13 * SECOND, DeadTimeReason.DISK)
    clock.note(17 * SECOND, None)
    clock.note(99 * SECOND, None)
    assert seconds == {**counted(), DeadTimeReason.COMPUTING: 1.0, DeadTimeReason.DISK: 4.0}


def test_the_whole_time_of_a_blocked_loop_counts() -> None:
    seconds = counted()
    clock = DeadTimeClock(seconds)
    clock.note(0, DeadTimeReason.COMPUTING)
    clock.note(5_000_000, DeadTimeReason.COMPUTING)
    clock.note(5_000_000 + 3 * SECOND, None)
    assert seconds[DeadTimeReason.COMPUTING] == pytest.approx(3.005)


@pytest.mark.loopback
async def test_a_node_that_is_paused_counts_the_time_in_which_its_loop_was_stalled(tmp_path: Path) -> None:
    async with running_node(make_config(tmp_path)) as (node, _):
        node.controller.execute(CommandName.PAUSE)
        paused = node.counters.dead_time
        await eventually(lambda: paused[DeadTimeReason.PAUSED] > 0)
        before = paused[DeadTimeReason.PAUSED]
        time.sleep(0.3)
        await asyncio.to_thread(all_metrics, node.http_port)
        assert paused[DeadTimeReason.PAUSED] - before >= 0.3
