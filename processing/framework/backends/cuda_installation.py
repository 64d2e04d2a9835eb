"""Checks that CuPy, NVRTC, driver and GPU match; if not, names the packages to install."""

import importlib
import importlib.util
import os
from collections.abc import Sequence
from typing import Any

from hltnode.processing.framework.backends.cuda_device import CudaDevice, name_of
from hltnode.processing.framework.backends.cuda_errors import cuda_calls
from hltnode.processing.framework.backends.free_gpu import MOST_FREE, gpu_with_most_free_memory
from hltnode.processing.framework.backends.interface import BackendError

DRIVERS = {12: 525, 13: 580}
"""Oldest driver for each CUDA version with an extra (CUDA Compatibility, table 2)."""

NO_DEVICE = 100


def load_cupy() -> Any:
    """The module cupy; GPUs have the ordinals of nvidia-smi unless the environment sets another order.

    Raises BackendError with what to install.
    """
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    try:
        return importlib.import_module("cupy")
    except ModuleNotFoundError as error:
        if error.name != "cupy":
            raise BackendError(f"CuPy cannot be imported: {error}") from error
        raise BackendError("the CUDA back end needs CuPy: pip install 'hltnode[cuda13]' or 'hltnode[cuda12]'") from None
    except ImportError as error:
        raise BackendError(f"CuPy cannot be imported: {error}") from error


def is_available() -> bool:
    """True if CuPy is installed and a GPU exists; `checked_device` checks that they match.

    Raises BackendError if CuPy is installed but cannot be imported.
    """
    if importlib.util.find_spec("cupy") is None:
        return False
    runtime = load_cupy().cuda.runtime
    if runtime.driverGetVersion() == 0:
        return False
    try:
        return bool(runtime.getDeviceCount() > 0)
    except runtime.CUDARuntimeError as error:
        return bool(error.status != NO_DEVICE)


def checked_device(ordinal: int) -> tuple[CudaDevice, int]:
    """A GPU, and the architecture to compile for (90 for sm_90). `ordinal` may be MOST_FREE.

    Raises BackendError with the packages to install, or with the available GPUs.
    """
    cupy = load_cupy()
    found = _number_of_gpus(cupy)
    device = CudaDevice(cupy, gpu_with_most_free_memory(found) if ordinal == MOST_FREE else ordinal)
    if not 0 <= device.ordinal < found:
        raise BackendError(f"there is no GPU {device.ordinal}: the driver finds {found}: {_names(cupy, found)}")
    return device, _architecture(device, cupy.cuda.nvrtc.getVersion())


def _number_of_gpus(cupy: Any) -> int:
    """The GPUs that the driver finds. Raises BackendError with the packages to install, and if there is none."""
    runtime, nvrtc = cupy.cuda.runtime, cupy.cuda.nvrtc
    cuda, driver = runtime.runtimeGetVersion(), runtime.driverGetVersion()
    major = cuda // 1000
    if driver == 0:
        raise BackendError(f"there is no NVIDIA driver: install {_driver(major)}; a container needs --gpus all")
    if driver // 1000 < major:
        other = f", or pip install 'hltnode[cuda{driver // 1000}]'" if driver // 1000 in DRIVERS else ""
        raise BackendError(
            f"the driver is too old: it supports CUDA {_version(driver)}, CuPy is built for CUDA {_version(cuda)}: "
            f"install {_driver(major)}{other}"
        )
    try:
        compiler = nvrtc.getVersion()
    except RuntimeError as error:
        raise BackendError(f"NVRTC is missing: pip install 'hltnode[cuda{major}]' ({error})") from error
    if compiler[0] != major:
        raise BackendError(
            f"CuPy is built for CUDA {_version(cuda)}, but found NVRTC {compiler[0]}.{compiler[1]}: "
            f"pip install 'hltnode[cuda{major}]' into an environment without packages of another CUDA"
        )
    try:
        found = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        if error.status != NO_DEVICE:
            raise BackendError(f"CUDA does not start: {error}") from error
        found = 0
    if found == 0:
        raise BackendError("the driver finds no GPU: check nvidia-smi and CUDA_VISIBLE_DEVICES")
    return int(found)


def check_launch(device: CudaDevice, kernel: str, function: Any, block_size: int) -> None:
    """Raises BackendError if the device cannot run a kernel with this number of threads per block."""
    with device.calls(f"query the resources of {kernel}") as cupy:
        driver = cupy.cuda.driver
        threads, registers, shared = (
            driver.funcGetAttribute(attribute, function.ptr)
            for attribute in (
                driver.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                driver.CU_FUNC_ATTRIBUTE_NUM_REGS,
                driver.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
            )
        )
    if block_size > threads:
        raise BackendError(
            f"{kernel} needs {registers} registers per thread and {shared} bytes of shared memory per block: the "
            f"device runs at most {threads} of its threads per block, {block_size} are declared"
        )


def _names(cupy: Any, found: int) -> str:
    with cuda_calls(cupy, "list the GPUs"):
        return ", ".join(f"{ordinal} is {name_of(cupy, ordinal)}" for ordinal in range(found))


def _architecture(device: CudaDevice, compiler: tuple[int, int]) -> int:
    """The newest architecture that both NVRTC and the GPU support: the same major number, no newer minor one.

    Code that the driver translates at run time would differ from the code that the tests compile.
    """
    with device.calls("query the GPU") as cupy:
        capability = int(cupy.cuda.Device(device.ordinal).compute_capability)
    known: Sequence[int] = device.cupy.cuda.nvrtc.getSupportedArchs()
    fitting = [one for one in known if one // 10 == capability // 10 and one <= capability]
    if not fitting:
        remedy = "needs hltnode[cuda12]" if capability < min(known) else "needs a newer CuPy and NVRTC"
        raise BackendError(
            f"the GPU has compute capability {capability // 10}.{capability % 10}, NVRTC {compiler[0]}.{compiler[1]} "
            f"compiles for {', '.join(f'{one // 10}.{one % 10}' for one in known)}: it {remedy}"
        )
    return max(fitting)


def _version(cuda: int) -> str:
    return f"{cuda // 1000}.{cuda % 1000 // 10}"


def _driver(major: int) -> str:
    """The driver that a CUDA version needs."""
    return f"a driver for CUDA {major} ({DRIVERS[major]} or newer)" if major in DRIVERS else f"one for CUDA {major}"
