"""Public data of KM3NeT from the package km3net-testdata, where it is installed, and its time slices as hits.

`pip install km3net-testdata==0.4.31` (PyPI, 79 MB). The repository has no copy of these files.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from struct import unpack_from

import numpy as np
import pytest
from numpy.typing import NDArray

SLICE_VERSION = 1
DAQ_HIT = np.dtype([("channel", "u1"), ("time", ">u4"), ("time_over_threshold", "u1")])
"""A hit of a frame: PMT of its module, ns since the start of the slice, and ns over the threshold."""
SLICE_HIT = np.dtype([("module", "<i4"), ("channel", "u1"), ("time", "<u4"), ("time_over_threshold", "u1")])


def public_data() -> Path:
    """The folder of the files. Skips the test where the package is absent."""
    found = find_spec("km3net_testdata")
    if found is None or found.origin is None:
        pytest.skip("km3net-testdata is not installed (pip install km3net-testdata==0.4.31)")
    return Path(found.origin).parent / "data"


@dataclass(frozen=True, slots=True)
class DaqSlice:
    """A time slice of the data acquisition. number: its index in the run. hits: SLICE_HIT[hits] by module."""

    run: int
    number: int
    modules: tuple[int, ...]
    hits: NDArray[np.void]


def daq_slices(content: bytes) -> list[DaqSlice]:
    """The time slices of a file of the DAQ (JDAQTimeslice, version 1), without the ROOT library.

    A slice: size and type i32, version i16, detector, run, number, seconds, ticks of 16 ns, and frames, i32. A frame:
    size and type, detector, run, number, seconds, ticks and module, six words of status, number of hits, and hits.
    Raises ValueError for sizes that contradict one another.
    """
    slices, at = [], 0
    while at < len(content):
        size, _kind, version = unpack_from("<iih", content, at)
        if version != SLICE_VERSION or at + size > len(content):
            raise ValueError(f"byte {at}: a slice of version {version} and {size} bytes")
        _detector, run, number, _seconds, _ticks, n_frames = unpack_from("<6i", content, at + 10)
        frame, modules, parts = at + 34, [], []
        for _ in range(n_frames):
            of_frame, _kind, _detector, _run, _number, _seconds, _ticks, module = unpack_from("<8i", content, frame)
            (n,) = unpack_from("<i", content, frame + 52)
            if of_frame != 56 + DAQ_HIT.itemsize * n:
                raise ValueError(f"byte {frame}: a frame of {of_frame} bytes with {n} hits")
            raw = np.frombuffer(content, DAQ_HIT, n, frame + 56)
            hits = np.zeros(n, SLICE_HIT)
            hits["module"] = module
            for name in DAQ_HIT.names or ():
                hits[name] = raw[name]
            modules.append(module)
            parts.append(hits)
            frame += of_frame
        if frame != at + size:
            raise ValueError(f"byte {at}: a slice of {size} bytes with frames of {frame - at - 34} bytes")
        slices.append(DaqSlice(run, number, tuple(modules), np.concatenate(parts)))
        at += size
    return slices
