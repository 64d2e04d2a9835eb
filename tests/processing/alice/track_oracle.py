"""Steps I to V of one slice in plain Python: sequential, brute force instead of a grid, float32 as in the kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.alice.geometry.tpc_geometry import TpcGeometry
from hltnode.processing.alice.tpc.collections import MAX_WINDOW
from hltnode.processing.alice.tpc.seeds.find_neighbours import find_neighbours
from hltnode.processing.alice.tpc.tracks.constants import TRACKLET_CONSTANTS
from hltnode.processing.alice.tpc.tracks.select_tracks import select_tracks
from hltnode.protocol.alice.tpc_banks import N_ROWS, Y_STEP, Z_START, Z_STEP

f = np.float32
ZERO, ONE, TWO = f(0.0), f(1.0), f(2.0)
NONE = 0xFFFF


@dataclass
class State:
    """Parameters, covariance and chi2 of a track at x."""

    x: Any
    y: Any
    z: Any
    s: Any
    l: Any  # noqa: E741
    q: Any
    yy: Any
    zz: Any
    sy: Any = ZERO
    ss: Any = ZERO
    lz: Any = ZERO
    ll: Any = ZERO
    qy: Any = ZERO
    qs: Any = ZERO
    qq: Any = ZERO
    chi2: Any = ZERO


class Slice:
    """The clusters of a slice by row, in the order of the kernels, and its tracks.

    places: for each row u32 z << 16 | y, sorted as in the row. changed: constants of tracklets and of the selection.
    """

    def __init__(self, places: list[NDArray[np.uint32]], geometry: TpcGeometry, **changed: float) -> None:
        self.row_x, field = geometry.row_x.astype(f), geometry.field
        self.half_length, self.b0, self.z2, self.z4 = map(f, (geometry.half_length, field.b0, field.z2, field.z4))
        self.places = places
        self.y = [((p & 0xFFFF).astype(f) - f(32768)) * f(Y_STEP) for p in places]
        self.z = [(p >> 16).astype(f) * f(Z_STEP) + f(Z_START) for p in places]
        constants = {**TRACKLET_CONSTANTS, **{each.name: each.value for each in select_tracks.constants}, **changed}
        self.c = {name: f(value) if isinstance(value, float) else value for name, value in constants.items()}

    def links(self) -> tuple[list[list[int]], list[list[int]]]:
        """Step I: number of the best neighbour two rows above and below, by rows; brute force."""
        c = {each.name: f(each.value) for each in find_neighbours.constants}
        most = c["max_slope_change"] * c["max_slope_change"]
        up = [[NONE] * len(p) for p in self.places]
        down = [[NONE] * len(p) for p in self.places]
        for row in range(2, N_ROWS - 2):
            x = self.row_x[row]
            for i in range(len(self.places[row])):
                y, z = self.y[row][i], self.z[row][i]
                slopes = []
                for other in (row - 2, row + 2):
                    other_x = self.row_x[other]
                    ratio, dx = other_x / x, abs(other_x - x)
                    dy, dz = self.y[other] - y * ratio, self.z[other] - z * ratio
                    inside = np.abs(dy) <= c["slope_y"] * dx + c["margin"]
                    inside &= np.abs(dz) <= c["slope_z"] * dx + c["margin"]
                    over = ONE / (other_x - x)
                    which = np.flatnonzero(inside)
                    slopes.append((which, (self.y[other][which] - y) * over, (self.z[other][which] - z) * over))
                (below, below_y, below_z), (above, above_y, above_z) = slopes
                if not len(below) or not len(above) or max(len(below), len(above)) > MAX_WINDOW:
                    continue
                in_y, in_z = above_y[:, None] - below_y, above_z[:, None] - below_z
                change = in_y * in_y + in_z * in_z
                best = np.unravel_index(np.argmin(change), change.shape)
                if change[best] < most:
                    up[row][i], down[row][i] = int(above[best[0]]), int(below[best[1]])
        return up, down

    @staticmethod
    def mutual(up: list[list[int]], down: list[list[int]]) -> list[list[int]]:
        """Step II: the links up that are mutual."""
        return [
            [n if n != NONE and down[row + 2][n] == i else NONE for i, n in enumerate(of_row)]
            for row, of_row in enumerate(up)
        ]

    @staticmethod
    def start_hits(following: list[list[int]]) -> list[tuple[int, int]]:
        """Step III: row and number of the first cluster of each chain of four."""
        has_before = {(row + 2, n) for row, of_row in enumerate(following) for n in of_row if n != NONE}

        def length(row: int, i: int) -> int:
            return 1 if following[row][i] == NONE else 1 + length(row + 2, following[row][i])

        return [
            (row, i)
            for row, of_row in enumerate(following)
            for i in range(len(of_row))
            if (row, i) not in has_before and length(row, i) >= 4
        ]

    # The filter.

    def unit(self, x: Any, y: Any, z: Any) -> Any:
        rr, zz = x * x + y * y, z * z
        field = self.b0 * (
            ONE + self.z2 * (zz - f(0.5) * rr) + self.z4 * (zz * zz - f(3) * zz * rr + f(0.375) * rr * rr)
        )
        return f(-0.000299792458) * field

    @staticmethod
    def arc_over_chord(u: Any) -> Any:
        total = f(0.01735276)
        for term in (0.02237216, 0.03038194, 0.04464286, 0.075, 0.16666667, 1.0):
            total = total * u + f(term)
        return total

    def propagate(self, t: State, x: Any) -> bool:
        unit = self.unit(t.x, t.y, t.z)
        dx, k = x - t.x, unit * t.q
        s0, s1 = t.s, t.s + k * dx
        if not self.is_within(s1):
            return False
        c0, c1 = np.sqrt(ONE - s0 * s0), np.sqrt(ONE - s1 * s1)
        sum_c = c0 + c1
        tangent = (s0 + s1) / sum_c
        chord = dx * np.sqrt(ONE + tangent * tangent)
        half_turn = f(0.5) * k * chord
        turn = half_turn * half_turn
        if not turn <= f(0.25):
            return False
        arc = chord * self.arc_over_chord(turn)
        by_s = dx * (ONE + s0 * s1 + c0 * c1) / (c0 * c1 * sum_c)
        by_q = dx * dx * unit * (sum_c + (s0 + s1) * s1 / c1) / (sum_c * sum_c)
        turn_by_q = dx * unit
        sy = t.sy + by_s * t.ss + by_q * t.qs
        qy = t.qy + by_s * t.qs + by_q * t.qq
        qs = t.qs + turn_by_q * t.qq
        t.yy = t.yy + by_s * (t.sy + sy) + by_q * (t.qy + qy)
        t.sy = sy + turn_by_q * qy
        t.ss = t.ss + turn_by_q * (t.qs + qs)
        t.qy, t.qs = qy, qs
        t.zz = t.zz + arc * (TWO * t.lz + arc * t.ll)
        t.lz = t.lz + arc * t.ll
        t.x, t.y, t.z, t.s = x, t.y + dx * tangent, t.z + t.l * arc, s1
        slope = ONE + t.l * t.l
        over_p2 = t.q * t.q / slope
        length = abs(arc) * np.sqrt(slope)
        mass2 = self.c["mass"] * self.c["mass"]
        angle2 = f(0.0136) * f(0.0136) * length / self.c["radiation_length"] * over_p2 * (ONE + mass2 * over_p2)
        t.ss = t.ss + angle2 * slope * c1 * c1
        t.ll = t.ll + angle2 * slope * slope
        t.qq = t.qq + angle2 * ((t.q * t.l) * (t.q * t.l))
        return True

    @staticmethod
    def pad(row: int) -> Any:
        """Length of pads in cm: 63, 64 and 32 rows of 0.75, 1 and 1.5 cm."""
        return f(0.75 if row < 63 else 1.0 if row < 127 else 1.5)

    def is_within(self, s: Any) -> bool:
        return bool(abs(s) < self.c["max_sin_phi"])

    def errors(self, s: Any, tan_lambda: Any, row: int, z: Any) -> tuple[Any, Any]:
        c, over_c2 = self.c, ONE / (ONE - s * s)
        pad = self.pad(row)
        drift = (self.half_length - z) / pad if z < self.half_length else f(0)
        tangent2 = pad * over_c2
        return (
            c["y_constant"] + c["y_drift"] * drift + c["y_angle"] * s * s * tangent2,
            c["z_constant"] + c["z_drift"] * drift + c["z_angle"] * tan_lambda * tan_lambda * tangent2,
        )

    def chi2(self, t: State, row: int, i: int) -> Any:
        y, z = self.y[row][i], self.z[row][i]
        of_y, of_z = self.errors(t.s, t.l, row, z)
        return (y - t.y) * (y - t.y) / (of_y + t.yy) + (z - t.z) * (z - t.z) / (of_z + t.zz)

    def update(self, t: State, row: int, i: int) -> None:
        y, z = self.y[row][i], self.z[row][i]
        of_y, of_z = self.errors(t.s, t.l, row, z)
        gain_y, gain_z = ONE / (of_y + t.yy), ONE / (of_z + t.zz)
        dy, dz = y - t.y, z - t.z
        t.chi2 = t.chi2 + (dy * dy * gain_y + dz * dz * gain_z)
        t.y, t.s, t.q = t.y + t.yy * gain_y * dy, t.s + t.sy * gain_y * dy, t.q + t.qy * gain_y * dy
        t.z, t.l = t.z + t.zz * gain_z * dz, t.l + t.lz * gain_z * dz
        t.ss = t.ss - t.sy * gain_y * t.sy
        t.qs = t.qs - t.qy * gain_y * t.sy
        t.qq = t.qq - t.qy * gain_y * t.qy
        t.ll = t.ll - t.lz * gain_z * t.lz
        left_y, left_z = of_y * gain_y, of_z * gain_z
        t.yy, t.sy, t.qy = t.yy * left_y, t.sy * left_y, t.qy * left_y
        t.zz, t.lz = t.zz * left_z, t.lz * left_z

    def start(self, hits: list[tuple[int, int]], at_first: bool) -> State | None:
        (ax, ay, az), (bx, by, _), (cx, cy, cz) = ((self.row_x[row], self.y[row][i], self.z[row][i]) for row, i in hits)
        abx, aby, acx, acy, bcx, bcy = bx - ax, by - ay, cx - ax, cy - ay, cx - bx, cy - by
        ac = np.sqrt(acx * acx + acy * acy)
        product = np.sqrt((abx * abx + aby * aby) * (bcx * bcx + bcy * bcy)) * ac
        k = TWO * (abx * acy - aby * acx) / product
        half = f(0.5) * k * ac
        turn = half * half
        if not turn <= f(0.25):
            return None
        cosine, along_x, along_y = np.sqrt(ONE - turn), acx / ac, acy / ac
        x, y, z = (ax, ay, az) if at_first else (cx, cy, cz)
        s = along_y * cosine - along_x * half if at_first else along_y * cosine + along_x * half
        if not self.is_within(s):
            return None
        slope = (cz - az) / (ac * self.arc_over_chord(turn))
        of_y, of_z = self.errors(s, slope, hits[0 if at_first else 2][0], z)
        unit = self.unit(x, y, z)
        over_ac2 = f(25) / (ac * ac)
        t = State(x, y, z, s, slope, k / unit, of_y, of_z)
        t.ss = f(16) * of_y * over_ac2 * (ONE - s * s)
        t.ll = TWO * of_z * over_ac2
        t.qq = f(64) * of_y * over_ac2 / (ac * ac) / (unit * unit)
        return t

    # Step IV.

    def nearest(self, t: State, row: int) -> int:
        found, best = NONE, self.c["max_chi2"]
        for i in range(len(self.places[row])):
            if (chi2 := self.chi2(t, row, i)) < best:
                found, best = i, chi2
        return found

    def tracklet(self, following: list[list[int]], row: int, i: int) -> dict[int, int] | None:
        """Cluster by row of the tracklet of a start hit. All clusters of a row are candidates, not those of bins."""
        seed = [(row, i)]
        while following[seed[-1][0]][seed[-1][1]] != NONE:
            seed.append((seed[-1][0] + 2, following[seed[-1][0]][seed[-1][1]]))
        chain = seed[:11]
        t = self.start([seed[0], chain[(len(chain) - 1) // 2], chain[-1]], True)
        if t is None:
            return None
        hits = {row: i}
        for row, i in seed[1:]:
            if not self.propagate(t, self.row_x[row]):
                break
            self.update(t, row, i)
            hits[row] = i
        seed_end = max(hits)
        if len(hits) < 3 or t.chi2 > self.c["max_seed_chi2"] * f(2 * len(hits) - 5):
            return None
        missed, most_missed = 0, self.c["max_missed_rows"]
        for row in range(seed_end + 1, N_ROWS):
            if missed > most_missed or not self.propagate(t, self.row_x[row]):
                break
            if (i := self.nearest(t, row)) == NONE:
                missed += 1
                continue
            self.update(t, row, i)
            hits[row], missed = i, 0
        return self.downwards(hits, seed_end)

    def downwards(self, hits: dict[int, int], seed_end: int) -> dict[int, int] | None:
        rows, lowest = sorted(hits, reverse=True), min(hits)
        step = min((len(hits) - 1) // 2, 8)
        t = self.start([(row, hits[row]) for row in (rows[2 * step], rows[step], rows[0])], False)
        if t is None:
            return None
        missed, fitted = 0, 1
        for row in range(rows[0] - 1, -1, -1):
            if missed > self.c["max_missed_rows"]:
                break
            if row not in hits and row > seed_end:
                continue
            if not self.propagate(t, self.row_x[row]):
                hits = {r: i for r, i in hits.items() if r > row}
                break
            if row in hits:
                if fitted >= 3 and self.chi2(t, row, hits[row]) > self.c["max_outlier_chi2"]:
                    del hits[row]
            elif (i := self.nearest(t, row)) != NONE:
                hits[row] = i
            if row not in hits:
                missed += row < lowest
                continue
            self.update(t, row, hits[row])
            fitted, missed = fitted + 1, 0
        return hits if len(hits) >= self.c["min_clusters"] else None

    # Step V.

    def tracks(self, following: list[list[int]]) -> Iterator[tuple[State, list[tuple[int, int]]]]:
        """The tracks with their clusters (row, number), in the order of tracklets."""
        tracklets = [self.tracklet(following, *start) for start in self.start_hits(following)]
        owner: dict[tuple[int, int], tuple[int, int]] = {}
        for number, hits in enumerate(tracklets):
            for hit in (hits or {}).items():
                owner[hit] = max(owner.get(hit, (0, 0)), (len(hits or {}), number))
        for number, hits in enumerate(tracklets):
            for found in self.parts_of(hits or {}, owner, number):
                if (t := self.fit(found)) is not None:
                    yield t, found

    def parts_of(
        self, hits: dict[int, int], owner: dict[tuple[int, int], tuple[int, int]], number: int
    ) -> Iterator[list[tuple[int, int]]]:
        found: list[tuple[int, int]] = []
        shared = missed = 0
        for row in range(min(hits, default=0), max(hits, default=-1) + 1):
            own = row in hits and owner[row, hits[row]] == (len(hits), number)
            # Clusters of others, this one included, are at most a share of its own ones so far.
            if own or (row in hits and f(shared + 1) <= self.c["max_shared"] * f(len(found) - shared)):
                shared += not own
                found.append((row, hits[row]))
                missed = 0
            else:
                missed += 1
            if missed > self.c["max_missed_rows"] or row == max(hits):
                if len(found) >= self.c["min_clusters"]:
                    yield found
                found, shared, missed = [], 0, 0

    def fit(self, hits: list[tuple[int, int]]) -> State | None:
        """The fit of a track from its outermost cluster inwards."""
        last = len(hits) - 1
        step = min(last // 2, 8)
        t = self.start([hits[last - 2 * step], hits[last - step], hits[last]], False)
        fitted = 1
        for row, i in reversed(hits[:-1]):
            if t is None or not self.propagate(t, self.row_x[row]):
                return None
            if fitted >= 10 and self.chi2(t, row, i) > self.c["max_fit_chi2"]:
                continue
            self.update(t, row, i)
            if not self.is_within(t.s):
                return None
            fitted += 1
        return t
