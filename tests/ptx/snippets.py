"""Runs hand-written pieces of PTX, for tests of single instructions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.ptx.kernels import machine_of
from tests.ptx.machine import NO_BLOCK, LaunchRecord
from tests.ptx.parser import parse

_FRAME = """
.version 9.0
.target sm_90
.address_size 64
{module}
.visible .entry snippet(.param .u64 given, .param .u64 result)
{{
    .reg .pred %p<16>; .reg .b16 %h<16>; .reg .b32 %r<32>; .reg .f32 %f<16>; .reg .b64 %d<32>;
    .reg .b32 %tid; .reg .b32 %thread; .reg .b64 %given; .reg .b64 %result; .reg .b64 %mine;
    {declarations}
    ld.param.u64 %given, [given];
    ld.param.u64 %result, [result];
    mov.u32 %tid, %tid.x;
    mov.u32 %thread, %ctaid.x;
    mov.u32 %r31, %ntid.x;
    mad.lo.s32 %thread, %thread, %r31, %tid;
    mul.wide.u32 %mine, %thread, 8;
    add.s64 %mine, %result, %mine;
    {body}
    ret;
}}
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """result: u64, eight bytes for each thread at its %mine; bytes of `given` and of `result` that were read and
    written (Machine.touched)."""

    result: NDArray[np.uint64]
    record: LaunchRecord
    touched_given: tuple[int, int]
    touched_result: tuple[int, int]

    @property
    def conflicts(self) -> list[str]:
        return [conflict.text for conflict in self.record.conflicts]

    def count(self, text: str) -> dict[str, int]:
        """Executions, lanes, sectors and bytes of global memory of the only instruction that starts with this text."""
        counts = self._counts(text)
        return {name: int(counts[name]) for name in ("executions", "lanes", "sectors", "bytes")}

    def local_bytes(self, text: str) -> int:
        """Bytes of local memory of the only instruction that starts with this text."""
        return int(self._counts(text)["local_bytes"])

    def _counts(self, text: str) -> np.void:
        (position,) = [i for i, other in enumerate(self.record.program.texts) if other.startswith(text)]
        counts: np.void = self.record.counts[position]
        return counts


def run(
    body: str,
    *,
    given: Sequence[int] | NDArray[Any] = (0,),
    declarations: str = "",
    module: str = "",
    threads: int = 1,
    blocks: int = 1,
    backward: bool = False,
    traced_block: int = NO_BLOCK,
) -> Outcome:
    """Run a kernel with this body. %given points to `given` (u64), %tid and %thread are the thread's numbers in its
    block and in the launch; the registers %p, %h (16 bits), %r, %f (32) and %d (64) are free."""
    text = _FRAME.format(module=module, declarations=declarations, body=body)
    machine = machine_of(parse(text), backward=backward)
    content = np.array(given, dtype=np.uint64)
    source = machine.allocate(content.nbytes)
    source[:] = content.view(np.uint8)
    result = machine.allocate(8 * threads * blocks)
    arguments = np.array([source.ctypes.data, result.ctypes.data], dtype=np.uint64).tobytes()
    record = machine.launch("snippet", arguments, blocks, threads, traced_block=traced_block)
    touched = (machine.touched(memory.ctypes.data) for memory in (source, result))
    return Outcome(result.view(np.uint64), record, *touched)
