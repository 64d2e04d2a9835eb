"""Batches on a simulated GPU that works as late as CUDA allows: results, overlap of slots, progress."""

from __future__ import annotations

import ctypes
from itertools import pairwise
from types import ModuleType

import numpy as np
import pytest

from hltnode.processing.framework.backends.cuda import CudaBackend, CudaQueue
from hltnode.processing.framework.batch import BATCH_INPUTS
from hltnode.processing.framework.workspace import Workspace
from tests.processing.framework.backends.tiny_batches import (
    LIMITS,
    an_engine,
    fill,
    found_list,
    hits,
    listed_hits,
    payloads_of,
)
from tests.processing.framework.cupy_stand_in import CupyStandIn
from tests.processing.framework.simulated_gpu import POISON, Order


def polls(workspace: Workspace) -> int:
    """Poll until a batch is done; returns the number of polls."""
    n = 1
    while not workspace.poll():
        n += 1
        assert n < 1000
    return n


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("block_size", [1, 32, 256, None])
def test_hits_are_found_for_every_block_size(
    tiny: ModuleType, cupy: CupyStandIn, block_size: int | None, backward: bool
) -> None:
    cupy.gpu.backward = backward
    workspace = an_engine(tiny, block_size=block_size).create_workspace()
    for seed in range(3):
        expected = fill(tiny, workspace, seed)
        workspace.submit()
        polls(workspace)
        assert hits(workspace) == expected


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("order", list(Order))
def test_slots_that_overlap_in_any_order_do_not_see_each_other(
    tiny: ModuleType, cupy: CupyStandIn, order: Order, seed: int
) -> None:
    cupy.gpu.order = order
    engine = an_engine(tiny)
    workspaces = [engine.create_workspace() for _ in range(3)]
    running: list[tuple[Workspace, list[int]]] = []
    rng = np.random.default_rng(seed)
    for batch in range(12):
        workspace = workspaces[batch % 3]
        if len(running) == 3:
            # One of the three is in the next slot.
            first, expected = running.pop(0)
            if rng.random() < 0.5:
                first.wait()
            polls(first)
            assert hits(first) == expected
        expected = fill(tiny, workspace, 100 * seed + batch, n_events=int(rng.integers(1, 33)))
        workspace.submit()
        running.append((workspace, expected))
    for workspace, expected in running:
        polls(workspace)
        assert hits(workspace) == expected
    streams = [stream for stream, work in cupy.gpu.done if work == "tiny_count_hits"]
    assert len(streams) == 12
    assert len(set(streams)) == 3
    engine.close()


def test_the_work_of_slots_is_mixed_where_the_device_mixes_it(tiny: ModuleType, cupy: CupyStandIn) -> None:
    cupy.gpu.order = Order.RANDOM
    engine = an_engine(tiny)
    workspaces = [engine.create_workspace() for _ in range(2)]
    expected = [fill(tiny, workspace, seed) for seed, workspace in enumerate(workspaces)]
    begin = len(cupy.gpu.done)
    for workspace in workspaces:
        workspace.submit()
    for workspace in workspaces:
        polls(workspace)
    assert [hits(workspace) for workspace in workspaces] == expected
    streams = [stream for stream, _ in cupy.gpu.done[begin:]]
    changes = sum(one != other for one, other in pairwise(streams))
    assert changes > 2


def test_nothing_is_in_the_output_before_the_kernels_are_done(tiny: ModuleType, cupy: CupyStandIn) -> None:
    workspace = an_engine(tiny).create_workspace()
    expected = fill(tiny, workspace, 1)
    workspace.submit()
    seen = []
    while not workspace.poll():
        assert workspace.progress == 3 or not any(hits(workspace))
        seen.append(hits(workspace))
    assert hits(workspace) == expected
    assert [int.from_bytes(bytes([POISON] * 4), "little")] * len(expected) in seen


def test_an_empty_batch_runs(tiny: ModuleType, cupy: CupyStandIn) -> None:
    workspace = an_engine(tiny).create_workspace()
    workspace.seal([])
    workspace.submit()
    workspace.wait()
    assert workspace.poll()
    assert hits(workspace) == []


def test_nothing_is_allocated_after_the_workspaces(tiny: ModuleType, cupy: CupyStandIn) -> None:
    workspace = an_engine(tiny).create_workspace()
    allocations = cupy.gpu.calls["malloc"] + cupy.gpu.calls["hostAlloc"]
    assert allocations > 0
    for seed in range(3):
        fill(tiny, workspace, seed)
        workspace.submit()
        workspace.wait()
    assert cupy.gpu.calls["malloc"] + cupy.gpu.calls["hostAlloc"] == allocations
    assert cupy.gpu.calls["launchKernel"] == len(tuple(workspace.sequence))
    assert cupy.gpu.calls["graphLaunch"] == 3


