"""The Debian package, built from the installed files."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hltnode.protocol import _native as protocol_native
from tests.deploy.tools import DEPLOY, ROOT, run, tool


def require_debian_tools() -> None:
    for program in ("dpkg-buildpackage", "dpkg-checkbuilddeps", "dh", "git"):
        tool(program)
    checked = run(tool("dpkg-checkbuilddeps"), DEPLOY / "debian/control")
    if checked.returncode != 0:
        pytest.skip(checked.stderr.strip())


def built(folder: Path, *wheel: Path) -> Path:
    """Path of the built package in a folder."""
    build = [ROOT / "tools/build_deb.sh", folder, *wheel]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (found,) = folder.glob("*.deb")
    return found


def wheel_of_this_environment(folder: Path) -> Path:
    """A wheel with the compiled modules under test, so that no module is compiled again."""
    tree = folder / "tree"
    tracked = run("git", "ls-files").stdout.splitlines()
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
