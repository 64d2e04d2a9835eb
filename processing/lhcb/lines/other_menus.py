"""The menus of LHCb besides that of proton collisions. A configuration chooses one: `[menu] name = "smog2"`.

Every line names its prefilters, so events that no line needs are not reconstructed. Origin of the cuts:
docs/physics/selection-lines.md.
"""

from dataclasses import replace

from hltnode.processing.lhcb.lines.line_types.beam_lines import BeamGasImaging, HeavyIon, HeavyIonEnergy
from hltnode.processing.lhcb.lines.line_types.dimuon_lines import DiMuonMass
from hltnode.processing.lhcb.lines.line_types.event_lines import (
    GecPassthrough,
    OdinCrossingType,
    OdinEventType,
    OdinOrbit,
    Passthrough,
    TaePassthrough,
)
from hltnode.processing.lhcb.lines.line_types.gas_target import (
    GasD2KPi,
    GasDiMuonMass,
    GasDisplacedDiMuon,
    GasKsToPiPi,
    GasL02PPi,
    GasMuon,
    GasTrack,
    GasTwoTracks,
)
from hltnode.processing.lhcb.lines.line_types.large_cluster_lines import LINES as _LARGE_CLUSTERS
from hltnode.processing.lhcb.lines.line_types.tracks import (
    Rich1Alignment,
    Rich2Alignment,
    SingleHighPtMuon,
    SingleHighPtTrack,
)
from hltnode.processing.lhcb.lines.line_types.two_tracks import D2KPi
from hltnode.processing.lhcb.lines.line_types.velo import VeloMicroBias
from hltnode.processing.lhcb.lines.prefilters import (
    ODIN_LUMI,
    ODIN_NO_BIAS,
    ODIN_VELO_OPEN,
    beam_one,
    both_beams,
    event_cut,
    no_beam,
    odin_lumi,
    pv_in_gas,
    velo_closed,
)
from hltnode.processing.selection.configuration.menu import NamedMenu
from hltnode.processing.selection.lines.prefilter import Prefilter

HADRONIC_ENERGY = 94000.0
"""MeV: more energy in the electromagnetic calorimeter than peripheral collisions leave (Allen, 2025)."""
WITH_ECAL = "hlt1_2026"
"""The sequence that reads the calorimeter."""
_NO_PROMPT = "needs pairs of prompt hadrons, which no sequence fits"


def _names(*prefilters: Prefilter) -> tuple[str, ...]:
    return tuple(prefilter.name for prefilter in prefilters)


_LUMI = (
    OdinEventType("Hlt1ODINLumi", mask=ODIN_LUMI, prefilters=_names(odin_lumi)),
    OdinOrbit("Hlt1ODIN1kHzLumi", mask=ODIN_LUMI, prefilters=_names(odin_lumi)),
)
"""Their luminosity summaries count objects, so events for luminosity are reconstructed."""

_IN_GAS = _names(velo_closed, beam_one, event_cut, pv_in_gas)

