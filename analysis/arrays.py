"""Fields of events as Awkward arrays."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import awkward as ak
import numpy as np

from hltnode.analysis.paths import Paths, paths_of
from hltnode.analysis.progress import shown_progress
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.backends.host_processors import usable_processors
from hltnode.processing.framework.event_files import DamageLog, EventFileError, read_all_tables
from hltnode.processing.framework.foreign_files import require_sources
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_meps
from hltnode.processing.framework.readout import AUTO, check_encoding
from hltnode.processing.selection.studies.fields import Field, FieldReader, FieldValues, joined
from hltnode.processing.selection.trigger_chain import installed_chain

DEFAULT_CHAIN = "lhcb"
EVENTS_PER_MEP = 64
LIMITS = BatchLimits(events=128, input_bytes=16 << 20)
Damaged = Literal["raise", "skip"]


def process(
    files: Paths,
    fields: Sequence[str] | str | None = None,
    *,
    sequence: str | None = None,
    trigger: PathLike[str] | str | None = None,
    geometry: PathLike[str] | str | None = None,
    chain: str = DEFAULT_CHAIN,
    backend: str = "auto",
    threads: int = 0,
    device: int = 0,
    encoding: str = AUTO,
    damaged: Damaged = "raise",
    progress: bool | Callable[[int], None] = False,
) -> ak.Array:
    """Reconstruct and select the events of files; the requested fields as one array.

    The array has one record per event, in the order of the files. Each input of the chain with a requested field is a
    field of it: a list of candidates, one record each, or a single record for `event` and `decisions`. So
    `events.long_tracks.pt` has one list of numbers per event. Numbers are those that selection lines compare with their
    cuts: float32 or uint32, and bool.

    `events.attrs` holds "fields" (unit and description of each field by name), "chain", "sequence", "tck" and "damage"
    (the texts of damaged events that were left out).

    Args:
        files: MDF or MEP files, or one.
        fields: names as listed by `hltnode lines --fields`, with their input: "long_tracks.pt", "event.n_pvs", or of a
            related candidate, "long_tracks.pv.z"; "decisions.Hlt1TrackMVA" and "decisions.accepted". `*` and `?` stand
            for any characters: "long_tracks.*". None: those that the chain chooses.
        sequence: sequence to run; that of the configuration if None.
        trigger: trigger configuration (TOML or TCK document); the built-in one if None.
        geometry: folder of geometry files; the built-in detector if None.
        chain: name of an installed chain.
        backend: "auto", "cpu" or "cuda"; device: number of the GPU.
        threads: threads of the CPU back end; 0: one per core.
        encoding: banks to read if events hold the same hits twice.
        damaged: "raise" ends with EventFileError at the first damaged event; "skip" leaves damaged events out.
        progress: True shows a progress bar; a function is called with the number of events since its last call.

    Raises ValueError for unknown names and invalid files of the setup, EventFileError for event files, BackendError.
    """
    (events,) = iterate(
        files,
        fields,
        step=sys.maxsize,
        sequence=sequence,
        trigger=trigger,
        geometry=geometry,
        chain=chain,
        backend=backend,
        threads=threads,
        device=device,
        encoding=encoding,
        damaged=damaged,
        progress=progress,
    )
    return events


def iterate(
    files: Paths,
    fields: Sequence[str] | str | None = None,
    *,
    step: int = 4096,
    sequence: str | None = None,
    trigger: PathLike[str] | str | None = None,
    geometry: PathLike[str] | str | None = None,
    chain: str = DEFAULT_CHAIN,
    backend: str = "auto",
    threads: int = 0,
    device: int = 0,
    encoding: str = AUTO,
    damaged: Damaged = "raise",
    progress: bool | Callable[[int], None] = False,
) -> Iterator[ak.Array]:
    """Like `process`, in arrays of at least `step` events, the last one excepted: for samples larger than the memory.

    Errors of the setup, and of a file without any event that the chain reads, are raised at once, before the first
    array is asked for.
    """
    if step < 1:
        raise ValueError(f"step {step}: expected at least 1 event")
    if damaged not in ("raise", "skip"):
        raise ValueError(f"damaged {damaged!r}: expected 'raise' or 'skip'")
    paths = paths_of(files)
    known = installed_chain(chain)
    check_encoding(known.readout, encoding)
    configuration = known.load_trigger(None if trigger is None else Path(trigger), sequence)
    of_sequence = known.with_sequence(configuration.sequence)
    reader = FieldReader(known, configuration, (fields,) if isinstance(fields, str) else fields)
    constants = of_sequence.load_geometry(None if geometry is None else Path(geometry))
    for path in paths:
        require_sources(path, of_sequence)
    engine = known.create_engine(
        create_backend(backend, known.kernels, threads=threads or usable_processors(), device=device),
        constants,
        configuration,
        known.limits_for_files(LIMITS, configuration),
        retain=reader.columns,
        with_lists=reader.reads_lists,
    )
    log = DamageLog()
    about = {
        "fields": {field.name: {"unit": field.unit, "description": field.description} for field in reader.fields},
        "chain": chain,
        "sequence": configuration.sequence or known.default_sequence,
        "tck": f"0x{engine.tck:08X}",
    }

    def chunks() -> Iterator[ak.Array]:
        with closing(engine), shown_progress(progress) as seen:
            parts: list[FieldValues] = []
            n_events = 0
            events = read_all_tables(paths, log if damaged == "skip" else _raise)
            meps = encode_meps(engine.chain, events, EVENTS_PER_MEP, encoding, LIMITS.input_bytes)
            for batch in OfflineRunner(engine).run(meps):
                parts.append(reader.read(batch.workspace))
                n_events += parts[-1].n_events
                seen(parts[-1].n_events)
                if n_events >= step:
                    yield as_array(reader.fields, joined(parts), about | {"damage": list(log.first)})
                    parts, n_events = [], 0
            if parts:
                yield as_array(reader.fields, joined(parts), about | {"damage": list(log.first)})

    return chunks()


def as_array(fields: Sequence[Field], values: FieldValues, attrs: dict[str, Any] | None = None) -> ak.Array:
    """The values as one record per event with a field per input, as `process` returns it."""
    inputs: dict[str, dict[str, Any]] = {}
    for field in fields:
        at = inputs.setdefault(field.input, {})
        *relations, last = field.short_name.split(".")
        for relation in relations:
            at = at.setdefault(relation, {})
        at[last] = ak.contents.NumpyArray(values.values[field.name])
    contents = []
    for name, of_input in inputs.items():
        count = values.counts.get(name)
        if count is None:
            contents.append(_records(of_input, values.n_events))
        else:
            offsets = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
            contents.append(
                ak.contents.ListOffsetArray(ak.index.Index64(offsets), _records(of_input, int(offsets[-1])))
            )
    layout = ak.contents.RecordArray(contents, list(inputs), length=values.n_events)
    return ak.Array(layout, attrs=attrs)


def _records(members: dict[str, Any], length: int) -> Any:
    """Records of the members; a related candidate is a record inside."""
    contents = [_records(each, length) if isinstance(each, dict) else each for each in members.values()]
    return ak.contents.RecordArray(contents, list(members), length=length)


def _raise(error: EventFileError) -> None:
    raise error
