"""Files that a caller gives as one path or several."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TypeAlias

Paths: TypeAlias = Sequence[PathLike[str] | str] | PathLike[str] | str


def paths_of(files: Paths) -> tuple[Path, ...]:
    """The paths. Raises ValueError without any, and FileNotFoundError for a file that does not exist."""
    several = [files] if isinstance(files, str | PathLike) else list(files)
    if not several:
        raise ValueError("expected at least one file")
    paths = tuple(Path(file) for file in several)
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(2, "there is no such file", str(path))
    return paths
