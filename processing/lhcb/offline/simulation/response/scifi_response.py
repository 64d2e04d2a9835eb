"""The response of the SciFi to charged particles: light in channels, front-end clusters, and their LHCbIDs. Units:
mm."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.ideal_scifi import CHANNELS_PER_SIPM, FIRST_MAT, N_LAYERS, SIPMS_PER_MAT
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.offline.simulation.response.strip_clusters import (
    Clusters,
    Crossings,
    cluster,
    links,
    share_charge,
)
from hltnode.processing.lhcb.offline.simulation.transport.propagation import Flights
from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask
from hltnode.processing.offline.event_random import EventRandom
from hltnode.protocol.lhcb.banks.scifi import MAX_CLUSTERS_PER_LINK, PIECE, SciFiWords, hits_of_words, words_of_clusters
from hltnode.protocol.lhcb.lhcb_id import scifi_lhcb_id

_SPILL_OVER = 0.01
_NOISE_PER_EVENT = 415.0
_DEAD_FRACTION = 0.002

# Photo-electrons of a particle close to the read-out of a mirrored mat, attenuation length of the light, and the
# thresholds of the front end: for a channel, for the highest of a cluster, for its sum (SciFi papers; LHCb-TDR-015).
_LIGHT, _ATTENUATION = 21.0, 3500.0
_THRESHOLD, _SEED, _TOTAL = 1.5, 2.5, 4.5
_NOISE_LIGHT = 5.0
# Depth of a mat, and the width (in channels) over which light spreads for a perpendicular path.
_MAT_DEPTH, _SPREAD = 0.9, 1.35
# Slow hadrons ionise more than others: at most by this factor. More light passes the threshold in channels further out
# (of tails, of cross-talk): each further amount equal to that of a fast particle widens by this number of channels.
_MOST_IONISATION, _WIDTH_OF_LIGHT = 6.0, 0.4
# Light of a path across fibres, relative to one through the mat: more than 1, as light that leaks between channels
# closes gaps. Set from the number of hits that real particles leave in a layer.
_LIGHT_OF_PATH = 2.2
# Electrons knocked out in the mat, and slow ones (MeV) that end in it, leave trails across the fibres: their fractions,
# the longest trail of the former and the mean length of the latter in channels.
_KNOCK_ON_PART, _KNOCK_ON_TRAIL = 0.07, 3.8
_STOPPING_PART, _STOPPING_TRAIL, _STOPPING_P = 0.08, 6.0, 60.0
# Mean photo-electrons below which a channel is ignored.
_LEAST_LIGHT = 0.5

# Channel numbers of a SiPM begin at multiples of this, so that clusters stay within it.
_SIPM_STRIDE = CHANNELS_PER_SIPM + 1
_N_MAT_INDICES = 1536
_HALF_ZONE = 20_000.0
# The mirrored edges are nearer to the height of the beam than this (mm).
_EDGE_REACH = 30.0


def _ionisation(flights: Flights) -> Float64Array:
    """Energy loss of each flight relative to a fast particle's: 1 / beta^2, where it ended."""
    loss: Float64Array = np.minimum(1.0 + (flights.mass / np.maximum(flights.p, 1.0)) ** 2, _MOST_IONISATION)
    return np.where(flights.mass < 1.0, 1.0, loss)


@dataclass(frozen=True, slots=True, eq=False)
class SciFiResult:
    """The SciFi hits of a chunk: words with their events (rising), and which flight (rising) made which hit."""

    event: Int64Array
    words: SciFiWords
    particle: Int64Array
    lhcb_id: NDArray[np.uint32]


