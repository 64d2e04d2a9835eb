"""Lanes of a warp: divergence and meeting points, communication, faults."""

from __future__ import annotations

import numpy as np
import pytest

from hltnode.processing.framework.backends.cuda_kernels import COMPILE_OPTIONS, compile_options
from hltnode.processing.lhcb.chain import CHAIN
from tests.processing.framework.nvrtc_library import nvrtc_of
from tests.ptx.kernels import CUDA_VERSION, machine_of
from tests.ptx.machine import TRACED_BARRIER, KernelError
from tests.ptx.nvrtc import ptx_of_source
from tests.ptx.parser import parse
from tests.ptx.snippets import run

LANES = np.arange(32)


def test_the_sides_of_a_branch_run_one_after_the_other_and_meet_again() -> None:
    outcome = run(
        """
        setp.lt.u32 %p0, %tid, 8;
        @%p0 bra LESS;
        mov.u32 %r0, 2;
        bra.uni MEET;
        LESS:
        mov.u32 %r0, 1;
        MEET:
        st.global.u32 [%mine], %r0;
        """,
        threads=32,
    )
    assert outcome.result.tolist() == [1] * 8 + [2] * 24
    assert outcome.count("mov.u32 %r0, 1") == {"executions": 1, "lanes": 8, "sectors": 0, "bytes": 0}
    assert outcome.count("mov.u32 %r0, 2")["lanes"] == 24
    assert outcome.count("st.global.u32 [%mine]") == {"executions": 1, "lanes": 32, "sectors": 8, "bytes": 128}


@pytest.mark.parametrize("backward", [False, True])
def test_lanes_that_leave_two_loops_at_once_are_not_waited_for_in_the_inner_one(backward: bool) -> None:
    # Lane t goes t % 4 + 1 times through the inner loop, three times in all; lane 5 leaves both in the first turn.
    outcome = run(
        """
        mov.u32 %r0, 0;
        mov.u32 %r4, 0;
        and.b32 %r2, %tid, 3;
        OUTER:
        mov.u32 %r1, 0;
        INNER:
        setp.eq.u32 %p0, %tid, 5;
        @%p0 bra END;
        add.u32 %r4, %r4, 1;
        add.u32 %r1, %r1, 1;
        setp.le.u32 %p1, %r1, %r2;
        @%p1 bra INNER;
        add.u32 %r0, %r0, 1;
        setp.lt.u32 %p2, %r0, 3;
        @%p2 bra OUTER;
        END:
        st.global.u32 [%mine], %r4;
        """,
        threads=32,
        backward=backward,
    )
    assert outcome.result.tolist() == [0 if lane == 5 else 3 * (lane % 4 + 1) for lane in range(32)]
    assert outcome.count("add.u32 %r4, %r4, 1")["executions"] == 3 * 4
    assert outcome.count("add.u32 %r0, %r0, 1")["executions"] == 3
    assert outcome.count("st.global.u32 [%mine]")["lanes"] == 32


@pytest.mark.parametrize("backward", [False, True])
def test_lanes_that_leave_a_loop_wait_for_the_others(backward: bool) -> None:
    outcome = run(
        """
        mov.u32 %r0, 0;
        LOOP:
        add.u32 %r0, %r0, 1;
        and.b32 %r1, %r0, 1;
        setp.eq.u32 %p1, %r1, 0;
        @%p1 bra EVEN;
        add.u32 %r2, %r0, 0;
        EVEN:
        setp.lt.u32 %p0, %r0, %tid;
        @%p0 bra LOOP;
        st.global.u32 [%mine], %r0;
        """,
        threads=32,
        backward=backward,
    )
    assert outcome.result.tolist() == [1, *range(1, 32)]
    assert outcome.count("add.u32 %r0, %r0, 1") == {"executions": 31, "lanes": int(np.maximum(LANES, 1).sum())} | {
        "sectors": 0,
        "bytes": 0,
    }
    assert outcome.count("st.global.u32 [%mine]")["executions"] == 1


