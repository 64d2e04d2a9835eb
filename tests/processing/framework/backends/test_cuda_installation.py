"""An incompatible GPU, driver, CuPy or NVRTC is refused at start; the error names the package to install."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import pytest

from hltnode.processing.framework.backends.cuda import CudaBackend
from hltnode.processing.framework.backends.cuda_installation import is_available
from hltnode.processing.framework.backends.cuda_kernels import COMPILE_OPTIONS
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.backends.interface import BackendError
from tests.processing.framework.backends.tiny_batches import an_engine
from tests.processing.framework.cupy_stand_in import CupyStandIn
from tests.processing.framework.simulated_gpu import NO_DEVICE


def refused(tiny: ModuleType) -> str:
    with pytest.raises(BackendError) as error:
        CudaBackend(tiny.TINY.kernels)
    return str(error.value)


def test_a_machine_without_a_driver_is_told_to_get_one(tiny: ModuleType, cupy: CupyStandIn) -> None:
    cupy.driver_version, cupy.devices_error = 0, 35
    assert "there is no NVIDIA driver: install a driver for CUDA 13 (580 or newer)" in refused(tiny)
    assert not is_available()


@pytest.mark.parametrize(
    ("cuda", "driver", "remedy"),
    [
        (13020, 12040, "install a driver for CUDA 13 (580 or newer), or pip install 'hltnode[cuda12]'"),
        (13020, 11080, "install a driver for CUDA 13 (580 or newer)"),
        (12090, 11080, "install a driver for CUDA 12 (525 or newer)"),
    ],
)
def test_a_driver_that_is_too_old_is_named_with_what_to_install(
    tiny: ModuleType, cupy: CupyStandIn, cuda: int, driver: int, remedy: str
) -> None:
    cupy.cuda_version, cupy.driver_version, cupy.devices_error = cuda, driver, 35
    message = refused(tiny)
    assert f"it supports CUDA {driver // 1000}.{driver % 1000 // 10}, CuPy is built for CUDA {cuda // 1000}." in message
    assert message.endswith(remedy)


def test_a_driver_of_an_older_minor_release_is_taken(tiny: ModuleType, cupy: CupyStandIn) -> None:
    cupy.cuda_version, cupy.driver_version = 13020, 13000
    backend = CudaBackend(tiny.TINY.kernels)
    assert backend.description == f"GPU 0, {cupy.gpus[0].name}"
    backend.close()


@pytest.mark.parametrize(("devices", "error"), [(0, 0), (0, NO_DEVICE)])
def test_a_driver_without_a_gpu_is_named(tiny: ModuleType, cupy: CupyStandIn, devices: int, error: int) -> None:
    cupy.devices, cupy.devices_error = devices, error
    assert refused(tiny) == "the driver finds no GPU: check nvidia-smi and CUDA_VISIBLE_DEVICES"
    assert not is_available()


def test_a_gpu_that_does_not_start_is_named(tiny: ModuleType, cupy: CupyStandIn) -> None:
    cupy.devices_error = 802
    assert "CUDA does not start: cudaError802" in refused(tiny)
    assert is_available()


def test_the_compiler_of_another_cuda_is_refused(tiny: ModuleType, cupy: CupyStandIn) -> None:
    cupy.cuda_version, cupy.nvrtc.version = 12090, (13, 5)
    message = refused(tiny)
    assert "CuPy is built for CUDA 12.9, but found NVRTC 13.5" in message
    assert "pip install 'hltnode[cuda12]' into an environment without packages of another CUDA" in message


def test_a_missing_compiler_is_named(tiny: ModuleType, cupy: CupyStandIn) -> None:
    cupy.nvrtc.missing = True
    assert "NVRTC is missing: pip install 'hltnode[cuda13]'" in refused(tiny)


@pytest.mark.parametrize(
    ("capability", "architecture"), [("75", 75), ("80", 80), ("89", 80), ("90", 90), ("103", 100), ("121", 120)]
)
def test_kernels_are_compiled_for_the_gpu_or_the_one_before_of_its_family(
    tiny: ModuleType, cupy: CupyStandIn, capability: str, architecture: int
) -> None:
    cupy.gpu.capability = capability
    CudaBackend(tiny.TINY.kernels)
    [(_, options)] = cupy.nvrtc.compiled
    assert options[-1] == f"--gpu-architecture=sm_{architecture}"


@pytest.mark.parametrize(
    ("capability", "remedy"),
    [("70", "it needs hltnode[cuda12]"), ("130", "it needs a newer CuPy and NVRTC")],
)
def test_a_gpu_that_the_compiler_does_not_know_is_refused(
    tiny: ModuleType, cupy: CupyStandIn, capability: str, remedy: str
) -> None:
    cupy.gpu.capability = capability
    message = refused(tiny)
    assert f"compute capability {capability[:-1]}.{capability[-1]}, NVRTC 13.0 compiles for 7.5, 8.0" in message
    assert message.endswith(remedy)


def test_the_options_of_the_tests_are_all_that_reach_the_compiler(tiny: ModuleType, cupy: CupyStandIn) -> None:
    CudaBackend(tiny.TINY.kernels)
    [(source, options)] = cupy.nvrtc.compiled
    assert source == '#include "tiny/generated/chain_kernels.h"\n'
    includes = tuple(f"-I{folder}" for folder in tiny.TINY.kernels.folders)
    assert options == (*COMPILE_OPTIONS, *includes, "--gpu-architecture=sm_90")


def test_a_second_start_compiles_nothing(tiny: ModuleType, cupy: CupyStandIn) -> None:
    for _ in range(2):
        CudaBackend(tiny.TINY.kernels).close()
    assert len(cupy.nvrtc.compiled) == 1
    cupy.nvrtc.build = "V13.0.2"
    CudaBackend(tiny.TINY.kernels).close()
    assert len(cupy.nvrtc.compiled) == 2


def test_kernels_that_do_not_compile_are_refused_with_the_log(tiny: ModuleType, cupy: CupyStandIn) -> None:
    cupy.nvrtc.log = "kernels.cu(3): error: identifier is undefined"
    message = refused(tiny)
    assert "NVRTC 13.0 cannot compile the kernels" in message
    assert "identifier is undefined" in message


def test_a_kernel_that_needs_more_registers_than_the_device_has_is_refused(tiny: ModuleType, cupy: CupyStandIn) -> None:
    cupy.gpu.kernel_limits["tiny_count_hits"] = 16
    message = (
        "tiny_count_hits needs 40 registers per thread and 1024 bytes of shared memory per block: the device runs at "
        "most 16 of its threads per block, 32 are declared"
    )
    with pytest.raises(BackendError, match=message):
        an_engine(tiny).create_workspace()


@pytest.mark.parametrize("name", ["auto", "cuda"])
def test_a_gpu_that_is_there_and_cannot_be_used_is_not_passed_over(
    tiny: ModuleType, cupy: CupyStandIn, name: str
) -> None:
    cupy.driver_version, cupy.devices_error = 12040, 35
    with pytest.raises(BackendError, match="the driver is too old"):
        create_backend(name, tiny.TINY.kernels)


def test_auto_takes_the_gpu(tiny: ModuleType, cupy: CupyStandIn) -> None:
    assert create_backend("auto", tiny.TINY.kernels).name == "cuda"


def test_auto_takes_the_cpu_where_no_gpu_is(tiny: ModuleType, cupy: CupyStandIn) -> None:
    cupy.devices_error = NO_DEVICE
    backend = create_backend("auto", tiny.TINY.kernels)
    assert backend.name == "cpu"
    backend.close()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ModuleNotFoundError("No module named 'cupy'", name="cupy"), "needs CuPy: pip install 'hltnode"),
        (ModuleNotFoundError("No module named 'fastrlock'", name="fastrlock"), "cannot be imported: .*fastrlock"),
        (ImportError("libcudart.so.12: cannot open"), "CuPy cannot be imported: libcudart.so.12"),
    ],
)
def test_a_cupy_that_cannot_be_imported_is_named(
    tiny: ModuleType, cupy: CupyStandIn, monkeypatch: pytest.MonkeyPatch, error: ImportError, message: str
) -> None:
    def fails(name: str, package: str | None = None) -> Any:
        raise error

    monkeypatch.setattr(importlib, "import_module", fails)
    with pytest.raises(BackendError, match=message):
        CudaBackend(tiny.TINY.kernels)