SMOG2 = NamedMenu(
    lines=(
        GasD2KPi("Hlt1SMOG2D2Kpi", prefilters=_IN_GAS),
        GasKsToPiPi("Hlt1SMOG2KsTopipi", prescale=0.3, prefilters=_IN_GAS),
        GasL02PPi("Hlt1SMOG2L0Toppi", prefilters=_IN_GAS),
        GasTwoTracks("Hlt1SMOG22BodyGeneric", prescale=0.3, prefilters=_IN_GAS),
        GasTrack("Hlt1SMOG2SingleTrackVeryHighPt", min_pt=5000.0, prefilters=_IN_GAS),
        GasTrack("Hlt1SMOG2SingleTrackHighPt", prescale=0.1, prefilters=_IN_GAS),
        GasMuon("Hlt1SMOG2SingleMuon", prefilters=_IN_GAS),
        GasDiMuonMass("Hlt1SMOG2DiMuonHighMass", prefilters=_IN_GAS),
        GasDisplacedDiMuon("Hlt1SMOG2DisplacedDiMuon", prefilters=_IN_GAS),
        OdinEventType("Hlt1SMOG2BENoBias", prescale=3e-4, mask=ODIN_NO_BIAS, prefilters=_names(beam_one)),
        Passthrough(
            "Hlt1SMOG2PassThroughLowMult5",
            postscale=0.1,
            prefilters=("velo_closed", "beam_one", "event_cut", "low_multiplicity"),
        ),
        VeloMicroBias("Hlt1SMOG2MinimumBias", prescale=3e-5, prefilters=_names(velo_closed, beam_one)),
        *_LUMI,
    ),
    not_available={
        "Hlt1SMOG2etacTopp": _NO_PROMPT,
        "Hlt1SMOG22BodyGenericPrompt": _NO_PROMPT,
        "Hlt1SMOG2JPsiToMuMuTaP": "needs pairs of a muon and another track, which no sequence fits",
    },
)
"""Collisions of beam 1 with the gas target."""


def _heavy_ions(system: str) -> tuple[HeavyIon | Passthrough | OdinEventType | OdinOrbit, ...]:
    collided = _names(velo_closed, both_beams)
    with_gas = _names(velo_closed, beam_one)
    return (
        HeavyIon(f"Hlt1HeavyIon{system}MicroBias", min_velo_tracks=1, prefilters=collided),
        HeavyIon(f"Hlt1HeavyIon{system}PV", min_pvs=1, max_gas_pvs=0, prefilters=(*collided, "event_cut")),
        HeavyIon(f"Hlt1HeavyIon{system}GasMicroBias", min_velo_tracks=1, prefilters=with_gas),
        HeavyIon(
            f"Hlt1HeavyIon{system}GasPV", min_gas_pvs=1, max_pvs=0, prefilters=(*with_gas, "event_cut", "pv_in_gas")
        ),
        OdinEventType("Hlt1ODINNoBias", prescale=1e-4, mask=ODIN_NO_BIAS),
        *_LUMI,
    )


def _with_energy(system: str) -> tuple[HeavyIonEnergy, ...]:
    collided = _names(velo_closed, both_beams)
    with_gas = _names(velo_closed, beam_one)
    return (
        HeavyIonEnergy(
            f"Hlt1HeavyIon{system}UPCMicroBias", min_velo_tracks=1, max_energy=HADRONIC_ENERGY, prefilters=collided
        ),
        HeavyIonEnergy(
            f"Hlt1HeavyIon{system}Hadronic",
            min_pvs=1,
            max_gas_pvs=0,
            min_energy=HADRONIC_ENERGY,
            prefilters=(*collided, "event_cut"),
        ),
        HeavyIonEnergy(
            f"Hlt1HeavyIon{system}GasHadronic",
            min_gas_pvs=1,
            max_pvs=0,
            min_energy=HADRONIC_ENERGY,
            prefilters=(*with_gas, "event_cut", "pv_in_gas"),
        ),
    )


PBPB = NamedMenu(lines=_heavy_ions("PbPb"), lines_of={WITH_ECAL: (*_heavy_ions("PbPb"), *_with_energy("PbPb"))})
"""Collisions of lead beams, and of lead with the gas target."""

_LIGHT_IONS = (
    *_heavy_ions("LightIon"),
    D2KPi("Hlt1D2KPi", prefilters=_names(velo_closed, both_beams, event_cut)),
    DiMuonMass("Hlt1DiMuonHighMass", prefilters=_names(velo_closed, both_beams, event_cut)),
    SingleHighPtMuon("Hlt1SingleHighPtMuon", prefilters=_names(velo_closed, both_beams, event_cut)),
)
LIGHT_ION = NamedMenu(lines=_LIGHT_IONS, lines_of={WITH_ECAL: (*_LIGHT_IONS, *_with_energy("LightIon"))})
"""Collisions of light ions: few enough tracks for lines of proton collisions."""

