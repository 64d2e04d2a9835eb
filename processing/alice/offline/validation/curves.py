"""Efficiency, fakes and clones in bins of transverse momentum, pseudorapidity and occupancy."""

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.alice.offline.validation.matching import MIN_PT, Score

Floats = NDArray[np.float64]

PT_BINS = np.array([0.0, MIN_PT, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 1000.0])
"""GeV/c. No reference is in the first bin."""
ETA_BINS = np.array([-1.5, -0.9, -0.6, -0.3, 0.0, 0.3, 0.6, 0.9, 1.5])
OCCUPANCY_BINS = np.array([0, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 2000000])
"""Clusters of the slice; for merged tracks those of the event, divided by the number of slices."""
AXES = {"of_pt": PT_BINS, "of_eta": ETA_BINS, "of_occupancy": OCCUPANCY_BINS}
"""Edges of the bins by the key of the result."""


class Curves:
    """Counts in bins of AXES: references and those found, tracks, fakes and clones.

    References are counted by their true values, tracks by their own. Values outside of the bins are left out.
    """

    def __init__(self) -> None:
        self._counts = {key: np.zeros((len(bins) - 1, 5), np.int64) for key, bins in AXES.items()}

    def add(
        self, of_references: tuple[Floats, Floats, Floats], of_tracks: tuple[Floats, Floats, Floats], score: Score
    ) -> None:
        """Count an event. of_references, of_tracks: transverse momentum, pseudorapidity and occupancy of each."""
        for (key, bins), references, tracks in zip(AXES.items(), of_references, of_tracks, strict=True):
            columns = (references, references[score.found], tracks, tracks[score.fakes], tracks[score.clones])
            for column, values in enumerate(columns):
                self._counts[key][:, column] += np.histogram(values, bins)[0]

    def result(self, key: str) -> list[dict[str, float | int | None]]:
        """For each bin: its edges, the references and their efficiency, the tracks and their fakes and clones."""
        bins = AXES[key]
        return [
            {
                "from": low,
                "to": high,
                "findable": findable,
                "efficiency": found / findable if findable else None,
                "tracks": tracks,
                "fakes": fakes / tracks if tracks else None,
                "clones": clones / tracks if tracks else None,
            }
            for low, high, (findable, found, tracks, fakes, clones) in zip(
                bins[:-1].tolist(), bins[1:].tolist(), self._counts[key].tolist(), strict=True
            )
        ]
