"""The chain against brute force on every hit: simulated streams, each trigger at its edge, each flag alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.km3net.chain import CHAIN
from hltnode.processing.km3net.geometry.pmt_table import Detector, building_block, nemo_tower
from hltnode.processing.km3net.hits.collections import MAX_CANDIDATES, MAX_HITS, MAX_WINDOWS
from hltnode.processing.km3net.offline.simulation.stream import Conditions, HitStream
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.protocol.km3net.hit_banks import HIT
from tests.processing.km3net.telescope_events import TOWER, Found, made_hits, mep_of_hits, run_chain, simulated
from tests.processing.km3net.trigger_oracle import AFC, CAUSAL, CHARGE, DN7, FC, N7, SC, expected

LENGTH = 25_000


def configuration(**changed: Any) -> str:
    """The constants of both kernels."""
    shared = {"length", "time_window"}
    sort = "".join(f"{name} = {value}\n" for name, value in changed.items() if name in shared)
    find = "".join(f"{name} = {value}\n" for name, value in changed.items())
    return f"[sequence.km3net_sort_hits]\n{sort}[sequence.km3net_find_candidates]\n{find}"


def check(sub_slices: Any, detector: Detector = TOWER, **changed: Any) -> Found:
    """Run the sub-slices, and compare all hits, candidates, windows and flags with the oracle."""
    found = run_chain(mep_of_hits(sub_slices, 7, detector), configuration(**changed), detector)
    margins = changed.get("margin_before", 1), changed.get("margin_behind", 1)
    n = len(sub_slices)
    for e, here in enumerate(sub_slices):
        behind = sub_slices[e + 1] if e + 1 < n else None
        margin = e < margins[0] or e + margins[1] >= n
        true = expected(detector, here, behind, margin=margin, **changed)
        np.testing.assert_array_equal(found.hits[e], true.keys)
        assert found.own[e] == true.own
        np.testing.assert_array_equal(found.candidates[e], true.candidates)
        np.testing.assert_array_equal(found.windows[e], true.windows)
        assert found.flags[e] == true.flags, e
    np.testing.assert_array_equal(found.numbers, np.column_stack([np.full(n, 7), np.arange(n)]))
    return found


def between(*middle: NDArray[np.void], behind: NDArray[np.void] | None = None) -> list[NDArray[np.void]]:
    """Sub-slices between two margins."""
    empty = np.zeros(0, HIT)
    return [empty, *middle, empty if behind is None else behind]


@pytest.mark.parametrize(
    "changed",
    [{}, {"time_window": 1000, "min_hits": 9, "required": DN7 | CAUSAL}, {"simple_window": 3, "floor_window": 6}],
)
def test_simulated_hits_give_the_candidates_of_brute_force(changed: dict[str, Any]) -> None:
    found = check(simulated(5, 40, muon_rate=10_000.0), **changed)
    assert sum(map(len, found.candidates)) > 20
    assert sum(map(len, found.windows)) < sum(map(len, found.candidates))


def test_other_detectors_give_the_candidates_of_brute_force() -> None:
    for detector, rate, radius in ((nemo_tower(), 55_000.0, 60.0), (building_block(3, 18, 31), 1_000.0, 100.0)):
        stream = HitStream(detector, Conditions(rate=rate, radius=radius, muon_rate=40_000.0, coincidences=300.0), 3)
        found = check([stream.hits(i)[0] for i in range(6)], detector, time_window=1000)
        assert sum(map(len, found.candidates)) > 10


def seven(last: int = 499, start: int = 1000) -> list[tuple[int, int]]:
    """Seven hits of which the first two are of one floor and the third one of the next floor; the last one at start +
    last."""
    return [(0, start), (2, start + 50), (6, start + 100), (20, start + 150), (40, start + 200), (60, start + 300),
            (80, start + last)]  # fmt: skip


EDGES: list[tuple[list[Any], int]] = [
    (seven(499), N7 | DN7 | FC | AFC),
    (seven(500), 0),
    (seven(400)[:6], 0),
    ([*seven()[:6], (60, 1400)], N7 | FC | AFC),
    ([(0, 1000), (1, 1019), *seven()[2:]], N7 | DN7 | SC | FC | AFC),
    ([(0, 1000), (1, 1020), *seven()[2:]], N7 | DN7 | FC | AFC),
    ([(0, 1000), (2, 1099), *seven()[2:]], N7 | DN7 | FC | AFC),
    ([(0, 1000), (2, 1100), *seven()[2:]], 0),
    ([(0, 1000), (0, 1010), *seven()[2:]], 0),
    ([*seven()[:2], (6, 1299), *seven()[3:]], N7 | DN7 | FC | AFC),
    ([*seven()[:2], (6, 1300), *seven()[3:]], 0),
    ([*seven()[:2], (48, 1100), *seven()[3:]], 0),
    ([*seven()[:6], (80, 1499, 300)], N7 | DN7 | FC | AFC),
    ([*seven()[:6], (80, 1499, 301)], N7 | DN7 | FC | AFC | CHARGE),
]
"""Hits, and the triggers of the only candidate; 0: there is none."""


def test_each_trigger_is_decided_by_its_own_threshold() -> None:
    found = check(between(*(made_hits(hits) for hits, _ in EDGES)), min_causal=8)
    for (hits, bits), candidates in zip(EDGES, found.candidates[1:], strict=False):
        assert [int(one["triggers"]) for one in candidates] == ([bits] if bits else []), hits


def test_light_connects_hits_by_the_speed_in_water() -> None:
    """PMTs 0 and 78 are 260.06 m apart: light needs 1,196.9 ns, and 20 ns are added."""
    near = [(0, 1000), (1, 1005), (2, 1010), (3, 1015), (4, 1020), (6, 1100)]
    cases = [made_hits([*near, (78, 1000 + apart)]) for apart in (1216, 1217)]
    found = check(between(cases[0], cases[0][:0], cases[1]), time_window=2000, min_causal=7)
    assert [found.candidates[e]["causal_hits"].tolist() for e in (1, 3)] == [[7], [6]]
    assert [int(found.candidates[e]["triggers"][0]) & CAUSAL for e in (1, 3)] == [CAUSAL, 0]


def test_a_candidate_across_a_border_belongs_to_the_sub_slice_of_its_first_hit() -> None:
    cuts, sub_slices = range(1001, 1500, 83), []
    for cut_at in cuts:
        hits = [(pmt, time + LENGTH - cut_at) for pmt, time in seven()]
        here = made_hits([row for row in hits if row[1] < LENGTH])
        behind = made_hits([(pmt, time - LENGTH) for pmt, time in hits if time >= LENGTH])
        sub_slices += [here, behind]
    found = check(between(*sub_slices))
    assert [len(each) for each in found.candidates] == [0, *[1, 0] * len(cuts), 0]
    assert found.windows[1]["end_ns"].tolist() == [LENGTH - 1 + 3000]
    # The margin behind has the hits that the last candidate needs.
    found = check(between(sub_slices[0], behind=sub_slices[1]))
    assert [len(each) for each in found.candidates] == [0, 1, 0]


def test_margins_begin_no_candidate_and_a_missing_one_is_flagged() -> None:
    hits = made_hits(seven())
    found = check([hits, hits, hits, hits], margin_before=1, margin_behind=2)
    assert [len(each) for each in found.windows] == [0, 1, 0, 0]
    found = check([hits, hits], margin_before=0, margin_behind=0)
    assert [len(each) for each in found.windows] == [1, 1]
    assert found.flags == [set(), {"NOTHING_BEHIND"}]


def test_windows_that_touch_are_joined_and_one_ns_more_parts_them() -> None:
    for gap, n in ((6000, 1), (6001, 2)):
        found = check(between(made_hits([*seven(start=2000), *seven(start=2000 + gap)])))
        assert len(found.windows[1]) == n
        assert found.windows[1]["start_ns"][0] == -1000


def test_each_flag_has_its_own_cause_and_no_other_sub_slice_has_it() -> None:
    good = made_hits(seven())
    cases: dict[str, NDArray[np.void]] = {
        "TIME_OUTSIDE": made_hits([*seven(), (3, LENGTH)]),
        "UNKNOWN_PMT": made_hits([*seven(), (84, 2000), (65_535, 1)]),
        "TOO_MANY_HITS": made_hits([(i % 84, 24 * i) for i in range(MAX_HITS + 1)]),
        "CROWDED": made_hits([(i % 84, 1000 + i) for i in range(65)]),
    }
    full = made_hits([(i % 84, 24 * i) for i in range(MAX_HITS)])
    empty = good[:0]
    for flag, hits in cases.items():
        found = check(between(good, hits, good[:0], good))
        assert [flag in each for each in found.flags] == [False, False, True, False, False, False]
        assert len(found.windows[1]) == len(found.windows[4]) == 1
    assert len(check(between(full)).hits[1]) == MAX_HITS
    assert "CROWDED" not in check(between(cases["CROWDED"][:-1])).flags[1]
    assert check(between(made_hits([(1, LENGTH - 1)]), empty)).flags[1] == set()


def test_hits_of_the_sub_slice_behind_count_against_the_bound() -> None:
    here = made_hits([(i % 84, 24 * i) for i in range(MAX_HITS - 5)])
    behind = made_hits([(i, 80 * i) for i in range(20)])
    found = check(between(here, behind))
    assert found.flags[1] == {"TOO_MANY_HITS"}
    assert len(check(between(here, behind[:5])).hits[1]) == MAX_HITS


def test_more_candidates_and_windows_than_fit_are_flagged_and_windows_cover_all() -> None:
    burst = made_hits([(i % 84, 1000 + 40 * i) for i in range(400)])
    found = check(between(burst))
    assert found.flags[1] == {"TRIGGERS_LEFT_OUT"}
    assert len(found.candidates[1]) == MAX_CANDIDATES
    assert found.windows[1]["candidates"].sum() > MAX_CANDIDATES
    several = np.concatenate([made_hits(seven(start=1000 * i)) for i in range(1, 19)])
    found = check(between(several), padding=100)
    assert found.flags[1] == {"WINDOWS_JOINED"}
    assert len(found.windows[1]) == MAX_WINDOWS
    assert found.windows[1]["end_ns"][-1] == 18_100
    several = np.concatenate([made_hits(seven(start=1000 * i)) for i in range(1, 17)])
    assert check(between(several), padding=100).flags[1] == set()


def test_a_configuration_that_changes_lengths_changes_how_a_node_cuts_time() -> None:
    trigger = TriggerConfig.from_toml(configuration(length=10_000, margin_before=2, margin_behind=0), CHAIN.menu)
    found, usual = (CHAIN.with_lines(each).streaming for each in (trigger, CHAIN.load_trigger(None)))
    assert found is not None
    assert (found.sub_slice_ns, found.margin_before, found.margin_behind) == (10_000, 2, 0)
    assert usual == CHAIN.streaming


def test_the_same_stream_cut_at_ten_lengths_has_the_same_candidates() -> None:
    stream = HitStream(TOWER, Conditions(muon_rate=20_000.0), 11)
    parts = [stream.hits(number)[0] for number in range(24)]
    times = np.concatenate([hits["time"].astype(np.int64) + LENGTH * i for i, hits in enumerate(parts)])
    hits = np.concatenate(parts)
    whole: dict[int, set[tuple[Any, ...]]] = {}
    borders = 0
    for length in (4_000, 5_000, 6_250, 7_501, 10_000, 12_345, 25_000, 33_333, 50_000, 77_777):
        cut = []
        for begin in range(-length, int(times.max()) + 1 + length, length):
            inside = (times >= begin) & (times < begin + length)
            part = hits[inside].copy()
            part["time"] = times[inside] - begin
            cut.append(part)
        found = run_chain(mep_of_hits(cut), configuration(length=length))
        rows = [
            (int(one["time"]) + (e - 1) * length, *one.tolist()[1:])
            for e, each in enumerate(found.candidates)
            for one in each
        ]
        borders += sum(row[0] // length != (row[0] + 499) // length for row in rows)
        whole[length] = set(rows)
        assert len(rows) == len(whole[length])
        assert not any("TRIGGERS_LEFT_OUT" in each for each in found.flags)
    assert len(whole[LENGTH]) > 50
    assert borders > 20
    assert all(each == whole[LENGTH] for each in whole.values())
