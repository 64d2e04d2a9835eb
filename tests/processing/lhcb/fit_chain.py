"""A test chain of the algorithms after the long tracking: from the fit of long tracks to composite candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from numpy.typing import NDArray

from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.declaration import Algorithm
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.secondary_vertices.find_pairs import find_pairs
from hltnode.processing.lhcb.secondary_vertices.fit_vertices import fit_vertices
from hltnode.processing.lhcb.secondary_vertices.pair_v0s import pair_v0s
from hltnode.processing.lhcb.secondary_vertices.select_tracks import select_tracks
from hltnode.processing.lhcb.tracks.kalman.full_fit import full_fit
from hltnode.processing.lhcb.tracks.kalman.ghost_probability import ghost_probability
from hltnode.processing.lhcb.tracks.kalman.impact_parameter import impact_parameter
from hltnode.processing.lhcb.tracks.kalman.smooth_velo import smooth_velo
from hltnode.processing.lhcb.tracks.kalman.velo_fit import velo_fit
from tests.processing.framework.chain_builder import build_kernels
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms, with_block_size
from tests.processing.framework.session_folders import session_folder

KALMAN = (velo_fit, impact_parameter)
FULL = (full_fit,)
VERTICES = (select_tracks, find_pairs, fit_vertices, pair_v0s)
ALL = (*KALMAN, *FULL, smooth_velo, ghost_probability, *VERTICES)


@cache
def fit_kernels(optimize: str = "-O2", *more: str) -> KernelSources:
    """The kernels of these algorithms, compiled once."""
    folder = session_folder("hltnode-fit-kernels-")
    lines = [f'#include "{a.source.relative_to(PROCESSING).as_posix()}"' for a in ALL]
    names = " ".join(f"X({a.name})" for a in ALL)
    (folder / "fit_kernels.h").write_text("\n".join([*lines, f"#define HLT_KERNELS(X) {names}", ""]))
    kernels = KernelSources("fit_kernels.h", (PROCESSING, folder), str(folder / "kernels.so"))
    build_kernels(kernels, optimize, *more)
    return kernels


def run(
    algorithms: Sequence[Algorithm],
    given: Mapping[str, NDArray[Any]],
    n_events: int,
    limits: BatchLimits,
    block_size: int | None = None,
    *,
    backward: bool = False,
    fill: int = 0,
) -> dict[str, NDArray[Any]]:
    """All columns after the algorithms ran, on the CPU or with emulated blocks of many threads."""
    kernels = fit_kernels()
    launch = (
        on_cpu(kernels=kernels)
        if block_size is None
        else with_block_size(block_size, backward=backward, kernels=kernels)
    )
    return run_algorithms(algorithms, given, n_events, limits, launch, fill=fill)
