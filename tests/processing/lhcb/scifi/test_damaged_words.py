"""Damaged SciFi words that pass more checks than random bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hltnode.processing.framework.flags import EventFlag
from tests.processing.chains.damage import fragment_places
from tests.processing.framework.kernel_runner import with_block_size
from tests.processing.lhcb.scifi.fuzzed_scifi import FUZZED_SCIFI, GEOMETRY, N_EVENTS, check, sample
from tests.processing.lhcb.scifi.scifi_chain import scifi_chain
from tests.processing.lhcb.scifi.scifi_reference import Reference


@pytest.mark.parametrize("seed", range(6))
def test_many_threads_make_the_same_of_damaged_data(seed: int) -> None:
    mep = sample(FUZZED_SCIFI.variants[seed % 3]).mep
    rng = np.random.default_rng(seed)
    data = mep.data.copy()
    mfps = FUZZED_SCIFI.mfps(mep)
    for index in rng.integers(0, len(mfps), 60):
        start, size = fragment_places(mep, mfps[index][0], int(rng.integers(0, N_EVENTS)))
        words = data[start : start + size // 2 * 2].view("<u2")
        damaged = rng.random(len(words)) < 0.3
        words[damaged] ^= (1 << rng.integers(0, 16, int(damaged.sum()))).astype(np.uint16)
    reference = Reference(GEOMETRY, replace(mep, data=data))
    assert all(event.flags == EventFlag.BANK_ERROR for event in reference.events)
    assert reference.differences(with_block_size(64, backward=seed % 2 == 1, kernels=scifi_chain().kernels)) == []


@pytest.mark.parametrize("seed", range(3))
def test_rising_words_with_random_edges_are_survived(seed: int) -> None:
    """Words that pass every check except the check of the number of hits."""
    of_version = sample(5)
    mep = of_version.mep
    rng = np.random.default_rng(seed)
    data = mep.data.copy()
    for offset, _ in FUZZED_SCIFI.mfps(mep):
        for event in range(N_EVENTS):
            start, size = fragment_places(mep, offset, event)
            n = min((size - 4) // 2, 60)
            channels = np.sort(rng.choice(2048, n, replace=False))
            data[start + 4 : start + 4 + 2 * n].view("<u2")[:] = channels << 2 | rng.integers(0, 4, n)
    check(of_version.run(replace(mep, data=data)))
