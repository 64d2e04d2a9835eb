"""The compiled lines for Dask workers: this machine compiles them once while the workers start, and they load them.

Otherwise each worker would run the compiler at its first range, all at the same time, and a worker without a compiler
would evaluate the lines with NumPy.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from distributed import WorkerPlugin

from hltnode.daemon.commands.events.event_processor import Setup
from hltnode.processing.framework.backends.cpu import CpuBackend
from hltnode.processing.framework.backends.cpu_compiler import provide
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.codegen import generated_source

if TYPE_CHECKING:
    from distributed import Client


class ProvidedKernels(WorkerPlugin):
    """Gives a worker the libraries of generated kernels; also one that joins later."""

    def __init__(self, libraries: dict[str, bytes]) -> None:
        self._libraries = libraries

    def setup(self, worker: object) -> None:  # noqa: ARG002
        """Called by Dask in each worker."""
        provide(self._libraries)


def compiled_kernels(setup: Setup) -> dict[str, bytes]:
    """The libraries of the lines of a setup, by key; empty on a GPU and without a compiler.

    Raises ValueError for an invalid setup, and BackendError.
    """
    chain, configuration = setup.load()
    backend = create_backend(setup.backend, chain.kernels, device=setup.device)
    try:
        if not isinstance(backend, CpuBackend):
            return {}
        made = [
            backend.library(algorithm.name, generated_source(algorithm, chain.kernels.folders))
            for algorithm in chain.with_lines(configuration).sequence
            if algorithm.generated is not None
        ]
        return dict(library for library in made if library is not None)
    finally:
        backend.close()


@contextmanager
def provided_kernels(client: "Client", libraries: dict[str, bytes]) -> Iterator[None]:
    """Give the libraries to all workers of a client, until the end of the context."""
    name = f"hltnode-kernels-{uuid4().hex}"
    client.register_plugin(ProvidedKernels(libraries), name=name)
    try:
        yield
    finally:
        client.unregister_worker_plugin(name)
