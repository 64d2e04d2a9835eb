"""The compiled kernels of a chain: a shared library with kernel addresses by name (cpu_library.cpp)."""

import ctypes
import importlib.util
from pathlib import Path

from hltnode.processing.framework.backends.interface import BackendError
from hltnode.processing.framework.kernel_sources import KernelSources, MissingSourceError


class KernelLibrary:
    """The kernels of one chain for the instruction sets of this machine.

    Raises BackendError if the library is missing or was built from other sources than the present ones.
    """

    def __init__(self, sources: KernelSources) -> None:
        path = _find(sources.library)
        try:
            self._library = ctypes.CDLL(str(path))
        except OSError as error:
            raise BackendError(f"the compiled kernels cannot be loaded: {error}") from error
        self._library.hlt_kernel_digest.restype = ctypes.c_char_p
        self._library.hlt_kernel_target.restype = ctypes.c_char_p
        self._library.hlt_find_kernel.restype = ctypes.c_void_p
        self._library.hlt_find_kernel.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int)
        try:
            digest = sources.digest()
        except MissingSourceError as error:
            raise BackendError(f"the sources of the compiled kernels in {path} are incomplete: {error}") from error
        if self._library.hlt_kernel_digest().decode() != digest:
            raise BackendError(
                f"the compiled kernels in {path} were built from other sources: install the package of the chain again "
                "(pip install . in its folder)"
            )

    @property
    def targets(self) -> list[str]:
        """Instruction sets of the library that this machine supports, best first."""
        targets: list[str] = []
        while (name := self._library.hlt_kernel_target(len(targets))) is not None:
            targets.append(name.decode())
        return targets

    def address(self, target: str, name: str, *, common: bool = False) -> int:
        """Address of a kernel: its CPU form if it has one, unless `common` asks for the common kernel.

        Raises BackendError for an unknown name.
        """
        address = self._library.hlt_find_kernel(target.encode(), name.encode(), common)
        if address is None:
            raise BackendError(f"the compiled kernels for {target} have no kernel {name}")
        return int(address)


def _find(library: str) -> Path:
    if library.endswith(".so"):
        return Path(library)
    spec = importlib.util.find_spec(library)
    if spec is None or spec.origin is None:
        raise BackendError(
            f"the compiled kernels {library} are missing: install the package of the chain again "
            "(pip install . in its folder)"
        )
    return Path(spec.origin)
