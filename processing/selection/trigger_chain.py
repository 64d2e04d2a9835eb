"""A chain that a node can run: it decides by lines and constants that a trigger configuration may change."""

from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.algorithms.deliver_lists import DELIVERING, deliver_lists
from hltnode.processing.framework.backends.interface import Backend
from hltnode.processing.framework.batch import BATCH_INPUTS
from hltnode.processing.framework.chain import Chain
from hltnode.processing.framework.channel_groups import CountedChannels
from hltnode.processing.framework.collections import Bound, Column, DeclarationError
from hltnode.processing.framework.declaration import Algorithm, AlgorithmSequence
from hltnode.processing.framework.engine import Engine
from hltnode.processing.framework.entry_points import entry_point, load_entry_point
from hltnode.processing.framework.event_summary import EventSummary
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.histograms import n_counts
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.memory_plan import Retain
from hltnode.processing.framework.output_lists import OutputList
from hltnode.processing.selection.available_columns import columns_of, missing_columns, reader_of
from hltnode.processing.selection.configuration.conditions import (
    AnyCondition,
    check_conditions,
    measured_quantities,
    with_conditions,
)
from hltnode.processing.selection.configuration.menu import Menu, NamedMenu
from hltnode.processing.selection.configuration.tck import TCK_SUFFIX, TckDocument
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.errors import HistogramError, LineError, TriggerConfigError
from hltnode.processing.selection.event_rate import EventRate
from hltnode.processing.selection.expressions.canonical import Reader
from hltnode.processing.selection.expressions.expression import Expression
from hltnode.processing.selection.expressions.nodes import models_of
from hltnode.processing.selection.lines.composite import Combination, combinations_of
from hltnode.processing.selection.lines.decisions import accepted, line_table, lines, unknown_selections
from hltnode.processing.selection.lines.histogram import Histogram, RecordedHistogram
from hltnode.processing.selection.lines.inputs import Input
from hltnode.processing.selection.lines.line import Line
from hltnode.processing.selection.make_composite import make_composite
from hltnode.processing.selection.prefilter_events import SkipPoints, Stages, with_prefilters
from hltnode.processing.selection.reports.composites import counts_of_composites, reports_of_composites
from hltnode.processing.selection.reports.reported import Reported, Reports, reports_of
from hltnode.processing.selection.reports.routing import EVERY_LINE, LUMI_BIT, RoutingRules, routing_of_lines
from hltnode.processing.selection.reports.selected import HEADER_WORDS, SELECTED_WORDS, selected_list
from hltnode.processing.selection.select_lines import select_lines
from hltnode.protocol.raw_data.raw_bank import RawBank

T = TypeVar("T")
MAX_REPORT_WORDS = 1 << 16
"""Numbers of objects and candidates have 16 bits."""
ENTRY_POINTS = "hltnode.chains"
"""Entry point group of installed packages that offer chains."""

