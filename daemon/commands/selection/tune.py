"""hltnode tune: cuts of all lines at once, under a cap on the rate."""

import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from hltnode.daemon.commands.common import (
    DEFAULT_CHAIN,
    BackendOption,
    ChainOption,
    ConditionsOption,
    DeviceOption,
    GeometryOption,
    JsonOption,
    SequenceOption,
    ThreadsOption,
    end_with_damage,
    require_packages,
    require_writable,
    thread_count,
    user_errors,
    write_json,
    write_text,
)
from hltnode.daemon.commands.progress import event_progress
from hltnode.daemon.commands.result_files import result_file
from hltnode.daemon.commands.selection.options import ReportOption, check_files, counted_events, described
from hltnode.daemon.commands.terminal import echo
from hltnode.daemon.machine.malloc_tuning import keep_heap
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.event_files import (
    DamageLog,
    EventFileError,
    read_all_sub_slices,
    read_all_tables,
)
from hltnode.processing.framework.readout import AUTO
from hltnode.processing.selection.configuration.tck import TCK_SUFFIX
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.studies.decided_events import DecidingPass
from hltnode.processing.selection.trigger_chain import TriggerChain, installed_chain
from hltnode.processing.selection.tuning.configuration_file import tuned_text
from hltnode.processing.selection.tuning.cuts import chosen_cuts
from hltnode.processing.selection.tuning.errors import TuningError
from hltnode.processing.selection.tuning.search import MAX_CUTS
from hltnode.processing.selection.tuning.stored_events import EventStore, StoredEvents
from hltnode.processing.selection.tuning.tables import tuning_text
from hltnode.processing.selection.tuning.tunable_line import TunableLine, Values, tunable_line
from hltnode.processing.selection.tuning.tunable_menu import TunableMenu
from hltnode.processing.selection.tuning.tuning import TuningRequest
from hltnode.processing.selection.tuning.tuning import tune as tune_menu

SHIPPED = "shipped"
"""The value of --rate that stands for the rate of the given configuration."""
_RATE = re.compile(r"([0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?) *(Hz|kHz|MHz)?")
_UNITS = {"Hz": 1.0, "kHz": 1e3, "MHz": 1e6}


