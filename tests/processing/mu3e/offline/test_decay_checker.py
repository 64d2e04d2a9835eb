"""Tracks, vertices and windows against decays, on slices made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hltnode.processing.mu3e.offline.validation.decay_checker import (
    BORDER_NS,
    NO_PIXEL,
    SHIFT,
    DecayChecker,
    SliceContent,
    covered,
    particles_of_tracks,
)
from hltnode.processing.mu3e.offline.validation.report import page_of, text_of
from hltnode.protocol.mu3e.hit_banks import NO_PARTICLE, TRUE_DECAY, TRUE_PARTICLE, DecayKind

LENGTH = 400
MOMENTA = ((40.0, 0.0, 0.0), (0.0, 30.0, 0.0), (0.0, 0.0, 20.0))


def signal_slice(*, time: float = 100.0, layers: int = 15, kind: DecayKind = DecayKind.SIGNAL) -> SliceContent:
    """A margin, two sub-slices and a margin. A decay in the first sub-slice, with three found tracks and a vertex."""
    number = 1 << 10
    particles = np.zeros(3, TRUE_PARTICLE)
    particles["id"], particles["decay"], particles["layers"] = number + np.arange(3), number, [15, 15, layers]
    particles["charge"] = 1, -1, 1
    particles["momentum"], particles["time"] = MOMENTA, time
    decays = np.array([(number, kind, 3, time, (1.0, 2.0, 3.0))], TRUE_DECAY)
    pixels = 1000 * (1 + np.arange(3))[:, None] + np.arange(4)
    hits = np.column_stack([np.ones(12, int), pixels.ravel(), np.repeat(particles["id"], 4)])
    return SliceContent(
        length=LENGTH,
        is_margin=np.array([True, False, False, True]),
        hits=hits.astype(np.int64),
        particles=particles,
        particle_slice=np.ones(3, np.int64),
        decays=decays,
        decay_slice=np.ones(1, np.int64),
        pixels=pixels.astype(np.int64),
        recurls=np.array([1003, NO_PIXEL, NO_PIXEL]),
        momenta=np.array([40.5, 29.0, 20.25]),
        charges=np.array([1, -1, 1]),
        own=np.ones(3, bool),
        track_slice=np.ones(3, np.int64),
        vertices=np.array([[1.1, 2.0, 2.9]]),
        vertex_tracks=np.array([[0, 1, 2]]),
        windows=np.array([[480, 560]], np.int64),
    )


def checked(*slices: SliceContent) -> dict[str, Any]:
    """The result over slices."""
    checker = DecayChecker()
    for each in slices:
        checker.add(each)
    return checker.result()


def test_a_track_belongs_to_the_particle_of_three_of_its_pixels() -> None:
    hits = np.array([[4, 1, 7], [4, 2, 7], [4, 3, 7], [4, 4, 8], [4, 5, 8], [4, 6, NO_PARTICLE]], np.int64)
    tracks = np.array(
        [
            [1, 2, 3, 4],
            [1, 2, 3, NO_PIXEL],
            [1, 2, 4, 5],
            [1, 2, NO_PIXEL, NO_PIXEL],
            [6, 6, 6, 6],
            [4, 1, 2, 3],
            [9, 1, 2, 3],
        ],
        np.int64,
    )
    found = particles_of_tracks(hits, np.full(len(tracks), 4), tracks)
    assert found.tolist() == [7, 7, -1, -1, -1, 7, 7]
    assert len(particles_of_tracks(hits, np.empty(0, np.int64), np.empty((0, 4), np.int64))) == 0
    assert particles_of_tracks(hits[:0], np.array([4]), tracks[:1]).tolist() == [-1]


def test_pixels_are_looked_up_in_neighbouring_sub_slices_behind_their_own() -> None:
    hits = np.array([[4, 1, 7], [5, 2, 7], [3, 3, 7], [3, 1, 9], [5, 3, 9], [6, 4, 7]], np.int64)
    # Pixel 3 is in the sub-slices before and behind: that behind counts.
    tracks = np.array([[1, 2, 3, NO_PIXEL], [1, 2, 4, NO_PIXEL]], np.int64)
    assert particles_of_tracks(hits, np.array([4, 4]), tracks).tolist() == [-1, -1]
    without = hits[[0, 1, 2, 3, 5]]
    assert particles_of_tracks(without, np.array([4, 4]), tracks).tolist() == [7, -1]


def test_time_in_windows_that_overlap_counts_once() -> None:
    assert covered(np.array([[10, 20], [0, 12], [30, 31], [14, 15]])) == 21
    assert covered(np.empty((0, 2), np.int64)) == 0


def test_a_signal_with_a_vertex_of_its_tracks_in_a_window_is_found_and_kept() -> None:
    result = checked(signal_slice())
    assert (result["accepted"], result["signal_efficiency"], result["kept"], result["accidental"]) == (1, 1.0, 1.0, 0.0)
    assert (result["windows"], result["background_windows"]) == (1, 0)
    assert result["rate_reduction"] is None
    assert result["rate_reduction_limit"] == pytest.approx(2 / 2.303)
    assert result["decays"] == {"michel": 0, "signal": 1, "conversion": 0, "bhabha": 0}
    assert result["track_efficiency"] == 1.0
    assert result["ghost_fraction"] == 0.0
    assert result["live_time_s"] == pytest.approx(8e-7)


def test_resolutions_are_half_widths_of_residuals_by_the_hits_of_tracks() -> None:
    one = signal_slice()
    rng = np.random.default_rng(1)
    slices = []
    for _ in range(400):
        momenta = np.array([40.0, 30.0, 20.0]) + rng.normal(0.0, [0.2, 1.0, 2.0])
        pixels = one.pixels.copy()
        pixels[2, 3] = NO_PIXEL
        vertices = np.array([[1.0, 2.0, 3.0]]) + rng.normal(0.0, 0.15, (1, 3))
        slices.append(replace(one, momenta=momenta, pixels=pixels, vertices=vertices))
    result = checked(*slices)
    assert result["momentum"] == pytest.approx(0.2, rel=0.2)
    assert result["momentum_error"] == pytest.approx(0.96 * result["momentum"] / 20)
    by_hits = result["momentum_by_hits"]
    assert by_hits["4 hits"]["resolution"] == pytest.approx(1.0, rel=0.2)
    assert by_hits["3 hits"]["resolution"] == pytest.approx(2.0, rel=0.2)
    assert result["vertex"] == pytest.approx(150.0, rel=0.15)
    assert (result["vertices"], by_hits["recurling"]["tracks"]) == (400, 400)


def test_a_vertex_with_a_foreign_track_finds_no_decay() -> None:
    one = signal_slice()
    foreign = replace(one, hits=np.where(one.hits == (1 << 10) + 2, 99, one.hits))
    doubled = replace(one, vertex_tracks=np.array([[0, 1, 1]]))
    for each in (foreign, doubled):
        result = checked(each)
        assert (result["accepted"], result["signal_efficiency"], result["kept"]) == (1, 0.0, 1.0)
        assert result["vertices"] == 0


def test_only_signal_with_three_tracks_in_all_layers_is_accepted() -> None:
    for each in (signal_slice(layers=7), signal_slice(kind=DecayKind.CONVERSION)):
        assert checked(each)["accepted"] == 0
    # It has a place all the same, but vertices of other decays are none of signal.
    assert checked(signal_slice(layers=7))["vertices"] == 1
    assert checked(signal_slice(kind=DecayKind.CONVERSION))["vertices"] == 0


@pytest.mark.parametrize(
    ("time", "counted"),
    [(BORDER_NS - 1, 0), (BORDER_NS, 1), (2 * LENGTH - BORDER_NS - 1, 1), (2 * LENGTH - BORDER_NS, 0)],
)
def test_decays_near_the_edge_of_a_slice_are_left_out(time: int, counted: int) -> None:
    one = signal_slice(time=float(time))
    result = checked(one)
    assert result["accepted"] == result["decays"]["signal"] == counted
    assert (result["track_efficiency"] is not None) == bool(counted)


def test_windows_without_signal_are_background_and_give_the_rate_reduction() -> None:
    one = signal_slice()
    windows = np.array([[480, 560], [700, 720], [710, 740], [900, 920]], np.int64)
    result = checked(replace(one, windows=windows))
    assert (result["windows"], result["background_windows"]) == (4, 3)
    assert result["rate_reduction"] == pytest.approx(800 / 60)
    assert result["rate_reduction_error"] == pytest.approx(800 / 60 / 3**0.5)
    # The end of a window is not in it.
    assert checked(replace(one, windows=np.array([[480, 500]])))["background_windows"] == 1
    assert checked(replace(one, windows=np.array([[500, 501]])))["background_windows"] == 0
    # A window of a decay that is not accepted is no background either.
    assert checked(signal_slice(layers=7))["background_windows"] == 0
    assert checked(signal_slice(kind=DecayKind.MICHEL))["background_windows"] == 1


def test_decays_shifted_in_time_count_accidental_windows() -> None:
    there = np.array([[500 + SHIFT, 501 + SHIFT]])
    result = checked(replace(signal_slice(), windows=there))
    assert (result["kept"], result["accidental"]) == (0.0, 1.0)


def test_tracks_of_the_sub_slice_behind_are_used_by_vertices_and_not_counted_twice() -> None:
    one = signal_slice()
    result = checked(replace(one, own=np.array([True, True, False])))
    assert result["tracks"] == 2
    assert result["signal_efficiency"] == 1.0
    assert result["track_efficiency"] == pytest.approx(2 / 3)
    assert result["momentum_by_hits"]["4 hits"]["tracks"] == 1


def test_recurling_hits_are_right_if_they_are_from_the_particle_of_their_track() -> None:
    one = signal_slice()
    recurls = np.array([1003, 1003, NO_PIXEL])
    assert checked(one)["right_recurls"] == 1.0
    result = checked(replace(one, recurls=recurls))
    assert result["right_recurls"] == 0.5
    assert result["momentum_by_hits"]["recurling"]["tracks"] == 2
    assert checked(replace(one, recurls=np.full(3, NO_PIXEL)))["right_recurls"] is None


def test_the_momentum_is_that_of_recurling_tracks_of_signal() -> None:
    one = replace(signal_slice(), recurls=np.array([1003, 2003, NO_PIXEL]))
    # 0.5 and -1.0 MeV/c.
    assert checked(one)["momentum_bias"] == pytest.approx(-0.25)
    assert checked(replace(signal_slice(kind=DecayKind.CONVERSION), recurls=one.recurls))["momentum"] is None


def test_tracks_of_the_wrong_charge_are_particles_on_their_way_back() -> None:
    result = checked(replace(signal_slice(), charges=np.array([1, 1, 1])))
    assert result["backwards"] == pytest.approx(1 / 3)
    assert result["ghost_fraction"] == 0.0
    assert result["momentum_by_hits"]["4 hits"]["tracks"] == 1


def test_ghosts_are_tracks_without_a_particle() -> None:
    one = signal_slice()
    hits = one.hits.copy()
    hits[8:, 2] = NO_PARTICLE
    result = checked(replace(one, hits=hits))
    assert result["ghost_fraction"] == pytest.approx(1 / 3)
    assert result["track_efficiency"] == pytest.approx(2 / 3)


def test_slices_of_margins_and_no_slices_count_nothing() -> None:
    one = signal_slice()
    result = checked(replace(one, is_margin=np.ones(4, bool)))
    assert (result["slices"], result["signal_efficiency"], result["rate_reduction_limit"]) == (0, None, None)
    assert "signal decays with three tracks in all layers: 0" in text_of(result)


def test_tables_and_pages_show_the_numbers() -> None:
    result = checked(replace(signal_slice(), windows=np.array([[480, 560], [700, 740]])))
    text = text_of(result)
    assert "with a vertex of their tracks: 100.00 +- 0.00 %" in text
    assert "time over the time that they keep: 20 +- 20" in text
    page = page_of([("<a>", result)], text)
    assert "&lt;a&gt;" in page
    assert "decays with a vertex" in page
    assert "above 1 (90 % confidence)" in text_of(checked(signal_slice()))
