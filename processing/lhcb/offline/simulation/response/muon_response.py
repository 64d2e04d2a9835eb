"""The response of the muon stations: muons that pass calorimeters and iron, punch-through hadrons, and background.

Units: mm, MeV.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from hltnode.processing.lhcb.geometry.ideal_muon import cells_of_quarter
from hltnode.processing.lhcb.geometry.material import CALORIMETERS, MUON_FILTER, scattering_angle
from hltnode.processing.lhcb.geometry.muon import (
    N_QUARTERS,
    N_REGIONS,
    N_STATIONS,
    MuonGeometry,
    MuonTable,
    MuonTiles,
)
from hltnode.processing.lhcb.offline.simulation.response.muon_pads import PadFinder
from hltnode.processing.lhcb.offline.simulation.transport.propagation import Flights
from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask
from hltnode.processing.offline.event_random import EventRandom
from hltnode.processing.offline.sorting import distinct, ranges
from hltnode.protocol.lhcb.banks.muon import MAX_ADDRESS, MAX_TIME, MuonDigits, MuonPads, batch_of

# A station sees a particle that passes, with all channels of its pads: gaps of a chamber are read together
# (Performance of the LHCb muon system, JINST 8 (2013) P02022: 99 % and above).
HIT_EFFICIENCY = 0.99
_CROSS_TALK = 0.05  # a neighbour in x fires too
# Of the background single channels are missing.
_BACKGROUND_CHANNEL_EFFICIENCY = 0.965

# Middle of the material before each station (mm), its thickness in X0 and the energy loss of a muon in it (MeV): the
# calorimeters with what surrounds them, then 800 mm of iron each. Ranges as in the LHCb performance papers: 3 GeV to
# M3, 6 to M5.
_ABSORBER_Z = (13_500.0, 15_870.0, 17_070.0, 18_270.0)
_ABSORBER_X0 = (CALORIMETERS, MUON_FILTER, MUON_FILTER, MUON_FILTER)
_ABSORBER_LOSS = (2400.0, 1150.0, 1150.0, 1150.0)

# Hadrons whose showers reach behind the calorimeters: their fraction, its rise per GeV and its maximum, and the
# fraction that passes each filter.
_PUNCH_THROUGH, _PUNCH_THROUGH_PER_GEV, _PUNCH_THROUGH_MOST, _PUNCH_FILTER = 0.01, 0.0012, 0.04, 0.6

# Hits of everything else (showers from beam pipe and calorimeters, neutrons) in a real event, which has about this
# number of charged particles, by station and region: nine tenths of the real hits in M2, eight of the others, the rest
# are particles that pass. They form rectangular clusters, whose mean number of pads in x
# is given; those in y grow with it. A few are of large showers, longer and higher. Their density falls as a power of
# the distance from the beam, by region; the magnet spreads the hits of R1 along x, as if y were larger by this factor
# there.
_CHARGED = 294.0
_HITS = np.array(
    ((88.0, 44.5, 21.6, 7.3), (22.0, 8.2, 5.5, 5.4), (8.2, 3.0, 1.15, 1.0), (3.9, 2.2, 1.2, 1.7)),
)
_LENGTH = np.array(
    ((2.7, 2.1, 1.7, 1.35), (2.2, 1.4, 1.2, 1.15), (1.6, 1.2, 1.1, 1.1), (1.2, 1.2, 1.1, 1.2)),
)
_HEIGHT = 1 + 0.28 * (_LENGTH - 1)
_LARGE_PART, _LARGE_LENGTH, _LARGE_HEIGHT = 0.06, 3.5, 2.5
_LONGEST, _HIGHEST = 24, 8
_MEAN_PADS = _LENGTH * _HEIGHT * (1 + _LARGE_PART * (_LARGE_LENGTH * _LARGE_HEIGHT - 1))
BACKGROUND = _HITS / (_CHARGED * _MEAN_PADS * _BACKGROUND_CHANNEL_EFFICIENCY)
_THINNING = np.array((2.0, 2.0, 2.2, 3.0))
_FLATNESS = np.array((2.5, 1.1, 0.85, 0.8))

_MEAN_TIME, _TIME_SPREAD = 8.5, 3.5
_MAX_COLUMNS, _MAX_ROWS = 96, 16


def _geometric(u: Float64Array, mean: Float64Array, most: int) -> Int64Array:
    """Geometrically distributed numbers from 1 to `most`, from uniform ones."""
    number: Int64Array = 1 + (np.log1p(-u) / np.log1p(-1.0 / mean)).astype(np.int64)
    return np.minimum(number, most)


@dataclass(frozen=True, slots=True, eq=False)
class MuonResult:
    """The muon digits and pads of a chunk with their events, each by rising event."""

    event: Int64Array
    digits: MuonDigits
    pad_event: Int64Array
    pads: MuonPads


class MuonResponse:
    """The response of muon stations of given geometry; immutable, so that one can be used for all events."""

    def __init__(self, geometry: MuonGeometry) -> None:
        self._grid_x = geometry.pad.grid_x.astype(np.int64)
        tiles = self._all_pads()
        middles, halves = geometry.pad.positions(tiles)
        shape = (N_STATIONS, N_REGIONS, N_QUARTERS, _MAX_COLUMNS, _MAX_ROWS)
        place = (tiles.station, tiles.region, tiles.quarter, tiles.x, tiles.y)
        self._middle, self._half = np.full((*shape, 3), np.inf), np.zeros((*shape, 2))
        self._middle[place], self._half[place] = middles, halves
        self._digits = np.full((*shape, 2), -1, dtype=np.int64)
        for column, table in enumerate((geometry.x_strip, geometry.y_strip)):
            self._digits[(*place, column)] = self._addresses(geometry, tiles, table)
        self._pad_finder = PadFinder(self._digits)
        self.station_z = np.array([middles[tiles.station == station, 2].mean() for station in range(N_STATIONS)])
        # Places of columns and rows, seen from the collisions, in the middle plane of the station.
        scale = self.station_z[tiles.station] / middles[:, 2]
        self._columns = self._mean_places(place[:3], tiles.x, np.abs(middles[:, 0]) * scale, _MAX_COLUMNS)
        self._rows = self._mean_places(place[:3], tiles.y, np.abs(middles[:, 1]) * scale, _MAX_ROWS)
        order = np.lexsort((tiles.region, tiles.station))
        self._pads = tiles[order]
        region = tiles.region[order]
        weight = np.hypot(middles[order, 0], _FLATNESS[region] * middles[order, 1]) ** -_THINNING[region]
        self._weight_before = np.concatenate([[0.0], np.cumsum(weight)])
        self._first_pad = np.searchsorted(self._pads.layout, np.arange(N_STATIONS * N_REGIONS + 1))

    def _all_pads(self) -> MuonTiles:
        columns = []
        for station in range(N_STATIONS):
            for region in range(N_REGIONS):
                gx = int(self._grid_x[N_REGIONS * station + region])
                x, y = cells_of_quarter(gx, 8)
                columns += [
                    np.stack(np.broadcast_arrays(station, region, quarter, x, y, gx, 8))
                    for quarter in range(N_QUARTERS)
                ]
        return MuonTiles(*np.concatenate(columns, axis=1))

    @staticmethod
    def _addresses(geometry: MuonGeometry, pads: MuonTiles, table: MuonTable) -> Int64Array:
        """bank << 12 | address of the strips (or pads) of a table that cover pads; -1 where they are not read."""
        gx, gy = (grid.astype(np.int64)[pads.layout] for grid in (table.grid_x, table.grid_y))
        strips = MuonTiles(
            pads.station, pads.region, pads.quarter, pads.x * gx // pads.grid_x, pads.y * gy // pads.grid_y, gx, gy
        )
        known = np.concatenate(geometry.tile_of_address).astype(np.int64)
        code = np.concatenate(
            [bank << 12 | np.arange(len(tiles)) for bank, tiles in enumerate(geometry.tile_of_address)]
        )
        order = np.argsort(known)
        wanted = strips.ids().astype(np.int64)
        at = np.minimum(np.searchsorted(known[order], wanted), len(known) - 1)
        found: Int64Array = np.where(known[order][at] == wanted, code[order][at], -1)
        return found

    @staticmethod
    def _mean_places(place: tuple[Int64Array, ...], index: Int64Array, value: Float64Array, n: int) -> Float64Array:
        shape = (N_STATIONS, N_REGIONS, N_QUARTERS, n)
        flat = np.ravel_multi_index((*place, index), shape)
        total, number = (np.bincount(flat, weights, int(np.prod(shape))) for weights in (value, None))
        means: Float64Array = np.where(number > 0, total / np.maximum(number, 1), np.inf).reshape(shape)
        return means

    def respond(self, random: EventRandom, flights: Flights, muon: Mask, n_charged: Int64Array) -> MuonResult:
        """The digits of flights at positions behind the SciFi; `muon`: which are muons. `n_charged` per event."""
        parts = [self._penetrating(random, flights, muon), self._background(random, n_charged)]
        event, station, region, quarter, x, y = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.argsort(event, kind="stable")
        passed = order < len(parts[0][0])
        event, station, region, quarter, x, y = (column[order] for column in (event, station, region, quarter, x, y))
        talk = np.flatnonzero(random.chance(event, _CROSS_TALK))
        neighbour = np.minimum(x[talk] + 1, 2 * self._grid_x[N_REGIONS * station[talk] + region[talk]] - 1)
        x = np.concatenate([x, neighbour])
        event, station, region, quarter, y = (
            np.concatenate([column, column[talk]]) for column in (event, station, region, quarter, y)
        )
        passed = np.concatenate([passed, passed[talk]])
        return self._result(random, event, (station, region, quarter, x, y), passed)

    def _penetrating(self, random: EventRandom, flights: Flights, muon: Mask) -> tuple[Int64Array, ...]:
        """Pads of the particles that pass: event, station, region, quarter, x, y."""
        gev = np.maximum(flights.p, 1.0) / 1000.0
        through = random.uniform(flights.event) < np.where(
            muon, 1.0, np.minimum(_PUNCH_THROUGH + _PUNCH_THROUGH_PER_GEV * gev, _PUNCH_THROUGH_MOST)
        )
        chosen = np.flatnonzero(through & (flights.mass > 1.0))
        left = flights.take(chosen)
        muon = muon[chosen]
        found: list[Int64Array] = []
        for station, (z, thickness, loss) in enumerate(zip(_ABSORBER_Z, _ABSORBER_X0, _ABSORBER_LOSS, strict=True)):
            u, kick = random.uniform(left.event, 2), random.normal(left.event, 2)
            stretch = np.sqrt(1 + left.tx**2 + left.ty**2)
            left.p -= loss * stretch
            passes = (left.p > 50.0) & (muon | (u[:, 0] < (_PUNCH_FILTER if station else 1.0)))
            left, muon, u, kick = left.take(passes), muon[passes], u[passes], kick[passes]
            left.x += (z - left.z) * left.tx
            left.y += (z - left.z) * left.ty
            # Half of the energy is lost after the point where the particle scatters.
            angle = scattering_angle(left.p + 0.5 * loss, thickness)
            left.tx += kick[:, 0] * angle
            left.ty += kick[:, 1] * angle
            left.x += (self.station_z[station] - z) * left.tx
            left.y += (self.station_z[station] - z) * left.ty
            left.z[:] = self.station_z[station]
            seen = np.flatnonzero(u[:, 1] < HIT_EFFICIENCY)
            row, *pad = self._pads_at(station, left.x[seen], left.y[seen], left.tx[seen], left.ty[seen])
            event = left.event[seen][row]
            found.append(np.stack([event, np.full(len(event), station), *pad]))
        return tuple(np.concatenate(found, axis=1))

    def _pads_at(
        self, station: int, x: Float64Array, y: Float64Array, tx: Float64Array, ty: Float64Array
    ) -> tuple[Int64Array, ...]:
        """Row, region, quarter, x and y of the pads at places in the middle plane of a station.

        Columns and rows have different places in neighbouring chambers: a pad is looked for in the two nearest.
        """
        quarter = np.where(x > 0, np.where(y > 0, 0, 1), np.where(y > 0, 3, 2))
        found: list[Int64Array] = []
        for region in range(N_REGIONS):
            columns = self._two_nearest(self._columns[station, region], quarter, np.abs(x))
            rows = self._two_nearest(self._rows[station, region], quarter, np.abs(y))
            for column, row in product(columns, rows):
                middle = self._middle[station, region, quarter, column, row]
                half = self._half[station, region, quarter, column, row]
                with np.errstate(invalid="ignore"):  # pads that do not exist are infinitely far
                    dz = np.where(np.isfinite(middle[:, 2]), middle[:, 2] - self.station_z[station], 0.0)
                    inside = (np.abs(x + tx * dz - middle[:, 0]) < half[:, 0]) & (
                        np.abs(y + ty * dz - middle[:, 1]) < half[:, 1]
                    )
                hit = np.flatnonzero(inside)
                found.append(np.stack([hit, np.full(len(hit), region), quarter[hit], column[hit], row[hit]]))
        return tuple(np.concatenate(found, axis=1))

    @staticmethod
    def _two_nearest(places: Float64Array, quarter: Int64Array, value: Float64Array) -> Int64Array:
        """i64[2, n]: of the places of each value's quarter."""
        nearest: Int64Array = np.argpartition(np.abs(places[quarter] - value[:, None]), 1, axis=1)[:, :2].T
        return nearest

    def _background(self, random: EventRandom, n_charged: Int64Array) -> tuple[Int64Array, ...]:
        """Pads of particles that are not followed: event, station, region, quarter, x, y."""
        counts = random.poisson(n_charged[:, None] * BACKGROUND.ravel())
        layout = np.repeat(np.tile(np.arange(BACKGROUND.size), len(random)), counts.ravel())
        event = np.repeat(np.arange(len(random)), counts.sum(axis=1))
        u = random.uniform(event, 4)
        low, high = (self._weight_before[self._first_pad[layout + end]] for end in (0, 1))
        chosen = np.searchsorted(self._weight_before, low + u[:, 0] * (high - low), side="right") - 1
        pads = self._pads[np.minimum(chosen, len(self._pads.x) - 1)]
        is_large = u[:, 3] < _LARGE_PART
        length = _geometric(u[:, 1], np.where(is_large, _LARGE_LENGTH, 1.0) * _LENGTH.ravel()[layout], _LONGEST)
        height = _geometric(u[:, 2], np.where(is_large, _LARGE_HEIGHT, 1.0) * _HEIGHT.ravel()[layout], _HIGHEST)
        which = np.repeat(np.arange(len(event)), length * height)
        row, column = np.divmod(ranges(np.zeros_like(length), length * height), length[which])
        x = np.minimum(pads.x[which] + column, 2 * pads.grid_x[which] - 1)
        y = np.minimum(pads.y[which] + row, _MAX_ROWS - 1)
        return event[which], pads.station[which], pads.region[which], pads.quarter[which], x, y

    def _result(self, random: EventRandom, event: Int64Array, pads: tuple[Int64Array, ...], passed: Mask) -> MuonResult:
        """The read-out of pads; `passed`: those that a particle has passed."""
        codes = self._digits[pads]
        is_read = codes >= 0
        words = event[:, None] << 16 | codes
        digit = distinct(words[is_read])
        kept = random.chance(digit >> 16, _BACKGROUND_CHANNEL_EFFICIENCY)
        digit = digit[kept | np.isin(digit, words[is_read & passed[:, None]])]
        digit_event, code = digit >> 16, digit & 0xFFFF
        bank, address = (code >> 12).astype(np.uint32), (code & MAX_ADDRESS).astype(np.uint32)
        time = np.clip(np.rint(_MEAN_TIME + _TIME_SPREAD * random.normal(digit_event)), 0, MAX_TIME)
        digits = MuonDigits(bank, batch_of(bank, address), address, time.astype(np.uint32))
        pad = self._pad_finder.find(digit)
        found = MuonPads((pad >> 16 & 0xF).astype(np.uint32), (pad & 0xFFFF).astype(np.uint32))
        return MuonResult(digit_event, digits, pad >> 20, found)
