"""For each line of the menu a candidate that it selects, and changes of this candidate on both sides of every cut."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tests.processing.lhcb.lines.candidates import (
    Candidate,
    Cluster,
    Dielectron,
    DownstreamV0,
    Event,
    HalfPair,
    Jet,
    MuonStub,
    PhotonPair,
    Pv,
    Track,
    V0Pair,
    VeloTrack,
    Vertex,
    changed,
)
from tests.processing.lhcb.lines.plain_lines import BY_NETWORK, D0, LOW_MASS, RICH1, RICH2, curve_of_ip, network

Changes = Mapping[str, Any]


@dataclass(frozen=True)
class Side:
    """A change of the candidate, and whether the line must select it."""

    changes: Changes
    selected: bool


Sides = Sequence[Side]


def above(name: str, cut: float) -> Sides:
    """The next number above a cut is selected, the cut is not."""
    return [_next(name, cut, math.inf, selected=True), Side({name: cut}, selected=False)]


def below(name: str, cut: float) -> Sides:
    return [_next(name, cut, -math.inf, selected=True), Side({name: cut}, selected=False)]


def at_least(name: str, cut: float) -> Sides:
    return [Side({name: cut}, selected=True), _next(name, cut, -math.inf, selected=False)]


def inside(name: str, low: float, high: float) -> Sides:
    return [*above(name, low), *below(name, high)]


def _next(name: str, cut: float, towards: float, *, selected: bool) -> Side:
    return Side({name: float(np.nextafter(np.float32(cut), np.float32(towards)))}, selected=selected)


def around(name: str, cut: float, *, upper: bool = False, factor: float = 1.0) -> Sides:
    """Near a cut on what is computed from a field, which is `factor` times the field."""
    return [Side({name: cut * factor * (1 + step)}, selected=(step > 0) != upper) for step in (1e-4, -1e-4)]


def only(selected: Sequence[Changes] = (), rejected: Sequence[Changes] = ()) -> Sides:
    return [*(Side(c, selected=True) for c in selected), *(Side(c, selected=False) for c in rejected)]


def under(path: str, sides: Sides) -> Sides:
    """The same changes for a part of a candidate."""
    return [Side({f"{path}.{name}": value for name, value in s.changes.items()}, s.selected) for s in sides]


FAR = Pv(-341.0)
NEAR = Pv(float(np.nextafter(np.float32(-341), np.float32(0))))
PV_IF_ANY = only([{"pv": NEAR}, {"pv": None}], [{"pv": FAR}])
PV_NEEDED = only([{"pv": NEAR}], [{"pv": FAR}, {"pv": None}])
OPPOSITE = only([], [{"same_sign": True}])
SAME = only([], [{"same_sign": False}])


def odin(mask: int, base: Changes | None = None) -> tuple[Event, Sides]:
    event = changed(Event(event_type=mask), base or {})
    types = only([{"event_type": 0xFFFF}], [{"event_type": 0xFFFF ^ mask}, {"event_type": 0}, {"has_odin": False}])
    return event, types


def crossing(wanted: int) -> tuple[Event, Sides]:
    others = [{"crossing_type": other} for other in range(4) if other != wanted]
    return Event(crossing_type=wanted), only([], [*others, {"has_odin": False}])


def gas() -> tuple[Event, Sides]:
    hits = [VeloTrack(11, -400.0), VeloTrack(12, -400.0)]
    sides = inside("z", -550, -300)
    tracks = [Side({"velo_tracks": (VeloTrack(12, **s.changes),)}, s.selected) for s in sides]
    fewer: list[Changes] = [{"velo_tracks": hits[:1]}, {"velo_tracks": ()}]
    few = only([{"velo_tracks": hits}], fewer)
    others: list[Changes] = [{"crossing_type": 0}, {"crossing_type": 2}, {"crossing_type": 3}, {"has_odin": False}]
    return Event(crossing_type=1, velo_tracks=(VeloTrack(12, -400.0),)), [*tracks, *few, *only([], others)]


def large_clusters() -> tuple[Event, Sides]:
    base = VeloTrack(10, 0.0, 0.008, -0.006, large_clusters=6)
    slope = 1.0 / math.sinh(5.0)
    changes: list[tuple[Changes, bool]] = [
        *(({"large_clusters": n}, n >= 5) for n in (4, 5, 26)),
        *(({"tx": sign * slope * (1 + step), "ty": 0.0}, step < 0) for sign in (1, -1) for step in (1e-4, -1e-4)),
        *(({"tx": 0.0, "ty": sign * slope * (1 + step)}, step < 0) for sign in (1, -1) for step in (1e-4, -1e-4)),
        ({"backward": True}, False),
    ]
    tracks = [Side({"velo_tracks": (replace(base, **changed_to),)}, selected) for changed_to, selected in changes]
    others = only([{"velo_tracks": (VeloTrack(), base)}], [{"velo_tracks": ()}, {"velo_tracks": (VeloTrack(),)}])
    return Event(velo_tracks=(base,)), [*tracks, *others]


def time_alignment() -> tuple[Event, Sides]:
    rejected: list[Changes] = [{"tae_central": 0}, {"tae_half_window": 0}, {"has_odin": False}]
    return Event(tae_central=1, tae_half_window=1), only([{"tae_half_window": 63}], rejected)


def pv_in_gas() -> tuple[Event, Sides]:
    pvs = [Side({"primary_vertices": (Pv(**s.changes),)}, s.selected) for s in inside("z", -541, -341)]
    second = only([{"primary_vertices": (Pv(), Pv(-400.0), Pv())}], [{"primary_vertices": (Pv(), Pv(-600.0))}])
    return Event(primary_vertices=(Pv(-400.0),)), [*pvs, *second]


def mva(alpha: float, max_chi2: float, *, muon: bool) -> tuple[Track, Sides]:
    base = Track(p=2e5, pt=5000.0, chi2=1.0, ip=1.0, ip_chi2=1e4, is_muon=muon, pv=Pv())
    curve = [
        Side({"pt": 1000 * s + alpha, "ip_chi2": math.exp(curve_of_ip(s) + step)}, selected=step > 0)
        for s in (2.2, 2.5, 4.0, 12.0, 25.9)
        for step in (0.001, -0.001)
    ]
    flat = [Side({"pt": 26100 + alpha, "ip_chi2": 7.4 * f}, selected=f > 1) for f in (1.001, 0.999)]
    slow = only([], [{"pt": 1000 * s + alpha, "ip_chi2": 1e9} for s in (1.0, 1.9, 1.999)])
    kind = only([], [{"is_muon": False}]) if muon else only([{"is_muon": True}])
    charge = only([{"positive": False}])
    return base, [*curve, *flat, *slow, *kind, *charge, *below("chi2", max_chi2), *PV_IF_ANY]


def high_pt(min_pt: float, *, muon: bool) -> tuple[Track, Sides]:
    base = Track(p=5e4, pt=9000.0, chi2=1.0, is_muon=muon, pv=Pv())
    kind = only([], [{"is_muon": False}]) if muon else only([{"is_muon": True}])
    return base, [*kind, *only([{"positive": False}]), *below("chi2", 100), *around("pt", min_pt), *PV_IF_ANY]


def low_pt_muon() -> tuple[Track, Sides]:
    base = Track(p=2e4, pt=2000.0, chi2=1.0, ip=5.0, ip_chi2=20.0, is_muon=True, pv=Pv())
    cuts = [*below("chi2", 100), *around("pt", 1000), *above("ip", 4), *above("ip_chi2", 7.4)]
    return base, [*cuts, *only([], [{"is_muon": False}]), *PV_IF_ANY]


def rich(min_p: float, eta: tuple[float, float], windows: Sequence[tuple[float, float]]) -> tuple[Track, Sides]:
    """A pt below the cut of 500 contradicts the cuts on p and eta."""
    p, middle = 2 * min_p, sum(eta) / 2
    pt = p / math.cosh(middle)
    base = Track(p=p, pt=pt, phi=windows[0][0] + 0.05, chi2=1.0)
    azimuth = [
        Side({"phi": sign * (edge + step)}, selected=(step > 0) == (edge == window[0]))
        for window in windows
        for edge in window
        for sign in (1, -1)
        for step in (1e-4, -1e-4)
    ]
    slopes = [
        Side({"pt": p / math.cosh(edge + step)}, selected=(step > 0) == (edge == eta[0]))
        for edge in eta
        for step in (1e-4, -1e-4)
    ]
    momenta = [Side({"p": min_p * f, "pt": pt * min_p * f / p}, selected=f > 1) for f in (1.001, 0.999)]
    return base, [*azimuth, *slopes, *momenta, *below("chi2", 2)]


def response_sides(vertex: Vertex, cut: float, base: Changes | None = None) -> Sides:
    """Both sides of a cut on the response, reached through each input of the network alone."""
    sides: list[Side] = []
    ranges = {"fd_chi2": (0.1, 1e5), "sum_pt": (100.0, 2e4), "min_ip_chi2": (4.5, 1e5), "chi2": (0.001, 19.9)}
    for name, (low, high) in ranges.items():
        near = _crossing(partial(_response, vertex, name), cut, low, high)
        pair = [changed(vertex, {name: near * f}) for f in (1.001, 0.999)]
        sides += [Side({**(base or {}), name: getattr(one, name)}, selected=network(one) > cut) for one in pair]
    return sides


def _response(vertex: Vertex, name: str, value: float) -> float:
    return network(changed(vertex, {name: value}))


def _crossing(function: Callable[[float], float], cut: float, low: float, high: float) -> float:
    """Where a function takes the value of a cut."""
    rising = function(high) > cut
    assert rising != (function(low) > cut), f"the cut is not between the values at {low} and {high}"
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if (function(middle) > cut) == rising else (middle, high)
    return low


def two_track_mva() -> tuple[Vertex, Sides]:
    base = Vertex(displaced=True, pv=Pv(), chi2=5.0, fd_chi2=60.0, sum_pt=5000.0, min_ip_chi2=50.0)
    sure = changed(base, {"fd_chi2": 1e5, "sum_pt": 2e4})
    cuts = [*above("min_pt", 200), *above("pt", 1000), *inside("eta", 2, 5), *above("m_corr", 1000)]
    cuts += [*below("chi2", 20), *below("doca", 0.2), *above("min_ip_chi2", 4), *PV_NEEDED]
    near = _relative_to(sure, base, 0.9569)
    return sure, [*cuts, *near, *only([{"same_sign": True}], [{"displaced": False}])]


def _relative_to(sure: Vertex, base: Vertex, cut: float, more: Changes | None = None) -> Sides:
    """Changes of `sure` that give `base` with a response on both sides of the cut."""
    inputs = {name: getattr(base, name) for name in ("fd_chi2", "sum_pt", "chi2", "min_ip_chi2")}
    return response_sides(base, cut, {**inputs, **(more or {})})


def charm() -> tuple[Vertex, Sides]:
    base = Vertex(displaced=True, pv=Pv(), chi2=5.0, fd_chi2=60.0, sum_pt=5000.0, min_ip_chi2=50.0)
    sure = changed(base, {"fd_chi2": 1e5, "sum_pt": 2e4, "m_kpi": D0, "m_pik": 2500.0, "pt": 1600.0})
    cuts = [*above("min_pt", 250), *above("min_p", 2000), *below("chi2", 20), *below("doca", 0.2)]
    cuts += [*above("min_ip_chi2", 4), *PV_NEEDED, *only([{"same_sign": True}], [{"displaced": False}])]
    slow = _next("pt", 1500, math.inf, selected=True).changes
    responses = [
        *_relative_to(sure, base, 0.92385, slow),
        *_relative_to(sure, changed(base, {"min_ip_chi2": 20.0}), 0.7, {"pt": 1500.0}),
    ]
    masses = [
        {"m_kpi": kpi, "m_pik": pik}
        for one in (1000.0, 1700.0, D0, D0 + 99.9)
        for kpi, pik in ((one, 2500.0), (2500.0, one))
    ]
    far = [{"m_kpi": D0 + 100.1}, {"m_kpi": 2500.0}, {"m_kpi": 2500.0, "m_pik": D0 + 100.1}]
    return sure, [*cuts, *responses, *only(masses, far)]


def d0(*names: str) -> tuple[Vertex, Sides]:
    """Masses under other hypotheses are far from the D0."""
    base = changed(Vertex(displaced=True, pv=Pv()), {names[0]: D0})
    cuts = [*above("pt", 2000), *above("min_pt", 800), *above("min_ip", 0.06), *below("chi2", 20)]
    cuts += [*below("doca", 0.2), *inside("eta", 2, 5), *OPPOSITE, *PV_IF_ANY]
    window = {name: [D0 + step for step in (-99.9, 0, 99.9)] for name in names}
    masses = [{names[0]: 1.0, name: mass} for name, near in window.items() for mass in near]
    far = [{names[0]: 1.0, name: D0 + step} for name in names for step in (-100.1, 100.1)]
    others = [{names[0]: 1.0, name: D0} for name in ("m_kk", "m_kpi", "m_pik", "m_pipi", "m_ppi") if name not in names]
    return base, [*cuts, *only(masses, [*far, *others, {"displaced": False}])]


def ks_to_pions() -> tuple[Vertex, Sides]:
    base = Vertex(ks=True, pv=Pv(), m_pipi=500.0)
    cuts = [*above("min_ip_chi2", 100), *below("chi2", 10), *below("ip", 0.3), *inside("m_pipi", 400, 600)]
    return base, [*cuts, *PV_IF_ANY, *only([{"lambda0": True}], [{"ks": False}, {"ks": False, "lambda0": True}])]


def good_ks(pt: float, track_pt: float, track_p: float, ip_chi2: float, combined_ip: float) -> tuple[Vertex, Sides]:
    pion = Track(p=2e4, pt=1000.0, ip=1.0)
    other = Track(p=1e4, pt=400.0, phi=0.3, ip=2.0)
    base = Vertex(track1=pion, track2=other, ks=True, pv=Pv(), m_pipi=500.0)
    cuts = [*below("chi2", 20), *above("pt", pt), *above("dira", 0.99), *inside("eta", 2, 4.2)]
    cuts += [*above("min_pt", track_pt), *above("min_p", track_p), *above("min_ip_chi2", ip_chi2)]
    cuts += [*inside("m_pipi", 455, 545), *PV_IF_ANY]
    cuts += only([{"lambda0": True}], [{"ks": False, "lambda0": True}])
    product = float(pion.ip * other.ip)
    displaced = [
        *around("ip", product / combined_ip, upper=True),
        *around("track1.ip", combined_ip * 0.1 / 2),
        *around("track2.ip", combined_ip * 0.1),
    ]
    return base, [*cuts, *displaced, *_openings(base)]


def _openings(base: Vertex) -> Sides:
    """A second track in the plane of the first, at angles on both sides of arccos(0.99)."""
    first = math.asin(float(base.track1.pt) / float(base.track1.p))
    angles = [math.acos(0.99) * f - first for f in (0.999, 1.001)]
    changes = [{"track2.phi": float(base.track1.phi) - math.pi, "track2.pt": 1e4 * math.sin(a)} for a in angles]
    return only(changes[:1], changes[1:])


def two_ks() -> tuple[V0Pair, Sides]:
    first, sides = good_ks(1150, 425, 3000, 15, 0.23)
    second = changed(first, {"track1": Track(p=3e4, pt=2000.0, ip=1.0), "pv": Pv(1.0)})
    return V0Pair(first, changed(second, {"ip": 0.2})), [*under("first", sides), *under("second", _scaled(sides))]


def _scaled(sides: Sides) -> Sides:
    """Changes that do not depend on the other fields of the V0."""
    return [s for s in sides if not any(name.startswith(("track", "ip")) for name in s.changes)]


def lambda_to_proton() -> tuple[Vertex, Sides]:
    """The pion has more pt than the proton, so that pt and p give different protons."""
    proton = Track(p=2e4, pt=800.0, ip=0.1, ip_chi2=20.0)
    pion = Track(p=1e4, pt=900.0, ip=0.5, ip_chi2=100.0)
    base = Vertex(track1=proton, track2=pion, lambda0=True, pv=Pv(), m_ppi=1115.0, m_pip=1200.0, x=3.0, y=4.0, z=100.0)
    swapped = {"track1": pion, "track2": proton, "m_ppi": 1200.0, "m_pip": 1115.0}
    cuts = [*below("doca", 0.5), *above("pt", 2500), *below("chi2", 16), *inside("z", -80, 650)]
    cuts += [*above("fd_chi2", 180), *above("dira", 0.9997), *only([{"ks": True}], [{"lambda0": False, "ks": True}])]
    cuts = [Side({"pv": Pv(-300.0), **s.changes}, s.selected) for s in cuts]
    cuts += [*around("z", 12), *_radius(2), *PV_NEEDED]
    of_proton = [*above("ip_chi2", 12), *above("ip", 0.08), *around("pt", 450)]
    of_pion = [*above("ip_chi2", 32), *above("ip", 0.2), *around("pt", 80)]
    for p, pi, mass, first in (("track1", "track2", "m_ppi", {}), ("track2", "track1", "m_pip", swapped)):
        sides = [*under(p, of_proton), *under(pi, of_pion), *below(mass, 1140)]
        cuts += [Side({**first, **s.changes}, s.selected) for s in sides]
    wrong_way = {"m_ppi": 1200.0, "m_pip": 1115.0}
    return base, [*cuts, *only([swapped], [wrong_way, {"track1": pion, "track2": proton}])]


def _radius(cut: float) -> Sides:
    """A distance from the z axis on both sides of a cut, in x, in y and in both."""
    return [
        Side({"x": cut * f * x, "y": cut * f * y}, selected=f > 1)
        for x, y in ((1.0, 0.0), (0.0, -1.0), (-0.6, 0.8))
        for f in (1.001, 0.999)
    ]


def dimuon(mass: float, pt: float, p: float, *more: Side) -> tuple[Vertex, Sides]:
    base = Vertex(dimuon=True, pv=Pv(), m_mumu=2 * mass + 10.0)
    cuts = [*above("min_pt", pt), *above("min_p", p), *below("doca", 0.2), *below("chi2", 25)]
    masses = above("m_mumu", mass) if mass else only([{"m_mumu": 1.0}], [{"m_mumu": 0.0}])
    return base, [*cuts, *masses, *more, *OPPOSITE, *PV_IF_ANY, *only([], [{"dimuon": False}])]


def dimuon_soft() -> tuple[Vertex, Sides]:
    base = Vertex(dimuon=True, pv=Pv(), m_mumu=300.0, x=3.0, y=4.0, z=100.0)
    masses = [*below("m_mumu", 400), *inside("m_mumu", 475, 600)]
    position = inside("z", -375, 635)
    cuts = [*above("min_ip_chi2", 100), *_radius(3), *below("doca", 0.1), *around("ip", 4.0, upper=True)]
    return base, [*masses, *position, *cuts, *OPPOSITE, *PV_NEEDED, *only([], [{"dimuon": False}])]


def dimuon_no_ip(*, same_sign: bool) -> tuple[Vertex, Sides]:
    first, second = Track(pt=2000.0, chi2=1.0), Track(pt=1500.0, chi2=1.0)
    base = Vertex(track1=first, track2=second, dimuon=True, same_sign=same_sign, pv=Pv())
    products = [*around("track1.pt", 1e6 / 1500), *around("track2.pt", 1e6 / 2000)]
    cuts = [*above("min_p", 5000), *above("pt", 1000), *below("doca", 0.3), *below("chi2", 9)]
    tracks = [*below("track1.chi2", 3), *below("track2.chi2", 3)]
    charges = SAME if same_sign else OPPOSITE
    return base, [*products, *cuts, *tracks, *charges, *PV_IF_ANY, *only([], [{"dimuon": False}])]


def drell_yan(low: float, high: float, *, same_sign: bool) -> tuple[Vertex, Sides]:
    base = Vertex(track1=Track(), track2=Track(), dimuon=True, same_sign=same_sign, pv=Pv(), m_mumu=(low + high) / 2)
    cuts = [*above("min_p", 15000), *above("min_pt", 1200), *below("doca", 0.15), *below("chi2", 16)]
    slopes = [*around("track1.pt", 2e4 / math.cosh(4.9)), *around("track2.pt", 2e4 / math.cosh(4.9))]
    charges = SAME if same_sign else OPPOSITE
    window = inside("m_mumu", low, high)
    return base, [*cuts, *slopes, *window, *charges, *PV_IF_ANY, *only([], [{"dimuon": False}])]


def displaced_dimuon(mass: Sides) -> tuple[Vertex, Sides]:
    base = Vertex(dimuon=True, pv=Pv(), m_mumu=3000.0)
    cuts = [*above("min_pt", 500), *below("chi2", 6), *above("min_ip_chi2", 6), *inside("eta", 2, 5)]
    return base, [*cuts, *mass, *OPPOSITE, *PV_IF_ANY, *only([], [{"dimuon": False}])]


def electron_mva() -> tuple[Track, Sides]:
    """Half of the pt is bremsstrahlung; the photon's share of p does not matter."""
    base = Track(p=2e5, pt=5000.0, chi2=1.0, ip=1.0, ip_chi2=1e4, is_electron=True, pv=Pv())
    curve = [
        Side({"pt": 500 * s, "brem_et": 500 * s, "ip_chi2": math.exp(curve_of_ip(s, 1.0, 3.0) + step)}, step > 0)
        for s in (1.3, 2.5, 4.0, 12.0, 25.9)
        for step in (0.001, -0.001)
    ]
    flat = [Side({"pt": 26100.0, "ip_chi2": 3 * f}, selected=f > 1) for f in (1.001, 0.999)]
    slow = only([], [{"pt": 1000 * s, "ip_chi2": 1e9} for s in (0.5, 0.9, 0.999)])
    kind = only([{"is_muon": True}, {"positive": False}], [{"is_electron": False}])
    return base, [*curve, *flat, *slow, *kind, *below("chi2", 2.5), *PV_IF_ANY]


