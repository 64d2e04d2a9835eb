"""The sensors: on their cylinders, in their order, without holes around the axis."""

from __future__ import annotations

import numpy as np

from hltnode.processing.mu3e.detector_constants import LAYER_LADDERS, LAYER_RADII, LAYER_SENSORS, RECURL_CENTRE
from hltnode.processing.mu3e.geometry.sensor_table import (
    CENTRE,
    DOWNSTREAM,
    NO_LAYER,
    SENSOR,
    SOURCES,
    UPSTREAM,
    pixel_positions,
    sensors,
    source_of_sensors,
    table_bytes,
)
from hltnode.protocol.mu3e.hit_banks import HIT, MAX_SENSORS


def vectors(of: np.ndarray, letters: tuple[str, str, str]) -> np.ndarray:
    """f64[sensors, 3]."""
    return np.column_stack([of[letter].astype(float) for letter in letters])


def test_sensors_stand_on_cylinders_with_three_unit_vectors_at_right_angles() -> None:
    of = sensors()
    u, v, n = (vectors(of, (f"{letter}x", f"{letter}y", f"{letter}z")) for letter in "uvn")
    np.testing.assert_allclose(np.cross(u, v), n, atol=1e-6)
    for each in (u, v, n):
        np.testing.assert_allclose((each**2).sum(1), 1.0, atol=1e-6)
    centre = vectors(of, ("x", "y", "z"))
    np.testing.assert_allclose((centre[:, :2] * n[:, :2]).sum(1), np.array(LAYER_RADII)[of["layer"]], rtol=1e-6)
    assert np.abs((centre[:, :2] * u[:, :2]).sum(1)).max() < 1e-4


def test_layers_have_their_ladders_and_stations_their_places() -> None:
    of = sensors()
    for station, middle, layers in ((CENTRE, 0.0, 4), (UPSTREAM, -RECURL_CENTRE, 2), (DOWNSTREAM, RECURL_CENTRE, 2)):
        inside = of[of["station"] == station]
        assert sorted(set(inside["layer"].tolist())) == list(range(4 - layers, 4))
        for layer in set(inside["layer"].tolist()):
            one = inside[inside["layer"] == layer]
            assert len(one) == LAYER_LADDERS[layer] * LAYER_SENSORS[layer]
            np.testing.assert_allclose(np.sort(np.unique(one["z"]))[[0, -1]].mean(), middle, atol=1e-4)
            np.testing.assert_allclose(np.diff(np.unique(one["z"])), 20.0, atol=1e-4)


def test_neighbouring_ladders_leave_no_hole() -> None:
    """The planes of two neighbours meet nearer to the middles of both than the edges of their sensors."""
    for radius, ladders in zip(LAYER_RADII, LAYER_LADDERS, strict=True):
        assert radius * np.tan(np.pi / ladders) < 10.0


def test_pixels_lie_at_their_distance_from_the_centre() -> None:
    hits = np.array([(60, 0, 0, 0, 0), (60, 249, 0, 0, 0), (60, 0, 249, 0, 0)], HIT)
    first, along_u, along_v = pixel_positions(hits)
    sensor = sensors()[60]
    np.testing.assert_allclose(along_u - first, 249 * 0.08 * np.array([sensor["ux"], sensor["uy"], 0]), atol=1e-5)
    np.testing.assert_allclose(along_v - first, [0, 0, 249 * 0.08], atol=1e-5)
    np.testing.assert_allclose((along_u + along_v) / 2, vectors(sensors()[60:61], ("x", "y", "z"))[0], atol=1e-4)


def test_every_source_has_sensors_and_numbers_without_a_sensor_have_no_layer() -> None:
    source = source_of_sensors()
    assert np.unique(source).tolist() == list(range(SOURCES))
    table = table_bytes(None).view(SENSOR.dtype)
    assert len(table) == MAX_SENSORS
    np.testing.assert_array_equal(table[: len(source)], sensors())
    assert (table["layer"][len(source) :] == NO_LAYER).all()
