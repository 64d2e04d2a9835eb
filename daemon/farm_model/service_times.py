"""Times of batches in a back end: drawn from a measurement, or from a gamma distribution."""

from pathlib import Path
from typing import Protocol

import numpy as np

from hltnode import __version__
from hltnode.daemon.farm_model.description import ServiceSection
from hltnode.daemon.farm_model.measurement import Measurement, load_measurement

BLOCK = 4096
"""Random numbers drawn at once: a call of NumPy for each batch would cost more than the rest of its service."""


class ServiceTimes(Protocol):
    """The time of a batch by its number of events."""

    def draw(self, events: int) -> float:
        """The time of one batch in seconds."""

    def mean(self, events: int) -> float:
        """The mean time of batches in seconds."""


class Uniform:
    """Uniform random numbers from 0 to 1, one at a time."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator
        self._left: list[float] = []

    def draw(self) -> float:
        """The next number."""
        if not self._left:
            self._left = self._generator.random(BLOCK).tolist()
        return self._left.pop()


class GivenTimes:
    """A time for each batch and one for each of its events, with a spread around the sum.

    spread: relative standard deviation of the time of a batch, which has a gamma distribution.
    """

    def __init__(
        self, events_per_second: float, overhead_seconds: float, spread: float, generator: np.random.Generator
    ) -> None:
        self._per_event = 1.0 / events_per_second
        self._overhead = overhead_seconds
        self._spread = spread
        self._generator = generator
        self._left: list[float] = []

    def mean(self, events: int) -> float:
        """The mean time of batches in seconds."""
        return self._overhead + events * self._per_event

    def draw(self, events: int) -> float:
        """The time of one batch in seconds."""
        if not self._spread:
            return self.mean(events)
        if not self._left:
            shape = self._spread**-2
            self._left = (self._generator.gamma(shape, 1.0 / shape, BLOCK)).tolist()
        return self.mean(events) * self._left.pop()


class MeasuredTimes:
    """Times with the quantiles of a measurement.

    Between two measured batch sizes, each quantile is interpolated. Below the smallest size, its times hold: a small
    batch costs its overhead. Above the largest size, they grow in proportion to the events.
    """

    def __init__(self, measurement: Measurement, occupancy: str, speed: float, generator: np.random.Generator) -> None:
        self._sizes, self._quantiles = measurement.quantiles(occupancy)
        self._speed = speed
        self._uniform = Uniform(generator)
        self._of_events: dict[int, tuple[list[float], float]] = {}

    def _times(self, events: int) -> tuple[list[float], float]:
        """Quantiles and mean for a batch size."""
        found = self._of_events.get(events)
        if found is None:
            sizes, quantiles = self._sizes, self._quantiles
            if events >= sizes[-1]:
                times = quantiles[-1] * (events / sizes[-1])
            else:
                times = np.array([np.interp(events, sizes, column) for column in quantiles.T])
            times = times / self._speed
            found = times.tolist(), float((times[1:] + times[:-1]).mean() / 2)
            self._of_events[events] = found
        return found

    def mean(self, events: int) -> float:
        """The mean time of batches in seconds."""
        return self._times(events)[1]

    def draw(self, events: int) -> float:
        """The time of one batch in seconds."""
        times = self._times(events)[0]
        place = self._uniform.draw() * (len(times) - 1)
        i = int(place)
        return times[i] + (place - i) * (times[i + 1] - times[i])


def service_times(service: ServiceSection, generator: np.random.Generator) -> ServiceTimes:
    """The times of a description. Raises FarmError for a measurement that cannot be used."""
    if service.measurement is None:
        rate = service.events_per_second * service.speed
        return GivenTimes(rate, service.overhead_seconds / service.speed, service.spread, generator)
    measurement = load_measurement(Path(service.measurement), service.chain, __version__)
    return MeasuredTimes(measurement, service.occupancy, service.speed, generator)
