"""The wheel of hltnode, for the tests that install it: one build for all of them."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hltnode.protocol import _native as protocol_native

ROOT = Path(__file__).resolve().parents[1]


def shared_wheel(factory: pytest.TempPathFactory) -> Path:
    """A wheel with the compiled modules under test, built by the first test that needs it, in any process."""
    pytest.importorskip("scikit_build_core", reason="the build back end is not installed")
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "wheel_of_this_environment"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return next(folder.glob("*.whl"), None) or _built(folder)


def environment_with(wheel: Path, folder: Path) -> Path:
    """The programs of a new virtual environment with a wheel. The other packages are those of this environment.

    Its pip is that of this environment, and installs into the new one.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    programs = folder / "bin"
    [site] = folder.glob("lib/python*/site-packages")
    # A path in a file of this kind is no site folder: the import hook of an editable install in it is not run.
    (site / "of_the_tests.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    pip = programs / "pip"
    pip.write_text(f'#!/bin/sh\nexec {sys.executable} -m pip --python {programs / "python"} "$@"\n')
    pip.chmod(0o755)
    subprocess.run([pip, "install", "--quiet", "--no-deps", "--no-index", "--no-compile", wheel], check=True)
    return programs


def _built(folder: Path) -> Path:
    tree = folder / "tree"
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if not (tracked := listed.stdout.splitlines()):
        pytest.skip(f"not a checkout of git: {listed.stderr.strip()}")
    for name in tracked:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_file():
            shutil.copy(ROOT / name, tree / name)
    (tree / ".gitignore").unlink()
    installed = Path(protocol_native.__file__).parents[1]
    for module in installed.rglob("*.so"):
        shutil.copy(module, tree / module.relative_to(installed))
    options: list[str | Path] = [
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-C",
        "wheel.cmake=false",
        "-C",
        "wheel.platlib=true",
    ]
    make = [sys.executable, "-m", "pip", "wheel", *options, "-w", folder, tree]
    made = subprocess.run(make, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel
