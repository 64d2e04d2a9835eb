"""Named samples: minimum bias, one signal decay in every event, or collisions of another kind.

Signals decay by phase space into charged particles that fly into the acceptance of the tracking, as the generator cuts
of LHCb's own samples have it. Units: mm, MeV.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from hltnode.processing.offline.arrays import Float64Array
from hltnode.processing.offline.particles.columns import ParticleColumns
from hltnode.processing.offline.particles.decays import LIGHT_MM_PER_NS, MASS, three_body_decay, two_body_decay


class Sample(StrEnum):
    """The kind of events."""

    MINBIAS = "minbias"
    BEAM_GAS = "beam_gas"
    BJPSIK = "bjpsik"
    BSPHIPHI = "bsphiphi"
    BSMUMU = "bsmumu"
    D2KPI = "d2kpi"
    D2KPIPI = "d2kpipi"
    DST2D0PI = "dst2d0pi"
    HE3 = "he3"
    JPSI = "jpsi"
    KS2PIPI = "ks2pipi"
    L2PPI = "l2ppi"
    LIGHT_ION = "light_ion"
    PBPB = "pbpb"
    SMOG2 = "smog2"
    TAU3MU = "tau3mu"
    TAUPHIMU = "tauphimu"
    XI2LPI = "xi2lpi"
    Z = "z"


@dataclass(frozen=True, slots=True)
class Resonance:
    """A particle that decays into two or three: PDG id, mass (MeV), c tau (mm), its daughters (resonances or PDG ids;
    three are stable ones), and the full width of its mass (MeV) if a detector could resolve it."""

    pid: int
    mass: float
    c_tau: float
    daughters: tuple["Resonance | int", ...]
    width: float = 0.0

    def masses(self, rng: np.random.Generator, n: int) -> Float64Array:
        """Masses f64[n] of a Breit-Wigner distribution, cut off at `_WIDTHS` and where the decay is impossible."""
        if self.width == 0.0:
            return np.full(n, self.mass)
        threshold: float = sum(part.mass if isinstance(part, Resonance) else MASS[abs(part)] for part in self.daughters)
        lowest = max(self.mass - _WIDTHS * self.width, threshold)
        first, last = (
            float(np.arctan(2 * (m - self.mass) / self.width)) for m in (lowest, self.mass + _WIDTHS * self.width)
        )
        masses: Float64Array = self.mass + 0.5 * self.width * np.tan(rng.uniform(first, last, n))
        return masses


@dataclass(frozen=True, slots=True)
class Signal:
    """A decay, the spectrum of its head (mean transverse momentum, range of rapidity), and its flavour."""

    head: Resonance
    mean_pt: float
    rapidity: tuple[float, float]
    from_beauty: bool = False
    from_charm: bool = False
    from_strange: bool = False


@dataclass(frozen=True, slots=True)
class Nucleus:
    """A nucleus straight from a collision: PDG id, charge, mean transverse momentum (MeV), range of pseudorapidity."""

    pid: int
    charge: int
    mean_pt: float
    eta: tuple[float, float]


# Largest distance of a mass from its middle, in widths.
_WIDTHS = 8.0

# Masses, widths and lifetimes: Particle Data Group. The widths of the J/psi (0.09 MeV) and of the D*+ (0.08 MeV) are
# far below any resolution.
_JPSI = Resonance(443, 3096.9, 0.0, (13, -13))
_PHI = Resonance(333, 1019.46, 0.0, (321, -321), width=4.249)
_D0 = Resonance(421, 1864.8, 0.1229, (-321, 211))
_LAMBDA = Resonance(3122, 1115.683, 78.9, (2212, -211))
SIGNALS = {
    Sample.BJPSIK: Signal(Resonance(521, 5279.3, 0.4911, (_JPSI, 321)), 5500.0, (1.8, 4.8), from_beauty=True),
    Sample.BSPHIPHI: Signal(Resonance(531, 5366.9, 0.4560, (_PHI, _PHI)), 5500.0, (1.8, 4.8), from_beauty=True),
    Sample.BSMUMU: Signal(Resonance(531, 5366.9, 0.4560, (13, -13)), 5500.0, (1.8, 4.8), from_beauty=True),
    Sample.JPSI: Signal(_JPSI, 3000.0, (1.8, 4.8)),
    Sample.KS2PIPI: Signal(Resonance(310, 497.611, 26.84, (211, -211)), 1200.0, (1.8, 4.8), from_strange=True),
    Sample.L2PPI: Signal(_LAMBDA, 1500.0, (1.8, 4.8), from_strange=True),
    Sample.TAU3MU: Signal(Resonance(15, 1776.93, 0.08703, (13, 13, -13)), 2600.0, (1.8, 4.8)),
    Sample.TAUPHIMU: Signal(Resonance(15, 1776.93, 0.08703, (_PHI, 13)), 2600.0, (1.8, 4.8)),
    Sample.D2KPI: Signal(_D0, 2600.0, (1.8, 4.8), from_charm=True),
    Sample.D2KPIPI: Signal(Resonance(411, 1869.66, 0.3097, (-321, 211, 211)), 2600.0, (1.8, 4.8), from_charm=True),
    Sample.DST2D0PI: Signal(Resonance(413, 2010.26, 0.0, (_D0, 211)), 2600.0, (1.8, 4.8), from_charm=True),
    Sample.XI2LPI: Signal(Resonance(3312, 1321.71, 49.1, (_LAMBDA, -211)), 1700.0, (1.8, 4.8), from_strange=True),
    Sample.Z: Signal(Resonance(23, 91187.6, 0.0, (13, -13), width=2495.5), 12_000.0, (1.6, 4.6)),
}

NUCLEI = {Sample.HE3: Nucleus(1000020030, 2, 2000.0, (4.5, 5.5))}
"""Nuclei fly near the beam, where the line on large clusters looks for them. Their spectrum is chosen here."""

# Acceptance of the generator (rad), and how many decays are tried at once to find one in it.
_ACCEPTANCE = (0.010, 0.400)
_TRIES = 64
# Particles of the signal that leave no hits have keys from here on.
_FIRST_KEY = 2_000_000


def signal_decay(rng: np.random.Generator, signal: Signal, vertex: Float64Array) -> ParticleColumns:
    """The final particles of one decay of a head made at `vertex` f64[3], all in the acceptance."""
    while True:
        pt = rng.gamma(2.0, signal.mean_pt / 2.0, _TRIES)
        phi = rng.uniform(-np.pi, np.pi, _TRIES)
        rapidity = rng.uniform(*signal.rapidity, _TRIES)
        mass = signal.head.masses(rng, _TRIES)
        pz = np.hypot(pt, mass) * np.sinh(rapidity)
        head = np.stack([pt * np.cos(phi), pt * np.sin(phi), pz], axis=1)
        sign = int(rng.integers(0, 2)) * 2 - 1
        flight = rng.exponential(signal.head.c_tau, _TRIES)
        pid = signal.head.pid if signal.head.pid in _SELF_CONJUGATE else sign * signal.head.pid
        own = _Decayed(pid, _FIRST_KEY, pt, flight)
        final = _products(rng, signal.head, mass, head, vertex + _flown(head, flight, mass), sign, own, own)
        inside = np.ones(_TRIES, dtype=bool)
        for product in final:
            theta = np.arctan2(np.hypot(product.momentum[:, 0], product.momentum[:, 1]), product.momentum[:, 2])
            inside &= (theta > _ACCEPTANCE[0]) & (theta < _ACCEPTANCE[1])
        if inside.any():
            break
    one = int(np.flatnonzero(inside)[0])
    ids = np.array([product.pid for product in final])
    charge = np.where(np.abs(ids) == 13, -np.sign(ids), np.sign(ids))
    particles = ParticleColumns.of(
        np.stack([product.origin[one] for product in final]),
        np.stack([product.momentum[one] for product in final]),
        ids,
        charge,
        mother=np.array([product.mother for product in final]),
        mother_key=np.array([product.mother_key for product in final]),
    )
    particles.from_signal[:] = True
    particles.from_beauty[:] = signal.from_beauty
    particles.from_charm[:] = signal.from_charm
    particles.from_strange[:] = signal.from_strange
    if signal.from_beauty or signal.from_charm:
        particles.dom_key[:] = [product.heavy.key for product in final]
        particles.dom_pid[:] = [product.heavy.pid for product in final]
        particles.dom_pt[:] = [product.heavy.pt[one] for product in final]
        particles.dom_tau[:] = [product.heavy.flight[one] / LIGHT_MM_PER_NS for product in final]
    return particles


def nucleus_from(rng: np.random.Generator, nucleus: Nucleus, vertex: Float64Array) -> ParticleColumns:
    """One nucleus, or its antiparticle, that starts at `vertex` f64[3]."""
    pt = rng.gamma(2.0, nucleus.mean_pt / 2.0)
    phi = rng.uniform(-np.pi, np.pi)
    eta = rng.uniform(*nucleus.eta)
    sign = int(rng.integers(0, 2)) * 2 - 1
    momentum = np.array([[pt * np.cos(phi), pt * np.sin(phi), pt * np.sinh(eta)]])
    pid, charge = np.array([sign * nucleus.pid]), np.array([sign * nucleus.charge])
    particles = ParticleColumns.of(vertex[None], momentum, pid, charge)
    particles.from_signal[:] = True
    return particles


@dataclass(frozen=True, slots=True, eq=False)
class _Decayed:
    """A resonance of all tries: id, key, pt f64[n_tries] (MeV), and proper flight f64[n_tries] (mm)."""

    pid: int
    key: int
    pt: Float64Array
    flight: Float64Array


@dataclass(frozen=True, slots=True, eq=False)
class _Product:
    """A final particle of all tries: momentum and origin f64[n_tries, 3], and its ancestor that flies: the head, or,
    behind a head without a lifetime, the first one with one."""

    pid: int
    momentum: Float64Array
    origin: Float64Array
    mother: int
    mother_key: int
    heavy: _Decayed


def _flown(momentum: Float64Array, flight: Float64Array, mass: Float64Array) -> Float64Array:
    """Way f64[n, 3] (mm) in a proper flight f64[n] (mm)."""
    way: Float64Array = momentum * flight[:, None] / mass[:, None]
    return way


def _products(
    rng: np.random.Generator,
    head: Resonance,
    mass: Float64Array,
    momentum: Float64Array,
    vertex: Float64Array,
    sign: int,
    own: _Decayed,
    heavy: _Decayed,
) -> list[_Product]:
    """The final particles of a resonance (its antiparticle for sign -1) of masses f64[n_tries], which decays at
    `vertex` f64[n_tries, 3]. own: the resonance itself; heavy: the ancestor of its final particles that flies."""
    masses = [
        part.masses(rng, len(mass)) if isinstance(part, Resonance) else np.full(len(mass), MASS[abs(part)])
        for part in head.daughters
    ]
    momenta: tuple[Float64Array, ...]
    if len(masses) == 2:
        momenta = two_body_decay(rng.normal(size=momentum.shape), momentum, mass, *masses)
    else:
        momenta = three_body_decay(rng, momentum, mass, *masses)
    found: list[_Product] = []
    key = own.key
    for part, its_mass, daughter in zip(head.daughters, masses, momenta, strict=True):
        if not isinstance(part, Resonance):
            found.append(_Product(sign * part, daughter, vertex, own.pid, own.key, heavy))
            continue
        key += 1
        at, flight = vertex, np.zeros(len(mass))
        if part.c_tau:
            flight = rng.exponential(part.c_tau, len(mass))
            at = vertex + _flown(daughter, flight, its_mass)
        pid = part.pid if part.pid in _SELF_CONJUGATE else sign * part.pid
        decayed = _Decayed(pid, key, np.hypot(daughter[:, 0], daughter[:, 1]), flight)
        flies = bool(part.c_tau) and not heavy.flight.any()
        found += _products(rng, part, its_mass, daughter, at, sign, decayed, decayed if flies else heavy)
    return found


_SELF_CONJUGATE = {443, 333, 310, 23}