def high_pt_electron() -> tuple[Track, Sides]:
    base = Track(p=5e4, pt=7000.0, chi2=1.0, is_electron=True, pv=Pv())
    brem = [Side({"pt": 4000.0, "brem_et": 2000.0 + step}, selected=step > 0) for step in (1.0, -1.0)]
    kind = only([{"positive": False}, {"is_muon": True}], [{"is_electron": False}])
    return base, [*kind, *brem, *around("pt", 6000), *below("chi2", 100), *PV_IF_ANY]


def displaced_leptons() -> tuple[Event, Sides]:
    """An electron and a muon; each cut is tried on one of them."""
    electron = Track(pt=1500.0, ip_chi2=10.0, is_electron=True, pv=Pv())
    muon = Track(pt=1500.0, ip_chi2=10.0, is_muon=True, pv=Pv())
    of_electron = [
        *above("ip_chi2", 7.4),
        *around("pt", 1000),
        *[Side({"pt": 600.0, "brem_et": 400.0 + step}, selected=step > 0) for step in (1.0, -1.0)],
        *PV_IF_ANY,
        *only([{"is_muon": True, "is_electron": False}], [{"is_electron": False}]),
    ]
    of_muon = [
        *above("ip_chi2", 7.4),
        *around("pt", 1000),
        *PV_IF_ANY,
        *only([], [{"is_muon": False}, {"pt": 600.0, "brem_et": 1e4}]),
    ]
    tried: list[tuple[tuple[Track, ...], bool]]
    tried = [((changed(electron, s.changes), muon), s.selected) for s in of_electron]
    tried += [((electron, changed(muon, s.changes)), s.selected) for s in of_muon]
    tried += [((electron,), False), ((changed(electron, {"is_muon": True}),), False), ((electron, muon, muon), True)]
    base = Event(long_tracks=(electron, muon))
    return base, [Side({"long_tracks": tracks}, selected) for tracks, selected in tried]


