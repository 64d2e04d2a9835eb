"""A selection line: its candidates, its selection and its scalers."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import Column, Record, SharedTypes
from hltnode.processing.selection.errors import HistogramError, LineError, shown
from hltnode.processing.selection.expressions.canonical import Reader, canonical, variable_words
from hltnode.processing.selection.expressions.expression import Expression, as_node
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
from hltnode.processing.selection.expressions.source_position import fail, made_of, source_position
from hltnode.processing.selection.expressions.units import NO_UNIT, Number, Quantity
from hltnode.processing.selection.lines.histogram import Histogram, RecordedHistogram
from hltnode.processing.selection.lines.inputs import Input
from hltnode.processing.selection.lines.prefilter import Prefilter, chosen
from hltnode.processing.selection.lines.scalers import scaler_limit, scaler_seed

_SCALER = Record(
    "line_scaler",
    np.dtype([("seed", "<u4"), ("limit", "<u4"), ("always", "<u4")]),
    {
        "seed": "hash of the line's name and _pre or _post",
        "limit": "passes if the hash of the event is below",
        "always": "1: scale 1",
    },
)
LINE_RECORD = Record("line_record", np.dtype([("prescale", _SCALER.dtype), ("postscale", _SCALER.dtype)]))
"""The scalers of one line."""

selection_types = SharedTypes(__file__, "selection_types", records=(_SCALER, LINE_RECORD))

MAX_NAME = 120
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_CONTENT = {"name", "input", "candidates", "prescale", "postscale", "selection"}


@dataclass(frozen=True, slots=True)
class Line:
    """A selection line. An event is accepted if a line selects one of its candidates.

    name: unique in the configuration. input: the candidates. selection: called once, with a stand-in for a candidate;
    the returned condition is recorded and decides on every candidate; its arguments with numbers as defaults are the
    parameters of the line. prescale, postscale: fractions of events that
    pass (docs/physics/selection-lines.md). description: one line for people. histograms: histograms of the selected
    candidates, before scales; they do not affect decisions. prefilters: conditions on the event that must be true too.

    Raises LineError, which gives the name, the fault and the source position.
    """

    name: str
    input: Input
    selection: Callable[[Any], Any] = field(compare=False, repr=False)
    prescale: float = 1.0
    postscale: float = 1.0
    description: str = field(default="", compare=False)
    histograms: Sequence[Histogram] = field(default=(), compare=False, repr=False)
    prefilters: Sequence[Prefilter] = ()
    position: str = field(init=False, compare=False, repr=False)
    """Source position of the declaration."""
    selected: Node = field(init=False, repr=False)
    """Whether the selection, without the prefilters, selects a candidate."""
    condition: Node = field(init=False, repr=False)
    """Whether the line selects a candidate, prefilters included."""
    recorded_histograms: tuple[RecordedHistogram, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "position", source_position())
        try:
            object.__setattr__(self, "prefilters", self._checked_prefilters())
            object.__setattr__(self, "selected", self._recorded())
            object.__setattr__(self, "condition", self._prefiltered())
            recorded = tuple(histogram.recorded(self) for histogram in self._checked_histograms())
            object.__setattr__(self, "recorded_histograms", recorded)
        except (LineError, HistogramError) as error:
            raise type(error)(f"line {shown(self.name)}: {error}") from None

    def _checked_histograms(self) -> Sequence[Histogram]:
        for histogram in self.histograms:
            if not isinstance(histogram, Histogram):
                fail(f"histograms: a list of histograms is expected, it contains {histogram!r}")
        return self.histograms

    def _checked_prefilters(self) -> tuple[Prefilter, ...]:
        for prefilter in self.prefilters:
            if not isinstance(prefilter, Prefilter):
                fail(f"prefilters: a list of prefilters is expected, it contains {prefilter!r}")
        return tuple(self.prefilters)

    def _prefiltered(self) -> Node:
        condition = self.selected
        with recording():
            for prefilter in reversed(self.prefilters):
                # First, so that the kernel skips costly parts of all lines with this prefilter together.
                condition = node(Op.AND, (prefilter.condition, condition), kind=Kind.BOOL)
        return condition

    def _recorded(self) -> Node:
        if not isinstance(self.name, str) or len(self.name) > MAX_NAME or not _NAME.fullmatch(self.name):
            what = f"a name of at most {MAX_NAME} letters, digits and _, a letter first, is expected"
            fail(f"{what}, not {shown(self.name)}")
        if not isinstance(self.input, Input):
            fail(f"input: candidates are expected, such as long_tracks, not {self.input!r}")
        for scale in ("prescale", "postscale"):
            value = getattr(self, scale)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                fail(f"{scale}: a number from 0 to 1 is expected, not {value!r}")
        with recording():
            candidate = self.input.candidate()
            selected = as_node(made_of(self.selection, candidate))
            if selected.kind is not Kind.BOOL:
                fail(f"the selection of a line must be true or false, this one is {selected.kind.value}")
            if self.input.where is not None:
                selected = node(Op.AND, (self.input.condition(candidate), selected), kind=Kind.BOOL)
            return of_candidate_alone(selected, self.variable)

    @property
    def parameters(self) -> dict[str, Quantity | Number]:
        """The parameters by name, with their values: arguments of the selection that have a number as default."""
        try:
            _, *arguments = inspect.signature(self.selection).parameters.values()
        except ValueError:
            return {}
        return {
            argument.name: argument.default
            for argument in arguments
            if isinstance(argument.default, Quantity | int | float) and not isinstance(argument.default, bool)
        }

    def unit_of(self, parameter: str) -> str:
        """Unit of the values of a parameter, in mm, MeV and rad; empty without a unit."""
        value = self.parameters.get(parameter, 0)
        return str(value.unit) if isinstance(value, Quantity) and value.unit != NO_UNIT else ""

    def with_value(self, name: str, value: float) -> "Line":
        """The line with another value of a parameter, in the unit `unit_of`, or of a scale.

        Raises LineError for an unknown parameter and for an invalid value.
        """
        if name in ("prescale", "postscale"):
            changed: dict[str, float] = {name: value}
            return replace(self, **changed)  # type: ignore[arg-type]
        parameters = self.parameters
        if name not in parameters:
            known = [f"{other} [{unit}]" if (unit := self.unit_of(other)) else other for other in parameters]
            raise LineError(
                f"{self.name}.{name}: the line has no such parameter; there are "
                f"{', '.join([*known, 'prescale', 'postscale'])}"
            )
        present = parameters[name]
        given: Quantity | Number = value
        if isinstance(present, Quantity):
            given = Quantity(value, present.unit)
        elif isinstance(present, int):
            if not float(value).is_integer():
                raise LineError(f"{self.name}.{name}: a whole number is expected, not {value:g}")
            given = int(value)
        return replace(self, selection=partial(self.selection, **{name: given}))

    def record(self) -> NDArray[np.void]:
        """Its scalers for the kernel: one LINE_RECORD, shape ()."""
        record = np.zeros((), dtype=LINE_RECORD.dtype)
        for scaler, scale, suffix in (("prescale", self.prescale, "_pre"), ("postscale", self.postscale, "_post")):
            limit = scaler_limit(scale)
            record[scaler] = (scaler_seed(self.name + suffix), limit or 0, limit is None)
        return record

    @property
    def variable(self) -> Variable | None:
        """The variable that stands for the candidate in `condition`; None for the event."""
        return self.input.variable(0)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The distinct columns that the selection reads."""
        return columns_of((self.condition,), () if self.input.count is None else (self.input.count,))

    def content(self) -> dict[str, Any]:
        """The deciding values in plain types, for the TCK. `line_of_content` makes a line from them."""
        content: dict[str, Any] = {
            "name": self.name,
            "input": self.input.name,
            "candidates": "" if self.variable is None else " ".join(variable_words(self.variable)),
            "prescale": float(self.prescale),
            "postscale": float(self.postscale),
            "selection": canonical(self.selected),
        }
        if self.prefilters:
            # Without prefilters the key stays that of earlier versions.
            content["prefilters"] = [prefilter.name for prefilter in self.prefilters]
        return content


