"""Downstream tracks against their oracle, on toy tracks, simulated and real events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.parametrisation.parameters import LongTrackParameters
from hltnode.processing.lhcb.tracks.downstream.collections import MAX_TRACKS_PER_EVENT
from hltnode.processing.lhcb.tracks.downstream.ghost_network import DownstreamNetwork, inputs_of
from hltnode.processing.lhcb.tracks.downstream.search_ut import search_ut
from hltnode.processing.lhcb.tracks.downstream.select_tracks import select_tracks
from hltnode.processing.lhcb.tracks.long import collections as long
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.framework.kernel_runner import on_cpu
from tests.processing.lhcb.full_events import full_events
from tests.processing.lhcb.tracks.downstream.downstream_chain import (
    SEED_COLUMNS,
    UT_COLUMNS,
    DownstreamEvent,
    bins_of_hits,
    blocks_of,
    one_thread,
    run_downstream,
)
from tests.processing.lhcb.tracks.downstream.downstream_oracle import CUTS, Z_UT, Field, Hits, Seed, kept_tracks, search
from tests.processing.lhcb.tracks.downstream.toy_tracks import Toy, event_of
from tests.processing.lhcb.whole_chain import reference_of

ALL = select_tracks.with_constants({"max_ghost_probability": 2.0, "max_shared_ut_hits": 4, "max_shared_scifi_hits": 12})
STATE = ("x", "y", "tx", "ty")
both_forms = pytest.mark.parametrize("common", [False, True], ids=["form for the CPU", "common kernel"])


def events_of(banks: Sequence[Sequence[RawBank]], geometry: Path | None) -> list[DownstreamEvent]:
    """The input of the search as the sequence makes it."""
    made = reference_of(encode_mep(CHAIN.with_sequence("hlt1_2026"), banks, encoding="retina"), geometry, "hlt1_2026")

    def column(name: str, dtype: Any) -> NDArray[Any]:
        return np.frombuffer(made.made[name], dtype)

    kinds = {"hit_count": np.uint8, "hits": np.uint16}
    offset, counts = column("ut_hits.offset", np.uint32), column("ut_hits.count", np.uint32)
    n_seeds, n_long = column("scifi_seeds.count", np.uint32), column("long_tracks.count", np.uint32)
    events = []
    for i in range(len(banks)):
        hits = slice(int(offset[i]), int(offset[i] + counts[i]))
        seeds = slice(i * long.MAX_SEEDS_PER_EVENT, i * long.MAX_SEEDS_PER_EVENT + int(n_seeds[i]))
        tracks = slice(i * long.MAX_TRACKS_PER_EVENT, i * long.MAX_TRACKS_PER_EVENT + int(n_long[i]))
        # The matching sorts the hits into the bins that run_downstream gives to the search.
        for name, expected in bins_of_hits(*(column(f"ut_hits.{axis}", np.float32)[hits] for axis in "xz")).items():
            of_events = column(f"ut_hits.{name}", expected.dtype)
            n_bins = len(expected)
            found = of_events[i * n_bins : (i + 1) * n_bins] if name == "bin_begin" else of_events[hits]
            np.testing.assert_array_equal(found, expected)
        events.append(
            DownstreamEvent(
                seeds={
                    name: column(f"scifi_seeds.{name}", kinds.get(name, np.float32)).reshape(
                        (-1, 12) if name == "hits" else (-1,)
                    )[seeds]
                    for name in SEED_COLUMNS
                },
                ut={name: column(f"ut_hits.{name}", np.float32)[hits] for name in UT_COLUMNS},
                long={
                    "hits": column("long_tracks.hits", np.uint16).reshape(-1, 12)[tracks],
                    "ut_hits": column("long_tracks.ut_hits", np.uint16).reshape(-1, 4)[tracks],
                },
                n_scifi=int(column("scifi_hits.count", np.uint32)[i]),
            )
        )
    return events


@cache
def simulated() -> tuple[DownstreamEvent, ...]:
    return tuple(events_of(full_events(4, seed=31), None))


def compare_with_oracle(events: Sequence[DownstreamEvent], common: bool = False) -> int:
    """Compares candidates and tracks of events. Returns the number of tracks."""
    field = Field(LongTrackParameters.builtin())
    candidates, tracks, flags = run_downstream(events, one_thread(common=common))
    assert not flags.any()
    n_seeds = n_differ = 0
    for event, found, of_event in zip(events, candidates, tracks, strict=True):
        hits = Hits.of(event.ut, event.long["ut_hits"])
        used = event.long["hits"][event.long["hits"] != 0xFFFF]
        for i, row in enumerate(event.seeds["hits"]):
            n_used = int(np.isin(row[row != 0xFFFF], used).sum())
            seed = Seed.of(*(float(event.seeds[name][i]) for name in ("x", "y", "tx", "ty", "curvature")))
            expected = None if n_used > 2 else search(seed, hits, field)
            n_seeds += 1
            if (expected is not None) != bool(found["found"][i]):
                n_differ += 1
                continue
            if expected is None:
                continue
            if found["ut_hits"][i].tolist() != list(expected.hits):
                n_differ += 1
                continue
            for name in (*STATE, "magnet_distance", "y_distance", "stereo_distance", "used_ut_hits"):
                assert found[name][i] == pytest.approx(getattr(expected, name), rel=1e-4, abs=2e-2), name
            assert found["qop"][i] == pytest.approx(expected.qop, rel=2e-3)
            assert found["chi2"][i] == pytest.approx(expected.chi2, rel=2e-2, abs=2e-2)
        kept = kept_tracks(event.seeds, found, DownstreamNetwork.builtin())
        assert of_event["seed"].tolist() == kept
        for name in ("x", "tx", "qop", "chi2"):
            np.testing.assert_array_equal(of_event[name], found[name][kept])
        np.testing.assert_array_equal(of_event["ut_hits"], found["ut_hits"][kept])
        np.testing.assert_array_equal(of_event["hits"], event.seeds["hits"][kept])
        np.testing.assert_array_equal(of_event["hit_count"], event.seeds["hit_count"][kept])
    # Single precision decides some candidates at the edge of a window.
    assert n_seeds > 50
    assert n_differ <= 0.01 * n_seeds + 1
    return sum(len(of["x"]) for of in tracks)


@both_forms
def test_tracks_of_simulated_events_are_those_of_the_oracle(common: bool) -> None:
    assert compare_with_oracle(simulated(), common) > 20


def test_events_without_velo_tracks_have_their_downstream_tracks() -> None:
    """The matching has no VELO track to search for, but sorts the UT hits for the downstream search."""
    empty = memoryview(bytes(4))
    banks = [
        [bank._replace(payload=empty) if bank.type == LhcbBankType.VP_RETINA_CLUSTER else bank for bank in event]
        for event in full_events(2, seed=31)
    ]
    events = events_of(banks, None)
    assert [len(event.long["hits"]) for event in events] == [0, 0]
    assert compare_with_oracle(events) > 40


@pytest.mark.physics
def test_tracks_of_the_real_events_are_those_of_the_oracle(shared: Path) -> None:
    (path,) = (shared / "data/lhcb-minbias-mdf").glob("*retina3*.mdf")
    banks = [list(record.banks()) for record in iter_records(path.read_bytes())]
    assert compare_with_oracle(events_of(banks, shared / "data/lhcb-geometry")) > 50


@pytest.mark.parametrize(("block_size", "backward"), [(1, True), (32, False), (100, True)])
def test_every_block_size_gives_the_same_bits(block_size: int, backward: bool) -> None:
    expected = run_downstream(simulated())[1]
    found = run_downstream(simulated(), blocks_of(block_size, backward=backward))[1]
    assert sum(len(of["x"]) for of in expected) > 20
    for one, other in zip(expected, found, strict=True):
        for name in one:
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def test_ghost_probability_is_the_response_of_the_network() -> None:
    network = DownstreamNetwork.builtin()
    for of in run_downstream(simulated(), select=ALL)[1]:
        np.testing.assert_allclose(of["ghost_probability"], network.response(inputs_of(of)), atol=2e-4)


@pytest.mark.parametrize("toy", [Toy(), Toy(x=420.0, tx=0.15, y=120.0, ty=0.04, kink=0.4)])
def test_a_toy_track_is_found_with_its_momentum_and_state(toy: Toy) -> None:
    (candidates,), (tracks,), _ = run_downstream([event_of([toy])], select=ALL)
    assert tracks["seed"].tolist() == [0]
    for name in STATE:
        assert tracks[name][0] == pytest.approx(getattr(toy, name), rel=1e-3, abs=1e-3)
    assert tracks["qop"][0] == pytest.approx(toy.qop, rel=1e-3)
    assert candidates["ut_hits"].tolist() == [[0, 1, 2, 3]]
    # A wrong plane of the kick gives a wrong y in the UT.
    assert abs(tracks["y_distance"][0]) < 1.0


@pytest.mark.parametrize("origin", [-90.0, 90.0])
@pytest.mark.parametrize("kink", [-0.55, -0.3, 0.05, 0.55])
@pytest.mark.parametrize("share", [-0.75, 0.75])
def test_tracks_at_the_edges_of_the_first_estimate_are_found(origin: float, kink: float, share: float) -> None:
    # The first estimate is the line through x = 0. The strips are short, so that the y of the seed decides.
    tx = 0.1
    shift = share * (CUTS["y_window"] + CUTS["y_window_of_kink"] * abs(kink))
    event = event_of([Toy(x=origin + tx * Z_UT, tx=tx, y=260.0, ty=0.1, kink=kink, seed_y_shift=shift)])
    middle = (event.ut["y_begin"] + event.ut["y_end"]) / 2
    ut = {**event.ut, "y_begin": middle - 0.5, "y_end": middle + 0.5}
    both = run_downstream([replace(event, ut=ut)], select=ALL)[0][0]
    assert both["found"].tolist() == [1]
    common = run_downstream([replace(event, ut=ut)], blocks_of(1), select=ALL)[0][0]
    for name in both:
        np.testing.assert_array_equal(both[name], common[name], err_msg=name)


@pytest.mark.parametrize(
    ("constant", "wide", "narrow", "toy"),
    [
        ("max_origin_x", 400.0, 15.0, Toy()),
        ("min_kink", 0.01, 0.21, Toy()),
        ("max_kink", 0.7, 0.19, Toy()),
        ("x_window", 1.0, -1.2, Toy(first_shift=0.3)),
        ("x_window_of_kink", 6.0, -5.0, Toy(first_shift=0.3)),
        ("y_window", 40.0, 1.0, Toy(seed_y_shift=20.0)),
        ("y_window_of_kink", 40.0, -50.0, Toy(seed_y_shift=20.0)),
        ("y_margin", 4.0, -40.0, Toy()),
        ("stereo_window", 0.8, 0.2, Toy(stereo_shift=0.3)),
        ("max_chi2", 12.0, 1.0, Toy(stereo_shift=0.3)),
        ("max_used_ut_hits", 1, 0, Toy(used_ut=1)),
        ("used_hit_penalty", 3.0, 13.0, Toy(used_ut=1)),
        ("max_used_scifi_hits", 2, 1, Toy(used_scifi=2)),
        ("max_pairs", 1, 0, Toy()),
    ],
)
@both_forms
def test_each_constant_of_the_search_decides_about_a_track(
    constant: str, wide: float, narrow: float, toy: Toy, common: bool
) -> None:
    for value, expected in ((wide, 1), (narrow, 0)):
        search_with = search_ut.with_constants({constant: value})
        launch = one_thread(common=common)
        (found,), _, flags = run_downstream([event_of([toy])], launch, search=search_with, select=ALL)
        assert found["found"].tolist() == [expected]
        assert bool(flags[0]) == (constant == "max_pairs" and not expected)


def test_more_pairs_than_the_share_of_a_seed_flag_the_event() -> None:
    search_with = search_ut.with_constants({"max_pairs": 0})
    assert run_downstream([event_of([Toy()])], search=search_with)[2].tolist() == [EventFlag.OVERFLOW]


@both_forms
def test_the_seeds_of_an_event_share_the_pairs_equally(common: bool) -> None:
    event = event_of([Toy(), Toy(x=-300.0, tx=-0.1)])
    for limit, expected in ((2, [1, 1]), (1, [0, 0])):
        search_with = search_ut.with_constants({"max_pairs": limit})
        (found,), _, flags = run_downstream([event], one_thread(common=common), search=search_with, select=ALL)
        assert found["found"].tolist() == expected
        assert flags.tolist() == [0 if limit == 2 else EventFlag.OVERFLOW]


@both_forms
def test_a_seed_with_more_pairs_than_its_share_keeps_the_best_of_them(common: bool) -> None:
    # The second track has the seed of the first one, and a first hit beside it.
    event = event_of([Toy(first_shift=0.3), Toy()])
    one = {name: column[:1] for name, column in event.seeds.items()}
    for limit, first_hit in ((2, 4), (1, 0)):
        search_with = search_ut.with_constants({"max_pairs": limit})
        launch = one_thread(common=common)
        (found,), _, flags = run_downstream([replace(event, seeds=one)], launch, search=search_with, select=ALL)
        assert found["ut_hits"][0, 0] == first_hit
        assert flags.tolist() == [0 if limit == 2 else EventFlag.OVERFLOW]


@both_forms
@pytest.mark.parametrize("layer", range(4))
def test_the_strip_of_each_layer_must_reach_the_y_of_the_stereo_hits(layer: int, common: bool) -> None:
    # The y of the seed is wrong by 10 mm: a short strip there is in its window, but 10 mm from the track.
    event = event_of([Toy(seed_y_shift=10.0)])
    for shift, expected in ((0.0, 1), (10.0, 0)):
        ut = {name: column.copy() for name, column in event.ut.items()}
        middle = (ut["y_begin"][layer] + ut["y_end"][layer]) / 2 + shift
        ut["y_begin"][layer], ut["y_end"][layer] = middle - 1.0, middle + 1.0
        (found,), _, _ = run_downstream([replace(event, ut=ut)], one_thread(common=common), select=ALL)
        assert found["found"].tolist() == [expected]


@both_forms
@pytest.mark.parametrize("layer", range(4))
def test_of_equal_candidates_the_one_with_the_first_hit_is_kept(layer: int, common: bool) -> None:
    # A copy of the hit of one layer makes a second candidate with the same chi2.
    event = event_of([Toy()])
    ut = {name: np.append(column, column[layer]) for name, column in event.ut.items()}
    (found,), _, _ = run_downstream([replace(event, ut=ut)], one_thread(common=common), select=ALL)
    assert found["ut_hits"].tolist() == [[0, 1, 2, 3]]


@both_forms
@pytest.mark.parametrize("layer", range(4))
def test_a_hit_of_a_long_track_adds_to_chi2_in_each_layer(layer: int, common: bool) -> None:
    event = event_of([Toy()])
    long_ut = np.full((1, 4), 0xFFFF, np.uint16)
    without, with_it = (
        run_downstream([replace(event, long={**event.long, "ut_hits": hits})], one_thread(common=common), select=ALL)
        for hits in (long_ut, np.where(np.arange(4) == layer, layer, long_ut).astype(np.uint16))
    )
    assert with_it[0][0]["used_ut_hits"].tolist() == [1.0]
    np.testing.assert_allclose(with_it[0][0]["chi2"], without[0][0]["chi2"] + 3.0, rtol=1e-5)


@both_forms
@pytest.mark.parametrize("n", [1, 8, 9, 16, 17, 33])
@pytest.mark.parametrize("layer", range(4))
def test_the_best_of_many_hits_of_a_layer_is_kept(layer: int, n: int, common: bool) -> None:
    # All others are within the windows of the layer, but 0.1 mm and more from the track; the best one is the last.
    event = event_of([Toy()])
    ut = {name: np.append(np.repeat(column[layer], n - 1), column) for name, column in event.ut.items()}
    ut["x"][: n - 1] += np.linspace(0.4, 0.1, n - 1, dtype=np.float32)
    (found,), _, flags = run_downstream([replace(event, ut=ut)], one_thread(common=common), select=ALL)
    assert found["ut_hits"].tolist() == [[n - 1, n, n + 1, n + 2]]
    assert flags.tolist() == [0]


def test_of_a_bin_with_more_than_64_hits_none_is_used() -> None:
    event = event_of([Toy()])
    for n, expected in ((64, 1), (65, 0)):
        # Copies of the hit in the last layer.
        ut = {name: np.append(column, np.repeat(column[3], n - 1)) for name, column in event.ut.items()}
        assert run_downstream([replace(event, ut=ut)], select=ALL)[0][0]["found"].tolist() == [expected]


def test_a_seed_that_is_no_number_has_no_track_and_changes_no_other_one() -> None:
    event = event_of([Toy(), Toy(x=-300.0, tx=-0.1)])
    for name in ("x", "y", "tx", "ty", "curvature"):
        for value in (np.nan, np.inf, -np.inf):
            column = event.seeds[name].copy()
            column[0] = value
            bad = replace(event, seeds={**event.seeds, name: column})
            (found,), (tracks,), flags = run_downstream([bad], select=ALL)
            assert found["found"].tolist() == [0, 1], (name, value)
            assert tracks["seed"].tolist() == [1]
            assert flags.tolist() == [0]


def test_every_instruction_set_gives_the_same_bits() -> None:
    expected = run_downstream(simulated())[1]
    for target in KernelLibrary(CHAIN.kernels).targets:
        for one, other in zip(expected, run_downstream(simulated(), on_cpu(target))[1], strict=True):
            for name in one:
                np.testing.assert_array_equal(one[name], other[name], err_msg=f"{target}, {name}")


def test_tracks_with_common_hits_are_one_track() -> None:
    one = Toy()
    event = event_of([one, one])
    assert event.seeds["hits"][0].tolist() != event.seeds["hits"][1].tolist()
    # Both seeds have the same hits in the UT.
    for limit, expected in ((3, [0]), (4, [0, 1])):
        select = ALL.with_constants({"max_shared_ut_hits": limit})
        assert run_downstream([event], select=select)[1][0]["seed"].tolist() == expected
    apart = event_of([one, replace(one, x=one.x + 40.0)])
    same = {**apart.seeds, "hits": np.repeat(apart.seeds["hits"][:1], 2, axis=0)}
    for limit, n_expected in ((11, 1), (12, 2)):
        select = ALL.with_constants({"max_shared_scifi_hits": limit})
        tracks = run_downstream([replace(apart, seeds=same)], select=select)[1][0]
        assert len(tracks["seed"]) == n_expected


def test_a_track_above_the_ghost_probability_is_dropped_and_owns_no_hit() -> None:
    (tracks,) = run_downstream([event_of([Toy()])], select=ALL)[1]
    probability = float(tracks["ghost_probability"][0])
    for factor, expected in ((1.001, 1), (0.999, 0)):
        select = ALL.with_constants({"max_ghost_probability": probability * factor})
        assert len(run_downstream([event_of([Toy()])], select=select)[1][0]["x"]) == expected


@pytest.mark.parametrize(("n", "flag"), [(MAX_TRACKS_PER_EVENT, 0), (MAX_TRACKS_PER_EVENT + 1, EventFlag.OVERFLOW)])
def test_one_track_more_than_fits_flags_the_event(n: int, flag: int) -> None:
    event = event_of([Toy()] * n)
    (tracks,), flags = run_downstream([event], select=ALL)[1:]
    assert len(tracks["seed"]) == MAX_TRACKS_PER_EVENT
    assert flags.tolist() == [flag]
