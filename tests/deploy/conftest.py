"""The Debian package, for tests that inspect or install it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.built_wheel import shared_wheel
from tests.deploy.debian_package import built, require_debian_tools
from tests.deploy.tools import run


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package that HLTNODE_DEB names; otherwise built now from compiled modules, with network access."""
    if "HLTNODE_DEB" in os.environ:
        return Path(os.environ["HLTNODE_DEB"])
    require_debian_tools()
    of_debian = run("/usr/bin/python3", "-c", "import sys; print(*sys.version_info[:2], sep='.')").stdout.strip()
    of_these_modules = "{}.{}".format(*sys.version_info[:2])
    if of_debian != of_these_modules:
        pytest.skip(f"the modules here are compiled for Python {of_these_modules}, Debian's is {of_debian}: make deb")
    return built(tmp_path_factory.mktemp("deb"), shared_wheel(tmp_path_factory))
