"""The strips of images for the test that damages them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.imaging.components.collections import MAX_COMPONENTS
from hltnode.processing.imaging.images.flags import TOO_MANY_COMPONENTS
from hltnode.processing.imaging.strips import IMAGE_SUBDETECTORS, MAX_SIDE
from tests.processing.chains.damage import Damage
from tests.processing.chains.fuzzed_detector import FuzzedDetector, FuzzedSample, StuckValues
from tests.processing.imaging.component_oracle import in_raster_order
from tests.processing.imaging.image_events import Labelled, mep_of_images, run_chain

DAMAGE = Damage(versions=(0, 1, 2, 255), types=(0, 1, 2, 16, 240, 254, 255))


@cache
def sample(bits: int) -> FuzzedSample:
    """Small images of several strips."""
    rng = np.random.default_rng(bits)
    masks = [rng.random((rng.integers(3, 12), rng.integers(1, 80))) < 0.5 for _ in range(4)]
    images = masks if bits == 1 else [(mask * rng.integers(1, 256, mask.shape)).astype(np.uint8) for mask in masks]
    mep = mep_of_images(images, rows_per_strip=2)
    return FuzzedSample(mep, run, run(mep))


def run(mep: EncodedMep) -> list[Labelled]:
    """The events of a MEP through the chain."""
    return run_chain([mep])[0]


def check(events: Sequence[Labelled]) -> None:
    """Whatever the banks are, labels are a partition in raster order and features are those of the labels."""
    for event in events:
        assert max(event.labels.shape) <= MAX_SIDE
        n = event.n_components
        assert np.array_equal(event.labels, in_raster_order(event.labels))
        assert int(event.labels.max(initial=-1)) + 1 == n
        assert len(event.features) == min(n, MAX_COMPONENTS)
        assert bool(event.flags & TOO_MANY_COMPONENTS.mask) == (n > MAX_COMPONENTS)
        assert not event.flags & EventFlag.OVERFLOW
        areas = np.bincount(event.labels[event.labels >= 0], minlength=n)[:MAX_COMPONENTS]
        assert event.features["area"].tolist() == areas.tolist()
        height, width = event.labels.shape
        if n:
            assert event.features["right"].max() < width
            assert event.features["bottom"].max() < height


FUZZED_STRIPS = FuzzedDetector(
    name="strips",
    variants=(1, 8),
    sample=sample,
    subdetectors=frozenset(IMAGE_SUBDETECTORS),
    check=check,
    damage=DAMAGE,
    stuck=StuckValues((0, 0xFF, 0x55), dtype="u1", keep=lambda _: 24),
    head=24,
    payloads=6,
    headers=8,
    payload_examples=20,
    header_examples=30,
)
