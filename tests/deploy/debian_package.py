"""The Debian package, built from the installed files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

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
    # xz takes half a minute of a processor for 170 MB of libraries, gzip three seconds; this package is not kept.
    environment = {**os.environ, "HLTNODE_COMPRESSION": "-Zgzip -z1"}
    done = subprocess.run(build, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (found,) = folder.glob("*.deb")
    return found