def of_both(sides: Sides) -> Sides:
    """The same changes for either track."""
    return [*under("track1", sides), *under("track2", sides)]


def electrons(**others: Any) -> Dielectron:
    first = Track(p=3e4, pt=2000.0, ip=2.0, ip_chi2=20.0, is_electron=True, pv=Pv())
    second = changed(first, {"phi": 0.3, "positive": False})
    return Dielectron(**{"track1": first, "track2": second, "pv": Pv(), "z": 50.0, **others})


def displaced_dielectron() -> tuple[Dielectron, Sides]:
    tracks = [*above("ip_chi2", 7.4), *around("pt", 500)]
    tracks += [Side({"pt": 300.0, "brem_et": 200.0 + step}, selected=step > 0) for step in (1.0, -1.0)]
    cuts = [*of_both(tracks), *below("doca", 0.082), *below("chi2", 7.4), *above("z", -341)]
    return electrons(), [*cuts, *only([{"same_sign": True}, {"pv": None}, {"mass": 1e5}])]


def low_mass_dielectron(masses: tuple[float, float], displaced: bool, same_sign: bool) -> tuple[Dielectron, Sides]:
    base = electrons(mass=sum(masses) / 2, same_sign=same_sign)
    cuts = [*inside("mass", *masses), *below("doca", 0.082), *below("chi2", 7.4), *above("z", -341)]
    if displaced:
        small = {"track1.pt": 450.0, "track2.pt": 450.0}
        kind = [Side({**small, "track2.brem_et": 100.0 + step}, selected=step > 0) for step in (1.0, -1.0)]
        kind += of_both(above("ip_chi2", 2))
    else:
        # Two electrons above 500 MeV are above 1,000 MeV together.
        base = changed(base, {"track1.ip_chi2": 1.0, "track2.ip_chi2": 30.0})
        kind = [*below("track1.ip_chi2", 2), *only([{"track2.ip_chi2": 1.0}, {"track2.ip_chi2": 1e6}])]
        kind += of_both(around("pt", 500))
    charges = SAME if same_sign else OPPOSITE
    return base, [*cuts, *kind, *charges, *only([{"pv": None}])]


