"""prefilter_events: generated kernels that end the reconstruction of events that no line needs further.

A sequence has points where it can skip events: the algorithms behind a point that size its buffers give no places to
events with EventFlag.PREFILTERED, as for a cut. With prefilters in a configuration, the sequence runs everything that a
prefilter reads before its point; without prefilters it is unchanged.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.codegen import member_names
from hltnode.processing.framework.collections import Column, DeclarationError
from hltnode.processing.framework.declaration import Algorithm, AlgorithmSequence, GeneratedKernel, Grid
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.selection.evaluation.lines import Evaluator, pieces
from hltnode.processing.selection.expressions.nodes import Element, Node, Op, Variable, columns_of, models_of, postorder
from hltnode.processing.selection.kernel_code.expressions import firsts_of, model_includes
from hltnode.processing.selection.kernel_code.prefilters import INCLUDES, PrefilterWriter
from hltnode.processing.selection.lines.line import Line
from hltnode.processing.selection.lines.prefilter import Prefilter, named

NAME = "prefilter_events"

SkipPoints = tuple[tuple[str, ...], ...]
"""For each point of a sequence, the algorithms behind it that leave out events with EventFlag.PREFILTERED."""


@dataclass(frozen=True, slots=True)
class Stages:
    """The stage of each algorithm and column of a sequence: the number of skip points before it.

    early_flags: flags that no algorithm behind the first point changes.

    Raises DeclarationError for a skip point that names no algorithm of the sequence.
    """

    sequence: AlgorithmSequence
    points: SkipPoints
    early_flags: int
    of_algorithm: dict[str, int] = field(init=False)
    of_column: dict[Column, int] = field(init=False)

    def __post_init__(self) -> None:
        own = {name: i + 1 for i, names in enumerate(self.points) for name in names}
        if missing := own.keys() - {algorithm.name for algorithm in self.sequence}:
            raise DeclarationError(f"skip points: the sequence has no algorithm {', '.join(sorted(missing))}")
        stages: dict[str, int] = {}
        read: dict[Column, int] = {}
        written: dict[Column, int] = {}
        for algorithm in self.sequence:
            changed = {*algorithm.updates, *algorithm.writes} - {event_flags}
            accessed = {*algorithm.all_reads, *changed} - {event_flags}
            before = [written.get(column, 0) for column in accessed] + [read.get(column, 0) for column in changed]
            stage = stages[algorithm.name] = max(own.get(algorithm.name, 0), *before, 0)
            for column in accessed:
                read[column] = max(read.get(column, 0), stage)
            for column in changed:
                written[column] = stage
        object.__setattr__(self, "of_algorithm", stages)
        object.__setattr__(self, "of_column", written)

    def of(self, roots: Sequence[Node], more: Iterable[Column] = ()) -> int:
        """The stage at which some expressions, and more columns, are known."""
        columns = {*columns_of(tuple(roots), tuple(more))} - {event_flags}
        stage = max((self.of_column.get(column, 0) for column in columns), default=0)
        early: set[Node] = set()
        for at in postorder(list(roots)):
            if at.op is Op.BITS and any(arg.op is Op.CONST and not arg.payload & ~self.early_flags for arg in at.args):
                early |= {arg for arg in at.args if _reads_flags(arg)}
        late = any(_reads_flags(arg) and arg not in early for at in postorder(list(roots)) for arg in at.args)
        return max(stage, len(self.points)) if late else stage

    def in_order(self, n_points: int) -> list[tuple[Algorithm, ...]]:
        """The algorithms by stage, in their order, with only the first points in use."""
        groups: list[list[Algorithm]] = [[] for _ in range(n_points + 1)]
        for algorithm in self.sequence:
            groups[min(self.of_algorithm[algorithm.name], n_points)].append(algorithm)
        return [tuple(group) for group in groups]


def _reads_flags(at: Node) -> bool:
    return isinstance(at.payload, Element) and at.payload.column is event_flags


def with_prefilters(
    stages: Stages, lines: Sequence[Line], counted: Mapping[str, Sequence[Column]], cuts: int
) -> tuple[Algorithm, ...]:
    """The algorithms of the sequence, with kernels that skip events if lines have prefilters.

    counted: columns that lines need besides those that they read, by line name. cuts: flags of events that a cut
    removed. A prefilter that is known only behind the last skip point skips no event.
    """
    prefilters = named(prefilter for line in lines for prefilter in line.prefilters).values()
    if not prefilters:
        return tuple(stages.sequence)
    known_at = {prefilter: stages.of([prefilter.condition]) for prefilter in prefilters}
    needed = [_needed(stages, line, counted.get(line.name, ())) for line in lines]
    n_points = min(max(known_at.values()) + 1, len(stages.points))
    first, *others = stages.in_order(n_points)
    algorithms = list(first)
    for stage, group in enumerate(others):
        # The lines that need an algorithm behind this point, by the prefilters that are known here.
        needs = {
            tuple(each for each in line.prefilters if known_at[each] <= stage)
            for line, last in zip(lines, needed, strict=True)
            if last > stage
        }
        here = [prefilter for prefilter, at in known_at.items() if at == stage]
        removed = int(EventFlag.PREFILTERED) | (cuts if stage else 0)
        algorithms += [_algorithm(stage, here, sorted(needs, key=_names), removed), *group]
    if late := [prefilter for prefilter, at in known_at.items() if at >= len(stages.points)]:
        algorithms.append(_algorithm(len(stages.points), late, (), int(EventFlag.PREFILTERED) | cuts))
    return tuple(algorithms)


def _needed(stages: Stages, line: Line, counted: Sequence[Column]) -> int:
    """The stage at which all that a line decides, shows in histograms and counts is known."""
    histograms = line.recorded_histograms
    shown = [node for each in histograms for node in (each.condition, each.value)]
    columns = (*line.columns, *(column for each in histograms for column in each.columns), *counted)
    return stages.of([line.condition, *shown], columns)


def _names(prefilters: Sequence[Prefilter]) -> tuple[str, ...]:
    return tuple(prefilter.name for prefilter in prefilters)


def _algorithm(
    stage: int, prefilters: Sequence[Prefilter], needs: Sequence[Sequence[Prefilter]], removed: int
) -> Algorithm:
    """The kernel at one point. needs: the prefilters of each group of lines that need what follows; an empty group
    needs every event."""
    skips = [] if not all(needs) else [[each.condition for each in group] for group in needs]
    conditions = tuple(each.condition for each in prefilters)
    roots = (*conditions, *(node for group in skips for node in group))
    read = sorted({*columns_of(roots)} - {event_flags}, key=lambda column: column.name)
    models = models_of(roots)
    algorithm = Algorithm(
        name=f"{NAME}_{stage + 1}",
        source=Path(__file__).with_suffix(".cuh"),
        grid=Grid.EVENTS,
        block_size=32,
        reads=(*read, *(model.column for model in models)),
        updates=(event_flags,),
        writes=tuple(prefilter.passed for prefilter in prefilters),
    )
    members = member_names(algorithm)
    writer = PrefilterWriter(members, firsts_of(members))
    passed = [(each.condition, members[each.passed]) for each in prefilters]
    write = cache(partial(writer.write, algorithm.name, passed, skips, members[event_flags], removed))

    def evaluate(columns: Mapping[Column, NDArray[Any]], n_events: int) -> Iterator[None]:
        flags = columns[event_flags]
        variables = [at.payload for at in postorder(list(roots)) if isinstance(at.payload, Variable)]
        for events in pieces(variables, roots, columns, n_events):
            evaluator = Evaluator(columns, n_events, events)
            these = np.arange(events.start, events.stop)
            is_left = flags[these] & np.uint32(removed) == 0
            for prefilter in prefilters:
                columns[prefilter.passed][these] = is_left & evaluator.truth(prefilter.condition)[0]
                yield
            skipped = is_left & bool(skips)
            for group in skips:
                skipped &= np.logical_or.reduce([evaluator.truth(condition)[1] for condition in group])
                yield
            flags[these[skipped]] |= np.uint32(EventFlag.PREFILTERED)

    includes = (*INCLUDES, *model_includes(models))
    return replace(algorithm, generated=GeneratedKernel(includes, write, evaluate))
