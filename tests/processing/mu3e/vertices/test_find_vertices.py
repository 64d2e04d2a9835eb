"""Vertices against float64 and scipy; each cut at its edge; windows; borders of sub-slices."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.mu3e.chain import CHAIN
from hltnode.processing.mu3e.vertices.collections import MAX_VERTICES, MAX_WINDOWS
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from tests.processing.mu3e.made_particles import one_particle
from tests.processing.mu3e.pixel_events import NO_HITS, Found, hits_of, mep_of_hits, run_chain, simulated
from tests.processing.mu3e.tracks.test_triplets import constants
from tests.processing.mu3e.vertex_oracle import CUTS, Helix, best_vertex, kinematics, triples

LENGTH = 400


def product(number: int, time: int = 100, turn: float = 0.0) -> NDArray[np.void]:
    """HIT[hits] of one of three particles of a decay at rest in the target, without material; 2 is the electron."""
    angle = 0.4 + turn + 2.0 * np.pi * number / 3.0
    momentum = (34.95 * np.cos(angle), 34.95 * np.sin(angle), (6.0, -3.0, -3.0)[number])
    start = (9.5 * np.cos(turn), 9.5 * np.sin(turn), 25.0)
    return one_particle(momentum, (1, 1, -1)[number], start, time=time, most=7)[0]


@cache
def decay(time: int = 100, turn: float = 0.0) -> NDArray[np.void]:
    """HIT[hits] of such a decay."""
    return np.concatenate([product(number, time, turn) for number in range(3)])


def vertices(hits: NDArray[np.void], **changed: float) -> NDArray[np.void]:
    """Vertices of one sub-slice between margins, with other constants of the search for vertices."""
    cuts = NO_LOSS + constants("mu3e_find_vertices", **changed)
    return run_chain(mep_of_hits([NO_HITS, hits, NO_HITS]), cuts).vertices[1]


NO_LOSS = constants("mu3e_extend_tracks", energy_loss=0.0)


def test_vertices_are_those_of_all_triples_in_float64() -> None:
    found = run_chain(mep_of_hits(hits_of(simulated(61, 24, wanted="SIGNAL", spacing=1, muon_rate=4e7))))
    n = edges = 0
    for e in range(1, 23):
        tracks = found.tracks[e]
        listed = {(int(v["track0"]), int(v["track1"]), int(v["track2"])): v for v in found.vertices[e]}
        helices = [Helix.of(track) for track in tracks]
        for triple in triples(tracks):
            of = [helices[t] for t in triple]
            best = best_vertex(of)
            if best is None:
                assert triple not in listed
                continue
            place, chi2 = best
            energy, momentum = kinematics(place, of)
            margins = (
                CUTS["max_chi2"] - chi2,
                CUTS["energy_window"] - abs(energy - CUTS["muon_mass"]),
                CUTS["max_sum"] - momentum,
                CUTS["max_radius"] - np.hypot(*place[:2]),
                CUTS["max_z"] - abs(place[2]),
            )
            if min(map(abs, margins)) < 0.3:
                edges += 1
                continue
            assert (triple in listed) == (min(margins) > 0.0), (e, triple, margins)
            if triple not in listed:
                continue
            vertex = listed[triple]
            n += 1
            assert vertex["chi2"] == pytest.approx(chi2, rel=0.1, abs=0.1)
            np.testing.assert_allclose([vertex[axis] for axis in "xyz"], place, atol=0.05)
            assert vertex["energy"] == pytest.approx(energy, rel=1e-5)
            assert vertex["momentum"] == pytest.approx(momentum, abs=0.05)
            assert vertex["mass"] == pytest.approx(np.sqrt(energy**2 - momentum**2), rel=1e-3)
            assert vertex["time"] == pytest.approx(tracks["time"][list(triple)].mean(), abs=1e-3)
            assert vertex["first"] == tracks["first"][list(triple)].min()
            assert vertex["last"] == tracks["last"][list(triple)].max()
    assert n > 5
    assert edges < n


def test_a_decay_at_rest_has_one_vertex_of_the_mass_of_the_muon() -> None:
    (vertex,) = vertices(decay())
    np.testing.assert_allclose([vertex[axis] for axis in "xyz"], [9.5, 0.0, 25.0], atol=0.15)
    assert vertex["energy"] == pytest.approx(CUTS["muon_mass"], abs=1.0)
    assert vertex["momentum"] < 1.5
    assert (vertex["first"], vertex["last"]) == (100, 100)


def test_each_cut_on_a_vertex_decides_on_its_own() -> None:
    (vertex,) = vertices(decay())
    radius = float(np.hypot(vertex["x"], vertex["y"]))
    error = abs(float(vertex["energy"]) - CUTS["muon_mass"])
    for name, value in (
        ("max_chi2", float(vertex["chi2"])),
        ("energy_window", error),
        ("max_sum", float(vertex["momentum"])),
        ("max_radius", radius),
        ("max_z", abs(float(vertex["z"]))),
    ):
        slack = max(0.02 * value, 1e-3) + (0.6 if name in ("max_radius", "max_z") else 0.0)
        assert len(vertices(decay(), **{name: value + slack})) == 1, name
        assert len(vertices(decay(), **{name: value - slack})) == 0, name
    for name, narrow in (("max_path", 5.0), ("max_distance", 1e-5), ("max_z_apart", 1e-6)):
        assert len(vertices(decay(), **{name: narrow})) == 0, name


def test_tracks_of_three_hits_make_a_vertex_only_if_configured() -> None:
    hits = decay()
    short = NO_LOSS + "max_xy23 = 0.0\nmax_recurl_xy = 0.0\n"
    found = run_chain(mep_of_hits([NO_HITS, hits, NO_HITS]), short)
    assert (found.tracks[1]["hits"] == 3).all()
    assert len(found.vertices[1]) == 0
    cuts = short + constants("mu3e_find_vertices", min_hits=3, max_sum=60.0, energy_window=60.0)
    found = run_chain(mep_of_hits([NO_HITS, hits, NO_HITS]), cuts)
    assert len(found.vertices[1]) > 0


def test_two_positrons_of_a_vertex_have_no_common_hit() -> None:
    """The first hits of a positron have neighbours, so that tracks with and without common hits pass the cuts."""
    beside = product(0)[:3].copy()
    beside["row"] += 1
    hits = np.concatenate([product(0), beside, product(2)])
    cuts = NO_LOSS + constants("mu3e_find_vertices", max_sum=200.0, energy_window=200.0, max_chi2=1000.0)
    found = run_chain(mep_of_hits([NO_HITS, hits, NO_HITS]), cuts)
    assert len(found.vertices[1]) > 0
    assert found.flags[1] == set()
    one, other = (found.tracks[1][found.vertices[1][name]] for name in ("track0", "track1"))
    assert all((one[f"pixel{layer}"] != other[f"pixel{layer}"]).all() for layer in range(3))


@pytest.mark.parametrize(("apart", "n"), [(49, 1), (50, 0)])
def test_the_hits_of_a_vertex_lie_in_a_frame(apart: int, n: int) -> None:
    hits = decay().copy()
    third = len(hits) - len(product(2))
    hits["time"][third:] = 100 + apart
    assert len(vertices(hits)) == n


def test_a_vertex_across_a_border_belongs_to_the_sub_slice_of_its_first_hit() -> None:
    for shift in (0, 1, 20, 48):
        hits = decay().copy()
        third = len(hits) - len(product(2))
        times = hits["time"].astype(int)
        times[:third], times[third:] = LENGTH - 1 - shift, LENGTH + 48 - shift
        first = hits[times < LENGTH].copy()
        first["time"] = times[times < LENGTH]
        second = hits[times >= LENGTH].copy()
        second["time"] = times[times >= LENGTH] - LENGTH
        found = run_chain(mep_of_hits([NO_HITS, first, second, NO_HITS]), NO_LOSS)
        assert [len(each) for each in found.vertices] == [0, 1, 0, 0], shift
        assert found.windows[1]["start_ns"].tolist() == [LENGTH - 1 - shift - 20]
        assert found.windows[1]["end_ns"].tolist() == [LENGTH + 48 - shift + 21]


def cut_at(times: NDArray[np.int64], hits: NDArray[np.void], length: int) -> Found:
    """The stream in sub-slices of a length, with a margin on both sides."""
    cut = []
    for begin in range(-length, int(times.max()) + 1 + length, length):
        inside = (times >= begin) & (times < begin + length)
        part = hits[inside].copy()
        part["time"] = times[inside] - begin
        cut.append(part)
    shared = "".join(
        constants(f"mu3e_{name}", length=length)
        for name in ("sort_hits", "select_triplets", "extend_tracks", "find_vertices")
    )
    return run_chain(mep_of_hits(cut), shared)


def test_the_same_stream_cut_at_ten_lengths_has_the_same_vertices() -> None:
    parts = hits_of(simulated(62, 20, wanted="SIGNAL", spacing=1, muon_rate=5e7))
    times = np.concatenate([hits["time"].astype(np.int64) + LENGTH * i for i, hits in enumerate(parts)])
    hits = np.concatenate(parts)
    whole: dict[int, set[tuple[float, ...]]] = {}
    borders = 0
    for length in (200, 211, 256, 300, 333, 400, 457, 512, 777, 1000):
        found = cut_at(times, hits, length)
        rows = [
            (int(v["first"]) + (e - 1) * length, int(v["last"]) + (e - 1) * length, *v.tolist()[:8])
            for e, each in enumerate(found.vertices)
            for v in each
        ]
        borders += sum(row[0] // length != row[1] // length for row in rows)
        whole[length] = set(rows)
        assert len(rows) == len(whole[length])
    assert len(whole[LENGTH]) > 6
    assert borders > 2
    assert all(each == whole[LENGTH] for each in whole.values())


def test_windows_that_touch_are_joined_and_one_ns_more_parts_them() -> None:
    for apart, n in ((41, 1), (42, 2)):
        hits = np.concatenate([decay(), decay(100 + apart, 1.0)])
        found = run_chain(mep_of_hits([NO_HITS, hits, NO_HITS]), NO_LOSS + constants("mu3e_find_vertices", max_sum=1.5))
        assert len(found.windows[1]) == n, found.windows[1]
        assert found.windows[1]["vertices"].sum() == len(found.vertices[1])
        assert found.windows[1]["start_ns"][0] == 80


def test_more_windows_than_fit_are_joined() -> None:
    several = np.concatenate([decay(20 + 45 * i) for i in range(MAX_WINDOWS + 1)])
    cuts = constants("mu3e_find_vertices", padding=1, time_window=10) + NO_LOSS + "time_window = 10\n"
    cuts += "".join(constants(f"mu3e_{name}", time_window=10) for name in ("sort_hits", "select_triplets"))
    found = run_chain(mep_of_hits([NO_HITS, several[several["time"] < LENGTH], NO_HITS]), cuts)
    assert found.flags[1] == {"WINDOWS_JOINED"}
    assert len(found.windows[1]) == MAX_WINDOWS
    assert found.windows[1]["vertices"].tolist()[-1] == 2
    fewer = several[several["time"] < 20 + 45 * MAX_WINDOWS]
    assert run_chain(mep_of_hits([NO_HITS, fewer, NO_HITS]), cuts).flags[1] == set()


def test_more_vertices_than_fit_are_flagged_and_the_window_covers_all() -> None:
    several = np.concatenate([decay(100 + i) for i in range(2)])
    cuts = NO_LOSS + constants("mu3e_find_vertices", max_sum=60.0, energy_window=60.0)
    found = run_chain(mep_of_hits([NO_HITS, several, NO_HITS]), cuts)
    assert "VERTICES_LEFT_OUT" in found.flags[1]
    assert len(found.vertices[1]) == MAX_VERTICES
    (window,) = found.windows[1]
    assert (window["start_ns"], window["end_ns"]) == (-20, LENGTH + 50 + 20)
    assert window["vertices"] > MAX_VERTICES


def test_too_many_pairs_are_flagged_and_none_is_used() -> None:
    several = np.concatenate([decay(100 + i) for i in range(3)])
    found = run_chain(mep_of_hits([NO_HITS, several, NO_HITS]))
    assert "TOO_MANY_PAIRS" in found.flags[1]
    assert len(found.vertices[1]) == len(found.windows[1]) == 0


def test_margins_have_no_tracks_and_no_vertices() -> None:
    found = run_chain(mep_of_hits([decay(), decay(), decay()]), NO_LOSS)
    assert [len(each) for each in found.vertices] == [0, 1, 0]
    assert [len(each) > 0 for each in found.tracks] == [False, True, False]


def test_a_configuration_that_changes_lengths_changes_how_a_node_cuts_time() -> None:
    names = ("sort_hits", "select_triplets", "extend_tracks", "find_vertices")
    tables = "".join(constants(f"mu3e_{name}", length=1000) for name in names)
    trigger = TriggerConfig.from_toml(tables, CHAIN.menu)
    found, usual = (CHAIN.with_lines(each).streaming for each in (trigger, CHAIN.load_trigger(None)))
    assert found is not None
    assert found.sub_slice_ns == 1000
    assert usual == CHAIN.streaming
