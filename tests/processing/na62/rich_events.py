"""MEPs of hits, and the chain on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.batch import MFP_ALIGNMENT
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, OfflineRunner
from hltnode.processing.na62.chain import CHAIN
from hltnode.processing.na62.offline.simulation.decays import Decay
from hltnode.processing.na62.offline.simulation.events import Conditions, simulated_event
from hltnode.processing.na62.rich.collections import MAX_RINGS
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.na62.rich_banks import HIT, MAX_HITS, RICH_SOURCE, RichBankType, encode_hits
from hltnode.protocol.raw_data.bank_types import NO_BANK
from hltnode.protocol.raw_data.mfp import encode_mfp

COLUMNS = (
    *("rich_hits.count", "rich_hits.x", "rich_hits.y", "rich_hits.time"),
    *("rings.count", "rings.ring", "events.number", "events.flags"),
)
"""Every column that the chain writes for lines, fields and outputs."""


def mep_of_payloads(
    payloads: Sequence[bytes | None],
    first_event: int = 0,
    *,
    version: int = 1,
    kind: int = RichBankType.HITS,
    source: int = RICH_SOURCE,
) -> EncodedMep:
    """A MEP of one MFP; None: the event has no bank."""
    mfp = encode_mfp(
        source_id=source,
        event_id=first_event,
        version=version,
        types=[NO_BANK if payload is None else kind for payload in payloads],
        fragments=[payload or b"" for payload in payloads],
        align=2,
    )
    data = np.frombuffer(mfp + bytes(-len(mfp) % MFP_ALIGNMENT), np.uint8)
    return EncodedMep(EventTable.of_events([[] for _ in payloads]), data, ((source, 0, len(mfp)),))


@cache
def simulated(seed: int, n: int, decay: Decay | None = None, rings: int = 2) -> tuple[NDArray[np.void], ...]:
    """HIT[hits] of events."""
    rng = np.random.default_rng(seed)
    conditions = Conditions(decay=decay, rings=rings)
    return tuple(simulated_event(rng, conditions)[0] for _ in range(n))


def mixed_payloads(seed: int, n: int) -> list[bytes | None]:
    """Simulated events of one to three rings, and for every ninth one an event without bank or that is broken."""
    events = [*simulated(seed, n), *simulated(seed + 1, n // 2, Decay.THREE_PIONS)]
    payloads: list[bytes | None] = [encode_hits(hits) for hits in events]
    one = np.zeros(1, HIT)
    odd = [
        None,
        b"",
        b"\0",
        encode_hits(np.zeros(5, HIT)),
        encode_hits(one) + b"\0",
        encode_hits(np.zeros(MAX_HITS + 1, HIT)),
        encode_hits(np.array([(i, 7) for i in range(MAX_HITS)], HIT)),
        encode_hits(np.array([(65535, 1), (500, 2), (1500, 3), (9, 4)], HIT)),
    ]
    for i, payload in enumerate(odd):
        payloads.insert(9 * i % len(payloads), payload)
    return payloads


@dataclass(frozen=True, slots=True)
class RichResult:
    """Hits, rings and flags of the events of a MEP; the names of the lines that selected each event."""

    hit_x: list[NDArray[np.float32]]
    hit_y: list[NDArray[np.float32]]
    hit_time: list[NDArray[np.uint8]]
    rings: list[NDArray[np.void]]
    numbers: NDArray[np.uint32]
    flags: list[list[str]]
    words: NDArray[np.uint32]
    lines: list[set[str]]


def run_chain(mep: EncodedMep, configuration: str = "", constants: dict[str, Any] | None = None) -> RichResult:
    """Run a MEP through the chain and the lines of a configuration on the CPU."""
    trigger = TriggerConfig.from_toml(configuration, CHAIN.menu)
    n = mep.n_events
    limits = BatchLimits(events=n, meps=1, input_bytes=mep.data.nbytes, rows=1)
    backend = create_backend("cpu", CHAIN.kernels, threads=1)
    geometry = CHAIN.load_geometry(None) if constants is None else constants
    engine = CHAIN.create_engine(backend, geometry, trigger, limits, retain=COLUMNS)
    try:
        (batch,) = OfflineRunner(engine, workspaces=1).run([mep])
        found = {name: batch.workspace.fetch(name) for name in COLUMNS}
        words = batch.workspace.output.lines[:n].copy()
        names, table = engine.lines, engine.flags
    finally:
        engine.close()
    hits, rings = found["rich_hits.count"], found["rings.count"]
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")[:, : len(names)]

    def of_events(column: str, counts: NDArray[Any], most: int) -> list[NDArray[Any]]:
        return [found[column][most * e : most * e + counts[e]].copy() for e in range(n)]

    return RichResult(
        of_events("rich_hits.x", hits, MAX_HITS),
        of_events("rich_hits.y", hits, MAX_HITS),
        of_events("rich_hits.time", hits, MAX_HITS),
        of_events("rings.ring", rings, MAX_RINGS),
        found["events.number"][: 2 * n].reshape(n, 2).copy(),
        [table.names(int(word)) for word in found["events.flags"][:n]],
        found["events.flags"][:n].copy(),
        [{name for name, bit in zip(names, row, strict=True) if bit} for row in bits],
    )
