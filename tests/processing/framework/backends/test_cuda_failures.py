"""Errors in the CUDA back end: failed batches end, and the error names the reason and the request."""

from __future__ import annotations

import threading
from types import ModuleType

import numpy as np
import pytest

from hltnode.processing.algorithms.fragment_offsets import fragment_offsets
from hltnode.processing.framework.backends.cuda import CudaBackend
from hltnode.processing.framework.backends.interface import BackendError, DeviceLostError
from hltnode.processing.framework.workspace import Workspace
from tests.processing.framework.backends.tiny_batches import an_engine, fill, hits
from tests.processing.framework.cupy_stand_in import CupyStandIn
from tests.processing.framework.simulated_gpu import ILLEGAL_ADDRESS, OUT_OF_MEMORY


def poll_to_the_end(workspace: Workspace) -> None:
    for _ in range(1000):
        if workspace.poll():
            return
    raise AssertionError("the batch does not end")


@pytest.mark.parametrize("kernel", ["fragment_offsets", "tiny_count_hits"])
def test_a_batch_whose_kernel_faults_ends_and_the_device_is_lost(
    tiny: ModuleType, cupy: CupyStandIn, kernel: str
) -> None:
    engine = an_engine(tiny)
    first, second = engine.create_workspace(), engine.create_workspace()
    for workspace in (first, second):
        fill(tiny, workspace, 1)
        workspace.submit()
    cupy.gpu.fault(kernel)
    with pytest.raises(DeviceLostError, match="compute a batch: cudaErrorIllegalAddress"):
        poll_to_the_end(first)
    with pytest.raises(DeviceLostError, match="cudaErrorIllegalAddress"):
        second.poll()
    with pytest.raises(DeviceLostError, match="start a batch: cudaErrorIllegalAddress"):
        first.submit()
    engine.close()


def test_who_waits_for_a_batch_that_faults_is_told(tiny: ModuleType, cupy: CupyStandIn) -> None:
    workspace = an_engine(tiny).create_workspace()
    fill(tiny, workspace, 1)
    workspace.submit()
    cupy.gpu.fault("tiny_count_hits")
    with pytest.raises(DeviceLostError, match="cudaErrorIllegalAddress"):
        workspace.wait()


@pytest.mark.parametrize("faults", [False, True])
def test_who_asks_for_the_end_of_a_batch_is_called_without_a_poll_also_when_it_faults(
    tiny: ModuleType, cupy: CupyStandIn, faults: bool
) -> None:
    engine = an_engine(tiny)
    workspace = engine.create_workspace()
    expected = fill(tiny, workspace, 1)
    if faults:
        cupy.gpu.fault("tiny_count_hits")
    ended = threading.Event()
    workspace.submit(ended.set)
    assert ended.wait(10.0)
    if faults:
        with pytest.raises(DeviceLostError, match="compute a batch: cudaErrorIllegalAddress"):
            poll_to_the_end(workspace)
    else:
        poll_to_the_end(workspace)
        assert hits(workspace) == expected
    [thread] = [each for each in threading.enumerate() if each.name == "hltnode-cuda-end"]
    engine.close()
    thread.join(5.0)
    assert not thread.is_alive()


@pytest.mark.parametrize(("call", "after"), [("eventRecord", 0), ("memcpyAsync", 2), ("graphLaunch", 0)])
def test_a_batch_that_cannot_be_started_costs_itself_alone(
    tiny: ModuleType, cupy: CupyStandIn, call: str, after: int
) -> None:
    workspace = an_engine(tiny).create_workspace()
    fill(tiny, workspace, 1)
    cupy.gpu.refuse(call, OUT_OF_MEMORY, after=after)
    with pytest.raises(BackendError, match=r"start a batch: cudaErrorMemoryAllocation.* MiB are free") as failure:
        workspace.submit()
    assert not isinstance(failure.value, DeviceLostError)
    assert workspace.poll()
    for seed in (2, 3):
        expected = fill(tiny, workspace, seed)
        workspace.submit()
        poll_to_the_end(workspace)
        assert hits(workspace) == expected


def test_started_work_of_a_failed_batch_ends_before_its_buffers_are_reused(tiny: ModuleType, cupy: CupyStandIn) -> None:
    workspace = an_engine(tiny).create_workspace()
    fill(tiny, workspace, 1)
    cupy.gpu.refuse("graphLaunch", OUT_OF_MEMORY)
    copies = sum(work == "H2D" for _, work in cupy.gpu.done)
    with pytest.raises(BackendError, match="start a batch"):
        workspace.submit()
    assert sum(work == "H2D" for _, work in cupy.gpu.done) > copies
    before = list(cupy.gpu.done)
    cupy.gpu.synchronize()
    assert cupy.gpu.done == before


