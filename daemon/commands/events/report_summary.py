"""Summary of the trigger banks of a file: accepted events and selected objects by line."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hltnode.protocol.raw_data import lumi_summary, reports, selection_reports
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.lumi_summary import LumiSchema, decode_lumi_summary, lumi_key
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.reports import decode_dec_reports, decode_routing_bits
from hltnode.protocol.raw_data.selection_reports import ClassId, decode_sel_reports

if TYPE_CHECKING:
    from rich.console import Console

    from hltnode.processing.selection.configuration.tck import TckDocument

CLASS_NAMES = {int(class_id): class_id.name.lower() for class_id in ClassId}


@dataclass(slots=True)
class Decisions:
    """Summary of the events with one TCK and task."""

    events: int = 0
    n_lines: int = 0
    accepts: Counter[int] = field(default_factory=Counter)
    candidates: Counter[int] = field(default_factory=Counter)
    selected: defaultdict[int, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    """Selected objects by class, for each line."""


class ReportSummary:
    """Counts over the banks of the trigger. Banks of unknown versions are skipped.

    documents: trigger configurations with the names of lines and counters. find: finds the document of another TCK.
    built_in: further ones, of which each takes a second to make: they are taken one by one, as the events need them.
    """

    def __init__(
        self,
        documents: "Iterable[TckDocument]",
        find: "Callable[[int], TckDocument | None]",
        built_in: "Iterable[TckDocument]" = (),
    ) -> None:
        self._waiting = iter(built_in)
        self._documents: dict[int, TckDocument] = {}
        self._find = find
        self._schemas: dict[int, LumiSchema] = {}
        for document in documents:
            self._know(document)
        self._decisions: defaultdict[tuple[int, int], Decisions] = defaultdict(Decisions)
        self._of_event: Decisions | None = None
        """Summary of the current event; its decision report precedes its selection reports."""
        self._routing: Counter[int] = Counter()
        self._objects: Counter[int] = Counter()
        self._summaries: Counter[int] = Counter()
        self._counters: defaultdict[int, Counter[str]] = defaultdict(Counter)
        self._readers: dict[tuple[int, int], Callable[[RawBank], None]] = {
            (BankType.HLT_DEC_REPORTS, reports.DEC_REPORTS_VERSION): self._add_decisions,
            (BankType.HLT_ROUTING_BITS, reports.ROUTING_BITS_VERSION): self._add_routing_bits,
            (BankType.HLT_LUMI_SUMMARY, lumi_summary.LUMI_SUMMARY_VERSION): self._add_lumi_summary,
        }
        for version in selection_reports.READABLE_VERSIONS:
            self._readers[BankType.HLT_SEL_REPORTS, version] = self._add_objects

    @property
    def types(self) -> list[int]:
        """The types of the banks that `add` reads."""
        return sorted({bank_type for bank_type, _ in self._readers})

    def _know(self, document: "TckDocument") -> None:
        # Local import: only files with banks of the trigger need it, and it imports the selection.
        from hltnode.processing.selection.reports.lumi_schema import lumi_schema

        self._documents[document.tck] = document
        schema = lumi_schema(document.collections, document.counters)
        self._schemas[schema.key] = schema

    def _take_documents(self, is_found: Callable[[], bool]) -> None:
        """Take documents until one has what is searched, or all of them."""
        while not is_found() and (document := next(self._waiting, None)) is not None:
            if document.tck not in self._documents:
                self._know(document)

    def add(self, banks: Sequence[RawBank]) -> None:
        """Count the banks of one event; those of other types are skipped. Raises ProtocolError for a damaged bank."""
        self._of_event = None
        for bank in banks:
            read = self._readers.get((bank.type, bank.version))
            if read is not None:
                read(bank)

    def _add_decisions(self, bank: RawBank) -> None:
        report = decode_dec_reports(bank)
        key = report.tck, report.task_id
        if key not in self._decisions and report.tck not in self._documents:
            document = self._find(report.tck)
            if document is not None:
                self._know(document)
            self._take_documents(lambda: report.tck in self._documents)
        decisions = self._of_event = self._decisions[key]
        decisions.events += 1
        decisions.n_lines = max(decisions.n_lines, len(report.lines))
        for line in report.lines:
            if line.decision:
                decisions.accepts[line.decision_id] += 1
                decisions.candidates[line.decision_id] += line.candidates

    def _add_routing_bits(self, bank: RawBank) -> None:
        for i, word in enumerate(decode_routing_bits(bank)):
            self._routing.update(32 * i + bit for bit in range(32) if word >> bit & 1)

    def _add_objects(self, bank: RawBank) -> None:
        report = decode_sel_reports(bank)
        self._objects.update(reported.class_id for reported in report.objects)
        if self._of_event is not None:
            for line, objects in report.selections.items():
                self._of_event.selected[line].update(report.objects[i].class_id for i in objects)

    def _add_lumi_summary(self, bank: RawBank) -> None:
        key = lumi_key(bank)
        self._summaries[key] += 1
        self._take_documents(lambda: key in self._schemas)
        if key in self._schemas:
            self._counters[key].update(decode_lumi_summary(bank, self._schemas[key]))

    def result(self) -> dict[str, Any]:
        """The object `trigger` of `hltnode inspect`."""
        return {
            "decisions": [
                {
                    "tck": f"0x{tck:08X}",
                    "task": task,
                    "events": decisions.events,
                    "n_lines": decisions.n_lines,
                    "lines": [
                        {
                            "id": line,
                            "name": self._name(tck, line),
                            "events": n,
                            "candidates": decisions.candidates[line],
                            "selected": _by_name(decisions.selected[line]),
                        }
                        for line, n in sorted(decisions.accepts.items())
                    ],
                }
                for (tck, task), decisions in sorted(self._decisions.items())
            ],
            "routing_bits": {str(bit): n for bit, n in sorted(self._routing.items())},
            "selected": _by_name(self._objects),
            "lumi_summaries": [
                {
                    "key": f"0x{key:08X}",
                    "events": n,
                    "means": {name: total / n for name, total in self._counters[key].items()},
                }
                for key, n in sorted(self._summaries.items())
            ],
        }

    def _name(self, tck: int, decision_id: int) -> str | None:
        """The name of a line; None if the configuration is unknown."""
        names = self._documents[tck].line_names if tck in self._documents else ()
        return names[decision_id - 1] if 0 < decision_id <= len(names) else None


def _by_name(objects: Counter[int]) -> dict[str, int]:
    return {CLASS_NAMES.get(class_id, f"class {class_id}"): n for class_id, n in sorted(objects.items())}


def print_reports(result: dict[str, Any], console: "Console") -> None:
    """The object `trigger` as text; empty for a file without banks of the trigger."""
    from rich.table import Table

    for decisions in result["decisions"]:
        columns = ("id", "line", "events", "candidates", "selected")
        table = Table(*columns, title=f"TCK {decisions['tck']}, task {decisions['task']}")
        for line in decisions["lines"]:
            selected = ", ".join(f"{n} {name}" for name, n in line["selected"].items())
            table.add_row(str(line["id"]), line["name"] or "?", str(line["events"]), str(line["candidates"]), selected)
        console.print(f"{decisions['events']} events with decisions of {decisions['n_lines']} lines")
        console.print(table)
    for title, values in (("routing bits", result["routing_bits"]), ("selected", result["selected"])):
        if values:
            console.print(f"{title}: " + ", ".join(f"{name}: {n}" for name, n in values.items()))
    for summary in result["lumi_summaries"]:
        means = ", ".join(f"{name} {value:.2f}" for name, value in summary["means"].items()) or "unknown counters"
        console.print(f"{summary['events']} luminosity summaries, schema {summary['key']}: {means}")
