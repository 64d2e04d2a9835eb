"""MEPs of banks of any source and type, without ODIN, and the chain on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.batch import MFP_ALIGNMENT, MepInBatch
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.histograms import HistogramContent, contents
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.raw.chain import CHAIN
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.raw_data.bank_types import NO_BANK, RESERVED_TYPES
from hltnode.protocol.raw_data.mfp import encode_mfp

Banks = Mapping[int, tuple[int, bytes]]
"""The banks of one event: type and bytes by source."""

COLUMNS = (
    "sources.offset",
    "sources.count",
    "sources.bank",
    "banks.count",
    "error_banks.count",
    "events.bank_bytes",
    "events.largest_bank",
    "events.number",
    "event_times.count",
    "event_times.time_ns",
    "events.flags",
)
"""Every column that the chain writes for lines, fields and outputs."""


def mep_of(
    events: Sequence[Banks],
    first_event: int = 0,
    *,
    sources: Sequence[int] | None = None,
    versions: Mapping[int, int] | None = None,
    align: int = 3,
) -> EncodedMep:
    """A MEP with an MFP of each source; an event without its bank has a fragment of type NO_BANK."""
    known = sorted({source for event in events for source in event} if sources is None else sources)
    pieces: list[bytes] = []
    fragments = []
    at = 0
    for source in known:
        of_source = [event.get(source, (NO_BANK, b"")) for event in events]
        mfp = encode_mfp(
            source_id=source,
            event_id=first_event,
            version=(versions or {}).get(source, 1),
            types=[kind for kind, _ in of_source],
            fragments=[payload for _, payload in of_source],
            align=align,
        )
        fragments.append((source, at, len(mfp)))
        pieces += (mfp, bytes(-len(mfp) % MFP_ALIGNMENT))
        at += len(mfp) + -len(mfp) % MFP_ALIGNMENT
    data = np.frombuffer(b"".join(pieces), np.uint8)
    return EncodedMep(EventTable.of_events([[] for _ in events]), data, tuple(fragments))


def random_events(seed: int, n_events: int, n_sources: int) -> list[dict[int, tuple[int, bytes]]]:
    """Banks of any type and source, some of them absent, some large, some of error types."""
    rng = np.random.default_rng(seed)
    sources = rng.choice(1 << 16, n_sources, replace=False).tolist()
    usual = [kind for kind in range(NO_BANK) if kind not in RESERVED_TYPES]
    events = []
    for _ in range(n_events):
        banks = {}
        for source in sources:
            if rng.random() < 0.2:
                continue
            kind = int(rng.choice([192, 193, 239, 240, 241, 16, 191, int(rng.choice(usual))]))
            size = int(rng.choice([0, 1, 3, 8, 40, 300, 41_000], p=[0.1, 0.2, 0.2, 0.2, 0.2, 0.095, 0.005]))
            banks[source] = (kind, rng.bytes(size))
        events.append(banks)
    return events


@dataclass(frozen=True, slots=True)
class RawResult:
    """What the chain made of some MEPs in one batch; the names of the lines that selected each event."""

    columns: dict[str, NDArray[Any]]
    lines: list[set[str]]
    accepted: list[bool]
    histograms: dict[str, HistogramContent]


def run_chain(meps: Sequence[EncodedMep], configuration: str = "", flags: int = 0) -> RawResult:
    """Run some MEPs through the chain and the lines of a configuration on the CPU."""
    trigger = TriggerConfig.from_toml(configuration, CHAIN.menu)
    n_events = sum(mep.n_events for mep in meps)
    limits = BatchLimits(
        events=max(n_events, 1),
        meps=len(meps),
        input_bytes=max(8, sum(-(-mep.data.nbytes // 8) * 8 for mep in meps)),
        rows=max(1, sum(len(mep.fragments) for mep in meps)),
    )
    engine = CHAIN.create_engine(create_backend("cpu", CHAIN.kernels, threads=1), {}, trigger, limits, retain=COLUMNS)
    try:
        workspace = engine.create_workspace()
        placed, at = [], 0
        for mep in meps:
            workspace.input_data[at : at + mep.data.nbytes] = mep.data
            places = [(source, at + offset, size) for source, offset, size in mep.fragments]
            placed.append(MepInBatch(mep.n_events, places, EventFlag(flags)))
            at += mep.data.nbytes
        workspace.seal(placed)
        workspace.submit()
        workspace.wait()
        columns = {name: workspace.fetch(name).copy() for name in COLUMNS}
        words = workspace.output.lines
        bits = np.unpackbits(words.view(np.uint8), axis=1, count=len(engine.lines), bitorder="little")
        lines = [{engine.lines[i] for i in np.flatnonzero(of_event).tolist()} for of_event in bits]
        filled = contents(engine.histograms, workspace.take_histogram_counts())
        return RawResult(
            columns,
            lines,
            workspace.output.accepted.astype(bool).tolist(),
            {content.shape.name: content for content in filled},
        )
    finally:
        engine.close()
