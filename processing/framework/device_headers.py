"""Writes the C++ headers of the declarations of a chain, or lists the headers that differ.

A package of another experiment writes the headers of its own chain before its first build:

    python -m hltnode.processing.framework.device_headers [--check] MODULE:ATTRIBUTE

tools/generate_device_headers.py does the same for the chains of this tree.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hltnode.processing.framework.chain import Chain
from hltnode.processing.framework.collections import DeclarationError


@dataclass(frozen=True, slots=True)
class DeviceHeaders:
    """Headers on disk compared with the declarations of some chains.

    missing: text of headers that are absent or differ. forgotten: headers below the folders of the chains that no chain
    declares. foreign: headers that differ and lie outside the writable folders.
    """

    missing: dict[Path, str]
    forgotten: tuple[Path, ...]
    foreign: tuple[Path, ...]

    @classmethod
    def of(cls, chains: Sequence[Chain], writable: Sequence[Path]) -> "DeviceHeaders":
        """Compare; `writable`: the folders whose headers may be written.

        Raises DeclarationError if two chains declare one header differently.
        """
        declared: dict[Path, str] = {}
        for chain in chains:
            for path, text in chain.headers.items():
                if declared.setdefault(path, text) != text:
                    raise DeclarationError(f"{path}: chain {chain.name} and another chain declare it differently")
        differing = {path: text for path, text in declared.items() if not path.is_file() or path.read_text() != text}
        missing = {
            path: text for path, text in differing.items() if any(path.is_relative_to(folder) for folder in writable)
        }
        known = {path for chain in chains for path in chain.source.parent.rglob("generated/*.h") if path.is_file()}
        return cls(missing, tuple(sorted(known - set(declared))), tuple(sorted(set(differing) - set(missing))))

    def report(self) -> int:
        """Print the headers that differ; returns 1 if there are any."""
        for path in (*sorted(self.missing), *self.forgotten, *self.foreign):
            print(f"{_shown(path)}: differs from the declarations; write the device headers again")
        return 1 if self.missing or self.forgotten or self.foreign else 0

    def write(self) -> int:
        """Write and remove headers; returns 1 if a header differs that may not be written."""
        for path, text in sorted(self.missing.items()):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            print(f"wrote {_shown(path)}")
        for path in self.forgotten:
            path.unlink()
            print(f"removed {_shown(path)}")
        for path in self.foreign:
            print(f"{path}: differs from the declarations, and belongs to another package", file=sys.stderr)
        return 1 if self.foreign else 0


def _shown(path: Path) -> str:
    """The path, relative to the working directory if it lies below it."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def main() -> int:
    """Write or check the headers of one chain."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only")
    parser.add_argument("chain", metavar="MODULE:ATTRIBUTE", help="the chain, as in the entry point")
    arguments = parser.parse_args()
    module, _, attribute = arguments.chain.partition(":")
    try:
        chain = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        parser.error(f"{arguments.chain} cannot be loaded: {error}")
    if not isinstance(chain, Chain):
        parser.error(f"{arguments.chain} is not a Chain")
    headers = DeviceHeaders.of([chain], [chain.source.parent])
    return headers.report() if arguments.check else headers.write()


if __name__ == "__main__":
    sys.exit(main())
