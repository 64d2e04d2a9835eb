"""Lists of pixels for the test that damages them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.imaging.chain import CHAIN
from hltnode.processing.imaging.pixel_lists import MAX_PIXELS, encode_pixels, pixels_of
from hltnode.processing.imaging.strips import IMAGE_SUBDETECTORS, MAX_SIDE
from tests.processing.chains.damage import Damage
from tests.processing.chains.fuzzed_detector import FuzzedDetector, FuzzedSample, StuckValues
from tests.processing.imaging.sparse_images.sparse_events import NO_PIXEL, SEQUENCE, LabelledPixels, label_mep

DAMAGE = Damage(versions=(0, 1, 2, 255), types=(0, 1, 2, 16, 240, 254, 255))


@cache
def sample(per_bank: int) -> FuzzedSample:
    """Small images in several banks."""
    rng = np.random.default_rng(per_bank)
    masks = [rng.random((rng.integers(3, 12), rng.integers(1, 80))) < 0.3 for _ in range(4)]
    lists = [encode_pixels(pixels_of(mask), mask.shape[1], mask.shape[0], per_bank) for mask in masks]
    mep = encode_mep(CHAIN.with_sequence(SEQUENCE), lists)
    return FuzzedSample(mep, label_mep, label_mep(mep))


def check(events: Sequence[LabelledPixels]) -> None:
    """Whatever the banks are, each pixel in the image has a component, and areas are those of the labels."""
    for event in events:
        inside = event.positions != NO_PIXEL
        assert len(event.positions) <= MAX_PIXELS
        assert np.array_equal(inside, event.labels != NO_PIXEL)
        assert len(np.unique(event.positions[inside])) == np.count_nonzero(inside)
        assert (event.positions[inside] >> 16 < MAX_SIDE).all()
        assert (event.positions[inside] & 0xFFFF < MAX_SIDE).all()
        areas = np.bincount(event.labels[inside], minlength=event.n_components)
        assert event.features["area"].tolist() == areas.tolist()
        assert not event.flags & EventFlag.OVERFLOW


FUZZED_PIXEL_LISTS = FuzzedDetector(
    name="pixel lists",
    variants=(20, 200),
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
