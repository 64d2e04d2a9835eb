"""Sequences with emulated blocks of many threads give the same bits for every block size and order of threads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hltnode.processing.algorithms.deliver_lists import DELIVERING
from tests.processing.chains.chain_under_test import ChainUnderTest, ComparedBatch
from tests.processing.chains.every_chain import CHAINS
from tests.processing.framework.kernel_runner import with_block_size

BATCHES = {f"{name}-{of}": batch for name, chain in CHAINS.items() for of, batch in chain.batches.items()}


@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
def test_every_batch_shows_something(batch: ComparedBatch) -> None:
    reference = batch.reference()
    assert batch.emulated or batch.ptx
    for column in batch.finds:
        assert reference.found(column) > (0 if column in batch.rare else reference.n_events), column


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_the_batches_run_every_algorithm_in_both_ways(chain: ChainUnderTest) -> None:
    # tests/processing/algorithms/test_deliver_lists.py runs the kernels of output lists.
    declared = {algorithm.name for algorithm in chain.chain.algorithms if algorithm not in DELIVERING}
    for way in ("emulated", "ptx"):
        sequences = [batch.reference().sequence for batch in chain.batches.values() if getattr(batch, way)]
        assert {algorithm.kernel for sequence in sequences for algorithm in sequence} == declared, way


def ways(block_sizes: tuple[int, ...]) -> Iterator[tuple[int, bool, bool]]:
    """Each block size with an order of its threads, backward or not, and whether that is a slow test.

    `make test` runs every size once, in alternating orders: every kernel runs in both orders there. One thread has one
    order.
    """
    backward = True
    for block_size in block_sizes:
        if block_size == 1:
            yield 1, False, False
            continue
        yield block_size, backward, False
        yield block_size, not backward, True
        backward = not backward


@pytest.mark.parametrize(
    ("chain", "name", "block_size", "backward"),
    [
        pytest.param(
            chain,
            name,
            block_size,
            backward,
            id=f"{of}-{name}-{block_size}-{backward}",
            marks=[pytest.mark.slow] if slow else [],
        )
        for of, chain in CHAINS.items()
        for name, batch in chain.batches.items()
        for block_size, backward, slow in ways(batch.emulated)
    ],
)
def test_results_do_not_depend_on_the_threads(
    chain: ChainUnderTest, name: str, block_size: int, backward: bool
) -> None:
    launch = with_block_size(block_size, backward=backward, kernels=chain.chain.kernels)
    assert chain.batches[name].reference().differences(launch) == []