COSMICS = NamedMenu(
    lines=(
        VeloMicroBias("Hlt1CosmicVelo", prefilters=_names(no_beam)),
        SingleHighPtTrack("Hlt1CosmicTrack", min_pt=0.0, min_p=0.0, min_pv_z=-1e5, prefilters=_names(no_beam)),
        SingleHighPtMuon("Hlt1CosmicMuon", min_pt=0.0, min_p=0.0, min_pv_z=-1e5, prefilters=_names(no_beam)),
        OdinEventType("Hlt1ODINNoBias", prescale=1e-4, mask=ODIN_NO_BIAS),
    )
)
"""Tracks in crossings without beam."""

_COLLISIONS = _names(velo_closed, both_beams, event_cut)

_CALIBRATION = (
    Passthrough("Hlt1Passthrough", prescale=1e-4),
    GecPassthrough("Hlt1GECPassthrough", prescale=1e-4),
    OdinEventType("Hlt1ODINNoBias", prescale=1e-4, mask=ODIN_NO_BIAS),
    OdinEventType("Hlt1ODINVeloOpen", prescale=1e-4, mask=ODIN_VELO_OPEN),
    TaePassthrough("Hlt1TAEPassthrough"),
    D2KPi("Hlt1D2KPiAlignment", prefilters=_COLLISIONS),
    DiMuonMass("Hlt1DiMuonHighMassAlignment", min_mass=9000.0, prefilters=_COLLISIONS),
    DiMuonMass("Hlt1DiMuonJpsiMassAlignment", min_mass=2500.0, prefilters=_COLLISIONS),
    Rich1Alignment("Hlt1RICH1Alignment", prefilters=_COLLISIONS),
    Rich2Alignment("Hlt1RICH2Alignment", prefilters=_COLLISIONS),
    *_LUMI,
)

CALIBRATION = NamedMenu(
    lines=_CALIBRATION,
    lines_of={"hlt1_2026": (*_CALIBRATION, *_LARGE_CLUSTERS)},
    not_available={
        "Hlt1NonZeroSuppress": "needs the flag of ODIN for data without zero suppression, which no sequence decodes",
        "Hlt1ODINCalib": "needs the calibration type of ODIN, which no sequence decodes",
    },
)
"""Alignment, calibration and luminosity."""

_IMAGED = BeamGasImaging("Hlt1BGIPseudoPVsNoBeam", prefilters=_names(no_beam))
_TWO_BEAMS = _names(both_beams)

BEAM_GAS = NamedMenu(
    lines=(
        _IMAGED,
        replace(_IMAGED, name="Hlt1BGIPseudoPVsBeamOne", prescale=1e-2, prefilters=_names(beam_one)),
        replace(_IMAGED, name="Hlt1BGIPseudoPVsBeamTwo", prescale=6.5e-2, prefilters=("beam_two",)),
        replace(_IMAGED, name="Hlt1BGIPseudoPVsUpBeamBeam", prescale=1e-3, max_z=-250.0, prefilters=_TWO_BEAMS),
        replace(_IMAGED, name="Hlt1BGIPseudoPVsDownBeamBeam", prescale=5e-2, min_z=250.0, prefilters=_TWO_BEAMS),
        replace(
            _IMAGED,
            name="Hlt1BGIPseudoPVsIRBeamBeam",
            prescale=4e-5,
            min_tracks=28,
            min_z=-250.0,
            max_z=250.0,
            prefilters=_TWO_BEAMS,
        ),
        *(OdinCrossingType(f"Hlt1{name}", crossing=i, postscale=0.001) for i, name in enumerate(("NoBeam", "BeamOne"))),
    )
)
"""Shapes of the beams from vertices with the residual gas; the VELO alone is enough."""

OTHER_MENUS = {
    "smog2": SMOG2,
    "pbpb": PBPB,
    "light_ion": LIGHT_ION,
    "cosmics": COSMICS,
    "calibration": CALIBRATION,
    "beam_gas": BEAM_GAS,
}