@pytest.mark.parametrize("waits", [False, True])
def test_each_event_of_the_stream_that_is_passed_is_a_step(tiny: ModuleType, cupy: CupyStandIn, waits: bool) -> None:
    workspace = an_engine(tiny).create_workspace()
    assert workspace.progress == 0
    for batch in range(3):
        fill(tiny, workspace, batch)
        workspace.submit()
        seen = {workspace.progress}
        while not workspace.poll():
            seen.add(workspace.progress)
            if waits and workspace.progress == 4 * batch + 1:
                workspace.wait()
        assert workspace.progress == 4 * (batch + 1)
        if not waits:
            assert seen == {4 * batch + step for step in range(4)}


def test_the_stages_of_a_batch_are_timed(tiny: ModuleType, cupy: CupyStandIn) -> None:
    workspace = an_engine(tiny).create_workspace()
    fill(tiny, workspace, 1)
    workspace.submit()
    workspace.wait()
    timings = workspace.timings
    # One millisecond per piece of work: six uploads, six kernels, six downloads (two each), one event.
    assert [round(1e3 * seconds) for seconds in (timings.h2d, timings.kernels, timings.d2h)] == [7, 7, 13]


def test_a_profile_has_the_time_of_each_kernel(tiny: ModuleType, cupy: CupyStandIn) -> None:
    workspace = an_engine(tiny).create_workspace()
    queue = workspace.queue
    assert isinstance(queue, CudaQueue)
    for profile in (True, True, False):
        queue.profile = profile
        expected = fill(tiny, workspace, 1)
        workspace.submit()
        polls(workspace)
        assert hits(workspace) == expected
    # The kernel and the event that follows it, in two batches; the list has two columns.
    profile_ms = {name: round(1e3 * seconds) for name, seconds in queue.take_profile().items()}
    expected_ms = {"fragment_offsets": 4, "tiny_count_hits": 4, "select_lines": 4, "list_offsets": 4, "copy_list": 8}
    assert profile_ms == expected_ms
    assert queue.take_profile() == {}
    assert cupy.gpu.calls["graphLaunch"] == 1


def test_the_stages_of_batches_are_on_one_axis_of_time(tiny: ModuleType, cupy: CupyStandIn) -> None:
    cupy.gpu.order = Order.RANDOM
    engine = an_engine(tiny)
    origin = cupy.cuda.Event()
    stream = cupy.cuda.Stream(non_blocking=True)
    origin.record(stream)
    stream.synchronize()
    workspaces = [engine.create_workspace() for _ in range(2)]
    for seed, workspace in enumerate(workspaces):
        fill(tiny, workspace, seed)
        workspace.submit()
    for workspace in workspaces:
        workspace.wait()
        assert isinstance(workspace.queue, CudaQueue)
        begin, on_device, computed, back = workspace.queue.seconds_since(origin)
        assert 0 < begin < on_device < computed < back
        assert workspace.timings.kernels == pytest.approx(computed - on_device)


def test_columns_are_read_after_all_work_is_done(tiny: ModuleType, cupy: CupyStandIn) -> None:
    workspace = an_engine(tiny).create_workspace()
    expected = fill(tiny, workspace, 1)
    workspace.submit()
    assert workspace.fetch("hits.count")[: len(expected)].tolist() == expected


def test_memory_has_its_content_when_the_call_returns(tiny: ModuleType, cupy: CupyStandIn) -> None:
    backend = CudaBackend(tiny.TINY.kernels)
    memory = backend.allocate_device(1000)
    assert ctypes.string_at(memory.pointer, 1000) == bytes(1000)
    content = np.arange(1000, dtype=np.uint16).astype(np.uint8)
    backend.write(memory, content)
    assert ctypes.string_at(memory.pointer, 1000) == content.tobytes()
    content[:] = 0
    assert backend.read(memory.part(100, 900), 900).tolist() == [i % 256 for i in range(100, 1000)]


@pytest.mark.parametrize("order", list(Order))
def test_lists_are_written_to_the_host_without_a_copy(tiny: ModuleType, cupy: CupyStandIn, order: Order) -> None:
    cupy.gpu.order = order
    engine = an_engine(tiny)
    workspaces = [engine.create_workspace() for _ in range(2)]
    for seed, workspace in enumerate(workspaces):
        fill(tiny, workspace, seed, n_events=5)
        before = cupy.gpu.calls["memcpyAsync"]
        workspace.submit()
        downloads = cupy.gpu.calls["memcpyAsync"] - before - len(BATCH_INPUTS)
        assert downloads == 6, "flags, hits, lines, accepted events, unknown selections and the offsets of the list"
    for seed, workspace in enumerate(workspaces):
        polls(workspace)
        expected = listed_hits(payloads_of(tiny, seed, 5))
        assert found_list(workspace.output) == expected
        n = sum(map(len, expected))
        assert 0 < n < 16 * LIMITS.events
        behind = workspace.host_array("delivered_hit_list.charge")[n:]
        assert len(behind) > 0
        assert not behind.any(), "only elements cross the bus"
