"""Both sides of each condition of the composites with K0S behind the VELO."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.lines.line_types.downstream_composites import (
    downstream_kaon_pairs,
    kaons_and_downstream_kaons,
    pairs_and_downstream_kaons,
)
from hltnode.processing.lhcb.secondary_vertices.collections import VertexKind
from hltnode.processing.lhcb.secondary_vertices.downstream.collections import DownstreamV0Kind
from hltnode.processing.selection.lines.composite import Composite
from hltnode.processing.selection.make_composite import make_composite
from tests.processing.selection.composite_evaluators import EVALUATORS

KS_MASS = 497.611
DISPLACED, SAME_SIGN = int(VertexKind.VERTEX_DISPLACED), int(VertexKind.VERTEX_SAME_SIGN)
VELO_KS, VELO_LAMBDA = int(VertexKind.VERTEX_KS), int(VertexKind.VERTEX_LAMBDA)
KS, LAMBDA = int(DownstreamV0Kind.DOWNSTREAM_KS), int(DownstreamV0Kind.DOWNSTREAM_LAMBDA)

Case = dict[str, Any]
"""What differs from a candidate: its mass, its doca, columns of the first and of the second part."""


def parts_of(case: Case, z_first: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns of two parts with the mass of a K0S and opposite transverse momenta in x. The line of the second part
    passes the first one, at z_first, at the distance `doca` in y."""
    pz, z_second = 20_000.0, 1500.0
    across = np.sqrt(case.get("mass", 1865.0) ** 2 / 4 - KS_MASS**2)
    slope = -across / pz
    first = {"x": 0.0, "y": 0.0, "z": z_first, "px": across, "pz": pz, "m_pipi": KS_MASS, "tracks": (0, 1)}
    second = {
        **{"x": slope * (z_second - z_first), "y": case.get("doca", 0.1), "z": z_second},
        **{"px": -across, "pz": pz, "kind": KS, "m_pipi": KS_MASS, "tracks": (2, 3)},
    }
    return first | case.get("first", {}), second | case.get("second", {})


def numbers_of(composite: Composite, cases: list[Case], evaluator: str) -> list[int]:
    """Number of candidates in the event of each case. Parts of one collection are its objects 0 and 1."""
    made = composite.combination
    of_first, of_second = made.first.collection, made.second.collection
    limits = BatchLimits(events=len(cases), lines=1)
    columns: dict[str, NDArray[Any]] = {}

    def put(column: Column, event: int, number: int, values: Any) -> None:
        per_event = column.count(limits) // len(cases) // column.width
        content = columns.setdefault(column.name, np.zeros(column.count(limits)))
        content.reshape(len(cases), per_event, column.width)[event, number] = values

    is_pair = of_first is not of_second
    for event, case in enumerate(cases):
        default = {"kind": DISPLACED if composite is pairs_and_downstream_kaons else VELO_KS if is_pair else KS}
        first, second = parts_of(case, 100.0 if is_pair else 900.0)
        first = {**default, "min_pt": 1000.0, **first}
        for column in made.reads:
            if column.collection is of_first and column.name.split(".")[1] in first:
                put(column, event, 0, first[column.name.split(".")[1]])
            if column.collection is of_second and column.name.split(".")[1] in second:
                put(column, event, 0 if is_pair else 1, second[column.name.split(".")[1]])
    for variable in (made.first, made.second):
        columns[variable.count.name] = np.full(len(cases), 1 if is_pair else 2)
    columns["downstream_tracks.count"] = np.full(len(cases), 4)
    result = EVALUATORS[evaluator](make_composite(made), columns, limits)
    return [int(n) for n in result[made.count.name][: len(cases)]]


OF_ALL: list[tuple[Case, bool]] = [
    ({}, True),
    ({"doca": 4.9}, True),
    ({"doca": 5.1}, False),
    ({"doca": -5.1}, False),
    ({"mass": 2195.0}, True),
    ({"mass": 2205.0}, False),
    ({"second": {"kind": LAMBDA}}, False),
    ({"second": {"kind": KS | LAMBDA}}, True),
    ({"second": {"m_pipi": KS_MASS - 49.0}}, True),
    ({"second": {"m_pipi": KS_MASS - 51.0}}, False),
    ({"second": {"m_pipi": KS_MASS + 49.0}}, True),
    ({"second": {"m_pipi": KS_MASS + 51.0}}, False),
]
CONDITIONS: dict[Composite, list[tuple[Case, bool]]] = {
    pairs_and_downstream_kaons: [
        ({"first": {"kind": DISPLACED | SAME_SIGN}}, False),
        ({"first": {"kind": VELO_KS}}, False),
        ({"first": {"min_pt": 251.0}}, True),
        ({"first": {"min_pt": 249.0}}, False),
        # The mass of the pair is that of its pions.
        ({"first": {"m_pipi": 1200.0}}, False),
    ],
    kaons_and_downstream_kaons: [
        ({"first": {"kind": VELO_LAMBDA}}, False),
        ({"first": {"kind": VELO_KS | VELO_LAMBDA}}, True),
    ],
    downstream_kaon_pairs: [
        ({"first": {"kind": LAMBDA}}, False),
        ({"first": {"m_pipi": KS_MASS - 51.0}}, False),
        ({"first": {"m_pipi": KS_MASS + 51.0}}, False),
        ({"first": {"m_pipi": KS_MASS + 49.0}}, True),
        ({"second": {"tracks": (1, 2)}}, False),
        ({"second": {"tracks": (2, 0)}}, False),
    ],
}


@pytest.mark.parametrize("evaluator", ["numpy", "compiler"])
@pytest.mark.parametrize("composite", CONDITIONS, ids=lambda it: it.combination.name)
def test_a_composite_with_downstream_kaons_has_one_side_of_each_condition(composite: Composite, evaluator: str) -> None:
    cases = [*OF_ALL, *CONDITIONS[composite]]
    numbers = numbers_of(composite, [case for case, _ in cases], evaluator)
    wrong = [case for (case, is_made), n in zip(cases, numbers, strict=True) if n != int(is_made)]
    assert wrong == []
