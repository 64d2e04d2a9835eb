"""The chain `ccl` for the tests that hold for every chain."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

import numpy as np

from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.imaging.chain import CHAIN
from hltnode.processing.imaging.gpu_labelling.sequences import GPU_SEQUENCES
from hltnode.processing.imaging.offline.simulation.shapes import checkerboard, comb, random_cells, spiral, stairs
from hltnode.processing.imaging.pixel_lists import encode_pixels, pixels_of
from hltnode.processing.imaging.sparse_images.read_pixel_headers import read_pixel_headers
from hltnode.processing.selection.trigger_chain import TriggerChain
from tests.processing.chains.chain_under_test import ChainUnderTest, ComparedBatch
from tests.processing.chains.reference import Reference, run_reference
from tests.processing.imaging.fuzzed_strips import DAMAGE, FUZZED_STRIPS
from tests.processing.imaging.gpu_labelling.sequences_under_test import COLUMNS as GPU_COLUMNS
from tests.processing.imaging.image_events import COLUMNS, mep_of_images
from tests.processing.imaging.sparse_images.fuzzed_pixel_lists import FUZZED_PIXEL_LISTS
from tests.processing.imaging.sparse_images.sparse_events import COLUMNS as SPARSE_COLUMNS
from tests.processing.imaging.sparse_images.sparse_events import SEQUENCE
from tests.ptx.machine import Conflict

BLOCK_SIZES = (1, 32, 100, 256)
JOINING = (
    *("ccl_label_runs", "ccl_label_image", "ccl_label_pixels", "ccl_join_runs", "ccl_join_borders", "ccl_join_groups"),
    *(
        "ccl_naive_label",
        "ccl_playne_label",
        "ccl_merge_pixels",
        "ccl_ha4_32_label",
        "ccl_ha4_32_merge",
        "ccl_ha4_64_label",
    ),
    *("ccl_ha4_32_otf_label", "ccl_ha4_32_otf_merge"),
    *("ccl_ha4_64_merge", "ccl_ha4_otf_label", "ccl_ha4_otf_merge", "ccl_flsl_label", "ccl_flsl_merge"),
    *("ccl_flsl_otf_label", "ccl_flsl_otf_merge"),
)
COMPARED = (*COLUMNS, "image_rows.data")


def images(seed: int, n: int, side: int) -> EncodedMep:
    """Shapes and random images of 1 bit, and random ones of 8 bits, in strips of several rows."""
    rng = np.random.default_rng(seed)
    masks = [shape(side, side - 3) for shape in (spiral, comb, stairs, checkerboard)]
    masks += [random_cells(side + i, side - i, 0.1 + 0.8 * i / n, 1 + i % 3, (seed, i)) for i in range(n)]
    grey = [(mask * rng.integers(1, 256, mask.shape)).astype(np.uint8) for mask in masks[-n // 2 :]]
    return mep_of_images([*masks, *grey], rows_per_strip=5)


@cache
def reference(seed: int, n: int, side: int, sequence: str | None = None) -> Reference:
    """Images through a sequence of the chain."""
    return run_reference(CHAIN, images(seed, n, side), {}, sequence, COMPARED)


@cache
def gpu_reference(sequence: str) -> Reference:
    """An image with parts of several rows, and a grey one; rows are longer than a chunk of 64 pixels."""
    grey = np.random.default_rng(6).integers(0, 2, (5, 67)) * np.random.default_rng(7).integers(1, 256, (5, 67))
    mep = mep_of_images([random_cells(67, 132, 0.6, 1, (5,)), grey.astype(np.uint8)], rows_per_strip=50)
    return run_reference(CHAIN, mep, {}, sequence, GPU_COLUMNS)


def gpu_batches() -> dict[str, ComparedBatch]:
    """Each labelling sequence for GPUs."""
    return {
        sequence: ComparedBatch(
            reference=partial(gpu_reference, sequence),
            finds=("all_components.count",),
            emulated=(32, 100, 256),
            ptx=((128, i % 2 == 0),),
        )
        for i, sequence in enumerate(GPU_SEQUENCES)
    }


def pixel_lists(seed: int, n: int, side: int) -> EncodedMep:
    """Lists of the pixels of random images in any order, a tenth of them twice, in several banks."""
    rng = np.random.default_rng(seed)
    events = []
    for i in range(n):
        pixels = pixels_of(random_cells(side + i, side - i, i / n, 1 + i % 2, (seed, i)))
        pixels = rng.permutation(np.concatenate([pixels, pixels[::10]]))
        events.append(encode_pixels(pixels, side + i, side - i, 30))
    return encode_mep(CHAIN.with_sequence(SEQUENCE), events)


@cache
def sparse_reference(seed: int, n: int, side: int) -> Reference:
    """Lists of pixels through the sequence for them."""
    return run_reference(CHAIN, pixel_lists(seed, n, side), {}, SEQUENCE, SPARSE_COLUMNS)


def meps(chain: TriggerChain, seed: int) -> Iterator[EncodedMep]:
    """Images of 1 and of 8 bits, or lists of pixels."""
    yield pixel_lists(seed, 4, 24) if read_pixel_headers in tuple(chain.sequence) else images(seed, 3, 24)


def harmless(conflict: Conflict) -> bool:
    """Writes of equal values; parents that another thread lowers meanwhile: both values lead to the same root."""
    return conflict.equal or (conflict.kernel in JOINING and "atomic access" in conflict.text)


CHAIN_UNDER_TEST = ChainUnderTest(
    chain=CHAIN,
    batches={
        "images": ComparedBatch(
            reference=lambda: reference(1, 8, 70), finds=("all_components.count",), emulated=BLOCK_SIZES
        ),
        "images-by-ptx": ComparedBatch(
            reference=lambda: reference(2, 2, 40),
            finds=("all_components.count",),
            ptx=tuple((size, backward) for size in (32, 100, 256) for backward in (False, True)),
        ),
        # Of a part of 1 or 2 rows up to several of them.
        "large-images": ComparedBatch(
            reference=lambda: reference(3, 4, 90, "large_images"),
            finds=("all_components.count",),
            emulated=BLOCK_SIZES,
        ),
        "large-images-by-ptx": ComparedBatch(
            reference=lambda: reference(4, 2, 70, "large_images"),
            finds=("all_components.count",),
            ptx=((32, False), (100, True)),
        ),
        "sparse-images": ComparedBatch(
            reference=lambda: sparse_reference(5, 6, 30), finds=("all_components.count",), emulated=BLOCK_SIZES
        ),
        "sparse-images-by-ptx": ComparedBatch(
            reference=lambda: sparse_reference(6, 4, 14),
            finds=("all_components.count",),
            ptx=((32, False), (100, True)),
        ),
        # The common kernel, which is that of the default sequence: one size of blocks is enough.
        "cpu-labelling": ComparedBatch(
            reference=lambda: reference(5, 2, 40, "cpu_labelling"),
            finds=("all_components.count",),
            emulated=(100,),
            ptx=((32, False),),
        ),
        **gpu_batches(),
    },
    shared_batches=("images-by-ptx", "large-images-by-ptx", "sparse-images-by-ptx"),
    meps=meps,
    damage=DAMAGE,
    fuzzed=(FUZZED_STRIPS, FUZZED_PIXEL_LISTS),
    harmless=harmless,
)
