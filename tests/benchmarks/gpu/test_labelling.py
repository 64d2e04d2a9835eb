"""The labelling sequences beside CuPy: on a simulated GPU with SciPy in place of CuPy, and on a GPU."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import ndimage

from benchmarks.gpu.labelling import JUDGED, SEQUENCES, beside_cupy, connects_corners, images
from benchmarks.gpu.report import Report
from hltnode.processing.framework.backends.cuda import CudaBackend
from hltnode.processing.framework.backends.cuda_installation import is_available
from hltnode.processing.imaging.chain import CHAIN
from tests.processing.framework.cupy_stand_in import CupyStandIn, install
from tests.processing.framework.simulated_gpu import SimulatedGpu

pytestmark = pytest.mark.timeout(400)
TIMES = (0.5, 0.001, 0.003)
"""Seconds that the profiler of the stand-in finds for every image."""


def stand_in(monkeypatch: pytest.MonkeyPatch, label: Callable[..., Any], called: list[Any]) -> CupyStandIn:
    """CuPy with a function to label and a profiler, which notes how it was called."""
    cupy = install(monkeypatch, SimulatedGpu(CHAIN.kernels))
    monkeypatch.setattr(cupy, "asarray", np.asarray, raising=False)

    def benchmark(
        function: Any, arguments: Any, *, n_repeat: int, n_warmup: int, devices: tuple[int, ...]
    ) -> SimpleNamespace:
        called.append((function, arguments[1], n_repeat, n_warmup, devices))
        return SimpleNamespace(gpu_times=np.array([TIMES]))

    for name, content in (("cupyx.scipy.ndimage", {"label": label}), ("cupyx.profiler", {"benchmark": benchmark})):
        module = ModuleType(name)
        module.__dict__.update(content)
        for parent in ("cupyx", "cupyx.scipy", name):
            monkeypatch.setitem(sys.modules, parent, module)
    return cupy


@pytest.mark.expensive("runs every labelling sequence on the simulated GPU")
def test_sequences_are_compared_with_cupy_of_the_same_connectivity(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    called: list[Any] = []
    stand_in(monkeypatch, ndimage.label, called)
    of = {"g = 1": [image[:40, :70] for image in images(80)["g = 1"]], "full": [images(80)["full"][0][:40, :70]]}
    section = beside_cupy(partial(CudaBackend, CHAIN.kernels), of, ("flsl_cd", "ha4_32_otf"), 2)
    assert section.good, section.text
    assert [structure is None for _, structure, *_ in called] == [False] * 4 + [True] * 4
    assert {(function, *how) for function, _, *how in called} == {(ndimage.label, 2, 1, (0,))}
    assert {name: found["full"]["corners"] for name, found in section.data.items()} == {
        "flsl_cd": True,
        "ha4_32_otf": False,
    }
    # Each launch of the simulated GPU takes a millisecond.
    assert all(of_kind["seconds"] >= 0.009 for found in section.data.values() for of_kind in found.values())
    assert all(of_kind["cupy"] == pytest.approx(0.003) for found in section.data.values() for of_kind in found.values())
    flsl = section.data["flsl_cd"]["g = 1"]
    assert flsl["ratio"] == pytest.approx(0.003 / flsl["seconds"])
    report = Report(tmp_path / "gpu", "hltnode on a GPU")
    report.add(section)
    assert "Labelling beside CuPy" in json.loads((tmp_path / "gpu" / "report.json").read_text())


def test_another_number_of_components_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))

    def one_more(image: Any, structure: Any) -> tuple[Any, int]:
        labels, n = ndimage.label(image, structure)
        return labels, n + int(structure is not None and n > 1)

    stand_in(monkeypatch, one_more, [])
    of = {"g = 4": images(40)["g = 4"][:1], "full": images(40)["full"]}
    section = beside_cupy(partial(CudaBackend, CHAIN.kernels), of, ("flsl_cd", "ha4_64_cd"), 1)
    assert section.good is False
    assert "flsl_cd, g = 4." in section.text
    assert "full" not in section.text
    assert "ha4" not in section.text


def test_every_sequence_for_gpus_is_compared_and_only_ha4_leaves_out_corners() -> None:
    assert JUDGED in SEQUENCES
    assert {"naive", "playne", "ha4_32_otf", "ha4_64_otf", "flsl_otf", "large_images"} <= set(SEQUENCES)
    assert {name for name in SEQUENCES if not connects_corners(name)} == {
        name for name in SEQUENCES if name.startswith("ha4")
    }


@pytest.mark.gpu
def test_a_gpu_labels_images_as_cupy_does() -> None:
    if not is_available():
        pytest.skip("needs CuPy and a CUDA device")
    section = beside_cupy(partial(CudaBackend, CHAIN.kernels), images(2048))
    assert section.good, section.text
