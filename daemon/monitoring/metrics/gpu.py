"""Metrics of the GPU that computes: load, memory, temperature, power and clocks, as reported by its driver."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum, unique

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

PREFIX = "hltnode_gpu_"


@unique
class ThrottleReason(StrEnum):
    """Why the clocks of a computing GPU are below their maximum."""

    POWER = "power"
    """The configured power limit."""
    THERMAL = "thermal"
    """The GPU is too hot."""
    HARDWARE = "hardware"
    """The board slows the GPU down: power brake, or a weak power supply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReadings:
    """Readings of one GPU at one moment; None for values that it does not report."""

    name: str
    uuid: str
    driver: str
    utilization: float | None
    """Fraction of the last sampling period in which a kernel ran, 0 to 1."""
    memory_used_bytes: int | None
    memory_bytes: int | None
    temperature_celsius: float | None
    power_watts: float | None
    power_limit_watts: float | None
    sm_clock_hertz: float | None
    throttled: Mapping[ThrottleReason, bool] | None
    uncorrected_errors: int | None
    """Memory errors since the driver was loaded that ECC could not correct."""


_GAUGES = (
    ("utilization_ratio", "Fraction of the time in which a kernel runs.", "utilization"),
    ("memory_used_bytes", "Memory of the GPU used by all processes.", "memory_used_bytes"),
    ("memory_bytes", "Memory of the GPU.", "memory_bytes"),
    ("temperature_celsius", "Temperature of the GPU.", "temperature_celsius"),
    ("power_watts", "Power consumption of the GPU.", "power_watts"),
    ("power_limit_watts", "Power limit of the GPU.", "power_limit_watts"),
    ("sm_clock_hertz", "Clock of the multiprocessors.", "sm_clock_hertz"),
)


def gpu_metrics(gpu: GpuReadings | None) -> Iterator[Metric]:
    """All families; they have no samples without a GPU, and for values that the GPU does not report."""
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
