"""The executed PTX of each chain's kernels gives the results of the CPU back end bit by bit, without conflicts."""

from __future__ import annotations

import pytest

from hltnode.processing.framework.collections import Role
from hltnode.processing.framework.memory_plan import plan_memory
from tests.processing.chains.chain_under_test import ChainUnderTest
from tests.processing.chains.every_chain import CHAINS
from tests.ptx.chain import PtxLauncher
from tests.ptx.kernels import machine_of, module_of

ARCHITECTURE = "90"


def harmful_conflicts(chain: ChainUnderTest, launcher: PtxLauncher) -> list[str]:
    """Conflicts that may change a result."""
    return [conflict.text for conflict in launcher.conflicts if not chain.harmless(conflict)]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("chain", "name", "block_size", "backward"),
    [
        pytest.param(chain, name, *way, id=f"{of}-{name}-{way[0]}-{way[1]}")
        for of, chain in CHAINS.items()
        for name, batch in chain.batches.items()
        for way in batch.ptx
    ],
)
def test_ptx_gives_the_results_of_the_cpu_and_no_accesses_conflict(
    chain: ChainUnderTest, name: str, block_size: int, backward: bool
) -> None:
    reference = chain.batches[name].reference()
    machine = machine_of(module_of(ARCHITECTURE, chain.chain.kernels), backward=backward)
    launcher = PtxLauncher(machine, block_size)
    assert reference.differences(launcher, machine.allocate) == []
    assert harmful_conflicts(chain, launcher) == []
    assert {launched.algorithm.name for launched in launcher.launched} == {it.name for it in reference.sequence}
    costs = launcher.costs(reference.n_events)
    assert all(0 < cost.active_lanes <= 32 for cost in costs.values())
    assert max(cost.warp_instructions for cost in costs.values()) > 1000


@pytest.mark.parametrize(
    ("chain", "name"),
    [pytest.param(chain, name, id=f"{of}-{name}") for of, chain in CHAINS.items() for name in chain.shared_batches],
)
def test_no_accesses_conflict_where_columns_share_memory(chain: ChainUnderTest, name: str) -> None:
    reference = chain.batches[name].reference()
    plan = plan_memory(reference.sequence, reference.limits, fuse_events=False)
    machine = machine_of(module_of(ARCHITECTURE, chain.chain.kernels))
    launcher = PtxLauncher(machine)
    different = set(reference.differences(launcher, machine.allocate, plan=plan))
    assert different & {column.name for column in reference.sequence.columns if column.role & Role.OUTPUT} == set()
    assert harmful_conflicts(chain, launcher) == []
