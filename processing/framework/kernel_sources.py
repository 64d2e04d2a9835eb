"""Where the kernel sources of a chain lie, and a digest by which a build of them is known. The build runs this file."""

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class KernelSources:
    """The kernels of one chain.

    header: the generated list of its kernels, as it is included.
    folders: where includes start; every .cuh and .h file below them is part of the digest.
    library: the compiled kernels for the CPU, as the name of an importable module or the path of a shared library.
    """

    header: str
    folders: tuple[Path, ...]
    library: str

    def digest(self) -> str:
        """SHA-256 of the sources."""
        return sources_digest(self.folders)


def sources_digest(folders: Sequence[Path]) -> str:
    """SHA-256 over all kernel sources below some folders, in the order of folders and paths."""
    digest = hashlib.sha256()
    for folder in folders:
        sources = [*folder.rglob("*.cuh"), *folder.rglob("*.h")]
        for source in sorted(sources, key=lambda path: path.relative_to(folder).as_posix()):
            digest.update(source.read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    print(sources_digest([Path(argument) for argument in sys.argv[1:]]))
