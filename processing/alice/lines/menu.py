"""The line types of the chain, and the lines of a trigger configuration without lines."""

from hltnode.processing.alice.lines.line_types import (
    JetAbovePt,
    Lambda,
    NeutralKaon,
    Passthrough,
    TrackAbovePt,
    TrackMultiplicity,
)
from hltnode.processing.selection.configuration.menu import Menu

TPC_MENU = Menu(
    types=(Passthrough, TrackMultiplicity, TrackAbovePt, JetAbovePt, NeutralKaon, Lambda),
    lines=(
        Passthrough("TpcSample", prescale=0.01),
        TrackMultiplicity("TpcHighMultiplicity", min_tracks=1000),
        TrackAbovePt("TpcHighPt", min_pt=5.0),
        JetAbovePt("TpcJet", min_pt=20.0),
        NeutralKaon("TpcNeutralKaon", prescale=0.1),
        Lambda("TpcLambda", prescale=0.1),
    ),
)
