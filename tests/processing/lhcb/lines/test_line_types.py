"""Line types: what they refuse, and how they stand in the device's table."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from pydantic import ValidationError

from hltnode.processing.lhcb.lines import (
    LINE_TYPES,
    Line,
    NDisplacedVeloTracks,
    OdinEventType,
    Passthrough,
    VeloMicroBias,
)
from hltnode.processing.lhcb.lines.kinds import LineKind


@pytest.mark.parametrize(
    "make",
    [
        lambda: Passthrough(""),
        lambda: Passthrough("has blank"),
        lambda: Passthrough("A", prescale=-0.1),
        lambda: Passthrough("A", postscale=1.1),
        lambda: Passthrough("A", prescale=float("nan")),
        lambda: VeloMicroBias("A", min_tracks=0),
        lambda: NDisplacedVeloTracks("A", min_ip=-1.0),
        lambda: NDisplacedVeloTracks("A", max_ip=float("inf")),
        lambda: OdinEventType("A", mask=0),
        lambda: OdinEventType("A", mask=1 << 16),
    ],
)
def test_values_out_of_range_are_refused(make: Callable[[], Line]) -> None:
    with pytest.raises(ValidationError):
        make()


def test_a_line_stands_in_the_table_with_its_cuts() -> None:
    line = NDisplacedVeloTracks("A", min_tracks=4, min_ip=0.25, max_ip=2.0, min_ip_chi2=9.0)
    record = line.record()
    assert record["kind"] == LineKind.N_DISPLACED_VELO_TRACKS
    assert record["parameters"][0] == 4
    assert record["parameters"][1:4].view(np.float32).tolist() == [0.25, 2.0, 9.0]
    assert record["prescale"]["always"] == 1


def test_every_line_type_has_a_number_of_its_own() -> None:
    assert sorted(line_type.kind for line_type in LINE_TYPES.values()) == sorted(set(LineKind) - {LineKind.NONE})
