"""Numbers of the detector that a histogram measures while events are processed, such as the position of the beam."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredQuantity:
    """A number of the detector constants, measured by the median of a histogram, or by the entries of two.

    histogram: name of the histogram. configured: the number that the kernels use. tolerance: largest distance of the
    median from it that costs no events. low, high: range of numbers that the kernels may use. All in `unit`. follows:
    whether a run may take the number that the run before has measured; otherwise it is only compared. opposite: if
    given, the quantity is a sign, right if `histogram` has more entries than the histogram of this name. Both have the
    same even number of bins, symmetric about 0.
    """

    name: str
    histogram: str
    configured: float
    tolerance: float
    low: float
    high: float
    unit: str
    follows: bool = True
    opposite: str = ""
