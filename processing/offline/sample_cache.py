"""Simulated samples in the user's cache, by all that their events depend on.

A sample is a file of events and, written after it, a file with its size and digest. A file that does not have these
counts as missing.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = "samples"
_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSample:
    """A sample that commands know by name: number of events, options of the chain that differ from the defaults."""

    events: int
    options: Mapping[str, Any]
    description: str


def user_cache() -> Path:
    """The folder of cached samples. Raises ValueError for a user without a home."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hltnode" / FOLDER
    except RuntimeError as error:
        raise ValueError("no cache: this user has no home; XDG_CACHE_HOME names a folder") from error


def digest_of_files(paths: Iterable[Path]) -> str:
    """SHA-256 of the names and contents of files, and of the files in folders."""
    digest = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and file.suffix != ".pyc":
                digest.update(file.name.encode() + b"\0")
                digest.update(file.read_bytes())
    return digest.hexdigest()


class SampleCache:
    """Files of samples in a folder. Several processes may use it at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str, identity: Mapping[str, Any]) -> Path:
        """Where a sample is or will be; identity: all that its events depend on, as JSON has it."""
        text = json.dumps(identity, sort_keys=True, default=str)
        return self.folder / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:20]}.mdf"

    @staticmethod
    def is_complete(path: Path) -> bool:
        """Whether a sample has the size and digest that it was written with."""
        try:
            size, digest = _digest_file(path).read_text().split()
            if path.stat().st_size != int(size):
                return False
            found = hashlib.sha256()
            with path.open("rb") as file:
                while block := file.read(_READ_BYTES):
                    found.update(block)
        except (OSError, ValueError):
            return False
        return found.hexdigest() == digest

    def write(self, path: Path, blocks: Iterable[bytes]) -> int:
        """Write a sample; returns its size in bytes. It appears when it is complete.

        Raises ValueError, with the name of the file, if it cannot be written.
        """
        # Another process that makes the same sample writes a file of its own.
        unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
        digest, size = hashlib.sha256(), 0
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"{path}: cannot be written: {error.strerror}") from error
        try:
            with unfinished.open("wb") as file:
                for block in blocks:
                    file.write(block)
                    digest.update(block)
                    size += len(block)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
            unfinished.write_text(f"{size} {digest.hexdigest()}\n")
            unfinished.replace(_digest_file(path))
        except OSError as error:
            raise ValueError(f"{path}: cannot be written: {error.strerror}") from error
        finally:
            unfinished.unlink(missing_ok=True)
        return size

    def files(self) -> Iterator[Path]:
        """All files of the cache, also unfinished ones."""
        if self.folder.is_dir():
            yield from (path for path in sorted(self.folder.iterdir()) if path.is_file())

    def clear(self) -> tuple[int, int]:
        """Remove all samples; returns their number and the bytes of all files. Raises ValueError if one stays."""
        samples = size = 0
        for path in self.files():
            with suppress(FileNotFoundError):
                nbytes = path.stat().st_size
                try:
                    path.unlink()
                except PermissionError as error:
                    raise ValueError(f"{path}: cannot be removed: {error.strerror}") from error
                size += nbytes
                samples += path.suffix == ".mdf"
        return samples, size


def _digest_file(path: Path) -> Path:
    return path.with_suffix(".sha256")
