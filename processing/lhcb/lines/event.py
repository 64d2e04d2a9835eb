"""Lines on whole events (docs/physics/selection-lines.md)."""

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from hltnode.processing.lhcb.lines.kinds import LineKind
from hltnode.processing.selection.line import VALIDATED, Line


@dataclass(frozen=True, config=VALIDATED)
class Passthrough(Line):
    """Every event; a prescale makes it a random sample."""

    kind: ClassVar[LineKind] = LineKind.PASSTHROUGH

    def parameters(self) -> tuple[np.uint32 | np.float32, ...]:
        return ()


@dataclass(frozen=True, config=VALIDATED)
class OdinEventType(Line):
    """Events whose ODIN event type has at least one bit of `mask` (16 bits); none without a readable ODIN bank."""

    kind: ClassVar[LineKind] = LineKind.ODIN_EVENT_TYPE

    mask: Annotated[int, Field(ge=1, le=0xFFFF)] = 0xFFFF

    def parameters(self) -> tuple[np.uint32 | np.float32, ...]:
        return (np.uint32(self.mask),)
