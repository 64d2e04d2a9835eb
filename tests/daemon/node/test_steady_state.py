"""The memory of a node does not grow with the number of built MEPs."""

import gc
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest
import zmq.asyncio

from hltnode.client.mep import FeedMep
from hltnode.daemon.replay.single_node import feed_meps
from tests.daemon.fakes import make_config, make_feeder, running_node, synthetic_meps

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]

# Data that a node keeps of the last MEPs have their full size before the measurement: known ids, rows of an open file.
WARM_UP = 700
LIMITS = {"builder": {"closed_ring": 512}, "output": {"max_file_bytes": 512 << 10}}
# Of an event in one source, at most: a MEP has some 24 kB, so that one fragment kept of each would be seen.
BANK_BYTES = 2000
# Pages of the heap and buffers of sockets; below one fragment and one object of each MEP.
GROWTH_BYTES = 8 << 20
GROWTH_BLOCKS = 1200
SAMPLED = 200
SAMPLED_EVERY = 20


@pytest.fixture
async def context() -> AsyncIterator[zmq.asyncio.Context]:
    context = zmq.asyncio.Context()
    yield context
    context.destroy(linger=0)


@pytest.mark.parametrize(
    ("meps", "copy_threads"),
    [
        pytest.param(1300, 1, marks=pytest.mark.slow),
        (1300, 2),
        pytest.param(20_000, 1, marks=[pytest.mark.slow, pytest.mark.timeout(1800)]),
        pytest.param(20_000, 2, marks=[pytest.mark.slow, pytest.mark.timeout(1800)]),
    ],
)
async def test_the_memory_of_a_node_does_not_grow_with_the_meps_that_it_has_built(
    tmp_path: Path, context: zmq.asyncio.Context, meps: int, copy_threads: int
) -> None:
    begin: list[tuple[int, int]] = []
    end: list[tuple[int, int]] = []

    def sampled() -> Iterator[FeedMep]:
        for n, mep in enumerate(synthetic_meps(WARM_UP + meps, size=BANK_BYTES)):
            samples = begin if WARM_UP <= n < WARM_UP + SAMPLED else end if n >= WARM_UP + meps - SAMPLED else None
            if samples is not None and n % SAMPLED_EVERY == 0:
                gc.collect()
                samples.append((psutil.Process().memory_info().rss, sys.getallocatedblocks()))
            yield mep

    config = make_config(tmp_path, network={"copy_threads": copy_threads}, **LIMITS)
    async with running_node(config) as (node, _), make_feeder(context, node) as feeder:
        report = await feed_meps(sampled(), [feeder])
    print(f"resident bytes and blocks of Python: {begin} to {end}")
    assert report.complete
    assert node.counters.meps_acknowledged == WARM_UP + meps
    # The minimum of some samples, because data in flight vary.
    resident, blocks = (min(each) for each in zip(*begin, strict=True))
    resident_after, blocks_after = (min(each) for each in zip(*end, strict=True))
    assert resident_after - resident < GROWTH_BYTES
    assert blocks_after - blocks < GROWTH_BLOCKS
