"""hltnode inspect: the content of an event file, or the memory plan of the sequence."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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

# Local imports below: the plan, the selection and the kernels of a chain take a second of imports, and events without
# banks of the trigger are shown without them.
from hltnode.daemon.commands.events.report_summary import ReportSummary, print_reports
from hltnode.daemon.replay.input_files import FeedError, recognise
from hltnode.processing.framework.entry_points import find_entry_point, load_entry_point
from hltnode.processing.framework.event_files import DamageLog, EventFileError, read_events
from hltnode.processing.framework.readout import ENTRY_POINTS as READOUTS
from hltnode.processing.framework.readout import Readout, bank_type_name
from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.protocol._native import count_banks
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.raw_data.bank_types import TIME_WINDOW, BankType
from hltnode.protocol.raw_data.odin import decode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.time_windows import WindowStatus, window_extent

if TYPE_CHECKING:
    from rich.table import Table

    from hltnode.daemon.configuration.model import NodeConfig
    from hltnode.processing.framework.limits import BatchLimits
    from hltnode.processing.selection.configuration.tck import TckDocument


@dataclass(slots=True)
class Extent:
    """Number of events, their runs, and their first and last number; of a file or of all files."""

    events: int = 0
    nbytes: int = 0
    runs: set[int] = field(default_factory=set)
    numbers: set[int] = field(default_factory=set)
    """The smallest and the largest event number."""
    windows: int = 0
    """Records of windows of time."""
    kept_ns: int = 0
    cut_off: int = 0
    times: set[int] = field(default_factory=set)
    """The first start and the last end of windows in ns."""

    def add(self, banks: Sequence[RawBank]) -> None:
        self.events += 1
        for bank in banks:
            if bank.type == BankType.ODIN:
                odin = decode_odin(bank)
                self.runs.add(odin.run)
                self.numbers = {min({odin.event_id, *self.numbers}), max({odin.event_id, *self.numbers})}
            elif bank.type == TIME_WINDOW:
                run, start, end, status = window_extent(bank)
                self.runs.add(run)
                self.windows += 1
                self.kept_ns += end - start
                self.cut_off += bool(status & WindowStatus.CUT_OFF)
                self.times = {min({start, *self.times}), max({end, *self.times})}

    def include(self, other: "Extent") -> None:
        """Add the events of a file."""
        self.events += other.events
        self.nbytes += other.nbytes
        self.runs |= other.runs
        if numbers := self.numbers | other.numbers:
            self.numbers = {min(numbers), max(numbers)}
        self.windows += other.windows
        self.kept_ns += other.kept_ns
        self.cut_off += other.cut_off
        if times := self.times | other.times:
            self.times = {min(times), max(times)}

    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "bytes": self.nbytes,
            "events": self.events,
            "runs": sorted(self.runs),
            "first_event": min(self.numbers, default=None),
            "last_event": max(self.numbers, default=None),
        }
        if self.windows:
            found["windows"] = {
                "records": self.windows,
                "kept_ns": self.kept_ns,
                "start_ns": min(self.times),
                "end_ns": max(self.times),
                "cut_off": self.cut_off,
            }
        return found


@dataclass(slots=True)
class FileSummary:
    """Counts over the events of all files; the readout gives the names of the banks."""

    readout: Readout
    reports: ReportSummary
    extent: Extent = field(default_factory=Extent)
    files: list[dict[str, Any]] = field(default_factory=list)
    """The JSON object of each file."""
    banks: Counter[tuple[int, int]] = field(default_factory=Counter)
    nbytes: Counter[tuple[int, int]] = field(default_factory=Counter)

    def add(self, counted: Sequence[tuple[int, int, int, int]], read: Sequence[RawBank]) -> None:
        """Add an event.

        counted: type, version, number and bytes of its banks (protocol._native.count_banks). read: its banks of the
        trigger. Raises ProtocolError, before anything is counted, for a damaged bank.
        """
        self.reports.add(read)
        for bank_type, version, n, nbytes in counted:
            self.banks[bank_type, version] += n
            self.nbytes[bank_type, version] += nbytes

    def add_file(self, path: Path, extent: Extent, damage: DamageLog) -> None:
        """End a file."""
        extent.nbytes = path.stat().st_size
        self.extent.include(extent)
        self.files.append({"file": str(path), **extent.result(), "damage": damage.n})

    def result(self) -> dict[str, Any]:
        """The JSON object of `hltnode inspect`: of all files together, and briefly of each."""
        return {
            "files": self.files,
            **self.extent.result(),
            "banks": [
                {
                    "type": bank_type,
                    "name": bank_type_name(self.readout, bank_type),
                    "version": version,
                    "banks_per_event": self.banks[bank_type, version] / self.extent.events,
                    "bytes_per_event": self.nbytes[bank_type, version] / self.extent.events,
                }
                for bank_type, version in sorted(self.banks)
            ],
            "trigger": self.reports.result(),
        }


def inspect(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILES|FOLDER", help="MDF or MEP files, or folders with them.")
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print the memory plan of the sequence; takes no FILES.")
    ] = False,
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
    """Show the content of FILES: events, runs, banks, and the events accepted by each line.

    Several files are shown with their sum. Of a folder, the event files are read.

    The command leaves out damaged records, names them at its end, and then ends with exit code 1.

    Names of lines come from built-in configurations, from --tck, or from the document (0x1234ABCD.json) that a node
    writes beside its files.

    With --plan: show the memory of a slot, by algorithm and back end, for the default values of a node and --chain, or
    for --config.

    Examples: hltnode inspect accepted_0001.mdf output; hltnode inspect --plan --config node.toml
    """
    with user_errors():
        require_writable(json, reads=(*(files or ()), config, *(tck or ())))
        if plan:
            if files:
                raise ValueError("expected no FILES with --plan, which describes the sequence")
            _show_plan(config, chain, slot_bytes, max_events, json)
            return
        if not files:
            raise ValueError("expected FILES, or --plan")
        if (slot_bytes, max_events, config) != (None, None, None):
            raise ValueError("expected --plan with --slot-bytes, --max-events and --config")
        readout = _readout_of(chain)
        _inspect_files(list(_event_files(files)), chain, readout, _given_documents(tck or ()), json)


def _show_plan(
    config: Path | None, chain: str, slot_bytes: int | None, max_events: int | None, json: Path | None
) -> None:
    from hltnode.daemon.commands.events.plan_report import plan_report, print_plan
    from hltnode.daemon.commands.text_console import results_console
    from hltnode.daemon.configuration.loading import load_config
    from hltnode.daemon.node.sizing import names_of_lists
    from hltnode.processing.selection.trigger_chain import constants_of, installed_chain

    node = load_config(config)
    if config is not None and chain not in (DEFAULT_CHAIN, node.trigger.chain):
        raise ValueError(f"--chain: expected {node.trigger.chain}, the chain of {config}, not {chain}")
    of_node = installed_chain(node.trigger.chain if chain == DEFAULT_CHAIN else chain)
    trigger = of_node.load_trigger(node.trigger.file)
    sequence = of_node.with_lines(trigger, with_lists=names_of_lists(node)).sequence
    limits = _planned_limits(node, slot_bytes, max_events, len(trigger.lines), constants_of(sequence))
    report = plan_report(sequence, limits)
    write_json(json, report)
    print_plan(report, results_console(markup=False))


def _readout_of(chain: str) -> Readout:
    """The readout of a chain, without an import of the chain if its package offers the readout alone."""
    if (offered := find_entry_point(READOUTS, chain, "readout")) is not None:
        readout: Readout = load_entry_point(offered, "readout")
        return readout
    from hltnode.processing.selection.trigger_chain import installed_chain

    return installed_chain(chain).readout


def _given_documents(paths: Sequence[Path]) -> "list[TckDocument]":
    if not paths:
        return []
    from hltnode.processing.selection.configuration.tck import TckDocument

    return [TckDocument.load(path) for path in paths]


def _built_in_documents(chain: str) -> "Iterator[TckDocument]":
    """A generator, so that the chain is imported when the first document is needed."""
    from hltnode.processing.selection.studies.tck_documents import built_in_documents
    from hltnode.processing.selection.trigger_chain import installed_chain

    yield from built_in_documents(installed_chain(chain))


def _planned_limits(
    node: "NodeConfig", slot_bytes: int | None, max_events: int | None, lines: int, constants: "Mapping[str, int]"
) -> "BatchLimits":
    from hltnode.daemon.node.sizing import batch_limits
    from hltnode.processing.framework.limits import BatchLimits

    limits = batch_limits(node)
    events = max_events or limits.events
    return replace(
        limits,
        events=events,
        meps=min(events, BatchLimits().meps),
        input_bytes=slot_bytes or limits.input_bytes,
        lines=lines,
        constants=constants,
    )


def _document_beside(file: Path, tck: int) -> "TckDocument | None":
    """An unusable document is only a warning: the output then lacks the names of lines."""
    from hltnode.processing.selection.studies.tck_documents import document_beside

    try:
        return document_beside(file, tck)
    except TriggerConfigError as error:
        from rich.markup import escape

        console.print(f"[yellow]lines have no names:[/yellow] {escape(str(error))}", highlight=False, soft_wrap=True)
        return None


def _event_files(given: Sequence[Path]) -> Iterator[Path]:
    """The given files, and the event files of the given folders in the order of their names; other files in a folder
    are skipped. Raises ValueError for a folder without event file."""
    for path in given:
        if not path.is_dir():
            yield path
            continue
        entries = [entry for entry in sorted(path.iterdir()) if not entry.name.startswith(".")]
        found = [entry for entry in entries if _is_event_file(entry)]
        if not found:
            raise ValueError(f"{path}: no event file among {len(entries)} files")
        yield from found


def _is_event_file(path: Path) -> bool:
    try:
        recognise(path)
    except FeedError:
        return False
    return True


def _inspect_files(
    files: Sequence[Path], chain: str, readout: Readout, documents: "Sequence[TckDocument]", json: Path | None
) -> None:
    from rich.table import Table

    from hltnode.daemon.commands.text_console import results_console

    read: list[Path] = []
    reports = ReportSummary(documents, lambda tck: _document_beside(read[-1], tck), _built_in_documents(chain))
    summary = FileSummary(readout, reports)
    read_types = [BankType.ODIN, TIME_WINDOW, *reports.types]
    damage = DamageLog()
    for file in files:
        read.append(file)
        extent, of_file = Extent(), DamageLog()
        for banks in _read_events(file, of_file):
            counted, of_node = count_banks(banks, read_types)
            try:
                extent.add(of_node)
                summary.add(counted, of_node)
            except ProtocolError as error:
                of_file(f"{file}, event {extent.events} of those that can be read: {error}")
        summary.add_file(file, extent, of_file)
        damage.extend(of_file)
    if not summary.extent.events and damage.n:
        raise EventFileError(damage.first[0])
    result = summary.result() | {"damage": asdict(damage)}
    write_json(json, result)
    page = results_console(markup=False)
    if len(files) > 1:
        page.print(_file_table(summary.files))
    runs = _listed(result["runs"])
    numbers = f"events {result['first_event']} to {result['last_event']}"
    page.print(
        f"{result['events']} events in {result['bytes']} bytes; runs: {runs}; "
        f"{'no event numbers' if result['first_event'] is None else numbers}"
    )
    if windows := result.get("windows"):
        page.print(
            f"{windows['records']} windows of {windows['kept_ns']} ns in all, from {windows['start_ns']} to "
            f"{windows['end_ns']} ns of the run; cut off: {windows['cut_off']}"
        )
    table = Table("type", "bank", "version", "banks / event", "bytes / event", title=_title(files))
    for bank in result["banks"]:
        table.add_row(
            str(bank["type"]),
            bank["name"],
            str(bank["version"]),
            f"{bank['banks_per_event']:.1f}",
            f"{bank['bytes_per_event']:.0f}",
        )
    page.print(table)
    print_reports(result["trigger"], page)
    end_with_damage(damage)


def _read_events(file: Path, damaged: DamageLog) -> Iterator[list[RawBank]]:
    """The events of a file. A file without a byte has none: `hltnode process --accepted` writes it if no event is
    accepted."""
    if file.is_file() and file.stat().st_size == 0:
        return
    yield from read_events(file, damaged=damaged)


def _file_table(files: Sequence[dict[str, Any]]) -> "Table":
    from rich.table import Table

    table = Table("file", "events", "bytes", "runs", "first event", "last event", "damage")
    for of in files:
        numbers = (of["first_event"], of["last_event"], of["damage"])
        table.add_row(of["file"], str(of["events"]), str(of["bytes"]), _listed(of["runs"]), *map(str, numbers))
    return table


def _listed(runs: Sequence[int]) -> str:
    return ", ".join(map(str, runs)) or "none"


def _title(files: Sequence[Path]) -> str:
    return files[0].name if len(files) == 1 else f"{len(files)} files"
