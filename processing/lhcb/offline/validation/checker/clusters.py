"""VELO clusters judged by the truth: found hits, clones, fakes, residuals (docs/physics/validation.md).

A true hit is a pixel that the truth of an event gives to any particle. The truth of an LHCb event was made for one of
two encodings, and the centre of a cluster of the other encoding may lie on the next pixel. So a cluster belongs to the
nearest true hit within one pixel.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.offline.arrays import Float64Array, Int64Array
from hltnode.processing.offline.checks.binning import Binning
from hltnode.processing.offline.checks.counts import ratio
from hltnode.processing.offline.checks.residuals import ResidualHistogram
from hltnode.protocol.lhcb.lhcb_id import in_2022_scheme, velo_channel

_COLUMNS_OF_CHIP, _COLUMNS, _ROWS = 256, 768, 256
_SENSOR_SHIFT, _COLUMN_SHIFT = 18, 8
_NEAREST_FIRST = sorted(
    ((column, row) for column in (-1, 0, 1) for row in (-1, 0, 1)), key=lambda step: abs(step[0]) + abs(step[1])
)
# Largest residual with a bin of its own (µm): two pixels.
_LARGEST_RESIDUAL = 110.0
_RADIUS = Binning("$r$", "mm", np.array([0.0, 100.0]))


@dataclass(frozen=True, slots=True, eq=False)
class TrueHits:
    """Places of true hits of an event: LHCbIDs u32[n], position f64[n, 3] in mm."""

    ids: NDArray[np.uint32]
    position: Float64Array


class ClusterCounts:
    """Counts of clusters and true hits; events are added one at a time."""

    def __init__(self) -> None:
        self.clusters = self.true_hits = self.found = self.clones = 0
        self.residuals = {axis: ResidualHistogram(f"cluster {axis}", "µm", _LARGEST_RESIDUAL, _RADIUS) for axis in "xy"}

    @property
    def fakes(self) -> int:
        """Clusters that belong to no true hit."""
        return self.clusters - self.found - self.clones

    def add_event(
        self,
        ids: NDArray[np.uint32],
        position: NDArray[np.float32],
        true_ids: NDArray[np.uint32],
        places: TrueHits | None = None,
    ) -> None:
        """Compare the clusters of an event with its truth.

        ids: LHCbIDs u32[n] of the clusters; position: f32[n, 3] in mm; true_ids: the LHCbIDs of all particles, in any
        order and with repeats; places: of true hits, if the sample has them.
        """
        true = np.unique(_channels(true_ids))
        hit = _nearest(ids, true)
        self.clusters += len(ids)
        self.true_hits += len(true)
        n_found = len(np.unique(hit[hit >= 0]))
        self.found += n_found
        self.clones += int((hit >= 0).sum()) - n_found
        if places is not None:
            self._add_residuals(true, hit, position, places)

    def _add_residuals(
        self, true: Int64Array, hit: Int64Array, position: NDArray[np.float32], places: TrueHits
    ) -> None:
        """Count the distances of clusters from their true hits; hits without a place are left out."""
        channels, first = np.unique(_channels(places.ids), return_index=True)
        cluster = np.flatnonzero(hit >= 0)
        place = np.searchsorted(channels, true[hit[cluster]])
        known = place < len(channels)
        known[known] = channels[place[known]] == true[hit[cluster[known]]]
        cluster, expected = cluster[known], places.position[first[place[known]]]
        radius = np.hypot(expected[:, 0], expected[:, 1])
        for i, axis in enumerate("xy"):
            self.residuals[axis].add(1000 * (position[cluster, i] - expected[:, i]), radius)

    def result(self) -> dict[str, Any]:
        """The JSON object "clusters"; rates are None over nothing, residuals are there if the sample has places."""
        residuals = {axis: histogram.result()["summary"] for axis, histogram in self.residuals.items()}
        return {
            "clusters": self.clusters,
            "true_hits": self.true_hits,
            "found": self.found,
            "efficiency": ratio(self.found, self.true_hits),
            "clones": self.clones,
            "clone_rate": ratio(self.clones, self.found + self.clones),
            "fakes": self.fakes,
            "fake_rate": ratio(self.fakes, self.clusters),
            **{f"residual_{axis}": {"unit": "µm", **of} for axis, of in residuals.items() if of["entries"]},
        }


def _pixels(ids: NDArray[np.uint32]) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Sensor, column 0..767 and row of VELO LHCbIDs."""
    sensor, chip, column, row = (part.astype(np.int64) for part in velo_channel(in_2022_scheme(ids)))
    return sensor, chip * _COLUMNS_OF_CHIP + column, row


def _channels(ids: NDArray[np.uint32]) -> Int64Array:
    """Numbers that identify the pixels of an event."""
    sensor, column, row = _pixels(ids)
    return sensor << _SENSOR_SHIFT | column << _COLUMN_SHIFT | row


def _neighbours(ids: NDArray[np.uint32]) -> Iterator[Int64Array]:
    """The channels of the pixels themselves, then of their neighbours on the sensor, -1 outside of it."""
    sensor, column, row = _pixels(ids)
    for east, north in _NEAREST_FIRST:
        c, r = column + east, row + north
        inside = (c >= 0) & (c < _COLUMNS) & (r >= 0) & (r < _ROWS)
        yield np.where(inside, sensor << _SENSOR_SHIFT | c << _COLUMN_SHIFT | r, -1)


def _nearest(ids: NDArray[np.uint32], true: Int64Array) -> Int64Array:
    """For each cluster the number of its true hit (`true`: sorted channels), -1 without one."""
    found = np.full(len(ids), -1, dtype=np.int64)
    if not len(true):
        return found
    for channel in _neighbours(ids):
        place = np.minimum(np.searchsorted(true, channel), len(true) - 1)
        found = np.where((found < 0) & (true[place] == channel), place, found)
    return found
