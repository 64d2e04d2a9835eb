"""Files that tests compile, kept below build/: one compilation for all workers of a run and for later runs."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[3] / "build" / "compiled-for-tests"
MAX_AGE_S = 7 * 24 * 3600
"""Files that no test has used for this time are removed."""


@functools.cache
def version_of(compiler: str) -> str:
    """What a compiler prints about itself; a file belongs to one version."""
    return subprocess.run([compiler, "--version"], check=True, capture_output=True, text=True).stdout


def built(name: str, parts: Sequence[str | bytes], make: Callable[[Path], None], folder: Path = FOLDER) -> Path:
    """The file that `make(path)` writes for these parts, made at first use.

    name: of the file. parts: everything that decides its content, such as the version of the compiler, its options and
    the sources; never a path of a temporary folder. Other workers wait while one makes the file. If `make` raises, the
    next call tries again.
    """
    digest = hashlib.sha256()
    for part in (name, *parts):
        content = part.encode() if isinstance(part, str) else part
        digest.update(b"%d\n" % len(content) + content)
    entry = folder / digest.hexdigest()[:32]
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(entry.with_suffix(".lock")):
        path = entry / name
        # Fresh first: another worker that removes old entries must not meet it.
        with suppress(FileNotFoundError):
            os.utime(entry)
        if not path.is_file():
            _remove_unused(folder)
            with tempfile.TemporaryDirectory(dir=folder) as temporary:
                made = Path(temporary) / "entry"
                made.mkdir()
                make(made / name)
                shutil.rmtree(entry, ignore_errors=True)
                made.rename(entry)
        os.utime(entry)
    return path


@contextmanager
def _locked(path: Path, more: int = 0) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | more)
        yield


def _remove_unused(folder: Path) -> None:
    """Remove old entries that no worker uses; their locks stay, because a worker may wait for one."""
    oldest = time.time() - MAX_AGE_S

    def is_old(entry: Path) -> bool:
        return entry.stat().st_mtime < oldest

    for entry in folder.iterdir():
        # Another worker may remove its temporary folder meanwhile, or hold the lock of the entry.
        with suppress(FileNotFoundError, BlockingIOError):
            if entry.suffix != ".lock" and is_old(entry):
                with _locked(entry.with_suffix(".lock"), fcntl.LOCK_NB):
                    # The worker that had the lock may have used the entry.
                    if is_old(entry):
                        shutil.rmtree(entry, ignore_errors=True)
