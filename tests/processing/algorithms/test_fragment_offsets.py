"""Offsets of the fragments of an MFP, for few and many events, by one thread and by warps."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.algorithms.fragment_offsets import fragment_offsets
from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.batch import BROKEN_BANK, MFP_ROW
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.protocol.raw_data.mfp import encode_mfp
from tests.processing.framework.kernel_runner import Launch, on_cpu, run_algorithms, with_block_size

ALIGN_AT = 18
"""Byte offset of the padding field in the header of an MFP."""


def rows_of(mfps: list[bytes], n_events: int, launch: Launch) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """The rows of MFPs, and the rows of their fragments, [MFP][event]."""
    data = b"".join(mfp.ljust(-(-len(mfp) // 8) * 8, b"\0") for mfp in mfps)
    rows = np.zeros(len(mfps), dtype=MFP_ROW.dtype)
    rows["data_offset"] = np.cumsum([0] + [-(-len(mfp) // 8) * 8 for mfp in mfps[:-1]])
    rows["fragment_base"] = np.arange(len(mfps)) * n_events
    rows["n_fragments"] = n_events
    rows["packet_size"] = [len(mfp) for mfp in mfps]
    given = {"input.bytes": np.frombuffer(data, dtype=np.uint8), "input.mfp_rows": rows}
    limits = BatchLimits(events=n_events, meps=1, input_bytes=len(data), rows=len(mfps))
    made = run_algorithms((fragment_offsets,), given, n_events, limits, launch)
    return rows, made["fragments.rows"][: len(mfps) * n_events].reshape(len(mfps), n_events)


def offsets_of(mfps: list[bytes], n_events: int, launch: Launch) -> list[list[int]]:
    """Offsets of the fragments of each MFP from its start."""
    rows, fragments = rows_of(mfps, n_events, launch)
    return [[int(offset) for offset in row] for row in fragments["offset"] - rows["data_offset"][:, None]]


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


@pytest.mark.parametrize("target", KernelLibrary(CHAIN.kernels).targets)
@pytest.mark.parametrize("n_events", [1, 15, 16, 17, 63, 100])
def test_the_form_for_the_cpu_makes_the_same_rows(target: str, n_events: int) -> None:
    """Includes MFPs with wrong sizes, whose fragments reach beyond them, and every value of the padding byte."""
    rng = np.random.default_rng(n_events)
    mfps = []
    for align in (2, 3, 6):
        for damage in (0.0, 0.1, 1.0):
            mfp = bytearray(mfp_of([bytes(int(n)) for n in rng.integers(0, 300, n_events)], align))
            sizes = np.frombuffer(mfp, "<u2", n_events, 20 + -(-n_events // 4) * 4)
            sizes[:] = np.where(rng.random(n_events) < damage, rng.integers(0, 1 << 16, n_events), sizes)
            mfps.append(bytes(mfp))
    for padding in (0, 1, 15, 255):
        mfp = bytearray(mfps[0])
        mfp[ALIGN_AT] = padding
        mfps.append(bytes(mfp))
    form, common = (rows_of(mfps, n_events, on_cpu(target, common=it))[1] for it in (False, True))
    assert form.tobytes() == common.tobytes()
    assert {73, BROKEN_BANK} <= set(common["type"].ravel().tolist())


FORMS = [(target, common) for target in KernelLibrary(CHAIN.kernels).targets for common in (False, True)]


@pytest.mark.parametrize(("target", "common"), FORMS)
@pytest.mark.parametrize("n_events", [1, 16, 33])
def test_a_fragment_that_ends_with_its_mfp_is_whole_and_a_longer_one_is_broken(
    n_events: int, target: str, common: bool
) -> None:
    mfps = []
    for excess in (-1, 0, 1):
        mfp = bytearray(mfp_of([bytes(8)] * n_events, align=2))
        np.frombuffer(mfp, "<u2", n_events, 20 + -(-n_events // 4) * 4)[-1:] = 8 + excess
        mfps.append(bytes(mfp))
    _, fragments = rows_of(mfps, n_events, on_cpu(target, common=common))
    assert fragments["size"][:, -1].tolist() == [7, 8, 0]
    assert fragments["type"][:, -1].tolist() == [73, 73, BROKEN_BANK]


@pytest.mark.parametrize(("target", "common"), FORMS)
def test_fragments_whose_offsets_exceed_32_bits_are_broken(target: str, common: bool) -> None:
    n_events = 0xFFFF
    mfp = bytearray(mfp_of([b""] * n_events, align=2))
    np.frombuffer(mfp, "<u2", n_events, 20 + -(-n_events // 4) * 4)[:] = 0xFFFF
    _, fragments = rows_of([bytes(mfp)], n_events, on_cpu(target, common=common))
    assert set(fragments["type"].ravel().tolist()) == {BROKEN_BANK}
    assert not fragments["size"].any()
