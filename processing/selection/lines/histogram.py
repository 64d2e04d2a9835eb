"""A monitoring histogram: quantity, bins and candidates. It does not affect decisions.

Quantities are expressions, recorded like the selections of lines (expressions); the kernel of the lines fills them.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.histograms import HistogramShape, n_counts
from hltnode.processing.selection.errors import HistogramError, LineError, shown
from hltnode.processing.selection.expressions.expression import as_node, number, truth
from hltnode.processing.selection.expressions.nodes import (
    Kind,
    Node,
    Op,
    Variable,
    columns_of,
    node,
    of_candidate_alone,
    recording,
)
from hltnode.processing.selection.expressions.source_position import made_of, source_position
from hltnode.processing.selection.expressions.units import NO_UNIT, Quantity
from hltnode.processing.selection.lines.inputs import Input
from hltnode.processing.selection.lines.scalers import scaler_limit, scaler_seed

if TYPE_CHECKING:
    from hltnode.processing.selection.lines.line import Line

MAX_HISTOGRAMS = 256
MAX_BINS = 8192
"""Maximum number of bins of one histogram."""
MAX_COUNTS = 32_768
"""Maximum number of counters of all histograms: 128 KiB, which every batch copies from the device."""
MAX_NAME = 120
SAMPLE = "histograms_pre"
"""Name of the scaler of histograms with a prescale: histograms with equal prescale see the same events."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class RecordedHistogram:
    """A histogram as the kernel fills it.

    variable: stands for the candidate; None: the event. value: the number to count. condition: whether to count it.
    """

    shape: HistogramShape
    variable: Variable | None
    value: Node
    condition: Node
    accepted: bool
    prescale: float

    @property
    def columns(self) -> tuple[Column, ...]:
        """The distinct columns that it reads."""
        return columns_of((self.value, self.condition), () if self.variable is None else (self.variable.count,))

    @property
    def limits(self) -> tuple[np.float32, np.float32, np.float32]:
        """(low, high, bins per unit) in the single precision of kernels."""
        low, high = np.float32(self.shape.low), np.float32(self.shape.high)
        return low, high, np.float32(self.shape.bins) / (high - low)


