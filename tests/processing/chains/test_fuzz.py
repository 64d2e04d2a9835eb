"""Damaged banks: for any bytes, the results are valid and other events do not change.

test_sanitized_kernels.py shows that kernels stay inside their buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.processing.chains.damage import MFP_HEADER, fragment_places
from tests.processing.chains.every_chain import CHAINS
from tests.processing.chains.fuzzed_detector import FoundEvent, FuzzedDetector

DETECTORS = {f"{name}-{of.name}": of for name, chain in CHAINS.items() for of in chain.fuzzed}
VARIANTS = [(of, variant) for of in DETECTORS.values() for variant in of.variants]
VARIANT_IDS = [f"{name}-{variant}" for name, of in DETECTORS.items() for variant in of.variants]


@pytest.fixture(params=DETECTORS.values(), ids=list(DETECTORS))
def detector(request: pytest.FixtureRequest) -> FuzzedDetector:
    """Every detector of every chain."""
    assert isinstance(request.param, FuzzedDetector)
    return request.param


def assert_same(found: Sequence[FoundEvent], expected: Sequence[FoundEvent], but: int | None = None) -> None:
    """All events except one are equal bit by bit."""
    assert len(found) == len(expected)
    for event, (one, other) in enumerate(zip(found, expected, strict=True)):
        if event != but:
            assert one.same_as(other), f"event {event}"


def test_damaged_payloads_harm_no_other_event(detector: FuzzedDetector) -> None:
    n_events = detector.sample(detector.variants[0]).mep.n_events

    @settings(max_examples=detector.payload_examples)
    @given(st.sampled_from(detector.variants), st.integers(0, n_events - 1), st.integers(0, 2**32 - 1))
    def damage_one_event(variant: object, damaged_event: int, seed: int) -> None:
        sample = detector.sample(variant)
        rng = np.random.default_rng(seed)
        data = sample.mep.data.copy()
        mfps = detector.mfps(sample.mep)
        for index in rng.integers(0, len(mfps), detector.payloads):
            start, size = fragment_places(sample.mep, mfps[index][0], damaged_event)
            damaged = rng.integers(0, 256, size, dtype=np.uint8)
            if detector.head is not None and rng.random() < 0.5:
                damaged[detector.head :] = data[start + detector.head : start + size]
            kept = data[start : start + size]
            data[start : start + size] = np.where(rng.random(size) < rng.random(), damaged, kept)
        events = sample.run(replace(sample.mep, data=data))
        detector.check(events)
        assert_same(events, sample.expected, but=damaged_event)

    damage_one_event()


def test_damaged_headers_types_sizes_and_versions_are_survived(detector: FuzzedDetector) -> None:
    @settings(max_examples=detector.header_examples)
    @given(st.sampled_from(detector.variants), st.integers(0, 2**32 - 1))
    def damage_headers(variant: object, seed: int) -> None:
        sample = detector.sample(variant)
        rng = np.random.default_rng(seed)
        data = sample.mep.data.copy()
        mfps = detector.mfps(sample.mep)
        for index in rng.integers(0, len(mfps), rng.integers(1, detector.headers)):
            offset, size = mfps[index]
            detector.damage.damage_a_header(sample.mep, data, offset, size, rng)
        detector.check(sample.run(replace(sample.mep, data=data)))

    damage_headers()


@pytest.mark.parametrize(("detector", "variant"), VARIANTS, ids=VARIANT_IDS)
def test_stuck_values_are_survived(detector: FuzzedDetector, variant: object) -> None:
    sample = detector.sample(variant)
    stuck = detector.stuck
    width = np.dtype(stuck.dtype).itemsize
    for value in stuck.values:
        print("value", hex(value))
        data = sample.mep.data.copy()
        for offset, _ in detector.mfps(sample.mep):
            for event in range(sample.mep.n_events):
                start, size = fragment_places(sample.mep, offset, event)
                words = data[start + stuck.keep(variant) : start + size]
                words[: len(words) // width * width].view(stuck.dtype)[:] = value
        assert not np.array_equal(data, sample.mep.data)
        detector.check(sample.run(replace(sample.mep, data=data)))
        assert_same(sample.run(sample.mep), sample.expected)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("detector", "variant"), VARIANTS, ids=VARIANT_IDS)
def test_random_bytes_instead_of_banks_are_survived(detector: FuzzedDetector, variant: object, seed: int) -> None:
    sample = detector.sample(variant)
    rng = np.random.default_rng(seed)
    data = sample.mep.data.copy()
    for offset, size in detector.mfps(sample.mep):
        data[offset + MFP_HEADER : offset + size] = rng.integers(0, 256, size - MFP_HEADER, dtype=np.uint8)
    detector.check(sample.run(replace(sample.mep, data=data)))
