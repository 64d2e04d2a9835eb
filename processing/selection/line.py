"""What all selection lines have in common: name, scalers, and their record in the device's table.

A line type is a frozen dataclass with its cuts as fields; the line kernel of its detector holds what it does on the
device, under the same number (docs/how-to/write-a-line.md).
"""

from abc import ABC, abstractmethod
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from hltnode.processing.framework.collections import Record, SharedTypes
from hltnode.processing.selection.scalers import scaler_limit, scaler_seed

MAX_PARAMETERS = 8

_SCALER = Record(
    "line_scaler",
    np.dtype([("seed", "<u4"), ("limit", "<u4"), ("always", "<u4")]),
    {
        "seed": "hash of the line's name and _pre or _post",
        "limit": "passes if the hash of the event is below",
        "always": "1: scale 1",
    },
)
LINE_RECORD = Record(
    "line_record",
    np.dtype(
        [
            ("kind", "<u4"),
            ("prescale", _SCALER.dtype),
            ("postscale", _SCALER.dtype),
            ("parameters", "<u4", (MAX_PARAMETERS,)),
        ]
    ),
    {"kind": "number of the line type, 0 for an unused place", "parameters": "floats stand as their bits"},
)
"""One place of the line table. The meaning of the parameters is that of the kind."""

selection_types = SharedTypes(__file__, "selection_types", records=(_SCALER, LINE_RECORD))

VALIDATED = ConfigDict(extra="forbid", strict=True)
"""For the dataclass decorator of a line: values are checked, unknown cuts refused."""

Scale = Annotated[float, Field(ge=0.0, le=1.0)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=120)]


@dataclass(frozen=True, config=VALIDATED)
class Line(ABC):
    """A selection line: `name` unique in the configuration; the scales are the fractions of events that pass.

    Raises pydantic.ValidationError, which names the field.
    """

    kind: ClassVar[int]
    """The number of the line type among those of its detector; not 0."""

    name: Name
    prescale: Scale = 1.0
    postscale: Scale = 1.0

    @abstractmethod
    def parameters(self) -> tuple[np.uint32 | np.float32, ...]:
        """The cuts in the order in which the kernel reads them, at most MAX_PARAMETERS."""

    def record(self) -> NDArray[np.void]:
        """The line as the kernel sees it: one LINE_RECORD, shape ()."""
        record = np.zeros((), dtype=LINE_RECORD.dtype)
        record["kind"] = self.kind
        for scaler, scale, suffix in (("prescale", self.prescale, "_pre"), ("postscale", self.postscale, "_post")):
            limit = scaler_limit(scale)
            record[scaler] = (scaler_seed(self.name + suffix), limit or 0, limit is None)
        for i, value in enumerate(self.parameters()):
            record["parameters"][i] = value.view(np.uint32)
        return record
