"""Where the fragments of an MFP lie, for few events and for many, by one thread and by warps."""

from __future__ import annotations

import numpy as np
import pytest

from hltnode.processing.algorithms.fragment_offsets import fragment_offsets
from hltnode.processing.framework.batch import MFP_ROW
from hltnode.processing.framework.limits import BatchLimits
from hltnode.protocol.raw_data.mfp import encode_mfp
from tests.processing.framework.kernel_runner import Launch, on_cpu, run_algorithms, with_block_size

ALIGN_AT = 18
"""Place of the padding in the header of an MFP."""


def offsets_of(mfps: list[bytes], n_events: int, launch: Launch) -> list[list[int]]:
    """Offsets from the beginning of their MFP of the fragments of each."""
    data = b"".join(mfp.ljust(-(-len(mfp) // 8) * 8, b"\0") for mfp in mfps)
    rows = np.zeros(len(mfps), dtype=MFP_ROW.dtype)
    rows["data_offset"] = np.cumsum([0] + [-(-len(mfp) // 8) * 8 for mfp in mfps[:-1]])
    rows["fragment_base"] = np.arange(len(mfps)) * n_events
    rows["n_fragments"] = n_events
    rows["packet_size"] = [len(mfp) for mfp in mfps]
    given = {"input.bytes": np.frombuffer(data, dtype=np.uint8), "input.mfp_rows": rows}
    limits = BatchLimits(events=n_events, meps=1, input_bytes=len(data), rows=len(mfps))
    made = run_algorithms((fragment_offsets,), given, n_events, limits, launch)
    offsets = made["fragments.rows"]["offset"][: len(mfps) * n_events].reshape(len(mfps), n_events)
    return [[int(offset) for offset in row] for row in offsets - rows["data_offset"][:, None]]


def mfp_of(fragments: list[bytes], align: int) -> bytes:
    return encode_mfp(source_id=1, event_id=0, version=4, types=[73] * len(fragments), fragments=fragments, align=align)


@pytest.mark.parametrize("n_events", [1, 7, 32, 33, 100])
@pytest.mark.parametrize(
    "launch", [on_cpu(), with_block_size(32), with_block_size(20, backward=True), with_block_size(100)]
)
def test_fragments_follow_on_each_other_padded_as_the_mfp_says(n_events: int, launch: Launch) -> None:
    fragments = [bytes(4 * (i * i % 7)) for i in range(n_events)]
    header = 20 + -(-n_events // 4) * 4 + -(-2 * n_events // 4) * 4
    expected = [
        (header + np.cumsum([0] + [-(-len(fragment) // 2**align) * 2**align for fragment in fragments[:-1]])).tolist()
        for align in (2, 3, 6)
    ]
    assert offsets_of([mfp_of(fragments, align) for align in (2, 3, 6)], n_events, launch) == expected


def test_decoders_find_words_aligned_whatever_the_mfp_says_of_its_padding() -> None:
    fragments = [bytes(5), bytes(6), bytes(3)]
    mfp = bytearray(mfp_of(fragments, align=3))
    mfp[ALIGN_AT] = 0
    assert offsets_of([bytes(mfp)], 3, on_cpu()) == [[32, 40, 48]]
