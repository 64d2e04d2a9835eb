"""Every sequence of HLT1 in other ways than the CPU back end runs it: blocks of many threads, and by PTX.

Small simulated events with the banks of all detectors; everything that algorithms write is compared bit by bit.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.offline.simulation.banks.velo_encoding import VeloEncoding
from tests.processing.framework.kernel_runner import with_block_size
from tests.processing.lhcb.full_events import full_events
from tests.processing.lhcb.whole_chain import Reference, reference_of
from tests.ptx.chain import PtxLauncher
from tests.ptx.kernels import machine_of, module_of

N_EVENTS = 2
READS_BIDS = {"matching_match_seeds", "forward_search_without_ut"}
"""Kernels that look at a bid while other threads lower it: the first does not bid what cannot win any more, the second
only asks whether the bid is one of another kernel. What comes out does not depend on what they see."""
SEQUENCES = tuple(CHAIN.sequences)[1:]
"""The VELO chain has tests of its own."""


@cache
def simulated(sequence: str, encoding: VeloEncoding) -> Reference:
    events = full_events(N_EVENTS, 4, encoding, nu=2.0)
    return reference_of(encode_mep(CHAIN.with_sequence(sequence), events, encoding=encoding), None, sequence)


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("encoding", ["retina", "superpixel"])
def test_there_is_something_to_find(sequence: str, encoding: VeloEncoding) -> None:
    made = simulated(sequence, encoding).made
    for name in CHAIN.sequences[sequence].counts.values():
        assert np.frombuffer(made[name.name], dtype=np.uint32).sum() > N_EVENTS, name


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("block_size", [1, 32, 100, 256])
def test_results_do_not_depend_on_the_threads(sequence: str, block_size: int, backward: bool) -> None:
    encoding: VeloEncoding = "superpixel" if block_size == 100 else "retina"
    assert simulated(sequence, encoding).differences(with_block_size(block_size, backward=backward)) == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize(("block_size", "backward"), [(32, True), (64, False), (128, True)])
def test_ptx_gives_the_results_of_the_cpu(sequence: str, block_size: int, backward: bool) -> None:
    machine = machine_of(module_of("90"), backward=backward)
    launcher = PtxLauncher(machine, block_size)
    assert simulated(sequence, "retina").differences(launcher, machine.allocate) == []
    conflicts = [it for it in launcher.conflicts if not it.equal]
    assert [it.text for it in conflicts if not (it.kernel in READS_BIDS and "atomic access" in it.text)] == []
