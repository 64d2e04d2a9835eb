"""The GPU with the most free memory, found through NVML: a query through CUDA would take memory of each GPU."""

import importlib
import os
from typing import Any

from hltnode.processing.framework.backends.interface import BackendError

MOST_FREE = -1
"""In place of an ordinal: the GPU with the most free memory."""


def gpu_with_most_free_memory(n_gpus: int) -> int:
    """The ordinal of the GPU with the most free memory among those of CUDA, the first of several.

    Raises BackendError if NVML is missing or does not answer.
    """
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError as error:
        raise BackendError(
            "the free memory of GPUs is read with nvidia-ml-py (extras cuda12 and cuda13), which is missing: install "
            "it, or set pipeline.device to a number"
        ) from error
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    try:
        nvml.nvmlInit()
        free = [nvml.nvmlDeviceGetMemoryInfo(handle_of(nvml, gpu, visible)).free for gpu in range(n_gpus)]
    except nvml.NVMLError as error:
        raise BackendError(
            f"NVML cannot read the free memory of {n_gpus} GPUs: {error}; set pipeline.device to a number"
        ) from error
    return free.index(max(free))


def handle_of(nvml: Any, device: int, visible: str | None) -> Any:
    """NVML's handle of a GPU. Raises NVMLError, also if `visible` (CUDA_VISIBLE_DEVICES) does not contain it."""
    if visible is None:
        return nvml.nvmlDeviceGetHandleByIndex(device)
    names = [name.strip() for name in visible.split(",")]
    if device >= len(names):
        raise nvml.NVMLError(nvml.NVML_ERROR_NOT_FOUND)
    name = names[device]
    if name.isdigit():
        return nvml.nvmlDeviceGetHandleByIndex(int(name))
    return nvml.nvmlDeviceGetHandleByUUID(name)
