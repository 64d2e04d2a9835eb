"""An algorithm that stands for the writers of the columns that a test gives (kernel_runner.run_algorithms)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.declaration import Algorithm, Grid


def given_columns(name: str, columns: Sequence[Column], folder: Path) -> Algorithm:
    """Declares that it writes the columns. Its kernel, made in `folder`, is empty and need not run."""
    source = folder / f"{name}.cuh"
    source.write_text(f'#pragma once\n#include "generated/{name}.h"\nHLT_KERNEL({name}) {{}}\n')
    return Algorithm(name=name, source=source, grid=Grid.EVENTS, block_size=32, writes=tuple(columns))
