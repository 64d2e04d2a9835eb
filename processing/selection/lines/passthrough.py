"""The line type of every chain that has no cut."""

from typing import Any

from pydantic.dataclasses import dataclass

from hltnode.processing.selection.lines.line_type import VALIDATED, LineType


@dataclass(frozen=True, config=VALIDATED)
class EveryEvent(LineType):
    """Every event; a prescale makes it a random sample. A chain derives its type with the input `event`."""

    def selects(self, candidate: Any) -> Any:  # noqa: ARG002
        return True
