"""Which back end runs the kernels."""

from hltnode.processing.framework.backends import cpu, cuda, cuda_installation
from hltnode.processing.framework.backends.interface import Backend, BackendError
from hltnode.processing.framework.kernel_sources import KernelSources


def create_backend(
    name: str, kernels: KernelSources, *, threads: int = 1, device: int = 0, compiles: bool = True
) -> Backend:
    """Make the back end `cpu`, `cuda`, or the best that is there (`auto`), for the kernels of a chain.

    `threads` and `compiles` (False: lines are evaluated with NumPy) are for the CPU alone, `device` (which of several)
    for a GPU. Raises BackendError with what is missing.
    """
    if name == "auto":
        name = "cuda" if cuda_installation.is_available() else "cpu"
    if name == "cpu":
        return cpu.CpuBackend(kernels, threads=threads, compiles=compiles)
    if name == "cuda":
        return cuda.CudaBackend(kernels, device=device)
    raise BackendError(f"no back end named {name!r}: expected auto, cpu or cuda")
