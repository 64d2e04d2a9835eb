"""Readings of a GPU through NVML, with a stand-in for the library, and a node without a GPU."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hltnode.daemon.commands.node import serving
from hltnode.daemon.machine.gpu_reader import GpuReader, read
from hltnode.daemon.monitoring.metrics.gpu import ThrottleReason, gpu_metrics
from hltnode.processing.framework.backends.free_gpu import MOST_FREE, handle_of
from hltnode.processing.framework.backends.interface import BackendError
from tests.daemon.fakes import eventually, make_config, running_node
from tests.daemon.pages import all_metrics

pynvml: Any = pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed (extras cuda12 and cuda13)")


class StandIn:
    """NVML of a machine with two GPUs; the driver may lack some readings."""

    def __init__(self) -> None:
        self.unsupported: set[str] = set()
        self.lost = threading.Event()

    def __getattr__(self, name: str) -> Any:
        known: dict[str, Any] = {
            "nvmlInit": lambda: None,
            "nvmlDeviceGetHandleByIndex": lambda index: f"GPU-{index}",
            "nvmlDeviceGetHandleByUUID": lambda uuid: uuid,
            "nvmlDeviceGetName": lambda handle: "NVIDIA Stand-in",
            "nvmlDeviceGetUUID": lambda handle: handle,
            "nvmlSystemGetDriverVersion": lambda: "580.1",
            "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(used=3 << 30, total=24 << 30),
            "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=75, memory=10),
            "nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: pynvml.nvmlClocksThrottleReasonSwPowerCap,
            "nvmlDeviceGetTemperature": lambda handle, sensor: 61,
            "nvmlDeviceGetPowerUsage": lambda handle: 250_500,
            "nvmlDeviceGetEnforcedPowerLimit": lambda handle: 300_000,
            "nvmlDeviceGetClockInfo": lambda handle, clock: 1_980,
            "nvmlDeviceGetTotalEccErrors": lambda handle, kind, counter: 2,
        }
        if name not in known:
            return getattr(pynvml, name)

        def call(*arguments: Any) -> Any:
            if self.lost.is_set():
                raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
            if name in self.unsupported:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
            return known[name](*arguments)

        return call


def test_readings_are_in_base_units() -> None:
    gpu = read(StandIn(), "GPU-0")
    assert (gpu.name, gpu.uuid, gpu.driver) == ("NVIDIA Stand-in", "GPU-0", "580.1")
    assert (gpu.utilization, gpu.memory_used_bytes, gpu.memory_bytes) == (0.75, 3 << 30, 24 << 30)
    assert (gpu.temperature_celsius, gpu.power_watts, gpu.power_limit_watts) == (61, 250.5, 300.0)
    assert (gpu.sm_clock_hertz, gpu.uncorrected_errors) == (1.98e9, 2)
    assert gpu.throttled == {reason: reason is ThrottleReason.POWER for reason in ThrottleReason}


def test_only_values_that_the_gpu_reports_have_samples() -> None:
    nvml = StandIn()
    nvml.unsupported = {"nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetUtilizationRates"}
    samples = {family.name: len(family.samples) for family in gpu_metrics(read(nvml, "GPU-0"))}
    empty = {"hltnode_gpu_uncorrected_memory_errors", "hltnode_gpu_power_watts", "hltnode_gpu_utilization_ratio"}
    assert {name for name, n in samples.items() if n == 0} == empty
    assert samples["hltnode_gpu_throttled"] == len(ThrottleReason)


@pytest.mark.parametrize(
    ("device", "visible", "handle"), [(1, None, "GPU-1"), (1, "3,2", "GPU-2"), (0, "GPU-abc", "GPU-abc")]
)
def test_a_gpu_is_counted_among_the_visible_ones(device: int, visible: str | None, handle: str) -> None:
    assert handle_of(StandIn(), device, visible) == handle


def test_a_gpu_that_is_not_visible_is_not_found() -> None:
    with pytest.raises(pynvml.NVMLError):
        handle_of(StandIn(), 1, "0")


async def test_a_lost_gpu_has_no_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = StandIn()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setattr("hltnode.daemon.machine.gpu_reader.PERIOD_SECONDS", 0.01)
    reader = GpuReader(0)
    reader.start()
    await eventually(lambda: reader.readings is not None)
    nvml.lost.set()
    await eventually(lambda: reader.readings is None)
    nvml.lost.clear()
    await eventually(lambda: reader.readings is not None)
    reader.stop()


@pytest.mark.parametrize("module", [None, pynvml], ids=["no_library", "no_driver"])
async def test_a_machine_without_nvml_has_no_readings_and_the_thread_ends(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if module is pynvml:
        monkeypatch.setattr(pynvml, "nvmlInit", raise_no_driver)
    monkeypatch.setitem(sys.modules, "pynvml", module)
    reader = GpuReader(0)
    reader.start()
    await eventually(lambda: not reader._thread.is_alive())
    assert reader.readings is None
    reader.stop()


def raise_no_driver() -> None:
    raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)


@pytest.mark.loopback
async def test_a_node_without_a_gpu_exports_no_sample_of_one(tmp_path: Path) -> None:
    async with running_node(make_config(tmp_path)) as (node, _):
        metrics = await asyncio.to_thread(all_metrics, node.http_port)
    assert not [series for series in metrics if series.startswith("hltnode_gpu_")]


async def test_the_back_end_of_a_node_has_its_gpu_and_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def refuse(_name: str, _kernels: Any, **options: Any) -> None:
        asked.update(options)
        raise BackendError("refused")

    monkeypatch.setattr(serving, "create_backend", refuse)
    config = make_config(tmp_path, pipeline={"device": MOST_FREE, "device_memory_bytes": 1 << 30})
    with pytest.raises(BackendError, match="refused"):
        await serving.serve_node(config, tmp_path / "node.toml")
    assert (asked["device"], asked["memory_bound"]) == (MOST_FREE, 1 << 30)