def test_lanes_that_return_early_take_no_further_part() -> None:
    outcome = run(
        "setp.lt.u32 %p0, %tid, 5; @%p0 ret; bar.sync 0; activemask.b32 %r0; st.global.u32 [%mine], %r0;", threads=40
    )
    assert outcome.result.tolist() == [0] * 5 + [0xFFFFFFE0] * 27 + [0xFF] * 8


def test_an_instruction_under_a_predicate_runs_where_it_holds() -> None:
    outcome = run(
        "mov.u32 %r0, 7; setp.eq.u32 %p0, %tid, 3; @!%p0 mov.u32 %r0, 9; st.global.u32 [%mine], %r0;", threads=5
    )
    assert outcome.result.tolist() == [9, 9, 9, 7, 9]


def test_special_registers_are_those_of_the_thread() -> None:
    for register, expected in {
        "%laneid": np.tile(np.concatenate([LANES, LANES[:8]]), 2),
        "%warpid": np.tile([0] * 32 + [1] * 8, 2),
        "%ntid.x": np.full(80, 40),
        "%ctaid.x": np.repeat([0, 1], 40),
        "%nctaid.x": np.full(80, 2),
        "%lanemask_lt": np.tile((1 << np.concatenate([LANES, LANES[:8]])) - 1, 2),
    }.items():
        outcome = run(f"mov.u32 %r0, {register}; st.global.u32 [%mine], %r0;", threads=40, blocks=2)
        assert (outcome.result == expected).all(), register


@pytest.mark.parametrize(
    ("mode", "by", "clamp", "sources"),
    [
        ("up", 3, 0, np.where(LANES >= 3, LANES - 3, LANES)),
        ("down", 3, 31, np.where(LANES + 3 < 32, LANES + 3, LANES)),
        ("bfly", 5, 31, LANES ^ 5),
        ("idx", 7, 31, np.full(32, 7)),
        ("up", 1, 24 << 8, np.where(LANES % 8 >= 1, LANES - 1, LANES)),  # in segments of eight lanes
        ("down", 1, 24 << 8 | 31, np.where(LANES % 8 < 7, LANES + 1, LANES)),
        ("idx", 2, 24 << 8 | 31, LANES // 8 * 8 + 2),
    ],
)
def test_a_shuffle_takes_the_value_of_the_lane_that_the_isa_names(
    mode: str, by: int, clamp: int, sources: np.ndarray
) -> None:
    outcome = run(
        f"""
        mul.lo.s32 %r0, %tid, 10;
        shfl.sync.{mode}.b32 %r1|%p0, %r0, {by}, {clamp}, -1;
        selp.u32 %r2, 1, 0, %p0;
        st.global.v2.u32 [%mine], {{%r1, %r2}};
        """,
        threads=32,
    )
    words = outcome.result.view(np.uint32).reshape(-1, 2)
    assert words[:, 0].tolist() == (10 * sources).tolist()
    in_range = np.full(32, True) if mode in ("idx", "bfly") else sources != LANES
    assert words[:, 1].tolist() == in_range.astype(int).tolist()


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("vote.sync.ballot.b32 %r1, %p0, -1", np.full(32, 0x92492492 & 0xFFFFFFFF)),
        ("vote.sync.any.pred %p1, %p0, -1; selp.u32 %r1, 1, 0, %p1", np.ones(32)),
        ("vote.sync.all.pred %p1, %p0, -1; selp.u32 %r1, 1, 0, %p1", np.zeros(32)),
        ("vote.sync.uni.pred %p1, %p0, -1; selp.u32 %r1, 1, 0, %p1", np.zeros(32)),
        ("redux.sync.add.u32 %r1, %r0, -1", np.full(32, (LANES % 3).sum())),
        ("redux.sync.max.u32 %r1, %r0, -1", np.full(32, 2)),
        ("redux.sync.or.b32 %r1, %r0, -1", np.full(32, 3)),
        ("match.any.sync.b32 %r1, %r0, -1", np.array([0x49249249, 0x92492492, 0x24924924])[LANES % 3]),
    ],
)
def test_votes_reductions_and_matches_see_all_lanes(instruction: str, expected: np.ndarray) -> None:
    outcome = run(
        f"rem.u32 %r0, %tid, 3; setp.eq.u32 %p0, %r0, 1; {instruction}; st.global.u32 [%mine], %r1;", threads=32
    )
    assert outcome.result.tolist() == expected.tolist()


