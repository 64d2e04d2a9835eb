"""The line types of the chain, and the lines of a trigger configuration without lines."""

from hltnode.processing.alice.lines.line_types import Passthrough, TrackAbovePt, TrackMultiplicity
from hltnode.processing.selection.configuration.trigger_config import Menu

TPC_MENU = Menu(
    types=(Passthrough, TrackMultiplicity, TrackAbovePt),
    lines=(
        Passthrough("TpcSample", prescale=0.01),
        TrackMultiplicity("TpcHighMultiplicity", min_tracks=1000),
        TrackAbovePt("TpcHighPt", min_pt=5.0),
    ),
)