def network_dielectron(nn: float, ip_chi2: float | None, same_sign: bool) -> tuple[Dielectron, Sides]:
    base = electrons(mass=100.0, same_sign=same_sign)
    base = changed(base, {"track1.electron_nn": 0.99, "track2.electron_nn": 0.98})
    cuts = [*inside("mass", 5, 300), *below("doca", 0.082), *below("chi2", 7.4), *above("z", -341)]
    cuts += of_both(above("electron_nn", nn))
    if ip_chi2 is None:
        # Two electrons above 500 MeV are above 1,000 MeV together.
        cuts += [*of_both(around("pt", 500)), *only([{"track1.ip_chi2": 0.0, "track2.ip_chi2": 0.0}])]
    else:
        small = {"track1.pt": 450.0, "track2.pt": 450.0}
        cuts += [Side({**small, "track2.brem_et": 100.0 + step}, selected=step > 0) for step in (1.0, -1.0)]
        cuts += [*of_both(above("ip_chi2", ip_chi2)), *only([{"track1.pt": 1.0}])]
    charges = SAME if same_sign else OPPOSITE
    return base, [*cuts, *charges, *only([{"pv": None}])]


def high_mass_dielectron(*, same_sign: bool) -> tuple[Dielectron, Sides]:
    base = electrons(mass=9000.0, same_sign=same_sign)
    tracks = [*around("pt", 1500)]
    tracks += [Side({"pt": 1000.0, "brem_et": 500.0 + step}, selected=step > 0) for step in (1.0, -1.0)]
    tracks += around("p", 14000)
    tracks += [Side({"p": 12000.0, "brem_energy": 2000.0 + step}, selected=step > 0) for step in (1.0, -1.0)]
    # At p = 120 GeV, pt is above 1,500 MeV on both sides of the cut on eta.
    tracks += [Side({"p": 1.2e5, "pt": 1.2e5 / math.cosh(5.0 + step)}, selected=step < 0) for step in (1e-4, -1e-4)]
    exact = [*at_least("z", -330), Side({"doca": 0.2}, selected=True), _next("doca", 0.2, math.inf, selected=False)]
    charges = SAME if same_sign else OPPOSITE
    return base, [*of_both(tracks), *inside("mass", 8000, 140000), *exact, *charges, *only([{"pv": None}])]


