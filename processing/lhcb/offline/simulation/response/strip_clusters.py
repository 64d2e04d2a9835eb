"""Clusters of neighbouring channels: made by the front ends of strips and fibres from the charge in each channel.

Channels of all sensors and events of a chunk are numbered together, with at least one number left out between sensors,
so that clusters never reach from one into the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from hltnode.processing.lhcb.offline.simulation import _native
from hltnode.processing.lhcb.offline.simulation.transport.propagation import LayerStates
from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask
from hltnode.processing.offline.event_random import EventRandom
from hltnode.processing.offline.sorting import distinct, stable_order


@dataclass(frozen=True, slots=True, eq=False)
class Crossings:
    """Particles in the layers of a detector, one row per crossing by rising event.

    `row` i64[n]: which flight (-1: a particle of another bunch crossing); `event`, `layer` i64[n]; `x`, `y` (mm), `tx`,
    `ty` f64[n] in the plane of the layer.
    """

    row: Int64Array
    event: Int64Array
    layer: Int64Array
    x: Float64Array
    y: Float64Array
    tx: Float64Array
    ty: Float64Array

    def __len__(self) -> int:
        return len(self.row)

    def take(self, rows: Int64Array | Mask) -> Self:
        """The chosen rows."""
        return type(self)(*(getattr(self, name)[rows] for name in Crossings.__slots__))

    @classmethod
    def of(cls, groups: Sequence[LayerStates], event: Int64Array, first_layer: int, last_layer: int) -> Self:
        """The crossings of layers first_layer to last_layer - 1, which are then counted from 0.

        The flights of each of the groups, with their events, follow those of the group before.
        """
        found = []
        before = 0
        for states in groups:
            row, layer = np.nonzero(states.reached[first_layer:last_layer].T)
            at = layer + first_layer, row
            row = row + before
            found.append(cls(row, event[row], layer, states.x[at], states.y[at], states.tx[at], states.ty[at]))
            before += states.reached.shape[1]
        return cls._by_event(found)

    def with_spill_over(self, random: EventRandom, rate: float) -> Self:
        """Add spill-over of the previous bunch crossing: copies of a fraction of these, mirrored in x and y, with row
        -1."""
        late = self.take(random.chance(self.event, rate))
        late = type(self)(np.full(len(late), -1), late.event, late.layer, -late.x, -late.y, -late.tx, -late.ty)
        return self._by_event([self, late])

    @classmethod
    def _by_event(cls, parts: list[Self]) -> Self:
        joined = cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in Crossings.__slots__))
        return joined.take(np.argsort(joined.event, kind="stable"))


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """Clusters by rising channel; arrays [n_clusters] unless given otherwise.

    `first` i64, `size` i64 in channels; `charge` f64, the sum; `position` f64, the charge-weighted mean channel as an
    offset from the first. `channel_charge` f64[sum of size], cluster after cluster. `of_deposit` i64[n_deposits]: the
    cluster of each deposit's channel, -1 if none.
    """

    first: Int64Array
    size: Int64Array
    charge: Float64Array
    position: Float64Array
    channel_charge: Float64Array
    of_deposit: Int64Array


def share_charge(
    centre: Float64Array, width: Float64Array, charge: Float64Array, n_channels: int, least: float
) -> tuple[Int64Array, Int64Array, Float64Array]:
    """Row, channel (0 ... n_channels - 1) and charge of the shares of deposits [n], by rising row and channel.

    `charge` spreads evenly over `width` around `centre` (both in channels; channel k reaches from k to k + 1). Shares
    up to `least`, and charge beyond the channels, are lost.
    """
    return _native.share(centre, width, charge, n_channels, least)


def cluster(
    channel: Int64Array,
    charge: Float64Array,
    dead: Mask,
    *,
    threshold: float,
    seed: float,
    total: float,
    longest: int = 1 << 20,
) -> Clusters:
    """Sum the deposits of each channel and join neighbours above `threshold`; one of them must pass `seed`.

    A cluster's charge must reach `total`. Wider clusters are cut into pieces of `longest` channels, which are clusters
    of their own. Deposits where `dead` is set are lost.
    """
    order, ordered = stable_order(channel)
    return Clusters(*_native.cluster(order, ordered, np.where(dead, 0.0, charge), threshold, seed, total, longest))


def links(row: Int64Array, cluster_of: Int64Array, n_clusters: int) -> tuple[Int64Array, Int64Array]:
    """Distinct pairs of particle and cluster, by rising particle; rows and clusters below 0 are left out."""
    pairs = (row * (n_clusters + 1) + cluster_of)[(row >= 0) & (cluster_of >= 0)]
    # Most repeats follow one another.
    pairs = distinct(pairs[np.diff(pairs, prepend=-1) != 0])
    particle, which = np.divmod(pairs, n_clusters + 1)
    return particle, which
