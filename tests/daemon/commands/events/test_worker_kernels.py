"""Dask workers load the lines that the machine of the command has compiled, and need no compiler."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hltnode.daemon.commands.events.event_processor import Setup
from hltnode.daemon.commands.events.worker_kernels import ProvidedKernels, compiled_kernels
from hltnode.processing.framework.backends import cpu_compiler
from hltnode.processing.framework.backends.cpu import CpuBackend
from hltnode.processing.framework.codegen import generated_source
from hltnode.processing.framework.declaration import Algorithm

SETUP = Setup(
    chain="lhcb", trigger=None, sequence="velo", geometry=None, backend="cpu", threads=1, device=0, encoding="auto"
)


@pytest.fixture(scope="module")
def libraries() -> dict[str, bytes]:
    if cpu_compiler.compiler() is None:
        pytest.skip("needs a C++ compiler")
    return compiled_kernels(SETUP)


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CpuBackend]:
    """The back end of a machine with neither a compiler nor compiled lines."""
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    monkeypatch.setattr(cpu_compiler, "compiler", lambda: None)
    monkeypatch.setattr(cpu_compiler, "_provided", {})
    backend = CpuBackend(SETUP.load()[0].kernels)
    yield backend
    backend.close()


def lines_of(setup: Setup) -> tuple[Algorithm, str]:
    """The algorithm of the lines, and its source."""
    chain, configuration = setup.load()
    [algorithm] = [each for each in chain.with_lines(configuration).sequence if each.generated is not None]
    return algorithm, generated_source(algorithm, chain.kernels.folders)


def test_a_worker_without_compiler_loads_the_lines_that_it_is_given(
    libraries: dict[str, bytes], worker: CpuBackend
) -> None:
    algorithm, source = lines_of(SETUP)
    ProvidedKernels(libraries).setup(worker=object())
    assert worker.compile(algorithm.name, source)


def test_lines_of_other_sources_are_not_replaced(libraries: dict[str, bytes], worker: CpuBackend) -> None:
    algorithm, source = lines_of(SETUP)
    ProvidedKernels(libraries).setup(worker=object())
    with pytest.warns(UserWarning, match="no C"):
        assert not worker.compile(algorithm.name, source + "\n// other lines")


def test_a_library_that_cannot_be_loaded_is_compiled_again(libraries: dict[str, bytes], worker: CpuBackend) -> None:
    algorithm, source = lines_of(SETUP)
    ProvidedKernels(dict.fromkeys(libraries, b"of another machine")).setup(worker=object())
    with pytest.warns(UserWarning, match="no C"):
        assert not worker.compile(algorithm.name, source)
