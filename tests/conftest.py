"""Fixtures for all tests: the shared data folder, optional tools, reproducible hypothesis runs."""

from __future__ import annotations

import gc
import importlib
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.processing.framework.chain_builder import build_chain, copy_package

TINY_CHAIN = Path(__file__).parent / "processing" / "framework" / "tiny_chain"
STREAM_CHAIN = TINY_CHAIN.with_name("stream_chain")

# Test folders that check threads, descriptors or times, in addition to all tests with processes or sockets.
ALONE = (Path("tests/daemon/processes"), Path("tests/daemon/node"))
MARKED_ALONE = re.compile(r"mark\.(alone|process|loopback)\b")
"""`make test` collects the second part of the tests from the files with this text (ALONE_FILES in the Makefile)."""

settings.register_profile(
    "hltnode", max_examples=50, print_blob=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# For `make test`: print the blob that reproduces a failure, and do not shrink the example, which may take minutes. The
# same test without this profile shrinks it.
settings.register_profile(
    "make-test",
    settings.get_profile("hltnode"),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.target),
)
settings.load_profile("hltnode")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Fix the seed of hypothesis before its plugin reads it, so that the header can print it.

    Workers of pytest-xdist inherit it with the other options.
    """
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(secrets.randbelow(1 << 32))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests that must not run in parallel with others, before `-m` selects.

    Raises UsageError for a file with such tests that `make test` would not find.
    """
    folders = tuple(config.rootpath / folder for folder in ALONE)
    in_folder = {path: any(path.is_relative_to(folder) for folder in folders) for path in {item.path for item in items}}
    found = set()
    for item in items:
        if in_folder[item.path] or item.get_closest_marker("process") or item.get_closest_marker("loopback"):
            item.add_marker(pytest.mark.alone)
        if item.get_closest_marker("alone") and not in_folder[item.path]:
            found.add(item.path)
    for path in sorted(found):
        if MARKED_ALONE.search(path.read_text()) is None:
            raise pytest.UsageError(
                f"{path}: `make test` does not find its tests; write a mark of MARKED_ALONE in the file"
            )


def pytest_collection() -> None:
    """Collect no garbage while tests are collected.

    Nearly all new objects of that time live until the end, and to look for garbage among them is a third of the work.
    """
    gc.disable()


def pytest_collection_finish() -> None:
    """Exempt modules and collected tests, which live until the end, from the collections of garbage in tests.

    Many tests collect garbage and search all objects for open sockets, each of which would visit millions of objects.
    """
    gc.enable()
    gc.collect()
    gc.freeze()


def pytest_report_header(config: pytest.Config) -> str:
    """Print how to repeat this run."""
    return f"hypothesis: --hypothesis-seed={config.option.hypothesis_seed}"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared data; skips the test and names the missing data otherwise."""
    folder = Path(os.environ.get("HLTNODE_SHARED", Path(__file__).resolve().parents[2] / "shared"))
    if not folder.is_dir():
        pytest.skip(f"shared data folder is missing: {folder}")
    return folder


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The module of the tiny chain, built and installed outside the tree like a package of another experiment.

    Its root, two folders above the module, is an importable folder with the entry point of the chain.
    """
    yield from installed(TINY_CHAIN, tmp_path_factory.mktemp("tiny"), "tiny")


@pytest.fixture(scope="session")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The module of the streaming chain, built and installed in the same way."""
    yield from installed(STREAM_CHAIN, tmp_path_factory.mktemp("stream"), "stream")


def installed(sources: Path, root: Path, name: str) -> Iterator[ModuleType]:
    """Build a chain in a folder and install it there."""
    copy_package(sources, root, name)
    metadata = root / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[hltnode.chains]\n{name} = {name}.chain:{name.upper()}\n")
    sys.path.insert(0, str(root))
    try:
        module = importlib.import_module(f"{name}.chain")
        build_chain(getattr(module, name.upper()))
        yield module
    finally:
        sys.path.remove(str(root))


@pytest.fixture
def without_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the layout of figures for tests of their content: matplotlib spends half of its time on the layout."""
    layout_engine = pytest.importorskip("matplotlib.layout_engine", reason="the extra `plot` is not installed")
    monkeypatch.setattr(layout_engine.ConstrainedLayoutEngine, "execute", lambda _self, _figure: None)


@pytest.fixture
def two_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two variables instead of all, for tests that do not check each panel of the checker's figures."""
    report = pytest.importorskip(
        "hltnode.processing.lhcb.offline.validation.reports.html_report", reason="the extra `plot` is not installed"
    )
    figures = report.TRACK_FIGURES
    few = replace(figures, binnings={name: figures.binnings[name] for name in ("p", "eta")})
    monkeypatch.setattr(report, "TRACK_FIGURES", few)


@pytest.fixture(scope="session")
def prometheus_programs() -> Path:
    """Folder of prometheus, promtool, prometheus-alertmanager and amtool, fetched into build/ if not installed.

    Skips the test with the reason if they are not available.
    """
    installed = os.environ.get("PROMTOOL") or shutil.which("promtool")
    if installed is not None:
        return Path(installed).parent
    script = Path(__file__).resolve().parents[1] / "tools" / "fetch_prometheus.sh"
    try:
        fetched = subprocess.run(
            [script], capture_output=True, text=True, check=False, timeout=45, cwd=script.parents[1]
        )
    except subprocess.TimeoutExpired:
        pytest.skip("promtool is not installed, and Debian did not deliver it within 45 s (tools/fetch_prometheus.sh)")
    if fetched.returncode != 0:
        last = (fetched.stderr.strip() or "no message").splitlines()[-1]
        pytest.skip(f"promtool is not installed, and tools/fetch_prometheus.sh could not fetch it: {last}")
    return Path(fetched.stdout.strip())


@pytest.fixture(scope="session")
def promtool(prometheus_programs: Path) -> str:
    """Path of Prometheus' promtool."""
    return str(prometheus_programs / "promtool")
