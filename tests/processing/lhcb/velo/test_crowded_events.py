"""Events that crowd one place of a table are flagged by the rule of an oracle, for any order of threads."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.velo.collections import N_MODULE_PAIRS, PHI_BIN_BITS
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.velo import decode_retina_clusters, decode_superpixels
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.framework.kernel_runner import Launch, on_cpu, run_algorithms, with_block_size
from tests.processing.lhcb.velo.dense_events import (
    SUPER_PIXELS,
    colliding_super_pixels,
    crowded_in_phi,
    first_places,
    noise,
    table_bits,
)
from tests.processing.lhcb.velo.velo_chain import ALGORITHMS, VeloChain, limits_of

GEOMETRY = VeloGeometry.builtin()
DECODING = ALGORITHMS[: 1 + [algorithm.name for algorithm in ALGORITHMS].index("velo_sort_by_phi")]
INPUTS = ("input.bytes", "input.mfp_rows", "input.mep_rows", "input.event_rows", "events.flags")
RESULTS = ("events.flags", "velo_clusters.count", "velo_hits.id", "velo_hits.x")
STRETCH = 32
MAX_HITS_PER_BIN, MAX_PAIRS_PER_HIT = 256, 32


def is_crowded(banks: list[RawBank]) -> bool:
    """Whether a stretch of the table of super-pixels is full, or bins of phi have too many hits or pairs of hits."""
    if any(bank.type == LhcbBankType.VP for bank in banks):
        return _fills_a_stretch(banks)
    clusters = decode_retina_clusters(banks)
    xyz = GEOMETRY.local_to_global(clusters.sensor, clusters.column, clusters.row)
    phi = np.arctan2(xyz[:, 1], xyz[:, 0]) / (2 * np.pi) + 0.5
    bins = (clusters.sensor.astype(np.int64) // 8 << PHI_BIN_BITS) + (phi * (1 << PHI_BIN_BITS)).astype(np.int64)
    hits = np.bincount(bins, minlength=N_MODULE_PAIRS << PHI_BIN_BITS)
    pairs = int(np.sum(hits * hits))
    return bool(hits.max() > MAX_HITS_PER_BIN or pairs > MAX_PAIRS_PER_HIT * max(len(bins), len(hits)))


def _fills_a_stretch(banks: list[RawBank]) -> bool:
    found = decode_superpixels(banks)
    bits = table_bits(len(found.sensor))  # each has one candidate
    keys = np.ravel_multi_index((found.sensor, found.column, found.row), SUPER_PIXELS)[found.isolated == 0]
    taken = np.zeros(1 << bits, np.bool_)
    for place in first_places(keys, bits).tolist():
        while taken[place]:
            place = (place + 1) % len(taken)
        taken[place] = True
    return bool(taken.reshape(-1, STRETCH).all(axis=1).any())


@cache
def events(encoding: str) -> list[list[RawBank]]:
    """Crowded and almost crowded events."""
    if encoding == "superpixel":
        return [colliding_super_pixels(600, groups, n) for groups in (1, 3) for n in (16, 31, 33, 40, 48, 63, 100)]
    bins = ((3_000, 1), (3_000, 4), (3_000, 12), (8_000, 1), (5_000, 4), (5_000, 12))
    return [*(crowded_in_phi(n, n_bins, GEOMETRY) for n, n_bins in bins), noise(2_000)]


@cache
def inputs(encoding: str) -> tuple[dict[str, NDArray[Any]], BatchLimits, int]:
    """The buffers of a batch of these events, its limits and the number of events."""
    mep = encode_mep(CHAIN, events(encoding))
    workspace = VeloChain(GEOMETRY, limits_of(mep)).workspace
    workspace.input_data[: mep.data.nbytes] = mep.data
    workspace.seal([MepInBatch(mep.n_events, mep.fragments)])
    given = {name: workspace.host_array(name).copy() for name in INPUTS}
    given["velo_geometry"] = np.frombuffer(GEOMETRY.to_bytes(), dtype=np.float32)
    return given, limits_of(mep), mep.n_events


def decode(encoding: str, launch: Launch) -> dict[str, NDArray[Any]]:
    """Output of decoding and sorting for the events."""
    given, limits, n_events = inputs(encoding)
    return run_algorithms(DECODING, given, n_events, limits, launch)


@pytest.mark.parametrize("encoding", ["retina", "superpixel"])
def test_crowded_events_are_flagged_and_give_no_hits(encoding: str) -> None:
    result = decode(encoding, on_cpu())
    crowded = [is_crowded(banks) for banks in events(encoding)]
    assert 2 < sum(crowded) < len(crowded) - 2
    assert result["events.flags"].tolist() == [EventFlag.OVERFLOW if is_so else 0 for is_so in crowded]
    n_events = len(crowded)
    assert (result["velo_clusters.count"][:n_events] == 0).tolist() == crowded


@pytest.mark.parametrize("encoding", ["retina", "superpixel"])
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("block_size", [1, 32, 100, 256])
def test_which_events_are_crowded_does_not_depend_on_the_threads(
    encoding: str, block_size: int, backward: bool
) -> None:
    result = decode(encoding, with_block_size(block_size, backward=backward))
    expected = decode(encoding, on_cpu())
    assert [name for name in RESULTS if result[name].tobytes() != expected[name].tobytes()] == []
