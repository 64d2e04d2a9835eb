"""Tracks against float64: the hit with the smallest chi2 is taken, and the fit is that of all triplets together."""

from __future__ import annotations

import numpy as np
import pytest

from hltnode.processing.mu3e.detector_constants import MEV_PER_MM
from hltnode.processing.mu3e.tracks.collections import NO_PIXEL
from tests.processing.mu3e.made_particles import one_particle
from tests.processing.mu3e.pixel_events import NO_HITS, hits_of, mep_of_hits, run_chain, simulated
from tests.processing.mu3e.track_oracle import CUTS, EventHits, fitted, terms_of
from tests.processing.mu3e.tracks.test_triplets import constants

LOSS = CUTS["energy_loss"]


def test_tracks_have_the_layer_3_hit_with_the_smallest_chi2_and_the_fit_of_all_triplets() -> None:
    found = run_chain(mep_of_hits(hits_of(simulated(51, 5))))
    recurling = outer = 0
    added = []
    for e in range(1, 4):
        hits = EventHits.of(found.hits[e], found.positions[e])
        pixels = (found.hits[e] & np.uint64((1 << 28) - 1)).astype(np.int64)
        for word, track in zip(found.fitted[e], found.tracks[e], strict=True):
            i, j, k = (int(word) >> shift & 0xFFFF for shift in (32, 16, 0))
            times = hits.time[[i, j, k]]
            assert (track["first"], track["last"]) == (times.min() - 40, times.max() - 40)
            assert track["time"] == pytest.approx(times.mean() - 40, abs=1e-3)
            assert [track[f"pixel{n}"] for n in range(3)] == pixels[[i, j, k]].tolist()
            terms = [terms_of(*hits.place[[i, j, k]])]
            away = hits.place - hits.place[k]
            near = (hits.group == 3) & (np.abs(hits.time - times.min()) < CUTS["hit_window"])
            near &= (np.hypot(away[:, 0], away[:, 1]) <= CUTS["max_xy23"]) & (np.abs(away[:, 2]) <= CUTS["max_z23"])
            outer_terms = {int(h): terms_of(*hits.place[np.array([j, k, int(h)])]) for h in np.flatnonzero(near)}
            chi2 = {h: fitted([*terms, of])[1] for h, of in outer_terms.items() if of.turn * terms[0].turn > 0.0}
            best = min(chi2, key=lambda h: chi2[h]) if chi2 else -1
            n_hits = 3
            if best >= 0 and chi2[best] < CUTS["max_chi2_long"]:
                assert track["pixel3"] == pixels[best]
                terms.append(outer_terms[best])
                a, b = k, best
                n_hits += 1
                outer += 1
            else:
                assert track["pixel3"] == NO_PIXEL
                a, b = j, k
            layers = 2
            before = fitted(terms)[1]
            if track["recurl"] != NO_PIXEL:
                (h,) = np.flatnonzero(
                    (pixels == track["recurl"]) & (np.abs(hits.time - times.min()) < CUTS["recurl_window"])
                )[:1]
                assert hits.group[h] >= 2
                terms.append(terms_of(*hits.place[[a, b, h]]))
                n_hits += 1
                layers = n_hits - 1
                recurling += 1
            radius, chi2_of_track = fitted(terms)
            assert track["hits"] == n_hits
            assert chi2_of_track - before < CUTS["max_chi2_recurl"]
            added += [float(track["chi2"]) - before] if track["recurl"] != NO_PIXEL else []
            assert track["momentum"] == pytest.approx(radius * MEV_PER_MM + layers * LOSS, rel=2e-3)
            assert track["chi2"] == pytest.approx(chi2_of_track, rel=0.05, abs=0.05)
    assert recurling > 50
    assert outer > 50
    # 1.39 for two angles that are as large as their errors say.
    assert 1.1 < np.median(added) < 1.8


def test_a_recurling_hit_of_layer_3_is_taken_before_one_of_layer_2() -> None:
    hits, truth = one_particle((20.0, 3.0, 3.0), 1, (5.0, -3.0, 0.0))
    found = run_chain(mep_of_hits([NO_HITS, hits, NO_HITS]), constants("mu3e_extend_tracks", energy_loss=0.0))
    track = found.tracks[1][found.tracks[1]["charge"] > 0][0]
    layer = {int(word) & ((1 << 28) - 1): int(word) >> 45 for word in found.hits[1]}
    assert layer[int(track["recurl"])] == 3
    assert track["momentum"] == pytest.approx(truth.size, rel=2e-3)
    without = hits[
        [
            layer[int(h["sensor"]) << 16 | int(h["column"]) << 8 | int(h["row"])] != 3
            or int(h["sensor"]) << 16 | int(h["column"]) << 8 | int(h["row"]) == track["pixel3"]
            for h in hits
        ]
    ]
    found = run_chain(mep_of_hits([NO_HITS, without, NO_HITS]))
    track = found.tracks[1][found.tracks[1]["charge"] > 0][0]
    assert layer[int(track["recurl"])] == 2


TRACK = one_particle((20.0, 3.0, 6.0), 1, (5.0, -3.0, 0.0))[0]


@pytest.mark.parametrize(
    ("name", "narrow", "wide"),
    [
        ("max_xy23", 12.0, 40.0),
        ("max_z23", 2.0, 60.0),
        ("max_chi2_long", 1e-6, 40.0),
        ("max_recurl_xy", 1e-3, 20.0),
        ("max_recurl_z", 1e-4, 40.0),
        ("max_chi2_recurl", 0.0, 12.0),
    ],
)
def test_each_cut_of_the_extension_decides_on_its_own(name: str, narrow: float, wide: float) -> None:
    mep = mep_of_hits([NO_HITS, TRACK, NO_HITS])

    def of(value: float) -> np.void:
        found = run_chain(mep, constants("mu3e_extend_tracks", **{name: value}))
        track: np.void = found.tracks[1][found.tracks[1]["charge"] > 0][0]
        return track

    column = "recurl" if "recurl" in name else "pixel3"
    assert of(wide)[column] != NO_PIXEL
    assert of(narrow)[column] == NO_PIXEL


@pytest.mark.parametrize(("column", "window"), [("pixel3", 20), ("recurl", 40)])
def test_added_hits_lie_near_the_first_hit_in_time(column: str, window: int) -> None:
    mep = mep_of_hits([NO_HITS, TRACK, NO_HITS])
    track = run_chain(mep).tracks[1]
    track = track[track["charge"] > 0][0]
    pixels = TRACK["sensor"].astype(int) << 16 | TRACK["column"].astype(int) << 8 | TRACK["row"]
    for apart in (window - 1, window, 1 - window, -window):
        moved = TRACK.copy()
        kept = np.isin(pixels, [track[f"pixel{n}"] for n in range(4)] + [track["recurl"]])
        moved["time"][pixels == track[column]] = 100 + apart
        found = run_chain(mep_of_hits([NO_HITS, moved[kept], NO_HITS])).tracks[1]
        found = found[found["charge"] > 0][0]
        assert (found[column] != NO_PIXEL) == (abs(apart) < window), apart
