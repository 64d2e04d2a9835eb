"""The GPU that computes, as metrics: what its driver says of load, memory, temperature, power and clocks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum, unique

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

PREFIX = "hltnode_gpu_"


@unique
class ThrottleReason(StrEnum):
    """Why the clocks of a GPU are lower than they could be while it computes."""

    POWER = "power"
    """The power limit that was set."""
    THERMAL = "thermal"
    """It is too hot."""
    HARDWARE = "hardware"
    """The board slows it down: power brake, or a supply that is too weak."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReadings:
    """One GPU at one moment; None for what it does not report."""

    name: str
    uuid: str
    driver: str
    utilization: float | None
    """Part of the last sampling period in which a kernel ran, 0 to 1."""
    memory_used_bytes: int | None
    memory_bytes: int | None
    temperature_celsius: float | None
    power_watts: float | None
    power_limit_watts: float | None
    sm_clock_hertz: float | None
    throttled: Mapping[ThrottleReason, bool] | None
    uncorrected_errors: int | None
    """Memory errors that ECC could not correct, since the driver was loaded."""


_GAUGES = (
    ("utilization_ratio", "Part of the time in which a kernel runs.", "utilization"),
    ("memory_used_bytes", "Memory of the GPU that is taken, by all processes.", "memory_used_bytes"),
    ("memory_bytes", "Memory of the GPU.", "memory_bytes"),
    ("temperature_celsius", "Temperature of the GPU.", "temperature_celsius"),
    ("power_watts", "Power that the GPU takes.", "power_watts"),
    ("power_limit_watts", "Power that it may take.", "power_limit_watts"),
    ("sm_clock_hertz", "Clock of the multiprocessors.", "sm_clock_hertz"),
)


def gpu_metrics(gpu: GpuReadings | None) -> Iterator[Metric]:
    """All families; without a GPU, and for what it does not report, they have no samples."""
    info = GaugeMetricFamily(PREFIX + "info", "The GPU that computes.", labels=["name", "uuid", "driver"])
    if gpu is not None:
        info.add_metric([gpu.name, gpu.uuid, gpu.driver], 1.0)
    yield info
    for name, text, attribute in _GAUGES:
        family = GaugeMetricFamily(PREFIX + name, text)
        value = getattr(gpu, attribute, None)
        if value is not None:
            family.add_metric([], float(value))
        yield family
    throttled = GaugeMetricFamily(PREFIX + "throttled", "1 if the GPU is slowed down, by reason.", labels=["reason"])
    if gpu is not None and gpu.throttled is not None:
        for reason, holds in gpu.throttled.items():
            throttled.add_metric([reason], float(holds))
    yield throttled
    errors = CounterMetricFamily(PREFIX + "uncorrected_memory_errors", "Memory errors that ECC could not correct.")
    if gpu is not None and gpu.uncorrected_errors is not None:
        errors.add_metric([], gpu.uncorrected_errors)
    yield errors
