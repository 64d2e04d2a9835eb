"""The line types of the chain, and the lines of a trigger configuration without lines."""

from hltnode.processing.km3net.lines.line_types import CausalWindow, ChargedWindow, Passthrough, WindowHits
from hltnode.processing.selection.configuration.menu import Menu

KM3NET_MENU = Menu(
    types=(Passthrough, WindowHits, CausalWindow, ChargedWindow),
    lines=(
        Passthrough("Km3netSample", prescale=0.001),
        # Every window, whatever the constants of the sequence: a node keeps the windows of accepted sub-slices only.
        WindowHits("Km3netN7", min_hits=1),
        CausalWindow("Km3netCausal"),
    ),
)
