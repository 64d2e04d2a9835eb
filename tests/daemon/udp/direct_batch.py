"""A batch of a direct workspace whose functions are Python: it computes as the fake engine, when the test allows it."""

import ctypes
import os
import threading
from collections.abc import Callable

import numpy as np

from hltnode.processing.framework.batch import MepInBatch
from tests.daemon.fakes import FakeWorkspace

WRITE_TABLES = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t)
COMPUTE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Functions(ctypes.Structure):
    """hlt::direct_batch of processing/framework/backends/direct_batch.h."""

    _fields_ = (
        ("self", ctypes.c_void_p),
        ("input", ctypes.c_void_p),
        ("input_bytes", ctypes.c_size_t),
        ("write_tables", WRITE_TABLES),
        ("compute", COMPUTE),
    )


class HeldBatch:
    """The batch of a fake workspace. While `may_compute` is not set, a computation hangs."""

    def __init__(self, workspace: FakeWorkspace, note: Callable[[set[int]], None]) -> None:
        self.workspace = workspace
        self.may_compute = threading.Event()
        self.may_compute.set()
        self.begun = threading.Event()
        self.computed = 0
        """Number of computed batches."""
        self._note = note
        self._functions = Functions(
            None,
            workspace.input_data.ctypes.data,
            len(workspace.input_data),
            WRITE_TABLES(self._write_tables),
            COMPUTE(self._compute),
        )
        self.address = ctypes.addressof(self._functions)

    def _write_tables(self, _self: int, n_events: int, places: int, n_places: int) -> bool:
        numbers = (ctypes.c_int64 * (3 * n_places)).from_address(places)
        self.workspace.seal([MepInBatch(n_events, np.array(numbers, np.int64).reshape(-1, 3))])
        return True

    def _compute(self, _self: int) -> None:
        self.begun.set()
        self._note(os.sched_getaffinity(0))
        assert self.may_compute.wait(30.0)
        self.begun.clear()
        self.computed += 1
