"""The more expensive tests of the VELO kernels by PTX: real events, many damaged events, and missing barriers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.framework.declaration import Algorithm
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.lhcb.chain import CHAIN, HLT1_SEQUENCE
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.banks.velo_encoding import VeloEncoding
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.processing.lhcb.velo.tracking.sort_by_phi import sort_by_phi
from tests.processing.chains.damage import MFP_HEADER
from tests.processing.chains.reference import Reference
from tests.processing.framework.kernel_runner import run_algorithms
from tests.processing.lhcb.chain_under_test import harmless, velo_events
from tests.processing.lhcb.velo.velo_chain import real_events
from tests.processing.lhcb.whole_chain import reference_of
from tests.ptx.chain import PtxLauncher
from tests.ptx.kernels import machine_of, module_of
from tests.ptx.machine import KernelError
from tests.ptx.parser import Module, Statement


def run(reference: Reference, architecture: str, block_size: int | None, *, backward: bool = False) -> None:
    """Run a batch by PTX; fails if a result differs or accesses conflict."""
    machine = machine_of(module_of(architecture), backward=backward)
    launcher = PtxLauncher(machine, block_size)
    assert reference.differences(launcher, machine.allocate) == []
    assert [conflict.text for conflict in launcher.conflicts if not harmless(conflict)] == []


def is_noticed(module: Module, algorithms: Sequence[Algorithm]) -> bool:
    """Whether accesses of the last algorithm conflict, or it reads invalid values."""
    machine = machine_of(module)
    launcher = PtxLauncher(machine, 64)
    batch = velo_events("retina", 2)
    try:
        run_algorithms(algorithms, batch.given, batch.n_events, batch.limits, launcher, allocate=machine.allocate)
    except KernelError as error:
        return algorithms[-1].name in str(error)
    return algorithms[-1].name in {conflict.kernel for conflict in launcher.conflicts if not conflict.equal}


def test_a_barrier_that_is_taken_away_is_noticed() -> None:
    module = module_of("90")
    kernel = module.kernels[sort_by_phi.name]
    algorithms = tuple(HLT1_SEQUENCE)[: tuple(HLT1_SEQUENCE).index(sort_by_phi) + 1]
    barriers = [i for i, statement in enumerate(kernel.statements) if statement.opcode == "bar.sync"]
    noticed = 0
    for barrier in barriers:
        statements = list(kernel.statements)
        statements[barrier] = Statement("mov.u32 %r0, %r0", "mov.u32", ("%r0", "%r0"))
        damaged = replace(module, kernels={**module.kernels, kernel.name: replace(kernel, statements=statements)})
        noticed += is_noticed(damaged, algorithms)
    assert not is_noticed(module, algorithms)
    # The second barrier of a prefix sum protects its scratch memory from the next prefix sum; here none follows.
    assert noticed == len(barriers) - 1 > 3


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("encoding", ["retina", "superpixel"])
@pytest.mark.parametrize("block_size", [32, 64, 100, 128, 256])
@pytest.mark.parametrize("architecture", ["80", "90", "100"])
def test_ptx_gives_the_results_of_the_cpu_on_the_real_events(
    shared: Path, architecture: str, block_size: int, encoding: VeloEncoding
) -> None:
    mep = encode_mep(CHAIN, real_events(shared, encoding), encoding=encoding)
    run(reference_of(mep, VeloGeometry.load(shared / "data" / "lhcb-geometry")), architecture, block_size)


def damaged(mep: EncodedMep, seed: int) -> EncodedMep:
    """Change some bytes of each MFP behind its header: sizes, types and payloads of fragments."""
    rng = np.random.default_rng(seed)
    data = mep.data.copy()
    for _, offset, size in mep.fragments:
        content = data[offset + MFP_HEADER : offset + size]
        wrong = rng.random(len(content)) < rng.choice([0.0, 0.01, 0.2])
        content[wrong] = rng.integers(0, 256, int(wrong.sum()), dtype=np.uint8)
    return replace(mep, data=data)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("encoding", ["retina", "superpixel"])
@pytest.mark.parametrize("first_seed", range(0, 250, 50))
def test_damaged_data_lead_out_of_no_buffer_and_give_the_results_of_the_cpu(
    encoding: VeloEncoding, first_seed: int
) -> None:
    geometry = VeloGeometry.builtin()
    events = list(simulate_events(2, seed=4, geometry=geometry, velo_banks=encoding))
    mep = encode_mep(CHAIN, events, encoding=encoding)
    for seed in range(first_seed, first_seed + 50):
        print("seed", seed)
        run(reference_of(damaged(mep, seed), geometry), "90", 64, backward=seed % 2 == 1)
