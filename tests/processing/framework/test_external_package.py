"""A package of another experiment writes its headers, builds its chain with the files of hltnode's wheel, and runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hltnode.processing.framework.kernel_sources import included_files
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.protocol.raw_data.bank_types import USER_TYPES
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks
from hltnode.protocol.raw_data.source_id import USER_SUBDETECTORS, source_id
from tests.processing.framework.chain_builder import compiler, copy_package

ROOT = Path(__file__).resolve().parents[3]
TINY_PACKAGE = Path(__file__).parent / "tiny_package"
TINY_CHAIN = Path(__file__).parent / "tiny_chain"

WHEEL = """
import sys
from scikit_build_core.build import build_wheel
print(build_wheel(sys.argv[1], {"wheel.cmake": "false", "wheel.py-api": "py3"}))
"""


def run(*arguments: str | Path, cwd: Path, **environment: str) -> str:
    """Run Python; fails if its exit status is not 0."""
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The content of hltnode's wheel without compiled modules; a build of another package does not use these."""
    pytest.importorskip("scikit_build_core", reason="the build back end is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    name = run("-c", WHEEL, folder, cwd=ROOT).splitlines()[-1]
    with zipfile.ZipFile(folder / name) as file:
        file.extractall(folder / "content")
    return folder / "content"


def test_the_wheel_has_every_source_of_a_chain_and_no_other_cpp_file(wheel: Path) -> None:
    needed = {f"hltnode/processing/{file.name}" for file in included_files(CHAIN.kernels.header, CHAIN.kernels.folders)}
    there = {path.relative_to(wheel).as_posix() for path in wheel.rglob("*") if path.is_file()}
    assert needed - there == set()
    assert {name for name in there if name.endswith(".cpp")} == {name for name in needed if name.endswith(".cpp")}


def test_the_page_shows_the_files_of_the_package() -> None:
    page = (ROOT / "docs" / "how-to" / "add-a-detector.md").read_text(encoding="utf-8")
    cmake, toml = ((TINY_PACKAGE / name).read_text(encoding="utf-8") for name in ("CMakeLists.txt", "pyproject.toml"))
    assert f"```cmake\n{cmake[cmake.index('find_package(Python') :]}```" in page
    assert f"```toml\n{toml[toml.index('[project.entry-points') :]}```" in page
    (sources,) = [
        line.strip() for line in (TINY_CHAIN / "chain.py").read_text().splitlines() if "KernelSources(" in line
    ]
    assert f"```python\n{sources.removeprefix('kernels=').rstrip(',')}\n```" in page


@pytest.mark.timeout(300)
def test_a_package_outside_builds_and_runs_its_chain(wheel: Path, tmp_path: Path) -> None:
    compiler()
    root, site = Path(shutil.copytree(TINY_PACKAGE, tmp_path / "package")), tmp_path / "site"
    copy_package(TINY_CHAIN, root, "tiny")
    headers = ("-m", "hltnode.processing.framework.device_headers", "tiny.chain:TINY")
    assert "wrote tiny/generated/chain_kernels.h" in run(*headers, cwd=root)
    assert run(*headers, "--check", cwd=root) == ""

    cmake_dir = run("-S", "-m", "hltnode.processing.framework.cmake_dir", cwd=root, PYTHONPATH=str(wheel)).strip()
    assert Path(cmake_dir) == wheel / "hltnode/processing/framework/cmake"
    install = ("-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--target", site)
    run(*install, f"--config-settings=cmake.define.hltnode_ROOT={cmake_dir}", root, cwd=root)
    assert len(list((site / "tiny").glob("_chain_kernels*.so"))) == 1

    events, result = tmp_path / "events.mdf", tmp_path / "out.json"
    boards = [source_id(side, 0) for side in USER_SUBDETECTORS[:2]]
    banks = [RawBank(USER_TYPES[0], 1, board, memoryview(bytes([200] * 9 + [5]))) for board in boards]
    events.write_bytes(encode_record(encode_banks(banks), run=5, checksum=False))
    process = ("-m", "hltnode.daemon", "process", events, "--chain", "tiny", "--backend", "cpu", "--json", result)
    run(*process, cwd=tmp_path, PYTHONPATH=str(site))
    [event] = json.loads(result.read_text())["per_event"]
    assert event["hits"] == 18
    assert list(event["lines"]) == ["TinyManyHits"]
