"""The cluster limit of the VELO: rejected events compared with an oracle, for every block size, and their output."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.chain import CHAIN, HLT1_SEQUENCE, geometry_constants
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.processing.lhcb.offline.validation.readers.velopix import encode_velopix, read_velopix
from hltnode.processing.lhcb.raw_data.flags import TOO_MANY_CLUSTERS
from hltnode.processing.lhcb.velo.decoding.cluster_limit import cluster_limit
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms, with_block_size
from tests.processing.lhcb.velo.dense_events import noise, super_pixel_noise
from tests.processing.lhcb.velo.velo_chain import VeloChain, limits_of, run_velo

GEOMETRY = VeloGeometry.builtin()
[DEFAULT_CUT] = (int(constant.value) for constant in cluster_limit.constants)
WORD = 4
NORTH_AND_EAST = ((0, 1), (1, 1), (1, 0), (1, -1))


def announced_clusters(banks: list[RawBank]) -> int:
    """Words of retina banks; pixels of super-pixels without a lit neighbour to the north or east in their pattern."""
    n = 0
    for bank in banks:
        if bank.type == LhcbBankType.VP_RETINA_CLUSTER:
            n += len(bank.payload) // WORD - 1
        elif bank.type == LhcbBankType.VP:
            patterns = np.frombuffer(bank.payload, "<u4")[1:] & 0xFF
            n += sum(_candidates(int(pattern)) for pattern in patterns)
    return n


def _candidates(pattern: int) -> int:
    lit = {(bit // 4, bit % 4) for bit in range(8) if pattern >> bit & 1}
    return sum(not any((c + dc, r + dr) in lit for dc, dr in NORTH_AND_EAST) for c, r in lit)


def cut(bounds: NDArray[np.uint32], flags: NDArray[np.uint32], max_clusters: int) -> tuple[list[int], list[int]]:
    """Bounds and flags after the cut."""
    beyond = bounds > max_clusters
    return np.where(beyond, 0, bounds).tolist(), np.where(beyond, flags | TOO_MANY_CLUSTERS.mask, flags).tolist()


@pytest.mark.parametrize("block_size", [None, 1, 32, 100, 256])
@pytest.mark.parametrize("max_clusters", [0, 1000, 2**32 - 1])
def test_events_above_the_cut_lose_their_clusters_and_are_flagged(block_size: int | None, max_clusters: int) -> None:
    rng = np.random.default_rng(3)
    bounds = np.concatenate([rng.integers(0, 2000, 700), [max_clusters, 999, 1000, 1001, 2**32 - 1]]).astype(np.uint32)
    flags = rng.integers(0, 32, len(bounds)).astype(np.uint32)
    result = run_algorithms(
        (cluster_limit.with_constants({"max_clusters": max_clusters}),),
        {"velo_clusters.bound": bounds, "events.flags": flags},
        len(bounds),
        BatchLimits(events=len(bounds)),
        on_cpu() if block_size is None else with_block_size(block_size),
    )
    expected = cut(bounds, flags, max_clusters)
    assert (result["velo_clusters.bound"].tolist(), result["events.flags"].tolist()) == expected


@pytest.mark.parametrize("encoding", ["retina", "superpixel"])
def test_the_cut_counts_what_the_banks_announce(encoding: str) -> None:
    make = noise if encoding == "retina" else super_pixel_noise
    sizes = [DEFAULT_CUT - 1, DEFAULT_CUT, DEFAULT_CUT + 1, 65_312]
    banks = [make(size, seed) for seed, size in enumerate(sizes)]
    assert [announced_clusters(event) for event in banks] == sizes
    events = run_velo(encode_mep(CHAIN, banks), GEOMETRY)
    assert [event.flags for event in events] == [0, 0, TOO_MANY_CLUSTERS.mask, TOO_MANY_CLUSTERS.mask]
    assert [len(event.ids) > 0 for event in events] == [True, True, False, False]
    assert [len(event.tracks) > 0 for event in events] == [True, True, False, False]


def test_an_event_that_is_cut_changes_no_other_event() -> None:
    events = list(simulate_events(4, seed=9, geometry=GEOMETRY))
    alone = run_velo(encode_mep(CHAIN, events), GEOMETRY)
    mep = encode_mep(CHAIN, [noise(65_312), *events[:2], noise(DEFAULT_CUT + 1, 2), *events[2:]])
    _, first, second, _, third, fourth = VeloChain(GEOMETRY, limits_of(mep)).run(mep)
    assert all(a.same_as(b) for a, b in zip(alone, (first, second, third, fourth), strict=True))


def test_the_trigger_configuration_sets_the_cut_and_its_key_changes() -> None:
    lower = TriggerConfig.from_toml("[sequence.velo_cluster_limit]\nmax_clusters = 100\n", CHAIN.menu, "velo")
    default = CHAIN.load_trigger(None, "velo")
    assert lower.tck(HLT1_SEQUENCE) != default.tck(HLT1_SEQUENCE)
    mep = encode_mep(CHAIN, list(simulate_events(3, seed=2, geometry=GEOMETRY, nu=7.6)))
    backend = create_backend("cpu", CHAIN.kernels)
    flags = []
    for trigger in (default, lower):
        engine = CHAIN.create_engine(backend, geometry_constants(GEOMETRY), trigger, limits_of(mep))
        workspace = engine.create_workspace()
        workspace.input_data[: mep.data.nbytes] = mep.data
        workspace.seal([MepInBatch(mep.n_events, mep.fragments)])
        workspace.submit()
        workspace.wait()
        flags.append(workspace.output.flags.tolist())
        counts = workspace.output.counts
    assert flags == [[0, 0, 0], [TOO_MANY_CLUSTERS.mask] * 3]
    assert not any(values.any() for values in counts.values())


@pytest.mark.physics
@pytest.mark.timeout(300)
def test_no_event_of_the_upgrade_2_sample_is_cut(shared: Path) -> None:
    geometry = VeloGeometry.load(shared / "data" / "lhcb-geometry")
    events = read_velopix(shared / "data" / "velo-truth" / "upgrade2.jsonl.gz")
    mep = encode_mep(CHAIN, [encode_velopix(event, geometry) for event in events])
    found = VeloChain(geometry, limits_of(mep)).run(mep)
    assert [event.flags for event in found] == [0] * len(found)
    assert max(len(event.ids) for event in found) > 20_000
