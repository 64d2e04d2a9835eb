"""The parametrisation agrees with the published constants of Allen, on the same flights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.lhcb.parametrisation.forms import Z_REFERENCE
from hltnode.processing.lhcb.parametrisation.parameters import LongTrackParameters
from hltnode.processing.lhcb.parametrisation.tracks import Curve, Line, Tracks, sine

pytestmark = pytest.mark.physics

FloatArray = NDArray[np.float64]

# Allen's formulas are valid for tracks that are not too steep.
MAX_TY = 0.2
MIN_P = 3.0


@pytest.fixture(scope="module")
def constants(shared: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(
        (shared / "data" / "lhcb-parameters" / "looking_forward_constants.json").read_text()
    )
    return content


def momentum(constants: dict[str, Any], line: Line, behind: Curve) -> FloatArray:
    """s (c/GeV) by Allen's formula: the kick divided by a polynomial of the kick and the slopes, and by the lengths of
    the two straight parts of the track."""
    x, y = line.tx, line.ty
    z_kick = (behind.x - line.x_at(0.0) - behind.tx * Z_REFERENCE) / (line.tx - behind.tx)
    x_kick, y_kick = line.x_at(z_kick), line.y_at(z_kick)
    squares = [behind.x - x_kick, behind.y - y_kick, Z_REFERENCE - z_kick]
    squares += [line.x_at(0.0) - x_kick, line.y_at(0.0) - y_kick, z_kick]
    length = 1e-3 * np.sqrt(sum(part**2 for part in squares))
    kick = sine(behind.tx, behind.ty) - sine(x, y)
    even = [1, x**2, x**4, y**2, y**4, x**2 * y**2, x**6, y**5, x**4 * y**2, x**2 * y**4]
    odd = [1, x, x**3, x**5, x**7, y**2, y**4, y**6]
    odd += [x * y**2, x * y**4, x * y**6, x**3 * y**2, x**3 * y**4, x**5 * y**2]
    polynomial = sum(
        kick**k * sum(c * t for c, t in zip(constants[f"C{k}"], (odd if k % 2 else even), strict=True))
        for k in range(5)
    )
    found: FloatArray = 1000.0 * kick / (length * np.sqrt(1.0 - y**2) * polynomial)
    return found


def test_momenta_agree_within_half_a_per_cent(
    constants: dict[str, Any], parameters: LongTrackParameters, flights: Tracks
) -> None:
    line, behind = flights.velo, flights.behind
    ours = parameters.behind_velo.momentum(line, behind.tx - line.tx)
    ratio = ours / momentum(constants, line, behind)
    inside = (flights.p > MIN_P) & (np.abs(line.ty) < MAX_TY)
    toward = line.tx * np.sign(flights.s)
    for lowest, highest in ((-0.3, -0.1), (-0.1, 0.0), (0.0, 0.1), (0.1, 0.3)):
        chosen = inside & (toward > lowest) & (toward < highest)
        assert abs(np.median(ratio[chosen]) - 1.0) < 0.005


def test_tracks_meet_where_its_matching_expects_them(flights: Tracks) -> None:
    """z of the kick as a polynomial of the change of slope, x in the SciFi and tx, for the state at the SciFi's end."""
    line, behind, dz = flights.velo, flights.behind, 9410.0 - Z_REFERENCE
    x, tx = behind.x_at(9410.0), behind.tx + dz * (2.0 * behind.quadratic + 3.0 * dz * behind.cubic)
    bend = line.tx - tx
    z = 5287.6 - 7.98878 * np.abs(bend) + 317.683 * bend**2 + 0.0119379 * np.abs(x) - 1418.42 * line.tx**2
    distance = x + (z - 9410.0) * tx - line.x_at(z)
    for p_min, most in ((3.0, 10.0), (10.0, 3.0)):
        inside = (flights.p > p_min) & (np.abs(line.ty) < MAX_TY)
        assert np.sqrt(np.mean(distance[inside] ** 2)) < most


def test_y_is_corrected_alike(constants: dict[str, Any], flights: Tracks) -> None:
    """y in each layer as a polynomial of slopes and of the distance in x from the line at the UT."""
    inside = (flights.p > MIN_P) & (np.abs(flights.velo.ty) < MAX_TY)
    tx, ty = flights.ut.tx, flights.velo.ty

    even_terms = ty * np.stack([tx**0, tx**2, ty**2, tx**4, tx**2 * ty**2, ty**4])
    odd_terms = tx * even_terms
    for layer, z in enumerate(flights.layer_z):
        parts = np.array(constants["parametrization_layers"][layer]).reshape(3, 6)
        bent = flights.x[layer] - flights.ut.x_at(z)
        corrected = bent * (parts[0] @ odd_terms + bent * (parts[1] @ even_terms + bent * (parts[2] @ odd_terms)))
        straight = flights.velo.y_at(z) - flights.y[layer]
        left = np.sqrt(np.mean((straight + corrected)[inside] ** 2))
        assert left < 0.2 * np.sqrt(np.mean(straight[inside] ** 2))