def soft_dielectron() -> tuple[Dielectron, Sides]:
    base = electrons(x=3.0, y=4.0, z=100.0, ip=0.1, mass=300.0)
    veto = only([{"m_pipi": 482.9}, {"m_pipi": 513.1}], [{"m_pipi": 483.0}, {"m_pipi": 500.0}, {"m_pipi": 513.0}])
    position = [Side({"pv": Pv(-400.0), **s.changes}, s.selected) for s in inside("z", -375, 635)]
    position = [Side({**s.changes, "ip": 0.0001}, s.selected) for s in position]
    cuts = [*below("mass", 800), *below("doca", 0.1), *_radius(3), *of_both(at_least("ip", 1.4))]
    cuts += around("ip", 0.45, upper=True)
    angle = 0.002 / (2000.0 / 3e4)
    opening = [Side({"track2.phi": 0.1 + angle * f}, selected=f > 1) for f in (1.01, 0.99)]
    return base, [*veto, *position, *cuts, *opening, *OPPOSITE, *only([{"pv": NEAR, "ip": 0.01}], [{"pv": None}])]


def photons(mass: float, et: float, seeds: tuple[int, int] = (100, 200)) -> PhotonPair:
    return PhotonPair(Cluster(et, 0.9, seeds[0]), Cluster(1.1 * et, 0.8, seeds[1]), mass=mass)


