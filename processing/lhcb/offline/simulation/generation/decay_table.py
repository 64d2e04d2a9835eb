"""The particles of collisions that decay in flight. Units: mm, MeV."""

from dataclasses import dataclass

import numpy as np

from hltnode.processing.lhcb.offline.simulation.generation.spectra import KAON, PION, PROTON
from hltnode.processing.offline.particles.decays import MASS


@dataclass(frozen=True, slots=True)
class Decay:
    """A particle that decays in flight into two charged ones: mean number per collision, mass (MeV), c tau (mm); in a
    fraction `alone` of its decays there are no other products, in the others there is a neutral one."""

    per_collision: float
    pid: int
    mass: float
    c_tau: float
    pt_median: float
    daughters: tuple[int, int]
    alone: float = 1.0


# Lifetimes and masses: Particle Data Group. The D0 represents all decays of charm, the B those of b hadrons: it makes a
# D0 and, as a virtual W does, a pair of pions. Few of the D0 make a kaon and a pion alone. Numbers and transverse
# momenta are tuned to the long particles of fully simulated events (docs/simulation.md).
DECAYS = (
    Decay(3.4, 310, 497.6, 26.84, 500.0, (PION, -PION)),
    Decay(0.7, 3122, 1115.7, 78.9, 700.0, (PROTON, -PION)),
    Decay(0.40, 421, 1864.8, 0.123, 1000.0, (-KAON, PION), alone=0.015),
    Decay(0.013, 511, 5279.7, 0.455, 2500.0, (PION, -PION), alone=0.0),
)
K_SHORT_PID = 310  # its own antiparticle
K_SHORT, LAMBDA, CHARM, BEAUTY = 0, 1, 2, 3
STRANGE = (K_SHORT, LAMBDA)
"""Places in DECAYS."""
DECAY_RATE = np.array([decay.per_collision for decay in DECAYS])
ALONE = np.array([decay.alone for decay in DECAYS])
DECAY_PID = np.array([decay.pid for decay in DECAYS])
DECAY_MASS, DECAY_LENGTH, DECAY_PT = np.array([(it.mass, it.c_tau, it.pt_median) for it in DECAYS]).T
DAUGHTERS = np.array([decay.daughters for decay in DECAYS])
DAUGHTER_MASSES = np.array([[MASS[abs(pid)] for pid in decay.daughters] for decay in DECAYS])
