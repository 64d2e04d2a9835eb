"""The work of `hltnode process`: a sample through the pipeline, here or on Dask workers, and its output files."""

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hltnode.analysis.tuple_files import EVENT_ROWS, TupleFile, tuple_file
from hltnode.daemon.commands.common import complete_file, write_text
from hltnode.daemon.commands.events.dask_workers import processed_ranges, workers_with_kernels
from hltnode.daemon.commands.events.event_processor import EventProcessor, Setup
from hltnode.daemon.commands.events.sample_results import SampleResult
from hltnode.daemon.commands.events.stream_times import with_stream_times
from hltnode.daemon.commands.progress import count_events, event_progress
from hltnode.daemon.commands.result_files import require_new
from hltnode.daemon.storage.root_file import root_bytes
from hltnode.processing.framework.event_files import DamageLog, read_all_tables
from hltnode.processing.framework.foreign_files import require_sources
from hltnode.processing.framework.histograms import contents
from hltnode.processing.selection.configuration.tck import TckDocument
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.studies.fields import FieldReader
from hltnode.processing.selection.trigger_chain import TriggerChain


def process_files(
    files: Sequence[Path],
    setup: Setup,
    *,
    repeat_count: int = 1,
    dask: str | None = None,
    accepted: Path | None = None,
    histograms: Path | None = None,
    to_tuple: Path | None = None,
    rows: str = EVENT_ROWS,
) -> dict[str, Any]:
    """The JSON object of `hltnode process`. The document of the trigger configuration is written beside `accepted`.

    dask: scheduler whose workers process the events; None: this process. `seconds` is the time of the pipeline
    (EventProcessor.process); with Dask, the time from the first range to the last result.

    Raises ValueError for the setup, and EventFileError, also for a file without any source that the chain reads.
    """
    chain, configuration = setup.load()
    document = chain.document(configuration)
    shapes = [histogram.shape for histogram in chain.filled_histograms(configuration)]
    streaming = chain.with_lines(configuration).streaming
    documents: dict[int, TckDocument] = {}
    # The documents of runs with conditions are known when the runs have begun.
    beside = [document] if setup.conditions is None else []
    _require_new_documents(accepted, beside)
    with (
        event_progress("processing", count_events(files, repeat_count)) as processed,
        nullcontext() if accepted is None else complete_file(accepted) as file,
        nullcontext() if to_tuple is None else _tuple_file(to_tuple, chain, configuration, setup, rows) as tuple_rows,
    ):
        damage = DamageLog()
        result = SampleResult(document.collections, document.line_names, shapes, file, tuple_rows)
        if dask is None:
            documents = _process_here(files, setup, repeat_count, result, damage, processed)
        else:
            for path in files:
                require_sources(path, chain.with_sequence(configuration.sequence))
            with workers_with_kernels(dask, setup) as client:
                begin = time.perf_counter()
                for part in processed_ranges(client, files, setup, damage, accepted=accepted is not None):
                    result.add(part)
                    processed(part.events)
                result.seconds = time.perf_counter() - begin
    if documents:
        document = next(iter(documents.values()))
        beside = list(documents.values())
        _require_new_documents(accepted, beside)
    if histograms is not None:
        _write_histograms(histograms, result, " ".join(dict.fromkeys(each.name for each in beside)))
    if streaming is not None and not damage.n:
        result.per_event = with_stream_times(result.per_event, files, streaming)
    if accepted is not None:
        for each in beside:
            write_text(accepted.with_name(each.file_name), each.text)
    return {
        "trigger": {
            "tck": document.name,
            **({"tck_of_run": {str(run): of.name for run, of in documents.items()}} if documents else {}),
            "sequence": document.sequence,
            "lines": len(configuration.line_names),
            "of_built_in_menu": configuration.from_menu,
        },
        "events": result.events,
        "seconds": result.seconds,
        "events_per_second": result.events / result.seconds if result.seconds else 0.0,
        **_sizes_per_second(chain.with_sequence(configuration.sequence).size, result),
        "backend": result.backend,
        "threads": result.threads,
        "workers": len(result.workers),
        "objects": result.objects,
        "rates": result.rates.result(chain.event_rate) if result.rates.events else None,
        "per_event": result.per_event,
        "tuple": None if to_tuple is None else _tuple_result(result),
        "damage": asdict(damage),
        "unknown_types": sorted(result.unknown_types),
        "banks_left_out": result.banks_left_out,
        "reports_left_out": result.reports_left_out,
        "candidates_left_out": result.candidates_left_out,
    }


def _sizes_per_second(size: str, result: SampleResult) -> dict[str, float]:
    """The rate of the objects that measure the size of an event, if the chain names some.

    Repeated events count in the objects once."""
    if not size:
        return {}
    repeats = result.events / len(result.per_event) if result.per_event else 0.0
    return {f"{size}_per_second": result.objects[size] * repeats / result.seconds if result.seconds else 0.0}


def _require_new_documents(accepted: Path | None, documents: Sequence[TckDocument]) -> None:
    """Raises FileExistsError if another document has the name of one beside the accepted events."""
    if accepted is None:
        return
    for each in documents:
        path = accepted.with_name(each.file_name)
        if not _holds(path, each.text):
            require_new(path)


def _holds(path: Path, text: str) -> bool:
    """Whether a file has this content: files of accepted events in one folder may share the document beside them."""
    return path.is_file() and path.read_bytes() == text.encode()


def _tuple_file(path: Path, chain: TriggerChain, configuration: TriggerConfig, setup: Setup, rows: str) -> TupleFile:
    return tuple_file(path, FieldReader(chain, configuration, setup.fields), rows)


def _tuple_result(result: SampleResult) -> dict[str, Any]:
    """seconds: time for reading and writing the fields; seconds_ratio: time of the pipeline with them to that without,
    as if no other thread had computed meanwhile."""
    written = result.tuple
    assert written is not None
    without = result.seconds - result.fields_seconds
    seconds = result.fields_seconds + written.seconds
    return {
        "file": str(written.path),
        "rows": written.n_rows,
        "columns": written.n_columns,
        "seconds": seconds,
        "seconds_ratio": (without + seconds) / without if without else None,
    }


def _process_here(
    files: Sequence[Path],
    setup: Setup,
    times: int,
    result: SampleResult,
    damage: DamageLog,
    processed: Callable[[int], None],
) -> dict[int, TckDocument]:
    """Add the results of all events that can be read, and the faults of the others to `damage`. Returns the trigger
    configuration of each run that has conditions of its own."""
    # Report errors of the setup before errors of the files.
    processor = EventProcessor(setup)
    try:
        for path in files:
            require_sources(path, processor.engine.chain)
        result.backend, result.threads = processor.engine.backend.name, processor.engine.backend.threads
        accepted = result.accepted is not None
        events = read_all_tables(files, damage)
        for part in processor.process(events, times=times, accepted=accepted, processed=processed):
            result.add(part)
    finally:
        processor.close()
    return processor.conditions.documents


def _write_histograms(path: Path, result: SampleResult, tck: str) -> None:
    """Each event counts once, independent of repetitions."""
    held = list(contents(result.histograms, result.histogram_counts))
    with complete_file(path) as file:
        file.write(root_bytes(held, {"tck": tck}))