class SciFiResponse:
    """The response of a SciFi of given geometry; immutable, so that one can be used for all events."""

    def __init__(self, geometry: SciFiGeometry) -> None:
        self._mats = np.flatnonzero(geometry.half_pitch > 0)
        mats = self._mats
        mirror, ddx = geometry.mirror_point[mats].astype(np.float64), geometry.ddx[mats].astype(np.float64)
        self._dx_dy, self._dz_dy = geometry.dx_dy[mats].astype(np.float64), geometry.dz_dy[mats].astype(np.float64)
        self._y_mirror, self._length = mirror[:, 1], geometry.length_y[mats].astype(np.float64)
        # x at y = 0 of the fibre in the middle of a mat, and its change with u.
        self._x0, self._dx_du = mirror[:, 0] - self._dx_dy * mirror[:, 1], ddx[:, 0] - self._dx_dy * ddx[:, 1]
        self._dy_du = ddx[:, 1]
        self._z0 = mirror[:, 2] - self._dz_dy * mirror[:, 1]
        self._u_begin = geometry.u_begin[mats].astype(np.float64)
        self._pitch = 2.0 * geometry.half_pitch[mats].astype(np.float64)
        self._die_gap, self._sipm_pitch = (
            values[mats].astype(np.float64) for values in (geometry.die_gap, geometry.sipm_pitch)
        )
        channel = (mats + FIRST_MAT).astype(np.int64) << 9
        layer, upper = (channel >> 16) - 4, channel >> 15 & 1
        self.layer_z = np.array([self._z0[layer == number].mean() for number in range(N_LAYERS)])
        self._stereo = np.array([self._dx_dy[layer == number][0] for number in range(N_LAYERS)])
        # Mats of a layer's half in order of x; keys of all halves in one rising array.
        zone = 2 * layer + upper
        self._order = np.lexsort((self._x0, zone))
        keys = (zone * 2 * _HALF_ZONE + self._x0)[self._order]
        self._borders = 0.5 * (keys[1:] + keys[:-1])
        self._first_channel = geometry.numbering.astype(np.int64)
        self._banks = np.argsort(self._first_channel)
        self._dead = (
            np.random.default_rng(0x4654).random(_N_MAT_INDICES * SIPMS_PER_MAT * _SIPM_STRIDE) < _DEAD_FRACTION
        )

    def _channels(self, crossings: Crossings) -> tuple[Int64Array, Int64Array, Int64Array, Float64Array, Float64Array]:
        """Crossing, mat, SiPM, place in channels (0.5 is the middle of the first), and distance to the SiPM."""
        mat, u, along = self._in_mats(crossings, crossings.y > 0)
        # The mirrored edge of a stereo mat leans across the height of the beam: behind it lies a mat of the other half.
        beyond = np.flatnonzero((along <= 0) & (np.abs(crossings.y) < _EDGE_REACH))
        mat[beyond], u[beyond], along[beyond] = self._in_mats(crossings.take(beyond), crossings.y[beyond] <= 0)
        sipm = np.floor(u / self._sipm_pitch[mat]).astype(np.int64)
        in_sipm = u - sipm * self._sipm_pitch[mat]
        die = CHANNELS_PER_SIPM // 2 * self._pitch[mat]
        second = in_sipm > die + 0.5 * self._die_gap[mat]
        place = np.where(second, in_sipm - self._die_gap[mat], in_sipm) / self._pitch[mat]
        hit = (along > 0) & (along < 1) & (sipm >= 0) & (sipm < SIPMS_PER_MAT) & (place < CHANNELS_PER_SIPM + 0.5)
        rows = np.flatnonzero(hit)
        return rows, mat[rows], sipm[rows], place[rows], (np.abs(self._length[mat]) * (1 - along))[rows]

    def _in_mats(self, crossings: Crossings, upper: Mask) -> tuple[Int64Array, Float64Array, Float64Array]:
        """The nearest mat of the upper or lower half, the distance from its first channel's edge (mm), and that along
        the fibres from their mirrored end as a fraction of their length."""
        s = crossings.x - self._stereo[crossings.layer] * crossings.y
        zone = 2 * crossings.layer + upper
        mat = self._order[np.searchsorted(self._borders, zone * 2 * _HALF_ZONE + s)]
        # Layers are tilted: the particle crosses the fibre a little before or behind the layer's plane.
        dz = self._z0[mat] + self._dz_dy[mat] * crossings.y - self.layer_z[crossings.layer]
        x, y = crossings.x + crossings.tx * dz, crossings.y + crossings.ty * dz
        u = (x - self._dx_dy[mat] * y - self._x0[mat]) / self._dx_du[mat]
        along = (y - self._y_mirror[mat] - self._dy_du[mat] * u) / self._length[mat]
        return mat, u - self._u_begin[mat], along

    def respond(self, random: EventRandom, crossings: Crossings, flights: Flights) -> SciFiResult:
        """The hits of crossings of the twelve layers by flights, which are at their end points."""
        crossings = crossings.with_spill_over(random, _SPILL_OVER)
        crossing, mat, sipm, place, to_sipm = self._channels(crossings)
        event = crossings.event[crossing]
        slope = np.abs(crossings.tx[crossing] - self._dx_dy[mat] * crossings.ty[crossing])
        row = crossings.row[crossing]
        ionisation = _ionisation(flights)[row]
        ionisation[row < 0] = 0.5  # late light
        trail = self._trails(random, event, row, flights)
        # Long paths make more light.
        stretch = 1 + _LIGHT_OF_PATH * (np.sqrt(1 + slope**2) - 1 + trail * self._pitch[mat] / _MAT_DEPTH)
        width = _SPREAD + slope * _MAT_DEPTH / self._pitch[mat] + trail
        width += _WIDTH_OF_LIGHT * np.maximum(ionisation - 1.0, 0.0)
        light = _LIGHT * ionisation * stretch * np.exp(-to_sipm / _ATTENUATION)
        place += np.where(random.chance(event, 0.5), 0.5, -0.5) * trail
        deposit, channel, mean = share_charge(place, width, light, CHANNELS_PER_SIPM, _LEAST_LIGHT)
        # Photo-electrons are counted: the spread of their number is its square root.
        charge = np.maximum(mean + np.sqrt(mean) * random.normal(event[deposit]), 0.0)
        number = self._numbers(event[deposit], self._mats[mat][deposit], sipm[deposit], channel)
        noise = self._noise(random)
        number = np.concatenate([number, noise])
        clusters = cluster(
            number,
            np.concatenate([charge, np.full(len(noise), _NOISE_LIGHT)]),
            self._dead[number % len(self._dead)],
            threshold=_THRESHOLD,
            seed=_SEED,
            total=_TOTAL,
        )
        return self._result(clusters, row[deposit], number[: len(deposit)])

    @staticmethod
    def _trails(random: EventRandom, event: Int64Array, row: Int64Array, flights: Flights) -> Float64Array:
        """Channels that electrons in the mat add to one side of each crossing."""
        ends = np.append(row[1:] != row[:-1], True) & (row >= 0)
        stops = ends & ((flights.mass < 1.0) & (flights.p < _STOPPING_P))[row]
        trail: Float64Array = np.zeros(len(row))
        has_one = np.flatnonzero(random.chance(event, np.where(stops, _STOPPING_PART, _KNOCK_ON_PART)))
        u = random.uniform(event[has_one])
        trail[has_one] = np.where(stops[has_one], -_STOPPING_TRAIL * np.log1p(-u), _KNOCK_ON_TRAIL * u)
        return trail

    @staticmethod
    def _numbers(event: Int64Array, mat: Int64Array, sipm: Int64Array, channel: Int64Array) -> Int64Array:
        return ((event * _N_MAT_INDICES + mat) * SIPMS_PER_MAT + sipm) * _SIPM_STRIDE + channel

    def _noise(self, random: EventRandom) -> Int64Array:
        counts = random.poisson(np.full((len(random), 1), _NOISE_PER_EVENT))[:, 0]
        event = np.repeat(np.arange(len(random)), counts)
        u = random.uniform(event, 3)
        mat = self._mats[(u[:, 0] * len(self._mats)).astype(np.int64)]
        sipm, channel = (u[:, 1] * SIPMS_PER_MAT).astype(np.int64), (u[:, 2] * CHANNELS_PER_SIPM).astype(np.int64)
        return self._numbers(event, mat, sipm, channel)

    def _result(self, clusters: Clusters, row: Int64Array, number: Int64Array) -> SciFiResult:
        """Words and truth of clusters, whose first deposits have these channel numbers and come from these flights."""
        sipm, first = np.divmod(clusters.first, _SIPM_STRIDE)
        event, sipm = np.divmod(sipm, _N_MAT_INDICES * SIPMS_PER_MAT)
        # Channel id >> 7 numbers SiPMs over the detector.
        channel = sipm + FIRST_MAT * SIPMS_PER_MAT << 7
        place = np.searchsorted(self._first_channel[self._banks], channel, side="right") - 1
        bank = self._banks[place]
        link = channel - self._first_channel[bank] >> 7
        # A link sends at most this number of words; wide clusters take two.
        n_words = 1 + (clusters.size > PIECE)
        before = np.cumsum(n_words)
        is_first = np.diff(sipm + event * _N_MAT_INDICES * SIPMS_PER_MAT, prepend=-1) != 0
        of_link = before - np.maximum.accumulate(np.where(is_first, before - n_words, 0))
        sent = of_link <= MAX_CLUSTERS_PER_LINK
        cluster_of_word = np.repeat(np.flatnonzero(sent), n_words[sent])
        words = words_of_clusters(
            bank[sent].astype(np.uint32),
            link[sent].astype(np.uint32),
            first[sent].astype(np.uint32),
            clusters.size[sent].astype(np.uint32),
            (first + clusters.position)[sent],
        )
        hits, word_of_hit = hits_of_words(words)
        ids = scifi_lhcb_id(self._first_channel[hits.bank].astype(np.uint32) + hits.offset)
        # The hit of each deposit's cluster, for wide ones the nearest: their first hit is one piece behind the edge.
        n_hits = np.bincount(cluster_of_word[word_of_hit], minlength=len(sent))
        of_deposit = clusters.of_deposit[: len(row)]
        piece = (number - clusters.first[of_deposit] + PIECE // 2) // PIECE - 1
        hit = (np.cumsum(n_hits) - n_hits)[of_deposit] + np.clip(piece, 0, n_hits[of_deposit] - 1)
        particle, which = links(row, np.where((of_deposit >= 0) & (n_hits[of_deposit] > 0), hit, -1), len(ids))
        return SciFiResult(event[cluster_of_word], words, particle, ids[which])
