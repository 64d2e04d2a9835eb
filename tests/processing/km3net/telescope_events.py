"""MEPs of hits, and the chain on them."""

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
from hltnode.processing.km3net.chain import CHAIN
from hltnode.processing.km3net.geometry.pmt_table import Detector, km3net_tower
from hltnode.processing.km3net.hits.collections import MAX_CANDIDATES, MAX_HITS, MAX_WINDOWS
from hltnode.processing.km3net.offline.simulation.stream import Conditions, HitStream, source_of_pmts
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.km3net.hit_banks import HIT, KM3NET_SUBDETECTOR, HitBankType, encode_hits, ordered_by_pmt
from hltnode.protocol.raw_data.bank_types import NO_BANK
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.raw_data.source_id import source_id

COLUMNS = (
    *("km3net_hits.hit", "km3net_hits.count", "km3net_hits.own", "candidates.count", "candidates.candidate"),
    *("windows.count", "windows.window", "events.number", "events.flags"),
)
"""Every column that the chain writes for lines, fields and outputs."""
TOWER = km3net_tower()


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
        source = source_id(KM3NET_SUBDETECTOR, number)
        mfp = encode_mfp(
            source_id=source,
            event_id=slice_number,
            version=version,
            types=[NO_BANK if payload is None else kind for payload in payloads],
            fragments=[payload or b"" for payload in payloads],
            align=2,
        )
        fragments.append((source, len(data), len(mfp)))
        data += mfp + bytes(-len(mfp) % MFP_ALIGNMENT)
    return EncodedMep(EventTable.of_events([[] for _ in range(n)]), np.frombuffer(data, np.uint8), tuple(fragments))


def mep_of_hits(
    sub_slices: Sequence[NDArray[np.void]], slice_number: int = 0, detector: Detector = TOWER
) -> EncodedMep:
    """A MEP of HIT[hits] of each sub-slice, with a source for each floor; unknown PMTs are in source 0."""
    of_pmts = source_of_pmts(detector)
    n = int(of_pmts.max()) + 1
    payloads: dict[int, list[bytes | None]] = {i: [] for i in range(n)}
    for hits in sub_slices:
        known = hits["pmt"] < len(of_pmts)
        source = np.where(known, of_pmts[np.where(known, hits["pmt"], 0)], 0)
        for i in range(n):
            payloads[i].append(encode_hits(ordered_by_pmt(hits[source == i])))
    return mep_of_payloads(payloads, slice_number)


def made_hits(rows: Sequence[tuple[int, int] | tuple[int, int, int]]) -> NDArray[np.void]:
    """HIT[hits] of (PMT, time) or (PMT, time, charge)."""
    return np.array([(row[2] if len(row) > 2 else 100, row[0], row[1]) for row in rows], HIT)


@cache
def simulated(seed: int, n: int, **conditions: Any) -> tuple[NDArray[np.void], ...]:
    """HIT[hits] of the first sub-slices of a stream of the tower."""
    stream = HitStream(TOWER, Conditions(**conditions), seed)
    return tuple(stream.hits(number)[0] for number in range(n))


@dataclass(frozen=True, slots=True)
class Found:
    """What the chain finds in the sub-slices of a MEP; lines: names of those that selected each sub-slice."""

    hits: list[NDArray[np.uint64]]
    own: NDArray[np.uint32]
    candidates: list[NDArray[np.void]]
    windows: list[NDArray[np.void]]
    numbers: NDArray[np.uint32]
    flags: list[set[str]]
    words: NDArray[np.uint32]
    lines: list[set[str]]


def run_chain(
    mep: EncodedMep,
    configuration: str = "",
    detector: Detector = TOWER,
    constants: Mapping[str, NDArray[np.uint8]] | None = None,
) -> Found:
    """Run a MEP through the chain and the lines of a configuration on the CPU; `constants` replace built-in ones."""
    trigger = TriggerConfig.from_toml(configuration, CHAIN.menu)
    n = mep.n_events
    limits = BatchLimits(events=n, meps=1, input_bytes=mep.data.nbytes, rows=len(mep.fragments))
    backend = create_backend("cpu", CHAIN.kernels, threads=1)
    table = {"km3net.pmt": detector.table().view(np.uint8)}
    content = {**CHAIN.load_geometry(None), **table, **(constants or {})}
    engine = CHAIN.create_engine(backend, content, trigger, limits, retain=COLUMNS)
    try:
        (batch,) = OfflineRunner(engine, workspaces=1).run([mep])
        found = {name: batch.workspace.fetch(name) for name in COLUMNS}
        words = batch.workspace.output.lines[:n].copy()
        names, flags = engine.lines, engine.flags
    finally:
        engine.close()
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")[:, : len(names)]

    def of_events(column: str, count: str, most: int) -> list[NDArray[Any]]:
        return [found[column][most * e : most * e + found[count][e]].copy() for e in range(n)]

    return Found(
        of_events("km3net_hits.hit", "km3net_hits.count", MAX_HITS),
        found["km3net_hits.own"][:n].copy(),
        of_events("candidates.candidate", "candidates.count", MAX_CANDIDATES),
        of_events("windows.window", "windows.count", MAX_WINDOWS),
        found["events.number"][: 2 * n].reshape(n, 2).copy(),
        [set(flags.names(int(word))) for word in found["events.flags"][:n]],
        found["events.flags"][:n].copy(),
        [{name for name, bit in zip(names, row, strict=True) if bit} for row in bits],
    )
