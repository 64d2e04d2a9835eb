"""The whole sequence with blocks of many emulated threads: the same bits for every block size and order of threads."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.banks.velo_encoding import VeloEncoding
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.protocol.lhcb.readout import VeloBanks
from tests.processing.framework.kernel_runner import with_block_size
from tests.processing.lhcb.velo.dense_events import noise
from tests.processing.lhcb.whole_chain import Reference, reference_of
from tests.ptx.chain import PtxLauncher
from tests.ptx.kernels import machine_of, module_of

N_EVENTS = 5


@cache
def reference(velo_banks: VeloBanks) -> Reference:
    geometry = VeloGeometry.builtin()
    encoding: VeloEncoding = "retina" if velo_banks == "retina" else "superpixel"
    events = list(simulate_events(N_EVENTS, seed=4, geometry=geometry, velo_banks=encoding))
    return reference_of(encode_mep(CHAIN, events, encoding=velo_banks), geometry)


@pytest.mark.parametrize("velo_banks", ["retina", "superpixel"])
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("block_size", [1, 32, 100, 256])
def test_results_do_not_depend_on_the_threads(velo_banks: VeloBanks, block_size: int, backward: bool) -> None:
    expected = reference(velo_banks)
    assert np.frombuffer(expected.made["pvs.count"], dtype=np.uint32).sum() > N_EVENTS
    assert expected.differences(with_block_size(block_size, backward=backward)) == []


@cache
def few_hits() -> Reference:
    events = [noise(n, seed=n) for n in (40, 0, 1, 2, 3, 7, 8, 9, 0, 33, 208, 800, 0)]
    return reference_of(encode_mep(CHAIN, events, encoding="retina"), VeloGeometry.builtin())


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("block_size", [32, 100, 256])
def test_events_with_few_hits_or_none_take_nothing_from_their_neighbours(block_size: int, backward: bool) -> None:
    machine = machine_of(module_of("90"), backward=backward)
    assert few_hits().differences(with_block_size(block_size, backward=backward)) == []
    assert few_hits().differences(PtxLauncher(machine, block_size), machine.allocate) == []
