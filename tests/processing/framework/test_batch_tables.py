"""The tables of a batch."""

import numpy as np
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
