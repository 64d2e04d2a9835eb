"""The CUDA back end gives the results of the CPU back end for every block size."""

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.cpu import CpuBackend
from hltnode.processing.framework.backends.cuda import CudaBackend
from hltnode.processing.framework.backends.cuda_installation import is_available
from hltnode.processing.framework.backends.interface import Backend, BackendError
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_meps
from hltnode.processing.lhcb.chain import CHAIN, HLT1_SEQUENCE, geometry_constants
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.processing.lhcb.offline.validation.checker.categories import Stage
from hltnode.processing.lhcb.offline.validation.checker.reconstruction import reconstructed_batch, retained

LIMITS = BatchLimits(events=32, meps=8, input_bytes=4 << 20, rows=4096)


def results(backend: Backend) -> tuple[list[NDArray[np.generic]], list[list[bytes]], list[bytes]]:
    """Compare decisions, flags, counts and tracks of each batch, and vertices of each event, bit by bit."""
    geometry = VeloGeometry.builtin()
    runner = OfflineRunner(
        CHAIN.create_engine(
            backend,
            geometry_constants(geometry),
            CHAIN.load_trigger(None, "velo"),
            LIMITS,
            retain=retained(HLT1_SEQUENCE),
        )
    )
    events = [
        *simulate_events(24, 1, geometry=geometry),
        *simulate_events(24, 1, geometry=geometry, velo_banks="superpixel", first_event=24),
    ]
    outputs: list[NDArray[np.generic]] = []
    tracks: list[list[bytes]] = []
    vertices: list[bytes] = []
    for velo_events in (events[:24], events[24:]):
        for batch in runner.run(encode_meps(CHAIN, velo_events, 8)):
            output = batch.workspace.output
            outputs += [
                output.accepted.copy(),
                output.lines.copy(),
                output.flags.copy(),
                output.counts["velo_clusters"].copy(),
            ]
            found = reconstructed_batch(batch.workspace)
            velo = found.tracks[Stage.VELO]
            tracks += [[column.tobytes() for column in (velo.event, velo.n_ids, velo.ids)]]
            vertices += [pvs.tobytes() for pvs in found.pvs]
    backend.close()
    return outputs, tracks, vertices


def test_without_cupy_or_gpu_the_cuda_back_end_says_what_is_missing() -> None:
    if is_available():
        pytest.skip("a GPU is there")
    with pytest.raises(BackendError, match=r"needs CuPy: pip install|no NVIDIA driver|finds no GPU"):
        CudaBackend(CHAIN.kernels)


@pytest.mark.gpu
@pytest.mark.parametrize("block_size", [1, 32, 256, None])
def test_a_gpu_finds_what_the_cpu_finds_for_every_block_size(block_size: int | None) -> None:
    if not is_available():
        pytest.skip("needs CuPy and a CUDA device")
    expected = results(CpuBackend(CHAIN.kernels))
    found = results(CudaBackend(CHAIN.kernels, block_size=block_size))
    for one, other in zip(expected[0], found[0], strict=True):
        np.testing.assert_array_equal(one, other)
    assert found[1] == expected[1]
    assert found[2] == expected[2]
