"""Scenes of simulated events: the drawn objects are those of the sequence, at the positions of their hits."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.event_files import read_events
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.ecal import EcalGeometry
from hltnode.processing.lhcb.offline.display.event_reader import EventReader
from hltnode.processing.lhcb.offline.display.scene import (
    DOWNSTREAM_PART,
    LONG_PART,
    NO_TRACK,
    VELO_PART,
    Scene,
)
from hltnode.processing.lhcb.offline.validation.likeness.calorimeter import ecal_adc, ecal_values
from hltnode.processing.lhcb.tracks.long.collections import Z_END_SCIFI
from hltnode.processing.offline.counted import counted
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.truth import decode_vertices
from tests.processing.lhcb.full_events import full_events

VELO_BANK = LhcbBankType.VP_RETINA_CLUSTER


def reader(sequence: str | None = None, *, run_lines: bool = False, geometry: Path | None = None) -> EventReader:
    trigger = CHAIN.load_trigger(None, sequence)
    constants = CHAIN.with_sequence(sequence).load_geometry(geometry)
    return EventReader(CHAIN, create_backend("cpu", CHAIN.kernels, threads=1), constants, trigger, run_lines=run_lines)


@cache
def scene() -> Scene:
    """A dense event."""
    of = reader(run_lines=True)
    scenes = [of.read(banks) for banks in full_events(3, 5)]
    of.close()
    return max(scenes, key=lambda it: len(it.tracks))


def test_a_scene_has_what_the_event_has() -> None:
    drawn = scene()
    assert list(drawn.hits) == ["VELO", "UT", "SciFi", "Muon"]
    assert all(len(hits.ids) > 20 for hits in drawn.hits.values())
    assert len(drawn.tracks) > 40
    assert sum(track.kind == LONG_PART for track in drawn.tracks) > 10
    assert drawn.vertices
    assert drawn.run == 1
    assert drawn.lines is not None


@cache
def scene_with_calorimeter() -> Scene:
    of = reader("hlt1_2026")
    found = of.read(full_events(3, 5)[0])
    of.close()
    return found


def test_cells_and_clusters_of_the_calorimeter_are_those_of_the_event() -> None:
    geometry, banks = EcalGeometry.builtin(), full_events(3, 5)[0]
    adc = ecal_adc(banks, geometry)
    assert adc is not None
    drawn = scene_with_calorimeter()
    assert drawn.cells.number.tolist() == np.flatnonzero(adc > 10).tolist()
    np.testing.assert_allclose(drawn.cells.place, geometry.centre[drawn.cells.number])
    np.testing.assert_allclose(
        drawn.cells.energy, (geometry.gain * (adc - geometry.pedestal))[drawn.cells.number], 1e-5
    )
    assert sorted(set(np.round(drawn.cells.half, 2).tolist())) == [20.32, 30.48, 60.95]
    assert drawn.cells.z == pytest.approx(12_603, abs=1)
    assert len(drawn.clusters) == ecal_values(adc, geometry)["ecal_clusters"][0] > 20
    assert all(cluster.place[2] == 12_650.0 and cluster.energy > cluster.et > 0 for cluster in drawn.clusters)
    long = [track for track in drawn.tracks if track.kind == LONG_PART]
    assert all(track.is_electron == (track.eop > 0.7) for track in long)
    assert f"{len(drawn.clusters)} clusters" in drawn.summary
    # Other sequences do not read it.
    assert not len(scene().cells.number)
    assert "clusters" not in scene().summary


@cache
def scene_of_downstream_tracks(shared: Path) -> Scene:
    """A real event with downstream V0s and a muon stub."""
    of = reader("hlt1_2026", geometry=shared / "data" / "lhcb-geometry")
    [file] = (shared / "data" / "lhcb-minbias-mdf").glob("*_retina3_*.mdf")
    found = of.read(list(next(iter(read_events(file)))))
    of.close()
    return found


def test_downstream_tracks_their_vertices_and_stubs_are_drawn(shared: Path) -> None:
    drawn = scene_of_downstream_tracks(shared)
    tracks = [(i, track) for i, track in enumerate(drawn.tracks) if track.kind == DOWNSTREAM_PART]
    assert len(tracks) > 3
    assert drawn.downstream_v0s
    assert drawn.stubs
    n_long = sum(track.kind == LONG_PART for track in drawn.tracks)
    assert [i for i, _ in tracks] == list(range(n_long, n_long + len(tracks)))
    for i, track in tracks:
        assert dict(track.hits)["UT"] == 4
        z = track.line[:, 2]
        assert (np.diff(z) > 0).all()
        assert 2300 < z[0] < 2400
        assert z[-1] == Z_END_SCIFI
        # The curve in the magnet continues both ends: no step in x or y.
        steps = np.abs(np.diff(track.line[:, :2], axis=0)) / np.diff(z)[:, None]
        assert steps.max() < 1.5
        own = drawn.hits["UT"].track == i
        assert 0 < own.sum() <= 4
        assert not np.isnan(drawn.hits["UT"].points[own]).any()
    for v0 in drawn.downstream_v0s:
        for number, leg in zip(v0.tracks, v0.legs, strict=True):
            np.testing.assert_array_equal(leg[0], v0.place)
            np.testing.assert_array_equal(leg[1], drawn.tracks[number].line[0])
        assert v0.kinds
    muons = drawn.hits["Muon"].points
    for stub in drawn.stubs:
        x = np.interp(muons[:, 2], stub.line[:, 2], stub.line[:, 0])
        y = np.interp(muons[:, 2], stub.line[:, 2], stub.line[:, 1])
        near = np.hypot(muons[:, 0] - x, muons[:, 1] - y) < 400
        assert len({round(z / 1200) for z in muons[near, 2].tolist()}) >= 4
    assert f"{len(tracks)} downstream" in drawn.summary
    assert f"; {counted(len(drawn.stubs), 'muon stub')}" in drawn.summary


def test_the_line_of_a_long_track_goes_through_all_its_hits_and_ends_behind_the_scifi_tracker() -> None:
    drawn = scene()
    long = [(i, track) for i, track in enumerate(drawn.tracks) if track.kind == LONG_PART]
    for number, track in long:
        z = track.line[:, 2]
        assert np.all(np.diff(z) >= 0)
        assert z[-1] > Z_END_SCIFI - 1
        n_hits = 0
        for name, hits in drawn.hits.items():
            points = hits.points[hits.track == number]
            n_hits += len(points)
            if name == "Muon":
                continue
            for point in points:
                assert np.abs(track.line - point).max(axis=1).min() < 1e-9, (name, point)
        # A hit may be on several tracks, but is marked with only one of them.
        assert 0 < n_hits <= sum(n for _, n in track.hits)


def test_velo_tracks_that_a_long_track_continues_are_not_drawn_twice() -> None:
    drawn = scene()
    in_velo = [track.line[track.line[:, 2] < 800].tobytes() for track in drawn.tracks]
    assert len(in_velo) == len(set(in_velo))
    assert {track.kind for track in drawn.tracks} == {VELO_PART, LONG_PART}


def test_a_strip_has_a_y_only_where_a_track_gives_it_one() -> None:
    for name in ("UT", "SciFi"):
        hits = scene().hits[name]
        assert np.array_equal(np.isnan(hits.points[:, 1]), hits.track == NO_TRACK)
        # The stereo angle is 5 degrees: over half the height of the SciFi tracker x moves by 0.22 m at most.
        assert np.abs(hits.points[:, 0]).max() < 3400


def test_long_tracks_lie_on_true_particles() -> None:
    """Within 2 mm, at the first and the last layer of the SciFi tracker."""
    drawn = scene()
    true = [p.line for p in drawn.particles if p.is_long]
    near = 0
    long = [track.line for track in drawn.tracks if track.kind == LONG_PART]
    for line in long:
        distances = []
        for other in true:
            z = np.array([7860.0, 9380.0])
            at = [np.interp(z, of[:, 2], of[:, 0]) for of in (line, other) if of[-1, 2] > 9000]
            distances.append(np.abs(at[0] - at[1]).max() if len(at) == 2 else np.inf)
        near += min(distances) < 2
    assert near > 0.7 * len(long)


def test_true_collisions_are_those_of_the_bank() -> None:
    of = reader("velo")
    banks = full_events(3, 5)[0]
    drawn = of.read(banks)
    of.close()
    (bank,) = (bank for bank in banks if bank.type == LhcbBankType.MC_VERTICES)
    assert [it.tracks for it in drawn.collisions] == [it.n_tracks for it in decode_vertices(bank)]


def test_a_sequence_of_the_velo_gives_a_scene_of_the_velo() -> None:
    of = reader("velo")
    drawn = of.read(full_events(3, 5)[0])
    of.close()
    assert list(drawn.hits) == ["VELO"]
    assert {track.kind for track in drawn.tracks} == {VELO_PART}
    assert drawn.decays == ()
    assert drawn.lines is None


def test_a_sequence_without_ut_draws_tracks_without_it() -> None:
    of = reader("no_ut")
    drawn = of.read(full_events(3, 5)[0])
    of.close()
    assert list(drawn.hits) == ["VELO", "SciFi", "Muon"]
    assert any(track.kind == LONG_PART for track in drawn.tracks)


def test_an_event_that_is_too_large_is_an_error_and_the_next_one_is_read() -> None:
    of = reader("velo")
    banks = list(full_events(3, 5)[0])
    large = [bank._replace(payload=memoryview(bytes(60_000))) if bank.type == VELO_BANK else bank for bank in banks]
    with pytest.raises(ValueError, match="does not fit"):
        of.read(large)
    assert of.read(banks).vertices
    of.close()
