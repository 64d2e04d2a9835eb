"""MEPs of pixel hits, and the chain on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.batch import MFP_ALIGNMENT
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, OfflineRunner
from hltnode.processing.mu3e.chain import CHAIN
from hltnode.processing.mu3e.geometry.sensor_table import CENTRE, SOURCES, sensors, source_of_sensors
from hltnode.processing.mu3e.hits.collections import GROUPS, MAX_HITS
from hltnode.processing.mu3e.hits.sort_hits import HIT_WINDOW
from hltnode.processing.mu3e.offline.simulation.stream import Conditions, HitStream, SubSlice
from hltnode.processing.mu3e.tracks.collections import MAX_TRACKS, MAX_TRIPLETS
from hltnode.processing.mu3e.vertices.collections import MAX_VERTICES, MAX_WINDOWS
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.mu3e.hit_banks import HIT, MU3E_SUBDETECTOR, DecayKind, HitBankType, encode_hits
from hltnode.protocol.raw_data.bank_types import NO_BANK
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.raw_data.source_id import source_id

COLUMNS = (
    *("mu3e_hits.hit", "mu3e_hits.x", "mu3e_hits.y", "mu3e_hits.z", "mu3e_hits.count", "mu3e_hits.own"),
    *("mu3e_hits.group_begin", "mu3e_triplets.count", "mu3e_triplets.own"),
    *("mu3e_tracks.fitted", "mu3e_tracks.track", "mu3e_tracks.count", "mu3e_tracks.own"),
    *("mu3e_vertices.vertex", "mu3e_vertices.count", "mu3e_windows.window", "mu3e_windows.count"),
    *("events.number", "events.flags"),
)
"""Every column that the chain writes for lines, fields and outputs, in both sequences."""
NO_HITS = np.zeros(0, HIT)


def mep_of_payloads(
    of_sources: Mapping[int, Sequence[bytes | None]],
    slice_number: int = 0,
    *,
    version: int = 1,
    kind: int = HitBankType.HITS,
) -> EncodedMep:
    """A MEP from the payloads of each source, one for each sub-slice; None: the source has no bank there."""
    data, fragments, n = bytearray(), [], 0
    for number, payloads in sorted(of_sources.items()):
        n = len(payloads)
        source = source_id(MU3E_SUBDETECTOR, number)
        mfp = encode_mfp(
            source_id=source,
            event_id=slice_number,
            version=version,
            types=[NO_BANK if payload is None else kind for payload in payloads],
            fragments=[payload or b"" for payload in payloads],
            align=3,
        )
        fragments.append((source, len(data), len(mfp)))
        data += mfp + bytes(-len(mfp) % MFP_ALIGNMENT)
    return EncodedMep(EventTable.of_events([[] for _ in range(n)]), np.frombuffer(data, np.uint8), tuple(fragments))


def crowded(more: int) -> NDArray[np.void]:
    """Hits at one time with as many combinations as are allowed, and 2^14 for each of `more` hits. None is a triplet:
    layer 1 is far from layer 0 in z. More hits lie just outside of the time window."""
    window = HIT_WINDOW
    inside, outside = (window - 1, 1 - window), (window, -window)
    parts = []
    for layer, n, times in (
        (0, 128, (0,)),
        (1, 128, inside),
        (2, 256 + more, inside),
        (1, 30, outside),
        (2, 30, outside),
    ):
        of_layer = np.flatnonzero((sensors()["layer"] == layer) & (sensors()["station"] == CENTRE))
        number = np.arange(n)
        hits = np.zeros(n, HIT)
        hits["sensor"] = of_layer[
            np.argmin(sensors()["z"][of_layer]) if layer == 0 else np.argmax(sensors()["z"][of_layer])
        ]
        hits["column"], hits["row"] = number % 200, number // 200
        hits["time"] = 100 + np.resize(times, n)
        parts.append(hits)
    return np.concatenate(parts)


def mep_of_hits(sub_slices: Sequence[NDArray[np.void]], slice_number: int = 0) -> EncodedMep:
    """A MEP of HIT[hits] of each sub-slice in their order, by source; those of unknown sensors are in source 0."""
    of_sensors = source_of_sensors()
    payloads: dict[int, list[bytes | None]] = {i: [] for i in range(SOURCES)}
    for hits in sub_slices:
        known = hits["sensor"] < len(of_sensors)
        source = np.where(known, of_sensors[np.where(known, hits["sensor"], 0)], 0)
        for i in range(SOURCES):
            payloads[i].append(encode_hits(hits[source == i]))
    return mep_of_payloads(payloads, slice_number)


@cache
def stream(seed: int, **conditions: Any) -> HitStream:
    """A simulated stream; `wanted` by the name of a kind of decay."""
    wanted = conditions.pop("wanted", None)
    return HitStream(Conditions(wanted=None if wanted is None else DecayKind[wanted], **conditions), seed)


@cache
def simulated(seed: int, n: int, **conditions: Any) -> tuple[SubSlice, ...]:
    """The first sub-slices of a stream."""
    made = stream(seed, **conditions)
    return tuple(made.sub_slice(number) for number in range(n))


def hits_of(sub_slices: Sequence[SubSlice]) -> list[NDArray[np.void]]:
    """HIT[hits] of each sub-slice."""
    return [np.concatenate(each.hits) for each in sub_slices]


@dataclass(frozen=True, slots=True)
class Found:
    """What the chain finds in the sub-slices of a MEP; lines: names of those that selected each sub-slice.

    positions: f32[hits, 3]. begins: u32[sub-slices, 6]. own_hits, own_triplets, own_tracks: how many begin in each
    sub-slice.
    """

    hits: list[NDArray[np.uint64]]
    positions: list[NDArray[np.float32]]
    begins: NDArray[np.uint32]
    own_hits: NDArray[np.uint32]
    n_triplets: NDArray[np.uint32]
    own_triplets: NDArray[np.uint32]
    fitted: list[NDArray[np.uint64]]
    tracks: list[NDArray[np.void]]
    own_tracks: NDArray[np.uint32]
    vertices: list[NDArray[np.void]]
    windows: list[NDArray[np.void]]
    numbers: NDArray[np.uint32]
    flags: list[set[str]]
    words: NDArray[np.uint32]
    lines: list[set[str]]


def run_chain(mep: EncodedMep, configuration: str = "", sequence: str | None = None) -> Found:
    """Run a MEP through the chain and the lines of a configuration on the CPU."""
    named = "" if sequence is None else f'[sequence]\nname = "{sequence}"\n'
    trigger = TriggerConfig.from_toml(named + configuration, CHAIN.menu)
    n = mep.n_events
    limits = BatchLimits(events=n, meps=1, input_bytes=mep.data.nbytes, rows=len(mep.fragments))
    backend = create_backend("cpu", CHAIN.kernels, threads=1)
    engine = CHAIN.create_engine(backend, CHAIN.load_geometry(None), trigger, limits, retain=COLUMNS)
    try:
        (batch,) = OfflineRunner(engine, workspaces=1).run([mep])
        found = {name: batch.workspace.fetch(name) for name in COLUMNS}
        words = batch.workspace.output.lines[:n].copy()
        names, table = engine.lines, engine.flags
    finally:
        engine.close()
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")[:, : len(names)]

    def of_events(column: str, count: str, most: int) -> list[NDArray[Any]]:
        return [found[column][most * e : most * e + found[count][e]].copy() for e in range(n)]

    axes = [of_events(f"mu3e_hits.{axis}", "mu3e_hits.count", MAX_HITS) for axis in "xyz"]
    assert (found["mu3e_triplets.count"][:n] <= MAX_TRIPLETS).all()
    return Found(
        of_events("mu3e_hits.hit", "mu3e_hits.count", MAX_HITS),
        [np.column_stack(each) for each in zip(*axes, strict=True)],
        found["mu3e_hits.group_begin"][: (GROUPS + 1) * n].reshape(n, GROUPS + 1).copy(),
        found["mu3e_hits.own"][:n].copy(),
        found["mu3e_triplets.count"][:n].copy(),
        found["mu3e_triplets.own"][:n].copy(),
        of_events("mu3e_tracks.fitted", "mu3e_tracks.count", MAX_TRACKS),
        of_events("mu3e_tracks.track", "mu3e_tracks.count", MAX_TRACKS),
        found["mu3e_tracks.own"][:n].copy(),
        of_events("mu3e_vertices.vertex", "mu3e_vertices.count", MAX_VERTICES),
        of_events("mu3e_windows.window", "mu3e_windows.count", MAX_WINDOWS),
        found["events.number"][: 2 * n].reshape(n, 2).copy(),
        [set(table.names(int(word))) for word in found["events.flags"][:n]],
        found["events.flags"][:n].copy(),
        [{name for name, bit in zip(names, row, strict=True) if bit} for row in bits],
    )
