"""Memory: its spaces, bounds and alignment, atomic accesses, and the number of sectors of an access."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ptx.machine import KernelError
from tests.ptx.snippets import run

SHARED = ".shared .align 4 .b8 first[16]; .shared .align 4 .b8 second[16];"
LOCAL = ".local .align 8 .b8 own[16];"


def test_loads_extend_as_their_type_says() -> None:
    for kind, expected in {"u8": 0x80, "s8": 0xFFFFFF80, "u16": 0xFF80, "s16": 0xFFFFFF80, "b32": 0xFFFF80}.items():
        assert (
            run(f"ld.global.{kind} %r0, [%given]; st.global.u32 [%mine], %r0;", given=[0xFFFF80]).result[0] == expected
        )


def test_vectors_are_loaded_and_stored_element_by_element() -> None:
    body = "ld.global.v4.u32 {%r0, _, %r2, %r3}, [%given]; st.global.v2.u32 [%mine], {%r3, %r0};"
    assert run(body, given=[1 | 2 << 32, 3 | 4 << 32]).result[0] == 4 | 1 << 32


def test_shared_memory_is_one_for_the_block_and_reached_by_generic_addresses_too() -> None:
    outcome = run(
        """
        mov.u64 %d0, first;
        cvta.shared.u64 %d1, %d0;
        setp.eq.u32 %p0, %tid, 0;
        @%p0 st.u32 [%d1+4], %thread;
        bar.sync 0;
        ld.shared.u32 %r0, [first+4];
        st.global.u32 [%mine], %r0;
        """,
        declarations=SHARED,
        threads=3,
        blocks=2,
    )
    assert outcome.result.tolist() == [0, 0, 0, 3, 3, 3]
    assert outcome.conflicts == []


def test_local_memory_is_each_threads_own() -> None:
    outcome = run(
        """
        mov.u64 %d0, own;
        cvta.local.u64 %d1, %d0;
        st.local.u32 [%d0+8], %tid;
        ld.u32 %r0, [%d1+8];
        st.global.u32 [%mine], %r0;
        """,
        declarations=LOCAL,
        threads=40,
    )
    assert outcome.result.tolist() == list(range(40))


def test_variables_of_the_module_hold_what_they_are_declared_with() -> None:
    module = ".global .align 4 .u32 number = 7; .const .align 2 .u16 list[3] = {1, 0x10, 5};"
    body = "ld.global.u32 %r0, [number]; ld.const.u16 %r1, [list+2]; add.s32 %r0, %r0, %r1; st.global.u32 [%mine], %r0;"
    assert run(body, module=module).result[0] == 23


def test_atomic_accesses_give_the_old_value_and_lose_none() -> None:
    outcome = run(
        """
        atom.global.add.u32 %r0, [%given], 2;
        atom.relaxed.gpu.global.max.u32 %r1, [%given+8], %tid;
        atom.global.cas.b32 %r2, [%given+16], 0, 5;
        red.global.or.b32 [%given+24], 4;
        bar.sync 0;
        ld.global.u32 %r3, [%given];
        ld.global.u32 %r4, [%given+8];
        add.s32 %r3, %r3, %r4;
        st.global.v2.u32 [%mine], {%r0, %r3};
        """,
        given=[10, 0, 0, 1],
        threads=40,
    )
    words = outcome.result.view(np.uint32).reshape(-1, 2)
    assert sorted(words[:, 0]) == list(range(10, 90, 2))
    assert set(words[:, 1]) == {90 + 39}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("ld.global.u32 %r0, [%given+8];", "in no allocated memory"),
        ("ld.global.u64 %d0, [%given+-8];", "in no allocated memory"),
        ("mov.u64 %d0, 0; ld.u32 %r0, [%d0];", "0x0 lies in no allocated memory"),
        ("ld.global.u32 %r0, [%given+2];", "misaligned"),
        ("ld.global.v2.u32 {%r0, %r1}, [%given+4];", "misaligned"),
        ("st.shared.u32 [first+16], %r0;", "no variable in shared memory"),
        ("st.local.u32 [own+16], %r0;", "no variable in local memory"),
        ("ld.param.u64 %d0, [given+16];", "behind the parameters"),
        ("div.u32 %r0, %tid, 0;", "division by zero"),
        ("mov.u64 %d0, own; cvta.local.u64 %d0, %d0; atom.add.u32 %r0, [%d0], 1;", "no other thread sees"),
    ],
)
def test_a_fault_names_the_instruction_and_what_is_wrong(body: str, message: str) -> None:
    with pytest.raises(KernelError, match=rf"snippet, block 0, warp 0 at .*{message}"):
        run(body, declarations=SHARED + LOCAL)


@pytest.mark.parametrize(
    ("stride", "sectors"), [(0, 1), (1, 1), (4, 4), (8, 8), (32, 32), (64, 32)], ids=lambda value: str(value)
)
def test_an_access_takes_the_sectors_that_its_lanes_touch(stride: int, sectors: int) -> None:
    outcome = run(
        f"mul.wide.u32 %d0, %tid, {stride}; add.s64 %d0, %given, %d0; ld.global.u8 %r0, [%d0];",
        given=[0] * 256,
        threads=32,
    )
    assert outcome.count("ld.global.u8") == {"executions": 1, "lanes": 32, "sectors": sectors, "bytes": 32}


def test_shared_memory_and_parameters_take_no_sectors() -> None:
    outcome = run("ld.shared.u32 %r0, [first];", declarations=SHARED, threads=32)
    assert outcome.count("ld.shared.u32")["sectors"] == 0
    assert outcome.count("ld.param.u64 %given")["sectors"] == 0


def test_the_bytes_that_a_launch_touches_count_once_in_sectors() -> None:
    # Both warps of both blocks read the same 8 bytes, and each thread writes its own 8 bytes and reads them again.
    body = "ld.global.u64 %d0, [%given]; st.global.u64 [%mine], %d0; ld.global.u64 %d1, [%mine];"
    outcome = run(body, given=[1] * 100, threads=40, blocks=2)
    assert outcome.touched_given == (32, 0)
    assert outcome.touched_result == (0, 2 * 40 * 8)
    # The first read of a sector comes from memory, and so does the data of an atomic access.
    outcome = run("atom.global.add.u32 %r0, [%mine], 1;", threads=1)
    assert outcome.touched_result == (32, 32)
    # Another launch starts from zero.
    assert run("", given=[1]).touched_given == (0, 0)


def test_bytes_of_local_memory_count_for_every_lane() -> None:
    outcome = run("st.local.u32 [own+8], %tid;", declarations=LOCAL, threads=40)
    assert outcome.local_bytes("st.local") == 40 * 4
    assert outcome.count("st.local")["sectors"] == 0
