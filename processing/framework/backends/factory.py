"""Choice of the back end."""

from hltnode.processing.framework.backends import cpu, cuda, cuda_installation
from hltnode.processing.framework.backends.interface import Backend, BackendError
from hltnode.processing.framework.kernel_sources import KernelSources


def create_backend(
    name: str,
    kernels: KernelSources,
    *,
    threads: int = 1,
    device: int = 0,
    memory_bound: int = 0,
    compiles: bool = True,
) -> Backend:
    """Make the back end `cpu`, `cuda`, or the best available one (`auto`), for the kernels of a chain.

    `threads` and `compiles` (False: NumPy evaluates the lines) apply only to the CPU; `device` (the ordinal, or
    free_gpu.MOST_FREE) and `memory_bound` (bytes; 0: none) apply to a GPU.
    Raises BackendError, which names the missing part.
    """
    if name == "auto":
        name = "cuda" if cuda_installation.is_available() else "cpu"
    if name == "cpu":
        return cpu.CpuBackend(kernels, threads=threads, compiles=compiles)
    if name == "cuda":
        return cuda.CudaBackend(kernels, device=device, memory_bound=memory_bound)
    raise BackendError(f"unknown back end {name!r}: expected auto, cpu or cuda")
