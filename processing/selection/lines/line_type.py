"""Lines with configurable cuts: a dataclass with the cuts as fields, and the selection."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cached_property
from operator import is_
from typing import Annotated, Any, ClassVar, get_type_hints

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from hltnode.processing.selection.lines.histogram import Histogram
from hltnode.processing.selection.lines.inputs import Input
from hltnode.processing.selection.lines.line import Line
from hltnode.processing.selection.lines.prefilter import Prefilter, chosen

VALIDATED = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)
"""Config of the dataclass decorator of line types: values are checked, unknown cuts are refused."""

Scale = Annotated[float, Field(ge=0.0, le=1.0)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=120)]


@dataclass(frozen=True, config=VALIDATED)
class LineType(ABC):
    """A line with cuts. The first line of the docstring of a type is the description of its lines.

    Raises pydantic.ValidationError, which names the field.
    """

    input: ClassVar[Input]
    histograms: ClassVar[tuple[Histogram, ...]] = ()
    """Histograms of the selected candidates."""

    name: Name
    prescale: Scale = 1.0
    postscale: Scale = 1.0
    prefilters: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Names of prefilters of the chain; the event must pass all of them."""

    @abstractmethod
    def selects(self, candidate: Any) -> Any:
        """Whether a candidate is selected, like the `selection` of a Line."""

    @classmethod
    def unit_of(cls, cut: str) -> str:
        """Unit of a cut, from `json_schema_extra` of its Field; empty without one."""
        hint = get_type_hints(cls, include_extras=True).get(cut)
        extras = (getattr(info, "json_schema_extra", None) for info in getattr(hint, "__metadata__", ()))
        return next((str(extra["unit"]) for extra in extras if isinstance(extra, dict) and "unit" in extra), "")

    @classmethod
    def cuts(cls) -> tuple[str, ...]:
        """Names of the numbers that a configuration may set: cuts and scales."""
        return tuple(each.name for each in fields(cls) if each.name not in ("name", "prefilters"))

    def line(self) -> Line:
        """The line with these cuts, without its prefilters. Raises LineError."""
        description = (type(self).__doc__ or "").strip().splitlines()[0]
        return Line(
            self.name,
            self.input,
            self.selects,
            prescale=self.prescale,
            postscale=self.postscale,
            description=description,
            histograms=self.histograms,
        )

    def prefiltered_line(self, known: Mapping[str, Prefilter]) -> Line:
        """The line with its prefilters, made once. known: the prefilters of the chain by name. Raises LineError."""
        prefilters = chosen(self.prefilters, known)
        for made in self._made:
            if len(made.prefilters) == len(prefilters) and all(map(is_, made.prefilters, prefilters)):
                return made
        line = self.line()
        self._made.append(replace(line, prefilters=prefilters) if prefilters else line)
        return self._made[-1]

    @cached_property
    def _made(self) -> list[Line]:
        """The lines that prefiltered_line made: recording the selections of a menu takes some 0.2 s of a processor."""
        return []

    def __getstate__(self) -> dict[str, Any]:
        """The fields: a copy and another process make their own lines."""
        return {each.name: getattr(self, each.name) for each in fields(self)}