def photon_pair_mass(masses: tuple[float, float], pt: float, et: float, sum_et: float) -> tuple[PhotonPair, Sides]:
    base = photons(sum(masses) / 2, 2 * et)
    each = [*above("et", et), *above("e19", 0.6)]
    cuts = [*under("first", each), *under("second", each), *inside("mass", *masses)]
    sums = [Side({"first.et": 1.01 * et, "second.et": sum_et - 1.01 * et + step}, step > 0) for step in (1.0, -1.0)]
    if sum_et <= 2 * et:
        sums = []  # each of both decides alone
    return base, [*cuts, *sums, *(at_least("pt", pt) if pt else only([{"pt": 0.0}]))]


SEEDS = {"outer": (0, 2687), "middle": (2688, 4479), "inner": (4480, 6015)}


def pi0(regions: tuple[str, str] | None = None) -> tuple[Event, Sides]:
    seeds = (SEEDS[regions[0]][0], SEEDS[regions[1]][1]) if regions else (100, 200)
    base = changed(photons(135.0, 1000.0, seeds), {"pt": 2000.0})
    each = [*above("et", 400), *above("e19", 0.7)]
    sides = [*under("first", each), *under("second", each), *inside("mass", 50, 300)]
    sides += around("pt", 1400)
    sides += [Side({"pt": 1000.0, "eta": 5.0 + step}, selected=step > 0) for step in (0.001, -0.001)]
    for one in SEEDS:
        for other in SEEDS:
            selected = regions is None or sorted((one, other)) == sorted(regions)
            for seeds in ((SEEDS[one][0], SEEDS[other][1]), (SEEDS[one][1], SEEDS[other][0])):
                sides.append(Side({"first.seed": seeds[0], "second.seed": seeds[1]}, selected))

    def event(pair: PhotonPair) -> dict[str, Any]:
        return {"clusters": (pair.first, pair.second), "photon_pairs": (PhotonPair(pair.first, pair.first), pair)}

    tried = [Side(event(changed(base, s.changes)), s.selected) for s in sides]
    return Event(**event(base)), [*tried, *only([], [{"primary_vertices": (Pv(),)}])]


