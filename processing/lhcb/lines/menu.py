"""The menu of HLT1: the line types of LHCb, and the lines that run if a trigger configuration names none."""

from hltnode.processing.lhcb.lines.event import OdinEventType, Passthrough
from hltnode.processing.lhcb.lines.velo import NDisplacedVeloTracks, VeloMicroBias
from hltnode.processing.selection.trigger_config import Menu

ODIN_NO_BIAS = 0x0004
ODIN_LUMI = 0x0008
"""Bits of the ODIN event type, as the LHCb readout supervisor sets them."""

HLT1_MENU = Menu(
    types=(Passthrough, VeloMicroBias, NDisplacedVeloTracks, OdinEventType),
    lines=(
        Passthrough("Hlt1Passthrough", prescale=0.01),
        VeloMicroBias("Hlt1VeloMicroBias", postscale=0.001),
        NDisplacedVeloTracks("Hlt1NDisplacedVelo"),
        OdinEventType("Hlt1ODINLumi", mask=ODIN_LUMI),
        OdinEventType("Hlt1ODINNoBias", prescale=1e-4, mask=ODIN_NO_BIAS),
    ),
)
"""The event-level lines that need ODIN and the VELO alone."""
