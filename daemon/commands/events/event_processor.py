"""Runs events of files through the pipeline of a node, without sockets: the work of a process on its part of a
sample."""

import hashlib
import io
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain as chained
from itertools import repeat
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.commands.events.accepted_events import AcceptedEvents
from hltnode.daemon.commands.events.sample_results import PartResult
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.chain import Chain
from hltnode.processing.framework.flags import FlagTable
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import (
    CompletedBatch,
    EncodedMep,
    OfflineRunner,
    bounded_groups,
    encode_meps,
)
from hltnode.processing.framework.output_lists import result_name
from hltnode.processing.framework.readout import check_encoding
from hltnode.processing.framework.workspace import BatchOutput
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.run_conditions import RunConditions
from hltnode.processing.selection.studies.fields import FieldReader, FieldValues, joined
from hltnode.processing.selection.studies.rates import RateCounts
from hltnode.processing.selection.trigger_chain import TriggerChain, installed_chain
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.raw_data.bank_types import LIST_TYPES, BankType
from hltnode.protocol.raw_data.odin import decode_odin

EVENTS_PER_MEP = 64
CHUNK_MEPS = 64
"""MEPs encoded before the time measurement starts."""
MAX_CHUNK_BYTES = 256 << 20
"""Memory of these MEPs with their events."""

