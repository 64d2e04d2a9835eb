"""The parametrisation of the built-in detector, and flights that were not used in its fits."""

from __future__ import annotations

import pytest

from hltnode.processing.lhcb.geometry.magnet import UP, Magnet
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.parametrisation.parameters import LongTrackParameters
from hltnode.processing.lhcb.parametrisation.tracks import Tracks


@pytest.fixture(scope="session")
def parameters() -> LongTrackParameters:
    return LongTrackParameters.builtin()


@pytest.fixture(scope="session")
def flights() -> Tracks:
    return Tracks.fly(Magnet(UP).field, SciFiGeometry.builtin().layer_z(), 500, skip=200_000)
