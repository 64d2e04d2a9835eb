"""hltnode replay-check: checks that the recorded decisions of a file are reproduced."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from hltnode.daemon.commands.common import (
    DEFAULT_CHAIN,
    ChainOption,
    DeviceOption,
    GeometryOption,
    JsonOption,
    require_files,
    require_writable,
    thread_count,
    user_errors,
    write_json,
)
from hltnode.daemon.commands.progress import event_progress
from hltnode.daemon.commands.terminal import echo
from hltnode.processing.framework.backends import cuda_installation
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.event_files import read_events
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_meps
from hltnode.processing.framework.readout import AUTO, check_encoding
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.studies.tck_documents import document_beside
from hltnode.processing.selection.trigger_chain import TriggerChain, installed_chain
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.odin import decode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.reports import HltDecReports, decode_dec_reports

EVENTS_PER_MEP = 64
LIMITS = BatchLimits(events=128, input_bytes=4 << 20)
SHOWN = 10
"""Most listed differences per check."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event and its recorded decisions."""

    banks: Sequence[RawBank]
    lines: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Configuration:
    """A trigger configuration and its key."""

    tck: int
    trigger: TriggerConfig

    @property
    def name(self) -> str:
        """The key as text: 0x1234ABCD."""
        return f"0x{self.tck:08X}"


def replay_check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="MDF file with kept events of a node.")],
    trigger: Annotated[
        Path | None,
        typer.Option(
            "--trigger",
            metavar="FILE",
            help="Trigger configuration of the events (TOML, or a TCK document), unless it is built-in.",
        ),
    ] = None,
    geometry: GeometryOption = None,
    device: DeviceOption = 0,
    encoding: Annotated[
        str, typer.Option("--encoding", help="Banks to read if events hold the same hits twice.")
    ] = AUTO,
    chain: ChainOption = DEFAULT_CHAIN,
    json: JsonOption = None,
) -> None:
    """Compute the events of FILE again with the trigger configuration of their reports, and compare all decisions.

    The comparison covers every line on the CPU with one, two and three threads and one per core, once with lines
    evaluated by NumPy, and on a GPU if there is one. Exit code 1 if a decision differs.

    The configuration is built-in, given, or a document (0x1234ABCD.json) beside FILE.

    Example: hltnode replay-check accepted_0001.mdf --trigger 0x1234ABCD.json
    """
    with user_errors():
        require_writable(json, reads=(file, trigger))
        require_files(file)
        known = installed_chain(chain)
        check_encoding(known.readout, encoding)
        recorded, not_computed, configuration = _read(file, known, _configurations(known, trigger))
        _require_given(file, known, trigger, configuration)
        places = list(_places())
        with event_progress("checking", len(recorded) * len(places)) as processed:
            checks = [
                _check(known, configuration, recorded, geometry, place, device, encoding, processed) for place in places
            ]
        identical = not any(check["differences"] for check in checks)
        result = {
            "file": str(file),
            "tck": configuration.name,
            "events": len(recorded),
            "not_computed": not_computed,
            "identical": identical,
            "checks": checks,
        }
        write_json(json, result)
    for check in checks:
        echo(
            f"{check['backend']}, {check['threads']} threads, lines {check['lines']}: {check['differences']} of "
            f"{check['decisions']} decisions on {len(recorded)} events differ"
        )
        for difference in check["first"]:
            echo(f"  event {difference['event']}, {difference['line']}: was {difference['recorded']}")
    if not_computed:
        echo(f"{not_computed} events had been recorded without computation")
    raise typer.Exit(0 if identical else 1)


@dataclass(frozen=True, slots=True)
class Place:
    """A back end with settings, on which lines are computed."""

    backend: str
    threads: int = 1
    compiles: bool = True


def _places() -> Iterator[Place]:
    for threads in sorted({1, 2, 3, thread_count(0)}):
        yield Place("cpu", threads)
    yield Place("cpu", compiles=False)
    if cuda_installation.is_available():
        yield Place("cuda")


def _configurations(chain: TriggerChain, path: Path | None) -> dict[int, Configuration]:
    """The known configurations by TCK: the built-in ones, and that of a file."""
    triggers = [chain.load_trigger(None, sequence) for sequence in chain.sequences or (None,)]
    if path is not None:
        triggers.append(chain.load_trigger(path))
    keys = [trigger.tck(chain.with_sequence(trigger.sequence).sequence) for trigger in triggers]
    return {tck: Configuration(tck, trigger) for tck, trigger in zip(keys, triggers, strict=True)}


