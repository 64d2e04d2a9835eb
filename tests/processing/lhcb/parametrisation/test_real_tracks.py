"""The parametrisation describes the long particles of the real events, from VELO and SciFi hits and true momenta."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.lhcb.parametrisation.parameters import LongTrackParameters
from tests.processing.lhcb.parametrisation.truth_comparison import MOMENTUM_BINS, QUANTITIES, Comparison
from tests.processing.lhcb.parametrisation.truth_tracks import truth_tracks

pytestmark = pytest.mark.physics


@pytest.fixture(scope="module")
def compared(shared: Path, parameters: LongTrackParameters) -> Comparison:
    return Comparison.of(truth_tracks(shared, parameters.behind_velo), parameters)


def test_momenta_of_real_particles_are_right_within_half_a_per_cent(compared: Comparison) -> None:
    for lowest, highest in ((3.0, 5.0), (5.0, 10.0), (10.0, 1000.0)):
        median, error, width, _, n = compared.between("momentum of kink, per cent", lowest, highest)
        assert n > 50
        assert abs(median) < 0.35 + 2.0 * error
        assert width < 0.9


def test_momenta_are_as_right_off_axis_as_on_axis(compared: Comparison) -> None:
    error = compared.errors["momentum of kink, per cent"]
    for slope in (compared.slope_x, np.abs(compared.slope_y)):
        edges = np.quantile(slope[compared.p > 3.0], [0.0, 0.1, 0.5, 0.9, 1.0])
        for lowest, highest in pairwise(edges):
            inside = (compared.p > 3.0) & (slope >= lowest) & (slope <= highest)
            width = np.diff(np.quantile(error[inside], [0.16, 0.84]))[0]
            assert abs(np.median(error[inside])) < 0.3 + 2.0 * 0.6 * width / np.sqrt(inside.sum())


@pytest.mark.parametrize("name", QUANTITIES)
def test_predictions_agree_with_measurements(compared: Comparison, name: str) -> None:
    if name != "momentum of kink, per cent":
        for lowest, highest in pairwise(MOMENTUM_BINS[1:]):
            median, error, _, _, _ = compared.between(name, lowest, highest)
            assert abs(median) < 3.5 * error


@pytest.mark.parametrize("name", QUANTITIES)
def test_errors_are_as_large_as_expected(compared: Comparison, name: str) -> None:
    for lowest, highest in ((5.0, 10.0), (10.0, 1000.0)):
        assert 0.75 < compared.between(name, lowest, highest)[3] < 1.35
