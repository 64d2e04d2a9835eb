"""Measures numbers of the detector, such as the beam position, and compares them with those that the kernels use.

The chain declares which histogram measures a number, and the tolerance. The measurement is the median of the last
values of one run: a new one is made whenever enough values have come, and none mixes two runs. A sign, such as the
polarity of the magnet, is measured by the asymmetry of two histograms.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.monitoring.mirrored_asymmetry import shown_sign
from hltnode.processing.framework.histograms import HistogramContent, HistogramShape
from hltnode.processing.framework.measured_quantities import MeasuredQuantity

MIN_VALUES = 5000
"""Values of a measurement: they give the beam position within 0.004 mm."""
MAX_SIGN_VALUES = 20_000_000
"""Values that have shown no sign are dropped: the statistical error of their mirrored asymmetry is 0.06 %, a fifth of
the smallest that counts."""


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
class _Median:
    """Values of one histogram since the last measurement, and the last measurement in this or an earlier run."""

    shape: HistogramShape
    begin: int
    counts: NDArray[np.uint64]
    total: int = 0
    measured: float | None = None
    run_of_measured: int = 0

    def use(self, configured: float) -> None:
        """A position does not depend on the number in use."""

    def begin_run(self) -> None:
        """The last measurement stays until the new run has one."""
        self.counts[:] = 0

    def add(self, run: int, counts: NDArray[np.uint32]) -> None:
        self.counts += counts[self.begin : self.begin + self.shape.n_counts]
        self.total += int(counts[self.begin : self.begin + self.shape.n_counts - 1].sum())
        if int(self.counts[:-1].sum()) >= MIN_VALUES:
            self.measured, self.run_of_measured = HistogramContent(self.shape, self.counts).median, run
            self.counts[:] = 0


@dataclass(slots=True)
class _Sign:
    """Values of two histograms since the last measurement, and the last measurement in this run.

    bins: their places in the counts. counts: u64[2, n_bins]. configured: the number that the kernels use.
    """

    bins: tuple[slice, slice]
    counts: NDArray[np.uint64]
    configured: float
    total: int = 0
    measured: float | None = None
    run_of_measured: int = 0

    def use(self, configured: float) -> None:
        self.configured = configured

    def begin_run(self) -> None:
        """Forget the measurement: the magnet may have changed between the runs."""
        self.counts[:] = 0
        self.measured = None

    def add(self, run: int, counts: NDArray[np.uint32]) -> None:
        new = np.stack([counts[place] for place in self.bins])
        self.counts += new
        self.total += int(new.sum())
        sign = shown_sign(self.counts[0], self.counts[1])
        if sign:
            self.measured, self.run_of_measured = sign * self.configured, run
        elif int(self.counts.sum()) >= MAX_SIGN_VALUES:
            self.measured = None
        else:
            return
        self.counts[:] = 0


class DetectorConditions:
    """The measured numbers of a node. `add` gets the counts of all histograms; other calls come from any thread."""

    def __init__(self, quantities: Sequence[MeasuredQuantity], shapes: Sequence[HistogramShape]) -> None:
        self._lock = threading.Lock()
        self._quantities = tuple(quantities)
        self._given = {quantity.name: quantity.configured for quantity in quantities}
        self._run: int | None = None
        begins = np.cumsum([0, *(shape.n_counts for shape in shapes)]).tolist()
        places = {shape.name: (shape, begin) for shape, begin in zip(shapes, begins, strict=False)}
        self._measurements = {quantity.name: _measurement(quantity, places) for quantity in quantities}

    def add(self, run: int, counts: NDArray[np.uint32]) -> None:
        """Add the new counts of a run. Values of another run that made no measurement are dropped."""
        with self._lock:
            for measurement in self._measurements.values():
                if run != self._run:
                    measurement.begin_run()
                measurement.add(run, counts)
            self._run = run

    def use(self, quantities: Sequence[MeasuredQuantity], *, given: bool = False) -> None:
        """The kernels use other numbers from now on; `given`: those of a folder of conditions, not measured ones."""
        with self._lock:
            self._quantities = tuple(quantities)
            for quantity in quantities:
                self._measurements[quantity.name].use(quantity.configured)
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
                    measured=self._measurements[quantity.name].measured,
                    values=self._measurements[quantity.name].total,
                    followed=quantity.configured != self._given[quantity.name],
                )
                for quantity in self._quantities
            )

    def measured_in(self, run: int) -> Mapping[str, float]:
        """The last measurement of each number that was measured in this run, by name."""
        with self._lock:
            return {
                name: measurement.measured
                for name, measurement in self._measurements.items()
                if measurement.measured is not None and measurement.run_of_measured == run
            }


def _measurement(quantity: MeasuredQuantity, places: Mapping[str, tuple[HistogramShape, int]]) -> _Median | _Sign:
    """`places`: each histogram and its first counter, by name."""
    shape, begin = places[quantity.histogram]
    if not quantity.opposite:
        return _Median(shape, begin, np.zeros(shape.n_counts, np.uint64))
    # Between the counters below and above the range.
    first, second = (
        slice(begin + 1, begin + 1 + shape.bins)
        for shape, begin in (places[quantity.histogram], places[quantity.opposite])
    )
    return _Sign((first, second), np.zeros((2, shape.bins), np.uint64), quantity.configured)
