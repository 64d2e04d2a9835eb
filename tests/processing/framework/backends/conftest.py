"""A simulated GPU in place of CuPy and CUDA, for the kernels of the tiny chain."""

from pathlib import Path
from types import ModuleType

import pytest

from tests.processing.framework.cupy_stand_in import CupyStandIn, install
from tests.processing.framework.simulated_gpu import SimulatedGpu


@pytest.fixture
def cupy(tiny: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CupyStandIn:
    """The stand-in for CuPy, and a kernel cache of this test only."""
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    return install(monkeypatch, SimulatedGpu(tiny.TINY.kernels))
