"""make_composite: a generated kernel that makes the candidates of one composite (lines/composite.py)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.codegen import member_names
from hltnode.processing.framework.collections import U16, Column
from hltnode.processing.framework.declaration import Algorithm, GeneratedKernel, Grid, Scratch
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.selection.evaluation.lines import Evaluator
from hltnode.processing.selection.expressions.nodes import models_of
from hltnode.processing.selection.kernel_code.composites import INCLUDES, CompositeWriter
from hltnode.processing.selection.kernel_code.expressions import firsts_of, model_includes
from hltnode.processing.selection.lines.composite import Combination

PREFIX = "composite_"
"""Of the names of the algorithms."""


def make_composite(combination: Combination) -> Algorithm:
    """The algorithm that makes the candidates of a composite in every event.

    An event with more candidates than the bound keeps the first ones, gets EventFlag.OVERFLOW, and counts the others.
    """
    models = models_of(combination.roots)
    algorithm = Algorithm(
        name=f"{PREFIX}{combination.name}",
        source=Path(__file__).with_suffix(".cuh"),
        grid=Grid.EVENTS,
        block_size=32,
        reads=(
            *sorted({*combination.reads} - {event_flags}, key=lambda column: column.name),
            *(model.column for model in models),
        ),
        updates=(event_flags,),
        writes=combination.writes,
        scratch=(
            Scratch("firsts", U16, combination.first.collection),
            Scratch("seconds", U16, combination.second.collection),
        ),
    )

    @cache
    def write() -> str:
        members = member_names(algorithm)
        firsts, seconds = (members[column] for column in algorithm.scratch_columns)
        writer = CompositeWriter(combination, members, firsts_of(members), (firsts, seconds))
        return writer.write(algorithm.name, members[event_flags])

    def evaluate(columns: Mapping[Column, NDArray[Any]], n_events: int) -> Iterator[None]:
        made = np.zeros(n_events, np.int64)
        bound = combination.bound
        assert combination.collection.placement is not None
        first = combination.collection.placement.first(None, n_events)
        evaluator = Evaluator(columns, n_events)
        for event, one, other, values in evaluator.pairs(combination):
            # The pairs of an event are adjacent and in order, but may come in several parts.
            begin = np.searchsorted(event, event, side="left")
            place = made[event] + np.arange(len(event)) - begin
            made += np.bincount(event, minlength=n_events)
            kept = place < bound
            at = first[event[kept]] + place[kept]
            for column, number in zip(combination.parts, (one, other), strict=True):
                columns[column][at] = number[kept]
            for column, value in zip(combination.columns.values(), values, strict=True):
                columns[column][at] = value[kept]
            yield
        columns[combination.count][:n_events] = np.minimum(made, bound)
        columns[combination.left_out][:n_events] = np.maximum(made - bound, 0)
        columns[event_flags][:n_events][made > bound] |= np.uint32(EventFlag.OVERFLOW)

    includes = (*INCLUDES, *model_includes(models))
    return replace(algorithm, generated=GeneratedKernel(includes, write, evaluate))
