"""hltnode process: the pipeline of the node on files, without sockets."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import chain as chained
from itertools import islice, repeat
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from hltnode.daemon.commands.common import (
    DEFAULT_CHAIN,
    BackendOption,
    ChainOption,
    DeviceOption,
    GeometryOption,
    JsonOption,
    SequenceOption,
    ThreadsOption,
    TriggerOption,
    complete_file,
    console,
    require_files,
    require_writable,
    thread_count,
    user_errors,
    write_json,
    write_text,
)
from hltnode.daemon.commands.events.accepted_events import AcceptedEvents
from hltnode.daemon.storage.root_file import root_bytes, write_beside
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.chain import Chain
from hltnode.processing.framework.engine import BatchOutput, Engine
from hltnode.processing.framework.event_files import read_all_events
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.histograms import contents, n_counts
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import (
    CompletedBatch,
    EncodedMep,
    OfflineRunner,
    encode_meps,
)
from hltnode.processing.framework.readout import AUTO, check_encoding
from hltnode.processing.selection.trigger_chain import TriggerChain, installed_chain
from hltnode.processing.selection_studies.rates import RateCounts
from hltnode.processing.selection_studies.tables import rates_text
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.raw_data.odin import decode_odin
from hltnode.protocol.raw_data.raw_bank import BankType, RawBank

EVENTS_PER_MEP = 64
CHUNK_MEPS = 64
"""MEPs that are encoded before the time measurement starts; bounds the memory for long files."""

LIMITS = BatchLimits(events=128, input_bytes=4 << 20)


def process(
    files: Annotated[list[Path], typer.Argument(metavar="FILES", help="MDF or MEP files.")],
    geometry: GeometryOption = None,
    backend: BackendOption = "auto",
    threads: ThreadsOption = 0,
    device: DeviceOption = 0,
    repeat_count: Annotated[
        int, typer.Option("--repeat", min=1, help="Number of times that the files are processed.")
    ] = 1,
    encoding: Annotated[
        str, typer.Option("--encoding", help="Which banks to read where events hold the same hits twice.")
    ] = AUTO,
    chain: ChainOption = DEFAULT_CHAIN,
    trigger: TriggerOption = None,
    sequence: SequenceOption = None,
    accepted: Annotated[
        Path | None,
        typer.Option("--accepted", metavar="FILE", help="Write the accepted events with their reports (MDF)."),
    ] = None,
    histograms: Annotated[
        Path | None,
        typer.Option("--histograms", metavar="FILE", help="Write the monitoring histograms (ROOT)."),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Reconstruct and select the events of FILES; ends with the rate of each line, if every event stands for a bunch
    crossing (`hltnode rates` has more).

    Example: hltnode process minbias.mdf --geometry lhcb-geometry --repeat 100 --json out.json
    """
    with user_errors():
        require_writable(json, accepted, histograms, reads=[*files, trigger])
        require_files(*files)
        result = process_files(
            files,
            geometry=geometry,
            backend=backend,
            threads=thread_count(threads),
            device=device,
            repeat_count=repeat_count,
            encoding=encoding,
            chain=installed_chain(chain),
            trigger=trigger,
            sequence=sequence,
            accepted=accepted,
            histograms=histograms,
        )
        write_json(json, result)
    ran = result["trigger"]
    typer.echo(
        f"{ran['lines']} lines, {ran['of_built_in_menu']} of them of the built-in menu; sequence {ran['sequence']}, "
        f"TCK {ran['tck']}"
    )
    n_accepted = sum(event["accepted"] for event in result["per_event"])
    typer.echo(
        f"{result['events']} events in {result['seconds']:.3f} s: {result['events_per_second']:.0f} events/s on "
        f"{result['backend']}, {result['threads']} threads; {n_accepted} of {len(result['per_event'])} accepted"
    )
    flags = Counter(flag for event in result["per_event"] for flag in event["flags"])
    if flags:
        typer.echo("flagged: " + ", ".join(f"{n} {flag.lower()}" for flag, n in flags.most_common()))
    typer.echo("found in them: " + ", ".join(f"{n} {name}" for name, n in result["objects"].items()))
    if result["rates"] is not None:
        about = {"sequence": ran["sequence"], "tck": ran["tck"]}
        typer.echo(f"\n{rates_text([('lines', about | result['rates'])])}")


