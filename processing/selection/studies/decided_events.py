"""One pass of a sample through an engine; lines with other cuts are evaluated on its columns without another pass."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.interface import Backend
from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, OfflineRunner, encode_meps, encode_slices
from hltnode.processing.framework.readout import AUTO, check_encoding
from hltnode.processing.framework.sub_slices import between_empty_margins
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.evaluation.candidates import (
    Candidates,
    Constituents,
    candidates_of,
    columns_of_candidates,
    constituents,
)
from hltnode.processing.selection.evaluation.lines import Bools, Columns, Evaluator, passes
from hltnode.processing.selection.expressions.nodes import Node, columns_of
from hltnode.processing.selection.lines.line import Line
from hltnode.processing.selection.reports.reported import Reports
from hltnode.processing.selection.run_conditions import RunConditions
from hltnode.processing.selection.trigger_chain import Constants, TriggerChain
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.raw_data.raw_bank import RawBank

EVENTS_PER_MEP = 16
"""Also the sub-slices of a time slice without its margins."""
LIMITS = BatchLimits(events=128, input_bytes=16 << 20)


@dataclass(frozen=True, slots=True)
class Asked:
    """Batch data for lines: their columns, the numbers that identify an event for scalers, parts of objects."""

    columns: Sequence[Column]
    words: Sequence[Node]
    reports: Reports


@dataclass(frozen=True, eq=False)
class DecidedEvents:
    """The events of a batch, valid until the next batch is requested. Margins of time slices are not among them.

    events: with all banks, also those that the sequence does not read. fired: bool[events, lines], the
    decisions of the configuration. places: i64[events], the places of the events in the batch of the workspace, which
    has n_computed events.
    """

    events: EventTable
    fired: Bools
    workspace: Workspace
    asked: Asked
    passed: Bools
    """bool[events, prefilters]: the events that pass each prefilter of the configuration."""
    places: NDArray[np.int64]
    n_computed: int

    @cached_property
    def _columns(self) -> Columns:
        return {column: self.workspace.fetch(column.name) for column in self.asked.columns}

    @cached_property
    def _evaluator(self) -> Evaluator:
        return Evaluator(self._columns, self.n_computed)

    @cached_property
    def _words(self) -> list[NDArray[np.uint32]]:
        return [self._evaluator.numbers(word) for word in self.asked.words]

    def passes_scalers(self, line: Line) -> Bools:
        """bool[events]: prescale and postscale of one of the lines that the pass was made for."""
        return self._passes_scalers(line)[self.places]

    def _passes_scalers(self, line: Line) -> Bools:
        record = line.record()
        return passes(record["prescale"], self._words) & passes(record["postscale"], self._words)

    def decisions(self, lines: Sequence[Line]) -> Bools:
        """bool[events, lines]: decisions of some of the lines of the pass."""
        found = np.zeros((self.n_computed, len(lines)), np.bool_)
        for i, line in enumerate(lines):
            found[:, i] = self._evaluator.decide(line) & self._passes_scalers(line)
        return found[self.places]

    def candidate_values(
        self, line: Line, roots: Sequence[Node], condition: Node
    ) -> tuple[NDArray[np.int64], list[NDArray[Any]]]:
        """Some values of the candidates of one of these lines that satisfy a condition, and the event of each.

        roots, condition: made of columns that the lines of the pass read. A value that is true or false is bool.
        """
        event, values = self._evaluator.values_of(line.variable, roots, condition)
        own = np.full(self.n_computed, -1)
        own[self.places] = np.arange(len(self.places))
        kept = own[event] >= 0
        return own[event[kept]], [value[kept] for value in values]

    def candidates(self, line: Line) -> tuple[Candidates, Constituents]:
        """The candidates of one of these lines before scalers, and their constituents.

        Raises ValueError for a line that selects whole events, and for sub-slices of time slices.
        """
        if self.n_computed > len(self.events):
            raise ValueError(f"line {line.name}: candidates of time slices are windows, which belong to no event")
        found = candidates_of(line, self._evaluator)
        return found, constituents(found, self.asked.reports, self._columns, len(self.events))


def passed_prefilters(names: Sequence[str], counts: Mapping[str, NDArray[np.uint32]], n_events: int) -> Bools:
    """bool[events, prefilters]: the events that pass prefilters, from the counts of a batch. names: `result_name`."""
    return np.array([counts[name] != 0 for name in names], np.bool_).reshape(len(names), n_events).T


class DecidingPass:
    """Runs samples through the sequence and the lines of a trigger configuration.

    lines: lines that DecidedEvents can evaluate besides the configuration. retain: columns that the workspaces keep.
    conditions: folder with the conditions of each run; None: those of the trigger configuration.

    Raises TriggerConfigError for lines that the sequence cannot run, BackendError if memory is short.
    """

    def __init__(
        self,
        chain: TriggerChain,
        trigger: TriggerConfig,
        backend: Backend,
        geometry: Constants,
        *,
        lines: Sequence[Line] = (),
        retain: Sequence[str] = (),
        encoding: str = AUTO,
        conditions: Path | None = None,
    ) -> None:
        check_encoding(chain.readout, encoding)
        self._encoding = encoding
        reports = chain.with_lines(trigger, with_lists=False).reports
        words = tuple(word.node for word in chain.event_words)
        columns = (*columns_of_candidates(lines, reports), *columns_of(words)) if lines else ()
        self._prefilters = tuple(prefilter.result_name for prefilter in trigger.prefilters)
        self._asked = Asked(tuple(dict.fromkeys(columns)), words, reports)
        kept = (*retain, *(column.name for column in self._asked.columns))
        self.engine = chain.create_engine(backend, geometry, trigger, LIMITS, retain=kept, with_lists=False)
        self.conditions = RunConditions.load(chain, geometry, trigger, conditions)
        """The trigger configurations of the runs with their conditions."""
        self._runner = OfflineRunner(self.engine)

    def run(self, events: Iterable[EventTable | Sequence[RawBank]]) -> Iterator[DecidedEvents]:
        """Decide on events, which come in tables or one by one, a batch at a time.

        Raises BackendError, ConditionsError for a run without conditions, and ProtocolError for damaged banks.
        """
        for of_run in self.conditions.in_runs(self.engine, events):
            yield from self._run(of_run)

    def _run(self, events: Iterable[EventTable | Sequence[RawBank]]) -> Iterator[DecidedEvents]:
        n_lines = len(self.engine.lines)
        for batch in self._runner.run(self._meps(events)):
            words = np.ascontiguousarray(batch.workspace.output.lines).view(np.uint8)
            fired = np.unpackbits(words, axis=1, count=n_lines, bitorder="little").astype(np.bool_)
            of_batch = EventTable.joined([mep.events for mep in batch.meps])
            n = len(of_batch)
            passed = passed_prefilters(self._prefilters, batch.workspace.output.counts, n)
            places = self._without_margins([mep.n_events for mep in batch.meps])
            own = of_batch if len(places) == n else of_batch.select(places)
            yield DecidedEvents(own, fired[places], batch.workspace, self._asked, passed[places], places, n)

    def _meps(self, events: Iterable[EventTable | Sequence[RawBank]]) -> Iterator[EncodedMep]:
        """The events as MEPs; sub-slices as time slices, between empty margins at the ends of the stream."""
        chain = self.engine.chain
        if chain.streaming is None:
            return encode_meps(chain, events, EVENTS_PER_MEP, self._encoding)
        between = between_empty_margins(chain.readout, chain.streaming, events)
        return encode_slices(chain, between, EVENTS_PER_MEP, self._encoding)

    def _without_margins(self, sizes: Sequence[int]) -> NDArray[np.int64]:
        """The places in a batch of the events that count, for MEPs of some numbers of events."""
        streaming = self.engine.chain.streaming
        place = np.concatenate([np.arange(size) for size in sizes])
        if streaming is None:
            return np.arange(len(place))
        size = np.repeat(sizes, sizes)
        return np.flatnonzero((place >= streaming.margin_before) & (place < size - streaming.margin_behind))
