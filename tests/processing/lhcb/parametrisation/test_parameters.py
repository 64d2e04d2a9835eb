"""The parametrisation of the built-in detector agrees with flights through its field; its file agrees with the tool."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hltnode.processing.lhcb.geometry.ideal_ut import LAYER_Z as UT_LAYER_Z
from hltnode.processing.lhcb.geometry.magnet import DOWN, UP, Magnet
from hltnode.processing.lhcb.geometry.material import slabs
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.parametrisation import parametrise as module
from hltnode.processing.lhcb.parametrisation.filter_noise import Step
from hltnode.processing.lhcb.parametrisation.forms import Z_UT
from hltnode.processing.lhcb.parametrisation.parameters import PARAMETERS_FILE, LongTrackParameters, ParametersError
from hltnode.processing.lhcb.parametrisation.scattering import Quantity
from hltnode.processing.lhcb.parametrisation.seeding import PAIRS, chord, reach
from hltnode.processing.lhcb.parametrisation.tracks import Tracks


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def test_the_momentum_follows_from_the_slopes_within_three_per_mille_everywhere(
    parameters: LongTrackParameters, flights: Tracks
) -> None:
    line = flights.velo
    error = parameters.behind_velo.momentum(line, flights.behind.tx - line.tx) / flights.s - 1.0
    fast = flights.p > 3.0
    assert rms(error[fast]) < 0.002
    for lowest, highest in ((-0.3, -0.15), (-0.15, 0.0), (0.0, 0.15), (0.15, 0.3)):
        inside = fast & (line.tx > lowest) & (line.tx < highest)
        assert abs(np.median(error[inside])) < 0.003
    for lowest, highest in ((0.0, 0.1), (0.1, 0.2), (0.2, 0.25)):
        inside = fast & (np.abs(line.ty) > lowest) & (np.abs(line.ty) < highest)
        assert abs(np.median(error[inside])) < 0.003


def test_the_momentum_has_no_bias_at_small_angles_where_most_tracks_are(
    parameters: LongTrackParameters, flights: Tracks
) -> None:
    line = flights.velo
    error = parameters.behind_velo.momentum(line, flights.behind.tx - line.tx) / flights.s - 1.0
    small = (np.hypot(line.tx, line.ty) < 0.1) & (flights.p > 3.0)
    assert abs(np.median(error[small])) < 0.0004


def test_the_crossings_of_the_ut_follow_from_the_kink(parameters: LongTrackParameters, flights: Tracks) -> None:
    kink = flights.behind.tx - flights.velo.tx
    for p_min, worst in ((3.0, 0.12), (10.0, 0.03)):
        fast = flights.p > p_min
        for z, x in zip(UT_LAYER_Z, flights.ut_x, strict=True):
            assert rms((parameters.in_ut.x(flights.velo, kink, z) - x)[fast]) < worst


def test_the_noise_of_the_steps_adds_up_to_that_of_all_material(parameters: LongTrackParameters) -> None:
    noise = parameters.noise
    assert all(len(values) == 3 and (values >= 0.0).all() for values in noise.values())
    slope = noise[Step.BEFORE_UT][2] + 3 * noise[Step.UT_LAYER][2] + noise[Step.MAGNET][2]
    crossed = [s for s in slabs() if 770.0 < s.z < 7700.0 and s.name != "beam pipe"]
    expected = 1.15 * sum(0.0136**2 * s.thickness for s in crossed)
    # Beam pipe, and the holes around it.
    assert slope == pytest.approx(expected, rel=0.15)
    for step in (Step.BEFORE_UT, Step.MAGNET):
        position, both, variance = noise[step]
        assert both**2 < position * variance


@pytest.mark.parametrize(("before", "worst_x"), [("velo", 3.0), ("ut", 5.0)])
def test_the_state_behind_the_magnet_follows_from_the_momentum(
    parameters: LongTrackParameters, flights: Tracks, before: str, worst_x: float
) -> None:
    functions, line = getattr(parameters, f"behind_{before}"), getattr(flights, before)
    found = functions.curve(line, functions.kink(line, flights.s))
    for p_min, factor in ((3.0, 1.0), (10.0, 0.3)):
        fast = flights.p > p_min
        assert rms((found.x - flights.behind.x)[fast]) < factor * worst_x
        assert rms((found.y - flights.behind.y)[fast]) < factor * worst_x
        assert rms((found.tx - flights.behind.tx)[fast]) < factor * 1e-3
        assert rms((found.ty - flights.behind.ty)[fast]) < factor * 1e-3


def test_the_crossings_of_all_layers_follow_from_the_kink(parameters: LongTrackParameters, flights: Tracks) -> None:
    line = flights.velo
    found = parameters.behind_velo.curve(line, flights.behind.tx - line.tx)
    fast = flights.p > 3.0
    for z, x, y in zip(flights.layer_z, flights.x, flights.y, strict=True):
        assert rms((found.x_at(z) - x)[fast]) < 0.8
        assert rms((found.y_at(z) - y)[fast]) < 2.0


def test_the_state_at_the_ut_follows_from_the_momentum(parameters: LongTrackParameters, flights: Tracks) -> None:
    x, tx = parameters.before_ut.state(flights.velo, flights.s, Z_UT)
    fast = flights.p > 3.0
    assert rms((x - flights.ut.x)[fast]) < 0.2
    assert rms((tx - flights.ut.tx)[fast]) < 2e-4


@pytest.mark.parametrize("name", PAIRS)
def test_hits_of_seeds_are_foreseen(parameters: LongTrackParameters, flights: Tracks, name: str) -> None:
    pair = PAIRS[name]
    slope, intercept = chord(flights, pair)
    z, x, y = (of[pair[0]] for of in (flights.layer_z, flights.x, flights.y))
    foreseen = parameters.seeds.curvature(name, slope, intercept, y / z)
    # 0.1 mm at the ends of the SciFi.
    assert rms(foreseen - flights.behind.quadratic) < 0.1 / 700.0**2
    error = parameters.seeds.reach(name, x / z, flights.s, y / z) - reach(flights, pair)
    constant, of_bend = parameters.seed_spreads[f"reach_{name}"]
    assert np.mean(np.abs(error) < 4.0 * np.sqrt(constant + of_bend * flights.s**2)) > 0.97


def test_the_momentum_of_a_seed_follows_from_its_direction(parameters: LongTrackParameters, flights: Tracks) -> None:
    error = parameters.seeds.momentum(flights.behind) / flights.s - 1.0
    assert rms(error[flights.p < 5.0]) < 0.02


def test_expected_errors_are_positive_and_smaller_for_faster_tracks(parameters: LongTrackParameters) -> None:
    angle = np.linspace(0.0, 0.4, 9)
    for quantity in set(Quantity) - {Quantity.MATCH_Y_TY}:
        slow, fast = (parameters.errors.variance(quantity, np.full(9, p), angle) for p in (3.0, 30.0))
        assert (fast > 0.0).all()
        assert (slow > fast).all()


def test_y_and_its_slope_are_correlated_as_a_covariance_can_be(parameters: LongTrackParameters) -> None:
    angle = np.linspace(0.0, 0.3, 7)
    for p in (2.0, 5.0, 50.0):
        y, ty, both = (
            parameters.errors.variance(quantity, np.full(7, p), angle)
            for quantity in (Quantity.MATCH_Y, Quantity.MATCH_TY, Quantity.MATCH_Y_TY)
        )
        assert (both**2 < y * ty).all()


def small(monkeypatch: pytest.MonkeyPatch) -> LongTrackParameters:
    """Result of the tool for few flights."""
    monkeypatch.setattr(module, "N_FLIGHTS", 250)
    monkeypatch.setattr(module, "N_UNSEEN_FLIGHTS", 250)
    return module.parametrise(SciFiGeometry.builtin(), Magnet(UP))


def test_the_polarity_changes_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    up = small(monkeypatch)
    down = module.parametrise(SciFiGeometry.builtin(), Magnet(DOWN))
    assert up.differences(down) == ["polarity"]
    assert (up.polarity, down.polarity) == (1.0, -1.0)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_file_in_the_package_is_what_the_tool_computes(parameters: LongTrackParameters) -> None:
    assert parameters.differences(module.parametrise(SciFiGeometry.builtin(), Magnet.builtin())) == []


def test_the_file_in_the_package_is_of_the_builtin_field(parameters: LongTrackParameters) -> None:
    assert parameters.provenance["field digest"] == Magnet.builtin().digest


def test_a_written_file_is_read_back(parameters: LongTrackParameters, tmp_path: Path) -> None:
    (tmp_path / PARAMETERS_FILE).write_text(parameters.as_json())
    again = LongTrackParameters.load(tmp_path)
    assert parameters.differences(again) == []
    assert again.as_json() == parameters.as_json()


def test_differences_are_named(parameters: LongTrackParameters) -> None:
    other = replace(
        parameters,
        polarity=-parameters.polarity,
        provenance=dict(parameters.provenance) | {"field digest": "another"},
        errors=replace(
            parameters.errors,
            coefficients=dict(parameters.errors.coefficients) | {Quantity.KINK: np.array([1.0, 2.0, 3.0])},
        ),
    )
    assert parameters.differences(other) == ["polarity", "errors.kink", "field digest"]


def damaged(content: dict[str, Any], *keys: str, value: object) -> str:
    part = content
    for key in keys[:-1]:
        part = part[key]
    part[keys[-1]] = value
    return json.dumps(content)


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (("version",), 1, "version"),
        (("polarity",), 0.5, "polarity is 0.5"),
        (("polarity",), "down", "float"),
        (("kick",), [[1.0]], r"kick must be finite numbers of the shape \[5, 2, 3\]"),
        (("behind_ut", "kick"), None, "kick"),
        (("seeds",), {}, "has no 'momentum'"),
        (("energy_loss",), 1e39, "energy_loss must be finite numbers"),
        (("errors", "kink"), [1.0, float("nan"), 1.0], "kink"),
        (("errors",), [], "indices"),
        (("in_ut", "curve"), [0.0], "curve"),
        (("noise", "magnet"), [1.0], "magnet"),
    ],
)
def test_a_damaged_file_is_named_with_what_is_wrong(
    parameters: LongTrackParameters, tmp_path: Path, keys: tuple[str, ...], value: object, message: str
) -> None:
    (tmp_path / PARAMETERS_FILE).write_text(damaged(json.loads(parameters.as_json()), *keys, value=value))
    with pytest.raises(ParametersError, match=f"{PARAMETERS_FILE}.*{message}"):
        LongTrackParameters.load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe\x00", b"3", b"[" * 100_000])
def test_what_is_no_parametrisation_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / PARAMETERS_FILE).write_bytes(content)
    with pytest.raises(ParametersError, match=PARAMETERS_FILE):
        LongTrackParameters.load(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ParametersError, match=f"{PARAMETERS_FILE}: cannot be read"):
        LongTrackParameters.load(tmp_path)
