"""SciFi seeding and VELO-SciFi matching agree with their oracle, for every block size and any hits."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.lhcb.tracks.long.collections import MAX_TRACKS_PER_EVENT, MAX_X_SEEDS_PER_EVENT, TrackOrigin
from hltnode.processing.lhcb.tracks.matching.match_seeds import match_seeds
from hltnode.processing.lhcb.ut.collections import NO_TRACK
from tests.processing.framework.kernel_runner import with_block_size
from tests.processing.lhcb.tracks.long.matching_chain import (
    SEEDING,
    MatchedEvent,
    MatchingEvent,
    hits_of,
    matching_kernels,
    run_matching,
)
from tests.processing.lhcb.tracks.long.seeding_oracle import Seed, matches, score_of, seeds
from tests.processing.lhcb.tracks.long.toy_events import (
    DETECTOR,
    TABLES,
    halves_of,
    lines_of,
    toy_event,
    ut_hits_of,
)

SCORE_ERROR = 0.01
"""Single precision; a score of 1.5 is the largest that matches."""


@cache
def sample() -> list[MatchingEvent]:
    rng = np.random.default_rng(3)
    return [toy_event(rng, n, noise) for n, noise in ((30, 20), (0, 0), (1, 0), (80, 40), (0, 60), (12, 5))]


@cache
def result() -> list[MatchedEvent]:
    return run_matching(sample(), TABLES)


@cache
def expected_seeds() -> list[list[Seed]]:
    return [seeds(DETECTOR, halves_of(event)) for event in sample()]


def numbers(seed: Seed) -> list[int]:
    return [number for _, number in seed.hits]


def differing(one: MatchedEvent, other: MatchedEvent) -> list[str]:
    """Columns whose bits differ."""
    assert one.flags == other.flags
    return [
        f"{name}.{column}"
        for name in ("x_seeds", "seeds", "tracks")
        for column, values in getattr(one, name).items()
        if values.tobytes() != getattr(other, name)[column].tobytes()
    ]


def test_seeds_equal_those_of_the_oracle() -> None:
    assert sum(map(len, expected_seeds())) > 110
    for found, expected in zip(result(), expected_seeds(), strict=True):
        assert [hits_of(row) for row in found.seeds["hits"]] == [numbers(seed) for seed in expected]
        for i, seed in enumerate(expected):
            a, b, c, y, ty = seed.parameters
            end = 9410.0 - 8520.0
            assert found.seeds["x"][i] == pytest.approx(a + b * end + c * end**2 * (1 - 0.00028 * end), abs=2e-3)
            assert found.seeds["tx"][i] == pytest.approx(b + c * (2 * end - 3 * 0.00028 * end**2), abs=3e-6)
            assert found.seeds["y"][i] == pytest.approx(y + ty * end, abs=2e-2)
            assert found.seeds["ty"][i] == pytest.approx(ty, abs=2e-5)
            assert found.seeds["curvature"][i] == pytest.approx(c, abs=5e-9)
            assert found.seeds["quality"][i] == pytest.approx(seed.chi2, abs=2e-2)
            assert found.seeds["hit_count"][i] == len(seed.hits)


def test_tracks_equal_those_of_the_oracle() -> None:
    total = 0
    for event, found, of_event in zip(sample(), result(), expected_seeds(), strict=True):
        expected = matches(of_event, lines_of(event), ut_hits_of(event))
        assert found.tracks["velo_track"].tolist() == list(expected)
        assert [hits_of(row) for row in found.tracks["hits"]] == [numbers(of_event[s]) for s in expected.values()]
        assert set(found.tracks["origin"].tolist()) <= {TrackOrigin.MATCHED}
        assert set(found.tracks["ut_track"].tolist()) <= {NO_TRACK}
        lines, ut = lines_of(event), ut_hits_of(event)
        scores = [score_of(of_event[seed], lines[track], ut) for track, seed in expected.items()]
        assert found.tracks["quality"].tolist() == pytest.approx(scores, abs=SCORE_ERROR)
        total += len(expected)
    assert total > 95


def test_the_momentum_of_a_particle_is_that_of_its_kick() -> None:
    for event, found in zip(sample(), result(), strict=True):
        assert np.all(np.isfinite(found.tracks["qop"]))
        kick = found.tracks["tx"] - event.velo["tx"][found.tracks["velo_track"]]
        assert np.all(np.abs(found.tracks["qop"] / kick * 1300.0 - 1.0) < 0.2)


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("block_size", [1, 32, 64, 100, 256])
def test_results_do_not_depend_on_the_threads(block_size: int, backward: bool) -> None:
    launch = with_block_size(block_size, backward=backward, kernels=matching_kernels())
    for one, other in zip(run_matching(sample(), TABLES, launch), result(), strict=True):
        assert differing(one, other) == []


def after_forward(event: MatchingEvent, found: MatchedEvent, chosen: NDArray[np.int64]) -> MatchingEvent:
    """The event after forward tracking, which found some of its tracks."""
    rows = {name: values[chosen] for name, values in found.tracks.items()}
    rows["origin"] = np.full(len(chosen), TrackOrigin.FORWARD, np.uint8)
    used = np.zeros(len(event.scifi_x), np.uint8)
    used[[hit for row in rows["hits"] for hit in hits_of(row)]] = 1
    return replace(event, used=used, found=rows)


def test_tracks_found_before_keep_their_hits_and_their_place_in_the_order_of_velo_tracks() -> None:
    rng = np.random.default_rng(8)
    chosen = [np.flatnonzero(rng.random(len(found.tracks["qop"])) < 0.5) for found in result()]
    events = [after_forward(*all_of_one) for all_of_one in zip(sample(), result(), chosen, strict=True)]
    n_matched = 0
    for event, found in zip(events, run_matching(events, TABLES), strict=True):
        tracks = found.tracks
        assert np.all(np.diff(tracks["velo_track"].astype(int)) > 0)
        before = tracks["origin"] == TrackOrigin.FORWARD
        assert event.used is not None
        for name, values in event.found.items():
            assert tracks[name][before].tobytes() == values.tobytes()
        for row in tracks["hits"][~before]:
            assert not event.used[hits_of(row)].any()
        n_matched += int((~before).sum())
    assert n_matched > 35


def test_backward_velo_tracks_get_no_seed() -> None:
    events = [replace(e, velo=e.velo | {"backward": np.ones(len(e.velo["x"]), np.uint8)}) for e in sample()]
    assert all(len(found.tracks["qop"]) == 0 for found in run_matching(events, TABLES))


def test_a_layer_without_a_hit_in_the_last_station_does_not_hide_a_track() -> None:
    rng = np.random.default_rng(12)
    event = toy_event(rng, 20, noise=0, efficiency=1.0)
    for layer in (8, 11):
        zones = slice(event.scifi_offset[2 * layer], event.scifi_offset[2 * layer + 2])
        lost = np.zeros(len(event.scifi_x), bool)
        lost[zones] = True
        offsets = np.array([np.count_nonzero(~lost[:end]) for end in event.scifi_offset])
        damaged = replace(event, scifi_x=event.scifi_x[~lost], scifi_offset=offsets)
        (found,) = run_matching([damaged], TABLES)
        assert len(found.tracks["qop"]) >= 18


def crowded(x: NDArray[np.float32], n_tracks: int = 0) -> MatchingEvent:
    """An event with the same hits in every zone."""
    x = np.sort(x)
    return MatchingEvent(
        scifi_x=np.tile(x, 24),
        scifi_offset=np.arange(25) * len(x),
        velo={name: np.full(n_tracks, 1e-3, np.float32) for name in ("x", "y", "tx", "ty")}
        | {"backward": np.zeros(n_tracks, np.uint8)},
        ut={name: np.zeros(9, np.float32) for name in ("x", "z", "y_begin", "y_end")},
    )


def assert_possible(event: MatchingEvent, found: MatchedEvent) -> None:
    assert len(found.x_seeds["a"]) <= MAX_X_SEEDS_PER_EVENT
    assert len(found.tracks["qop"]) <= MAX_TRACKS_PER_EVENT
    for rows in (found.seeds["hits"], found.tracks["hits"]):
        for row in rows:
            hits = hits_of(row)
            assert len(hits) >= 9
            zones = np.searchsorted(event.scifi_offset[1:], hits, side="right")
            assert np.all(np.diff(zones // 2) > 0)
            assert len(set((zones % 2).tolist())) == 1
            assert max(hits) < len(event.scifi_x)
    assert np.all(np.diff(found.tracks["velo_track"].astype(int)) > 0)
    assert np.all(found.tracks["velo_track"] < len(event.velo["x"]))


@pytest.mark.parametrize("n_hits", [750, 2700])
def test_an_event_with_too_many_hits_or_curves_is_flagged_and_affects_no_neighbour(n_hits: int) -> None:
    rng = np.random.default_rng(2)
    dense = crowded(rng.uniform(-2600.0, 2600.0, n_hits).astype(np.float32), 500)
    toy = sample()[0]
    first, middle, last = run_matching([toy, dense, toy], TABLES)
    assert middle.flags == EventFlag.OVERFLOW
    assert_possible(dense, middle)
    assert differing(first, result()[0]) == []
    assert differing(last, result()[0]) == []


@pytest.mark.parametrize("found_before", [MAX_TRACKS_PER_EVENT - 1, MAX_TRACKS_PER_EVENT])
def test_a_matched_track_without_a_place_flags_the_event(found_before: int) -> None:
    """The tracks that were found before belong to another VELO track."""
    event = toy_event(np.random.default_rng(3), 1, noise=0, efficiency=1.0)
    doubled = replace(
        event,
        velo={name: np.repeat(values, 2) for name, values in event.velo.items()},
        used=np.zeros(len(event.scifi_x), np.uint8),
        found={"velo_track": np.ones(found_before, np.uint16)},
    )
    (matched,) = run_matching([doubled], TABLES, algorithms=(*SEEDING, match_seeds))
    assert len(matched.seeds["x"]) == 1
    assert matched.flags == (EventFlag.OVERFLOW if found_before == MAX_TRACKS_PER_EVENT else 0)


places = st.one_of(st.floats(-3e3, 3e3, width=32), st.sampled_from([0.0, -1e6, 1e6, 3200.0, -3200.0, 25.0]))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(places, max_size=30), min_size=24, max_size=24),
    st.lists(st.tuples(*[st.floats(-1e4, 1e4, width=32)] * 4), max_size=20),
    st.lists(st.tuples(*[st.floats(-5e3, 5e3, width=32)] * 4), max_size=40),
)
def test_whatever_the_hits_and_tracks_are_seeds_and_tracks_are_possible(
    zones: list[list[float]], lines: list[tuple[float, ...]], ut: list[tuple[float, ...]]
) -> None:
    velo = np.array(lines, np.float32).reshape(-1, 4)
    strips = np.array(ut, np.float32).reshape(-1, 4)
    event = MatchingEvent(
        scifi_x=np.array([x for zone in zones for x in sorted(zone)], np.float32),
        scifi_offset=np.cumsum([0, *map(len, zones)]),
        velo={name: velo[:, i] for i, name in enumerate(("x", "y", "tx", "ty"))}
        | {"backward": np.zeros(len(velo), np.uint8)},
        ut={name: strips[:, i] for i, name in enumerate(("x", "z", "y_begin", "y_end"))},
    )
    (found,) = run_matching([event], TABLES)
    assert_possible(event, found)
