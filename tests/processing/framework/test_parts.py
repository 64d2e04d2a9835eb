"""Kernels over the parts of events and over fragments: on the CPU with any number of threads, in blocks, on a GPU."""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends import _executor
from hltnode.processing.framework.backends.cpu import CpuBackend
from hltnode.processing.framework.backends.cuda import CudaBackend
from hltnode.processing.framework.backends.interface import Backend
from hltnode.processing.framework.batch import BATCH_HEADER, MepInBatch
from hltnode.processing.framework.codegen import algorithm_header
from hltnode.processing.framework.collections import U8, U32, Collection, DeclarationError, Placement
from hltnode.processing.framework.declaration import Algorithm, AlgorithmSequence, Grid
from hltnode.processing.framework.engine import MAX_BLOCKS, Engine
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.memory_plan import plan_memory
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.framework.workspace import Workspace
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.framework.chain_builder import build_chain, copy_package
from tests.processing.framework.cupy_stand_in import CupyStandIn, install
from tests.processing.framework.kernel_runner import run_algorithms, with_block_size
from tests.processing.framework.simulated_gpu import SimulatedGpu
from tests.ptx.chain import PtxLauncher
from tests.ptx.kernels import machine_of, module_of

LIMITS = BatchLimits(events=40, meps=4, input_bytes=1 << 16, rows=16)
N_SLICES, MAX_IN_SLICE, THRESHOLD = 5, 64, 100
MEPS = (7, 1, 24)
"""Events of the MEPs of the batch."""
FULL, EMPTY = 3, 9
"""An event whose second slice has more values than fit, and one without bytes."""


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The module of the chain, built outside the tree."""
    root = tmp_path_factory.mktemp("parts")
    copy_package(Path(__file__).parent / "parts_chain", root, "parts")
    sys.path.insert(0, str(root))
    try:
        module = importlib.import_module("parts.chain")
        build_chain(module.PARTS)
        yield module
    finally:
        sys.path.remove(str(root))


@pytest.fixture
def gpu(parts: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CupyStandIn:
    """A simulated GPU with the kernels of the chain."""
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    return install(monkeypatch, SimulatedGpu(parts.PARTS.kernels))


def payloads() -> list[list[bytes]]:
    """The bytes of both boards in each event."""
    rng = np.random.default_rng(7)
    events = [[rng.bytes(int(rng.integers(0, 120))), rng.bytes(int(rng.integers(0, 9)))] for _ in range(sum(MEPS))]
    full = np.zeros((MAX_IN_SLICE + 6, N_SLICES), np.uint8)
    full[:, 1] = 255
    events[FULL][0] = full.tobytes()
    events[EMPTY][0] = b""
    return events


def slices_of(payload: bytes) -> list[NDArray[np.int64]]:
    """The values of each slice, without the bound."""
    data = np.frombuffer(payload, np.uint8).astype(np.int64)
    return [of_slice[of_slice >= THRESHOLD] for of_slice in (data[k::N_SLICES] for k in range(N_SLICES))]


def expected() -> dict[str, list[Any]]:
    """Content of the output columns, by plain Python."""
    slices = [slices_of(event[0]) for event in payloads()]
    kept = [[values[:MAX_IN_SLICE] for values in event] for event in slices]
    return {
        "events.fragment_bytes": [sum(len(bank) for bank in event) for event in payloads()],
        "events.charge": [int(sum(values.sum() for values in event)) for event in slices],
        "slices.sum": [int(values.sum()) for event in kept for values in event],
        "slices.next_sum": [int(event[(k + 1) % N_SLICES].sum()) for event in kept for k in range(N_SLICES)],
        "found.total": [int((values**2).sum()) for event in kept for values in event],
        "events.total": [int(sum(values.sum() for values in event)) for event in kept],
    }


def fill(module: ModuleType, workspace: Workspace, *, backward: bool = False) -> None:
    """Seal a batch of three MEPs; backward: with the last event first."""
    banks = [
        [
            RawBank(module.BYTES, 1, source, memoryview(payload))
            for source, payload in zip(module.SOURCES, event, strict=True)
        ]
        for event in (reversed(payloads()) if backward else payloads())
    ]
    meps, first, at = [], 0, 0
    for n in MEPS:
        mep = encode_mep(module.PARTS, banks[first : first + n])
        workspace.input_data[at : at + mep.data.nbytes] = mep.data
        meps.append(MepInBatch(n, [(source, at + offset, size) for source, offset, size in mep.fragments]))
        first, at = first + n, at + -(-mep.data.nbytes // 8) * 8
    workspace.seal(meps)


def found_by(module: ModuleType, backend: Backend) -> tuple[dict[str, list[Any]], list[int]]:
    """Content of the output columns, and the flags of the events."""
    engine = Engine(backend, module.PARTS, {}, LIMITS)
    workspace = engine.create_workspace()
    for backward in (True, False):  # the second batch finds what the first one has left
        fill(module, workspace, backward=backward)
        workspace.submit()
        workspace.wait()
    n = workspace.n_events
    columns = {name: workspace.host_array(name) for name in expected()}
    result = {name: content[: n * len(content) // LIMITS.events].tolist() for name, content in columns.items()}
    flags = workspace.host_array("events.flags")[:n].tolist()
    engine.close()
    return result, flags


def given_batch(module: ModuleType) -> tuple[dict[str, NDArray[Any]], NDArray[np.void]]:
    """The input columns of the batch, and its header."""
    backend = CpuBackend(module.PARTS.kernels)
    workspace = Engine(backend, module.PARTS, {}, LIMITS).create_workspace()
    fill(module, workspace)
    names = ("input.bytes", "input.mfp_rows", "input.mep_rows", "input.event_rows", "events.flags", "batch")
    given: dict[str, NDArray[Any]] = {name: workspace.host_array(name).copy() for name in names}
    backend.close()
    header = given.pop("batch")
    given["input.mfp_rows"] = given["input.mfp_rows"][: int(header["n_rows"][0])]
    return given, header


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_parts_and_fragments_on_threads(parts: ModuleType, threads: int) -> None:
    result, flags = found_by(parts, CpuBackend(parts.PARTS.kernels, threads=threads))
    assert result == expected()
    assert flags == [parts.slice_types.flags[0].mask if event == FULL else 0 for event in range(sum(MEPS))]


def test_parts_and_fragments_on_a_simulated_gpu(parts: ModuleType, gpu: CupyStandIn) -> None:
    del gpu
    result, flags = found_by(parts, CudaBackend(parts.PARTS.kernels))
    assert result == expected()
    assert [event for event, flag in enumerate(flags) if flag] == [FULL]


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("block_size", [1, 32, 256])
def test_results_do_not_depend_on_the_block_size(parts: ModuleType, block_size: int, backward: bool) -> None:
    given, header = given_batch(parts)

    def launch(algorithm: Algorithm, sizes: Any, parameters: NDArray[np.uint8], of_runner: NDArray[np.void]) -> None:
        of_runner[:] = header  # the runner knows batches of one MEP only
        with_block_size(block_size, backward=backward, kernels=parts.PARTS.kernels)(
            algorithm, sizes, parameters, of_runner
        )

    result = run_algorithms(tuple(parts.PARTS.sequence), given, sum(MEPS), LIMITS, launch)
    for name, content in expected().items():
        assert result[name][: len(content)].tolist() == content


@pytest.mark.parametrize("block_size", [1, 32])
def test_the_ptx_gives_the_same_and_no_two_blocks_conflict(parts: ModuleType, block_size: int) -> None:
    machine = machine_of(module_of("90", parts.PARTS.kernels))
    launcher = PtxLauncher(machine, block_size)
    given, header = given_batch(parts)

    def launch(algorithm: Algorithm, sizes: Any, parameters: NDArray[np.uint8], of_runner: NDArray[np.void]) -> None:
        of_runner[:] = header
        launcher(algorithm, sizes, parameters, of_runner)

    sequence = tuple(parts.PARTS.sequence)
    result = run_algorithms(sequence, given, sum(MEPS), LIMITS, launch, allocate=machine.allocate)
    for name, content in expected().items():
        assert result[name][: len(content)].tolist() == content
    assert [it.text for it in launcher.conflicts if not it.equal] == []
    assert {name for name, cost in launcher.costs(sum(MEPS)).items() if cost.warp_instructions > 0} == {
        algorithm.name for algorithm in sequence
    }


def test_slices_are_fused_and_their_values_stay_with_the_thread(parts: ModuleType) -> None:
    plan = plan_memory(parts.PARTS.sequence, LIMITS, fuse_events=True)
    stages = [[algorithm.name for algorithm in stage] for stage in plan.stages]
    assert ["parts_find_values", "parts_sum_values"] in stages
    assert ["parts_next_sums"] in stages
    assert ["parts_square_values"] in stages
    # Used by one stage, one slice at a time; other columns are in several stages.
    assert {region.column.name: region.nbytes for region in plan.thread.regions} == {"found.squares": 2 * MAX_IN_SLICE}
    assert plan.arena.region("slices.count") is not None


def test_columns_of_the_event_are_not_in_the_memory_of_the_thread_of_a_part() -> None:
    tiles = Collection("tiles", capacity=lambda limits: limits.events * 8, placement=Placement.fixed(2), parts=4)
    hits = Collection("hits", capacity=lambda limits: limits.events, placement=Placement.fixed(1), max_per_event=1)
    of_event, of_part, bounded = hits.column("x", U8), tiles.per_part("n", U32), tiles.column("y", U8)
    algorithm = Algorithm(
        name="a", source=Path(__file__), grid=Grid.PARTS, parts=4, block_size=1, writes=(of_event, of_part, bounded)
    )
    plan = plan_memory(AlgorithmSequence((algorithm,)), LIMITS, fuse_events=True)
    # `tiles` names no bound for the objects of a part.
    assert [region.column for region in plan.thread.regions] == [of_part]
    assert plan.thread.regions[0].nbytes == 4
    over_events = Algorithm(name="a", source=Path(__file__), grid=Grid.EVENTS, block_size=1, writes=(of_part,))
    plan = plan_memory(AlgorithmSequence((over_events,)), LIMITS, fuse_events=True)
    assert plan.thread.regions[0].nbytes == 4 * 4


def test_unequal_parts_are_not_fused() -> None:
    def over(name: str, parts: int) -> Algorithm:
        return Algorithm(name=name, source=Path(__file__), grid=Grid.PARTS, parts=parts, block_size=1)

    plan = plan_memory(AlgorithmSequence((over("a", 4), over("b", 4), over("c", 5))), LIMITS, fuse_events=True)
    assert [len(stage) for stage in plan.stages] == [2, 1]


TILES = Collection("tiles", capacity=lambda limits: limits.events * 8, placement=Placement.fixed(2), parts=4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"grid": Grid.PARTS}, "needs their number"),
        ({"grid": Grid.PARTS, "parts": 0}, "at least 1"),
        ({"grid": Grid.EVENTS, "parts": 4}, "only a kernel over parts"),
        ({"grid": Grid.EVENTS, "after_all_parts": True}, "only a kernel over parts"),
        ({"grid": Grid.PARTS, "parts": 5, "part_sizes": TILES.per_part("n", U32)}, "not a u32 for each of 5 parts"),
        ({"grid": Grid.PARTS, "parts": 4, "part_sizes": TILES.per_part("n", U8)}, "not a u32 for each of 4 parts"),
        ({"grid": Grid.PARTS, "parts": 4, "part_sizes": TILES.per_part("n", U32, width=2)}, "not a u32"),
        ({"grid": Grid.PARTS, "parts": 4, "part_sizes": TILES.column("n", U32)}, "not a u32"),
    ],
)
def test_parts_that_do_not_fit_the_grid_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        Algorithm(name="a", source=Path(__file__), block_size=32, **arguments)


def test_a_kernel_cannot_write_the_sizes_that_order_its_parts() -> None:
    sizes = TILES.per_part("n", U32)
    with pytest.raises(DeclarationError, match="by which its parts are ordered"):
        Algorithm(
            name="a",
            source=Path(__file__),
            grid=Grid.PARTS,
            parts=4,
            part_sizes=sizes,
            block_size=1,
            writes=(sizes,),
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"parts": 0}, "0 parts per event"),
        ({"parts": 4, "max_per_event": 8}, "max_per_event, but its placement is not by event"),
        ({"max_per_part": 8}, "max_per_part, but its placement is not by part"),
    ],
)
def test_collections_with_wrong_parts_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        Collection("tiles", capacity=lambda limits: limits.events, **arguments)


def test_a_collection_without_parts_has_no_column_per_part() -> None:
    hits = Collection("hits", capacity=lambda limits: limits.events)
    with pytest.raises(DeclarationError, match="collection hits has no parts"):
        hits.per_part("n", U32)


def test_a_grid_larger_than_a_gpu_allows_is_refused(parts: ModuleType) -> None:
    by_name = {algorithm.name: algorithm for algorithm in parts.PARTS.sequence}
    counters = AlgorithmSequence((by_name["parts_clear_counts"],))
    backend = CpuBackend(parts.PARTS.kernels)
    limits = BatchLimits(events=MAX_BLOCKS + 1, input_bytes=64)
    with pytest.raises(DeclarationError, match=r"parts_clear_counts: 2147483648 blocks .* use batches of fewer events"):
        Engine(backend, replace(parts.PARTS, sequence=counters), {}, limits)
    backend.close()


def test_a_column_with_more_elements_than_kernels_count_is_refused(parts: ModuleType) -> None:
    backend = CpuBackend(parts.PARTS.kernels)
    limits = BatchLimits(events=(1 << 32) // (N_SLICES * MAX_IN_SLICE) + 1, input_bytes=64)
    with pytest.raises(DeclarationError, match=r"slices\.values: 4294967360 elements .* count in 32 bits"):
        Engine(backend, parts.PARTS, {}, limits)
    backend.close()


def test_the_struct_of_a_kernel_over_parts(parts: ModuleType) -> None:
    by_name = {algorithm.name: algorithm for algorithm in parts.PARTS.sequence}
    text = algorithm_header(by_name["parts_square_values"], parts.PARTS.kernels.folders)
    assert "static constexpr uint32_t n_parts = 5u;" in text
    assert "uint32_t first(uint32_t part_in_batch) const { return part_in_batch * 64u; }" in text
    assert "uint32_t first(uint32_t part_in_batch) const { return found_offsets_offset[part_in_batch]; }" in text


KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32)


def taken(sizes: NDArray[np.uint32] | None, n_events: int, parts: int, threads: int) -> list[int]:
    """Parts in the order in which threads take them; the first part of each thread waits for those of the others."""
    header = np.zeros(1, BATCH_HEADER.dtype)
    header["n_events"] = n_events
    order: list[int] = []
    first = Barrier(threads)

    def run(_: object, block: int) -> None:
        order.append(block)
        if len(order) <= threads:
            first.wait(60)

    kernel = KERNEL(run)
    address = ctypes.cast(kernel, ctypes.c_void_p).value
    assert address is not None
    parameters = np.zeros(8, np.uint8)
    step = (address, parameters.ctypes.data, int(Grid.PARTS), 8)
    given = [(0, parts, 0 if sizes is None else sizes.ctypes.data, False)]
    program = _executor.Program([step], header.ctypes.data, threads=threads, parts=given)
    _executor.Executor(threads).run(program)
    return order


def test_threads_take_parts_with_the_largest_sizes_first() -> None:
    sizes = np.full(12, 10, np.uint32)
    sizes[[7, 11]] = 400, 120  # the mean is 51
    order = taken(sizes, 3, 4, 2)
    assert sorted(order) == list(range(12))
    assert set(order[:2]) == {7, 11}
    assert taken(sizes, 3, 4, 1) == list(range(12))
    # The sizes of the next batch count, not those of this one.
    sizes[7], sizes[2] = 10, 400
    assert set(taken(sizes, 3, 4, 2)[:2]) == {2, 11}


def test_parts_without_sizes_keep_their_order() -> None:
    order = taken(None, 3, 4, 2)
    assert sorted(order[:2]) == [0, 1]
    assert sorted(order) == list(range(12))


@pytest.mark.parametrize(
    ("grid", "parts", "message"),
    [
        (Grid.PARTS, [], "a step over parts without their number"),
        (Grid.PARTS, [(0, 0, 0, False)], "parts that do not fit"),
        (Grid.PARTS, [(1, 4, 0, False)], "parts that do not fit"),
        (Grid.EVENTS, [(0, 4, 0, False)], "parts that do not fit"),
        (5, [], "no such grid"),
    ],
)
def test_a_program_with_wrong_parts_is_refused(
    grid: int, parts: list[tuple[int, int, int, bool]], message: str
) -> None:
    header, parameters = np.zeros(1, BATCH_HEADER.dtype), np.zeros(8, np.uint8)
    kernel = KERNEL(lambda *_: None)
    address = ctypes.cast(kernel, ctypes.c_void_p).value
    assert address is not None
    with pytest.raises(ValueError, match=message):
        _executor.Program([(address, parameters.ctypes.data, int(grid), 8)], header.ctypes.data, parts=parts)
