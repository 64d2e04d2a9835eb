"""How hltnode was installed, and the command that adds an extra (`plot`, `dask`, ...) to this installation."""

import json
import sys
from enum import Enum
from pathlib import Path

PACKAGED_PREFIX = Path("/opt/hltnode")
"""Environment of the Debian package and of the Docker images."""
DEBIAN_RECORD = Path("/var/lib/dpkg/info/hltnode.list")
"""The file list that dpkg keeps of the Debian package."""


class Installation(Enum):
    """The ways to install hltnode."""

    CLONE = "clone"
    WHEEL = "wheel"
    DEBIAN = "Debian package"
    IMAGE = "Docker image"


def installation() -> tuple[Installation, Path]:
    """How this hltnode was installed, and where: the folder of the clone, or that of the environment."""
    prefix = Path(sys.prefix)
    if (clone := _clone()) is not None:
        return Installation.CLONE, clone
    if prefix == PACKAGED_PREFIX:
        return (Installation.DEBIAN if DEBIAN_RECORD.exists() else Installation.IMAGE), prefix
    return Installation.WHEEL, prefix


def extra_hint(extra: str) -> str:
    """How to add an extra, as the end of a message."""
    kind, folder = installation()
    match kind:
        case Installation.CLONE:
            return f"pip install -e '.[{extra}]' in {folder}"
        case Installation.DEBIAN:
            return f"sudo {folder}/bin/pip install 'hltnode[{extra}]'; repeat it after each upgrade of the package"
        case Installation.IMAGE:
            return (
                f"an image on top of this one with: USER root, RUN {folder}/bin/pip install 'hltnode[{extra}]', "
                "USER 987:987"
            )
        case Installation.WHEEL:
            return f"{sys.executable} -m pip install 'hltnode[{extra}]'"


def _clone() -> Path | None:
    """The folder of an editable installation."""
    # Local imports: only messages about a missing library need them.
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    try:
        text = distribution("hltnode").read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    content = json.loads(text) if text else {}
    if not content.get("dir_info", {}).get("editable"):
        return None
    return Path(unquote(urlsplit(content["url"]).path))
