"""The two ways to run a kernel: on the CPU (the same sources compiled at install) and with CUDA (CuPy, NVRTC)."""

from hltnode.processing.framework.backends.interface import (
    Backend,
    BackendError,
    Launch,
    Mirror,
    Queue,
    Timings,
    create_backend,
)
from hltnode.processing.framework.declaration import Grid

__all__ = ["Backend", "BackendError", "Grid", "Launch", "Mirror", "Queue", "Timings", "create_backend"]
