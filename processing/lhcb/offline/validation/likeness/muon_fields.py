"""Which long particles have muon hits in the fields of interest that LHCb's muon identification asks for.

Source: F. Archilli et al., Performance of the muon identification at LHCb, JINST 8 (2013) P10020; half sizes of the
fields as in Allen.
"""

import numpy as np

from hltnode.processing.lhcb.geometry.muon import MuonHits
from hltnode.processing.lhcb.offline.validation.checker.particles import MUON
from hltnode.processing.lhcb.offline.validation.likeness.long_particles import LongParticles
from hltnode.processing.lhcb.offline.validation.likeness.tracking import Values
from hltnode.processing.offline.arrays import Mask
from hltnode.protocol.lhcb.truth_columns import McParticleColumns

# Half a field in units of half a pad, a + b exp(-c p / GeV): [station][a, b, c][x, y][region].
_FIELDS = np.array(
    (
        5.2, 3.6, 2.4, 2.4, 3.3, 2.1, 1.7, 1.6,
        31, 28, 21, 17, 17, 15, 9, 5,
        0.06, 0.08, 0.1, 0.15, 0.13, 0.19, 0.19, 0.24,
        5.7, 4.4, 2.8, 2.3, 3.6, 2.8, 1.9, 1.8,
        30, 31, 27, 22, 26, 25, 16, 15,
        0.04, 0.06, 0.09, 0.12, 0.11, 0.19, 0.21, 0.32,
        5.1, 3.1, 2.3, 2.1, 4.4, 3.3, 2.2, 2.2,
        28, 33, 35, 47, 30, 49, 57, 92,
        0.08, 0.15, 0.23, 0.36, 0.1, 0.22, 0.3, 0.52,
        5.8, 3.4, 2.6, 2.8, 4.8, 3.9, 2.6, 2.3,
        31, 39, 56, 151, 32, 55, 96, 166,
        0.07, 0.14, 0.24, 0.49, 0.08, 0.2, 0.34, 0.52,
    )
).reshape(4, 3, 2, 4)  # fmt: skip
_FACTOR = 1.2
# Where the lines to the muon stations start, mm.
_BEHIND_SCIFI = 9410.0
# Momenta (MeV) above which the third, and the third and fourth station are asked for.
_ONE_MORE, _BOTH = 6000.0, 10_000.0

MUON_RANGES = {"3_6": (3e3, 6e3), "6_10": (6e3, 1e4), "10_20": (1e4, 2e4), "above_20": (2e4, np.inf)}
"""Ranges of momentum (MeV), by the ends of the names of quantities."""


def is_muon(long: LongParticles, hits: MuonHits) -> Mask:
    """Whether each long particle has the hits of a muon of its momentum around its line behind the magnet."""
    x, y, tx, ty = long.behind(_BEHIND_SCIFI)
    gev = long.p[:, None] / 1000.0
    seen = np.zeros((4, len(x)), dtype=bool)
    for station in range(4):
        of = np.flatnonzero(hits.station == station)
        dz = hits.z[of] - _BEHIND_SCIFI
        a, b, c = _FIELDS[station][:, :, hits.region[of]]
        inside = np.ones((len(x), len(of)), dtype=bool)
        for axis, (place, slope, middle, half) in enumerate(((x, tx, hits.x, hits.dx), (y, ty, hits.y, hits.dy))):
            field = half[of] * (a[axis] + b[axis] * np.exp(-c[axis] * gev)) * _FACTOR
            inside &= np.abs(middle[of] - place[:, None] - slope[:, None] * dz) < field
        seen[station] = inside.any(axis=1)
    more = np.select([long.p < _ONE_MORE, long.p < _BOTH], [True, seen[2] | seen[3]], seen[2] & seen[3])
    found: Mask = seen[0] & seen[1] & more
    return found


def muon_values(long: LongParticles, particles: McParticleColumns, hits: MuonHits) -> Values:
    """Values for long particles: identified as muon or not; other particles than muons by range of momentum."""
    identified = is_muon(long, hits).astype(np.float64)
    true = np.abs(particles.values["pid"][long.row]) == MUON
    n_hits = np.bincount(hits.station, minlength=4)
    return {
        "muon_identified": identified[true],
        **{
            f"not_muon_identified_{end}": identified[~true & (long.p >= low) & (long.p < high)]
            for end, (low, high) in MUON_RANGES.items()
        },
        "not_muon_identified": identified[~true],
        **{f"muon_hits_m{2 + station}": np.array([n], np.float64) for station, n in enumerate(n_hits.tolist())},
    }
