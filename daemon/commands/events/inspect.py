"""hltnode inspect: the content of an event file, or the memory plan of the sequence."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from hltnode.daemon.commands.common import (
    DEFAULT_CHAIN,
    ChainOption,
    JsonOption,
    console,
    end_with_damage,
    require_writable,
    user_errors,
    write_json,
)
from hltnode.daemon.commands.events.plan_report import plan_report, print_plan
from hltnode.daemon.commands.events.report_summary import ReportSummary, print_reports
from hltnode.daemon.commands.text_console import TextConsole
from hltnode.daemon.configuration.loading import load_config
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.node.sizing import batch_limits
from hltnode.processing.framework.event_files import DamageLog, EventFileError, read_events
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.readout import Readout, bank_type_name
from hltnode.processing.selection.configuration.tck import TckDocument
from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.processing.selection.studies.tck_documents import built_in_documents, document_beside
from hltnode.processing.selection.trigger_chain import TriggerChain, installed_chain
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.odin import decode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank


@dataclass(slots=True)
class FileSummary:
    """Counts over the events of a file; the readout gives the names of the banks."""

    readout: Readout
    reports: ReportSummary
    events: int = 0
    runs: set[int] = field(default_factory=set)
    first_event: int | None = None
    last_event: int | None = None
    banks: Counter[tuple[int, int]] = field(default_factory=Counter)
    nbytes: Counter[tuple[int, int]] = field(default_factory=Counter)

    def add(self, banks: Sequence[RawBank]) -> None:
        self.events += 1
        self.reports.add(banks)
        for bank in banks:
            key = (int(bank.type), bank.version)
            self.banks[key] += 1
            self.nbytes[key] += len(bank.payload)
            if bank.type == BankType.ODIN:
                odin = decode_odin(bank)
                self.runs.add(odin.run)
                if self.first_event is None or self.last_event is None:
                    self.first_event = self.last_event = odin.event_id
                self.first_event = min(self.first_event, odin.event_id)
                self.last_event = max(self.last_event, odin.event_id)

    def result(self, path: Path) -> dict[str, Any]:
        """The JSON object of `hltnode inspect`."""
        return {
            "file": str(path),
            "bytes": path.stat().st_size,
            "events": self.events,
            "runs": sorted(self.runs),
            "first_event": self.first_event,
            "last_event": self.last_event,
            "banks": [
                {
                    "type": bank_type,
                    "name": bank_type_name(self.readout, bank_type),
                    "version": version,
                    "banks_per_event": self.banks[bank_type, version] / self.events,
                    "bytes_per_event": self.nbytes[bank_type, version] / self.events,
                }
                for bank_type, version in sorted(self.banks)
            ],
            "trigger": self.reports.result(),
        }


def inspect(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="MDF or MEP file.")] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Print the memory plan of the sequence; takes no FILE.")] = False,
    slot_bytes: Annotated[
        int | None, typer.Option("--slot-bytes", min=4096, max=16 << 30, help="With --plan: input bytes of a batch.")
    ] = None,
    max_events: Annotated[
        int | None, typer.Option("--max-events", min=1, max=1 << 20, help="With --plan: events of a batch.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="With --plan: configuration of the node (TOML)."),
    ] = None,
    tck: Annotated[
        list[Path] | None,
        typer.Option(
            "--tck", metavar="FILE", help="Document of a trigger configuration with the names of lines; repeatable."
        ),
    ] = None,
    chain: ChainOption = DEFAULT_CHAIN,
    json: JsonOption = None,
) -> None:
    """Show the content of FILE: events, runs, banks, and the events accepted by each line.

    The command leaves out damaged records, names them at its end, and then ends with exit code 1.

    Names of lines come from built-in configurations, from --tck, or from the document (0x1234ABCD.json) that a node
    writes beside FILE.

    With --plan: show the memory of a slot, by algorithm and back end, for the default values of a node or for --config.

    Examples: hltnode inspect accepted_0001.mdf; hltnode inspect --plan --config node.toml
    """
    with user_errors():
        require_writable(json, reads=(file, config, *(tck or ())))
        if plan:
            if file is not None:
                raise ValueError("expected no FILE with --plan, which describes the sequence")
            node = load_config(config)
            of_node = installed_chain(node.trigger.chain)
            trigger = of_node.load_trigger(node.trigger.file)
            sequence = of_node.with_lines(trigger).sequence
            report = plan_report(sequence, _planned_limits(node, slot_bytes, max_events, len(trigger.lines)))
            write_json(json, report)
            print_plan(report, TextConsole(emoji=False, markup=False))
            return
        if file is None:
            raise ValueError("expected a FILE, or --plan")
        if (slot_bytes, max_events, config) != (None, None, None):
            raise ValueError("expected --plan with --slot-bytes, --max-events and --config")
        of_chain = installed_chain(chain)
        documents = [TckDocument.load(path) for path in tck or ()]
        _inspect_file(file, of_chain, documents, json)


def _planned_limits(node: NodeConfig, slot_bytes: int | None, max_events: int | None, lines: int) -> BatchLimits:
    limits = batch_limits(node)
    events = max_events or limits.events
    return replace(
        limits,
        events=events,
        meps=min(events, BatchLimits().meps),
        input_bytes=slot_bytes or limits.input_bytes,
        lines=lines,
    )


def _document_beside(file: Path, tck: int) -> TckDocument | None:
    """An unusable document is only a warning: the output then lacks the names of lines."""
    try:
        return document_beside(file, tck)
    except TriggerConfigError as error:
        console.print(f"[yellow]lines have no names:[/yellow] {escape(str(error))}", highlight=False, soft_wrap=True)
        return None


def _inspect_file(file: Path, chain: TriggerChain, documents: Sequence[TckDocument], json: Path | None) -> None:
    reports = ReportSummary(documents, lambda tck: _document_beside(file, tck), built_in_documents(chain))
    summary = FileSummary(chain.readout, reports)
    damage = DamageLog()
    for banks in read_events(file, damaged=damage):
        try:
            summary.add(banks)
        except ProtocolError as error:
            damage(f"{file}, event {summary.events} of those that can be read: {error}")
    if not summary.events and damage.n:
        raise EventFileError(damage.first[0])
    result = summary.result(file) | {"damage": asdict(damage)}
    write_json(json, result)
    table = Table("type", "bank", "version", "banks / event", "bytes / event", title=file.name)
    for bank in result["banks"]:
        table.add_row(
            str(bank["type"]),
            bank["name"],
            str(bank["version"]),
            f"{bank['banks_per_event']:.1f}",
            f"{bank['bytes_per_event']:.0f}",
        )
    page = TextConsole(emoji=False, markup=False)
    runs = ", ".join(map(str, result["runs"])) or "none"
    page.print(
        f"{result['events']} events in {result['bytes']} bytes; runs: {runs}; "
        f"events {result['first_event']} to {result['last_event']}"
    )
    page.print(table)
    print_reports(result["trigger"], page)
    end_with_damage(damage)
