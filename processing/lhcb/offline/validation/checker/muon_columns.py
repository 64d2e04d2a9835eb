"""What identifies muons among long tracks, copied back from the device."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.lhcb.muon import collections as muon
from hltnode.processing.offline.arrays import Float64Array, Mask
from hltnode.processing.offline.workspace_columns import Objects

SCORE_COLUMNS = (muon.long_muon_hits, muon.long_muon_chi2, muon.long_muon_nn, muon.long_muon_features)


def has_scores(sequence: AlgorithmSequence) -> bool:
    """Whether a sequence evaluates the muon network."""
    return set(SCORE_COLUMNS) <= set(sequence.columns)


@dataclass(frozen=True, slots=True, eq=False)
class MuonScores:
    """Of long tracks: whether they have hits in their fields of interest, chi2 of these hits, response of the muon
    network, and features of trees, f32[n, 20]."""

    has_hits: Mask
    chi2: Float64Array
    network: Float64Array
    features: NDArray[np.float32]

    @classmethod
    def read(cls, of: Objects) -> Self:
        """From the long tracks of a batch."""
        return cls(
            has_hits=of(muon.long_muon_hits)[:, 0] != muon.NO_HIT,
            chi2=of(muon.long_muon_chi2).astype(np.float64),
            network=of(muon.long_muon_nn).astype(np.float64),
            features=of(muon.long_muon_features),
        )

    def take(self, rows: Mask) -> Self:
        """The chosen tracks."""
        return type(self)(self.has_hits[rows], self.chi2[rows], self.network[rows], self.features[rows])
