"""The response of the UT to charged particles: strips with charge, clusters, and their LHCbIDs. Units: mm."""

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.ideal_ut import DX_DY
from hltnode.processing.lhcb.geometry.ut import LAYER_OFFSETS, UtGeometry
from hltnode.processing.lhcb.offline.simulation.response.strip_clusters import (
    Clusters,
    Crossings,
    cluster,
    links,
    share_charge,
)
from hltnode.processing.offline.arrays import Float64Array, Int64Array
from hltnode.processing.offline.event_random import EventRandom
from hltnode.processing.offline.sorting import ranges
from hltnode.protocol.lhcb.bank_versions import UtVersion
from hltnode.protocol.lhcb.banks.ut import N_LANES, N_STRIPS, UtCharges, UtHits
from hltnode.protocol.lhcb.lhcb_id import ut_lhcb_id

N_LAYERS = 4
HIT_EFFICIENCY = 0.995
# Fraction of the particles whose signal is seen again a bunch crossing later, and noise clusters per event.
_SPILL_OVER = 0.005
_NOISE_PER_EVENT = 63.0
_DEAD_FRACTION = 0.002

# Charge of a particle in ADC counts: most probable value and relative spread; thresholds of a strip and of the flag.
_CHARGE, _CHARGE_SPREAD = 20.5, 0.38
_THRESHOLD, _HIGH_THRESHOLD = 5.5, 10.0
_LARGEST_ADC = 31
# Depth of silicon that collects, and the width (in strips) over which charge spreads for a perpendicular path.
_DEPTH, _DIFFUSION = 0.32, 0.25
# The front end cuts clusters into pieces of this number of strips.
_PIECE = 4
# Charge below which a strip is ignored.
_LEAST_CHARGE = 0.2
_NOISE_CHARGE = 7.5

# The innermost sensors have a cut-out for the beam pipe (mm).
_HOLE = 33.4

# How far (mm) a sensor's cells reach beyond it: particles are looked up in the plane of the layer, not of the sensor.
_MARGIN = np.array((-3.0, 9.0))
# Cells (mm) of the map that finds the sensors at a place, and how many may overlap there.
_CELL, _MAX_OVERLAP = 6.0, 4
_MAP_HALF = (960.0, 780.0)


@dataclass(frozen=True, slots=True, eq=False)
class UtResult:
    """The UT hits of a chunk, clusters (bank version 3) or single strips (version 4).

    `event` i64[n], rising; `hits`, and the `charges` of clusters; which flight (rising) made which hit: `particle`
    i64[m] and `lhcb_id`.
    """

    event: Int64Array
    hits: UtHits
    charges: UtCharges
    particle: Int64Array
    lhcb_id: NDArray[np.uint32]


