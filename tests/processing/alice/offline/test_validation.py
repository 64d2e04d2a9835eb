"""Tracks against truth: perfect, cloned, fake and mixed tracks, and pulls of known size."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.processing.alice.geometry.tpc_geometry import FILE_NAME, builtin_geometry
from hltnode.processing.alice.offline.simulation.events import SimulatedEvent
from hltnode.processing.alice.offline.simulation.sample import TpcOptions, TpcSample, encode_block, event_of
from hltnode.processing.alice.offline.tools.validation import TpcValidation, found_merged
from hltnode.processing.alice.offline.validation.matching import match_tracks, rows_of_particles
from hltnode.processing.alice.offline.validation.report import page_of, text_of
from hltnode.processing.alice.offline.validation.track_checker import MAX_STEP, FoundTracks, TrackChecker, followed
from hltnode.processing.alice.tpc.candidates.collections import V0
from hltnode.processing.alice.tpc.merging.collections import MERGED_TRACK
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.protocol.alice.tpc_banks import CLUSTER, TRUE_PARTICLE, TRUE_STATE, Origin, TpcTruth

GEOMETRY = builtin_geometry()
ROWS = 40
SLICE = 3


def event(pts: list[float], rows: int = ROWS, n_noise: int = 40) -> tuple[TpcTruth, np.ndarray, np.ndarray]:
    """Particles with a cluster in each of the first rows of slice 3, then noise: truth, slice and row of clusters."""
    particles = np.zeros(len(pts), TRUE_PARTICLE)
    particles["momentum"] = [(pt, 0.0, pt * np.sinh(0.5)) for pt in pts]
    states = np.zeros(len(pts), TRUE_STATE)
    states["particle"] = np.arange(len(pts))
    states["slice"], states["y"], states["z"], states["sin_phi"] = SLICE, 1.0, 50.0, 0.1
    states["lambda"], states["kappa"] = np.sinh(0.5), 1.0 / np.array(pts)
    of_clusters = np.concatenate([np.repeat(np.arange(len(pts)), rows), np.full(n_noise, -1)])
    row = np.concatenate([np.tile(np.arange(rows), len(pts)), np.arange(n_noise)])
    return TpcTruth(of_clusters, particles, states), np.full(len(row), SLICE), row


def tracks(clusters: list[np.ndarray], slices: int = SLICE) -> FoundTracks:
    n = len(clusters)
    return FoundTracks(
        slice_number=np.full(n, slices),
        n_clusters=np.array([len(each) for each in clusters], np.int64),
        clusters=np.concatenate([np.empty(0, np.int64), *clusters]),
        x=np.full(n, GEOMETRY.row_x[0]),
        parameters=np.zeros((n, 5)),
        sigmas=np.ones((n, 5)),
    )


def checked(truth: TpcTruth, slices: np.ndarray, rows: np.ndarray, found: FoundTracks) -> dict[str, Any]:
    checker = TrackChecker(GEOMETRY)
    checker.add(truth, slices, rows, found, found)
    return checker.result()


def own(particle: int, first: int = 0, last: int = ROWS) -> np.ndarray:
    return np.arange(particle * ROWS + first, particle * ROWS + last)


NOISE = np.arange(2 * ROWS, 3 * ROWS)
"""Clusters of noise of an event with two particles."""


@pytest.mark.parametrize(
    ("found", "at_50", "at_70", "at_90"),
    [
        ([own(0), own(1)], (1.0, 0.0, 0.0), (1.0, 0.0, 0.0), (1.0, 0.0, 0.0)),
        ([own(0, 0, 20), own(0, 20), own(1)], (1.0, 0.0, 1 / 3), (1.0, 0.0, 1 / 3), (1.0, 0.0, 1 / 3)),
        ([own(0), NOISE], (0.5, 0.5, 0.0), (0.5, 0.5, 0.0), (0.5, 0.5, 0.0)),
        ([np.r_[own(0, 0, 20), own(1, 20)]], (0.5, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 1.0, 0.0)),
        ([np.r_[own(1, 0, 28), NOISE[28:]]], (0.5, 0.0, 0.0), (0.5, 0.0, 0.0), (0.0, 1.0, 0.0)),
        ([np.r_[own(1, 0, 27), NOISE[27:]]], (0.5, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 1.0, 0.0)),
        ([], (0.0, None, None), (0.0, None, None), (0.0, None, None)),
    ],
    ids=["perfect", "cloned", "fake", "half_and_half", "70_percent", "below_70_percent", "none"],
)
def test_tracks_count_as_found_cloned_or_fake_at_each_level(
    found: list[np.ndarray], at_50: tuple[float, ...], at_70: tuple[float, ...], at_90: tuple[float, ...]
) -> None:
    result = checked(*event([1.0, 2.0]), tracks(found))
    for part in (result["slice"], result["merged"]):
        assert (part["findable"], part["tracks"]) == (2, len(found))
        for level, expected in (("50", at_50), ("70", at_70), ("90", at_90)):
            assert tuple(part["levels"][level].values()) == pytest.approx(expected)
        assert part["efficiency"] == part["levels"]["70"]["efficiency"]


def test_a_particle_is_findable_with_30_rows_and_more_than_150_mev() -> None:
    assert checked(*event([0.151, 0.149]), tracks([]))["slice"]["findable"] == 1
    assert checked(*event([1.0, 1.0], rows=30), tracks([]))["slice"]["findable"] == 2
    assert checked(*event([1.0, 1.0], rows=29), tracks([]))["slice"]["findable"] == 0
    # Two clusters in each of 15 rows are 15 rows.
    truth, slices, row = event([1.0], rows=30)
    assert checked(truth, slices, row // 2, tracks([]))["slice"]["findable"] == 0
    # 20 rows in each of two slices are findable when merged.
    slices[20:30] = SLICE + 1
    result = checked(truth, slices, row, tracks([]))
    assert (result["slice"]["findable"], result["merged"]["findable"]) == (0, 1)


def test_segments_in_two_slices_are_no_clones_of_each_other_but_merged_ones_are() -> None:
    truth, slices, row = event([1.0, 1.0])
    found = tracks([own(0, 0, 20), own(0, 20)])
    found.slice_number[1] = SLICE + 1
    result = checked(truth, slices, row, found)
    assert (result["slice"]["clones"], result["merged"]["clones"]) == (0.0, 0.5)
    other = checked(truth, slices, row, tracks([own(0)], slices=SLICE + 1))
    assert other["slice"]["efficiency"] == 0.0
    assert other["merged"]["efficiency"] == 0.5


def test_the_particle_of_a_track_is_the_one_with_most_clusters_and_the_first_of_equals() -> None:
    of_clusters = np.array([4, 4, 2, 2, -1, -1, -1, 7])
    matches = match_tracks(np.array([4, 3, 0, 3]), np.array([0, 1, 2, 3, 4, 5, 6, 7, 7, 0]), of_clusters)
    assert matches.particle.tolist() == [2, -1, -1, 7]
    np.testing.assert_allclose(matches.fraction, [0.5, 0.0, 0.0, 2 / 3])
    with pytest.raises(ValueError, match="a track has cluster 8, the event has 8"):
        match_tracks(np.array([1]), np.array([8]), of_clusters)
    with pytest.raises(ValueError, match="a track has cluster -1"):
        match_tracks(np.array([1]), np.array([-1]), of_clusters)
    with pytest.raises(ValueError, match="2 clusters of tracks, 3 expected"):
        match_tracks(np.array([3]), np.array([1, 2]), of_clusters)


def test_matches_and_rows_equal_those_of_loops_over_random_tracks() -> None:
    rng = np.random.default_rng(1)
    of_clusters = rng.integers(-1, 6, 300)
    n_clusters = rng.integers(0, 30, 50)
    clusters = rng.integers(0, 300, n_clusters.sum())
    matches = match_tracks(n_clusters, clusters, of_clusters)
    for i, part in enumerate(np.split(clusters, np.cumsum(n_clusters)[:-1])):
        counts = np.bincount(of_clusters[part] + 1, minlength=7)[1:]
        expected = int(counts.argmax()) if counts.any() else -1
        assert matches.particle[i] == expected
        assert matches.fraction[i] == pytest.approx(counts.max() / max(len(part), 1))
    plane = rng.integers(0, 36 * 159, 300)
    rows = rows_of_particles(of_clusters, plane, 6)
    for particle in range(6):
        planes = set(plane[of_clusters == particle].tolist())
        of_slices = [sum(each // 159 == s for each in planes) for s in range(36)]
        assert rows[particle].tolist() == of_slices


def test_pulls_have_the_width_of_the_errors_of_the_tracks() -> None:
    n = 2000
    truth, slices, row = event([1.0] * n, n_noise=0)
    found = tracks([own(i) for i in range(n)])
    rng = np.random.default_rng(2)
    dx = GEOMETRY.row_x[2] - GEOMETRY.row_x[0]
    true, valid = followed(truth.states, np.full(n, dx), GEOMETRY)
    assert valid.all()
    sigmas = np.array([0.1, 0.2, 0.01, 0.02, 0.05])
    found = FoundTracks(
        slice_number=found.slice_number,
        n_clusters=found.n_clusters,
        clusters=found.clusters,
        x=np.full(n, GEOMETRY.row_x[2]),
        parameters=true + sigmas * rng.standard_normal((n, 5)) + [0.05, 0, 0, 0, 0],
        sigmas=np.tile(sigmas / [1, 1, 2, 1, 1], (n, 1)),
    )
    result = checked(truth, slices, row, found)
    pulls = result["pulls"]
    assert [pulls[name]["tracks"] for name in pulls] == [n] * 5
    np.testing.assert_allclose([pulls[name]["width"] for name in pulls], [1, 1, 1.95, 1, 1], rtol=0.06)
    np.testing.assert_allclose([pulls[name]["mean"] for name in pulls], [0.5, 0, 0, 0, 0], atol=0.15)
    assert pulls["sin_phi"]["outside"] == pytest.approx(0.0124, abs=0.01)
    np.testing.assert_allclose([result["resolution"][name]["width"] for name in pulls], sigmas, rtol=0.08)
    # A wrong resolution of another collision, and a tail of mixed tracks, change only the pulls that have them.
    truth.particles["collision"][: n // 2] = 1
    mixed = [np.r_[own(i)[:32], own((i + 1) % n)[:8]] if i % 4 == 0 else own(i) for i in range(n)]
    bad = found.parameters.copy()
    bad[: n // 2] += 3.0 * sigmas * rng.standard_normal((n // 2, 5))
    bad[::4] += 4.0 * sigmas
    result = checked(truth, slices, row, replace(found, clusters=np.concatenate(mixed), parameters=bad))
    numbers = {key: result[key]["y"] for key in ("pulls", "pulls_triggered", "pulls_pure")}
    assert [pull["tracks"] for pull in numbers.values()] == [n, n // 2, n * 3 // 8]
    assert numbers["pulls_pure"]["width_68"] == pytest.approx(1.0, abs=0.08)
    assert numbers["pulls_triggered"]["mean"] == pytest.approx(1.35, abs=0.2)
    assert numbers["pulls"]["width_68"] > 2.0
    # Pulls outside count for the 68 % width, not for the other.
    tail = found.parameters.copy()
    tail[: n // 5] += 1e3 * sigmas
    wide = checked(truth, slices, row, replace(found, parameters=tail))["pulls"]["y"]
    assert wide["outside"] == pytest.approx(0.2, abs=0.01)
    assert wide["width"] == pytest.approx(1.0, abs=0.06)
    assert wide["width_68"] > 2.0
    truth.particles["collision"] = 0
    # A true state that is too far away, or behind the track, is not used.
    for x in (GEOMETRY.row_x[0] + MAX_STEP + 0.1, GEOMETRY.row_x[0] - 0.1):
        far = FoundTracks(
            slice_number=found.slice_number,
            n_clusters=found.n_clusters,
            clusters=found.clusters,
            x=np.full(n, x),
            parameters=found.parameters,
            sigmas=found.sigmas,
        )
        assert checked(truth, slices, row, far)["pulls"]["y"] is None


def test_pulls_and_the_particle_of_the_fit_are_counted_by_species() -> None:
    truth, slices, row = event([1.0] * 6)
    truth.particles["pdg"] = [211, -211, -321, 321, 2212, 11]
    truth.particles["collision"][3] = 1
    found = replace(tracks([own(i) for i in range(6)]), particle=np.array([0, 1, 1, 2, 0, 2]))
    result = checked(truth, slices, row, found)
    # The kaon of another collision and the electron are in no table; a species needs two tracks for a width.
    assert result["pulls_pions"]["y"]["tracks"] == 2
    assert result["pulls_kaons"]["y"] is None
    assert result["assumed"] == {
        "pions": {"pions": 1, "kaons": 1, "protons": 0},
        "kaons": {"pions": 0, "kaons": 1, "protons": 0},
        "protons": {"pions": 1, "kaons": 0, "protons": 0},
    }
    assert "2 pions 50.00% 50.00% 0.00% 1 kaons" in " ".join(text_of(result).split())
    checker = TrackChecker(GEOMETRY)
    checker.add(truth, slices, row, found)
    assert checker.result()["assumed"] is None
    assert "particle of the fit" not in text_of(checker.result())


def test_a_state_is_followed_along_its_circle() -> None:
    state = np.zeros(1, TRUE_STATE)
    state["y"], state["z"], state["sin_phi"], state["lambda"], state["kappa"] = 1.0, 10.0, 0.2, 0.5, -2.0
    (true,), valid = followed(state, np.array([8.0]), GEOMETRY)
    radius = 1.0 / (0.000299792458 * 5.0 * 2.0)
    angle = np.arcsin(0.2)
    end = np.arcsin(0.2 + 8.0 / radius)
    y = 1.0 + radius * (np.cos(angle) - np.cos(end))
    expected = [y, 10.0 + 0.5 * radius * (end - angle), np.sin(end), 0.5, -2.0]
    assert valid.all()
    np.testing.assert_allclose(true, expected, atol=1e-3)
    state["kappa"] = -200.0
    assert not followed(state, np.array([8.0]), GEOMETRY)[1].any()


def test_curves_count_references_by_pt_eta_and_clusters_of_the_slice() -> None:
    result = checked(*event([0.4, 3.0]), tracks([own(0)]))
    assert [(row["from"], row["efficiency"]) for row in result["of_pt"] if row["findable"]] == [(0.3, 1.0), (2.0, 0.0)]
    assert [row["from"] for row in result["of_eta"] if row["findable"]] == [0.3]
    assert [(row["from"], row["findable"]) for row in result["of_occupancy"] if row["findable"]] == [(0, 2)]
    checker = TrackChecker(GEOMETRY)
    checker.add(None, np.empty(0, np.int64), np.empty(0, np.int64), tracks([]))
    empty = checker.result()
    assert (empty["events"], empty["without_truth"], empty["merged"], empty["merged_of_pt"]) == (1, 1, None, None)
    assert empty["slice"]["efficiency"] is None


def test_curves_count_fakes_and_clones_by_the_values_of_tracks() -> None:
    """A clone of 0.4 GeV/c, a fake below the momentum of references, and a straight track beyond all bins of eta."""
    truth, slices, row = event([0.4, 3.0])
    found = tracks([own(0), own(0, 5), NOISE, own(1)])
    found.parameters[:, 4] = 1.0 / 0.4, -1.0 / 0.4, 1.0 / 0.1, 0.0
    found.parameters[:, 3] = np.sinh([0.5, -0.2, 0.1, 1.6])
    result = checked(truth, slices, row, found)
    for prefix in ("", "merged_"):
        of_pt, of_eta, of_occupancy = (
            [
                (of["from"], of["findable"], of["tracks"], of["fakes"], of["clones"])
                for of in result[f"{prefix}{key}"]
                if of["findable"] or of["tracks"]
            ]
            for key in ("of_pt", "of_eta", "of_occupancy")
        )
        assert of_pt == [(0.0, 0, 1, 1.0, 0.0), (0.3, 1, 2, 0.0, 0.5), (2.0, 1, 0, None, None), (5.0, 0, 1, 0.0, 0.0)]
        assert of_eta == [(-0.3, 0, 1, 0.0, 1.0), (0.0, 0, 1, 1.0, 0.0), (0.3, 2, 1, 0.0, 0.0)]
        assert of_occupancy == [(0, 2, 4, 0.25, 0.25)]
    # The slice has 1,800 clusters, and each of the 36 slices of the event has 50 of them in the mean.
    result = checked(*event([0.4], n_noise=1760), tracks([own(0)]))
    for key, at in (("of_occupancy", 1000), ("merged_of_occupancy", 0)):
        assert [(of["from"], of["findable"], of["tracks"]) for of in result[key] if of["tracks"]] == [(at, 1, 1)]


def test_a_v0_is_found_with_a_matched_track_of_each_daughter() -> None:
    truth, slices, rows = event([3.0, 2.0, 0.5, 0.4, 1.0, 1.0])
    particles = np.concatenate([truth.particles, np.zeros(3, TRUE_PARTICLE)])
    particles["mother"], particles["origin"] = -1, int(Origin.PRIMARY)
    for mother, pdg, pt, daughters in ((6, 310, 1.5, (0, 1)), (7, -3122, 0.9, (2, 3)), (8, 310, 2.0, (4, 5))):
        particles["pdg"][mother], particles["momentum"][mother] = pdg, (pt, 0.0, 0.0)
        particles["mother"][list(daughters)], particles["origin"][list(daughters)] = mother, int(Origin.DECAY)
    # The last decay has a daughter that is not findable.
    particles["momentum"][5] = (0.1, 0.0, 0.0)
    truth = truth._replace(particles=particles)
    mixed = np.r_[own(5)[:20], own(4)[20:]]
    found = tracks([own(1), own(0), own(2), own(3), mixed])
    v0s = np.zeros(5, V0.dtype)
    v0s["positive"], v0s["negative"] = [1, 2, 1, 1, 1], [0, 3, 2, 0, 4]
    v0s["mass_k0s"], v0s["mass_antilambda"] = [0.4956, 9.0, 9.0, 0.6, 9.0], [9.0, 1.1177, 9.0, 9.0, 9.0]
    for several, expected in ((v0s, (1, 1)), (v0s[:1], (1, 0)), (v0s[2:3], (0, 0)), (v0s[:0], (0, 0))):
        checker = TrackChecker(GEOMETRY)
        checker.add(truth, slices, rows, found, found, several)
        result = checker.result()["v0s"]
        kaon, other = result["K0S"], result["Lambda"]
        assert (kaon["findable"], kaon["findable_hard"], other["findable"], other["findable_hard"]) == (1, 1, 1, 0)
        assert (kaon["efficiency"], other["efficiency"], other["efficiency_hard"]) == (*expected, None)
    checker = TrackChecker(GEOMETRY)
    checker.add(truth, slices, rows, found, found, v0s)
    result = checker.result()
    of = result["v0s"]
    assert (of["candidates"], of["fakes"]) == (5, 0.4)
    # A second candidate of the same decay counts neither as fake nor for the mass.
    assert (of["K0S"]["true_candidates"], of["K0S"]["peak"]) == (1, pytest.approx(-0.002, abs=1e-4))
    assert (of["Lambda"]["peak"], of["Lambda"]["width"]) == (pytest.approx(0.002, abs=1e-4), 0.0)
    assert "V0 candidates: 5, without a true decay 40.00%" in text_of(result)
    assert checked(*event([1.0]), tracks([own(0)]))["v0s"] is None


def test_tables_and_page_show_the_numbers_of_the_result() -> None:
    result = checked(*event([0.4, 3.0]), tracks([own(0), NOISE]))
    text = text_of(result)
    assert "tracks of slices: 2 findable, 2 tracks" in text
    assert text.count("pulls, ") == 7
    assert "  70%      50.00%   50.00%    0.00%" in text
    assert "merged tracks: 2 findable" in text
    page = page_of([("one <file>", result), ("two", result)], text)
    assert page.count("<polyline") == 2 * 18
    assert "clones of merged tracks against pT in GeV/c" in page
    assert "pT in GeV/c, merged tracks" in text
    # A result of an earlier version has the efficiency alone, and no curves of merged tracks.
    names = ("of_pt", "of_eta", "of_occupancy")
    kept = {key: [{"from": 0, "to": 1, "findable": 1, "efficiency": 1.0}] for key in names}
    earlier = {**{key: value for key, value in result.items() if not key.startswith("merged_of")}, **kept}
    assert page_of([("new", result), ("earlier", earlier)], text).count("<polyline") == 0
    assert "one &lt;file&gt;" in page
    no_merged = {"merged": None, **{f"merged_{key}": None for key in names}}
    assert "merged" not in text_of({**result, **no_merged})


def test_the_command_reports_the_tracks_of_simulated_events(tmp_path: Path) -> None:
    sample = TpcSample(SampleRequest(seed=4), TpcOptions(pile_up=0.0))
    file, out = tmp_path / "t.mdf", tmp_path / "v.json"
    file.write_bytes(encode_block(sample, 0, [event_of(sample, number) for number in range(3)]))
    done = CliRunner().invoke(app, ["validate", str(file), "--chain", "alice_tpc", "--json", str(out)])
    assert done.exit_code == 0, done.output
    result = json.loads(out.read_text())
    assert result["events"] == 3
    assert result["slice"]["findable"] > 200
    assert result["slice"]["efficiency"] > 0.9
    assert result["slice"]["fakes"] < 0.1
    assert result["merged"]["efficiency"] > 0.9
    assert result["merged"]["tracks"] < 0.6 * result["slice"]["tracks"]
    assert result["merged"]["clones"] < 0.1
    assert result["v0s"]["K0S"]["findable"] > 0
    assert result["pulls_of_slices"]["y"]["tracks"] > result["pulls"]["y"]["tracks"]
    assert 0.5 < result["pulls"]["y"]["width"] < 1.5
    assert TpcValidation().read_result(out)["slice"] == result["slice"]
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(ValueError, match="it is no result of"):
        TpcValidation().read_result(tmp_path / "other.json")


def test_tracks_in_a_polynomial_field_have_the_momentum_of_its_geometry(tmp_path: Path) -> None:
    """Bz falls by 6 % to the pads. Without its geometry, kernels and checker take the uniform field."""
    (tmp_path / FILE_NAME).write_text('{"field": [5.0, -1.0e-6, 0.0]}')
    sample = TpcSample(SampleRequest(seed=3, geometry=tmp_path), TpcOptions(pile_up=0.0))
    file = tmp_path / "t.mdf"
    file.write_bytes(encode_block(sample, 0, [event_of(sample, number) for number in range(6)]))
    widths = []
    for name, options in (("right", ["--geometry", str(tmp_path)]), ("wrong", [])):
        out = tmp_path / f"{name}.json"
        done = CliRunner().invoke(app, ["validate", str(file), "--chain", "alice_tpc", "--json", str(out), *options])
        assert done.exit_code == 0, done.output
        result = json.loads(out.read_text())
        assert result["merged"]["efficiency"] > 0.99
        widths.append(result["pulls_pure"]["kappa"]["width"])
    right, wrong = widths
    assert right < 1.1
    assert wrong > 1.4


def test_merged_tracks_have_each_cluster_of_their_segments_once() -> None:
    segments = tracks([np.array([3, 4, 5]), np.array([9, 5, 7]), np.array([1, 2])])
    records = np.zeros(2, MERGED_TRACK.dtype)
    records["n_segments"], records["n_clusters"], records["x"] = [2, 1], [5, 2], [85.0, 90.0]
    found = found_merged(records, np.array([1, 0, 2]), segments)
    assert (found.n_clusters.tolist(), found.clusters.tolist()) == ([5, 2], [3, 4, 5, 7, 9, 1, 2])
    assert found.x.tolist() == [85.0, 90.0]
    for numbers, match in (([1, 0], "2 segments"), ([1, 0, 3], "3 segments"), ([1, 2, 0], "other numbers of clusters")):
        with pytest.raises(ValueError, match=match):
            found_merged(records, np.array(numbers), segments)


@pytest.mark.slow
def test_the_command_takes_an_event_that_is_larger_than_its_usual_batch(tmp_path: Path) -> None:
    n = 1_060_000
    rng = np.random.default_rng(1)
    slices = np.repeat(np.arange(36), n // 36)
    clusters = np.zeros(len(slices), CLUSTER)
    clusters["row"] = np.tile(np.sort(rng.integers(0, 159, n // 36)), 36)
    # At random places there is no track.
    clusters["y"], clusters["z"] = rng.integers(16000, 49000, len(slices)), rng.integers(1500, 63000, len(slices))
    noise = SimulatedEvent(
        slice_number=slices,
        clusters=clusters,
        particle_of=np.full(len(slices), -1),
        particles=np.zeros(1, TRUE_PARTICLE),
        states=np.zeros(0, TRUE_STATE),
    )
    sample = TpcSample(SampleRequest(seed=4), TpcOptions(sources=1728))
    file, out = tmp_path / "t.mdf", tmp_path / "v.json"
    file.write_bytes(encode_block(sample, 0, [noise]))
    done = CliRunner().invoke(app, ["validate", str(file), "--chain", "alice_tpc", "--json", str(out)])
    assert done.exit_code == 0, done.output
    assert json.loads(out.read_text())["slice"]["findable"] == 0
