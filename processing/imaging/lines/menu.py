"""The line types of the chain, and the lines of a trigger configuration without lines."""

from hltnode.processing.imaging.lines.line_types import (
    ComponentArea,
    ComponentBox,
    ComponentCount,
    ComponentIntensity,
    Passthrough,
)
from hltnode.processing.selection.configuration.menu import Menu

SAMPLE = 0.01
"""Fraction of events that the line without a selection keeps."""
LARGE_AREA = 1000
"""Pixels of a component that the default line keeps."""

IMAGE_MENU = Menu(
    types=(Passthrough, ComponentCount, ComponentArea, ComponentBox, ComponentIntensity),
    lines=(Passthrough("ImageSample", prescale=SAMPLE), ComponentArea("LargeComponent", min_area=LARGE_AREA)),
)