@dataclass(frozen=True, slots=True)
class Histogram:
    """A histogram of a quantity.

    name: unique; a histogram of a line gets the line's name as prefix. quantity: called once, with a stand-in for a
    candidate; the returned number is counted for each candidate. bins, low, high: equal bins, in the unit of the
    quantity. of: the candidates; a histogram of a line takes those of the line. where: condition on candidates.
    accepted: count only accepted events. prescale: fraction of events to count. description: one line for people.

    A histogram of a line holds the candidates that the line selects, without its scales.

    Raises HistogramError, which gives the name, the fault and the source position.
    """

    name: str
    quantity: Callable[[Any], Any] = field(compare=False, repr=False)
    bins: int
    low: Quantity | float
    high: Quantity | float
    of: Input | None = None
    where: Callable[[Any], Any] | None = field(default=None, compare=False, repr=False)
    accepted: bool = False
    prescale: float = 1.0
    description: str = ""
    position: str = field(init=False, compare=False, repr=False)
    """Source position of the declaration."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "position", source_position())
        self._check()
        if self.of is not None:
            self.recorded()

    def _fail(self, what: str) -> NoReturn:
        raise HistogramError(f"histogram {shown(self.name)}: {what} ({self.position})")

    def _check(self) -> None:
        name = self.name
        if not isinstance(name, str) or len(name) > MAX_NAME or not _NAME.fullmatch(name):
            self._fail(f"a name of at most {MAX_NAME} letters, digits and _, a letter first, is expected")
        if isinstance(self.bins, bool) or not isinstance(self.bins, int) or not 1 <= self.bins <= MAX_BINS:
            self._fail(f"bins: an integer from 1 to {MAX_BINS} is expected, not {self.bins!r}")
        for key in ("low", "high"):
            value = getattr(self, key)
            if isinstance(value, bool) or not isinstance(value, Quantity | int | float):
                self._fail(f"{key}: a number such as 500 * MeV is expected, not {value!r}")
        prescale = self.prescale
        if isinstance(prescale, bool) or not isinstance(prescale, int | float) or not 0 < prescale <= 1:
            self._fail(f"prescale: a number above 0, at most 1, is expected, not {prescale!r}")
        if self.of is not None and not isinstance(self.of, Input):
            self._fail(f"of: candidates are expected, such as long_tracks, not {self.of!r}")
        low, high = self._bounds
        if low.unit != high.unit and low.value != 0 and high.value != 0:
            self._fail(f"range: from {low.unit} to {high.unit}")
        with np.errstate(all="ignore"):
            width = np.float32(high.value) - np.float32(low.value)
            per_unit = np.float32(self.bins) / width
        if not low.value < high.value:
            self._fail(f"range: its end, {high.value:g}, is not above its start, {low.value:g}")
        if not (np.isfinite(width) and width > 0 and np.isfinite(per_unit)):
            self._fail("range: single precision cannot hold it")

    @property
    def _bounds(self) -> tuple[Quantity, Quantity]:
        return Quantity.of(self.low), Quantity.of(self.high)

    def recorded(self, line: "Line | None" = None) -> RecordedHistogram:
        """The filled form, for the selected candidates of a line, or for the candidates in `of`.

        Raises HistogramError.
        """
        if line is not None and self.of is not None:
            self._fail("of: a histogram of a line holds the candidates of the line; remove `of`")
        of = self.of if line is None else line.input
        if of is None:
            self._fail("of: candidates are expected, such as of=long_tracks")
        try:
            with recording():
                return self._recorded(of, line)
        except LineError as error:
            raise HistogramError(f"histogram {self.name}: {error}") from None

    def _recorded(self, of: Input, line: "Line | None") -> RecordedHistogram:
        candidate = of.candidate()
        quantity = made_of(self.quantity, candidate)
        if as_node(quantity).kind is Kind.BOOL:
            self._fail("quantity: a number is expected, not true or false")
        value = number(quantity, "a histogram")
        units = {bound.unit for bound in self._bounds if bound.value != 0 or bound.unit != NO_UNIT}
        if units - {value.unit}:
            self._fail(f"range: in {' and '.join(map(str, units))}, the quantity has {value.unit}")
        condition = of.condition(candidate) if line is None else line.condition
        if self.where is not None:
            more = truth(made_of(self.where, candidate), "where")
            condition = more if _is_true(condition) else node(Op.AND, (condition, more), kind=Kind.BOOL)
        for root in (value, condition):
            of_candidate_alone(root, of.variable(0))
        low, high = self._bounds
        return RecordedHistogram(
            HistogramShape(
                name=self.name if line is None else f"{line.name}_{self.name}",
                bins=self.bins,
                low=low.value,
                high=high.value,
                unit="" if value.unit == NO_UNIT else str(value.unit),
                description=self.description,
                line="" if line is None else line.name,
            ),
            of.variable(0),
            value,
            condition,
            self.accepted,
            float(self.prescale),
        )


def _is_true(condition: Node) -> bool:
    return condition.op is Op.CONST and bool(condition.payload)


def sample_limit(prescale: float) -> tuple[int, int] | None:
    """(seed, limit) of the scaler of histograms with a prescale; None passes every event."""
    limit = scaler_limit(prescale)
    return None if limit is None else (scaler_seed(SAMPLE), limit)


def check_histograms(histograms: Sequence[RecordedHistogram]) -> None:
    """Raises HistogramError for two histograms of one name, and for more counters than a batch may copy."""
    seen: set[str] = set()
    for histogram in histograms:
        if histogram.shape.name in seen:
            raise HistogramError(f"histogram {histogram.shape.name}: two histograms have this name")
        seen.add(histogram.shape.name)
    if len(histograms) > MAX_HISTOGRAMS:
        raise HistogramError(f"{len(histograms)} histograms, at most {MAX_HISTOGRAMS} are allowed")
    total = n_counts([histogram.shape for histogram in histograms])
    if total > MAX_COUNTS:
        raise HistogramError(f"histograms: {total} bins in total, at most {MAX_COUNTS} are allowed")
