"""Merging of segments in NumPy: every pair of ends, float32 as in the kernels, chains one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

f = np.float32
ONE, TWO = f(1.0), f(2.0)
NO_CONTINUATION = f(1e30)


@dataclass(frozen=True, slots=True)
class Limits:
    """Tolerances and limits of a continuation."""

    distance: Any
    angle: Any
    bend: Any
    z: Any
    slope: Any
    max_gap: Any
    max_overlap: Any


def limits_of(algorithm: Any, gap: str = "max_gap", overlap: str = "max_overlap") -> tuple[Limits, dict[str, Any]]:
    """Those of the constants of a kernel, and all of its constants by name."""
    c = {each.name: each.value for each in algorithm.constants}
    names = ("distance", "angle", "bend", "z", "slope", gap, overlap)
    return Limits(*(f(c[name]) for name in names)), c


def angle_at(x: NDArray[np.float32], y: NDArray[np.float32]) -> NDArray[np.float32]:
    """Angle of places, from -pi to pi, by the polynomial of the kernels."""
    ax, ay = np.abs(x), np.abs(y)
    steep = ay > ax
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(steep, ax / ay, np.where(ax > 0, ay / ax, f(0)))
    u = ratio * ratio
    angle = ratio * (f(0.9998660) + u * (f(-0.3302995) + u * (f(0.1801410) + u * (f(-0.0851330) + u * f(0.0208351)))))
    angle = np.where(steep, f(1.57079633) - angle, angle)
    angle = np.where(x < 0, f(3.14159265) - angle, angle)
    signed: NDArray[np.float32] = np.where(y < 0, -angle, angle).astype(f)
    return signed


def is_out_of_time(a: NDArray[np.void], b: NDArray[np.void]) -> NDArray[np.bool_]:
    """Whether two ends lead to the central electrode from both sides, too far apart in z for one helix; broadcast."""
    dx, dy, dz = b["x"] - a["x"], b["y"] - a["y"], b["z"] - a["z"]
    inwards = (a["z"] * b["z"] < 0) & (a["z"] * a["slope"] < 0) & (b["z"] * b["slope"] < 0)
    shifted: NDArray[np.bool_] = inwards & (
        np.abs(dz) - ONE > f(1.58) * np.abs(a["slope"]) * np.sqrt(dx * dx + dy * dy)
    )
    return shifted


def continuation(
    limits: Limits, a: NDArray[np.void], b: NDArray[np.void], out_of_time: NDArray[np.bool_] | bool = False
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """chi2 and cm of the way of the differences of the way out of each end a and the way into b; broadcast.

    out_of_time: pairs whose ends are as far from the central electrode, at another time.
    """
    k, dx, dy = a["curvature"], b["x"] - a["x"], b["y"] - a["y"]
    t = dx * a["along_x"] + dy * a["along_y"]
    w = dy * a["along_x"] - dx * a["along_y"]
    p, q = k * t, ONE - k * w
    m = np.sqrt(p * p + q * q)
    with np.errstate(all="ignore"):
        cosine, sine = q / m, p / m
        ex = a["along_x"] * cosine - a["along_y"] * sine
        ey = a["along_y"] * cosine + a["along_x"] * sine
        meets = (m > f(0.1)) & (ex * b["along_x"] + ey * b["along_y"] < 0)
        size = np.abs(k)
        turning = angle_at(q, p) / k
        turning = np.where(turning < -limits.max_overlap, turning + f(6.2831853) / size, turning)
        gap = np.where(size * limits.max_gap > f(1e-3), turning, t).astype(f)
        meets &= (gap >= -limits.max_overlap) & (gap <= limits.max_gap)
        distance = (TWO * w - k * (t * t + w * w)) / (ONE + m)
        angle = ey * b["along_x"] - ex * b["along_y"]
        bend, slope = a["curvature"] + b["curvature"], a["slope"] + b["slope"]
        z = b["z"] - a["z"] - gap * f(0.5) * (a["slope"] - b["slope"])
        by_f = t / m
        by_k = np.where(q > 0, t * t / (m * (m + q)), (ONE - cosine) / (k * k))
        f_by_d = -k * sine
        dd = (
            cosine * cosine * a["dd"]
            + by_f * by_f * a["ff"]
            + by_k * by_k * a["kk"]
            + TWO * (cosine * by_f * a["df"] + cosine * by_k * a["dk"] + by_f * by_k * a["fk"])
        )
        ff = (
            f_by_d * f_by_d * a["dd"]
            + cosine * cosine * a["ff"]
            + by_f * by_f * a["kk"]
            + TWO * (f_by_d * cosine * a["df"] + f_by_d * by_f * a["dk"] + cosine * by_f * a["fk"])
        )
        quarter = f(0.25) * gap
        z = np.where(out_of_time, a["z"] + b["z"], z)
        crossing = np.where(out_of_time, (a["slope"] * gap) * (a["slope"] * gap), f(0))
        zz = (
            a["zz"]
            + b["zz"]
            + gap * (a["lz"] + quarter * a["ll"])
            + gap * (b["lz"] + quarter * b["ll"])
            + a["slope"] * a["slope"] * (ONE + (k * gap) * (k * gap)) * limits.distance * limits.distance
            + crossing
        )
        chi2 = (
            distance * distance / (dd + b["dd"] + limits.distance * limits.distance)
            + angle * angle / (ff + b["ff"] + limits.angle * limits.angle)
            + bend * bend / (a["kk"] + b["kk"] + (limits.bend * k) * (limits.bend * k))
            + z * z / (zz + limits.z * limits.z)
            + slope * slope / (a["ll"] + b["ll"] + limits.slope * limits.slope)
        )
    return np.where(meets, chi2, NO_CONTINUATION).astype(f), gap


NONE = 0xFFFFFFFF


def best_ends(
    limits: Limits, ends: NDArray[np.void], bins: NDArray[np.integer], left_out: NDArray[np.bool_], c: dict[str, Any]
) -> NDArray[np.int64]:
    """The best continuation of each end, over all pairs of segments in near bins.

    ends: SEGMENT_END[segments, 2]; left_out: segments that take no part; c: constants of the kernel.
    """
    n = len(ends)
    flat = ends.reshape(-1)
    inner = np.arange(2 * n) % 2 == 0
    out_of_time = (inner[:, None] != inner[None, :]) & is_out_of_time(flat[:, None], flat[None, :])
    chi2, gap = continuation(limits, flat[:, None], flat[None, :], out_of_time)
    score = chi2 + np.where(gap > 0, gap * f(c["chi2_of_gap"]), f(0))
    straight = flat["curvature"] * flat["curvature"] < ONE / (f(c["max_turning_radius"]) * f(c["max_turning_radius"]))
    allowed = (chi2 < f(c["max_chi2"])) & ~(inner[:, None] & inner[None, :] & straight[:, None])
    segment = np.arange(2 * n) // 2
    near = near_bins(bins) & ~np.eye(n, dtype=bool) & ~left_out[:, None] & ~left_out[None, :]
    score = np.where(allowed & near[segment[:, None], segment[None, :]], score, NO_CONTINUATION)
    best = score.argmin(1) if n else np.empty(0, np.int64)
    return np.where(score.min(1, initial=NO_CONTINUATION) < NO_CONTINUATION, best, NONE)


def near_bins(bins: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Whether two segments are in bins near each other."""
    line, column = np.divmod(bins.astype(np.int64), 64)
    apart = np.abs(column[:, None] - column[None, :])
    near: NDArray[np.bool_] = (np.abs(line[:, None] - line[None, :]) <= 2) & (np.minimum(apart, 64 - apart) <= 5)
    return near