def test_a_shuffle_that_a_lane_of_its_mask_does_not_come_to_is_a_fault() -> None:
    with pytest.raises(KernelError, match=r"snippet, block 0, warp 0 at .*shfl.*do not take part"):
        run("setp.lt.u32 %p0, %tid, 8; @%p0 shfl.sync.idx.b32 %r0, %tid, 0, 31, -1;", threads=32)


def test_a_shuffle_among_some_lanes_needs_no_others() -> None:
    outcome = run(
        "setp.lt.u32 %p0, %tid, 8; @%p0 shfl.sync.idx.b32 %r0, %tid, 5, 31, 255; @%p0 st.global.u32 [%mine], %r0;",
        threads=32,
    )
    assert outcome.result.tolist() == [5] * 8 + [0] * 24


def test_a_warp_barrier_that_a_lane_of_its_mask_does_not_come_to_is_a_fault() -> None:
    with pytest.raises(KernelError, match="do not take part"):
        run("setp.lt.u32 %p0, %tid, 8; @%p0 bar.warp.sync -1;", threads=32)


def test_a_block_that_does_not_end_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.ptx.machine.MAX_INSTRUCTIONS", 1000)
    with pytest.raises(KernelError, match="does not end"):
        run("mov.u32 %r0, 0; AGAIN: setp.eq.u32 %p0, %r0, 0; @%p0 bra AGAIN;")


WARP_PRIMITIVES = """
extern "C" __global__ void primitives(const unsigned* in, unsigned* out)
{
    const unsigned thread = threadIdx.x, lane = thread % 32u;
    unsigned sum = in[thread];
    for (unsigned distance = 1; distance < 32u; distance <<= 1) {
        const unsigned other = __shfl_up_sync(0xffffffffu, sum, distance);
        if (lane >= distance) sum += other;
    }
    const unsigned ballot = __ballot_sync(0xffffffffu, in[thread] & 1u);
    const unsigned total = __reduce_add_sync(0xffffffffu, in[thread]);
    const unsigned same = __match_any_sync(0xffffffffu, in[thread]);
    const unsigned greatest = __reduce_max_sync(0xffffffffu, in[thread]);
    const unsigned across = __shfl_xor_sync(0xffffffffu, in[thread], 16);
    const unsigned next = __shfl_down_sync(0xffffffffu, in[thread], 1);
    const unsigned both = __any_sync(0xffffffffu, in[thread] == 3u) + 2u * __all_sync(0xffffffffu, in[thread] < 9u);
    const unsigned results[8] = {sum, ballot, total, same, greatest, across, next, both};
    for (unsigned i = 0; i < 8u; ++i) out[8u * thread + i] = results[i];
}
"""


