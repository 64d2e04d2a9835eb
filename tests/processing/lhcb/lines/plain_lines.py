"""The lines of the menu in plain Python, written from their descriptions in docs/physics/selection-lines.md.

The numbers are written out here; they are not read from the menu. Units: MeV, mm.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from hltnode.processing.lhcb.lines.line_types.two_track_network import FILE
from tests.processing.lhcb.lines.candidates import Dielectron, DownstreamV0, Event, PhotonPair, Pv, Track, Vertex

D0 = 1864.84
NETWORK = json.loads(FILE.read_text())


def behind_target(pv: Pv | None) -> bool:
    """Whether the primary vertex, if there is one, is behind the gas target."""
    return pv is None or bool(pv.z > -341.0)


def has_event_type(event: Event, mask: int) -> bool:
    return event.has_odin and event.event_type & mask != 0


def of_crossing(event: Event, crossing: int) -> bool:
    return event.has_odin and event.crossing_type == crossing


def beam_gas(event: Event) -> bool:
    return of_crossing(event, 1) and any(t.n_hits >= 12 and -550 < t.z < -300 for t in event.velo_tracks)


def curve_of_ip(s: float, pole: float = 2.0, ip_chi2: float = 7.4) -> float:
    """The smallest ln IP chi2 of TrackMVA; s is in GeV."""
    return 1 / (s - pole) ** 2 + 1.248 / 26 * (26 - s) + math.log(ip_chi2)


def track_mva(t: Track, alpha: float, max_chi2: float) -> bool:
    s = (float(t.pt) - alpha) / 1000
    if 2 < s < 26:
        displaced = t.ip_chi2 > 0 and math.log(t.ip_chi2) > curve_of_ip(s)
    else:
        displaced = s > 26 and bool(t.ip_chi2 > 7.4)
    return bool(t.chi2 < max_chi2) and displaced and behind_target(t.pv)


def track_electron_mva(t: Track) -> bool:
    s = t.brem_pt / 1000
    if 1 < s < 26:
        displaced = t.ip_chi2 > 0 and math.log(t.ip_chi2) > curve_of_ip(s, 1.0, 3.0)
    else:
        displaced = s > 26 and bool(t.ip_chi2 > 3)
    return bool(t.is_electron and t.chi2 < 2.5) and displaced and behind_target(t.pv)


def high_pt_electron(t: Track) -> bool:
    return bool(t.is_electron and t.chi2 < 100 and t.brem_pt > 6000) and behind_target(t.pv)


def displaced_leptons(event: Event) -> bool:
    def is_good(t: Track) -> bool:
        lepton = (t.is_electron and t.brem_pt > 1000) or (t.is_muon and t.pt > 1000)
        return bool(lepton and t.ip_chi2 > 7.4) and behind_target(t.pv)

    return sum(map(is_good, event.long_tracks)) >= 2


def both(v: Dielectron, name: str) -> float:
    """The smaller value of the tracks."""
    return min(float(getattr(v.track1, name)), float(getattr(v.track2, name)))


def displaced_dielectron(v: Dielectron) -> bool:
    return bool(both(v, "brem_pt") > 500 and both(v, "ip_chi2") > np.float32(7.4) and v.doca < 0.082) and bool(
        v.chi2 < 7.4 and v.z > -341
    )


def low_mass_dielectron(v: Dielectron, masses: tuple[float, float], *, displaced: bool, same_sign: bool) -> bool:
    ip_chi2 = both(v, "ip_chi2")
    of_kind = ip_chi2 > 2 if displaced else ip_chi2 < 2 and both(v, "brem_pt") > 500
    momenta = both(v, "brem_pt") > 0 and v.track1.brem_pt + v.track2.brem_pt > 1000
    vertex = masses[0] < v.mass < masses[1] and v.doca < 0.082 and v.chi2 < 7.4 and v.z > -341
    return bool(v.same_sign == same_sign and of_kind and momenta and vertex)


def network_dielectron(v: Dielectron, nn: float, ip_chi2: float | None, *, same_sign: bool) -> bool:
    """`ip_chi2`: least one of the tracks; None for pairs of any displacement, which need more pt."""
    of_kind = both(v, "brem_pt") > 500 if ip_chi2 is None else both(v, "ip_chi2") > ip_chi2
    momenta = both(v, "brem_pt") > 0 and v.track1.brem_pt + v.track2.brem_pt > 1000
    vertex = 5 < v.mass < 300 and v.doca < 0.082 and v.chi2 < 7.4 and v.z > -341
    electrons = np.float32(both(v, "electron_nn")) > np.float32(nn)
    return bool(v.same_sign == same_sign and of_kind and momenta and vertex and electrons)


def high_mass_dielectron(v: Dielectron, *, same_sign: bool) -> bool:
    tracks = both(v, "brem_p") > 14000 and both(v, "brem_pt") > 1500 and v.track1.eta <= 5 and v.track2.eta <= 5
    vertex = 8000 < v.mass < 140000 and v.doca <= 0.2 and v.z >= -330
    return bool(v.same_sign == same_sign and tracks and vertex)


def soft_dielectron(v: Dielectron) -> bool:
    if v.pv is None:
        return False
    sine = np.linalg.norm(np.cross(v.track1.direction, v.track2.direction))
    masses = not 483 <= v.m_pipi <= 513 and v.mass < 800
    vertex = math.hypot(v.x, v.y) > 3 and -375 < v.z < 635 and v.doca < 0.1 and v.ip / (v.z - v.pv.z) < 0.0045
    return bool(not v.same_sign and masses and both(v, "ip") >= np.float32(1.4) and vertex and sine**2 > 4e-6)


def photon_pair_mass(v: PhotonPair, masses: tuple[float, float], pt: float, et: float, sum_et: float) -> bool:
    photons = (v.first, v.second)
    energies = all(c.et > et and c.e19 > 0.6 for c in photons) and v.first.et + v.second.et > sum_et
    return bool(masses[0] < v.mass < masses[1] and v.pt >= pt and energies)


def pi0(event: Event, regions: tuple[str, str] | None = None) -> bool:
    def is_pi0(v: PhotonPair) -> bool:
        photons = (v.first, v.second)
        narrow = all(c.et > 400 and c.e19 > 0.7 for c in photons)
        fast = v.pt > 200 * (10 - float(v.eta))
        there = regions is None or sorted(c.region for c in photons) == sorted(regions)
        return bool(50 < v.mass < 300 and narrow and fast and there)

    return len(event.all_pvs) <= 1 and any(map(is_pi0, event.photon_pairs))


def high_pt(t: Track, min_pt: float) -> bool:
    return bool(t.chi2 < 100 and t.pt > min_pt and t.p > 6000) and behind_target(t.pv)


def low_pt_muon(t: Track) -> bool:
    far = t.ip > 4 and t.ip_chi2 > 7.4
    return bool(t.is_muon and t.chi2 < 100 and t.pt > 1000 and far) and behind_target(t.pv)


def rich(t: Track, min_p: float, eta: tuple[float, float], windows: tuple[tuple[float, float], ...]) -> bool:
    """Each window is one of four, which mirror it in both axes."""
    in_window = any(low < abs(t.phi) < high for low, high in windows)
    return bool(t.p > min_p and t.pt > 500 and t.chi2 < 2) and eta[0] < t.eta < eta[1] and in_window


def network(v: Vertex) -> float:
    """The response of the monotone network of TwoTrackMVA."""
    inputs = np.array([math.log(v.fd_chi2), float(v.sum_pt) / 1000, float(v.chi2), math.log(v.min_ip_chi2)])
    values = inputs
    for layer in NETWORK["layers"]:
        linear = np.array(layer["weights"]) @ values + np.array(layer["biases"])
        values = np.sort(linear.reshape(-1, 2), axis=1).ravel() if len(linear) > 1 else linear
    return float(1 / (1 + math.exp(-(values[0] + NETWORK["slope"] * (inputs[0] + inputs[1] + inputs[3])))))


def two_track_mva(v: Vertex) -> bool:
    cuts = v.min_pt > 200 and v.pt > 1000 and 2 < v.eta < 5 and v.m_corr > 1000
    vertex = v.chi2 < 20 and v.doca < 0.2 and v.min_ip_chi2 > 4
    pv = v.pv is not None and behind_target(v.pv)
    return bool(v.displaced and cuts and vertex) and pv and network(v) > 0.9569


def charm(v: Vertex) -> bool:
    masses = (v.m_kpi, v.m_pik)
    d0_or_below = any(abs(m - D0) < 100 or m < 1830 for m in masses)
    cuts = v.min_pt > 250 and v.min_p > 2000 and v.min_ip_chi2 > 4 and v.chi2 < 20 and v.doca < 0.2
    pv = v.pv is not None and behind_target(v.pv)
    needed = 0.92385 if v.pt > 1500 else 0.7
    return bool(v.displaced and cuts and d0_or_below) and pv and network(v) > needed


def d0(v: Vertex, *names: str) -> bool:
    cuts = v.pt > 2000 and v.min_pt > 800 and v.min_ip > 0.06 and v.chi2 < 20 and v.doca < 0.2 and 2 < v.eta < 5
    mass = any(abs(getattr(v, name) - D0) < 100 for name in names)
    return bool(v.displaced and not v.same_sign and cuts and mass) and behind_target(v.pv)


def ks_to_pions(v: Vertex) -> bool:
    cuts = v.min_ip_chi2 > 100 and v.chi2 < 10 and v.ip < 0.3 and 400 < v.m_pipi < 600
    return bool(v.ks and cuts) and behind_target(v.pv)


def good_ks(v: Vertex, pt: float, track_pt: float, track_p: float, ip_chi2: float, combined_ip: float) -> bool:
    vertex = v.chi2 < 20 and v.pt > pt and v.dira > 0.99 and 2 < v.eta < 4.2 and 455 < v.m_pipi < 545
    tracks = v.min_pt > track_pt and v.min_p > track_p and v.min_ip_chi2 > ip_chi2
    opening = sum(a * b for a, b in zip(v.track1.direction, v.track2.direction, strict=True))
    displaced = v.track1.ip * v.track2.ip / v.ip > combined_ip
    return bool(v.ks and vertex and tracks and opening > 0.99 and displaced) and behind_target(v.pv)


def lambda_to_proton(v: Vertex) -> bool:
    """The proton is the track with the larger momentum."""
    if v.track1.p > v.track2.p:
        proton, pion, mass = v.track1, v.track2, v.m_ppi
    else:
        proton, pion, mass = v.track2, v.track1, v.m_pip
    tracks = proton.ip_chi2 > 12 and proton.ip > 0.08 and proton.pt > 450
    tracks = tracks and pion.ip_chi2 > 32 and pion.ip > 0.2 and pion.pt > 80
    vertex = v.doca < 0.5 and v.pt > 2500 and mass < 1140 and v.chi2 < 16 and -80 < v.z < 650
    if v.pv is None:
        return False
    flight = v.fd_chi2 > 180 and v.z - v.pv.z > 12 and math.hypot(v.x, v.y) > 2 and v.dira > 0.9997
    return bool(v.lambda0 and tracks and vertex and flight) and behind_target(v.pv)


def dimuon(v: Vertex, mass: float, pt: float, p: float, ip_chi2: float = 0.0, ip: float = 0.0) -> bool:
    cuts = v.min_pt > pt and v.min_p > p and v.m_mumu > mass and v.doca < 0.2 and v.chi2 < 25
    displaced = v.min_ip_chi2 >= ip_chi2 and v.min_ip >= ip
    return bool(v.dimuon and not v.same_sign and cuts and displaced) and behind_target(v.pv)


def dimuon_soft(v: Vertex) -> bool:
    if v.pv is None:
        return False
    mass = v.m_mumu < 400 or 475 < v.m_mumu < 600
    vertex = v.min_ip_chi2 > 100 and math.hypot(v.x, v.y) > 3 and -375 < v.z < 635 and v.doca < 0.1
    flight = v.ip / (v.z - v.pv.z) < 0.04
    return bool(v.dimuon and not v.same_sign and mass and vertex and flight) and behind_target(v.pv)


def dimuon_no_ip(v: Vertex, *, same_sign: bool) -> bool:
    product = float(v.track1.pt) / 1000 * float(v.track2.pt) / 1000
    vertex = v.min_p > 5000 and v.pt > 1000 and v.doca < 0.3 and v.chi2 < 9
    good = v.track1.chi2 < 3 and v.track2.chi2 < 3
    return bool(v.dimuon and v.same_sign == same_sign and product > 1 and vertex and good) and behind_target(v.pv)


def drell_yan(v: Vertex, masses: tuple[float, float], *, same_sign: bool) -> bool:
    tracks = v.min_p > 15000 and v.min_pt > 1200 and v.track1.eta < 4.9 and v.track2.eta < 4.9
    vertex = v.doca < 0.15 and v.chi2 < 16 and masses[0] < v.m_mumu < masses[1]
    return bool(v.dimuon and v.same_sign == same_sign and tracks and vertex) and behind_target(v.pv)


def displaced_dimuon(v: Vertex, min_mass: float) -> bool:
    cuts = v.min_pt > 500 and v.chi2 < 6 and v.min_ip_chi2 > 6 and 2 < v.eta < 5 and v.m_mumu >= min_mass
    return bool(v.dimuon and not v.same_sign and cuts) and behind_target(v.pv)


Plain = Callable[[Event], bool]


def any_track(selects: Callable[[Track], bool], *, muons: bool = False) -> Plain:
    return lambda event: any(selects(t) for t in event.long_tracks if t.is_muon or not muons)


def any_vertex(selects: Callable[[Vertex], bool]) -> Plain:
    return lambda event: any(selects(v) for v in event.vertices)


def two_ks(event: Event) -> bool:
    good = partial(good_ks, pt=1150, track_pt=425, track_p=3000, ip_chi2=15, combined_ip=0.23)
    return any(good(pair.first) and good(pair.second) for pair in event.pairs)


RICH1 = ((0.50, 0.80), (2.30, 2.65))
RICH2 = ((0.55, 0.65), (2.49, 2.59))
HIGH, VERY_LOW = (5000.0, 250000.0), (2900.0, 5000.0)

PLAIN_LINES: dict[str, Plain] = {
    "Hlt1Passthrough": lambda _: True,
    "Hlt1VeloMicroBias": lambda e: len(e.velo_tracks) >= 1,
    "Hlt1ODINLumi": lambda e: has_event_type(e, 8),
    "Hlt1ODINNoBias": lambda e: has_event_type(e, 4),
    "Hlt1ODINVeloOpen": lambda e: has_event_type(e, 1),
    "Hlt1VeloClustersMicroBias": lambda e: e.n_velo_clusters >= 1,
    "Hlt1NoBeam": lambda e: of_crossing(e, 0),
    "Hlt1BeamOne": lambda e: of_crossing(e, 1),
    "Hlt1BeamTwo": lambda e: of_crossing(e, 2),
    "Hlt1BothBeams": lambda e: of_crossing(e, 3),
    "Hlt1BeamGas": beam_gas,
    "Hlt1GECPassthrough": lambda e: e.passes_gec,
    "Hlt1ODIN1kHzLumi": lambda e: has_event_type(e, 8) and e.orbit % 30 == 1,
    "Hlt1TAEPassthrough": lambda e: e.has_odin and e.tae_central == 1 and e.tae_half_window >= 1,
    "Hlt1PassthroughPVinSMOG2": lambda e: any(-541 < pv.z < -341 for pv in e.all_pvs),
    "Hlt1TrackMVA": any_track(partial(track_mva, alpha=296, max_chi2=2.5)),
    "Hlt1TwoTrackMVA": any_vertex(two_track_mva),
    "Hlt1TwoTrackMVACharmXSec": any_vertex(charm),
    "Hlt1D2KK": any_vertex(lambda v: d0(v, "m_kk")),
    "Hlt1D2KPi": any_vertex(lambda v: d0(v, "m_kpi", "m_pik")),
    "Hlt1D2PiPi": any_vertex(lambda v: d0(v, "m_pipi")),
    "Hlt1KsToPiPi": any_vertex(ks_to_pions),
    "Hlt1TwoTrackKs": any_vertex(partial(good_ks, pt=3500, track_pt=470, track_p=5000, ip_chi2=50, combined_ip=0.72)),
    "Hlt1TwoKs": two_ks,
    "Hlt1L02PPi": any_vertex(lambda_to_proton),
    "Hlt1TrackMuonMVA": any_track(partial(track_mva, alpha=0, max_chi2=100), muons=True),
    "Hlt1SingleHighPtMuon": any_track(partial(high_pt, min_pt=6000), muons=True),
    "Hlt1SingleHighPtMuonNoMuID": any_track(partial(high_pt, min_pt=8000)),
    "Hlt1LowPtMuon": any_track(low_pt_muon),
    "Hlt1DiMuonHighMass": any_vertex(partial(dimuon, mass=2700, pt=300, p=6000)),
    "Hlt1DiMuonLowMass": any_vertex(partial(dimuon, mass=0, pt=500, p=3000, ip_chi2=4)),
    "Hlt1LowPtDiMuon": any_vertex(partial(dimuon, mass=220, pt=80, p=3000, ip_chi2=9, ip=0.1)),
    "Hlt1DiMuonSoft": any_vertex(dimuon_soft),
    "Hlt1DiMuonNoIP": any_vertex(partial(dimuon_no_ip, same_sign=False)),
    "Hlt1DiMuonNoIP_SS": any_vertex(partial(dimuon_no_ip, same_sign=True)),
    "Hlt1DiMuonDrellYan": any_vertex(partial(drell_yan, masses=HIGH, same_sign=False)),
    "Hlt1DiMuonDrellYan_SS": any_vertex(partial(drell_yan, masses=HIGH, same_sign=True)),
    "Hlt1DiMuonDrellYan_VLowMass": any_vertex(partial(drell_yan, masses=VERY_LOW, same_sign=False)),
    "Hlt1DisplacedDiMuon": any_vertex(partial(displaced_dimuon, min_mass=0)),
    "Hlt1DisplacedDiMuonAlignment": any_vertex(partial(displaced_dimuon, min_mass=2700)),
    "Hlt1RICH1Alignment": any_track(partial(rich, min_p=30000, eta=(1.6, 2.04), windows=RICH1)),
    "Hlt1RICH2Alignment": any_track(partial(rich, min_p=60000, eta=(2.65, 2.8), windows=RICH2)),
    "Hlt1D2KPiAlignment": any_vertex(lambda v: d0(v, "m_kpi", "m_pik")),
    "Hlt1DiMuonHighMassAlignment": any_vertex(partial(dimuon, mass=9000, pt=300, p=6000)),
    "Hlt1DiMuonJpsiMassAlignment": any_vertex(partial(dimuon, mass=2500, pt=300, p=6000)),
}

SLICES = ((5.0, 30.0), (30.0, 100.0), (100.0, 200.0), (200.0, 300.0))


def any_dielectron(selects: Callable[[Dielectron], bool]) -> Plain:
    return lambda event: any(selects(v) for v in event.dielectrons)


def any_photon_pair(selects: Callable[[PhotonPair], bool]) -> Plain:
    return lambda event: any(selects(v) for v in event.photon_pairs)


LOW_MASS: Mapping[str, tuple[tuple[float, float], bool, bool]] = {
    f"Hlt1LowMassNoipDielectron{sign}_massSlice{number}_{kind}": (masses, kind == "displaced", bool(sign))
    for kind in ("prompt", "displaced")
    for number, masses in enumerate(SLICES, 1)
    for sign in ("", "_SS")
}
"""Name of a line: slice of mass, whether displaced, whether of equal charges."""

BY_NETWORK: Mapping[str, tuple[float, float | None, bool]] = {
    f"Hlt1DiElectronLowMass_{sign}{kind}": (0.94 if kind == "NoIP" else 0.73, ip_chi2, bool(sign))
    for kind, ip_chi2 in (("NoIP", None), ("NoIPNorm", None), ("Displaced", 4.0))
    for sign in ("", "SS_")
}
"""Name of a line: least response of the network, least IP chi2, whether of equal charges."""

ECAL_LINES: Mapping[str, Plain] = {
    "Hlt1TrackElectronMVA": any_track(track_electron_mva),
    "Hlt1SingleHighPtElectron": any_track(high_pt_electron),
    "Hlt1DisplacedLeptons": displaced_leptons,
    "Hlt1DisplacedDielectron": any_dielectron(displaced_dielectron),
    **{
        name: any_dielectron(partial(low_mass_dielectron, masses=masses, displaced=displaced, same_sign=same_sign))
        for name, (masses, displaced, same_sign) in LOW_MASS.items()
    },
    **{
        name: any_dielectron(partial(network_dielectron, nn=nn, ip_chi2=ip_chi2, same_sign=same_sign))
        for name, (nn, ip_chi2, same_sign) in BY_NETWORK.items()
    },
    "Hlt1DiElectronHighMass": any_dielectron(partial(high_mass_dielectron, same_sign=False)),
    "Hlt1DiElectronHighMass_SS": any_dielectron(partial(high_mass_dielectron, same_sign=True)),
    "Hlt1DiElectronSoft": any_dielectron(soft_dielectron),
    "Hlt1SingleHighEt": lambda e: any(bool(c.et > 15000) for c in e.clusters),
    "Hlt1Bs2GammaGamma": any_photon_pair(partial(photon_pair_mass, masses=(3000, 7000), pt=1000, et=2500, sum_et=400)),
    "Hlt1DiPhotonHighMass": any_photon_pair(
        partial(photon_pair_mass, masses=(4200, 21000), pt=3000, et=2800, sum_et=6000)
    ),
    "Hlt1Pi02GammaGamma": pi0,
    "Hlt1Pi02GammaGammaOuter": partial(pi0, regions=("outer", "outer")),
    "Hlt1Pi02GammaGammaMiddle": partial(pi0, regions=("middle", "middle")),
    "Hlt1Pi02GammaGammaInner": partial(pi0, regions=("inner", "inner")),
    "Hlt1Pi02GammaGammaMiddleOuterMixed": partial(pi0, regions=("middle", "outer")),
    "Hlt1Pi02GammaGammaMiddleInnerMixed": partial(pi0, regions=("middle", "inner")),
    "Hlt1CaloDigitsMinADC": lambda e: e.ecal_max_adc >= 500,
}
"""Lines that need the calorimeter."""


def downstream(v: DownstreamV0, pt: float, ip: tuple[float, float], track_pt: float = 0) -> bool:
    return bool(v.pt > pt and v.min_pt > track_pt and v.chi2 < 10 and ip[0] <= v.ip < ip[1])


def downstream_ks(event: Event, pt: float, ip: tuple[float, float], track_pt: float = 0) -> bool:
    return any(
        v.ks and bool(np.float32(472.6) < v.m_pipi < np.float32(522.6)) and downstream(v, pt, ip, track_pt)
        for v in event.downstream_v0s
    )


def downstream_lambda(event: Event, pt: float, ip: tuple[float, float]) -> bool:
    return any(
        v.lambda0 and bool(np.float32(1105.7) < v.m_ppi < np.float32(1125.7)) and downstream(v, pt, ip)
        for v in event.downstream_v0s
    )


def downstream_photon(event: Event) -> bool:
    return any(v.photon and bool(v.m_ee < 10) and downstream(v, 1500, (0, 5)) for v in event.downstream_v0s)


def has_large_clusters(event: Event) -> bool:
    return any(
        not t.backward and t.large_clusters >= 5 and math.hypot(t.tx, t.ty) * math.sinh(5.0) < 1.0
        for t in event.velo_tracks
    )


def any_jet(event: Event, pt: float) -> bool:
    return any(bool(jet.pt > pt) for jet in event.jets)


DOWNSTREAM_LINES: Mapping[str, Plain] = {
    "Hlt1DownstreamKsToPiPi": partial(downstream_ks, pt=2000, ip=(3, 30)),
    "Hlt1DownstreamKsToPiPiPrompt": partial(downstream_ks, pt=500, ip=(0, 3)),
    "Hlt1DownstreamLambdaToPPi": partial(downstream_lambda, pt=2000, ip=(3, 30)),
    "Hlt1DownstreamLambdaToPPiPrompt": partial(downstream_lambda, pt=500, ip=(0, 3)),
    "Hlt1DownstreamGammaToEE": downstream_photon,
    "Hlt1DownstreamTwoTrackKs": partial(downstream_ks, pt=3500, ip=(0, 5), track_pt=550),
}
PLAIN_LINES = {
    **PLAIN_LINES,
    **ECAL_LINES,
    **DOWNSTREAM_LINES,
    **{f"Hlt1ConeJet{pt}GeV": partial(any_jet, pt=1000 * pt) for pt in (15, 30, 50, 100)},
    "Hlt1VeloHalvesVertex": lambda e: any(bool(pair.n_tracks >= 4.0) for pair in e.half_pairs),
    "Hlt1VeloLargeClusters": has_large_clusters,
    "Hlt1OneMuonTrack": lambda e: any(bool(s.chi2_x < np.float32(1) and s.chi2_y < np.float32(0.3)) for s in e.stubs),
}

SCALES: Mapping[str, tuple[float, float]] = {
    "Hlt1Passthrough": (1e-4, 1),
    "Hlt1GECPassthrough": (1e-4, 1),
    "Hlt1ODINNoBias": (1e-4, 1),
    "Hlt1ODINVeloOpen": (1e-4, 1),
    "Hlt1VeloMicroBias": (1, 0.001),
    "Hlt1VeloClustersMicroBias": (1, 0.001),
    "Hlt1NoBeam": (1, 0.001),
    "Hlt1BeamOne": (1, 0.001),
    "Hlt1BeamTwo": (1, 0.001),
    "Hlt1BothBeams": (1, 0.001),
    "Hlt1BeamGas": (1, 0.001),
    "Hlt1PassthroughPVinSMOG2": (0.001, 1),
    "Hlt1KsToPiPi": (1, 0.001),
    "Hlt1TwoTrackMVACharmXSec": (0.01, 1),
    "Hlt1SingleHighPtMuonNoMuID": (0.05, 1),
    "Hlt1DiMuonDrellYan_VLowMass": (0.2, 1),
    "Hlt1DiMuonNoIP_SS": (1, 0.1),
    **{name: (1, 0.02 if same else 0.3) for name, (_, displaced, same) in LOW_MASS.items() if same or not displaced},
    **{name: (1, 0.02) for name, (_, _, same) in BY_NETWORK.items() if same or name.endswith("Norm")},
    **{name: (0.05, 1) for name in ECAL_LINES if name.startswith("Hlt1Pi02GammaGamma")},
    "Hlt1CaloDigitsMinADC": (1, 0.001),
    "Hlt1DownstreamKsToPiPiPrompt": (1, 0.001),
    "Hlt1DownstreamLambdaToPPiPrompt": (1, 0.001),
    "Hlt1OneMuonTrack": (1, 0.001),
    "Hlt1ConeJet15GeV": (0.001, 1),
    "Hlt1VeloHalvesVertex": (1, 0.001),
    "Hlt1ConeJet30GeV": (0.05, 1),
    "Hlt1ConeJet50GeV": (0.1, 1),
}
"""Prescale and postscale; other lines have none."""
