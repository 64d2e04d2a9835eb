"""The tables of a batch."""

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.batch import (
    BATCH_HEADER,
    EVENT_ROW,
    MFP_ROW,
    N_SUBDETECTORS,
    ROW_RANGE,
    BatchTables,
    MepInBatch,
)
from hltnode.processing.framework.flags import EventFlag

VERSION_AT = 19
SIZE = 1024


def filled(meps: list[MepInBatch], data: NDArray[np.uint8]) -> BatchTables:
    """Tables with other content before."""
    tables = BatchTables(
        np.zeros(1, BATCH_HEADER.dtype),
        np.zeros(8, MFP_ROW.dtype),
        np.full((4, N_SUBDETECTORS), 9, ROW_RANGE.dtype),
        np.zeros(SIZE, EVENT_ROW.dtype),
        np.ones(SIZE, np.uint32),
    )
    tables.fill(meps, data)
    return tables


def test_meps_of_one_source_have_the_tables_of_meps_of_several() -> None:
    """A source of the first, of the last and of another sub-detector, alone and beside one of the highest number."""
    data = np.arange(SIZE, dtype=np.uint16).astype(np.uint8)
    for source in (0, 5, (2 << 11) | 7, (31 << 11) | 3):
        alone = filled([MepInBatch(3, [(source, 8, 40)]), MepInBatch(5, [(source, 64, 48)])], data)
        other = (31 << 11) | 2047
        both = filled(
            [MepInBatch(3, [(other, 128, 32), (source, 8, 40)]), MepInBatch(5, [(source, 64, 48), (other, 256, 32)])],
            data,
        )
        assert alone.header[0].tolist() == (8, 2, 2, 8)
        fields = ["data_offset", "source_id", "n_fragments", "version", "packet_size", "first_event"]
        np.testing.assert_array_equal(alone.mfp_rows[:2][fields], both.mfp_rows[[0, 2]][fields])
        assert alone.mfp_rows["fragment_base"][:2].tolist() == [0, 3]
        assert alone.mfp_rows["version"][:2].tolist() == [8 + VERSION_AT, 64 + VERSION_AT]
        for mep in range(2):
            counts = np.bincount([source >> 11], minlength=N_SUBDETECTORS)
            np.testing.assert_array_equal(alone.mep_rows["count"][mep], counts)
            firsts = mep + (np.arange(N_SUBDETECTORS) > source >> 11)
            np.testing.assert_array_equal(alone.mep_rows["first"][mep], firsts)
        np.testing.assert_array_equal(alone.event_rows[:8], both.event_rows[:8])


def test_the_mfps_of_a_mep_are_sorted_by_source_and_the_used_bytes_are_those_of_the_last_one() -> None:
    data = np.zeros(SIZE, np.uint8)
    data[[100 + VERSION_AT, 40 + VERSION_AT, 200 + VERSION_AT]] = 7, 8, 9
    places = [((2 << 11) | 1, 200, 60), (5, 100, 30), ((2 << 11) | 0, 40, 24)]
    tables = filled([MepInBatch(4, []), MepInBatch(2, places, EventFlag.INCOMPLETE)], data)
    assert tables.header[0].tolist() == (6, 3, 2, 6)
    assert tables.mfp_rows[:3].tolist() == [
        (100, 5, 0, 2, 7, 30, 4),
        (40, 2 << 11, 2, 2, 8, 24, 4),
        (200, (2 << 11) | 1, 4, 2, 9, 60, 4),
    ]
    assert not tables.mep_rows["count"][0].any()
    assert tables.mep_rows[1][:4].tolist() == [(0, 1), (1, 0), (1, 2), (3, 0)]
    assert tables.event_rows[:6].tolist() == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1)]
    assert tables.event_flags[:7].tolist() == [0] * 4 + [EventFlag.INCOMPLETE] * 2 + [1]
    assert tables.fill([MepInBatch(2, places)], data) == 260
    assert tables.fill([], data) == 0


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ((1 << 16, 0, 40), "more than 16 bits"),
        ((-1, 0, 40), "more than 16 bits"),
        ((1, -8, 40), "outside"),
        ((1, 0, -1), "outside"),
        ((1, SIZE - 40, 41), "outside"),
        ((1, SIZE - VERSION_AT, 1), "outside"),
    ],
)
def test_a_mfp_outside_of_the_input_or_of_source_ids_is_refused(place: tuple[int, int, int], message: str) -> None:
    data = np.zeros(SIZE, np.uint8)
    filled([MepInBatch(1, [((1 << 16) - 1, SIZE - 40, 40), (0, SIZE - VERSION_AT - 1, 1)])], data)
    with pytest.raises(ValueError, match=message):
        filled([MepInBatch(1, [place])], data)


def test_batches_above_the_limits_of_the_tables_are_refused() -> None:
    data = np.zeros(SIZE, np.uint8)
    place = (1, 0, 40)
    filled([MepInBatch(SIZE // 4, [place] * 2)] * 4, data)
    for meps in ([MepInBatch(SIZE + 1, [])], [MepInBatch(1, [place] * 9)], [MepInBatch(1, [])] * 5):
        with pytest.raises(ValueError, match=f"exceeds the limits of {SIZE}, 8 and 4"):
            filled(meps, data)
