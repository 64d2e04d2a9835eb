"""The record of magnet and SciFi for the kernels."""

from __future__ import annotations

import numpy as np

from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.parametrisation.parameters import LongTrackParameters
from hltnode.processing.lhcb.tracks.long.parameters import LONG_TRACK_PARAMETERS, record_of


def test_the_record_has_the_parametrisation_and_where_the_layers_are() -> None:
    parameters, scifi = LongTrackParameters.builtin(), SciFiGeometry.builtin()
    record = np.frombuffer(record_of(parameters, scifi), LONG_TRACK_PARAMETERS.dtype)[0]
    assert record["polarity"] == parameters.polarity
    np.testing.assert_allclose(record["z_magnet"], parameters.behind_velo.coefficients["z_magnet"], rtol=1e-6)
    np.testing.assert_allclose(record["ut_kick"], parameters.before_ut.coefficients["kick"], rtol=1e-6)
    np.testing.assert_allclose(record["layer_z"][[0, 3, 11]], [7826.1, 8035.9, 9402.9], atol=0.3)
    stereo = np.array([0, 1, -1, 0] * 3) * 0.0875
    np.testing.assert_allclose(record["layer_dx_dy"], stereo, atol=1e-4)
    np.testing.assert_allclose(record["ut_dx_dy"], [0, 0.0875, -0.0875, 0], atol=1e-4)
