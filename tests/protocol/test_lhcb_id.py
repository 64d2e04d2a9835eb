"""LHCbIDs of the VELO."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hltnode.protocol import RawBank
from hltnode.protocol.lhcb_id import (
    VP_TYPE,
    detector_type,
    in_2022_scheme,
    velo_channel,
    velo_lhcb_id,
    without_orientation,
)
from hltnode.protocol.truth import decode_particles
from hltnode.protocol.velo_banks import decode_superpixels

pixels = st.lists(
    st.tuples(st.integers(0, 207), st.integers(0, 2), st.integers(0, 255), st.integers(0, 255)), max_size=20
)


@given(pixels)
def test_the_pixel_comes_back_from_its_id(values: list[tuple[int, int, int, int]]) -> None:
    columns = np.array(values, np.uint32).reshape(-1, 4).T
    ids = velo_lhcb_id(*columns)
    assert ids.dtype == np.uint32
    assert detector_type(ids).tolist() == [VP_TYPE] * len(values)
    assert [array.tolist() for array in velo_channel(ids)] == columns.tolist()


def test_the_bits_are_those_of_the_format() -> None:
    one = np.array([1], np.uint32)
    assert velo_lhcb_id(one, one, one, one).tolist() == [2 << 28 | 1 << 18 | 1 << 16 | 1 << 8 | 1]


def test_orientation_does_not_change_the_pixel() -> None:
    ids = np.array([2 << 28 | 5, 2 << 28 | 1 << 26 | 5, 2 << 28 | 3 << 26 | 5], np.uint32)
    assert without_orientation(ids).tolist() == [2 << 28 | 5] * 3


def test_the_truth_of_real_events_names_lit_pixels(retina_events: list[list[RawBank]]) -> None:
    for banks in retina_events:
        sensor, column, row = decode_superpixels(banks).pixels()
        lit = velo_lhcb_id(sensor, column // 256, column % 256, row)
        truth = np.array(sorted({i for p in decode_particles(banks) for i in p.velo_ids}), np.uint32)
        # Ids are those of clusters; the pixel nearest to the centre of a cluster with a hole is not lit.
        assert np.isin(without_orientation(truth), lit).mean() > 0.96


def test_ids_of_the_old_scheme_get_the_types_of_2022_and_keep_their_channels() -> None:
    old = np.array([0x8123_4567, 0xA00F_0001, 0xB000_0002, 0x2123_4567, 0x5000_0003, 0x3000_0004], dtype=np.uint32)
    assert [hex(one) for one in in_2022_scheme(old).tolist()] == [
        "0x21234567", "0x500f0001", "0x30000002", "0x21234567", "0x50000003", "0x30000004",
    ]  # fmt: skip
