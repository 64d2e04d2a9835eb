"""Required memory is compared with free memory before allocation; the error names sizes that fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from hltnode.processing.framework.backends.cpu import CpuBackend
from hltnode.processing.framework.backends.interface import BackendError, DeviceMemory, Mirror
from hltnode.processing.framework.engine import Engine
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.memory_check import MARGIN, largest_batch
from hltnode.processing.framework.memory_plan import plan_memory
from hltnode.processing.framework.offline_runner import OfflineRunner
from hltnode.processing.lhcb.chain import CHAIN, geometry_constants
from hltnode.processing.lhcb.geometry.velo import VeloGeometry

LIMITS = BatchLimits(events=256, meps=16, input_bytes=8 << 20, rows=8192)


class SmallBackend(CpuBackend):
    """A CPU back end with little memory, which counts the allocated bytes."""

    def __init__(self, free: int) -> None:
        super().__init__(CHAIN.kernels, threads=2)
        self.free = free
        self.taken = 0

    def free_bytes(self) -> int:
        return self.free

    def allocate_mirror(self, nbytes: int) -> Mirror:
        self.taken += nbytes
        return super().allocate_mirror(nbytes)

    def allocate_device(self, nbytes: int) -> DeviceMemory:
        self.taken += nbytes
        return super().allocate_device(nbytes)


@pytest.fixture
def backend() -> Iterator[SmallBackend]:
    made = SmallBackend(free=1 << 40)
    yield made
    made.close()


def an_engine(backend: SmallBackend, limits: BatchLimits = LIMITS) -> Engine:
    return CHAIN.create_engine(
        backend, geometry_constants(VeloGeometry.builtin()), CHAIN.load_trigger(None, "velo"), limits
    )


def test_slots_that_do_not_fit_are_refused_before_anything_is_allocated(backend: SmallBackend) -> None:
    engine = an_engine(backend)
    before = backend.taken
    backend.free = int(engine.plan.total_bytes(slots=2, threads=2) / MARGIN) + 1
    with pytest.raises(BackendError, match=r"3 slots of 8388608 bytes and 256 events need .* MiB .* are free") as error:
        OfflineRunner(engine)
    assert backend.taken == before
    assert ": pipeline.slots = 2 or pipeline.slot_bytes = " in str(error.value)


def test_fewer_slots_than_a_node_can_run_with_are_not_advised(backend: SmallBackend) -> None:
    engine = an_engine(backend)
    backend.free = int(engine.plan.total_bytes(slots=1, threads=2) / MARGIN) + 1
    with pytest.raises(
        BackendError, match=r"are free: pipeline\.slot_bytes = \d+ with pipeline\.max_events = \d+ would fit"
    ):
        engine.require_memory(3)


def test_what_fits_exactly_is_not_refused(backend: SmallBackend) -> None:
    engine = an_engine(backend)
    backend.free = engine.plan.total_bytes(slots=3, threads=2)
    OfflineRunner(engine)
    backend.free -= 1
    with pytest.raises(BackendError, match="are free"):
        engine.require_memory(3)


def test_the_plan_is_what_a_workspace_takes(backend: SmallBackend) -> None:
    engine = an_engine(backend)
    before = backend.taken
    engine.create_workspace()
    first = backend.taken - before
    parameters = 64 << 10
    assert 0 <= first - engine.plan.total_bytes(slots=1, threads=2) < parameters
    engine.create_workspace()
    assert 0 <= backend.taken - before - first - engine.plan.slot_bytes < parameters


def test_a_direct_workspace_takes_memory_of_a_thread_of_its_own(backend: SmallBackend) -> None:
    engine = an_engine(backend)
    engine.create_workspace()
    before = backend.taken
    engine.create_direct_workspace()
    assert 0 <= backend.taken - before - engine.plan.slot_bytes - engine.plan.thread.nbytes < 64 << 10
    assert engine.plan.thread.nbytes > 64 << 10


@pytest.mark.parametrize("share", [0.5, 1.0, 2.0])
def test_requests_need_memory_beside_all_slots_of_the_run(backend: SmallBackend, share: float) -> None:
    run = an_engine(backend)
    limits = replace(LIMITS, events=int(share * LIMITS.events), input_bytes=int(share * LIMITS.input_bytes))
    requests = an_engine(backend, limits)
    before = backend.taken
    workspaces = [run.create_workspace() for _ in range(3)]
    workspaces.append(requests.create_direct_workspace())
    taken = backend.taken - before
    # What was taken is enough, and what is needed is not more; parameters of kernels are not planned.
    backend.free = taken
    requests.require_direct_memory(run, 3)
    backend.free = taken - len(workspaces) * (64 << 10)
    with pytest.raises(BackendError, match=r"are free beside the .* MiB of the run") as error:
        requests.require_direct_memory(run, 3)
    assert "pipeline." not in str(error.value)
    assert ": requests.max_bytes = " in str(error.value)
    assert " with requests.max_events = " in str(error.value)


def test_the_batch_that_the_error_names_fits_and_one_step_more_does_not(backend: SmallBackend) -> None:
    engine = an_engine(backend)
    free = engine.plan.total_bytes(slots=3, threads=2) // 2
    smaller = largest_batch(engine.plan, 3, 2, free)
    assert smaller is not None

    def needed(limits: BatchLimits) -> int:
        return plan_memory(engine.plan.sequence, limits, fuse_events=True).total_bytes(3, 2)

    assert needed(smaller) <= free
    step = replace(
        smaller,
        events=smaller.events + LIMITS.events // 64,
        input_bytes=smaller.input_bytes + LIMITS.input_bytes // 64,
    )
    assert needed(step) > free


def test_where_no_batch_fits_the_error_says_so(backend: SmallBackend) -> None:
    engine = an_engine(backend)
    backend.free = 1000
    with pytest.raises(BackendError, match="no smaller batch would fit"):
        engine.require_memory(1)


def test_a_real_machine_has_room_for_a_small_batch() -> None:
    backend = CpuBackend(CHAIN.kernels)
    free = backend.free_bytes()
    assert isinstance(free, int)
    assert np.log2(free) > 20
    backend.close()