def tune(
    trigger: Annotated[Path, typer.Argument(metavar="TRIGGER.toml", help="Trigger configuration to tune.")],
    more_signals: Annotated[
        list[Path] | None, typer.Argument(metavar="SIGNAL", help="More event files of signals, besides --signal.")
    ] = None,
    minbias: Annotated[
        list[Path] | None,
        typer.Option(
            "--minbias",
            metavar="FILE",
            help="Event file of minimum bias, with or without weights; repeatable: several files form one sample.",
        ),
    ] = None,
    signal: Annotated[
        list[Path] | None,
        typer.Option("--signal", metavar="FILE", help="Event file of a signal, one for each signal; repeatable."),
    ] = None,
    rate: Annotated[
        str,
        typer.Option(
            "--rate",
            metavar="RATE",
            help=f"Largest rate of all lines together, such as 1.2MHz or 300kHz; {SHIPPED}: that of TRIGGER.toml.",
        ),
    ] = SHIPPED,
    weight: Annotated[
        list[str] | None,
        typer.Option(
            "--weight",
            metavar="SIGNAL=NUMBER",
            help="Weight of a signal by the name of its file without suffix; 1 if not given. Repeatable.",
        ),
    ] = None,
    cuts: Annotated[
        list[str] | None,
        typer.Option(
            "--tune",
            metavar="LINE[.CUT][=LOW:HIGH]",
            help="Cuts to tune, with * and ?; all if not given. "
            "Without LOW:HIGH a cut may become half or twice its value. Repeatable.",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="LINE", help="Lines whose cuts stay, with * and ?. Repeatable."),
    ] = None,
    most_cuts: Annotated[
        int, typer.Option("--cuts", min=1, max=200, help="Tune at most this many cuts, those of the largest effect.")
    ] = MAX_CUTS,
    max_loss: Annotated[
        float,
        typer.Option("--max-loss", min=0.0, max=1.0, help="Part of its efficiency that a signal may lose unpunished."),
    ] = 0.0,
    holdout: Annotated[
        float,
        typer.Option("--holdout", min=0.05, max=0.9, help="Part of the events that the search does not see."),
    ] = 0.3,
    evaluations: Annotated[
        int, typer.Option("--evaluations", min=100, max=1_000_000, help="Choices of cuts that the evolution tries.")
    ] = 4000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same cuts.")] = 1,
    cross_validation: Annotated[
        bool,
        typer.Option(
            "--cross-validation/--no-cross-validation",
            help="Correct the cap for unseen events by ten more searches; without, one search keeps RATE itself.",
        ),
    ] = True,
    output: Annotated[
        Path | None,
        result_file("--output", metavar="TUNED.toml", help="Write the tuned trigger configuration."),
    ] = None,
    sequence: SequenceOption = None,
    crossing_rate: Annotated[
        float | None,
        typer.Option(
            "--crossing-rate",
            metavar="HZ",
            help="Rate of the events that minimum bias stands for; by default that of the chain.",
        ),
    ] = None,
    geometry: GeometryOption = None,
    conditions: ConditionsOption = None,
    backend: BackendOption = "auto",
    threads: ThreadsOption = 0,
    device: DeviceOption = 0,
    encoding: Annotated[
        str, typer.Option("--encoding", help="Banks to read if events hold the same hits twice.")
    ] = AUTO,
    chain: ChainOption = DEFAULT_CHAIN,
    json: JsonOption = None,
    report: ReportOption = None,
) -> None:
    """Tune the cuts of all lines at once: largest efficiencies of signals under a cap on the rate of all lines.

    The events are reconstructed once. Efficiency: the part of the events of a signal that any line accepts. The search
    keeps a cap that is lower than RATE, so that unseen events are at RATE: cross-validation tells by how much. Part of
    the events is held out: the tables show what the cuts do on events that the search has not seen.

    Example: hltnode tune menu.toml --minbias minbias.mdf --signal bsphiphi.mdf --signal jpsi.mdf --rate 1.2MHz
    --weight jpsi=2 --output tuned.toml --report tune.html
    """
    with user_errors():
        require_packages("hltnode tune", "scipy", extra="tune")
        signals = [*(signal or ()), *(more_signals or ())]
        if not minbias or not signals:
            raise ValueError("expected --minbias FILE and at least one --signal FILE")
        check_files([*minbias, *signals], json, report, trigger)
        require_writable(output, reads=(*minbias, *signals, trigger, json, report))
        if trigger.suffix == TCK_SUFFIX:
            raise ValueError(f"{trigger}: a TOML file is expected; the cuts of a TCK document cannot be changed")
        if crossing_rate is not None and not 0 < crossing_rate < np.inf:
            raise ValueError(f"--crossing-rate {crossing_rate}: a finite rate above 0 is expected")
        request = TuningRequest(
            cap=_read_rate(rate),
            signals=_read_weights(signals, weight or ()),
            max_loss=max_loss,
            holdout=holdout,
            seed=seed,
            evaluations=evaluations,
            most_cuts=most_cuts,
            cross_validation=cross_validation,
        )
        known = installed_chain(chain)
        event_rate = known.event_rate if crossing_rate is None else replace(known.event_rate, hz=crossing_rate)
        configuration = known.load_trigger(trigger, sequence)
        lines = _tunable_lines(configuration, cuts or (), keep or ())
        deciding = DecidingPass(
            known,
            configuration,
            create_backend(backend, known.kernels, threads=thread_count(threads), device=device),
            known.with_sequence(configuration.sequence).load_geometry(geometry),
            lines=[line.line for line in lines],
            encoding=encoding,
            conditions=conditions,
        )
        damage = DamageLog()
        events = _stored(deciding, known, lines, [list(minbias), *([file] for file in signals)], damage)
        deciding.engine.close()
        _check_kinds(events, minbias, signals)
        menu = TunableMenu(lines, events, event_rate.hz)
        keep_heap()
        with event_progress("search", None, "choices") as progress:
            tuned = tune_menu(menu, configuration.line_names, request, progress)
        text, tuned_trigger = _tuned_configuration(known, configuration, menu, tuned.point, trigger, output, sequence)
        tck = tuned_trigger.tck(known.with_sequence(tuned_trigger.sequence).sequence)
        files = [*minbias, *signals]
        result = described(files, trigger.name, known, configuration, deciding) | {
            "tuned_tck": f"0x{tck:08X}",
            "event": event_rate.event,
            **tuned.result,
            "damage": asdict(damage),
        }
        tables = tuning_text(result)
        if output is not None:
            write_text(output, text)
        write_json(json, result)
        if report is not None:
            write_text(report, _page(trigger.name, result, tables))
    echo(tables)
    if output is not None:
        echo(f"\n{output}: the tuned configuration, TCK {result['tuned_tck']}")
    end_with_damage(damage)


def _page(name: str, result: dict[str, Any], text: str) -> str:
    # Local import: only reports need matplotlib, an extra.
    from hltnode.processing.offline.pages.tuning import tuning_page

    return tuning_page(name, result, text)


