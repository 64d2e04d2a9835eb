"""Instructions on registers follow the PTX ISA, especially at the limits of their values."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ptx.parser import PtxError
from tests.ptx.snippets import run

REGISTER = {"16": "%h", "32": "%r", "64": "%d"}
NAN, INFINITY, ONE, TWO = 0x7FC00001, 0x7F800000, 0x3F800000, 0x40000000
CANONICAL = 0x7FFFFFFF
MINUS = 0x80000000
DENORMAL = 0x00000001


def compute(opcode: str, operands: list[int], operand_bits: str, result_bits: str) -> int:
    """The result of one instruction; predicates are given and returned as 0 and 1."""
    loads, names = [], []
    bits = operand_bits.split()
    for i, kind in enumerate(bits if len(bits) > 1 else bits * len(operands)):
        if kind == "pred":
            loads.append(f"ld.global.u32 %r{20 + i}, [%given+{8 * i}]; setp.ne.u32 %p{i}, %r{20 + i}, 0;")
            names.append(f"%p{i}")
        else:
            loads.append(f"ld.global.b{kind} {REGISTER[kind]}{i}, [%given+{8 * i}];")
            names.append(f"{REGISTER[kind]}{i}")
    if result_bits == "pred":
        result, store = "%p9", "selp.b32 %r9, 1, 0, %p9; st.global.b32 [%mine], %r9;"
    else:
        result = f"{REGISTER[result_bits]}9"
        store = f"st.global.b{result_bits} [%mine], {result};"
    body = f"{' '.join(loads)} {opcode} {result}, {', '.join(names)}; {store}"
    given = [operand & 0xFFFFFFFFFFFFFFFF for operand in operands]
    return int(run(body, given=given).result[0])


@pytest.mark.parametrize(
    ("opcode", "operands", "operand_bits", "result_bits", "expected"),
    [
        ("add.s32", [0xFFFFFFFF, 2], "32", "32", 1),
        ("add.s16", [0xFFFF, 2], "16", "16", 1),
        ("sub.s64", [0, 1], "64", "64", 0xFFFFFFFFFFFFFFFF),
        ("mul.lo.s32", [0x10001, 0x10001], "32", "32", 0x20001),
        ("mul.hi.u32", [0xFFFFFFFF, 0xFFFFFFFF], "32", "32", 0xFFFFFFFE),
        ("mul.hi.s32", [-2, 3], "32", "32", 0xFFFFFFFF),
        ("mul.wide.u32", [0xFFFFFFFF, 2], "32", "64", 0x1FFFFFFFE),
        ("mul.wide.s32", [-1, 2], "32", "64", 0xFFFFFFFFFFFFFFFE),
        ("mul.wide.u16", [0xFFFF, 0xFFFF], "16", "32", 0xFFFE0001),
        ("mad.lo.s32", [3, -4, 5], "32", "32", 0xFFFFFFF9),
        ("mad.wide.u32", [0xFFFFFFFF, 1, 1], "32 32 64", "64", 0x100000000),
        ("div.s32", [-7, 2], "32", "32", 0xFFFFFFFD),
        ("div.s32", [0x80000000, -1], "32", "32", 0x80000000),
        ("div.u32", [0xFFFFFFF9, 2], "32", "32", 0x7FFFFFFC),
        ("rem.s32", [-7, 2], "32", "32", 0xFFFFFFFF),
        ("min.s32", [-1, 1], "32", "32", 0xFFFFFFFF),
        ("min.u32", [-1, 1], "32", "32", 1),
        ("max.s16", [0x8000, 1], "16", "16", 1),
        ("neg.s32", [0x80000000], "32", "32", 0x80000000),
        ("abs.s32", [-5], "32", "32", 5),
        ("shl.b32", [1, 32], "32", "32", 0),
        ("shl.b64", [1, 40], "64 32", "64", 1 << 40),
        ("shr.u32", [0x80000000, 40], "32", "32", 0),
        ("shr.s32", [0x80000000, 40], "32", "32", 0xFFFFFFFF),
        ("shr.s32", [-8, 1], "32", "32", 0xFFFFFFFC),
        ("shr.u16", [0x8000, 15], "16 32", "16", 1),
        ("shf.l.wrap.b32", [0x80000001, 2, 33], "32", "32", 5),
        ("shf.l.clamp.b32", [7, 2, 33], "32", "32", 7),
        ("shf.r.wrap.b32", [2, 1, 1], "32", "32", 0x80000001),
        ("not.b32", [0xF0F0F0F0], "32", "32", 0x0F0F0F0F),
        ("xor.b32", [0xFF, 0x0F], "32", "32", 0xF0),
        ("popc.b64", [0xFFFF0000FFFF0001], "64", "32", 33),
        ("clz.b32", [0], "32", "32", 32),
        ("clz.b64", [1], "64", "32", 63),
        ("brev.b32", [1], "32", "32", 0x80000000),
        ("bfind.u32", [0x10], "32", "32", 4),
        ("bfind.shiftamt.u32", [0x10], "32", "32", 27),
        ("bfind.shiftamt.u32", [0], "32", "32", 0xFFFFFFFF),
        ("bfi.b32", [0xFF, 0, 28, 8], "32", "32", 0xF0000000),
        ("bfi.b32", [0xFF, 0x12345678, 4, 0], "32", "32", 0x12345678),
        ("bfi.b64", [0x1FF, 0, 32, 9], "64 64 32 32", "64", 0x1FF00000000),
        ("bfe.u32", [0xABCD1234, 16, 8], "32", "32", 0xCD),
        ("bfe.s32", [0xABCD1234, 16, 8], "32", "32", 0xFFFFFFCD),
        ("bfe.s32", [0x80000000, 28, 8], "32", "32", 0xFFFFFFF8),
        ("prmt.b32", [0x33221100, 0x77665544, 0x7531], "32", "32", 0x77553311),
        ("prmt.b32", [0x80, 0, 0x0008], "32", "32", 0x808080FF),
        ("selp.b32", [1, 2, 0], "32 32 pred", "32", 2),
        ("cvt.u32.u16", [0xFFFF], "16", "32", 0xFFFF),
        ("cvt.s32.s16", [0xFFFF], "16", "32", 0xFFFFFFFF),
        ("cvt.s64.s32", [-1], "32", "64", 0xFFFFFFFFFFFFFFFF),
        ("cvt.u16.u32", [0x12345], "32", "16", 0x2345),
        ("cvt.s32.s8", [0x180], "16", "32", 0xFFFFFF80),
        ("setp.lt.s32", [-1, 1], "32", "pred", 1),
        ("setp.lt.u32", [-1, 1], "32", "pred", 0),
        ("setp.eq.s16", [0x8000, -0x8000], "16", "pred", 1),
        ("and.pred", [1, 0], "pred", "pred", 0),
        ("xor.pred", [1, 1], "pred", "pred", 0),
        ("not.pred", [0], "pred", "pred", 1),
    ],
)
def test_integers_and_bits_are_as_in_the_isa(
    opcode: str, operands: list[int], operand_bits: str, result_bits: str, expected: int
) -> None:
    assert compute(opcode, operands, operand_bits, result_bits) == expected


@pytest.mark.parametrize(
    ("opcode", "operands", "expected"),
    [
        ("add.rn.f32", [0x3F800000, 0x33800000], 0x3F800000),  # a tie goes to even
        ("add.rn.f32", [DENORMAL, DENORMAL], 2 * DENORMAL),
        ("mul.rn.f32", [0x00800000, 0x3F000000], 0x00400000),  # half the smallest normal number
        ("add.rn.f32", [NAN, ONE], CANONICAL),
        ("sub.rn.f32", [INFINITY, INFINITY], CANONICAL),
        ("div.rn.f32", [ONE, 0x40400000], 0x3EAAAAAB),
        ("div.rn.f32", [ONE, 0], INFINITY),
        ("rcp.rn.f32", [0x40400000], 0x3EAAAAAB),
        ("rcp.rn.f32", [MINUS], MINUS | INFINITY),
        ("sqrt.rn.f32", [TWO], 0x3FB504F3),
        ("sqrt.rn.f32", [MINUS | ONE], CANONICAL),
        ("fma.rn.f32", [0x3F800001, 0x3F800001, 0xBF800002], 0x28800000),  # rounded once: 2^-46
        ("neg.f32", [0], MINUS),
        ("abs.f32", [MINUS | TWO], TWO),
        ("min.f32", [NAN, ONE], ONE),
        ("max.f32", [ONE, NAN], ONE),
        ("max.f32", [NAN, NAN], CANONICAL),
        ("min.f32", [0, MINUS], MINUS),
        ("max.f32", [MINUS, 0], 0),
        ("cvt.rzi.s32.f32", [0xBFC00000], 0xFFFFFFFF),
        ("cvt.rzi.s32.f32", [NAN], 0),
        ("cvt.rzi.s32.f32", [0x4F800000], 0x7FFFFFFF),
        ("cvt.rzi.u32.f32", [MINUS | ONE], 0),
        ("cvt.rzi.u32.f32", [INFINITY], 0xFFFFFFFF),
        ("cvt.rn.f32.u32", [0xFFFFFFFF], 0x4F800000),
        ("cvt.rn.f32.s32", [-1], MINUS | ONE),
    ],
)
def test_floating_point_rounds_as_ieee_754_and_computes_canonical_nans(
    opcode: str, operands: list[int], expected: int
) -> None:
    assert compute(opcode, operands, "32", "32") == expected


@pytest.mark.parametrize(
    ("comparison", "less", "equal", "unordered"),
    [
        *(("lt", 1, 0, 0), ("le", 1, 1, 0), ("gt", 0, 0, 0), ("ge", 0, 1, 0), ("eq", 0, 1, 0), ("ne", 1, 0, 0)),
        *(("ltu", 1, 0, 1), ("leu", 1, 1, 1), ("gtu", 0, 0, 1), ("geu", 0, 1, 1), ("equ", 0, 1, 1), ("neu", 1, 0, 1)),
        *(("num", 1, 1, 0), ("nan", 0, 0, 1)),
    ],
)
def test_comparisons_with_a_nan_hold_only_for_the_unordered_kinds(
    comparison: str, less: int, equal: int, unordered: int
) -> None:
    results = [compute(f"setp.{comparison}.f32", pair, "32", "pred") for pair in ([ONE, TWO], [ONE, ONE], [ONE, NAN])]
    assert results == [less, equal, unordered]


def test_random_floating_point_is_that_of_numpy() -> None:
    rng = np.random.default_rng(1)
    words = rng.integers(0, 2**32, (32, 2), dtype=np.uint64)
    words[:, 1] = words[:, 0] & 0xFF800000 | words[:, 1] & 0x807FFFFF  # close exponents
    operands = words.astype(np.uint32).view(np.float32)
    body = "mul.wide.u32 %d0, %tid, 16; add.s64 %d0, %given, %d0;"
    body += "ld.global.f32 %f0, [%d0]; ld.global.f32 %f1, [%d0+8];"
    for operation, expected in [
        ("add", np.add),
        ("sub", np.subtract),
        ("mul", np.multiply),
        ("div", np.divide),
    ]:
        outcome = run(
            body + f"{operation}.rn.f32 %f2, %f0, %f1; st.global.f32 [%mine], %f2;", given=words.ravel(), threads=32
        )
        with np.errstate(all="ignore"):
            made = expected(operands[:, 0], operands[:, 1])
        number = ~np.isnan(made)
        assert number.sum() > 20
        assert (outcome.result.astype(np.uint32)[number] == made.view(np.uint32)[number]).all()


def test_words_are_taken_apart_and_put_together() -> None:
    body = """
    ld.global.u64 %d0, [%given];
    mov.b64 {%r0, %r1}, %d0;
    mov.b32 {_, %h0}, %r1;
    mov.b32 %r2, {%h0, %h0};
    mov.b64 %d1, {%r2, %r0};
    st.global.u64 [%mine], %d1;
    """
    assert int(run(body, given=[0x1122334455667788]).result[0]) == 0x5566778811221122


@pytest.mark.parametrize(
    "instruction",
    [
        "add.f32 %f0, %f1, %f2",
        "add.rn.ftz.f32 %f0, %f1, %f2",
        "ex2.approx.f32 %f0, %f1",
        "div.full.f32 %f0, %f1, %f2",
        "add.rn.f64 %d0, %d1, %d2",
        "ld.volatile.global.u32 %r0, [%mine]",
        "bar.red.popc.u32 %r0, 0, %p0",
        "bar.sync 1",
        "mov.u64 %d0, %clock64",
    ],
)
def test_what_the_interpreter_does_not_know_is_refused_by_name(instruction: str) -> None:
    with pytest.raises(PtxError, match=instruction.split()[0]):
        run(f"{instruction};")
