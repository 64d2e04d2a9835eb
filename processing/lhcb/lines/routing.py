"""The routing bits of the first level of LHCb (docs/formats/trigger-banks.md)."""

from hltnode.processing.selection.reports.routing import LUMI_BIT, PHYSICS_BIT, RoutingRules

ROUTING_RULES: RoutingRules = {
    LUMI_BIT: r"Hlt1.*Lumi.*",
    2: r"Hlt1VeloAlignment.*",
    3: r"Hlt1(D2KPi|Tracker)Alignment.*",
    4: r"Hlt1DiMuon.*Alignment.*",
    5: r"Hlt1RICH1Alignment.*",
    6: r"Hlt1TAEPassthrough.*",
    7: r"Hlt1RICH2Alignment.*",
    8: r"Hlt1ODINVelo.*",
    9: r"Hlt1Pi0.*",
    PHYSICS_BIT: (
        r"Hlt1(?!ODIN|Pi0|(GEC|TAE)?Passthrough|(No|One|Both)?Beam|.*(Lumi|Alignment|MicroBias|NoBias|BeamGas)).*"
    ),
    16: r"Hlt1(ODIN)?NoBias.*",
}
"""The physics bit excludes lines for luminosity, alignment, calibration and monitoring."""