Cases = tuple[Candidate, Sides]


def downstream(base: DownstreamV0, pt: float, ip: tuple[float, float], track_pt: float = 0) -> tuple[Candidate, Sides]:
    """Sides of the cuts that all lines on downstream V0s have."""
    sides = [*above("pt", pt), *above("min_pt", track_pt), *below("chi2", 10), *below("ip", ip[1])]
    return base, [*sides, *(at_least("ip", ip[0]) if ip[0] else only([{"ip": 0.0}]))]


def downstream_ks(pt: float, ip: tuple[float, float], track_pt: float = 0) -> tuple[Candidate, Sides]:
    base, sides = downstream(DownstreamV0(ks=True, m_pipi=497.0, ip=ip[1] - 1), pt, ip, track_pt)
    return base, [*sides, *inside("m_pipi", 472.6, 522.6), *only([], [{"ks": False}])]


def downstream_lambda(pt: float, ip: tuple[float, float]) -> tuple[Candidate, Sides]:
    base, sides = downstream(DownstreamV0(lambda0=True, m_ppi=1115.0, ip=ip[1] - 1), pt, ip)
    return base, [*sides, *inside("m_ppi", 1105.7, 1125.7), *only([], [{"lambda0": False}])]


def downstream_photon() -> tuple[Candidate, Sides]:
    base, sides = downstream(DownstreamV0(photon=True, m_ee=3.0), 1500, (0, 5))
    return base, [*sides, *below("m_ee", 10), *only([], [{"photon": False}])]