def both_ways(
    limits: Limits, a: NDArray[np.void], b: NDArray[np.void], out_of_time: NDArray[np.bool_] | bool, chi2_of_gap: Any
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The larger chi2 of both directions, and the sum of both and of chi2 for the length of both ways; broadcast."""
    there, gap = continuation(limits, a, b, out_of_time)
    back, gap_back = continuation(limits, b, a, out_of_time)
    score = (there + back) + f(chi2_of_gap) * (np.maximum(gap, f(0)) + np.maximum(gap_back, f(0)))
    return np.maximum(there, back), score.astype(f)


def place_on_way(
    overlap: Any, c: dict[str, Any], a: NDArray[np.void], b: NDArray[np.void], into: float
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Sum of squares of the distances of ends b from the ways out of ends a, in units of the limits, and cm of the
    ways; broadcast."""
    k, dx, dy = a["curvature"], b["x"] - a["x"], b["y"] - a["y"]
    t, w = dx * a["along_x"] + dy * a["along_y"], dy * a["along_x"] - dx * a["along_y"]
    p, q = k * t, ONE - k * w
    m = np.sqrt(p * p + q * q)
    ex, ey = (a["along_x"] * q - a["along_y"] * p) / m, (a["along_y"] * q + a["along_x"] * p) / m
    gap = angle_at(q, p) / k
    meets = (m > f(0.1)) & (f(into) * (ex * b["along_x"] + ey * b["along_y"]) > f(0.5))
    meets &= (gap > -overlap) & (gap < f(60))
    slope = a["slope"] - f(into) * b["slope"]
    meets &= slope * slope < f(c["piece_slope"]) * f(c["piece_slope"])
    distance = (TWO * w - k * (t * t + w * w)) / ((ONE + m) * f(c["piece_distance"]))
    z = (b["z"] - a["z"] - gap * a["slope"]) / f(c["piece_z"])
    meets &= (distance * distance < ONE) & (z * z < ONE)
    return np.where(meets, distance * distance + z * z, NO_CONTINUATION).astype(f), gap


def by_place(
    limits: Limits, c: dict[str, Any], a: NDArray[np.void], b: NDArray[np.void], far: NDArray[np.void]
) -> NDArray[np.float32]:
    """Scores of the ways from ends a of helices to ends b of pieces, whose other ends are `far`; broadcast."""
    first, _ = place_on_way(limits.max_overlap, c, a, b, -1.0)
    second, _ = place_on_way(limits.max_overlap, c, a, far, 1.0)
    linked = (first < NO_CONTINUATION) & (second < NO_CONTINUATION)
    linked &= a["kk"] * f(c["piece_variance"]) < b["kk"]
    return np.where(linked, f(1000) + (first + second), NO_CONTINUATION).astype(f)


def with_free_links(
    limits: Limits, ends: NDArray[np.void], left_out: NDArray[np.bool_], best: NDArray[np.int64], c: dict[str, Any]
) -> NDArray[np.int64]:
    """The best end of each end, where ends without a mutual link have that of a search over all pairs of free ends.

    ends: SEGMENT_END[segments, 2]; left_out: clones; best: best_ends; c: constants of the kernel. The limit of 4,096
    ends is not applied.
    """
    flat, number = ends.reshape(-1), np.arange(len(best))
    mutual = (best != NONE) & (best[np.where(best == NONE, 0, best)] == number)
    with np.errstate(all="ignore"):
        inside = np.all([flat[name] * flat[name] < f(640) * f(640) for name in "xyz"], axis=0)
        directed = flat["along_x"] * flat["along_x"] + flat["along_y"] * flat["along_y"] > 0
    free = np.flatnonzero(~mutual & ~np.repeat(left_out, 2) & directed & inside)
    of = flat[free]
    a, b = of[:, None], of[None, :]
    with np.errstate(all="ignore"):
        dx, dy, dz = a["x"] - b["x"], a["y"] - b["y"], a["z"] - b["z"]
        near = dx * dx + dy * dy + dz * dz < f(19.5) * f(19.5)
        radius = f(c["max_turning_radius"])
        straight = of["curvature"] * of["curvature"] < ONE / (radius * radius)
        inner = free % 2 == 0
        turns = inner[:, None] & inner[None, :] & (straight[:, None] | straight[None, :])
        chi2, score = both_ways(limits, a, b, False, c["chi2_of_gap"])
        far = flat[free ^ 1]
        pieces = np.minimum(by_place(limits, c, a, b, far[None, :]), by_place(limits, c, b, a, far[:, None]))
        score = np.where(chi2 < f(c["max_chi2"]), score, pieces)
        allowed = near & ~turns & (free[:, None] // 2 != free[None, :] // 2)
    score = np.where(allowed, score, NO_CONTINUATION)
    found = best.copy()
    least = score.min(1, initial=NO_CONTINUATION)
    found[free] = np.where(least < NO_CONTINUATION, free[score.argmin(1)] if len(free) else NONE, NONE)
    return found


def with_insertions(
    ends: NDArray[np.void], left_out: NDArray[np.bool_], best: NDArray[np.int64], c: dict[str, Any]
) -> NDArray[np.int64]:
    """The best end of each end, where segments without links that lie between two linked ends are part of the chain.

    ends: SEGMENT_END[segments, 2]; left_out: clones; best: with_free_links; c: constants of the kernel. The limit of
    4,096 ends is not applied.
    """
    found, flat, number = best.copy(), ends.reshape(-1), np.arange(len(best))
    mutual = (best != NONE) & (best[np.where(best == NONE, 0, best)] == number)
    inside = np.all([flat[name] * flat[name] < f(640) * f(640) for name in "xyz"], axis=0)
    directed = flat["along_x"] * flat["along_x"] + flat["along_y"] * flat["along_y"] > 0
    alone = ~np.repeat(left_out | mutual[0::2] | mutual[1::2], 2)
    links, free = np.flatnonzero(mutual & inside), np.flatnonzero(alone & directed & inside)
    if not len(links) or not len(free):
        return found
    of, to, overlap = flat[links], flat[best[links]], f(c["max_overlap"])
    a, b = of[:, None], flat[free][None, :]
    with np.errstate(all="ignore"):
        dx, dy, dz = a["x"] - b["x"], a["y"] - b["y"], a["z"] - b["z"]
        k, to_x, to_y = of["curvature"], to["x"] - of["x"], to["y"] - of["y"]
        t, w = to_x * of["along_x"] + to_y * of["along_y"], to_y * of["along_x"] - to_x * of["along_y"]
        way = (angle_at(ONE - k * w, k * t) / k)[:, None]
        near, _ = place_on_way(overlap, c, a, b, -1.0)
        far, gap = place_on_way(overlap, c, a, flat[free ^ 1][None, :], 1.0)
        allowed = (dx * dx + dy * dy + dz * dz < f(19.5) * f(19.5)) & (way > 0) & (gap < way + overlap)
        allowed &= (near < NO_CONTINUATION) & (far < NO_CONTINUATION)
        keys = np.where(allowed, (near + far) * f(1 << 28), f(NONE)).astype(np.int64)
    least = {
        int(end): (int(key), int(free[at])) for end, key, at in zip(links, keys.min(1), keys.argmin(1), strict=True)
    }
    claims: dict[int, list[tuple[int, int, int]]] = {}
    for end, (key, near_end) in least.items():
        if key < NONE and (key, end) < (least.get(int(best[end]), (NONE, 0))[0], int(best[end])):
            claims.setdefault(near_end // 2, []).append((key, end, near_end))
    for of_segment in claims.values():
        _, end, near_end = min(of_segment)
        other = int(best[end])
        found[[end, near_end, near_end ^ 1, other]] = near_end, end, other, near_end ^ 1
    return found


def cut_chains(
    limits: Limits, ends: NDArray[np.void], clones: dict[int, int], best: NDArray[np.int64], c: dict[str, Any]
) -> NDArray[np.int64]:
    """The links that are left when chains of 33 to 128 segments, clones included, are cut at their weakest links."""
    best, flat = best.copy(), ends.reshape(-1)
    number = np.arange(len(best))
    for _ in range(16):
        all_chains = chain_numbers(best, clones, len(best))
        too_long = set(all_chains.tolist()) - set(chain_numbers(best, clones).tolist()) - {NONE}
        mutual = (best != NONE) & (best[np.where(best == NONE, 0, best)] == number)
        cuts = []
        for chain in sorted(too_long):
            members = np.flatnonzero(all_chains == chain)
            if len(members) + sum(each in clones for each in members.tolist()) > 128:
                continue
            a = np.flatnonzero(mutual & np.isin(number // 2, members) & (number < best))
            first, second = flat[a], flat[best[a]]
            late = (a % 2 != best[a] % 2) & is_out_of_time(first, second)
            _, score = both_ways(limits, first, second, late, c["chi2_of_gap"])
            cuts.append(int(a[score.argmax()]))
        if not cuts:
            break
        for end in cuts:
            best[[end, int(best[end])]] = NONE
    return best


def longer_segments(
    limits: Limits,
    max_chi2: float,
    inner: NDArray[np.void],
    bins: NDArray[np.integer],
    slices: NDArray[np.integer],
    n_clusters: NDArray[np.integer],
    rows: NDArray[np.integer],
) -> NDArray[np.int64]:
    """For each segment the longer one of which it may be a clone."""
    n = len(inner)
    along = inner.copy()
    for name in ("along_x", "along_y", "curvature", "slope", "df", "fk", "lz"):
        along[name] = -along[name]
    chi2, _ = continuation(limits, along[None, :], inner[:, None])
    size, number = n_clusters.astype(np.int64), np.arange(n)
    longer = (size[None, :] > size[:, None]) | ((size[None, :] == size[:, None]) & (number[None, :] < number[:, None]))
    low = np.maximum(rows[:, None, 0], rows[None, :, 0]).astype(int)
    high = np.minimum(rows[:, None, 1], rows[None, :, 1]).astype(int)
    own = (rows[:, 1].astype(int) - rows[:, 0] + 1)[:, None]
    candidate = longer & (slices[:, None] == slices[None, :]) & near_bins(bins)
    candidate &= (low <= high) & (2 * (high - low + 1) >= own) & (chi2 < f(max_chi2))
    score = np.where(candidate, chi2, NO_CONTINUATION)
    return np.where(candidate.any(1), score.argmin(1) if n else 0, NONE)


def clones_of(longer: NDArray[np.int64]) -> dict[int, int]:
    """The clone of each segment that has one."""
    found: dict[int, int] = {}
    for i, of in enumerate(longer.tolist()):
        if of != NONE and longer[of] == NONE:
            found.setdefault(of, i)
    # The first segment of which another one is the longer one takes the place, also if that one has a longer one too.
    return {of: i for of, i in found.items() if i == int(np.flatnonzero(longer == of)[0])}


def chain_numbers(best: NDArray[np.int64], clones: dict[int, int], most: int = 32) -> NDArray[np.int64]:
    """The first segment of the chain of each segment; NONE for clones, and for chains that are too long."""
    n, of_clones = len(best) // 2, set(clones.values())
    numbers = np.full(n, NONE, np.int64)
    seen: set[int] = set()
    for start in range(n):
        if start in seen or start in of_clones:
            continue
        members, more = {start}, [start]
        while more:
            segment = more.pop()
            for end in (2 * segment, 2 * segment + 1):
                to = int(best[end])
                if to != NONE and best[to] == end and to // 2 not in members:
                    members.add(to // 2)
                    more.append(to // 2)
        seen |= members
        if len(members) + sum(each in clones for each in members) <= most:
            numbers[list(members)] = min(members)
    return numbers


def best_turns(
    limits: Limits, ends: NDArray[np.void], bins: NDArray[np.integer], chains: NDArray[np.int64], c: dict[str, Any]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """For each segment the score and the number of the best other chain on its helix, over all pairs in near bins.

    ends: SEGMENT_END[segments, 2]; chains: chain_numbers; c: constants of the kernel.
    """
    n, flat = len(ends), ends.reshape(-1)
    chi2, gap = continuation(limits, flat[:, None], flat[None, :])
    largest = f(c["max_turn_chi2"])
    both = (chi2 < largest) & (largest > chi2.T)
    way = np.where(both, np.maximum(gap, f(0)) + np.maximum(gap.T, f(0)), f(0))
    score = np.where(both, (chi2 + chi2.T) + f(c["chi2_of_gap"]) * way, NO_CONTINUATION)
    score = score.reshape(n, 2, n, 2).min((1, 3))
    k, radius = ends["curvature"][:, 0], f(c["max_turning_radius"])
    part = (k * k >= ONE / (radius * radius)) & (chains != NONE)
    allowed = part[:, None] & part[None, :] & near_bins(bins) & (chains[:, None] != chains[None, :])
    score = np.where(allowed, score, NO_CONTINUATION)
    least = score.min(1, initial=NO_CONTINUATION)
    tied = np.where((score == least[:, None]) & (least[:, None] < NO_CONTINUATION), chains[None, :], NONE)
    return least.astype(f), tied.min(1, initial=NONE)


def partners_of(chains: NDArray[np.int64], score: NDArray[np.float32], turn: NDArray[np.int64]) -> dict[int, int]:
    """The chain that belongs to each chain: both are the best turn of each other."""
    best: dict[int, int] = {}
    for number in set(chains.tolist()) - {NONE}:
        members = np.flatnonzero(chains == number)
        best[number] = min((float(score[i]), int(turn[i])) for i in members)[1]
    return {number: other for number, other in best.items() if other != NONE and best[other] == number}


def merged_segments(
    best: NDArray[np.int64],
    clones: dict[int, int],
    ends: NDArray[np.void],
    partners: dict[int, int] | None = None,
    most: int = 32,
) -> tuple[list[tuple[list[int], int]], bool]:
    """The segments of each merged track in the order of flight with the length of the first way, and whether a chain
    was too long. ends: SEGMENT_END[segments, 2]; partners: partners_of."""
    places: dict[int, tuple[int, tuple[int, float, int]]] = {}
    linked = {end: int(to) for end, to in enumerate(best) if to != NONE and best[int(to)] == end}
    of_clones, z, flat = set(clones.values()), ends["z"], ends.reshape(-1)
    seen: set[int] = set()
    found: list[tuple[list[int], int]] = []
    is_long = False

    def with_clones(chain: list[int]) -> list[int]:
        return [each for segment in chain for each in (segment, *([clones[segment]] if segment in clones else []))]

    def walk(into: int) -> list[int]:
        ways = [into]
        while (to := linked.get(ways[-1] ^ 1)) is not None and to // 2 != into // 2:
            ways.append(to)
        return ways

    for i in range(len(best) // 2):
        if i in seen or i in of_clones:
            continue
        back = walk(2 * i + 1)
        is_ring = len(back) > 1 and linked.get(back[-1] ^ 1) is not None
        places[i] = (len(found), (0, 0.0, 0))
        ways = walk(2 * i) if is_ring else walk(back[-1] ^ 1)
        if not is_ring:
            other = ways[-1] ^ 1
            keys = [(end % 2, abs(z[end // 2, end % 2]), end) for end in (ways[0], other)]
            if keys[1] < keys[0]:
                ways = walk(other)
        members = [way // 2 for way in ways]
        if len(with_clones(members)) > most:
            is_long = True
            found += [(with_clones([segment]), len(with_clones([segment]))) for segment in members]
            seen.update(members)
            continue
        seen.update(members)
        breaks = (
            k
            for k in range(1, len(ways))
            if ways[k] % 2 != ways[0] % 2 or is_out_of_time(flat[ways[k - 1] ^ 1], flat[ways[k]])
        )
        run = next(breaks, len(ways))
        found.append((with_clones(members), len(with_clones(members[:run]))))
        places[i] = (len(found) - 1, (ways[0] % 2, abs(float(z[ways[0] // 2, ways[0] % 2])), ways[0]))
    behind: set[int] = set()
    for number, other in (partners or {}).items():
        (first, begin), (second, other_begin) = places[number], places[other]
        if len(found[first][0]) + len(found[second][0]) <= most and begin < other_begin:
            found[first] = (found[first][0] + found[second][0], found[first][1])
            behind.add(second)
    return [each for i, each in enumerate(found) if i not in behind], is_long
