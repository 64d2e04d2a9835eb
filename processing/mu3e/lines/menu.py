"""The line types of the chain, and the lines of a trigger configuration without lines."""

from hltnode.processing.mu3e.lines.line_types import DecayVertex, Passthrough, TrackMomentum, Window
from hltnode.processing.selection.configuration.menu import Menu

MU3E_MENU = Menu(
    types=(Passthrough, Window, DecayVertex, TrackMomentum),
    lines=(
        Passthrough("Mu3eSample", prescale=0.0001),
        # Every window, whatever the constants of the sequence: a node keeps the windows of accepted sub-slices only.
        Window("Mu3eVertex"),
        DecayVertex("Mu3eDecay"),
    ),
)
