"""select_lines: a generated kernel of all lines and histograms that decides and writes selected candidates."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.codegen import member_names
from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.declaration import Algorithm, GeneratedKernel, Grid
from hltnode.processing.framework.histograms import histogram_counts
from hltnode.processing.framework.output_lists import OutputList
from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.processing.selection.evaluation.histograms import count
from hltnode.processing.selection.evaluation.lines import Evaluator, decide
from hltnode.processing.selection.evaluation.selected import write_candidates
from hltnode.processing.selection.expressions.expression import Expression
from hltnode.processing.selection.expressions.nodes import Node, columns_of, models_of, postorder
from hltnode.processing.selection.kernel_code.expressions import firsts_of, model_includes
from hltnode.processing.selection.kernel_code.lines import INCLUDES, KernelWriter
from hltnode.processing.selection.kernel_code.selected import CandidateWriter
from hltnode.processing.selection.lines.decisions import accepted, line_table, unknown_selections
from hltnode.processing.selection.lines.decisions import lines as decided_lines
from hltnode.processing.selection.lines.histogram import RecordedHistogram, check_histograms
from hltnode.processing.selection.lines.line import Line
from hltnode.processing.selection.reports.reported import Reports
from hltnode.processing.selection.reports.reported_lines import ReportedLines
from hltnode.processing.selection.reports.selected import SELECTED_WORDS, max_words, selected_list, words_of

NAME = "select_lines"
MAX_OPERATIONS = 500_000
"""Maximum number of distinct operations of all lines and histograms."""


def select_lines(
    lines: Sequence[Line],
    event_words: Sequence[Expression],
    reports: Reports,
    histograms: Sequence[RecordedHistogram] = (),
    report_words: int = SELECTED_WORDS,
) -> Algorithm:
    """The algorithm that decides on every event by lines, writes their candidates in accepted events, and fills
    histograms.

    event_words: numbers that identify an event for scalers. report_words: the largest row of the selected candidates of
    an event (reports/selected.py); 0: candidates are not written.

    Raises TriggerConfigError if lines and histograms together have too many operations.
    """
    check_histograms(histograms)
    words = tuple(word.node for word in event_words)
    filled = [node for histogram in histograms for node in (histogram.condition, histogram.value)]
    n_operations = len(postorder([*(line.condition for line in lines), *filled]))
    if n_operations > MAX_OPERATIONS:
        raise TriggerConfigError(
            f"lines and histograms: {n_operations} operations, at most {MAX_OPERATIONS} are allowed"
        )
    models = models_of([*(line.condition for line in lines), *filled])
    reported = ReportedLines(lines, reports if report_words else {})
    selected = selected_list(report_words) if report_words else None
    rows = () if selected is None else selected.columns
    algorithm = Algorithm(
        name=NAME,
        source=Path(__file__).with_suffix(".cuh"),
        grid=Grid.EVENTS,
        block_size=64,
        reads=(line_table, *columns_read(lines, words, reported, histograms), *(model.column for model in models)),
        updates=(event_flags,),
        writes=(decided_lines, accepted, unknown_selections, *rows, *([histogram_counts] if histograms else ())),
        scratch=reported.scratch,
    )
    write = cache(partial(_kernel, algorithm, lines, words, reported, histograms, selected))

    def evaluate(columns: Mapping[Column, NDArray[Any]], n_events: int) -> Iterator[None]:
        for decisions in decide(lines, words, columns, n_events):
            if decisions is None:
                yield
        assert decisions is not None
        columns[decided_lines][: decisions.words.size] = decisions.words.ravel()
        columns[accepted][:n_events] = decisions.accepted
        columns[unknown_selections][:n_events] = decisions.unknown
        if histograms:
            for counted in count(histograms, words, decisions.accepted, columns):
                columns[histogram_counts][: len(counted)] += counted
                yield
        if selected is not None:
            write_candidates(decisions, reported, Evaluator(columns, n_events), columns, selected)

    includes = (*INCLUDES, *model_includes(models))
    return replace(algorithm, generated=GeneratedKernel(includes, write, evaluate))


def _kernel(
    algorithm: Algorithm,
    lines: Sequence[Line],
    words: Sequence[Node],
    reported: ReportedLines,
    histograms: Sequence[RecordedHistogram],
    selected: OutputList | None,
) -> str:
    members = member_names(algorithm)
    scratch = {
        item.name: members[column] for item, column in zip(algorithm.scratch, algorithm.scratch_columns, strict=True)
    }
    firsts = firsts_of(members)
    candidates = None
    if selected is not None:
        candidates = CandidateWriter(
            reported,
            members,
            scratch,
            firsts,
            rows=members[words_of(selected)],
            count=members[selected.count],
            flags=members[event_flags],
            max_words=max_words(selected),
        )
    return KernelWriter(members, firsts, candidates).write(NAME, lines, words, histograms)


def columns_read(
    lines: Sequence[Line],
    event_words: Sequence[Node],
    reported: ReportedLines,
    histograms: Sequence[RecordedHistogram],
) -> tuple[Column, ...]:
    """The distinct columns that lines, reports and histograms read, grouped by collection."""
    columns = columns_of(tuple(event_words))
    of_lines = (column for line in lines for column in line.columns)
    of_histograms = (column for histogram in histograms for column in histogram.columns)
    found = dict.fromkeys((*columns, *of_lines, *reported.columns, *of_histograms))
    found.pop(event_flags, None)
    return tuple(sorted(found, key=lambda column: column.name))
