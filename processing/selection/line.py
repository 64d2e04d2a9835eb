"""What all selection lines have in common: name, scalers, and their record in the device's table.

A line type is a frozen dataclass with its cuts as fields; kernels/lines/event_lines.cuh holds what it does on the
device, under the same number (docs/how-to/write-a-line.md).
"""

from abc import ABC, abstractmethod
from enum import IntEnum
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from hltnode.processing.selection.scalers import scaler_limit, scaler_seed

MAX_PARAMETERS = 8

_SCALER = [("seed", "<u4"), ("limit", "<u4"), ("always", "<u4")]
LINE_RECORD = np.dtype(
    [("kind", "<u4"), ("prescale", _SCALER), ("postscale", _SCALER), ("parameters", "<u4", (MAX_PARAMETERS,))]
)
"""One place of the line table, as line_record in kernels/lines/line_table.cuh."""

VALIDATED = ConfigDict(extra="forbid", strict=True)
"""For the dataclass decorator of a line: values are checked, unknown cuts refused."""

Scale = Annotated[float, Field(ge=0.0, le=1.0)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=120)]


class LineKind(IntEnum):
    """Numbers of the line types; line_kind in kernels/lines/line_table.cuh."""

    PASSTHROUGH = 1
    VELO_MICRO_BIAS = 2
    N_DISPLACED_VELO_TRACKS = 3
    ODIN_EVENT_TYPE = 4


LINE_TYPES: dict[str, type["Line"]] = {}
"""All line types by class name, which is the `type` of a line in a trigger configuration."""


@dataclass(frozen=True, config=VALIDATED)
class Line(ABC):
    """A selection line: `name` unique in the configuration; the scales are the fractions of events that pass.

    Raises pydantic.ValidationError, which names the field.
    """

    kind: ClassVar[LineKind]

    name: Name
    prescale: Scale = 1.0
    postscale: Scale = 1.0

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        LINE_TYPES[cls.__name__] = cls

    @abstractmethod
    def parameters(self) -> tuple[np.uint32 | np.float32, ...]:
        """The cuts in the order in which the kernel reads them, at most MAX_PARAMETERS."""

    def record(self) -> NDArray[np.void]:
        """The line as the kernel sees it: one LINE_RECORD, shape ()."""
        record = np.zeros((), dtype=LINE_RECORD)
        record["kind"] = self.kind
        for scaler, scale, suffix in (("prescale", self.prescale, "_pre"), ("postscale", self.postscale, "_post")):
            limit = scaler_limit(scale)
            record[scaler] = (scaler_seed(self.name + suffix), limit or 0, limit is None)
        for i, value in enumerate(self.parameters()):
            record["parameters"][i] = value.view(np.uint32)
        return record
