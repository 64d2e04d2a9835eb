"""Where the kernel sources lie, and a digest by which a build of them is known. The build runs this file by itself."""

import hashlib
from pathlib import Path

KERNELS = Path(__file__).resolve().parents[2]
"""The folder `processing`: includes in kernel sources start here."""


def sources_digest() -> str:
    """SHA-256 over all kernel sources, in the order of their paths."""
    digest = hashlib.sha256()
    for source in sorted(KERNELS.rglob("*.cuh"), key=lambda path: path.relative_to(KERNELS).as_posix()):
        digest.update(source.read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    print(sources_digest())