def _read_rate(text: str) -> float | None:
    if text == SHIPPED:
        return None
    found = _RATE.fullmatch(text)
    hz = float(found[1]) * _UNITS[found[2] or "Hz"] if found else 0.0
    if not 0 < hz < np.inf:
        raise ValueError(f"--rate {text}: a rate above 0 such as 1.2MHz, 300kHz or 5000, or {SHIPPED}, is expected")
    return hz


def _read_weights(signals: Sequence[Path], texts: Sequence[str]) -> dict[str, float]:
    """The weight of each signal by its name."""
    found: dict[str, float] = {}
    for file in signals:
        if file.stem in (*found, "minbias"):
            raise ValueError(f"--signal {file}: another sample has the name {file.stem}; rename the file")
        found[file.stem] = 1.0
    for text in texts:
        name, _, number = text.partition("=")
        if name not in found:
            raise ValueError(f"--weight {text}: SIGNAL=NUMBER is expected; the signals are {', '.join(found)}")
        try:
            found[name] = float(number)
        except ValueError:
            raise ValueError(f"--weight {text}: a number is expected behind =") from None
        if not 0 < found[name] < np.inf:
            raise ValueError(f"--weight {text}: a finite weight above 0 is expected")
    return found


def _tunable_lines(configuration: TriggerConfig, cuts: Sequence[str], keep: Sequence[str]) -> list[TunableLine]:
    """The lines with tuned cuts. Raises TuningError without any."""
    lines: list[TunableLine] = []
    refused: dict[str, str] = {}
    for _, of_line in groupby(chosen_cuts(configuration, cuts, keep), key=lambda cut: cut.line):
        line, why = tunable_line(configuration, list(of_line))
        refused |= why
        lines += [] if line is None else [line]
    if not lines:
        first = next(f"{name}: {why}" for name, why in refused.items())
        raise TuningError(f"none of the chosen cuts can be tuned: {first}")
    return lines


def _stored(
    deciding: DecidingPass,
    chain: TriggerChain,
    lines: Sequence[TunableLine],
    samples: Sequence[list[Path]],
    damage: DamageLog,
) -> StoredEvents:
    store = EventStore(lines, chain.readout)
    streaming = deciding.engine.chain.streaming
    for files in samples:
        store.begin_sample()
        tables = read_all_tables(files, damage) if streaming is None else read_all_sub_slices(files, streaming, damage)
        with counted_events(files, files[0].stem) as progress:
            n = 0
            for decided in deciding.run(tables):
                store.add(decided)
                progress(len(decided.events))
                n += len(decided.events)
        if not n:
            why = f": {damage.first[-1]}" if damage.first else ""
            raise EventFileError(f"{' '.join(map(str, files))}: no event can be read{why}")
    return store.stored()


def _check_kinds(events: StoredEvents, minbias: Sequence[Path], signals: Sequence[Path]) -> None:
    """Raise ValueError for a sample of another kind than its option says. Recorded events have no kind."""
    first, *others = events.kinds
    if first.others:
        raise ValueError(f"--minbias {minbias[0]}: its events are {', '.join(first.others)}, not minimum bias")
    for file, kinds in zip(signals, others, strict=True):
        if number := sum(kinds.minimum_bias.values()):
            raise ValueError(f"--signal {file}: {number} of its events are minimum bias, without a signal")
        if len(kinds.others) > 1:
            raise ValueError(f"--signal {file}: it holds several signals: {', '.join(kinds.others)}")


def _tuned_configuration(
    chain: TriggerChain,
    configuration: TriggerConfig,
    menu: TunableMenu,
    point: Values,
    trigger: Path,
    output: Path | None,
    sequence: str | None,
) -> tuple[str, TriggerConfig]:
    """The text of the tuned configuration, and what a node makes of it.

    Raises TuningError if its lines are not those that the search evaluated.
    """
    changed: dict[str, dict[str, float]] = {}
    for cut, value in zip(menu.cuts, point, strict=True):
        if value != cut.base:
            changed.setdefault(cut.line, {})[cut.cut] = value
    counts = frozenset((cut.line, cut.cut) for cut in menu.cuts if cut.is_count)
    text = tuned_text(trigger, output or trigger, sequence, changed, counts)
    read = TriggerConfig.from_toml(text, chain.menu, sequence, (output or trigger).parent)
    for place, line in enumerate(menu.lines):
        values = menu.values_of_line(point, place)
        same = (
            read.lines[line.place].condition
            is configuration.with_cuts(
                line.line.name, {cut.cut: value for cut, value in zip(line.cuts, values, strict=True)}
            ).condition
        )
        if not same or line.constants(values) != line.recorded_constants(values):
            raise TuningError(
                f"line {line.line.name}: the tuned cuts read from a file decide differently; please report it"
            )
    return text, read
