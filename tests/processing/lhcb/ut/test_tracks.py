"""VELO-UT tracks, compared with search_oracle.py, with truth and with spot values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.geometry.magnet import DOWN, UP
from hltnode.processing.lhcb.geometry.ut_groups import UtSectorGroups
from hltnode.processing.lhcb.offline.validation.checker.categories import Stage
from hltnode.processing.lhcb.offline.validation.checker.checker import Checker
from hltnode.processing.lhcb.offline.validation.checker.matching import match_tracks
from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable
from hltnode.processing.lhcb.offline.validation.checker.tracks import TrackTable
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.ut import UtHits, decode_ut
from hltnode.protocol.lhcb.truth_columns import decode_particle_columns
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.lhcb.ut.search_oracle import OracleHits, UtTrack, velo_ut_tracks
from tests.processing.lhcb.ut.test_decoding import banks_v3, real_events, simulated
from tests.processing.lhcb.ut.ut_chain import Detector, UtChain, UtEvent, limits_of, ut_chain

NO_HIT = 0xFFFF
CHANNEL = 0x03FF_FFFF
"""The bits of a VELO id except detector and orientation."""
UT_COLUMNS = ("board", "lane", "strip", "fraction")


def run(events: Sequence[Sequence[RawBank]], detector: Detector) -> list[UtEvent]:
    mep = encode_mep(ut_chain(), events)
    return UtChain(detector, limits_of(mep)).run(mep)


def of_oracle(event: UtEvent, detector: Detector) -> list[UtTrack]:
    layer_of_group = np.searchsorted(UtSectorGroups.of(detector.ut).first_group, np.arange(128), side="right") - 1
    n_hits = np.diff(event.group_offset.astype(int), append=len(event.hits["x"]))
    columns = {name: event.hits[name].astype(np.float64) for name in ("x", "z", "y_begin", "y_end", "weight")}
    hits = OracleHits(**columns, layer=np.repeat(layer_of_group, n_hits))
    return velo_ut_tracks(event.velo.states, event.velo.backward, hits, detector.tables, detector.polarity)


def hits_by_layer(track: UtTrack) -> list[int]:
    by_layer = [NO_HIT] * 4
    for hit in track.hits:
        by_layer[hit.layer] = hit.number
    return by_layer


def assert_same_tracks(event: UtEvent, expected: Sequence[UtTrack]) -> None:
    assert event.tracks["velo_track"].tolist() == [track.velo_track for track in expected]
    assert event.tracks["hits"].tolist() == [hits_by_layer(track) for track in expected]
    assert event.tracks["hit_count"].tolist() == [len(track.hits) for track in expected]
    np.testing.assert_allclose(event.tracks["qop"], [track.qop for track in expected], rtol=1e-3, atol=1e-9)
    np.testing.assert_allclose(event.tracks["x"], [track.x for track in expected], rtol=0, atol=1e-3)
    np.testing.assert_allclose(event.tracks["z"], [track.z for track in expected], rtol=0, atol=1e-3)
    np.testing.assert_allclose(event.tracks["tx"], [track.tx for track in expected], rtol=0, atol=1e-6)


def test_tracks_of_the_real_events_are_those_of_the_oracle(shared: Path) -> None:
    detector = Detector.load(shared / "data/lhcb-geometry")
    found = run(real_events(shared), detector)
    assert sum(len(event.tracks["qop"]) for event in found) > 400
    for event in found:
        assert_same_tracks(event, of_oracle(event, detector))


def test_spot_values_of_event_6002(shared: Path) -> None:
    (event,) = run([real_events(shared)[1]], Detector.load(shared / "data/lhcb-geometry"))
    for channels, qop in (((0x325585A, 0x2E5359D), -2.0174e-4), ((0x321FC57, 0x2E2117B), -1.1863e-4)):
        (track,) = (
            row
            for row, number in enumerate(event.tracks["velo_track"])
            if {channel & CHANNEL for channel in channels} <= {int(i) & CHANNEL for i in event.velo.ids[number]}
        )
        assert event.tracks["hit_count"][track] == 4
        assert event.tracks["qop"][track] == pytest.approx(qop, rel=0.01)


def test_tracks_of_simulated_events_are_those_of_the_oracle() -> None:
    detector = Detector.builtin()
    found = run(simulated(6), detector)
    assert sum(len(event.tracks["qop"]) for event in found) > 200
    for event in found:
        assert_same_tracks(event, of_oracle(event, detector))


def dense_event(n: int) -> list[RawBank]:
    """An event with the UT hits of `n` events."""
    events = simulated(n)
    hits = [decode_ut(banks) for banks in events]
    rows = np.concatenate([np.stack([getattr(of_event, name) for name in UT_COLUMNS]) for of_event in hits], axis=1)
    # Hits of different events on one strip would be indistinguishable.
    board, lane, strip, fraction = np.unique(rows, axis=1)
    none = np.zeros_like(board)
    return [
        *(bank for bank in events[0] if bank.type != LhcbBankType.UT),
        *banks_v3(UtHits(board, lane, strip, fraction, none, none)),
    ]


def test_a_window_of_a_dense_event_keeps_the_nearest_hits() -> None:
    detector = Detector.builtin()
    (event,) = run([dense_event(30)], detector)
    assert len(event.hits["id"]) > 20_000
    assert event.flags == 0
    assert_same_tracks(event, of_oracle(event, detector))


@pytest.mark.parametrize("polarity", [DOWN, UP])
def test_the_charge_is_right_for_both_polarities_of_the_magnet(polarity: float) -> None:
    detector = replace(Detector.builtin(), polarity=polarity)
    events = simulated(8, polarity=polarity)
    particles = ParticleTable.of_events([decode_particle_columns(banks) for banks in events])
    found = run(events, detector)
    qop = np.concatenate([event.tracks["qop"] for event in found])
    matches = match_tracks(table_of(found), particles)
    of_hadrons = (np.abs(particles.pid) > 100) & (particles.p > 5000)
    chosen = of_hadrons[matches.particle]
    # The ids of pion, kaon and proton have the sign of the charge.
    right = np.sign(qop[matches.track]) == np.sign(particles.pid[matches.particle])
    assert chosen.sum() > 100
    assert right[chosen].mean() > 0.97
    per_p = 1 / np.abs(qop[matches.track][chosen])
    assert np.median(np.abs(per_p / particles.p[matches.particle][chosen] - 1)) < 0.2


def table_of(events: Sequence[UtEvent]) -> TrackTable:
    """The VELO-UT tracks as input of the checker."""
    ids: list[list[NDArray[np.uint32]]] = []
    for event in events:
        hits = event.tracks["hits"]
        ids.append(
            [
                np.concatenate([event.velo.ids[track], event.hits["id"][used[used != NO_HIT]]])
                for track, used in zip(event.tracks["velo_track"], hits, strict=True)
            ]
        )
    return TrackTable.of_events(ids)


@pytest.mark.physics
def test_tracks_of_the_real_events_match_their_particles(shared: Path) -> None:
    detector = Detector.load(shared / "data/lhcb-geometry")
    events = real_events(shared)
    checker = Checker()
    checker.add(
        ParticleTable.of_events([decode_particle_columns(banks) for banks in events]),
        {Stage.UT: table_of(run(events, detector))},
    )
    result = checker.result()[Stage.UT.value]
    categories = result["categories"]
    assert categories["long_p5"]["reconstructible"] == 244
    assert categories["long_p5"]["reconstructed"] >= 232
    assert categories["long"]["reconstructed"] >= 333
    assert categories["velo_ut_p5"]["reconstructed"] >= 281
    assert result["ghost_rate"] <= 0.062
