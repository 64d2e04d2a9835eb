"""The CPU back end: targets, threads, queues and errors."""

import ctypes
import struct
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.algorithms.fragment_offsets import fragment_offsets
from hltnode.processing.framework.backends import _executor
from hltnode.processing.framework.backends.cpu import ALIGNMENT, CpuBackend
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.backends.interface import BackendError
from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.batch import BATCH_HEADER, BROKEN_BANK, MepInBatch
from hltnode.processing.framework.declaration import AlgorithmSequence, Grid
from hltnode.processing.framework.engine import Engine
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.lhcb.chain import CHAIN, geometry_constants
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.protocol.raw_data.mfp import encode_mfp

LIMITS = BatchLimits(events=64, meps=8, input_bytes=1 << 16, rows=64)


def a_workspace(backend: CpuBackend, limits: BatchLimits = LIMITS) -> Workspace:
    chain = replace(CHAIN, sequence=AlgorithmSequence((fragment_offsets,)), accepted=None, lines=None, counts={})
    return Engine(backend, chain, {}, limits, retain="all").create_workspace()


def place(workspace: Workspace, n_events: int, mfps: dict[int, bytes]) -> MepInBatch:
    """Copy MFPs to the start of the input, one after the other, in the given order."""
    offset, fragments = 0, []
    for source, mfp in mfps.items():
        workspace.input_data[offset : offset + len(mfp)] = np.frombuffer(mfp, dtype=np.uint8)
        fragments.append((source, offset, len(mfp)))
        offset += -(-len(mfp) // 8) * 8
    return MepInBatch(n_events, fragments)


def some_mfps(rng: np.random.Generator, n_events: int, align: int) -> tuple[dict[int, bytes], dict[int, list[bytes]]]:
    """MFPs of four sources, not in the order of their ids, and their content."""
    content = {source: [rng.bytes(int(rng.integers(0, 60))) for _ in range(n_events)] for source in (4103, 0, 6151, 2)}
    mfps = {
        source: encode_mfp(
            source_id=source, event_id=10, version=3, types=bytes([73] * n_events), fragments=fragments, align=align
        )
        for source, fragments in content.items()
    }
    return mfps, content


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("target", KernelLibrary(CHAIN.kernels).targets)
@pytest.mark.parametrize("align", [2, 3, 5])
def test_fragment_offsets_finds_every_fragment(target: str, threads: int, align: int) -> None:
    backend = CpuBackend(CHAIN.kernels, threads=threads, target=target)
    workspace = a_workspace(backend)
    rng = np.random.default_rng(align)
    for n_events in (1, 7, 64):
        mfps, content = some_mfps(rng, n_events, align)
        workspace.seal([place(workspace, n_events, mfps)])
        workspace.submit()
        workspace.wait()
        expected = [fragment for source in sorted(content) for fragment in content[source]]
        rows = workspace.fetch("fragments.rows")[: len(expected)]
        assert [bytes(workspace.input_data[row["offset"] :][: row["size"]]) for row in rows] == expected
        assert set(rows["type"].tolist()) == {73}
    backend.close()


def test_a_fragment_that_reaches_beyond_its_mfp_is_broken_and_empty() -> None:
    backend = CpuBackend(CHAIN.kernels)
    workspace = a_workspace(backend)
    mfp = bytearray(encode_mfp(source_id=1, event_id=0, version=3, types=bytes([73] * 3), fragments=[b"abcd"] * 3))
    struct.pack_into("<H", mfp, 20 + 4 + 2, 60_000)
    workspace.seal([place(workspace, 3, {1: bytes(mfp)})])
    workspace.submit()
    workspace.wait()
    rows = workspace.fetch("fragments.rows")[:3]
    assert rows["size"].tolist() == [4, 0, 0]
    assert rows["type"].tolist() == [73, BROKEN_BANK, BROKEN_BANK]
    backend.close()


def test_tables_say_where_the_rows_of_a_detector_are() -> None:
    backend = CpuBackend(CHAIN.kernels)
    workspace = a_workspace(backend)
    mfps, _ = some_mfps(np.random.default_rng(1), 5, 3)
    workspace.seal([place(workspace, 5, mfps)])
    assert workspace.host_array("input.mfp_rows")["source_id"][:4].tolist() == [0, 2, 4103, 6151]
    ranges = workspace.host_array("input.mep_rows").reshape(-1, 32)[0]
    assert ranges[0].tolist() == (0, 2)
    assert ranges[2].tolist() == (2, 1)
    assert ranges[3].tolist() == (3, 1)
    assert workspace.n_events == 5
    backend.close()


def test_a_batch_above_the_limits_is_refused_with_the_numbers() -> None:
    backend = CpuBackend(CHAIN.kernels)
    workspace = a_workspace(backend)
    with pytest.raises(ValueError, match="65 events, 0 MFPs and 1 MEPs exceeds the limits of 64, 64 and 8"):
        workspace.seal([MepInBatch(65, [])])
    backend.close()


def test_a_mep_above_its_limit_is_refused_because_its_fragments_may_not_fit() -> None:
    backend = CpuBackend(CHAIN.kernels)
    limits = replace(LIMITS, events_per_mep=3)
    assert limits.fragments == 3 * limits.rows < LIMITS.fragments
    workspace = a_workspace(backend, limits)
    assert workspace.fetch("fragments.rows").nbytes == 8 * limits.fragments
    workspace.seal([MepInBatch(3, []), MepInBatch(3, [])])
    with pytest.raises(ValueError, match="a MEP of 4 events exceeds the limit of 3"):
        workspace.seal([MepInBatch(4, [])])
    backend.close()


def test_an_empty_batch_runs() -> None:
    backend = CpuBackend(CHAIN.kernels, threads=2)
    workspace = a_workspace(backend)
    workspace.seal([])
    workspace.submit()
    workspace.wait()
    assert workspace.n_events == 0
    assert workspace.poll()
    backend.close()


def test_memory_is_aligned_to_vectors_and_zero() -> None:
    backend = CpuBackend(CHAIN.kernels)
    memory = backend.allocate_mirror(1000)
    assert memory.device.pointer % ALIGNMENT == 0
    assert memory.device.pointer == memory.host.ctypes.data
    assert not memory.host.any()
    backend.close()


@pytest.mark.parametrize(("name", "message"), [("fpga", "unknown back end 'fpga'"), ("cpu", "threads must be")])
def test_a_back_end_that_cannot_be_made_says_why(name: str, message: str) -> None:
    with pytest.raises(BackendError, match=message):
        create_backend(name, CHAIN.kernels, threads=0)


def test_an_unknown_kernel_is_refused() -> None:
    with pytest.raises(BackendError, match="have no kernel velo_magic"):
        KernelLibrary(CHAIN.kernels).address("baseline", "velo_magic")


def test_kernels_built_from_other_sources_are_refused(tmp_path: Path) -> None:
    changed = tmp_path / CHAIN.kernels.header
    changed.parent.mkdir(parents=True)
    changed.write_text("// another list of kernels")
    with pytest.raises(BackendError, match="built from other sources"):
        CpuBackend(replace(CHAIN.kernels, folders=(tmp_path, *CHAIN.kernels.folders)))


def test_kernels_that_are_not_installed_are_named() -> None:
    with pytest.raises(BackendError, match=r"compiled kernels hltnode\.processing\._nowhere are missing"):
        CpuBackend(replace(CHAIN.kernels, library="hltnode.processing._nowhere"))


def test_progress_counts_the_blocks_of_all_batches() -> None:
    backend = CpuBackend(CHAIN.kernels, threads=2)
    workspace = a_workspace(backend)
    mfps, _ = some_mfps(np.random.default_rng(1), 5, 3)
    for batch in range(3):
        assert workspace.progress == batch * len(mfps)
        workspace.seal([place(workspace, 5, mfps)])
        workspace.submit()
        workspace.wait()
    assert workspace.progress == 3 * len(mfps)
    backend.close()


def test_a_batch_of_the_calling_thread_runs_beside_one_of_the_back_end() -> None:
    backend = CpuBackend(CHAIN.kernels, threads=2)
    geometry = VeloGeometry.builtin()
    trigger = CHAIN.load_trigger(None, "velo")
    small, large = (encode_mep(CHAIN, list(simulate_events(n, seed=n, geometry=geometry))) for n in (2, 40))
    limits = BatchLimits(events=400, meps=10, input_bytes=10 * large.data.nbytes, rows=10 * len(large.fragments))
    engine = CHAIN.create_engine(backend, geometry_constants(geometry), trigger, limits)
    workspace, direct = engine.create_workspace(), engine.create_direct_workspace()
    direct.input_data[: small.data.nbytes] = small.data
    direct.seal([MepInBatch(small.n_events, small.fragments)])
    assert direct.sharing_threads == 2
    direct.submit()
    direct.wait()
    expected = direct.output.copy()
    workspace.input_data[: large.data.nbytes] = large.data
    workspace.seal([MepInBatch(large.n_events, large.fragments)] * 10)
    workspace.submit()
    beside, before = 0, direct.progress
    while beside < 3 or not workspace.poll():
        # Both write their thread memory: with a common one, the results of one of them would be wrong.
        direct.output.flags[:] = 0
        direct.seal([MepInBatch(small.n_events, small.fragments)])
        assert direct.compute_directly()
        beside += 1
        for name in ("accepted", "lines", "flags"):
            np.testing.assert_array_equal(getattr(direct.output, name), getattr(expected, name))
        for name, counts in expected.counts.items():
            np.testing.assert_array_equal(direct.output.counts[name], counts)
    workspace.wait()
    assert direct.progress > before
    assert direct.timings.kernels > 0.0
    beside_direct = {name: of.copy() for name, of in workspace.output.counts.items()}
    workspace.seal([MepInBatch(large.n_events, large.fragments)] * 10)
    workspace.submit()
    workspace.wait()
    for name, alone in workspace.output.counts.items():
        np.testing.assert_array_equal(beside_direct[name], alone)
    assert not workspace.compute_directly()
    backend.close()


def test_a_batch_with_kernels_that_the_host_evaluates_goes_to_the_back_end() -> None:
    geometry = VeloGeometry.builtin()
    mep = encode_mep(CHAIN, list(simulate_events(3, seed=3, geometry=geometry)))
    limits = BatchLimits(events=8, meps=2, input_bytes=2 * mep.data.nbytes, rows=len(mep.fragments))
    for compiles in (True, False):
        backend = CpuBackend(CHAIN.kernels, compiles=compiles)
        engine = CHAIN.create_engine(backend, geometry_constants(geometry), CHAIN.load_trigger(None, "velo"), limits)
        assert any(algorithm.generated is not None for algorithm in engine.chain.sequence)
        direct = engine.create_direct_workspace()
        direct.input_data[: mep.data.nbytes] = mep.data
        direct.seal([MepInBatch(mep.n_events, mep.fragments)])
        before = direct.progress
        assert direct.compute_directly() == compiles
        assert (direct.progress > before) == compiles
        direct.submit()
        direct.wait()
        assert direct.progress > before
        backend.close()


@pytest.mark.parametrize("compiles", [True, False])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_batch_of_the_calling_thread_has_the_results_of_a_submitted_one(threads: int, compiles: bool) -> None:
    backend = CpuBackend(CHAIN.kernels, threads=threads, compiles=compiles)
    geometry = VeloGeometry.builtin()
    mep = encode_mep(CHAIN, list(simulate_events(12, seed=4, geometry=geometry)))
    limits = BatchLimits(events=12, meps=1, input_bytes=2 * mep.data.nbytes, rows=len(mep.fragments))
    engine = CHAIN.create_engine(backend, geometry_constants(geometry), CHAIN.load_trigger(None, "velo"), limits)
    outputs = []
    for is_here in (True, False):
        workspace = engine.create_workspace()
        workspace.input_data[: mep.data.nbytes] = mep.data
        workspace.seal([MepInBatch(mep.n_events, mep.fragments)])
        before = workspace.progress
        if is_here:
            assert workspace.compute_here()
        else:
            workspace.submit()
            with pytest.raises(BackendError, match="still running in this queue"):
                workspace.compute_here()
            workspace.wait()
        assert workspace.progress > before
        assert workspace.timings.kernels > 0.0
        outputs.append(workspace.output)
    here, submitted = outputs
    assert submitted.accepted.any()
    for name in ("accepted", "lines", "flags"):
        np.testing.assert_array_equal(getattr(here, name), getattr(submitted, name))
    for name, counts in submitted.counts.items():
        np.testing.assert_array_equal(here.counts[name], counts)
    backend.close()


def test_a_direct_batch_waits_for_the_batch_of_its_own_workspace() -> None:
    backend = CpuBackend(CHAIN.kernels)
    chain = replace(CHAIN, sequence=AlgorithmSequence((fragment_offsets,)), accepted=None, lines=None, counts={})
    workspace = Engine(backend, chain, {}, LIMITS).create_direct_workspace()
    assert workspace.sharing_threads == 1  # of no events
    mfps, _ = some_mfps(np.random.default_rng(1), 5, 3)
    workspace.seal([place(workspace, 5, mfps)])
    assert workspace.sharing_threads == 1
    workspace.submit()
    with pytest.raises(BackendError, match="still running in this queue"):
        workspace.compute_directly()
    workspace.wait()
    assert workspace.compute_directly()
    backend.close()


def test_progress_rises_while_a_batch_runs() -> None:
    backend = CpuBackend(CHAIN.kernels)
    geometry = VeloGeometry.builtin()
    mep = encode_mep(CHAIN, list(simulate_events(40, seed=1, geometry=geometry)))
    limits = BatchLimits(events=400, meps=10, input_bytes=10 * mep.data.nbytes, rows=10 * len(mep.fragments))
    trigger = CHAIN.load_trigger(None, "velo")
    workspace = CHAIN.create_engine(backend, geometry_constants(geometry), trigger, limits).create_workspace()
    workspace.input_data[: mep.data.nbytes] = mep.data
    workspace.seal([MepInBatch(mep.n_events, mep.fragments)] * 10)
    workspace.submit()
    seen = [0]
    while not workspace.poll():
        seen.append(workspace.progress)
    assert seen == sorted(seen)
    assert len(set(seen)) > 5
    assert workspace.progress >= 400
    backend.close()


def test_a_profile_counts_processor_time_of_a_kernel_and_not_its_waits() -> None:
    waits = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32)(lambda *_: time.sleep(0.2))
    address = ctypes.cast(waits, ctypes.c_void_p).value
    assert address is not None
    header, parameters = np.zeros(1, dtype=BATCH_HEADER.dtype), np.zeros(8, dtype=np.uint8)
    program = _executor.Program([(address, parameters.ctypes.data, int(Grid.ONE), 8)], header.ctypes.data)
    _executor.Executor(1).run(program, profile=True)
    [nanoseconds] = program.take_nanoseconds()
    assert 0 < nanoseconds < 0.1e9
