"""The luminometer PLUME: a statistical response to the number of interactions (docs/simulation.md)."""

import numpy as np

from hltnode.processing.lhcb.offline.simulation.generation.filling import Filling
from hltnode.processing.offline.arrays import Int64Array
from hltnode.protocol.lhcb.banks.plume import LUMI_CHANNELS, MAX_ADC, N_CHANNELS, encode_plume
from hltnode.protocol.raw_data.raw_bank import RawBank

HITS_PER_INTERACTION = 0.06
"""Mean number of particles in a photomultiplier."""
CHANNEL_EFFICIENCY = float(-np.expm1(-HITS_PER_INTERACTION))
"""Probability that an interaction fires a given channel: the visible mean of a channel is this times the mean number of
interactions."""

# ADC counts. A particle gives at least _SMALLEST counts, far above threshold and noise: a channel is over the threshold
# if and only if a particle hit it.
_THRESHOLD, _NOISE = 60.0, 3.0
_SMALLEST, _MEAN_ABOVE = 90.0, 60.0


def plume_banks(filling: Filling, n_collisions: Int64Array) -> list[RawBank]:
    """A bank for each event of a filling; n_collisions: i64[events]."""
    banks = []
    lumi = np.array(LUMI_CHANNELS)
    for rng, n in zip(filling.generators, (filling.background + n_collisions).tolist(), strict=True):
        adc = rng.normal(0.0, _NOISE, N_CHANNELS)
        hits = rng.poisson(HITS_PER_INTERACTION * n, len(lumi))
        adc[lumi] += _SMALLEST * hits + rng.gamma(hits, _MEAN_ABOVE)
        counts = np.clip(np.rint(adc), 0, MAX_ADC).astype(np.int64)
        banks.append(encode_plume(counts > _THRESHOLD, counts))
    return banks
