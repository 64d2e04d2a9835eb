"""The UT with blocks of many threads, emulated and by PTX, gives the same bits for every block size and thread
order."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.collections import Role
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import encode_mep
from tests.processing.framework.kernel_runner import Launch, host_memory, run_algorithms, with_block_size
from tests.processing.framework.nvrtc_library import nvrtc_of
from tests.processing.lhcb.ut.test_decoding import banks_v3, random_hits, simulated
from tests.processing.lhcb.ut.ut_chain import UT_ALGORITHMS, Detector, UtChain, UtEvent, limits_of, ut_chain
from tests.ptx.chain import PtxLauncher
from tests.ptx.kernels import CUDA_VERSION, machine_of
from tests.ptx.nvrtc import ptx_of, resources
from tests.ptx.parser import Module, parse

COMPARED = (
    *(f"ut_hits.{name}" for name in ("x", "z", "y_begin", "y_end", "weight", "id", "group_offset", "sector_offset")),
    *(f"ut_tracks.{name}" for name in ("velo_track", "qop", "x", "z", "tx", "hit_count", "hits")),
)
UT_KERNELS = UT_ALGORITHMS


class Sample:
    """Input of the UT from simulated and made-up events, and the output of the CPU back end."""

    def __init__(self) -> None:
        rng = np.random.default_rng(4)
        made_up = [banks_v3(random_hits(rng, n)) for n in (0, 1, 2000)]
        mep = encode_mep(ut_chain(), [*simulated(4), *made_up])
        detector = Detector.builtin()
        self.limits: BatchLimits = limits_of(mep)
        chain = UtChain(detector, self.limits)
        self.events: list[UtEvent] = chain.run(mep)
        self.n_events = len(self.events)
        written = {column.name for algorithm in UT_KERNELS for column in algorithm.writes}
        read = {
            column.name: column for algorithm in UT_KERNELS for column in (*algorithm.all_reads, *algorithm.updates)
        }
        workspace, constants = chain.workspace, detector.constants()
        self.given: dict[str, NDArray[Any]] = {}
        for name, column in read.items():
            if name == "events.flags":
                self.given[name] = np.zeros(self.n_events, np.uint32)
            elif column.role & Role.CONSTANT:
                self.given[name] = constants[name].view(column.dtype)
            elif name not in written and name != "batch":
                host = column.role & (Role.INPUT | Role.OUTPUT)
                self.given[name] = workspace.host_array(name) if host else workspace.fetch(name)
        self.made = {name: workspace.fetch(name) for name in COMPARED}

    def differences(self, launch: Launch, allocate: Any = host_memory) -> list[str]:
        """Columns whose used part differs if `launch` runs the kernels."""
        found = run_algorithms(UT_KERNELS, self.given, self.n_events, self.limits, launch, allocate=allocate)
        wrong = []
        n_tracks = found["ut_tracks.count"][: self.n_events]
        n_hits = found["ut_hits.count"][: self.n_events]
        for name in COMPARED:
            per_event = name.endswith("_offset")
            width = {"ut_tracks.hits": 4}.get(name, 1)
            for event in range(self.n_events):
                if per_event:
                    row = len(self.made[name]) // self.limits.events
                    used = slice(event * row, (event + 1) * row)
                elif name.startswith("ut_tracks"):
                    used = slice(event * 1024 * width, (event * 1024 + int(n_tracks[event])) * width)
                else:
                    first = int(found["ut_hits.offset"][event])
                    used = slice(first, first + int(n_hits[event]))
                if found[name][used].tobytes() != self.made[name][used].tobytes():
                    wrong.append(f"{name} of event {event}")
        counts = [(len(event.hits["id"]), len(event.tracks["qop"])) for event in self.events]
        if [(int(a), int(b)) for a, b in zip(n_hits, n_tracks, strict=True)] != counts:
            wrong.append("counts")
        return wrong


@cache
def sample() -> Sample:
    return Sample()


@cache
def module() -> Module:
    return parse(ptx_of(nvrtc_of(CUDA_VERSION), ut_chain().kernels, "90"))


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("block_size", [1, 32, 64, 100, 256])
def test_hits_and_tracks_do_not_depend_on_the_threads(block_size: int, backward: bool) -> None:
    assert sum(len(event.tracks["qop"]) for event in sample().events) > 100
    assert sample().differences(with_block_size(block_size, backward=backward, kernels=ut_chain().kernels)) == []


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("block_size", [32, 64, 100, 256])
def test_the_code_of_a_gpu_makes_the_same_hits_and_tracks(block_size: int, backward: bool) -> None:
    machine = machine_of(module(), backward=backward)
    launcher = PtxLauncher(machine, block_size)
    assert sample().differences(launcher, machine.allocate) == []
    assert not launcher.conflicts


def test_the_kernels_leave_room_for_eight_blocks_on_a_multiprocessor() -> None:
    used = resources(nvrtc_of(CUDA_VERSION), "90", ut_chain().kernels)
    for algorithm in UT_KERNELS:
        kernel = used[algorithm.name]
        assert kernel.registers <= 128, algorithm.name
        assert kernel.spill_stores == kernel.spill_loads == 0, algorithm.name
        assert 8 * kernel.shared <= 224 << 10, algorithm.name
