"""Batches of the tiny chain on the CUDA back end, and their expected output."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from hltnode.processing.framework.backends.cuda import CudaBackend
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.engine import Engine
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.framework.workspace import BatchOutput, Workspace
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import USER_SUBDETECTORS

LIMITS = BatchLimits(events=32, meps=4, input_bytes=1 << 14, rows=64)
THRESHOLD = 100


def an_engine(tiny: ModuleType, *, device: int = 0, block_size: int | None = None, memory_bound: int = 0) -> Engine:
    """The tiny chain on the CUDA back end of this machine."""
    trigger = tiny.TINY.load_trigger(None)
    backend = CudaBackend(tiny.TINY.kernels, device=device, block_size=block_size, memory_bound=memory_bound)
    engine: Engine = tiny.TINY.create_engine(backend, {}, trigger, LIMITS)
    return engine


def payloads_of(tiny: ModuleType, seed: int, n_events: int) -> list[list[bytes]]:
    """Random banks of both sides of each event."""
    rng = np.random.default_rng(seed)
    return [[rng.bytes(int(rng.integers(0, 40))) for _ in tiny.SOURCES] for _ in range(n_events)]


def listed_hits(payloads: list[list[bytes]], side: int = USER_SUBDETECTORS[0]) -> list[list[tuple[int, int, int]]]:
    """(charge, side, byte) of the hits of each event, before any limit."""
    return [
        [
            (byte, side + i, place)
            for i, bank in enumerate(event)
            for place, byte in enumerate(bank)
            if byte >= THRESHOLD
        ]
        for event in payloads
    ]


def found_list(output: BatchOutput) -> list[list[tuple[int, int, int]]]:
    """(charge, side, byte) of the delivered hits of each event."""
    content = output.lists["hit_list"]
    values = [content.of_events(name) for name in ("charge", "side", "byte")]
    return [list(zip(*(of.tolist() for of in event), strict=True)) for event in zip(*values, strict=True)]


def fill(tiny: ModuleType, workspace: Workspace, seed: int, n_events: int = 20) -> list[int]:
    """Seal a batch of random banks; returns the hits of its events."""
    payloads = payloads_of(tiny, seed, n_events)
    events = [
        [
            RawBank(LhcbBankType.TEST_DET, 1, source, memoryview(bank))
            for source, bank in zip(tiny.SOURCES, banks, strict=True)
        ]
        for banks in payloads
    ]
    mep = encode_mep(tiny.TINY, events)
    workspace.input_data[: mep.data.nbytes] = mep.data
    workspace.seal([MepInBatch(n_events, mep.fragments)])
    return [sum(byte >= THRESHOLD for byte in b"".join(banks)) for banks in payloads]


def hits(workspace: Workspace) -> list[int]:
    """The output of the last batch."""
    return [int(n) for n in workspace.output.counts["hits"]]