def _require_given(file: Path, chain: TriggerChain, path: Path | None, configuration: Configuration) -> None:
    """Raise ValueError if the configuration of the events differs from the given one."""
    if path is None:
        return
    given = chain.load_trigger(path)
    tck = given.tck(chain.with_sequence(given.sequence).sequence)
    if tck != configuration.tck:
        raise ValueError(f"{file}: its events have TCK {configuration.name}, {path} is TCK 0x{tck:08X}")


def _read(
    file: Path, chain: TriggerChain, configurations: dict[int, Configuration]
) -> tuple[list[Recorded], int, Configuration]:
    """The computed events, the number of other events, and their common configuration."""
    found: Configuration | None = None
    recorded: list[Recorded] = []
    not_computed = 0
    for index, banks in enumerate(read_events(file)):
        report = _report_of(file, index, banks)
        if report.tck not in configurations and (document := document_beside(file, report.tck)) is not None:
            configurations[report.tck] = Configuration(report.tck, chain.trigger_of(document))
        if report.tck not in configurations:
            raise ValueError(
                f"{file}, event {index} of the file: no configuration of TCK 0x{report.tck:08X} is built-in, given "
                "with --trigger, or beside the file"
            )
        configuration = configurations[report.tck]
        if found is not None and found != configuration:
            raise ValueError(
                f"{file}, event {index} of the file: TCK {configuration.name} after events of {found.name}"
            )
        found = configuration
        if len(report.lines) != len(configuration.trigger.lines):
            raise ValueError(
                f"{file}, event {index} of the file: decisions of {len(report.lines)} lines, TCK {configuration.name} "
                f"has {len(configuration.trigger.lines)}"
            )
        if any(line.stage for line in report.lines):
            recorded.append(Recorded(banks, tuple(line.decision for line in report.lines)))
        else:
            not_computed += 1
    if found is None:
        raise ValueError(f"{file}: no events")
    return recorded, not_computed, found


def _report_of(file: Path, index: int, banks: Sequence[RawBank]) -> HltDecReports:
    for bank in banks:
        if bank.type == BankType.HLT_DEC_REPORTS:
            return decode_dec_reports(bank)
    raise ValueError(f"{file}, event {index} of the file: no decision report; was it written by a node?")


def _check(
    chain: TriggerChain,
    configuration: Configuration,
    recorded: Sequence[Recorded],
    geometry: Path | None,
    place: Place,
    device: int,
    encoding: str,
    processed: Callable[[int], None],
) -> dict[str, Any]:
    """Compute the events on one back end and compare the decisions."""
    engine = chain.create_engine(
        create_backend(place.backend, chain.kernels, threads=place.threads, device=device, compiles=place.compiles),
        chain.with_sequence(configuration.trigger.sequence).load_geometry(geometry),
        configuration.trigger,
        chain.limits_for_files(LIMITS, configuration.trigger),
        with_lists=False,
    )
    n_lines = len(engine.lines)
    differences = 0
    first: list[dict[str, Any]] = []
    waiting = iter(recorded)
    for batch in OfflineRunner(engine).run(
        encode_meps(engine.chain, (event.banks for event in recorded), EVENTS_PER_MEP, encoding, LIMITS.input_bytes)
    ):
        decided = _decisions(batch.workspace.output.lines, n_lines)
        processed(len(decided))
        events = list(islice(waiting, len(decided)))
        wrong = np.argwhere(decided != np.array([event.lines for event in events]).reshape(-1, n_lines))
        differences += len(wrong)
        for event, line in wrong[: SHOWN - len(first)].tolist():
            first.append(
                {
                    "event": _event_id(events[event].banks),
                    "line": engine.lines[line],
                    "recorded": events[event].lines[line],
                }
            )
    engine.close()
    return {
        "backend": engine.backend.name,
        "threads": place.threads,
        "lines": "compiled" if place.compiles else "by NumPy",
        "decisions": len(recorded) * n_lines,
        "differences": differences,
        "first": first,
    }


def _decisions(lines: NDArray[np.uint32], n_lines: int) -> NDArray[np.bool_]:
    return np.unpackbits(lines.view(np.uint8), axis=1, count=n_lines, bitorder="little").astype(np.bool_)


def _event_id(banks: Sequence[RawBank]) -> int | None:
    for bank in banks:
        if bank.type == BankType.ODIN:
            return decode_odin(bank).event_id
    return None
