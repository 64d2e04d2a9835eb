"""One chain of one revision of hltnode in a process of its own, which reads and writes lines of JSON.

It runs the revision in `sys.path`, which may have another layout: `LAYOUTS` covers those since 0.1.0. So it must import
nothing else from its own repository.

Its first line describes the work: the digest of the events, flags and counts of each event, and the instruction set; or
{"refused": reason} if this revision has no such chain. For each line `{"batches": n, "profile": bool}` it runs its
batch n times. It answers with the processor time of the process and the wall time between submission and end of the
batches, in seconds; with `profile` also with the processor time of each algorithm.
"""

import hashlib
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EVENTS = 504
"""Maximum number of events of the batch: seven events 72 times."""
EVENTS_PER_MEP = 63
INPUT_BYTES = 64 << 20
READ_BANKS = {"retina": (16, 73), "superpixel": (16, 8, 63)}
"""Types of the banks that the VELO chain reads: ODIN, and those of the VELO in either encoding."""


@dataclass(frozen=True, slots=True)
class Work:
    """The work: all events of `files`, `copies` times. `overrides`: constants of algorithms.

    `instructions`: an instruction set by its name in the compiled kernels, None for the best of this machine.
    """

    sequence: str
    encoding: str
    files: list[str]
    geometry: str | None
    copies: int
    threads: int
    overrides: list[tuple[str, str, int]]
    instructions: str | None


@dataclass(frozen=True, slots=True)
class Sealed:
    """A batch that can be run again and again."""

    workspace: Any
    events: int
    counts: dict[str, list[int]]
    flags: list[int]
    target: str


def present(work: Work, events: list[Any], *, common: bool = False) -> Sealed:
    """For revisions with a framework folder. `common`: use no CPU forms of kernels; older revisions do not support it.

    Raises LookupError if this revision lacks the chain.
    """
    from dataclasses import replace

    from hltnode.processing.framework.backends.cpu import CpuBackend
    from hltnode.processing.framework.backends.interface import BackendError
    from hltnode.processing.framework.batch import MepInBatch
    from hltnode.processing.framework.limits import BatchLimits
    from hltnode.processing.framework.offline_runner import encode_mep
    from hltnode.processing.selection.configuration.overrides import Override

    lhcb = _chain_of_lhcb()
    if work.sequence not in lhcb.sequences:
        raise LookupError(f"this revision has no sequence {work.sequence}")
    chain = lhcb.with_sequence(work.sequence)
    trigger = lhcb.load_trigger(None, work.sequence)
    if work.overrides:
        trigger = replace(trigger, overrides=tuple(Override(*override) for override in work.overrides))
    geometry = chain.load_geometry(Path(work.geometry) if work.geometry else None)
    limits = BatchLimits(events=EVENTS, input_bytes=INPUT_BYTES)
    try:
        options = {"common": True} if common else {}
        cpu = CpuBackend(lhcb.kernels, threads=work.threads, target=work.instructions, **options)
    except BackendError as error:
        raise LookupError(str(error)) from error
    engine = lhcb.create_engine(cpu, geometry, trigger, limits)
    workspace = engine.create_workspace()

    def encode(of_mep: list[Any], first: int) -> Any:
        return encode_mep(chain, of_mep, first, work.encoding)

    _fill(workspace, events, encode, MepInBatch)
    workspace.submit()
    workspace.wait()
    output = workspace.output
    counts = {name: count.tolist() for name, count in output.counts.items()}
    return Sealed(workspace, len(events), counts, output.flags.tolist(), cpu.target)


def _chain_of_lhcb() -> Any:
    """The chain of this revision. Up to 0.4.0, it is `HLT1` in the module `hlt1`."""
    try:
        return importlib.import_module("hltnode.processing.lhcb.chain").CHAIN
    except ModuleNotFoundError:
        return importlib.import_module("hltnode.processing.lhcb.hlt1").HLT1