def line_of_content(content: object, reader: Reader, prefilters: Mapping[str, Prefilter] | None = None) -> Line:
    """The line of a content, on the columns of a sequence, with the prefilters of its names. Raises LineError."""
    if not isinstance(content, Mapping) or set(content) - {"prefilters"} != _CONTENT:
        raise LineError(f"an object with the fields {', '.join(sorted(_CONTENT))} is expected")
    if not all(isinstance(content[key], str) for key in ("name", "input", "candidates")):
        raise LineError("name, input and candidates must be texts")
    names = content.get("prefilters", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise LineError("prefilters: a list of names is expected")
    if not isinstance(content["selection"], list):
        raise LineError("selection: a list of operations is expected")
    candidate = None
    if content["candidates"]:
        words = content["candidates"].split(" ")
        if len(words) != 3 or words[2] != "0":
            raise LineError(f"candidates: collection, column of its counts and 0 are expected, not {' '.join(words)!r}")
        candidate = reader.variable(words)
    selects = Expression(reader.condition(content["selection"], candidate))
    return Line(
        content["name"],
        Input(
            content["input"],
            "",
            {},
            collection=None if candidate is None else candidate.collection,
            count=None if candidate is None else candidate.count,
        ),
        lambda _: selects,
        prescale=content["prescale"],
        postscale=content["postscale"],
        prefilters=chosen(names, prefilters or {}),
    )
