"""Lines on the number of components and on area, box and intensity of a component."""

from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from hltnode.processing.imaging.lines.inputs import components, event
from hltnode.processing.imaging.strips import MAX_SIDE
from hltnode.processing.selection.lines.histogram import Histogram
from hltnode.processing.selection.lines.line import Line
from hltnode.processing.selection.lines.line_type import VALIDATED, LineType
from hltnode.processing.selection.lines.passthrough import EveryEvent

MAX_AREA = MAX_SIDE * MAX_SIDE
AREA_BINS = 64

Area = Annotated[int, Field(ge=0, le=MAX_AREA)]
Side = Annotated[int, Field(ge=0, le=MAX_SIDE)]
Intensity = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class Passthrough(EveryEvent):
    """Every event; a prescale makes it a random sample."""

    input = event


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class ComponentCount(LineType):
    """Events with `min_components` to `max_components` components."""

    input = event

    min_components: Area = 1
    max_components: Area = MAX_AREA

    def selects(self, candidate: Any) -> Any:
        return (candidate.n_components >= self.min_components) & (candidate.n_components <= self.max_components)


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class ComponentArea(LineType):
    """Events with a component of `min_area` to `max_area` pixels; a histogram of the areas."""

    input = components

    min_area: Area = 1
    max_area: Area = MAX_AREA
    histogram_end: Annotated[int, Field(ge=1, le=MAX_AREA)] = 4096

    def selects(self, candidate: Any) -> Any:
        return (candidate.area >= self.min_area) & (candidate.area <= self.max_area)

    def line(self) -> Line:
        """The line with the histogram of the areas of the selected components."""
        text = "pixels of a component"
        areas = Histogram("area", lambda one: one.area, AREA_BINS, 0, self.histogram_end, description=text)
        return replace(LineType.line(self), histograms=(areas,))


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class ComponentBox(LineType):
    """Events with a component whose box is `min_width` to `max_width` wide and `min_height` to `max_height` high."""

    input = components

    min_width: Side = 0
    max_width: Side = MAX_SIDE
    min_height: Side = 0
    max_height: Side = MAX_SIDE

    def selects(self, candidate: Any) -> Any:
        return (
            (candidate.width >= self.min_width)
            & (candidate.width <= self.max_width)
            & (candidate.height >= self.min_height)
            & (candidate.height <= self.max_height)
        )


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class ComponentIntensity(LineType):
    """Events with a component whose pixels sum up to `min_intensity` or more and have a mean of `min_mean` or more."""

    input = components

    min_intensity: Intensity = 0.0
    min_mean: Intensity = 0.0

    def selects(self, candidate: Any) -> Any:
        return (candidate.intensity >= self.min_intensity) & (candidate.mean_intensity >= self.min_mean)
