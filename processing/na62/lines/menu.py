"""The line types of the chain, and the lines of a trigger configuration without lines."""

from hltnode.processing.na62.lines.line_types import (
    MissingMass,
    Passthrough,
    PionAndNeutralPion,
    RingCount,
    RingRadius,
    RingVelocity,
)
from hltnode.processing.selection.configuration.menu import Menu

RICH_MENU = Menu(
    types=(Passthrough, RingCount, RingRadius, RingVelocity, MissingMass, PionAndNeutralPion),
    lines=(
        Passthrough("RichSample", prescale=0.01),
        RingCount("RichSeveralRings", min_rings=2),
        PionAndNeutralPion("RichPionAndNeutralPion"),
    ),
)
