"""Cache of compiled kernels on disk, by their sources and options."""

import hashlib
import os
import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path

_DIGEST_BYTES = 32


def cache_folder() -> Path | None:
    """Folder of compiled kernels: the one of systemd (CacheDirectory=), or the user's cache.

    None, with a warning, for a user without a home. A folder in /tmp would not do: the node executes its files, and
    another user could create it first.
    """
    given = os.environ.get("CACHE_DIRECTORY")
    if given:
        return Path(given)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hltnode"
    except RuntimeError:
        warnings.warn(
            "compiled kernels are not cached; each start compiles them again: this user has no home; "
            "XDG_CACHE_HOME names a folder for them",
            stacklevel=3,
        )
        return None


def key_of(parts: Iterable[str]) -> str:
    """The cache key of these texts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()


def read_cached(path: Path | None) -> bytes | None:
    """The content that `write_cached` wrote; None if it is missing or damaged, or if there is no cache."""
    if path is None or not path.is_file():
        return None
    content = path.read_bytes()
    kept, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    return kept if hashlib.sha256(kept).digest() == digest else None


def write_cached(path: Path | None, content: bytes) -> bool:
    """Write a file with its digest at the end; several processes may write the same file at once.

    Warns, and returns False, if it cannot be written; returns False if there is no cache.
    """
    if path is None:
        return False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(content + hashlib.sha256(content).digest())
        os.replace(file.name, path)
    except OSError as error:
        message = f"compiled kernels cannot be cached; each start compiles them again: {path}: {error.strerror}"
        warnings.warn(message, stacklevel=3)
        return False
    return True
