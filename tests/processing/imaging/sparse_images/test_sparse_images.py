"""The sequence `sparse_images`: lists of pixels have the components of their images, by every method."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.imaging.chain import CHAIN
from hltnode.processing.imaging.components.collections import MAX_COMPONENTS
from hltnode.processing.imaging.offline.simulation.shapes import (
    checkerboard,
    comb,
    full,
    random_cells,
    spiral,
    stairs,
)
from hltnode.processing.imaging.pixel_lists import (
    MAX_PIXELS,
    PIXEL_LIST_TYPE,
    PIXEL_LIST_VERSION,
    decode_pixels,
    encode_pixels,
    pixels_of,
)
from hltnode.processing.imaging.sparse_images.label_pixels import METHODS
from hltnode.processing.imaging.strips import MAX_SIDE, encode_image, strip_source
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.protocol.errors import BankError
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.chains.reference import run_reference
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms
from tests.processing.imaging.component_oracle import expected_features, expected_labels, in_raster_order
from tests.processing.imaging.image_events import label_images, labelling
from tests.processing.imaging.sparse_images.sparse_events import (
    COLUMNS,
    SEQUENCE,
    LabelledPixels,
    label_pixel_banks,
    label_pixel_lists,
    sparse_labelling,
)

LIBRARY = KernelLibrary(CHAIN.kernels)
PixelList = tuple[NDArray[Any], int, int]
every_method = pytest.mark.parametrize("method", METHODS)


def images() -> list[NDArray[np.bool_]]:
    """Shapes, and random images of all densities; some have rows with more pixels than a row of the row table."""
    rng = np.random.default_rng(11)
    made = [shape(61, 50) for shape in (full, checkerboard, comb, stairs, spiral)]
    made += [shape(*size) for shape in (full, spiral) for size in ((1, 1), (1, 70), (70, 1))]
    # The largest image with a bit for each pixel in a CPU form, and a larger one.
    made += [random_cells(*size, 0.001, 2, (5,)) for size in ((1024, 1024), (1025, 1024))]
    made += [np.zeros((9, 5), np.bool_), random_cells(768, 256, 0.01, 1, (3,)), random_cells(768, 256, 0.02, 2, (3,))]
    made += [
        random_cells(int(rng.integers(1, 100)), int(rng.integers(1, 60)), i / 30, 1 + i % 4, (11, i)) for i in range(31)
    ]
    return made


IMAGES = images()
_RNG = np.random.default_rng(2)
IN_ORDER: list[PixelList] = [(pixels_of(image), image.shape[1], image.shape[0]) for image in IMAGES]
SHUFFLED: list[PixelList] = [(_RNG.permutation(pixels), width, height) for pixels, width, height in IN_ORDER]


def assert_as_by_scipy(found: LabelledPixels, image: NDArray[np.bool_], *, diagonal: bool, shuffled: bool) -> None:
    labels = expected_labels(image, diagonal=diagonal)
    features = expected_features(image, labels)
    own = found.image(image.shape)
    np.testing.assert_array_equal(in_raster_order(own), labels)
    assert found.n_components == len(features)
    # Components are numbered by their first pixels in the list.
    first = {int(label): i for i, label in reversed(list(enumerate(found.labels)))}
    assert sorted(first, key=first.__getitem__) == list(range(found.n_components))
    names = np.full(len(features), -1)
    names[own[own >= 0]] = labels[own >= 0]
    assert shuffled or (names == np.arange(len(features))).all()
    for name in found.features.dtype.names or ():
        np.testing.assert_array_equal(found.features[name], features[name][names[: len(found.features)]], err_msg=name)
    assert found.flags == 0, found.flag_names


@every_method
@pytest.mark.parametrize("diagonal", [1, 0], ids=["8", "4"])
def test_lists_in_any_order_have_the_components_that_scipy_finds_in_the_image(method: str, diagonal: int) -> None:
    configuration = sparse_labelling(method, diagonal)
    for lists, per_bank in ((IN_ORDER, None), (SHUFFLED, 500)):
        found = label_pixel_lists(lists, configuration, per_bank)
        for of_event, image in zip(found, IMAGES, strict=True):
            assert_as_by_scipy(of_event, image, diagonal=bool(diagonal), shuffled=lists is SHUFFLED)


def test_a_list_in_raster_order_has_the_features_of_the_strips_of_its_image() -> None:
    sparse = label_pixel_lists(IN_ORDER)
    dense = label_images(IMAGES, labelling())
    assert [one.features.tobytes() for one in sparse] == [one.features.tobytes() for one in dense]


def test_all_methods_and_the_common_kernel_give_the_same_bytes() -> None:
    rng = np.random.default_rng(4)
    lists = [*SHUFFLED]
    for pixels, width, height in SHUFFLED[-20:]:
        # A third of the pixels twice, and some outside of the image.
        again = rng.permutation(np.concatenate([pixels, pixels[::3]]))
        lists.append((again, width, height))
    events = [encode_pixels(*of_event) for of_event in lists]
    events[-1] = [smaller(bank, width=lists[-1][1] // 2) for bank in events[-1]]
    expected = label_pixel_banks(events, sparse_labelling("ordered"))
    assert expected[-1].flag_names == ["BAD_PIXELS"]
    for method in METHODS:
        found = label_pixel_banks(events, sparse_labelling(method))
        assert all(one.same_as(other) for one, other in zip(found, expected, strict=True)), method


def reference_of(lists: list[PixelList]) -> Any:
    mep = encode_mep(CHAIN.with_sequence(SEQUENCE), [encode_pixels(*of_event) for of_event in lists])
    return run_reference(CHAIN, mep, {}, SEQUENCE, COLUMNS)


@pytest.mark.parametrize("target", LIBRARY.targets)
def test_each_instruction_set_gives_the_labels_of_the_common_kernel(target: str) -> None:
    twice = [(np.concatenate([pixels, pixels[::5]]), width, height) for pixels, width, height in SHUFFLED[-9:]]
    made = reference_of([*SHUFFLED[:13], *twice])
    for method in METHODS:
        trigger = TriggerConfig.from_toml(sparse_labelling(method), CHAIN.menu)
        algorithms = tuple(trigger.configure(made.sequence))
        form, common = (
            run_algorithms(
                algorithms,
                made.given,
                made.n_events,
                made.limits,
                partial(on_cpu, kernels=CHAIN.kernels)(target, common=common),
            )
            for common in (False, True)
        )
        for name in made.made:
            np.testing.assert_array_equal(form[name], common[name], err_msg=f"{name}, {method}")


def smaller(bank: RawBank, **of: int) -> RawBank:
    """The bank with another width, height, number of pixels or size of a pixel in its header."""
    header = dict(
        zip(
            ("first", "count", "total", "unit", "width", "height"), struct.unpack("<6I", bank.payload[:24]), strict=True
        )
    )
    header |= of
    return bank._replace(payload=memoryview(struct.pack("<6I", *header.values()) + bytes(bank.payload[24:])))


PIXELS = np.array([(3, 2), (4, 3), (9, 9), (0, 0), (9, 0)])
Change = Callable[[list[RawBank]], list[RawBank]]


@pytest.mark.parametrize(
    ("change", "flags", "areas"),
    [
        (lambda banks: banks, [], [2, 1, 1, 1]),
        (lambda banks: banks[::-1], [], [2, 1, 1, 1]),
        (lambda _: [], ["NO_IMAGE"], []),
        (lambda banks: banks[1:], ["MISSING_PIXELS"], [1, 1, 1]),
        (lambda banks: [*banks, banks[0]._replace(source_id=strip_source(9))], ["BAD_PIXELS"], [2, 1, 1, 1]),
        (lambda banks: [*banks[:2], smaller(banks[2], width=11)], ["STRIP_MISMATCH", "MISSING_PIXELS"], [2, 1, 1]),
        (lambda banks: [*banks[:2], smaller(banks[2], height=9)], ["STRIP_MISMATCH", "MISSING_PIXELS"], [2, 1, 1]),
        (lambda banks: [*banks[:2], smaller(banks[2], total=6)], ["STRIP_MISMATCH", "MISSING_PIXELS"], [2, 1, 1]),
        (lambda banks: [*banks[:2], smaller(banks[2], unit=8)], ["BAD_STRIP", "MISSING_PIXELS"], [2, 1, 1]),
        (lambda banks: [*banks[:2], smaller(banks[2], count=2)], ["BAD_STRIP", "MISSING_PIXELS"], [2, 1, 1]),
        (lambda banks: [*banks[:2], smaller(banks[2], width=0)], ["BAD_STRIP", "MISSING_PIXELS"], [2, 1, 1]),
        (
            lambda banks: [*banks[:2], banks[2]._replace(version=2, source_id=strip_source(9))],
            ["BANK_ERROR", "MISSING_PIXELS"],
            [2, 1, 1],
        ),
        (lambda _: encode_image(full(10, 10)), ["BANK_ERROR", "NO_IMAGE"], []),
        (lambda banks: [smaller(bank, width=9) for bank in banks], ["BAD_PIXELS"], [2, 1]),
        (lambda banks: [smaller(bank, height=9) for bank in banks], ["BAD_PIXELS"], [2, 1, 1]),
        (lambda banks: [smaller(bank, width=MAX_SIDE) for bank in banks], [], [2, 1, 1, 1]),
        (lambda banks: [smaller(bank, height=MAX_SIDE + 1) for bank in banks], ["IMAGE_TOO_LARGE"], []),
        (lambda _: encode_pixels(np.zeros((0, 2), np.int64), 10, 10), [], []),
    ],
)
def test_an_odd_event_has_its_flags_and_its_neighbours_none(change: Change, flags: list[str], areas: list[int]) -> None:
    usual = encode_pixels(PIXELS, 10, 10, 2)
    before, found, after = label_pixel_banks([usual, change(usual), usual])
    assert found.flag_names == flags
    assert found.features["area"].tolist() == areas
    assert bool(found.flags & CHAIN.flag_table.errors) == bool(flags)
    for neighbour in (before, after):
        assert neighbour.flags == 0
        assert neighbour.features["area"].tolist() == [2, 1, 1, 1]


def test_images_with_more_pixels_or_components_than_allowed_are_flagged_and_counted() -> None:
    block = pixels_of(full(256, 257))
    dots = pixels_of(full(65, 64)) * 2
    most, beyond, exact, many = label_pixel_lists(
        [
            (block[:MAX_PIXELS], 256, 257),
            (block[: MAX_PIXELS + 1], 256, 257),
            (dots[:MAX_COMPONENTS], 200, 200),
            (dots, 200, 200),
        ]
    )
    assert (most.flags, most.features["area"].tolist()) == (0, [MAX_PIXELS])
    assert (beyond.flag_names, beyond.n_components) == (["TOO_MANY_PIXELS"], 0)
    assert (exact.flags, exact.n_components, len(exact.features)) == (0, MAX_COMPONENTS, MAX_COMPONENTS)
    assert (many.n_components, len(many.features)) == (65 * 64, MAX_COMPONENTS)
    assert many.flag_names == ["TOO_MANY_COMPONENTS"]
    more = sparse_labelling() + f"[sequence.ccl_place_pixels]\nmax_components = {65 * 64}\n"
    (many,) = label_pixel_lists([(dots, 200, 200)], more)
    assert (many.flags, len(many.features)) == (0, 65 * 64)


def test_lists_are_read_back_from_their_banks() -> None:
    for pixels, width, height in IN_ORDER[:12]:
        found, *shape = decode_pixels(encode_pixels(pixels, width, height, 100))
        assert shape == [width, height]
        np.testing.assert_array_equal(found, pixels)
    with pytest.raises(BankError, match="no list of pixels"):
        decode_pixels(encode_image(full(3, 3)))
    with pytest.raises(BankError, match="2 images"):
        decode_pixels([*encode_pixels(PIXELS, 10, 10), smaller(encode_pixels(PIXELS, 10, 10)[0], width=11)])
    with pytest.raises(ValueError, match="all in 9 x 10"):
        encode_pixels(PIXELS, 9, 10)
    with pytest.raises(ValueError, match="each side"):
        encode_pixels(PIXELS, MAX_SIDE + 1, 10)
    assert {(bank.type, bank.version) for bank in encode_pixels(PIXELS, 10, 10)} == {
        (PIXEL_LIST_TYPE, PIXEL_LIST_VERSION)
    }
