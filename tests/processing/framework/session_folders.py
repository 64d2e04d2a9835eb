"""Folders that hold files of a test process until it ends."""

from __future__ import annotations

import tempfile
from pathlib import Path

_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []


def session_folder(prefix: str) -> Path:
    """A new folder for caches of this process. It is removed when the process ends: functions with `functools.cache`
    keep paths into it for all tests, so no single test may remove it."""
    folder = tempfile.TemporaryDirectory(prefix=prefix)
    # TemporaryDirectory removes its folder when the object goes, or when the interpreter ends.
    _FOLDERS.append(folder)
    return Path(folder.name)
