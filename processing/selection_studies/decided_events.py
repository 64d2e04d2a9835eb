"""One pass of a sample through an engine. Lines with other cuts are evaluated on what it has made, without another."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.interface import Backend
from hltnode.processing.framework.batch import batch_header
from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.engine import Workspace
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.memory_plan import Retain
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_meps
from hltnode.processing.framework.readout import AUTO, check_encoding
from hltnode.processing.selection.decisions import line_table
from hltnode.processing.selection.evaluate import Bools, Evaluator, passes
from hltnode.processing.selection.expression import Node
from hltnode.processing.selection.line import Line
from hltnode.processing.selection.select_lines import select_lines
from hltnode.processing.selection.trigger_chain import Constants, TriggerChain
from hltnode.processing.selection.trigger_config import TriggerConfig
from hltnode.protocol.raw_data.raw_bank import RawBank

EVENTS_PER_MEP = 16
LIMITS = BatchLimits(events=128, input_bytes=16 << 20)


@dataclass(frozen=True, eq=False)
class DecidedEvents:
    """The events of a batch, valid until the next batch is asked for.

    banks: all of each event, also those that the sequence does not read. fired: bool[events, lines], the decisions of
    the configuration. columns: what lines read; words: by what scalers know an event.
    """

    banks: Sequence[Sequence[RawBank]]
    fired: Bools
    workspace: Workspace
    columns: Sequence[Column]
    words: Sequence[Node]

    @cached_property
    def evaluator(self) -> Evaluator:
        """Lines on what the sequence has made of the events."""
        return Evaluator({column: self.workspace.fetch(column.name) for column in self.columns}, len(self.banks))

    @cached_property
    def _event_words(self) -> list[NDArray[np.uint32]]:
        return [self.evaluator.numbers(word) for word in self.words]

    def decisions(self, lines: Sequence[Line]) -> Bools:
        """bool[events, lines] of some of the lines that the pass was made for."""
        found = np.zeros((len(self.banks), len(lines)), np.bool_)
        for i, line in enumerate(lines):
            record = line.record()
            scaled = passes(record["prescale"], self._event_words) & passes(record["postscale"], self._event_words)
            found[:, i] = self.evaluator.decide(line) & scaled
        return found


class DecidingPass:
    """Runs samples through the sequence and the lines of a trigger configuration.

    lines: what DecidedEvents can be asked for, besides the decisions of the configuration. retain: columns that the
    workspaces keep.

    Raises TriggerConfigError for lines that the sequence cannot run, BackendError where memory is short.
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
    ) -> None:
        check_encoding(chain.readout, encoding)
        self._encoding = encoding
        self._words = tuple(word.node for word in chain.event_words)
        self._columns: tuple[Column, ...] = ()
        if lines:
            reads = select_lines(lines, chain.event_words).all_reads
            self._columns = tuple(column for column in reads if column not in (batch_header, line_table))
        kept: Retain = (*retain, *(column.name for column in self._columns))
        self.engine = chain.create_engine(backend, geometry, trigger, LIMITS, retain=kept)
        self._runner = OfflineRunner(self.engine)

    def run(self, events: Iterable[Sequence[RawBank]]) -> Iterator[DecidedEvents]:
        """Decide on events, a batch at a time. Raises BackendError, ProtocolError for banks that do not fit together."""
        n_lines = len(self.engine.lines)
        for batch in self._runner.run(encode_meps(self.engine.chain, events, EVENTS_PER_MEP, self._encoding)):
            words = np.ascontiguousarray(batch.workspace.output.lines).view(np.uint8)
            fired = np.unpackbits(words, axis=1, count=n_lines, bitorder="little").astype(np.bool_)
            banks = [event for mep in batch.meps for event in mep.events]
            yield DecidedEvents(banks, fired, batch.workspace, self._columns, self._words)