@pytest.mark.parametrize("architecture", ["80", "90", "100"])
def test_warp_primitives_as_nvrtc_compiles_them_compute_what_they_promise(architecture: str) -> None:
    ptx = ptx_of_source(nvrtc_of(CUDA_VERSION), WARP_PRIMITIVES, architecture, *COMPILE_OPTIONS)
    machine = machine_of(parse(ptx))
    values = np.random.default_rng(2).integers(0, 9, 64, dtype=np.uint32)
    given, made = machine.allocate(256), machine.allocate(8 * 256)
    given[:] = values.view(np.uint8)
    arguments = np.array([given.ctypes.data, made.ctypes.data], dtype=np.uint64).tobytes()
    assert machine.launch("primitives", arguments, 1, 64).conflicts == ()
    warps = values.reshape(2, 32)
    expected = np.stack(
        [
            warps.cumsum(axis=1),
            np.repeat(((warps & 1) << LANES).sum(axis=1), 32).reshape(2, 32),
            np.repeat(warps.sum(axis=1), 32).reshape(2, 32),
            ((warps[:, :, None] == warps[:, None, :]).astype(np.uint64) << LANES.astype(np.uint64)).sum(axis=2),
            np.repeat(warps.max(axis=1), 32).reshape(2, 32),
            warps[:, LANES ^ 16],
            warps[:, np.minimum(LANES + 1, 31)],
            np.repeat((warps == 3).any(axis=1) + 2 * (warps < 9).all(axis=1), 32).reshape(2, 32),
        ],
        axis=2,
    )
    assert made.view(np.uint32).reshape(2, 32, 8).tolist() == expected.astype(np.uint32).tolist()


SCANS = """
#include "framework/device/platform.cuh"
extern "C" __global__ void scans(const uint32_t* in, uint32_t* out)
{
    __shared__ uint32_t scratch[8];
    const uint32_t thread = threadIdx.x;
    uint32_t total = 0, count = 0;
    for (uint32_t turn = 0; turn < 2u; ++turn) {  // no barrier between one use of the scratch memory and the next
        const uint32_t before = hlt::block_exclusive_sum(in[thread] + turn, scratch, total);
        const uint32_t marked = hlt::block_exclusive_count(in[thread] % 3u == turn, scratch, count);
        const uint32_t results[4] = {before, total, marked, count};
        for (uint32_t i = 0; i < 4u; ++i) out[8u * thread + 4u * turn + i] = results[i];
    }
}
"""


@pytest.mark.parametrize("threads", [1, 31, 32, 33, 100, 225, 256])
@pytest.mark.parametrize("backward", [False, True])
def test_block_scans_sum_what_the_threads_before_have_at_every_block_size(threads: int, backward: bool) -> None:
    ptx = ptx_of_source(nvrtc_of(CUDA_VERSION), SCANS, "80", *compile_options(CHAIN.kernels))
    machine = machine_of(parse(ptx), backward=backward)
    values = np.random.default_rng(threads).integers(0, 1000, threads, dtype=np.uint32)
    given, made = machine.allocate(4 * threads), machine.allocate(32 * threads)
    given[:] = values.view(np.uint8)
    arguments = np.array([given.ctypes.data, made.ctypes.data], dtype=np.uint64).tobytes()
    record = machine.launch("scans", arguments, 1, threads)
    assert record.conflicts == ()
    assert int(record.block_barriers[0]) == (0 if threads <= 32 else 8)
    columns = []
    for turn in range(2):
        for of_thread in (values + turn, (values % 3 == turn).astype(np.uint32)):
            columns += [of_thread.cumsum() - of_thread, np.full(threads, of_thread.sum())]
    assert made.view(np.uint32).reshape(threads, 8).tolist() == np.stack(columns, axis=1).tolist()


def test_the_trace_of_a_block_has_each_instruction_with_its_lanes() -> None:
    body = "bar.sync 0; setp.lt.u32 %p0, %tid, 34; @%p0 mov.u32 %r0, 1;"
    record = run(body, threads=40, blocks=2, traced_block=1).record
    (barrier,) = np.flatnonzero(record.trace == TRACED_BARRIER)
    assert len(record.trace) == int(record.block_instructions[1]) + 1
    after = record.trace[barrier + 1 :]
    lanes = {int(warp): (after[after >> 32 == warp] & 0xFFFFFFFF).tolist() for warp in (0, 1)}
    assert lanes[0] == [0xFFFFFFFF] * 3
    # The second warp has eight lanes, of which two execute the guarded instruction.
    assert lanes[1] == [0xFF, 0b11, 0xFF]
    assert len(run(body, threads=40).record.trace) == 0