BOTH_SIDES: Mapping[str, Cases] = {
    "Hlt1Passthrough": (Event(), only([{"has_odin": False}, {"passes_gec": False}])),
    "Hlt1VeloMicroBias": (Event(velo_tracks=(VeloTrack(),)), only([], [{"velo_tracks": ()}])),
    "Hlt1ODINLumi": odin(8),
    "Hlt1ODINNoBias": odin(4),
    "Hlt1ODINVeloOpen": odin(1),
    "Hlt1VeloClustersMicroBias": (Event(n_velo_clusters=1), only([], [{"n_velo_clusters": 0}])),
    "Hlt1NoBeam": crossing(0),
    "Hlt1BeamOne": crossing(1),
    "Hlt1BeamTwo": crossing(2),
    "Hlt1BothBeams": crossing(3),
    "Hlt1BeamGas": gas(),
    "Hlt1GECPassthrough": (Event(), only([{"has_odin": False}], [{"passes_gec": False}])),
    "Hlt1ODIN1kHzLumi": odin(8, {"orbit": 31}),
    "Hlt1TAEPassthrough": time_alignment(),
    "Hlt1PassthroughPVinSMOG2": pv_in_gas(),
    "Hlt1TrackMVA": mva(296, 2.5, muon=False),
    "Hlt1TwoTrackMVA": two_track_mva(),
    "Hlt1TwoTrackMVACharmXSec": charm(),
    "Hlt1D2KK": d0("m_kk"),
    "Hlt1D2KPi": d0("m_kpi", "m_pik"),
    "Hlt1D2PiPi": d0("m_pipi"),
    "Hlt1KsToPiPi": ks_to_pions(),
    "Hlt1TwoTrackKs": good_ks(3500, 470, 5000, 50, 0.72),
    "Hlt1TwoKs": two_ks(),
    "Hlt1L02PPi": lambda_to_proton(),
    "Hlt1TrackMuonMVA": mva(0, 100, muon=True),
    "Hlt1SingleHighPtMuon": high_pt(6000, muon=True),
    "Hlt1SingleHighPtMuonNoMuID": high_pt(8000, muon=False),
    "Hlt1LowPtMuon": low_pt_muon(),
    "Hlt1DiMuonHighMass": dimuon(2700, 300, 6000),
    "Hlt1DiMuonLowMass": dimuon(0, 500, 3000, *at_least("min_ip_chi2", 4)),
    "Hlt1LowPtDiMuon": dimuon(220, 80, 3000, *at_least("min_ip_chi2", 9), *at_least("min_ip", 0.1)),
    "Hlt1DiMuonSoft": dimuon_soft(),
    "Hlt1DiMuonNoIP": dimuon_no_ip(same_sign=False),
    "Hlt1DiMuonNoIP_SS": dimuon_no_ip(same_sign=True),
    "Hlt1DiMuonDrellYan": drell_yan(5000, 250000, same_sign=False),
    "Hlt1DiMuonDrellYan_SS": drell_yan(5000, 250000, same_sign=True),
    "Hlt1DiMuonDrellYan_VLowMass": drell_yan(2900, 5000, same_sign=False),
    "Hlt1DisplacedDiMuon": displaced_dimuon(only([{"m_mumu": 1.0}])),
    "Hlt1DisplacedDiMuonAlignment": displaced_dimuon(at_least("m_mumu", 2700)),
    "Hlt1RICH1Alignment": rich(30000, (1.6, 2.04), RICH1),
    "Hlt1RICH2Alignment": rich(60000, (2.65, 2.8), RICH2),
    "Hlt1D2KPiAlignment": d0("m_kpi", "m_pik"),
    "Hlt1DiMuonHighMassAlignment": dimuon(9000, 300, 6000),
    "Hlt1DiMuonJpsiMassAlignment": dimuon(2500, 300, 6000),
    "Hlt1TrackElectronMVA": electron_mva(),
    "Hlt1SingleHighPtElectron": high_pt_electron(),
    "Hlt1DisplacedLeptons": displaced_leptons(),
    "Hlt1DisplacedDielectron": displaced_dielectron(),
    **{name: low_mass_dielectron(*cuts) for name, cuts in LOW_MASS.items()},
    **{name: network_dielectron(*cuts) for name, cuts in BY_NETWORK.items()},
    "Hlt1DiElectronHighMass": high_mass_dielectron(same_sign=False),
    "Hlt1DiElectronHighMass_SS": high_mass_dielectron(same_sign=True),
    "Hlt1DiElectronSoft": soft_dielectron(),
    "Hlt1SingleHighEt": (Cluster(2e4), above("et", 15000)),
    "Hlt1Bs2GammaGamma": photon_pair_mass((3000, 7000), 1000, 2500, 400),
    "Hlt1DiPhotonHighMass": photon_pair_mass((4200, 21000), 3000, 2800, 6000),
    "Hlt1Pi02GammaGamma": pi0(),
    "Hlt1Pi02GammaGammaOuter": pi0(("outer", "outer")),
    "Hlt1Pi02GammaGammaMiddle": pi0(("middle", "middle")),
    "Hlt1Pi02GammaGammaInner": pi0(("inner", "inner")),
    "Hlt1Pi02GammaGammaMiddleOuterMixed": pi0(("middle", "outer")),
    "Hlt1Pi02GammaGammaMiddleInnerMixed": pi0(("middle", "inner")),
    "Hlt1CaloDigitsMinADC": (Event(ecal_max_adc=500), only([{"ecal_max_adc": 4095}], [{"ecal_max_adc": 499}])),
    "Hlt1DownstreamKsToPiPi": downstream_ks(2000, (3, 30)),
    "Hlt1DownstreamKsToPiPiPrompt": downstream_ks(500, (0, 3)),
    "Hlt1DownstreamLambdaToPPi": downstream_lambda(2000, (3, 30)),
    "Hlt1DownstreamLambdaToPPiPrompt": downstream_lambda(500, (0, 3)),
    "Hlt1DownstreamGammaToEE": downstream_photon(),
    "Hlt1DownstreamTwoTrackKs": downstream_ks(3500, (0, 5), 550),
    **{f"Hlt1ConeJet{pt}GeV": (Jet(200e3), above("pt", 1000.0 * pt)) for pt in (15, 30, 50, 100)},
    "Hlt1VeloHalvesVertex": (HalfPair(9.0), at_least("n_tracks", 4.0)),
    "Hlt1VeloLargeClusters": large_clusters(),
    "Hlt1OneMuonTrack": (MuonStub(0.1, 0.1), [*below("chi2_x", 1), *below("chi2_y", 0.3)]),
}  # fmt: skip


def sides_of(line: str) -> Iterator[tuple[Candidate, bool, str]]:
    """Candidates for a line: the candidate, whether the line must select it, and what is changed."""
    base, sides = BOTH_SIDES[line]
    yield base, True, "the candidate"
    for side in sides:
        yield changed(base, side.changes), side.selected, str(dict(side.changes))