LIMITS = BatchLimits(events=128, input_bytes=4 << 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The settings of an event processor. Every process with access to the files creates the same processor."""

    chain: str
    trigger: Path | None
    sequence: str | None
    geometry: Path | None
    backend: str
    threads: int
    device: int
    encoding: str
    conditions: Path | None = None
    """Folder with the conditions of each run; None: those of the trigger configuration."""
    with_fields: bool = False
    """Whether the values of fields are read."""
    fields: tuple[str, ...] | None = None
    """The fields; None: the usual ones of the chain."""
    lists: tuple[str, ...] = ()
    """The output lists that accepted events carry, by name."""

    def load(self) -> tuple[TriggerChain, TriggerConfig]:
        """Chain and trigger configuration. Raises ValueError, which names the file and the error."""
        chain = installed_chain(self.chain)
        check_encoding(chain.readout, self.encoding)
        trigger = chain.load_trigger(self.trigger, self.sequence)
        chain.with_sequence(trigger.sequence).check_lists(self.lists)
        if len(set(self.lists)) < len(self.lists) or len(self.lists) > len(LIST_TYPES):
            raise ValueError(
                f"expected at most {len(LIST_TYPES)} output lists, each once, instead of {', '.join(self.lists)}"
            )
        return chain, trigger


class EventProcessor:
    """An engine of a setup, and the pipeline that runs events through it. For use by one thread.

    Raises ValueError for an invalid setup, and BackendError.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        chain, configuration = setup.load()
        geometry = chain.with_sequence(configuration.sequence).load_geometry(setup.geometry)
        self.geometry_hash = hash_of(geometry)
        self.fields = FieldReader(chain, configuration, setup.fields) if setup.with_fields else None
        self.engine = chain.create_engine(
            create_backend(setup.backend, chain.kernels, threads=setup.threads, device=setup.device),
            geometry,
            configuration,
            chain.limits_for_files(LIMITS, configuration),
            retain=() if self.fields is None else self.fields.columns,
        )
        self.conditions = RunConditions.load(chain, geometry, configuration, setup.conditions)
        self._runner = OfflineRunner(self.engine)
        self._warm = False

    def process(
        self,
        events: Iterable[EventTable],
        *,
        first_event_id: int = 0,
        times: int = 1,
        accepted: bool = False,
        processed: Callable[[int], None] = lambda _: None,
    ) -> Iterator[PartResult]:
        """Process consecutive events, in parts of bounded memory.

        first_event_id: index of the first event in the sample, a multiple of EVENTS_PER_MEP; times: number of runs
        through the pipeline, which count once in all results except `events`; accepted: if true, encode the accepted
        events; processed: called with the number of events processed since the last call.

        `seconds` is the time in the pipeline. It excludes the reading of files and the first touch of memory, which a
        node does before it reports ready.
        """
        chain, encoding = self.engine.chain, self._setup.encoding
        for of_run in self.conditions.in_runs(self.engine, events):
            meps = encode_meps(chain, of_run, EVENTS_PER_MEP, encoding, LIMITS.input_bytes, first_event_id)
            for chunk in bounded_groups(meps, CHUNK_MEPS, attrgetter("held_bytes"), MAX_CHUNK_BYTES):
                first_event_id += EVENTS_PER_MEP * len(chunk)
                yield self._process_chunk(chunk, times, accepted, processed)

    def close(self) -> None:
        """Release the engine."""
        self.engine.close()

    def _process_chunk(
        self, chunk: list[EncodedMep], times: int, accepted: bool, processed: Callable[[int], None]
    ) -> PartResult:
        engine, runner = self.engine, self._runner
        again = _repeated(engine.chain, chunk, times - 1, self._setup.encoding)
        if not self._warm:
            runner.warm_up(chunk)
            self._warm = True
        runner.take_histogram_counts()
        begin = time.perf_counter()
        results: list[BatchOutput] = []
        fields: list[FieldValues] = []
        fields_seconds = 0.0
        for batch in runner.run(chunk):
            results.append(_copy(batch))
            if self.fields is not None:
                start = time.perf_counter()
                fields.append(self.fields.read(batch.workspace))
                fields_seconds += time.perf_counter() - start
        counted = runner.take_histogram_counts()
        events = sum(mep.n_events for mep in chunk)
        processed(events)
        for batch in runner.run(again):
            events += batch.workspace.n_events
            processed(batch.workspace.n_events)
        seconds = time.perf_counter() - begin
        rates = RateCounts(engine.lines, readout=engine.chain.readout)
        of_chunk = EventTable.joined([mep.events for mep in chunk])
        rates.add(of_chunk, np.concatenate([_fired(output.lines, len(engine.lines)) for output in results]))
        records = io.BytesIO()
        written = self._write_accepted(records, of_chunk, results) if accepted else None
        return PartResult(
            per_event=_per_event(of_chunk, results, engine.lines, engine.flags),
            objects={name: sum(int(output.counts[name].sum()) for output in results) for name in engine.collections},
            histogram_counts=counted,
            rates=rates,
            accepted=records.getvalue(),
            banks_left_out=0 if written is None else written.banks_left_out,
            reports_left_out=0 if written is None else written.reports_left_out,
            candidates_left_out=0 if written is None else written.candidates_left_out,
            events=events,
            seconds=seconds,
            backend=engine.backend.name,
            threads=engine.backend.threads,
            unknown_types=frozenset().union(*(mep.unknown_types for mep in chunk)),
            fields=joined(fields) if fields else None,
            fields_seconds=fields_seconds,
        )

    def _write_accepted(self, file: BinaryIO, events: EventTable, outputs: Sequence[BatchOutput]) -> AcceptedEvents:
        """Write the accepted events as MDF records."""
        written = AcceptedEvents(file, self.engine, self._setup.lists)
        at = 0
        for output in outputs:
            written.add(events[at : at + len(output.accepted)], output)
            at += len(output.accepted)
        return written


def hash_of(constants: Mapping[str, NDArray[np.uint8]]) -> str:
    """SHA-256 of the constants and their names."""
    found = hashlib.sha256()
    for name in sorted(constants):
        found.update(name.encode() + b"\0")
        found.update(constants[name].tobytes())
    return found.hexdigest()


def _repeated(chain: Chain, chunk: list[EncodedMep], times: int, encoding: str) -> Iterator[EncodedMep]:
    """The MEPs of a chunk, `times` times. A chunk smaller than a MEP is packed several times into one MEP."""
    events = EventTable.joined([mep.events for mep in chunk])
    packing = max(1, EVENTS_PER_MEP // len(events))
    if packing == 1 or times < packing:
        return chained.from_iterable(repeat(chunk, times))
    packed = list(encode_meps(chain, [events.repeated(packing)], EVENTS_PER_MEP, encoding, LIMITS.input_bytes))
    return chained.from_iterable(chained(repeat(packed, times // packing), repeat(chunk, times % packing)))


def _copy(batch: CompletedBatch) -> BatchOutput:
    """A copy of the results of a batch; the next batch overwrites the original."""
    return batch.workspace.output.copy()


def _per_event(
    events: EventTable, outputs: Sequence[BatchOutput], lines: Sequence[str], flag_table: FlagTable
) -> list[dict[str, Any]]:
    rows = chained.from_iterable(
        zip(
            zip(*(count.tolist() for count in output.counts.values()), strict=True),
            output.accepted.tolist(),
            _names_of_lines(output.lines, lines),
            output.flags.tolist(),
            strict=True,
        )
        for output in outputs
    )
    names = list(outputs[0].counts) if outputs else []
    lists = chained.from_iterable(_lists_of_events(output) for output in outputs)
    return [
        {
            **identity,
            **dict(zip(names, counts, strict=True)),
            **of_lists,
            "accepted": bool(accepted),
            "lines": fired,
            "flags": flag_table.names(flags),
        }
        for identity, (counts, accepted, fired, flags), of_lists in zip(_identities(events), rows, lists, strict=True)
    ]


def _lists_of_events(output: BatchOutput) -> Iterator[dict[str, Any]]:
    """For each event: the number of elements of each list, unless it is among the counts, and each value."""
    columns: dict[str, Iterable[Any]] = {}
    for name, content in output.lists.items():
        if name not in output.counts:
            columns[name] = content.counts.tolist()
        columns |= {
            result_name(name, value): (of.tolist() for of in content.of_events(value)) for value in content.values
        }
    if not columns:
        return iter([{} for _ in output.accepted])
    return (dict(zip(columns, of_event, strict=True)) for of_event in zip(*columns.values(), strict=True))


def _fired(words: NDArray[np.uint32], n_lines: int) -> NDArray[np.bool_]:
    """bool[events, lines]: the lines that selected each event; `words` is u32[events, words]."""
    return np.unpackbits(words.view(np.uint8), axis=1, count=n_lines, bitorder="little").view(np.bool_)


def _names_of_lines(words: NDArray[np.uint32], names: Sequence[str]) -> list[list[str]]:
    """The lines that selected each event; `words` is u32[events, words]."""
    found: list[list[str]] = [[] for _ in words]
    for event, line in np.argwhere(_fired(words, len(names))).tolist():
        found[event].append(names[line])
    return found


def _identities(events: EventTable) -> list[dict[str, int | None]]:
    """Run and event number from the first ODIN bank; None without a readable bank (the event is flagged)."""
    found: list[dict[str, int | None]] = []
    for banks in events.of_types([BankType.ODIN]):
        try:
            odin = decode_odin(banks[0]) if banks else None
        except ProtocolError:
            odin = None
        found.append({"run": None, "event": None} if odin is None else {"run": odin.run, "event": odin.event_id})
    return found
