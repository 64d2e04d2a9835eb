"""mu3e_sort_hits: each flag has its own cause; hits near an edge belong to both sub-slices; the order is total."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.mu3e.geometry.sensor_table import pixel_positions, sensors
from hltnode.processing.mu3e.hits.collections import MAX_HITS
from hltnode.protocol.mu3e.hit_banks import HIT, HitBankType, encode_hits
from tests.processing.mu3e.pixel_events import NO_HITS, hits_of, mep_of_hits, mep_of_payloads, run_chain, simulated

LENGTH, REACH, BEHIND = 400, 40, 90
"""ns: of a sub-slice, and how far hits of its neighbours are read."""


def made_hits(rows: list[tuple[int, int, int, int]]) -> NDArray[np.void]:
    """HIT[hits] of (sensor, column, row, time)."""
    return np.array([(*row, 0) for row in rows], HIT)


GOOD = made_hits([(5, 10, 20, 100), (700, 11, 21, 90), (5, 12, 22, 95)])


def times(words: NDArray[np.uint64]) -> list[int]:
    """Times in ns since the start of the sub-slice."""
    return [(int(word) >> 28 & 0x1FFFF) - REACH for word in words]


def test_each_flag_has_its_own_cause_and_no_other_sub_slice_has_it() -> None:
    cases: list[tuple[NDArray[np.void], set[str], int]] = [
        (GOOD, set(), 3),
        (np.concatenate([GOOD, made_hits([(2844, 1, 1, 100)])]), {"UNKNOWN_SENSOR"}, 3),
        (np.concatenate([GOOD, made_hits([(4095, 1, 1, 100)])]), {"UNKNOWN_SENSOR"}, 3),
        (np.concatenate([GOOD, made_hits([(65535, 1, 1, 100)])]), {"UNKNOWN_SENSOR"}, 3),
        (np.concatenate([GOOD, made_hits([(2843, 1, 1, 100)])]), set(), 4),
        (np.concatenate([GOOD, made_hits([(5, 250, 1, 100)])]), {"BAD_COLUMN"}, 3),
        (np.concatenate([GOOD, made_hits([(5, 249, 1, 100)])]), set(), 4),
        (np.concatenate([GOOD, made_hits([(5, 1, 250, 100)])]), {"BAD_ROW"}, 3),
        (np.concatenate([GOOD, made_hits([(5, 1, 249, 100)])]), set(), 4),
        (np.concatenate([GOOD, made_hits([(5, 1, 1, LENGTH)])]), {"TIME_OUTSIDE"}, 3),
        (np.concatenate([GOOD, made_hits([(5, 1, 1, 65535)])]), {"TIME_OUTSIDE"}, 3),
        (np.concatenate([GOOD, made_hits([(5, 1, 1, 200)])]), set(), 4),
        (np.concatenate([GOOD, GOOD[1:2]]), {"REPEATED_HITS"}, 3),
        (NO_HITS, set(), 0),
    ]
    sub_slices = [part for hits, _, _ in cases for part in (NO_HITS, hits)]
    found = run_chain(mep_of_hits([*sub_slices, NO_HITS], 9))
    for e, (_, flags, n) in enumerate(cases):
        assert found.flags[2 * e + 1] == flags, e
        assert found.own_hits[2 * e + 1] == len(found.hits[2 * e + 1]) == n, e
        assert found.flags[2 * e] == ({"MARGIN"} if e == 0 else set())
    np.testing.assert_array_equal(found.numbers, np.column_stack([np.full(29, 9), np.arange(29)]))


def test_banks_that_are_odd_set_flags_and_leave_those_of_other_sources() -> None:
    good = encode_hits(GOOD)
    payloads: list[bytes | None] = [good, good[:-1], good + b"\0" * 4, None, b"", good]
    other = encode_hits(made_hits([(6, 1, 1, 100)]))
    found = run_chain(mep_of_payloads({0: payloads, 3: [other, other, None, None, b"", good]}))
    assert found.flags == [
        {"MARGIN"},
        {"BAD_HITS_BANK"},
        {"BAD_HITS_BANK"},
        {"NO_HITS_BANK"},
        set(),
        {"MARGIN", "REPEATED_HITS"},
    ]
    assert found.own_hits.tolist() == [4, 1, 0, 0, 0, 3]


def test_banks_of_another_version_or_type_are_not_read() -> None:
    good = encode_hits(GOOD)
    for mep in (
        mep_of_payloads({0: [good] * 3}, version=2),
        mep_of_payloads({0: [good] * 3}, kind=HitBankType.SEVERAL_BANKS),
    ):
        found = run_chain(mep)
        assert found.flags[1] == {"BAD_HITS_BANK"}
        assert found.own_hits.tolist() == [0, 0, 0]


def test_hits_of_neighbours_are_read_as_far_as_tracks_need_them() -> None:
    before = made_hits([(5, 1, 1, LENGTH - REACH - 1), (5, 1, 2, LENGTH - REACH), (5, 1, 3, LENGTH - 1)])
    behind = made_hits([(5, 2, 1, 0), (5, 2, 2, BEHIND - 1), (5, 2, 3, BEHIND)])
    found = run_chain(mep_of_hits([before, GOOD, behind]))
    assert sorted(times(found.hits[1])) == [-REACH, -1, 90, 95, 100, LENGTH, LENGTH + BEHIND - 1]
    assert found.own_hits[1] == 3
    assert found.flags[1] == set()


def test_repeated_hits_of_neighbours_are_used_once_and_not_flagged_again() -> None:
    twice = made_hits([(5, 2, 1, 3), (5, 2, 1, 3)])
    found = run_chain(mep_of_hits([NO_HITS, GOOD, twice, NO_HITS]))
    assert found.flags == [{"MARGIN"}, set(), {"REPEATED_HITS"}, {"MARGIN"}]
    assert len(found.hits[1]) == 4


def test_a_slice_without_margins_flags_its_ends() -> None:
    constants = "[sequence.mu3e_sort_hits]\nmargin_before = 0\nmargin_behind = 0\n"
    found = run_chain(mep_of_hits([GOOD, GOOD, GOOD]), constants)
    assert found.flags == [{"NO_NEIGHBOUR"}, set(), {"NO_NEIGHBOUR"}]
    found = run_chain(mep_of_hits([GOOD] * 4), constants.replace("before = 0", "before = 2"))
    assert found.flags == [{"MARGIN"}, {"MARGIN"}, set(), {"NO_NEIGHBOUR"}]


def test_hits_are_sorted_by_layer_and_time_whatever_their_order() -> None:
    hits = hits_of(simulated(21, 6))
    rng = np.random.default_rng(1)
    found, mixed = run_chain(mep_of_hits(hits)), run_chain(mep_of_hits([rng.permutation(each) for each in hits]))
    for e in range(1, 5):
        here = hits[e]
        of = sensors()[here["sensor"]]
        group = np.where(of["station"] == 0, of["layer"], of["layer"] + 2).astype(np.uint64)
        pixel = here["sensor"].astype(np.uint64) << np.uint64(16) | here["column"].astype(np.uint64) << np.uint64(8)
        words = group << np.uint64(45) | (here["time"] + np.uint64(REACH)) << np.uint64(28) | pixel | here["row"]
        time = np.array(times(found.hits[e]))
        inside = (time >= 0) & (time < LENGTH)
        np.testing.assert_array_equal(found.hits[e][inside], np.unique(words))
        order = np.argsort(words)
        np.testing.assert_allclose(found.positions[e][inside], pixel_positions(here[order]), atol=2e-5)
        counts = np.bincount((found.hits[e] >> np.uint64(45)).astype(np.int64), minlength=6)
        np.testing.assert_array_equal(found.begins[e], np.concatenate([[0], np.cumsum(counts)]))
        np.testing.assert_array_equal(found.hits[e], mixed.hits[e])
        np.testing.assert_array_equal(found.tracks[e], mixed.tracks[e])


def test_more_hits_than_fit_are_flagged_and_none_is_used() -> None:
    rows = [(i % 2844, i // 2844, 3, 100 + i % 200) for i in range(MAX_HITS)]
    full = made_hits(rows)
    found = run_chain(mep_of_hits([NO_HITS, full, NO_HITS]))
    assert len(found.hits[1]) == MAX_HITS
    assert "TOO_MANY_HITS" not in found.flags[1]
    found = run_chain(mep_of_hits([NO_HITS, full, made_hits([(9, 9, 9, 0)])]))
    assert "TOO_MANY_HITS" in found.flags[1]
    assert len(found.hits[1]) == found.own_hits[1] == found.n_triplets[1] == 0
    assert found.flags[0] == found.flags[2] == {"MARGIN"}
