"""One GPU of several: all objects of a back end are on the requested GPU, from any thread."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TypeVar

import pytest

from hltnode.processing.framework.backends.cuda import CudaBackend
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.backends.free_gpu import MOST_FREE
from hltnode.processing.framework.backends.interface import BackendError
from hltnode.processing.framework.workspace import Workspace
from tests.processing.framework.backends.tiny_batches import an_engine, fill, hits
from tests.processing.framework.cupy_stand_in import CupyStandIn, install
from tests.processing.framework.simulated_gpu import SimulatedGpu

T = TypeVar("T")


@pytest.fixture
def two(tiny: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CupyStandIn:
    """An old GPU and a new one."""
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    kernels = tiny.TINY.kernels
    return install(
        monkeypatch,
        SimulatedGpu(kernels, name="Old GPU", capability="80", memory=8 << 20),
        SimulatedGpu(kernels, name="New GPU", capability="90", memory=64 << 20),
    )


def in_new_thread(action: Callable[[], T]) -> T:
    """Return value of the function, called in a thread that has not set a GPU."""
    results: list[T] = []
    thread = threading.Thread(target=lambda: results.append(action()))
    thread.start()
    thread.join()
    return results[0]


def computed(workspace: Workspace) -> list[int]:
    while not workspace.poll():
        pass
    return hits(workspace)


@pytest.mark.parametrize("device", [0, 1])
def test_every_thread_uses_the_gpu_of_its_back_end_and_no_other(
    tiny: ModuleType, two: CupyStandIn, device: int
) -> None:
    engine = in_new_thread(lambda: an_engine(tiny, device=device))
    workspace = in_new_thread(engine.create_workspace)
    for seed in range(2):
        expected = fill(tiny, workspace, seed)
        in_new_thread(workspace.submit)
        assert in_new_thread(lambda: computed(workspace)) == expected
        in_new_thread(workspace.submit)
        in_new_thread(workspace.wait)
        assert hits(workspace) == expected
        assert in_new_thread(lambda: workspace.fetch("hits.count")).tolist()[: len(expected)] == expected
    in_new_thread(engine.close)
    assert two.gpus[device].calls["graphLaunch"] == 4
    assert not two.gpus[1 - device].calls


def test_a_thread_that_had_another_gpu_takes_that_of_the_back_end(tiny: ModuleType, two: CupyStandIn) -> None:
    workspaces = [an_engine(tiny, device=device).create_workspace() for device in (0, 1)]
    expected = [fill(tiny, workspace, seed) for seed, workspace in enumerate(workspaces)]
    for workspace in workspaces:
        workspace.submit()
    assert [computed(workspace) for workspace in workspaces] == expected
    for gpu in two.gpus:
        assert len({stream for stream, work in gpu.done if work == "tiny_count_hits"}) == 1


@pytest.mark.parametrize(("device", "architecture"), [(0, 80), (1, 90)])
def test_kernels_are_compiled_for_the_gpu_that_runs_them(
    tiny: ModuleType, two: CupyStandIn, device: int, architecture: int
) -> None:
    create_backend("cuda", tiny.TINY.kernels, device=device)
    [(_, options)] = two.nvrtc.compiled
    assert options[-1] == f"--gpu-architecture=sm_{architecture}"


def test_memory_is_that_of_the_gpu(tiny: ModuleType, two: CupyStandIn) -> None:
    old, new = (CudaBackend(tiny.TINY.kernels, device=device) for device in (0, 1))
    assert (old.free_bytes(), new.free_bytes()) == (8 << 20, 64 << 20)
    kept = new.allocate_device(16 << 20)
    assert (old.free_bytes(), new.free_bytes()) == (8 << 20, 48 << 20)
    message = r"allocate 16\.0 MiB of device memory: .*out of memory; 8\.0 MiB of the device's 8\.0 MiB are free"
    with pytest.raises(BackendError, match=message):
        old.allocate_device(16 << 20)
    assert kept.nbytes == 16 << 20


def test_a_kernel_that_only_one_of_the_gpus_can_run_is_refused_there(tiny: ModuleType, two: CupyStandIn) -> None:
    two.gpus[0].kernel_limits["tiny_count_hits"] = 16
    an_engine(tiny, device=1).create_workspace()
    with pytest.raises(BackendError, match="at most 16 of its threads"):
        an_engine(tiny, device=0).create_workspace()


@pytest.mark.parametrize("name", ["auto", "cuda"])
def test_a_missing_gpu_is_refused_with_the_list_of_gpus(tiny: ModuleType, two: CupyStandIn, name: str) -> None:
    with pytest.raises(BackendError) as error:
        create_backend(name, tiny.TINY.kernels, device=2)
    assert str(error.value) == "there is no GPU 2: the driver finds 2: 0 is Old GPU, 1 is New GPU"


def test_a_back_end_says_which_gpu_computes(tiny: ModuleType, two: CupyStandIn) -> None:
    assert create_backend("cuda", tiny.TINY.kernels, device=1).description == "GPU 1, New GPU"


class Nvml(ModuleType):
    """NVML on the simulated GPUs; handles are their numbers in nvidia-smi. It answers as long as `error` is not set."""

    NVMLError = RuntimeError
    NVML_ERROR_NOT_FOUND = "not found"

    def __init__(self, gpus: tuple[SimulatedGpu, ...]) -> None:
        super().__init__("pynvml")
        self.gpus = gpus
        self.error: str | None = None

    def nvmlInit(self) -> None:  # noqa: N802
        if self.error is not None:
            raise RuntimeError(self.error)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:  # noqa: N802
        gpu = self.gpus[handle]
        return SimpleNamespace(free=gpu.memory - gpu.taken_memory)


@pytest.fixture
def nvml(two: CupyStandIn, monkeypatch: pytest.MonkeyPatch) -> Nvml:
    made = Nvml(two.gpus)
    monkeypatch.setitem(sys.modules, "pynvml", made)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return made


@pytest.mark.usefixtures("nvml")
def test_a_node_takes_the_gpu_with_the_most_free_memory(tiny: ModuleType, two: CupyStandIn) -> None:
    first = create_backend("cuda", tiny.TINY.kernels, device=MOST_FREE)
    assert first.gpu == 1
    assert not two.gpus[0].calls  # a context there would take memory
    kept = first.allocate_device(57 << 20)
    second = create_backend("cuda", tiny.TINY.kernels, device=MOST_FREE)
    assert second.gpu == 0
    del kept
    assert create_backend("cuda", tiny.TINY.kernels, device=MOST_FREE).gpu == 1


@pytest.mark.usefixtures("two")
def test_the_free_memory_is_that_of_the_visible_gpus(
    tiny: ModuleType, nvml: Nvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With "1,0", the first GPU of CUDA is the second one of NVML, which has the most memory.
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")
    assert create_backend("cuda", tiny.TINY.kernels, device=MOST_FREE).gpu == 0
    nvml.gpus = nvml.gpus[::-1]
    assert create_backend("cuda", tiny.TINY.kernels, device=MOST_FREE).gpu == 1


def test_without_nvml_no_gpu_is_chosen(tiny: ModuleType, nvml: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
    nvml.error = "driver not loaded"
    with pytest.raises(BackendError, match=r"free memory of 2 GPUs: driver not loaded; set pipeline\.device"):
        create_backend("cuda", tiny.TINY.kernels, device=MOST_FREE)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(BackendError, match=r"nvidia-ml-py .* is missing"):
        create_backend("cuda", tiny.TINY.kernels, device=MOST_FREE)


def test_nodes_that_share_a_gpu_keep_to_their_bounds(tiny: ModuleType, two: CupyStandIn) -> None:
    alone = an_engine(tiny, device=1)
    # Constants are allocated before the slots.
    bound = alone.plan.total_bytes(2, 1) + two.gpus[1].taken_memory
    for _ in range(2):
        engine = an_engine(tiny, device=1, memory_bound=bound)
        engine.require_memory(2)
        with pytest.raises(BackendError, match=r"3 slots of .* need .* MiB .*, \d+\.\d MiB are free"):
            engine.require_memory(3)
    with pytest.raises(BackendError, match=r"2 slots of .* need"):
        an_engine(tiny, device=1, memory_bound=bound - 1).require_memory(2)


@pytest.mark.usefixtures("two")
def test_no_allocation_passes_the_bound_and_freed_memory_does_not_count(tiny: ModuleType) -> None:
    backend = CudaBackend(tiny.TINY.kernels, device=1, memory_bound=6 << 20)
    kept = backend.allocate_device(4 << 20)
    assert backend.free_bytes() == 2 << 20
    message = r"3\.0 MiB of device memory exceed the bound of this node: it has allocated 4\.0 MiB of 6\.0 MiB"
    with pytest.raises(BackendError, match=message):
        backend.allocate_mirror(3 << 20)
    part = kept.part(0, 100)
    del kept
    assert backend.free_bytes() == 2 << 20
    del part
    assert backend.free_bytes() == 6 << 20
    assert backend.allocate_device(6 << 20).nbytes == 6 << 20


@pytest.mark.parametrize("given", [None, "FASTEST_FIRST"])
def test_gpus_have_the_numbers_of_nvidia_smi_unless_the_environment_changes_them(
    tiny: ModuleType, two: CupyStandIn, monkeypatch: pytest.MonkeyPatch, given: str | None
) -> None:
    if given is None:
        monkeypatch.delenv("CUDA_DEVICE_ORDER")
    else:
        monkeypatch.setenv("CUDA_DEVICE_ORDER", given)
    CudaBackend(tiny.TINY.kernels)
    assert os.environ["CUDA_DEVICE_ORDER"] == (given or "PCI_BUS_ID")
