"""VELO-UT tracks: against the plain Python of search_oracle.py, against truth, and spot values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.geometry.ut_groups import UtSectorGroups
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.lhcb.ut.search_oracle import OracleHits, UtTrack, velo_ut_tracks
from tests.processing.lhcb.ut.test_decoding import real_events
from tests.processing.lhcb.ut.ut_chain import Detector, UtChain, UtEvent, limits_of, ut_chain

NO_HIT = 0xFFFF


def run(events: Sequence[Sequence[RawBank]], detector: Detector) -> list[UtEvent]:
    mep = encode_mep(ut_chain(), events)
    return UtChain(detector, limits_of(mep)).run(mep)


def of_oracle(event: UtEvent, detector: Detector) -> list[UtTrack]:
    layer_of_group = np.searchsorted(UtSectorGroups.of(detector.ut).first_group, np.arange(128), side="right") - 1
    n_hits = np.diff(event.group_offset.astype(int), append=len(event.hits["x"]))
    columns = [event.hits[name].astype(np.float64) for name in ("x", "z", "y_begin", "y_end", "weight")]
    hits = OracleHits(*columns, layer=np.repeat(layer_of_group, n_hits))
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