def _of_0_1_0(work: Work, events: list[Any]) -> Sealed:
    """For 0.1.0, which has only the VELO chain."""
    imported = importlib.import_module
    batch, engines = imported("hltnode.processing.batch"), imported("hltnode.processing.hlt1.sequence")
    back_end, velo = imported("hltnode.processing.backend.cpu"), imported("hltnode.processing.geometry.velo")
    offline, trigger = imported("hltnode.processing.offline"), imported("hltnode.processing.trigger")

    if work.sequence != "velo" or work.overrides:
        raise LookupError(f"this revision has no sequence {work.sequence}")
    geometry = velo.VeloGeometry.load(Path(work.geometry)) if work.geometry else velo.VeloGeometry.builtin()
    limits = batch.BatchLimits(events=EVENTS, input_bytes=INPUT_BYTES)
    try:
        cpu = back_end.CpuBackend(threads=work.threads, target=work.instructions)
    except back_end.BackendError as error:
        raise LookupError(str(error)) from error
    engine = engines.create_engine(cpu, geometry, trigger.TriggerConfig.default(), limits)
    workspace = engine.create_workspace()

    def encode(of_mep: list[Any], first: int) -> Any:
        return offline.encode_mep(of_mep, first, work.encoding)

    _fill(workspace, events, encode, batch.MepInBatch)
    workspace.submit()
    workspace.wait()
    output = workspace.output
    counts = {name: getattr(output, name).tolist() for name in ("velo_clusters", "velo_tracks", "pvs")}
    return Sealed(workspace, len(events), counts, output.flags.tolist(), cpu.target)


def _fill(workspace: Any, events: list[Any], encode: Callable[[list[Any], int], Any], mep_in_batch: Any) -> None:
    placed, offset = [], 0
    for first in range(0, len(events), EVENTS_PER_MEP):
        mep = encode(events[first : first + EVENTS_PER_MEP], first)
        if offset + mep.data.nbytes > INPUT_BYTES:
            raise LookupError(f"more than {INPUT_BYTES} bytes of events")
        workspace.input_data[offset : offset + mep.data.nbytes] = mep.data
        placed.append(mep_in_batch(mep.n_events, [(source, offset + at, n) for source, at, n in mep.fragments]))
        offset += mep.data.nbytes
    workspace.seal(placed)


LAYOUTS: tuple[tuple[str, str, Callable[[Work, list[Any]], Sealed]], ...] = (
    ("hltnode.processing.framework", "hltnode.processing.framework.event_files", present),
    ("hltnode.processing.hlt1", "hltnode.daemon.event_files", _of_0_1_0),
)
"""A package that only revisions of this layout have, their file reader, and the function that makes a chain."""


def _layout() -> tuple[str, Callable[[Work, list[Any]], Sealed]]:
    for package, reader, make in LAYOUTS:
        if importlib.util.find_spec(package) is not None:
            return reader, make
    raise LookupError("this revision has a layout that benchmarks/cpu/worker.py does not know")


def events_digest(events: Iterable[Iterable[Any]], encoding: str) -> str:
    """Digest of the banks that the VELO chain reads: two workers with one digest have the same input."""
    digest = hashlib.sha256()
    for event in events:
        banks = [bank for bank in event if int(bank.type) in READ_BANKS[encoding]]
        for bank in sorted(banks, key=lambda it: (int(it.type), it.source_id)):
            payload = bytes(bank.payload)
            digest.update(f"{int(bank.type)} {bank.version} {bank.source_id} {len(payload)} ".encode())
            digest.update(payload)
        digest.update(b"end of event")
    return digest.hexdigest()


def measure(batch: Sealed, batches: int, profile: bool) -> dict[str, Any]:
    """Run the batch; returns seconds, with `profile` also of each algorithm."""
    queue = batch.workspace.queue
    queue.profile = profile
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(batches):
        batch.workspace.submit()
        batch.workspace.wait()
    answer: dict[str, Any] = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    answer["events"] = batches * batch.events
    queue.profile = False
    answer["algorithms"] = queue.take_profile() if profile else {}
    return answer


def main(description: str) -> None:
    """`description`: the fields of Work, as JSON, and `pinned`, the processors to run on."""
    fields: dict[str, Any] = json.loads(description)
    os.sched_setaffinity(0, fields.pop("pinned"))
    work = Work(**fields)
    try:
        reader, make = _layout()
        read_events = importlib.import_module(reader).read_events
        once = [list(banks) for file in work.files for banks in read_events(Path(file))]
        events = (once * work.copies)[:EVENTS]
        batch = make(work, events)
    except LookupError as error:
        print(json.dumps({"refused": str(error)}), flush=True)
        return
    first = {
        "events": batch.events,
        "digest": events_digest(once, work.encoding),
        "counts": batch.counts,
        "flags": batch.flags,
        "target": batch.target,
    }
    print(json.dumps(first), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(measure(batch, asked["batches"], asked["profile"])), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
