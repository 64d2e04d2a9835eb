"""State of the GPU, read from the driver in a thread because a broken driver may hang.

It uses NVML through nvidia-ml-py, which the extras `cuda12` and `cuda13` install. Without that package or without a GPU
it reads nothing, and the node runs normally.
"""

import importlib
import os
import threading
from collections.abc import Callable
from typing import Any

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.monitoring.metrics.gpu import GpuReadings, ThrottleReason
from hltnode.processing.framework.backends.free_gpu import handle_of

# Temperature and power change within seconds; a reading costs the driver one or two milliseconds.
PERIOD_SECONDS = 2.0

log = get_logger("gpu_reader")


class GpuReader:
    """Reads periodically from `start` to `stop`.

    Args:
        device: ordinal of the GPU among those that CUDA_VISIBLE_DEVICES leaves; None for a node without one.
    """

    def __init__(self, device: int | None) -> None:
        self._device = device
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hltnode-gpu-reader", daemon=True)
        self.readings: GpuReadings | None = None
        """The last readings; None before the first one and while reading fails."""

    def start(self) -> None:
        """Start the thread, which reads immediately, if there is a GPU."""
        if self._device is not None:
            self._thread.start()

    def stop(self) -> None:
        """Stop reading; does not wait for a hanging driver."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(0.1)

    def _run(self) -> None:
        assert self._device is not None
        try:
            nvml = importlib.import_module("pynvml")
        except ImportError:
            log.info("gpu_not_read", error="nvidia-ml-py is not installed (extras cuda12 and cuda13)")
            return
        try:
            nvml.nvmlInit()
            handle = handle_of(nvml, self._device, os.environ.get("CUDA_VISIBLE_DEVICES"))
        except nvml.NVMLError as error:
            log.warning("gpu_not_read", error=str(error))
            return
        reported = False
        while True:
            try:
                self.readings = read(nvml, handle)
            except nvml.NVMLError as error:
                self.readings = None
                if not reported:
                    log.warning("gpu_not_read", error=str(error))
                reported = True
            if self._stopping.wait(PERIOD_SECONDS):
                return


def read(nvml: Any, handle: Any) -> GpuReadings:
    """Read the state of the GPU. Raises NVMLError if the GPU is lost."""

    def optional(call: Callable[[], Any]) -> Any:
        try:
            return call()
        except (nvml.NVMLError_NotSupported, nvml.NVMLError_NoPermission):
            return None

    def scaled(value: float | None, factor: float) -> float | None:
        return None if value is None else value * factor

    memory = optional(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
    rates = optional(lambda: nvml.nvmlDeviceGetUtilizationRates(handle))
    slowed = optional(lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
    masks = {
        ThrottleReason.POWER: nvml.nvmlClocksThrottleReasonSwPowerCap,
        ThrottleReason.THERMAL: nvml.nvmlClocksThrottleReasonSwThermalSlowdown
        | nvml.nvmlClocksThrottleReasonHwThermalSlowdown,
        ThrottleReason.HARDWARE: nvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown,
    }
    return GpuReadings(
        name=nvml.nvmlDeviceGetName(handle),
        uuid=nvml.nvmlDeviceGetUUID(handle),
        driver=nvml.nvmlSystemGetDriverVersion(),
        utilization=None if rates is None else rates.gpu / 100,
        memory_used_bytes=None if memory is None else memory.used,
        memory_bytes=None if memory is None else memory.total,
        temperature_celsius=optional(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
        power_watts=scaled(optional(lambda: nvml.nvmlDeviceGetPowerUsage(handle)), 1e-3),
        power_limit_watts=scaled(optional(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle)), 1e-3),
        sm_clock_hertz=scaled(optional(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)), 1e6),
        throttled=None if slowed is None else {reason: bool(slowed & mask) for reason, mask in masks.items()},
        uncorrected_errors=optional(
            lambda: nvml.nvmlDeviceGetTotalEccErrors(
                handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
            )
        ),
    )