def test_an_event_that_cannot_be_timed_fails_its_batch(tiny: ModuleType, cupy: CupyStandIn) -> None:
    workspace = an_engine(tiny).create_workspace()
    fill(tiny, workspace, 1)
    workspace.submit()
    cupy.gpu.refuse("eventElapsedTime", 400)
    with pytest.raises(BackendError, match="compute a batch"):
        poll_to_the_end(workspace)


def test_a_device_without_room_says_what_was_asked_for_and_what_is_free(tiny: ModuleType, cupy: CupyStandIn) -> None:
    backend = CudaBackend(tiny.TINY.kernels)
    cupy.gpu.memory = 8 << 20
    kept = backend.allocate_device(3 << 20)
    message = r"allocate 6\.0 MiB of device memory: .*out of memory; 5\.0 MiB of the device's 8\.0 MiB are free"
    with pytest.raises(BackendError, match=message):
        backend.allocate_device(6 << 20)
    assert backend.free_bytes() == 5 << 20
    del kept
    assert backend.free_bytes() == 8 << 20
    assert backend.allocate_device(6 << 20).nbytes == 6 << 20


def test_a_device_that_another_process_has_filled_is_named(tiny: ModuleType, cupy: CupyStandIn) -> None:
    backend = CudaBackend(tiny.TINY.kernels)
    cupy.gpu.refuse("malloc", OUT_OF_MEMORY)
    cupy.gpu.refuse("memGetInfo", OUT_OF_MEMORY)
    with pytest.raises(BackendError, match=r"1\.0 MiB of device memory.*the free memory is unknown: .*out of memory"):
        backend.allocate_device(1 << 20)


def test_pinned_memory_that_is_short_is_memory_of_the_host(tiny: ModuleType, cupy: CupyStandIn) -> None:
    backend = CudaBackend(tiny.TINY.kernels)
    cupy.gpu.pinned_memory = 1 << 20
    message = r"allocate 2\.0 MiB of pinned memory: .*out of memory; \d+\.\d MiB of the host's memory are free"
    with pytest.raises(BackendError, match=message):
        backend.allocate_mirror(2 << 20)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("streamCreate", "make a stream"),
        ("eventCreate", "make a stream and its events"),
        ("streamBeginCapture", "make a graph of 6 kernels"),
        ("launchKernel", f"launch fragment_offsets with 64 blocks of {fragment_offsets.block_size} threads"),
        ("streamEndCapture", "make a graph of 6 kernels"),
        ("graphInstantiate", "make a graph of 6 kernels"),
        ("graphUpload", "make a graph of 6 kernels"),
        ("malloc", r"allocate 0\.0 MiB of device memory"),
        ("memset", "allocate"),
        ("hostAlloc", "pinned memory"),
    ],
)
@pytest.mark.parametrize("status", [OUT_OF_MEMORY, ILLEGAL_ADDRESS, 901])
def test_a_slot_that_cannot_be_made_says_what_failed(
    tiny: ModuleType, cupy: CupyStandIn, call: str, message: str, status: int
) -> None:
    engine = an_engine(tiny)
    cupy.gpu.refuse(call, status)
    with pytest.raises(BackendError, match=message) as failure:
        engine.create_workspace()
    assert isinstance(failure.value, DeviceLostError) == (status == ILLEGAL_ADDRESS)


def test_constants_that_cannot_be_written_are_named(tiny: ModuleType, cupy: CupyStandIn) -> None:
    backend = CudaBackend(tiny.TINY.kernels)
    memory = backend.allocate_device(1 << 20)
    cupy.gpu.refuse("memcpy", 1)
    with pytest.raises(BackendError, match=r"write 1\.0 MiB of constants: cudaErrorInvalidValue"):
        backend.write(memory, np.zeros(1 << 20, dtype=np.uint8))


def test_a_slot_that_could_not_be_made_can_be_made_later(tiny: ModuleType, cupy: CupyStandIn) -> None:
    engine = an_engine(tiny)
    cupy.gpu.refuse("launchKernel", OUT_OF_MEMORY, after=1)
    with pytest.raises(BackendError, match="launch tiny_count_hits"):
        engine.create_workspace()
    workspace = engine.create_workspace()
    expected = fill(tiny, workspace, 1)
    workspace.submit()
    workspace.wait()
    assert hits(workspace) == expected


def test_kernels_that_cannot_be_loaded_are_refused(tiny: ModuleType, cupy: CupyStandIn) -> None:
    cupy.gpu.refuse("moduleLoad", 209)
    with pytest.raises(BackendError, match=r"load the kernels, 0\.0 MiB for sm_90"):
        CudaBackend(tiny.TINY.kernels)


def test_a_batch_is_not_submitted_twice(tiny: ModuleType, cupy: CupyStandIn) -> None:
    workspace = an_engine(tiny).create_workspace()
    fill(tiny, workspace, 1)
    workspace.submit()
    with pytest.raises(BackendError, match="still running"):
        workspace.submit()
