"""Measures numbers of the detector, such as the beam position, and compares them with those that the kernels use.

The chain declares which histogram measures a number, and the tolerance. The measurement is the median of the last
values of one run: a new one is made whenever enough values have come, and none mixes two runs.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.histograms import HistogramContent, HistogramShape
from hltnode.processing.framework.measured_quantities import MeasuredQuantity

MIN_VALUES = 5000
"""Values of a measurement: they give the beam position within 0.004 mm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionReading:
    """A number of the detector as configured and as measured; `measured` is None before the first measurement.

    values: values of its histogram since the start of the node. followed: the number in use was measured in an earlier
    run of this session, or of the session that began the run.
    """

    name: str
    unit: str
    configured: float
    tolerance: float
    measured: float | None
    values: int
    followed: bool = False

    @property
    def is_off(self) -> bool:
        """True if the measurement is outside the tolerance."""
        return self.measured is not None and abs(self.measured - self.configured) > self.tolerance


@dataclass(slots=True)
class _Values:
    """Values of one histogram since the last measurement, and the last measurement in this or an earlier run."""

    shape: HistogramShape
    begin: int
    counts: NDArray[np.uint64]
    total: int = 0
    median: float | None = None
    run_of_median: int = 0

    def add(self, run: int, counts: NDArray[np.uint32]) -> None:
        self.counts += counts[self.begin : self.begin + self.shape.n_counts]
        self.total += int(counts[self.begin : self.begin + self.shape.n_counts - 1].sum())
        if int(self.counts[:-1].sum()) >= MIN_VALUES:
            self.median, self.run_of_median = HistogramContent(self.shape, self.counts).median, run
            self.counts[:] = 0


class DetectorConditions:
    """The measured numbers of a node. `add` gets the counts of all histograms; other calls come from any thread."""

    def __init__(self, quantities: Sequence[MeasuredQuantity], shapes: Sequence[HistogramShape]) -> None:
        self._lock = threading.Lock()
        self._quantities = tuple(quantities)
        self._given = {quantity.name: quantity.configured for quantity in quantities}
        self._run: int | None = None
        self._values: dict[str, _Values] = {}
        wanted = {quantity.histogram for quantity in quantities}
        begin = 0
        for shape in shapes:
            if shape.name in wanted:
                self._values[shape.name] = _Values(shape, begin, np.zeros(shape.n_counts, np.uint64))
            begin += shape.n_counts

    def add(self, run: int, counts: NDArray[np.uint32]) -> None:
        """Add the new counts of a run. Values of another run that made no measurement are dropped."""
        with self._lock:
            for values in self._values.values():
                if run != self._run:
                    values.counts[:] = 0
                values.add(run, counts)
            self._run = run

    def use(self, quantities: Sequence[MeasuredQuantity], *, given: bool = False) -> None:
        """The kernels use other numbers from now on; `given`: those of a folder of conditions, not measured ones."""
        with self._lock:
            self._quantities = tuple(quantities)
            if given:
                self._given = {quantity.name: quantity.configured for quantity in quantities}

    def readings(self) -> tuple[ConditionReading, ...]:
        """All numbers, with their last measurements."""
        with self._lock:
            return tuple(
                ConditionReading(
                    name=quantity.name,
                    unit=quantity.unit,
                    configured=quantity.configured,
                    tolerance=quantity.tolerance,
                    measured=self._values[quantity.histogram].median,
                    values=self._values[quantity.histogram].total,
                    followed=quantity.configured != self._given[quantity.name],
                )
                for quantity in self._quantities
            )

    def measured_in(self, run: int) -> Mapping[str, float]:
        """The last measurement of each number that was measured in this run, by name."""
        with self._lock:
            found = ((quantity.name, self._values[quantity.histogram]) for quantity in self._quantities)
            return {
                name: values.median
                for name, values in found
                if values.median is not None and values.run_of_median == run
            }
