"""LHCbIDs of the VELO, the UT and the SciFi."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hltnode.protocol import RawBank
from hltnode.protocol.lhcb.banks.velo import decode_superpixels
from hltnode.protocol.lhcb.lhcb_id import (
    FT_TYPE,
    UT_TYPE,
    VP_TYPE,
    SciFiChannel,
    UtChannel,
    detector_type,
    in_2022_scheme,
    scifi_channel,
    scifi_channel_id,
    scifi_lhcb_id,
    ut_channel,
    ut_channel_id,
    ut_lhcb_id,
    velo_channel,
    velo_lhcb_id,
    without_orientation,
)
from hltnode.protocol.lhcb.truth import decode_particles

pixels = st.lists(
    st.tuples(st.integers(0, 207), st.integers(0, 2), st.integers(0, 255), st.integers(0, 255)), max_size=20
)


@given(pixels)
def test_the_pixel_is_recovered_from_its_id(values: list[tuple[int, int, int, int]]) -> None:
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


def test_the_ids_of_truth_in_real_events_are_lit_pixels(retina_events: list[list[RawBank]]) -> None:
    for banks in retina_events:
        sensor, column, row = decode_superpixels(banks).pixels()
        lit = velo_lhcb_id(sensor, column // 256, column % 256, row)
        truth = np.array(sorted({i for p in decode_particles(banks) for i in p.velo_ids}), np.uint32)
        # Ids are ids of clusters; the pixel nearest to the centre of a cluster with a hole is not lit.
        assert np.isin(without_orientation(truth), lit).mean() > 0.96


def test_ids_of_the_old_scheme_get_the_types_of_2022_and_keep_their_channels() -> None:
    old = np.array([0x8123_4567, 0xA00F_0001, 0xB000_0002, 0x2123_4567, 0x5000_0003, 0x3000_0004], dtype=np.uint32)
    assert [hex(one) for one in in_2022_scheme(old).tolist()] == [
        "0x21234567", "0x500f0001", "0x30000002", "0x21234567", "0x50000003", "0x30000004",
    ]  # fmt: skip


@given(st.data())
def test_ut_channels_are_recovered_from_their_ids(data: st.DataObject) -> None:
    limits = {"side": 1, "layer": 3, "stave": 8, "face": 1, "module": 7, "sector": 1, "strip": 511}
    values = {name: data.draw(st.integers(0, limit), name) for name, limit in limits.items()}
    channel = UtChannel(**{name: np.array([value], np.uint32) for name, value in values.items()})
    lhcb_id = ut_lhcb_id(ut_channel_id(channel))
    assert detector_type(lhcb_id).tolist() == [UT_TYPE]
    back = ut_channel(lhcb_id)
    assert {name: int(getattr(back, name)[0]) for name in limits} == values


@given(st.data())
def test_scifi_channels_are_recovered_from_their_ids(data: st.DataObject) -> None:
    limits = {"station": 3, "layer": 3, "quarter": 3, "module": 5, "mat": 3, "sipm": 3, "channel": 127}
    values = {name: data.draw(st.integers(0, limit), name) for name, limit in limits.items()}
    channel = SciFiChannel(**{name: np.array([value], np.uint32) for name, value in values.items()})
    lhcb_id = scifi_lhcb_id(scifi_channel_id(channel))
    assert detector_type(lhcb_id).tolist() == [FT_TYPE]
    back = scifi_channel(lhcb_id)
    assert {name: int(getattr(back, name)[0]) for name in limits} == values


def test_ids_of_ut_and_scifi_have_the_bits_of_the_real_ones() -> None:
    # A strip and a fibre of the real events, from the spot values of docs/physics/detector.md.
    ut = ut_channel(np.array([0x3041C943], np.uint32))
    assert [int(getattr(ut, n)[0]) for n in ("side", "layer", "stave", "module", "strip")] == [0, 0, 7, 2, 0x143]
    scifi = scifi_channel(np.array([0x500D8FA9], np.uint32))
    assert [int(getattr(scifi, n)[0]) for n in ("station", "layer", "quarter")] == [3, 1, 2]
    assert [int(getattr(scifi, n)[0]) for n in ("module", "mat", "sipm", "channel")] == [1, 3, 3, 0x29]
