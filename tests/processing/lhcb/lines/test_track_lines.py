"""Lines on long tracks agree with their definition in plain Python."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from hltnode.processing.lhcb.lines.line_types.tracks import TrackMVA
from hltnode.processing.lhcb.velo.collections import NO_PV
from hltnode.processing.selection.evaluation.lines import Evaluator
from hltnode.processing.selection.lines.line_type import LineType

TX = 0.1
"""Slope in x of all tracks; they have none in y."""


def selected(line: LineType, pt: Sequence[float], **others: Sequence[float]) -> list[int]:
    """Numbers of the selected tracks of one event, which have no primary vertex. pt in MeV."""
    n = len(pt)
    values = {
        "long_tracks.beam_tx": np.full(n, TX),
        "long_tracks.beam_qop": TX / math.hypot(1.0, TX) / np.array(pt),
        "long_tracks.pv": np.full(n, NO_PV),
        "long_tracks.count": np.array([n]),
        "pvs.count": np.zeros(1),
        **{f"long_tracks.{name}": np.array(given) for name, given in others.items()},
    }
    made = line.line()
    columns = {column: values.get(column.name, np.zeros(n)).astype(column.dtype) for column in made.columns}
    return [int(number) for number in Evaluator(columns, 1).selected(made)[1]]


def threshold(line: TrackMVA, pt: float) -> float:
    """The smallest IP chi2 at a pt in MeV."""
    s, max_pt = (pt - line.alpha) / 1000, line.max_pt / 1000
    if s > max_pt:
        return line.min_ip_chi2
    tighter = line.param1 / (s - line.param2 / 1000) ** 2 + line.param3 / max_pt * (max_pt - s)
    return math.exp(tighter + math.log(line.min_ip_chi2))


@pytest.mark.parametrize("line", [TrackMVA("A"), TrackMVA("B", param3=5.0, alpha=-200.0, min_ip_chi2=2.0)])
def test_the_ip_chi2_that_track_mva_asks_for_falls_with_pt(line: TrackMVA) -> None:
    pt = [3_000.0, 5_000.0, 12_000.0, 20_000.0, 25_000.0, 27_000.0, 60_000.0]
    least = [threshold(line, one) for one in pt]
    above, below = [1.01 * one for one in least], [0.99 * one for one in least]
    assert selected(line, pt, ip_chi2=above) == list(range(len(pt)))
    assert selected(line, pt, ip_chi2=below) == []
    assert selected(line, [line.min_pt + line.alpha - 1.0], ip_chi2=[1e30]) == []
