"""The picture of busy threads, and their share, from the trace of a block."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.device_code.tpc import activity, busy_threads
from tests.ptx.snippets import run


def launched(body: str, threads: int) -> Any:
    return SimpleNamespace(record=run(body, threads=threads, traced_block=0).record)


def test_each_thread_is_bright_while_it_executes_and_dark_while_it_waits() -> None:
    # Threads of the second warp jump over 20 instructions, and wait at the barrier meanwhile.
    long = "mov.u32 %r1, 0;" * 20
    body = (
        "setp.ge.u32 %p0, %tid, 32; @%p0 bra AT; setp.lt.u32 %p1, %tid, 16; @%p1 mov.u32 %r0, 1; "
        f"{long} AT: bar.sync 0;"
    )
    launches = [launched(body, 64)]
    length = int(launches[0].record.block_paths[0])
    picture = activity(launches, rows=length)
    assert picture.shape[1] == 64
    assert set(np.unique(picture)) <= {0.0, 1.0}
    whole = picture.mean(axis=0)
    # A guarded instruction counts for the lanes whose guard is true: the jump, and the move of threads 0 to 15.
    assert np.allclose(whole[:16], (length - 1) / length)
    assert np.allclose(whole[16:32], (length - 2) / length)
    assert (whole[32:] < (length - 20) / length).all()
    assert np.isclose(busy_threads(launches), whole.mean())
    coarse = activity(launches, rows=4)
    assert np.allclose(coarse.mean(axis=0), whole, rtol=0.2)
