"""The kernel sources of a chain, and a digest that identifies a build of them.

The build runs this file with a bare Python (add_chain in cmake/hltnode-config.cmake), so it imports nothing of hltnode:

    python kernel_sources.py HEADER FOLDER...    prints the digest, then its files, one per line
"""

import functools
import hashlib
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

BACKENDS = Path(__file__).resolve().parent / "backends"
LIBRARY_SOURCES = (BACKENDS / "cpu_kernels.cpp", BACKENDS / "cpu_library.cpp")
"""The C++ files that every kernel library contains."""

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


class MissingSourceError(OSError):
    """A kernel source is not readable, or an included file is in no folder; the message names both."""


@dataclass(frozen=True, slots=True)
class KernelSources:
    """The kernels of one chain.

    header: include path of the generated list of its kernels.
    folders: the include folders.
    library: the compiled kernels for the CPU, as the name of an importable module or the path of a shared library.
    """

    header: str
    folders: tuple[Path, ...]
    library: str

    def digest(self, source: str = "") -> str:
        """SHA-256 of the files of the library, and of those that the generated `source` includes.

        Raises MissingSourceError.
        """
        return sources_digest(included_files(self.header, self.folders, source))


@dataclass(frozen=True, slots=True, order=True)
class SourceFile:
    """A kernel file. name: the path below an include folder, which does not depend on the place of the installation."""

    name: str
    path: str
    content: bytes


def included_files(header: str, folders: Sequence[Path], source: str = "") -> list[SourceFile]:
    """The files that `header`, LIBRARY_SOURCES and the text `source` include, themselves included, ordered by name.

    Conditions are not evaluated: a file counts even if an `#if` excludes it, because another back end or instruction
    set includes it. Raises MissingSourceError.
    """
    roots = [str(folder.resolve()) for folder in folders]
    is_file = functools.cache(os.path.isfile)
    found: dict[str, SourceFile] = {}
    pending = [*map(str, LIBRARY_SOURCES), _find(header, "the library", roots, is_file)]
    pending += [_find(name, "the generated source", roots, is_file) for name in _includes(source.encode())]
    while pending:
        path = pending.pop()
        if path in found:
            continue
        try:
            status = os.stat(path)
            content, included = _read(path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        except OSError as error:
            raise MissingSourceError(f"the kernel source {path} cannot be read: {error.strerror}") from error
        found[path] = SourceFile(_name(path, roots), path, content)
        beside = os.path.dirname(path)
        pending += [_find(name, path, (beside, *roots), is_file) for name in included]
    return sorted(found.values())


def sources_digest(files: Sequence[SourceFile]) -> str:
    """SHA-256 over names and contents, in the given order."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name}\n{len(file.content)}\n".encode())
        digest.update(file.content)
    return digest.hexdigest()


@functools.lru_cache(maxsize=1024)
def _read(path: str, *_version: int) -> tuple[bytes, list[str]]:
    """Content and included names of one version of a file. A process with many engines reads it once.

    Raises OSError.
    """
    content = Path(path).read_bytes()
    return content, _includes(content)


def _includes(content: bytes) -> list[str]:
    return [name.decode() for name in _INCLUDE.findall(content)]


def _find(name: str, includer: str, folders: Sequence[str], is_file: Callable[[str], bool]) -> str:
    """The included file, from the first folder that has it."""
    for folder in folders:
        path = os.path.normpath(f"{folder}/{name}")
        if is_file(path):
            return path
    raise MissingSourceError(f'{includer} includes "{name}", which is in none of {", ".join(folders)}')


def _name(path: str, roots: Sequence[str]) -> str:
    for root in roots:
        if path.startswith(f"{root}/"):
            return path[len(root) + 1 :]
    return os.path.basename(path)


def main() -> int:
    """Print digest and files."""
    header, *folders = sys.argv[1:]
    try:
        files = included_files(header, [Path(folder) for folder in folders])
    except MissingSourceError as error:
        print(error, file=sys.stderr)
        return 1
    print(sources_digest(files), *(file.path for file in files), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