class UtResponse:
    """The response of a UT of given geometry; immutable, so that one can be used for all events."""

    def __init__(self, geometry: UtGeometry, version: int) -> None:
        """`version` of the banks: UtVersion."""
        self._geometry = geometry
        self._version = version
        self._lane = geometry.lane_of_sector()
        self._layer_of_sector = geometry.layer_of_sector.astype(np.int64)
        self.layer_z = np.array([np.abs(geometry.p0[a:b, 2]).mean() for a, b in itertools.pairwise(LAYER_OFFSETS)])
        self._p0, self._step = geometry.p0.astype(np.float64), geometry.dp0di.astype(np.float64)
        self._map = self._sectors_at_places()
        self._dead = np.random.default_rng(0x5554).random(len(self._p0) * (N_STRIPS + 1)) < _DEAD_FRACTION

    def _sectors_at_places(self) -> NDArray[np.int16]:
        """The sectors that may cover a cell of the map, [layer, cell of s, cell of y, number]: -1 where there is none.

        Strips measure s = x - dx/dy y.
        """
        n_s, n_y = (int(2 * half / _CELL) for half in _MAP_HALF)
        found = np.full((N_LAYERS, n_s, n_y, _MAX_OVERLAP), -1, dtype=np.int16)
        for sector, layer in enumerate(self._layer_of_sector.tolist()):
            p0, step, dy = self._p0[sector], self._step[sector], float(self._geometry.dy[sector])
            s = np.sort(p0[0] + step[0] * np.array([-0.5, N_STRIPS - 0.5]))
            ends = p0[1] + np.array([0.0, dy, N_STRIPS * step[1], N_STRIPS * step[1] + dy])
            y = np.array([ends.min(), ends.max()])
            (s0, s1), (y0, y1) = (
                np.clip(((edge + half + _MARGIN) // _CELL).astype(int), 0, n)
                for edge, half, n in ((s, _MAP_HALF[0], n_s), (y, _MAP_HALF[1], n_y))
            )
            cells = found[layer, s0:s1, y0:y1]
            free = (cells >= 0).sum(axis=2)
            np.put_along_axis(cells, np.minimum(free, _MAX_OVERLAP - 1)[..., None], sector, axis=2)
        return found

    def _places(self, crossings: Crossings) -> tuple[Int64Array, Int64Array, Float64Array]:
        """Crossing, sector and place in strips (0.5 is the middle of the first) of crossings with sensors."""
        cells = []
        stereo = np.array(DX_DY)[crossings.layer]
        s = crossings.x - stereo * crossings.y
        for place, half in ((s, _MAP_HALF[0]), (crossings.y, _MAP_HALF[1])):
            cells.append(((place + half) / _CELL).astype(np.int64))
        inside = (s > -_MAP_HALF[0]) & (cells[0] < self._map.shape[1])
        inside &= (crossings.y > -_MAP_HALF[1]) & (cells[1] < self._map.shape[2])
        index = np.flatnonzero(inside)
        candidates = self._map[crossings.layer[index], cells[0][index], cells[1][index]].astype(np.int64)
        where, number = np.nonzero(candidates >= 0)
        sector, crossing = candidates[where, number], index[where]
        p0, step = self._p0[sector], self._step[sector]
        dz = np.abs(p0[:, 2]) - self.layer_z[crossings.layer[crossing]]
        y = crossings.y[crossing] + crossings.ty[crossing] * dz
        x = crossings.x[crossing] + crossings.tx[crossing] * dz
        n = (x - stereo[crossing] * y - p0[:, 0]) / step[:, 0]
        from_end = (y - p0[:, 1] - n * step[:, 1]) / self._geometry.dy[sector]
        hit = (n > -0.5) & (n < N_STRIPS - 0.5) & (from_end > 0) & (from_end < 1) & (self._lane[sector] >= 0)
        hit &= np.hypot(x, y) > _HOLE
        return crossing[hit], sector[hit], n[hit] + 0.5

    def respond(self, random: EventRandom, crossings: Crossings) -> UtResult:
        """The hits of crossings of the four layers."""
        crossings = crossings.with_spill_over(random, _SPILL_OVER)
        crossing, sector, place = self._places(crossings)
        seen = random.chance(crossings.event[crossing], HIT_EFFICIENCY)
        crossing, sector, place = crossing[seen], sector[seen], place[seen]
        event = crossings.event[crossing]
        slope = np.abs(crossings.tx[crossing] - np.array(DX_DY)[crossings.layer[crossing]] * crossings.ty[crossing])
        width = _DIFFUSION + slope * _DEPTH / self._geometry.pitch[sector]
        stretch = np.sqrt(1 + slope**2)
        charge = _CHARGE * stretch * np.exp(_CHARGE_SPREAD * random.normal(event))
        charge[crossings.row[crossing] < 0] *= 0.7  # late charge
        deposit, strip, part = share_charge(place, width, charge, N_STRIPS, _LEAST_CHARGE)
        noise = self._noise(random)
        channel = np.concatenate([self._numbers(event[deposit], sector[deposit], strip), noise])
        clusters = cluster(
            channel,
            np.concatenate([part, np.full(len(noise), _NOISE_CHARGE)]),
            self._dead[channel % len(self._dead)],
            threshold=_THRESHOLD,
            seed=_THRESHOLD,
            total=_THRESHOLD,
            longest=_PIECE,
        )
        particle, hit = links(
            crossings.row[crossing[deposit]], clusters.of_deposit[: len(deposit)], len(clusters.first)
        )
        make = self._strips_of if self._version == UtVersion.STRIPS else self._clusters
        return make(clusters, particle, hit)

    def _numbers(self, event: Int64Array, sector: Int64Array, strip: Int64Array) -> Int64Array:
        return (event * len(self._p0) + sector) * (N_STRIPS + 1) + strip

    def _noise(self, random: EventRandom) -> Int64Array:
        counts = random.poisson(np.full((len(random), 1), _NOISE_PER_EVENT))[:, 0]
        event = np.repeat(np.arange(len(random)), counts)
        u = random.uniform(event, 2)
        sector = (u[:, 0] * len(self._p0)).astype(np.int64)
        known = self._lane[sector] >= 0
        return self._numbers(event, sector, (u[:, 1] * N_STRIPS).astype(np.int64))[known]

    def _clusters(self, clusters: Clusters, particle: Int64Array, hit: Int64Array) -> UtResult:
        """Hits of version 3: the centre of each cluster, in quarters of a strip."""
        strip, fraction = np.divmod(np.floor(4 * clusters.position + 0.5).astype(np.int64), 4)
        is_wide, is_high = clusters.size >= 3, clusters.charge >= _HIGH_THRESHOLD
        flags = is_wide.astype(np.uint32) | is_high.astype(np.uint32) << np.uint32(1)
        event, hits, ids = self._hits(
            clusters.first + strip, fraction.astype(np.uint32), flags, np.zeros(len(strip), np.uint32)
        )
        charges = UtCharges(
            neighbour_sum=(clusters.size % 3).astype(np.int8),
            n_strips=clusters.size.astype(np.uint32),
            adc=_adc(clusters).astype(np.uint8),
        )
        return UtResult(event, hits, charges, particle, ids[hit])

    def _strips_of(self, clusters: Clusters, particle: Int64Array, hit: Int64Array) -> UtResult:
        """Hits of version 4: every strip of each cluster."""
        strips = ranges(clusters.first, clusters.size)
        none = np.zeros(len(strips), np.uint32)
        event, hits, ids = self._hits(strips, none, none, _adc(clusters))
        start = np.cumsum(clusters.size) - clusters.size
        ids = ids[ranges(start[hit], clusters.size[hit])]
        no_charges = UtCharges(np.empty(0, np.int8), np.empty(0, np.uint32), np.empty(0, np.uint8))
        return UtResult(event, hits, no_charges, np.repeat(particle, clusters.size[hit]), ids)

    def _hits(
        self, number: Int64Array, fraction: NDArray[np.uint32], flags: NDArray[np.uint32], adc: NDArray[np.uint32]
    ) -> tuple[Int64Array, UtHits, NDArray[np.uint32]]:
        """Events, hits and LHCbIDs of strips by their number in the chunk."""
        sector, strip = np.divmod(number, N_STRIPS + 1)
        event, sector = np.divmod(sector, len(self._p0))
        lane = self._lane[sector]
        from_first = np.where(self._p0[sector, 2] < 0, N_STRIPS - 1 - strip, strip)
        hits = UtHits(
            board=(lane // N_LANES).astype(np.uint32),
            lane=(lane % N_LANES).astype(np.uint32),
            strip=(from_first + self._geometry.first_strip[sector]).astype(np.uint32),
            fraction=fraction,
            flags=flags,
            adc=adc,
        )
        return event, hits, ut_lhcb_id(self._geometry.channel_of_lane[lane] + from_first.astype(np.uint32))


def _adc(clusters: Clusters) -> NDArray[np.uint32]:
    return np.minimum(np.round(clusters.channel_charge), _LARGEST_ADC).astype(np.uint32)
