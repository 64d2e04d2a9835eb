"""A barrier that some threads do not reach is a fault; unordered accesses are found, ordered ones are not reported."""

from __future__ import annotations

import pytest

from tests.ptx.machine import KernelError
from tests.ptx.snippets import run

SHARED = ".shared .align 4 .b8 word[256];"
FIRST_WRITES = "setp.eq.u32 %p0, %tid, 0; @%p0 st.shared.u32 [word], %tid;"
ALL_READ = "ld.shared.u32 %r0, [word];"
NEIGHBOUR = """
    shl.b32 %r1, %tid, 2; st.shared.u32 [%r1], %tid;
    {barrier}
    xor.b32 %r2, %tid, {distance}; shl.b32 %r2, %r2, 2; ld.shared.u32 %r3, [%r2];
"""


def test_a_write_and_reads_of_others_without_a_barrier_conflict() -> None:
    (conflict,) = run(f"{FIRST_WRITES} {ALL_READ}", declarations=SHARED, threads=64).conflicts
    assert "read by thread" in conflict
    assert "write by thread 0" in conflict
    assert "shared memory" in conflict


def test_reads_and_a_later_write_without_a_barrier_conflict() -> None:
    conflicts = run(f"{ALL_READ} {FIRST_WRITES}", declarations=SHARED, threads=64).conflicts
    assert any("write by thread 0" in conflict and "read by thread 31" in conflict for conflict in conflicts)


@pytest.mark.parametrize("between", ["bar.sync 0;", "barrier.sync 0;"])
def test_a_barrier_orders_the_accesses_of_a_block(between: str) -> None:
    assert run(f"{FIRST_WRITES} {between} {ALL_READ}", declarations=SHARED, threads=64).conflicts == []
    assert run(f"{ALL_READ} {between} {FIRST_WRITES}", declarations=SHARED, threads=64).conflicts == []


def test_lockstep_orders_nothing_in_a_warp() -> None:
    body = NEIGHBOUR.format(barrier="", distance=1)
    assert len(run(body, declarations=SHARED, threads=32).conflicts) == 1


def test_a_warp_barrier_orders_a_warp_but_not_the_block() -> None:
    inside = NEIGHBOUR.format(barrier="bar.warp.sync -1;", distance=1)
    assert run(inside, declarations=SHARED, threads=64).conflicts == []
    across = NEIGHBOUR.format(barrier="bar.warp.sync -1;", distance=32)
    assert run(across, declarations=SHARED, threads=64).conflicts != []


def test_a_thread_is_in_order_with_itself() -> None:
    body = "shl.b32 %r1, %tid, 2; st.shared.u32 [%r1], %tid; ld.shared.u32 %r2, [%r1]; st.shared.u32 [%r1], %r2;"
    assert run(body, declarations=SHARED, threads=64).conflicts == []


def test_atomic_accesses_conflict_with_plain_ones_only() -> None:
    body = "atom.shared.add.u32 %r0, [word], 1;"
    assert run(body, declarations=SHARED, threads=64).conflicts == []
    conflicts = run(f"{body} {ALL_READ}", declarations=SHARED, threads=64).conflicts
    assert any("read by thread" in conflict and "atomic access by thread" in conflict for conflict in conflicts)
    assert run(f"{body} bar.sync 0; {ALL_READ}", declarations=SHARED, threads=64).conflicts == []


@pytest.mark.parametrize(("value", "equal"), [("7", True), ("%thread", False)])
def test_writes_of_equal_values_are_told_from_others(value: str, equal: bool) -> None:
    outcome = run(f"st.global.u32 [%given], {value};", threads=32)
    assert [conflict.equal for conflict in outcome.record.conflicts] == [equal]


def test_blocks_are_never_in_order() -> None:
    body = "setp.eq.u32 %p0, %thread, 0; @%p0 st.global.u32 [%given], %tid; bar.sync 0; ld.global.u32 %r0, [%given];"
    assert run(body, threads=32).conflicts == []
    (conflict,) = run(body, threads=32, blocks=2).conflicts
    assert "another block" in conflict
    atomic = "atom.global.add.u32 %r0, [%given], 1;"
    assert run(atomic, threads=32, blocks=2).conflicts == []
    # An access of the other block is found even after accesses of the same block.
    assert len(run(f"{atomic} bar.sync 0; ld.global.u32 %r1, [%given];", threads=32, blocks=2).conflicts) > 0


def test_shared_memory_of_two_blocks_is_not_the_same() -> None:
    body = f"{FIRST_WRITES} bar.sync 0; {ALL_READ}"
    assert run(body, declarations=SHARED, threads=32, blocks=3).conflicts == []


def test_the_non_coherent_cache_reads_nothing_that_the_launch_writes() -> None:
    write, read = "st.global.u32 [%mine], %tid;", "ld.global.nc.u32 %r0, [%mine];"
    assert run(f"{write} bar.sync 0; {read.replace('.nc', '')}", threads=32).conflicts == []
    assert len(run(f"{write} bar.sync 0; {read}", threads=32).conflicts) == 1
    assert len(run(f"{read} bar.sync 0; {write}", threads=32).conflicts) == 1


def test_a_barrier_that_some_lanes_of_a_warp_miss_is_a_fault() -> None:
    with pytest.raises(KernelError, match="not all lanes of the warp come to"):
        run("setp.lt.u32 %p0, %tid, 8; @%p0 bra SKIP; bar.sync 0; SKIP: mov.u32 %r0, 0;", threads=32)


def test_a_barrier_that_a_warp_misses_is_a_fault() -> None:
    with pytest.raises(KernelError, match="a warp has ended while others wait"):
        run("setp.lt.u32 %p0, %tid, 32; @%p0 bra SKIP; bar.sync 0; SKIP: mov.u32 %r0, 0;", threads=64)


def test_warps_that_wait_at_different_barriers_are_a_fault() -> None:
    body = "setp.lt.u32 %p0, %tid, 32; @%p0 bra OTHER; bar.sync 0; bra.uni END; OTHER: bar.sync 0; END: mov.u32 %r0, 0;"
    with pytest.raises(KernelError, match="different barriers"):
        run(body, threads=64)


def test_barriers_are_counted_by_block() -> None:
    outcome = run("bar.sync 0; setp.eq.u32 %p0, %thread, 0; bar.sync 0;", threads=64, blocks=2)
    assert outcome.record.block_barriers.tolist() == [2, 2]
    assert outcome.count("setp.eq.u32")["executions"] == 4
    assert int(outcome.record.block_instructions.sum()) == int(outcome.record.counts["executions"].sum())


def test_the_path_of_a_block_is_that_of_its_busiest_warp_between_barriers() -> None:
    half = "setp.{}.u32 %p0, %tid, 32; @%p0 bra {}; mov.u32 %r0, 0; mov.u32 %r0, 1; {}: bar.sync 0;"
    outcome = run(f"{half.format('lt', 'A', 'A')} {half.format('ge', 'B', 'B')}", threads=64)
    [instructions], [path] = outcome.record.block_instructions, outcome.record.block_paths
    # Each warp jumps over two instructions, one before and one behind the first barrier; the path has all four.
    assert 2 * path == instructions + 4
