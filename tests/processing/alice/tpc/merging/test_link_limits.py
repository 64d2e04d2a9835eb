"""Every limit of a link and of a clone, on exact circles, and the bins of both searches."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.alice.chain import CHAIN
from hltnode.processing.alice.tpc.collections import TRACK
from hltnode.processing.alice.tpc.merging.collections import (
    NO_END,
    SEGMENT_BINS,
)
from hltnode.processing.alice.tpc.merging.links.find_clones import find_clones
from hltnode.processing.alice.tpc.merging.links.link_segments import link_segments
from hltnode.processing.alice.tpc.merging.segments.sort_segments import sort_segments
from hltnode.processing.framework.limits import BatchLimits
from hltnode.protocol.alice.tpc_banks import N_SLICES
from tests.processing.alice.merged_events import at_the_electrode, two_ends
from tests.processing.alice.merging_oracle import (
    Limits,
    best_ends,
    continuation,
    f,
    limits_of,
)
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms

Floats = NDArray[np.float64]


LIMITS = BatchLimits(events=1, input_bytes=1 << 16)


def best_of(ends: NDArray[np.void], bins: list[int] | None = None) -> list[int]:
    """The best end of each end of some segments, of both forms, all in slice 0 and in one bin or in `bins`."""
    n = len(ends)
    counts = np.zeros(N_SLICES, np.uint32)
    counts[0] = n
    of_bins = np.zeros(n, np.uint16) if bins is None else np.array(bins, np.uint16)
    given = {
        "tpc_slices.tracks": counts,
        "tpc_tracks.count": np.array([n], np.uint32),
        "tpc_tracks.inner": ends[:, 0],
        "tpc_tracks.outer": ends[:, 1],
        "tpc_tracks.bin": of_bins,
        "tpc_tracks.longer": np.full(n, NO_END, np.uint32),
        "tpc_tracks.shorter": np.full(n, NO_END, np.uint32),
    }
    form, common = (
        run_algorithms([sort_segments, link_segments], given, 1, LIMITS, on_cpu(kernels=CHAIN.kernels, common=common))
        for common in (False, True)
    )
    best: list[int] = form["tpc_tracks.best_end"][: 2 * n].tolist()
    assert common["tpc_tracks.best_end"][: 2 * n].tolist() == best
    return best


def linked(ends: NDArray[np.void]) -> bool:
    """Whether an end of one of the segments has a best end."""
    return any(best != NO_END for best in best_of(ends))


def test_every_limit_of_a_link_decides_alone() -> None:
    c = {each.name: each.value for each in link_segments.constants}
    assert linked(two_ends(20.0, 60.0, 1, 0))
    for gap, expected in ((c["max_gap"] - 1, True), (c["max_gap"] + 1, False)):
        assert linked(two_ends(gap, 75.0, 1, 0)) == expected
    for gap, expected in ((-c["max_overlap"] + 0.1, True), (-c["max_overlap"] - 0.1, False)):
        assert linked(two_ends(gap, 1000.0, 1, 0)) == expected
    for radius, expected in ((c["max_turning_radius"] - 1, True), (c["max_turning_radius"] + 1, False)):
        assert linked(two_ends(150.0, radius, 0, 0)) == expected
        assert linked(two_ends(20.0, radius, 1, 0))
    # Each of the five differences with the variance of both ends at gap 0.
    limit = np.sqrt(c["max_chi2"])
    common = {"y": 0.02 + c["distance"] ** 2, "z": 0.02 + c["z"] ** 2 + 0.01 * c["distance"] ** 2}
    common |= {"slope": 2e-4 + c["slope"] ** 2, "curvature": 2e-8 + (c["bend"] / 60.0) ** 2}
    for name, variance in common.items():
        sigma = np.sqrt(variance)
        assert linked(two_ends(0.0, 60.0, 1, 0, **{name: 0.98 * limit * sigma}))
        assert not linked(two_ends(0.0, 60.0, 1, 0, **{name: 1.02 * limit * sigma}))
    sigma = np.sqrt(2e-4 + c["angle"] ** 2)
    for turns, expected in ((0.98 * limit, True), (1.02 * limit, False)):
        ends = two_ends(0.0, 1000.0, 1, 0)
        ends[1, 0]["along_x"], ends[1, 0]["along_y"] = -np.sqrt(1 - (turns * sigma) ** 2), turns * sigma
        assert linked(ends) == expected
    # A segment without outer end.
    ends = two_ends(20.0, 60.0, 1, 0)
    ends[1, 0]["along_x"] = ends[1, 0]["along_y"] = 0.0
    assert not linked(ends)


def test_errors_behind_a_gap_are_those_of_small_changes_of_the_end() -> None:
    """The covariance of distance, angle and curvature, moved along the circle, against differences of two ways."""
    one, off = f(1), f(1e9)  # tolerances; with `off` a difference does not count
    limits = {
        "distance": Limits(one, off, off, off, off, f(400), f(5)),
        "angle": Limits(off, one, off, off, off, f(400), f(5)),
    }
    change = np.array([0.05, 1e-3, 2e-5])  # of distance, angle, curvature
    for gap, radius in ((5.0, 60.0), (40.0, -60.0), (150.0, 75.0), (30.0, 1000.0)):
        ends = two_ends(gap, radius, 1, 0, x=0.2, y=0.3)
        a, b = ends[0, 1:].copy(), ends[1, :1].copy()
        for end in (a, b):
            for name in ("dd", "df", "ff", "dk", "fk", "kk", "zz", "lz", "ll"):
                end[name] = 0
        # The way into b meets it at an angle that is not 0.
        ax, ay = float(b["along_x"][0]), float(b["along_y"][0])
        b["along_x"], b["along_y"] = ax - 0.02 * ay, ay + 0.02 * ax
        for name, of in limits.items():

            def difference(step: float, of: Limits = of, a: NDArray[np.void] = a, b: NDArray[np.void] = b) -> float:
                moved = a.copy()
                d, turned, k = step * change
                moved["y"] += d
                moved["along_x"], moved["along_y"] = np.cos(turned), np.sin(turned)
                moved["curvature"] += k
                return float(np.sqrt(continuation(of, moved, b)[0][0]))

            expected = (difference(0.5) - difference(-0.5)) ** 2
            (dd, df, dk), (_, ff, fk), (_, _, kk) = np.outer(change, change)
            wide = a.copy()
            for term, value in (("dd", dd), ("df", df), ("ff", ff), ("dk", dk), ("fk", fk), ("kk", kk)):
                wide[term] = 1e4 * value
            variance = difference(0.0) ** 2 / float(continuation(of, wide, b)[0][0]) - 1.0
            assert variance == pytest.approx(1e4 * expected, rel=0.03), (name, gap, radius)


def test_the_next_segment_wins_over_a_better_one_farther_away() -> None:
    c = {each.name: each.value for each in link_segments.constants}
    for extra, nearer in ((-0.5, True), (0.5, False)):
        ends = np.concatenate([two_ends(10.0, 60.0, 1, 0, z=0.0), two_ends(30.0, 60.0, 1, 0)[1:]])
        sigma2 = 0.02 + c["z"] ** 2 + 0.01 * (1 + 1 / 36) * c["distance"] ** 2 + 100 * 0.5e-4
        ends[1, 0]["z"] += np.sqrt((c["chi2_of_gap"] * 20.0 + extra) * sigma2)
        counts = np.zeros(N_SLICES, np.uint32)
        counts[0] = 3
        limits, constants = limits_of(link_segments)
        best = best_ends(limits, ends, np.zeros(3, np.int64), np.zeros(3, bool), constants)
        assert (best[1] == 2) == nearer
        assert linked(ends)


def test_segments_are_searched_in_the_bins_around_their_own() -> None:
    ends = two_ends(20.0, 60.0, 1, 0)
    middle = 30 * 64 + 20
    for first, second, expected in (
        *((middle, middle + lines * 64, abs(lines) <= 2) for lines in (-3, -2, 2, 3)),
        *((middle, middle + columns, abs(columns) <= 5) for columns in (-6, -5, 5, 6)),
        # The axis is periodic; |pz / pT| is not.
        *((30 * 64 + 1, 30 * 64 + column, expected) for column, expected in ((60, True), (59, False))),
        *((30 * 64 + 62, 30 * 64 + column, expected) for column, expected in ((3, True), (4, False))),
        *((line * 64 + 20, (63 - line) * 64 + 20, False) for line in (0, 63)),
        *((line * 64 + 20, other * 64 + 20, True) for line, other in ((0, 2), (63, 61))),
    ):
        # Each of the two searches: from the outer end of the first, and from the inner one of the second.
        best = [NO_END, 2, 1, NO_END] if expected else [NO_END] * 4
        assert best_of(ends, [first, second]) == best, (first, second)


def longer_of(
    inner: NDArray[np.void], rows: list[tuple[int, int]], n_clusters: list[int], slices: tuple[int, ...] = (0, 0)
) -> list[int]:
    """The longer segment of each of some segments in the same bin; their slices must rise."""
    n = len(inner)
    begins = np.zeros(SEGMENT_BINS + 1, np.uint32)
    begins[1:] = n
    tracks = np.zeros(n, TRACK.dtype)
    tracks["n_clusters"], tracks["slice"] = n_clusters, slices
    given = {
        "tpc_slices.tracks": np.bincount(slices, minlength=N_SLICES).astype(np.uint32),
        "tpc_tracks.track": tracks,
        "tpc_tracks.inner": inner,
        "tpc_tracks.rows": np.array(rows, np.uint8).ravel(),
        "tpc_tracks.bin": np.zeros(n, np.uint16),
        "tpc_tracks.bin_begins": begins,
        "tpc_tracks.sorted": np.arange(n, dtype=np.uint32),
    }
    found = run_algorithms([find_clones], given, 1, LIMITS, on_cpu(kernels=CHAIN.kernels))
    longer: list[int] = found["tpc_tracks.longer"][:n].tolist()
    for i in range(n):
        assert found["tpc_tracks.shorter"][i] == (longer.index(i) if i in longer else NO_END)
    return longer


def two_inner_ends(gap: float, radius: float, **moved: float) -> NDArray[np.void]:
    """Inner ends of two segments on one circle; the second one lies `gap` cm farther along it."""
    a, b = two_ends(gap, radius, 1, 0, **moved)[[0, 1], [1, 0]].copy()
    for name in ("along_x", "along_y", "curvature", "slope"):
        a[name] = -a[name]
    return np.array([a, b])


def test_every_limit_of_a_clone_decides_alone() -> None:
    c = {each.name: each.value for each in find_clones.constants}
    rows, sizes = [(0, 99), (10, 59)], [100, 50]

    def is_clone(ends: NDArray[np.void]) -> bool:
        longer = longer_of(ends, rows, sizes)
        assert longer in ([NO_END, 0], [NO_END, NO_END])
        return longer[1] == 0

    for sign in (-1, 1):
        for way, expected in ((c["max_clone_gap"] - 1, True), (c["max_clone_gap"] + 1, False)):
            assert is_clone(two_inner_ends(sign * way, 1000.0)) == expected
    limit = np.sqrt(c["max_chi2"])
    common = {"y": 0.02 + c["distance"] ** 2, "z": 0.02 + c["z"] ** 2 + 0.01 * c["distance"] ** 2}
    common |= {"slope": 2e-4 + c["slope"] ** 2, "curvature": 2e-8 + (c["bend"] / 60.0) ** 2}
    for name, variance in common.items():
        for share, expected in ((0.98, True), (1.02, False)):
            assert is_clone(two_inner_ends(0.0, 60.0, **{name: share * limit * np.sqrt(variance)})) == expected
    for share, expected in ((0.98, True), (1.02, False)):
        turned = share * limit * np.sqrt(2e-4 + c["angle"] ** 2)
        ends = two_inner_ends(0.0, 1000.0)
        ends[1]["along_x"], ends[1]["along_y"] = -np.sqrt(1 - turned**2), turned
        assert is_clone(ends) == expected


def test_a_clone_has_half_of_its_rows_in_those_of_a_longer_segment_of_its_slice() -> None:
    ends = two_inner_ends(0.0, 60.0)
    for rows, expected in (
        *(([(50, 99), (25, 74)], 0), ([(50, 99), (24, 74)], NO_END)),  # 25 of 50, and of 51
        *(([(0, 49), (25, 74)], 0), ([(0, 49), (25, 75)], NO_END)),
        ([(0, 9), (20, 29)], NO_END),
    ):
        assert longer_of(ends, rows, [100, 50]) == [NO_END, expected]
    rows = [(0, 99), (0, 99)]
    assert longer_of(ends, rows, [50, 50]) == [NO_END, 0]
    assert longer_of(ends, rows, [50, 51]) == [1, NO_END]
    assert longer_of(ends, rows, [100, 50], (0, 1)) == [NO_END, NO_END]
    # The better one of two longer ones, of equal ones the first.
    for z, best in ((0.0, 0), (0.1, 1)):
        three = np.concatenate([ends[:1], ends[:1], ends[1:]])
        three[0]["z"] += z
        assert longer_of(three, [(0, 99)] * 3, [90, 90, 50], (0, 0, 0))[2] == best


def test_tracks_of_other_collisions_are_linked_over_the_central_electrode() -> None:
    c = {each.name: each.value for each in link_segments.constants}
    for shift in (0.0, 2.0, 50.0, -1.0):
        assert linked(at_the_electrode(shift)) == (shift != -1.0)
    # Not where the particle turns: from an outer end to an outer one, or between two inner ones.
    for first, second, expected in ((1, 0, True), (0, 1, True), (1, 1, False), (0, 0, False)):
        for shift, in_time in ((50.0, expected), (0.0, True)):
            ends = at_the_electrode(shift, 5.0, first, second)
            ends["curvature"] *= 10.0  # it may turn back inwards
            ends[1, second] = two_ends(5.0, 100.0, first, second)[1, second]
            ends[1, second]["slope"], ends[1, second]["z"] = 0.1, -shift - 0.25
            assert linked(ends) == in_time, (first, second, shift)
    # Both ends lead to the electrode.
    for turned in (None, 0, 1):
        ends = at_the_electrode()
        ends["slope"] *= 0.2
        if turned is not None:
            ends[turned]["slope"] *= -1.0
        assert linked(ends) == (turned is None)
    # One of the ends is farther from the electrode than the errors and the way in z allow.
    variance = 0.02 + c["z"] ** 2 + 0.01 * c["distance"] ** 2 + 25 * 0.5e-4 + 0.5**2
    for share, expected in ((0.98, True), (1.02, False)):
        ends = at_the_electrode()
        ends[1, 0]["z"] -= share * np.sqrt(c["max_chi2"] * variance)
        assert linked(ends) == expected


def test_a_difference_in_z_that_a_helix_can_have_is_in_time() -> None:
    """The least shift, 1 cm beyond the way in z. The sum of z would do, the difference on the helix does not."""
    for apart, expected in ((0.98, False), (1.02, True)):
        ends = at_the_electrode(0.0, 20.0)
        for name in ("dd", "zz"):
            ends[name] = 1e-6
        ends["ll"] = 1e-9
        # 1.58 chords in z, and the least shift.
        dz = 0.5 * (0.1 * 1.58 * 20.0 + apart)
        ends[0, 1]["z"], ends[1, 0]["z"] = dz, -dz
        assert linked(ends) == expected