def process_files(
    files: Sequence[Path],
    *,
    geometry: Path | None,
    backend: str,
    threads: int,
    device: int,
    repeat_count: int,
    encoding: str,
    chain: TriggerChain,
    trigger: Path | None,
    sequence: str | None = None,
    accepted: Path | None = None,
    histograms: Path | None = None,
) -> dict[str, Any]:
    """The JSON object of `hltnode process`. `seconds` is the time in the pipeline; reading of files and the first
    touch of memory, which a node has behind it when it reports ready, are not counted. The document of the trigger
    configuration is written beside `accepted`."""
    check_encoding(chain.readout, encoding)
    configuration = chain.load_trigger(trigger, sequence)
    engine = chain.create_engine(
        create_backend(backend, chain.kernels, threads=threads, device=device),
        chain.with_sequence(configuration.sequence).load_geometry(geometry),
        configuration,
        LIMITS,
    )
    runner = OfflineRunner(engine)
    meps = encode_meps(engine.chain, read_all_events(files), EVENTS_PER_MEP, encoding, LIMITS.input_bytes)
    per_event: list[dict[str, Any]] = []
    objects = dict.fromkeys(engine.collections, 0)
    counted = np.zeros(n_counts(engine.histograms), np.uint64)
    rates = RateCounts(engine.lines)
    events, seconds = 0, 0.0
    columns = (SpinnerColumn(), TextColumn("{task.completed} events"), TimeElapsedColumn())
    with (
        Progress(*columns, console=console, transient=True) as progress,
        nullcontext() if accepted is None else complete_file(accepted) as file,
    ):
        written = None if file is None else AcceptedEvents(file, engine)
        task = progress.add_task("", total=None)
        for chunk in _chunks(meps):
            again = _repeated(engine.chain, chunk, repeat_count - 1, encoding)
            if not events:
                runner.warm_up(chunk)
            runner.take_histogram_counts()
            begin = time.perf_counter()
            results = [_copy(batch) for batch in runner.run(chunk)]
            counted += runner.take_histogram_counts()
            for batch in runner.run(again):
                events += batch.workspace.n_events
                progress.update(task, completed=events)
            seconds += time.perf_counter() - begin
            events += sum(mep.n_events for mep in chunk)
            progress.update(task, completed=events)
            for output in results:
                for name, counts in output.counts.items():
                    objects[name] += int(counts.sum())
            per_event += _per_event(chunk, results, engine.lines)
            banks = [of_event for mep in chunk for of_event in mep.events]
            rates.add(banks, np.concatenate([_fired(output.lines, len(engine.lines)) for output in results]))
            if written is not None:
                _write_accepted(written, chunk, results)
    engine.close()
    if histograms is not None:
        _write_histograms(histograms, engine, counted)
    document = chain.document(configuration)
    if accepted is not None:
        write_text(accepted.with_name(document.file_name), document.text)
    return {
        "trigger": {
            "tck": document.name,
            "sequence": document.sequence,
            "lines": len(engine.lines),
            "of_built_in_menu": configuration.from_menu,
        },
        "events": events,
        "seconds": seconds,
        "events_per_second": events / seconds if seconds else 0.0,
        "backend": engine.backend.name,
        "threads": engine.backend.threads,
        "objects": objects,
        "rates": rates.result() if rates.events else None,
        "per_event": per_event,
    }


def _write_histograms(path: Path, engine: Engine, counts: NDArray[np.uint64]) -> None:
    """Each event counts once, however often it is processed."""
    held = list(contents(engine.histograms, counts))
    moved = write_beside(path, root_bytes(held, {"tck": f"0x{engine.tck:08X}"}))
    if moved is not None:
        console.print(f"{path} was there: it is {moved} now", highlight=False)


def _write_accepted(written: AcceptedEvents, meps: Sequence[EncodedMep], outputs: Sequence[BatchOutput]) -> None:
    events = chained.from_iterable(mep.events for mep in meps)
    for output in outputs:
        written.add(list(islice(events, len(output.accepted))), output)


def _chunks(meps: Iterable[EncodedMep]) -> Iterator[list[EncodedMep]]:
    iterator = iter(meps)
    while chunk := list(islice(iterator, CHUNK_MEPS)):
        yield chunk


def _repeated(chain: Chain, chunk: list[EncodedMep], times: int, encoding: str) -> Iterator[EncodedMep]:
    """The MEPs of a chunk, `times` times. One that does not fill a MEP is packed several times into one."""
    events = [banks for mep in chunk for banks in mep.events]
    packing = max(1, EVENTS_PER_MEP // len(events))
    if packing == 1 or times < packing:
        return chained.from_iterable(repeat(chunk, times))
    packed = list(encode_meps(chain, events * packing, EVENTS_PER_MEP, encoding, LIMITS.input_bytes))
    return chained.from_iterable(chained(repeat(packed, times // packing), repeat(chunk, times % packing)))


def _copy(batch: CompletedBatch) -> BatchOutput:
    """A copy of the results of a batch, because the next batch overwrites them."""
    return batch.workspace.output.copy()


def _per_event(
    meps: Sequence[EncodedMep], outputs: Sequence[BatchOutput], lines: Sequence[str]
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
    events = chained.from_iterable(mep.events for mep in meps)
    return [
        {
            **_identity(banks),
            **dict(zip(names, counts, strict=True)),
            "accepted": bool(accepted),
            "lines": fired,
            "flags": [flag.name for flag in EventFlag(flags)],
        }
        for banks, (counts, accepted, fired, flags) in zip(events, rows, strict=True)
    ]


def _fired(words: NDArray[np.uint32], n_lines: int) -> NDArray[np.bool_]:
    """bool[events, lines]: which lines selected each event; `words` is u32[events, words]."""
    return np.unpackbits(words.view(np.uint8), axis=1, count=n_lines, bitorder="little").view(np.bool_)


def _names_of_lines(words: NDArray[np.uint32], names: Sequence[str]) -> list[list[str]]:
    """The lines that selected each event; `words` is u32[events, words]."""
    return [[names[i] for i in np.flatnonzero(of_event).tolist()] for of_event in _fired(words, len(names))]


def _identity(banks: Sequence[RawBank]) -> dict[str, int | None]:
    """Run and event number from the ODIN bank; None without a readable one (the event is flagged)."""
    for bank in banks:
        if bank.type == BankType.ODIN:
            try:
                odin = decode_odin(bank)
            except ProtocolError:
                break
            return {"run": odin.run, "event": odin.event_id}
    return {"run": None, "event": None}
