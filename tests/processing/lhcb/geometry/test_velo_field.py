"""The fringe field in the VELO, as a straight line."""

import numpy as np
import pytest

from hltnode.processing.lhcb.geometry.magnet import DOWN, UP, Magnet
from hltnode.processing.lhcb.geometry.velo_field import MEV_PER_T_MM, VeloField


def test_the_line_follows_the_field_on_the_axis() -> None:
    field = VeloField.of(Magnet(DOWN))
    z = np.linspace(-300.0, 750.0, 100)
    by = Magnet(DOWN).field(0.0, 0.0, z)[1]
    assert np.abs(field.by + field.gradient * z - by).max() < 0.1 * np.abs(by).max()
    assert -0.02 < field.by < -0.002


def test_the_other_polarity_bends_the_other_way() -> None:
    down, up = VeloField.of(Magnet(DOWN)), VeloField.of(Magnet(UP))
    assert (up.by, up.gradient) == pytest.approx((-down.by, -down.gradient))


def test_kernels_get_the_bend_of_a_positive_particle() -> None:
    # A positive particle along z is pushed towards positive x by a field that points down.
    bend, gradient = np.frombuffer(VeloField(-0.01, -2e-5).to_bytes(), "<f4")
    assert bend == pytest.approx(0.01 * MEV_PER_T_MM)
    assert gradient == pytest.approx(2e-5 * MEV_PER_T_MM)
