"""The menu of HLT1: the line types of LHCb, and the lines of a trigger configuration without lines.

Origin of the cuts: docs/physics/selection-lines.md.
"""

from itertools import pairwise

from hltnode.processing.lhcb.lines.inputs.track_fields import MODEL_FIELDS
from hltnode.processing.lhcb.lines.line_types.beam_lines import BeamGasImaging, HeavyIon, HeavyIonEnergy
from hltnode.processing.lhcb.lines.line_types.composite_lines import ECAL_LINES as _COMPOSITES_WITH_ECAL
from hltnode.processing.lhcb.lines.line_types.composite_lines import LINES as _COMPOSITES
from hltnode.processing.lhcb.lines.line_types.composite_lines import TYPES as _COMPOSITE_TYPES
from hltnode.processing.lhcb.lines.line_types.dimuon_lines import (
    DiMuonDrellYan,
    DiMuonMass,
    DiMuonNoIP,
    DiMuonSoft,
    DisplacedDiMuon,
)
from hltnode.processing.lhcb.lines.line_types.downstream_composites import LINES as _DOWNSTREAM_COMPOSITES
from hltnode.processing.lhcb.lines.line_types.downstream_composites import TYPES as _DOWNSTREAM_COMPOSITE_TYPES
from hltnode.processing.lhcb.lines.line_types.downstream_lines import LINES as _DOWNSTREAM
from hltnode.processing.lhcb.lines.line_types.downstream_lines import TYPES as _DOWNSTREAM_TYPES
from hltnode.processing.lhcb.lines.line_types.electron_lines import (
    DiElectronHighMass,
    DiElectronLowMass,
    DiElectronSoft,
    DisplacedDielectron,
    DisplacedLeptons,
    LowMassNoipDielectron,
    SingleHighEt,
    SingleHighPtElectron,
    TrackElectronMVA,
)
from hltnode.processing.lhcb.lines.line_types.event_lines import (
    BeamGas,
    GecPassthrough,
    OdinCrossingType,
    OdinEventType,
    OdinOrbit,
    Passthrough,
    PassthroughPv,
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
from hltnode.processing.lhcb.lines.line_types.half_lines import LINES as _HALVES
from hltnode.processing.lhcb.lines.line_types.half_lines import TYPES as _HALVES_TYPES
from hltnode.processing.lhcb.lines.line_types.jet_lines import LINES as _JETS
from hltnode.processing.lhcb.lines.line_types.jet_lines import TYPES as _JET_TYPES
from hltnode.processing.lhcb.lines.line_types.large_cluster_lines import LINES as _LARGE_CLUSTERS
from hltnode.processing.lhcb.lines.line_types.large_cluster_lines import TYPES as _LARGE_CLUSTER_TYPES
from hltnode.processing.lhcb.lines.line_types.photon_lines import (
    CaloDigitsMinADC,
    DiPhotonMass,
    Pi02GammaGamma,
    Pi02GammaGammaInner,
    Pi02GammaGammaMiddle,
    Pi02GammaGammaMiddleInnerMixed,
    Pi02GammaGammaMiddleOuterMixed,
    Pi02GammaGammaOuter,
)
from hltnode.processing.lhcb.lines.line_types.tracks import (
    LowPtMuon,
    OneMuonTrack,
    Rich1Alignment,
    Rich2Alignment,
    SingleHighPtMuon,
    SingleHighPtTrack,
    TrackMuonMVA,
    TrackMVA,
)
from hltnode.processing.lhcb.lines.line_types.two_tracks import (
    D2KK,
    D2KPi,
    D2PiPi,
    KsToPiPi,
    L02PPi,
    TwoKs,
    TwoTrackKs,
    TwoTrackMVA,
    TwoTrackMVACharmXSec,
)
from hltnode.processing.lhcb.lines.line_types.velo import NDisplacedVeloTracks, VeloClustersMicroBias, VeloMicroBias
from hltnode.processing.lhcb.lines.other_menus import OTHER_MENUS
from hltnode.processing.lhcb.lines.prefilters import ODIN_LUMI, ODIN_NO_BIAS, ODIN_VELO_OPEN, PREFILTERS
from hltnode.processing.selection.configuration.menu import Menu, NamedMenu

MICRO_BIAS = 0.001
RANDOM_SAMPLE = 1e-4

_EVENTS = (
    Passthrough("Hlt1Passthrough", prescale=RANDOM_SAMPLE),
    VeloMicroBias("Hlt1VeloMicroBias", postscale=MICRO_BIAS),
    OdinEventType("Hlt1ODINLumi", mask=ODIN_LUMI),
    OdinEventType("Hlt1ODINNoBias", prescale=1e-4, mask=ODIN_NO_BIAS),
    OdinEventType("Hlt1ODINVeloOpen", prescale=1e-4, mask=ODIN_VELO_OPEN),
    VeloClustersMicroBias("Hlt1VeloClustersMicroBias", postscale=MICRO_BIAS),
    OdinCrossingType("Hlt1NoBeam", crossing=0, postscale=MICRO_BIAS),
    OdinCrossingType("Hlt1BeamOne", crossing=1, postscale=MICRO_BIAS),
    OdinCrossingType("Hlt1BeamTwo", crossing=2, postscale=MICRO_BIAS),
    OdinCrossingType("Hlt1BothBeams", crossing=3, postscale=MICRO_BIAS),
    BeamGas("Hlt1BeamGas", postscale=MICRO_BIAS),
    GecPassthrough("Hlt1GECPassthrough", prescale=RANDOM_SAMPLE),
    OdinOrbit("Hlt1ODIN1kHzLumi", mask=ODIN_LUMI),
    TaePassthrough("Hlt1TAEPassthrough"),
    PassthroughPv("Hlt1PassthroughPVinSMOG2", prescale=MICRO_BIAS),
)
"""Lines that need only ODIN and the VELO. The scales of the random samples are chosen here, the others are from
Allen."""

_TRACKS = (
    TrackMVA("Hlt1TrackMVA"),
    TwoTrackMVA("Hlt1TwoTrackMVA"),
    TwoTrackMVACharmXSec("Hlt1TwoTrackMVACharmXSec", prescale=0.01),
    D2KK("Hlt1D2KK"),
    D2KPi("Hlt1D2KPi"),
    D2PiPi("Hlt1D2PiPi"),
    KsToPiPi("Hlt1KsToPiPi", postscale=MICRO_BIAS),
    TwoTrackKs("Hlt1TwoTrackKs", min_pt=3500.0),
    TwoKs("Hlt1TwoKs"),
    L02PPi("Hlt1L02PPi", min_pt=2500.0),
    TrackMuonMVA("Hlt1TrackMuonMVA"),
    SingleHighPtMuon("Hlt1SingleHighPtMuon"),
    SingleHighPtTrack("Hlt1SingleHighPtMuonNoMuID", prescale=0.05),
    LowPtMuon("Hlt1LowPtMuon", min_pt=1000.0),
    DiMuonMass("Hlt1DiMuonHighMass"),
    DiMuonMass("Hlt1DiMuonLowMass", min_pt=500.0, min_p=3000.0, min_mass=0.0, min_ip_chi2=4.0),
    DiMuonMass("Hlt1LowPtDiMuon", min_pt=80.0, min_p=3000.0, min_mass=220.0, min_ip=0.1, min_ip_chi2=9.0),
    DiMuonSoft("Hlt1DiMuonSoft"),
    DiMuonNoIP("Hlt1DiMuonNoIP"),
    DiMuonNoIP("Hlt1DiMuonNoIP_SS", same_sign=True, postscale=0.1),
    DiMuonDrellYan("Hlt1DiMuonDrellYan"),
    DiMuonDrellYan("Hlt1DiMuonDrellYan_SS", same_sign=True),
    DiMuonDrellYan("Hlt1DiMuonDrellYan_VLowMass", min_mass=2900.0, max_mass=5000.0, prescale=0.2),
    DisplacedDiMuon("Hlt1DisplacedDiMuon"),
    DisplacedDiMuon("Hlt1DisplacedDiMuonAlignment", min_mass=2700.0),
    Rich1Alignment("Hlt1RICH1Alignment"),
    Rich2Alignment("Hlt1RICH2Alignment"),
    D2KPi("Hlt1D2KPiAlignment"),
    DiMuonMass("Hlt1DiMuonHighMassAlignment", min_mass=9000.0),
    DiMuonMass("Hlt1DiMuonJpsiMassAlignment", min_mass=2500.0),
)

_MASS_SLICES = (5.0, 30.0, 100.0, 200.0, 300.0)
"""MeV."""
PI0 = 0.05


def _low_mass_dielectrons(*, displaced: bool) -> tuple[LowMassNoipDielectron, ...]:
    """One line for each slice of mass, and one for pairs of equal charges."""
    kind = "displaced" if displaced else "prompt"
    return tuple(
        LowMassNoipDielectron(
            f"Hlt1LowMassNoipDielectron{'_SS' if same_sign else ''}_massSlice{number}_{kind}",
            displaced=displaced,
            same_sign=same_sign,
            min_mass=low,
            max_mass=high,
            min_track_pt=0.0 if displaced else 500.0,
            postscale=0.02 if same_sign else 1.0 if displaced else 0.3,
        )
        for number, (low, high) in enumerate(pairwise(_MASS_SLICES), 1)
        for same_sign in (False, True)
    )


def _dielectrons_by_network() -> tuple[DiElectronLowMass, ...]:
    """Pairs of any displacement, the same with a looser cut for normalisation, displaced ones, and equal charges."""
    return tuple(
        DiElectronLowMass(
            f"Hlt1DiElectronLowMass_{'SS_' if same_sign else ''}{kind}",
            same_sign=same_sign,
            min_electron_nn=0.94 if kind == "NoIP" else 0.73,
            min_ip_chi2=4.0 if kind == "Displaced" else -1.0,
            min_track_pt=0.0 if kind == "Displaced" else 500.0,
            postscale=0.02 if same_sign or kind == "NoIPNorm" else 1.0,
        )
        for kind in ("NoIP", "NoIPNorm", "Displaced")
        for same_sign in (False, True)
    )


_ECAL = (
    TrackElectronMVA("Hlt1TrackElectronMVA"),
    SingleHighPtElectron("Hlt1SingleHighPtElectron"),
    DisplacedDielectron("Hlt1DisplacedDielectron"),
    DisplacedLeptons("Hlt1DisplacedLeptons"),
    *_low_mass_dielectrons(displaced=False),
    *_low_mass_dielectrons(displaced=True),
    *_dielectrons_by_network(),
    DiElectronHighMass("Hlt1DiElectronHighMass"),
    DiElectronHighMass("Hlt1DiElectronHighMass_SS", same_sign=True),
    DiElectronSoft("Hlt1DiElectronSoft"),
    SingleHighEt("Hlt1SingleHighEt"),
    DiPhotonMass("Hlt1Bs2GammaGamma", min_pt=1000.0, min_et=2500.0),
    DiPhotonMass(
        "Hlt1DiPhotonHighMass", min_mass=4200.0, max_mass=21000.0, min_pt=3000.0, min_et=2800.0, min_sum_et=6000.0
    ),
    Pi02GammaGamma("Hlt1Pi02GammaGamma", prescale=PI0),
    Pi02GammaGammaOuter("Hlt1Pi02GammaGammaOuter", prescale=PI0),
    Pi02GammaGammaMiddle("Hlt1Pi02GammaGammaMiddle", prescale=PI0),
    Pi02GammaGammaInner("Hlt1Pi02GammaGammaInner", prescale=PI0),
    Pi02GammaGammaMiddleOuterMixed("Hlt1Pi02GammaGammaMiddleOuterMixed", prescale=PI0),
    Pi02GammaGammaMiddleInnerMixed("Hlt1Pi02GammaGammaMiddleInnerMixed", prescale=PI0),
    CaloDigitsMinADC("Hlt1CaloDigitsMinADC", postscale=MICRO_BIAS),
)
"""Lines that need the electromagnetic calorimeter."""

_STUBS = (OneMuonTrack("Hlt1OneMuonTrack", postscale=MICRO_BIAS),)
"""Lines that need stubs of the muon stations."""

_VELO = (*_EVENTS[:2], NDisplacedVeloTracks("Hlt1NDisplacedVelo"), *_EVENTS[2:4])
"""The menu of the VELO alone. The displaced tracks, one event in five, are its only selection of physics."""

_NOT_MADE = {
    "Hlt1NMaterialVertexSeeds": "needs vertices in the material of the VELO, which no sequence searches for",
    "Hlt1PlumeActivity": "cuts on channels of the luminometer PLUME, which are no fields of lines",
}

_WITH_COMPOSITES = NamedMenu(
    lines=(*_EVENTS, *_TRACKS, *_COMPOSITES),
    lines_of={
        "hlt1_2026": (
            *(*_EVENTS, *_TRACKS, *_COMPOSITES, *_ECAL, *_STUBS, *_DOWNSTREAM, *_JETS),
            *_LARGE_CLUSTERS,
            *(*_COMPOSITES_WITH_ECAL, *_DOWNSTREAM_COMPOSITES),
        )
    },
    not_available=_NOT_MADE,
)
"""The menu of proton collisions, with the lines on decays into more than two tracks."""

HLT1_MENU = Menu(
    types=(
        *(
            Passthrough,
            GecPassthrough,
            OdinEventType,
            OdinOrbit,
            OdinCrossingType,
            BeamGas,
            TaePassthrough,
            PassthroughPv,
        ),
        *(VeloMicroBias, VeloClustersMicroBias, NDisplacedVeloTracks),
        *(TrackMVA, TrackMuonMVA, SingleHighPtMuon, SingleHighPtTrack, LowPtMuon, Rich1Alignment, Rich2Alignment),
        OneMuonTrack,
        *(TwoTrackMVA, TwoTrackMVACharmXSec, D2KK, D2KPi, D2PiPi, KsToPiPi, TwoTrackKs, TwoKs, L02PPi),
        *(DiMuonMass, DiMuonSoft, DiMuonNoIP, DiMuonDrellYan, DisplacedDiMuon),
        *(GasD2KPi, GasTwoTracks, GasKsToPiPi, GasL02PPi, GasTrack, GasMuon, GasDiMuonMass, GasDisplacedDiMuon),
        *(BeamGasImaging, HeavyIon, HeavyIonEnergy),
        *(TrackElectronMVA, SingleHighPtElectron, DisplacedDielectron, DisplacedLeptons, LowMassNoipDielectron),
        *(DiElectronLowMass, DiElectronHighMass, DiElectronSoft, SingleHighEt, DiPhotonMass, CaloDigitsMinADC),
        *(Pi02GammaGamma, Pi02GammaGammaOuter, Pi02GammaGammaMiddle, Pi02GammaGammaInner),
        *(Pi02GammaGammaMiddleOuterMixed, Pi02GammaGammaMiddleInnerMixed),
        *_COMPOSITE_TYPES,
        *_DOWNSTREAM_TYPES,
        *_JET_TYPES,
        *_HALVES_TYPES,
        *_LARGE_CLUSTER_TYPES,
        *_DOWNSTREAM_COMPOSITE_TYPES,
    ),
    lines=(*_EVENTS, *_TRACKS),
    lines_of={
        **{"velo": _VELO, "velo_simd": _VELO, "velo_sparse_ccl": _VELO},
        "velo_halves": (*_VELO, *_HALVES),
        "hlt1_2026": (*_EVENTS, *_TRACKS, *_ECAL, *_STUBS, *_DOWNSTREAM, *_JETS, *_LARGE_CLUSTERS),
    },
    not_available=_NOT_MADE,
    prefilters=PREFILTERS,
    model_fields=MODEL_FIELDS,
    name="pp",
    others={**OTHER_MENUS, "composites": _WITH_COMPOSITES},
)
"""Cuts and scales are those of Allen 2023, except where the types state another source. Cuts given with the lines
distinguish dimuon lines, or are tuned here to the rate of the menu (docs/physics/selection.md)."""