Constants = Mapping[str, NDArray[np.uint8]]
"""Content of constant columns by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence:
    """One sequence of a chain: its algorithms, and the parts of a Chain that depend on them.

    skip_points: where prefilters can end the reconstruction of an event.
    """

    algorithms: AlgorithmSequence
    subdetectors: frozenset[int]
    counts: Mapping[str, Column]
    size: str = ""
    summary: EventSummary | None = None
    lists: tuple[OutputList, ...] = ()
    skip_points: SkipPoints = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerChain(Chain):
    """A chain with selection lines. Its sequences make the inputs of lines; an engine appends the lines.

    event_words: numbers that identify an event for scalers.
    sequences: the selectable sequences by name; one of them runs (`with_sequence`).
    default_sequence: name of the sequence that runs by default; empty if there is no choice.
    menu: its line types and default lines.
    geometry: readers of the constant columns of the detector by name, from a folder of files, or built-in values for
    None. They raise ValueError, which names the file.
    conditions: numbers of these columns that a configuration may set.
    routing: routing bits of lines.
    histograms: histograms that are filled with any lines, if the sequence makes their quantities.
    reported: report contents of selected objects, parts before their wholes.
    report_words: most words of the selected objects of an accepted event (reports/selected.py); 0: none are written. A
    chain without `reported` writes none.
    channels: groups of channels of a detector whose hits histograms count; None: none are compared.
    inputs: inputs of lines by the names that line files import.
    display: the module whose `picture_maker` draws events for the status page, empty if there is none. It may be in a
    layer above the chain, which does not import it.
    usual_fields: fields of tuples and arrays for which none are chosen (studies/fields.py).
    largest_event: bytes of the MFPs of the largest event that the commands on files must take. It may depend on the
    constants of the sequence.
    former_names: names of this chain in TCK documents of earlier versions.
    skip_points: where prefilters of lines can end the reconstruction of an event (prefilter_events.py).
    event_rate: rate of the events of its input, for rates of lines; 1 kHz if it is not known.

    Raises DeclarationError as Chain does, for `report_words` without room for their header, and for a list with the
    name of an input.
    """

    event_words: tuple[Expression, ...]
    sequences: Mapping[str, Sequence] = field(default_factory=dict)
    default_sequence: str = ""
    menu: Menu
    geometry: Mapping[str, Callable[[Path | None], NDArray[np.uint8]]] = field(default_factory=dict)
    conditions: tuple[AnyCondition, ...] = ()
    routing: RoutingRules = field(default_factory=lambda: EVERY_LINE)
    histograms: tuple[Histogram, ...] = ()
    channels: Callable[[Constants], tuple[CountedChannels, ...]] | None = None
    reported: tuple[Reported, ...] = ()
    report_words: int = SELECTED_WORDS
    inputs: Mapping[str, Input] = field(default_factory=dict)
    display: str = ""
    usual_fields: tuple[str, ...] = ("event.*", "decisions.accepted")
    largest_event: Bound = lambda _: 0
    former_names: tuple[str, ...] = ()
    skip_points: SkipPoints = ()
    event_rate: EventRate = EventRate()  # noqa: RUF009 - it is frozen

    def __post_init__(self) -> None:
        super(TriggerChain, self).__post_init__()
        if self.report_words != 0 and not HEADER_WORDS < self.report_words <= MAX_REPORT_WORDS:
            raise DeclarationError(
                f"chain {self.name}: report_words = {self.report_words}, expected 0 or {HEADER_WORDS + 1} to "
                f"{MAX_REPORT_WORDS}"
            )
        for each in self.lists:
            if each.name in self.inputs:
                raise DeclarationError(f"chain {self.name}: a list and an input have the name {each.name}")

    @property
    def algorithms(self) -> tuple[Algorithm, ...]:
        """Every algorithm of the kernel library, those that deliver lists included."""
        return (*super(TriggerChain, self).algorithms, *DELIVERING)

    @classmethod
    def offering(cls, sequences: Mapping[str, Sequence], default_sequence: str, **fields: Any) -> Self:
        """A chain of several sequences with their kernels in one library."""
        default = sequences[default_sequence]
        return cls(
            sequence=default.algorithms,
            subdetectors=default.subdetectors,
            counts=default.counts,
            size=default.size,
            summary=default.summary,
            lists=default.lists,
            skip_points=default.skip_points,
            sequences=sequences,
            default_sequence=default_sequence,
            more_algorithms=tuple(algorithm for other in sequences.values() for algorithm in other.algorithms),
            **fields,
        )

    def picture_maker(self, geometry: Constants, trigger: TriggerConfig) -> Callable[[SequenceOf[RawBank]], str]:
        """The function that draws the raw banks of an event as SVG, for a chain with `display`. Raises BackendError."""
        made: Callable[[SequenceOf[RawBank]], str]
        made = import_module(self.display).picture_maker(self, geometry, trigger)
        return made

    def with_sequence(self, name: str | None) -> Self:
        """The chain with one of its sequences; None: the default. Raises TriggerConfigError."""
        if name is None:
            return self
        if name not in self.sequences:
            raise TriggerConfigError(
                f"sequence.name: chain {self.name} has no sequence {name!r}; there are "
                f"{', '.join(self.sequences) or 'none to choose from'}"
            )
        chosen = self.sequences[name]
        return replace(
            self,
            sequence=chosen.algorithms,
            subdetectors=chosen.subdetectors,
            counts=chosen.counts,
            size=chosen.size,
            summary=chosen.summary,
            lists=chosen.lists,
            skip_points=chosen.skip_points,
        )

    def limits_for_files(self, limits: BatchLimits, trigger: TriggerConfig) -> BatchLimits:
        """The limits of a command on files, raised so that the largest event of the chain fits in a batch.

        Raises TriggerConfigError for constants that the sequence does not have.
        """
        constants = constants_of(trigger.configure(self.with_sequence(trigger.sequence).sequence))
        largest = self.largest_event(replace(limits, constants=constants))
        return replace(limits, input_bytes=max(limits.input_bytes, largest))

    @property
    def reports(self) -> Reports:
        """The report contents that the sequence can make, by collection, composites included."""
        made = reports_of_composites(combinations_of(self.sequence.columns))
        return reports_of((*self.reported, *made), (*BATCH_INPUTS, *self.sequence.columns))

    def load_geometry(self, directory: Path | None) -> Constants:
        """The detector constants that the sequence reads, from a folder of files, or built-in values for None.

        Raises ValueError, which names the file.
        """
        if directory is not None and not self.geometry:
            raise ValueError(f"{directory}: chain {self.name} has no geometry")
        needed = {column.name for column in self.sequence.columns}
        return {name: read(directory) for name, read in self.geometry.items() if name in needed}

    def with_conditions(self, geometry: Constants, trigger: TriggerConfig) -> Constants:
        """The detector constants with the conditions of a configuration, such as the beam position."""
        return with_conditions(geometry, trigger.conditions, self.conditions)

    def load_trigger(self, path: Path | None, sequence: str | None = None) -> TriggerConfig:
        """The trigger configuration of a file (TOML, or a TCK document with the suffix .json), or the built-in one.

        sequence: name of the sequence to run instead of the configured one.

        Raises TriggerConfigError.
        """
        if path is None:
            trigger = _default_trigger(_Same(self.menu), sequence)
        elif path.suffix == TCK_SUFFIX:
            trigger = self.trigger_of(TckDocument.load(path))
            trigger = trigger if sequence is None else replace(trigger, sequence=sequence)
        else:
            trigger = TriggerConfig.load(path, self.menu, sequence)
        try:
            self.with_lines(trigger)
        except TriggerConfigError as error:
            raise type(error)(str(error) if path is None else f"{path}: {error}") from error
        return trigger

    def trigger_of(self, document: TckDocument) -> TriggerConfig:
        """The trigger configuration that a document describes; it has the same TCK. Raises TriggerConfigError."""
        if self.renamed(document).chain != self.name:
            raise TriggerConfigError(f"TCK 0x{document.tck:08X} belongs to chain {document.chain!r}, not {self.name!r}")
        sequence = self.with_sequence(document.sequence or None).sequence
        reader = Reader((*BATCH_INPUTS, *sequence.columns))
        return TriggerConfig.from_content(document.content, sequence, document.sequence or None, reader)

    def renamed(self, document: TckDocument) -> TckDocument:
        """A document with the present name of this chain if it has a former one; its TCK is the same."""
        return replace(document, chain=self.name) if document.chain in self.former_names else document

    def document(self, trigger: TriggerConfig) -> TckDocument:
        """The document of a trigger configuration. Raises TriggerConfigError."""
        name = trigger.sequence or self.default_sequence
        chain = self.with_lines(trigger)
        counters = () if chain.summary is None else chain.summary.counters
        content = trigger.content(self.with_sequence(name or None).sequence)
        return TckDocument(self.name, name, tuple(chain.counts), content, counters)

    def not_available(self, trigger: TriggerConfig) -> dict[str, str]:
        """Lines of the menu that the sequence of a configuration cannot run, with the reason."""
        menu: Menu | NamedMenu = self.menu.others.get(trigger.menu or "", self.menu)
        chain = self.with_sequence(trigger.sequence)
        known = self.menu.prefilters_by_name
        usual = {line.name for line in menu.lines}
        runs = {line.name for line in menu.of(trigger.sequence)}
        left_out = {
            line.name: line
            for lines in (*menu.lines_of.values(), menu.lines)
            for line in lines
            if line.name not in runs
        }
        have = columns_of(chain.sequence)
        reasons = {name: missing_columns(line.prefiltered_line(known).columns, have) for name, line in left_out.items()}
        return {
            **{
                name: f"reads {text}" if text else "has no place in its menu"
                for name, text in reasons.items()
                if text or name in usual
            },
            **menu.not_available,
        }

    def check_lists(self, names: Collection[str]) -> None:
        """Raises ValueError for names that are no output lists of this chain."""
        have = [each.name for each in self.lists]
        if unknown := sorted(set(names) - set(have)):
            raise ValueError(
                f"chain {self.name} has no list {', '.join(map(repr, unknown))}; there are {', '.join(have) or 'none'}"
            )

    def with_lines(self, trigger: TriggerConfig, *, with_lists: bool | Collection[str] = True) -> Self:
        """The chain that runs a configuration: its sequence with its constants, its lines, the delivery of its lists.

        with_lists: whether the lists that the chain declares are delivered, or the names of those that are. The windows
        of a streaming chain always are.

        Raises TriggerConfigError for constants that the sequence does not have, for lines that read columns that it
        does not make, and for conditions that the chain does not have or that are out of range.
        """
        wanted = with_lists if isinstance(with_lists, bool) else frozenset(with_lists)
        made: Self = _with_lines(_Same(self), _Same(trigger), wanted)
        return made

    def _with_lines(self, trigger: TriggerConfig, with_lists: bool | frozenset[str]) -> Self:
        chain = self.with_sequence(trigger.sequence)
        check_conditions(trigger.conditions, self.conditions, chain.sequence.columns)
        name = f"sequence {trigger.sequence}" if trigger.sequence else "the default sequence"
        have = columns_of(chain.sequence)
        for line in trigger.lines:
            if missing := missing_columns(line.columns, have):
                raise LineError(
                    f"line {line.name}: {reader_of(line.columns, have)} reads {missing}, which {name} does not make"
                )
        filled = self.filled_histograms(trigger)
        for histogram in filled:
            if missing := missing_columns(histogram.columns, have):
                raise HistogramError(
                    f"histogram {histogram.shape.name}: {reader_of(histogram.columns, have)} reads {missing}, which "
                    f"{name} does not make"
                )
        composites = _composites(trigger.lines, filled)
        chain = replace(
            chain,
            sequence=AlgorithmSequence((*trigger.configure(chain.sequence), *map(make_composite, composites))),
            counts={**chain.counts, **counts_of_composites(composites)},
        )
        passed = {prefilter.result_name: prefilter.passed for prefilter in trigger.prefilters}
        report_words = chain.report_words if chain.reports else 0
        decide = select_lines(trigger.lines, chain.event_words, chain.reports, filled, report_words)
        selected = selected_list(report_words) if report_words else None
        wanted = {each.name for each in chain.lists} if with_lists is True else set(with_lists or ())
        wanted |= {self.windows}
        lists = tuple(each for each in chain.lists if each.name in wanted)
        delivered = deliver_lists((*(() if selected is None else (selected,)), *lists))
        streaming = chain.streaming
        if streaming is not None:
            values: dict[str, set[int]] = {}
            for key, value in constants_of(chain.sequence).items():
                values.setdefault(key.rpartition(".")[2], set()).add(value)
            streaming = streaming.configured(values)
        prefiltered = chain._with_prefilters(trigger)
        algorithms = (*prefiltered, decide, *delivered)
        return replace(
            chain,
            sequence=AlgorithmSequence(algorithms),
            streaming=streaming,
            accepted=accepted,
            lines=lines,
            selected=selected,
            lists=lists,
            counts={**chain.counts, **passed, "unknown_selections": unknown_selections},
        )

    def _with_prefilters(self, trigger: TriggerConfig) -> SequenceOf[Algorithm]:
        """The algorithms of this chain's configured sequence, prefilters included.

        Lines that give an event a luminosity summary need all counts of the chain.
        """
        cuts = self.flag_table.cuts
        early = int(EventFlag.ODIN_ERROR | EventFlag.INCOMPLETE) | cuts
        stages = Stages(self.sequence, self.skip_points, early)
        gives_lumi = routing_of_lines(self.routing, trigger.line_names)[:, 0] >> LUMI_BIT & 1 != 0
        summary = () if self.summary is None else (self.summary.column,)
        counted = {
            name: (*self.counts.values(), *summary)
            for name, gives in zip(trigger.line_names, gives_lumi, strict=True)
            if gives
        }
        return with_prefilters(stages, trigger.lines, counted, cuts)

    def filled_histograms(self, trigger: TriggerConfig) -> tuple[RecordedHistogram, ...]:
        """The histograms of a configuration: those of the chain if the sequence makes their quantities, then those of
        the configuration and of its lines."""
        have = columns_of(self.with_sequence(trigger.sequence).sequence)
        declared = (histogram.recorded() for histogram in self.histograms)
        return (
            *(histogram for histogram in declared if not missing_columns(histogram.columns, have)),
            *trigger.histograms,
            *(histogram for line in trigger.lines for histogram in line.recorded_histograms),
        )

    def create_engine(
        self,
        backend: Backend,
        geometry: Constants,
        trigger: TriggerConfig,
        limits: BatchLimits,
        *,
        retain: Retain = (),
        with_lists: bool | Collection[str] = True,
    ) -> Engine:
        """The engine that runs this chain with a geometry and a trigger configuration, which chooses the sequence.

        The numbers of lines and of counters of histograms in `limits`, and the constants, become those of the
        configuration.

        retain: columns that Workspace.fetch finds after a batch. with_lists: whether output lists are delivered, or
        the names of those that are.

        Raises TriggerConfigError for constants that the sequence does not have, BackendError if memory is short.
        """
        chain = self.with_sequence(trigger.sequence)
        constants = self.with_conditions(geometry, trigger)
        filled = self.filled_histograms(trigger)
        shapes = [histogram.shape for histogram in filled]
        models = models_of(
            (
                *(line.condition for line in trigger.lines),
                *(node for histogram in filled for node in (histogram.condition, histogram.value)),
                *(root for composite in _composites(trigger.lines, filled) for root in composite.roots),
            )
        )
        tables = {model.column.name: model.words.view(np.uint8) for model in models}
        return Engine(
            backend,
            self.with_lines(trigger, with_lists=with_lists),
            {**constants, **tables, line_table.name: trigger.line_table().view(np.uint8)},
            replace(
                limits,
                lines=len(trigger.lines),
                histogram_counts=n_counts(shapes),
                constants=constants_of(trigger.configure(chain.sequence)),
            ),
            line_names=trigger.line_names,
            line_routing=routing_of_lines(self.routing, trigger.line_names),
            histograms=shapes,
            measured=measured_quantities(constants, self.conditions, {shape.name for shape in shapes}),
            channels=partial(self._counted_channels, constants, frozenset(shape.name for shape in shapes)),
            tck=trigger.tck(chain.sequence),
            retain=retain,
        )

    def _counted_channels(
        self, constants: Constants, histograms: frozenset[str], changed: Constants
    ) -> tuple[CountedChannels, ...]:
        made = () if self.channels is None else self.channels({**constants, **changed})
        return tuple(each for each in made if each.histogram in histograms)


@dataclass(frozen=True, slots=True, eq=False)
class _Same(Generic[T]):
    """A key that is equal for the same object only, which it keeps alive."""

    value: T

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


# One command asks several times for the chain of its configuration, and composes it in a quarter of a second.
@lru_cache(maxsize=8)
def _with_lines(chain: _Same[Any], trigger: _Same[TriggerConfig], with_lists: bool | frozenset[str]) -> Any:
    return chain.value._with_lines(trigger.value, with_lists)


@lru_cache(maxsize=8)
def _default_trigger(menu: _Same[Menu], sequence: str | None) -> TriggerConfig:
    return TriggerConfig.default(menu.value, sequence)


def constants_of(sequence: AlgorithmSequence) -> dict[str, int]:
    """The integer constants of a sequence by the names of algorithm and constant, with a dot between them."""
    return {
        f"{algorithm.name}.{constant.name}": constant.value
        for algorithm in sequence
        for constant in algorithm.constants
        if isinstance(constant.value, int)
    }


def _composites(lines: Iterable[Line], histograms: Iterable[RecordedHistogram]) -> tuple[Combination, ...]:
    """The composites of lines and histograms, parts before their wholes."""
    of_lines = (column for line in lines for column in line.columns)
    of_histograms = (column for histogram in histograms for column in histogram.columns)
    return combinations_of((*of_lines, *of_histograms))


def installed_chain(name: str) -> TriggerChain:
    """The chain that an installed package offers under a name, which is the chain's own name.

    Raises ValueError, which names the installed chains, the packages that offer the same name, or the fault of this
    chain.
    """
    offered = entry_point(ENTRY_POINTS, name, "chain")
    chain = load_entry_point(offered, "chain")
    if not isinstance(chain, TriggerChain):
        raise ValueError(f"chain {name!r}: {offered.value} is not a TriggerChain")
    if chain.name != name:
        raise ValueError(f"chain {name!r}: {offered.value} has the name {chain.name!r}, expected the same name")
    return chain
