"""Which back end runs the kernels."""

from hltnode.processing.framework.backends import cpu, cuda, cuda_installation
from hltnode.processing.framework.backends.interface import Backend, BackendError
from hltnode.processing.framework.kernel_sources import KernelSources


def create_backend(name: str, kernels: KernelSources, *, threads: int = 1, block_size: int | None = None) -> Backend:
    """Make the back end `cpu`, `cuda`, or the best that is there (`auto`), for the kernels of a chain.

    `threads` is used by the CPU alone. `block_size` overrides the declared block sizes on a GPU (race tests).
    Raises BackendError with what is missing.
    """
    if name == "auto":
        name = "cuda" if cuda_installation.is_available() else "cpu"
    if name == "cpu":
        return cpu.CpuBackend(kernels, threads=threads)
    if name == "cuda":
        return cuda.CudaBackend(kernels, block_size=block_size)
    raise BackendError(f"no back end named {name!r}: expected auto, cpu or cuda")
