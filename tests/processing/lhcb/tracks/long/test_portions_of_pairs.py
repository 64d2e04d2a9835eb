"""The CPU form adds pairs of x hits in portions: no portion loses a hit, and its size does not change a result."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.tracks.forward.search_with_ut import search_with_ut
from hltnode.processing.lhcb.tracks.long.collections import candidate_columns
from tests.processing.chains.reference import Reference
from tests.processing.framework.chain_builder import build_kernels
from tests.processing.framework.kernel_runner import Launch, on_cpu, run_algorithms
from tests.processing.framework.session_folders import session_folder
from tests.processing.lhcb.full_events import full_events
from tests.processing.lhcb.whole_chain import reference_of

LIBRARY = KernelLibrary(CHAIN.kernels)
NO_CUT = dict.fromkeys(("max_ut_clusters", "max_scifi_clusters", "max_clusters"), 65_535)
PAIRS_CPU = "lhcb/tracks/forward/pairs_cpu.h"
PAIRS_OF_CANDIDATE = "constexpr uint32_t pairs_of_candidate = 4;"
CONSTANTS: dict[str, dict[str, float | int]] = {
    "usual": {},
    "few pairs": {"max_pairs": 1},
    "many": {"max_pairs": 2_000_000_000, "max_candidates": 2_000_000_000},
    "few hits": {"min_hits": 5},
}
"""The smallest shares of pairs and candidates are 32 for each track; candidates of few hits need no stereo hit."""
Columns = Mapping[str, NDArray[Any]]


@cache
def dense_reference() -> Reference:
    """Two events of 40 collisions. A track may have 32 candidates, so a portion ends after at most 128 pairs."""
    mep = encode_mep(CHAIN.with_sequence("forward"), full_events(2, 77, nu=40.0))
    return reference_of(mep, None, "forward")


@cache
def before_search() -> Columns:
    """The columns before the search with UT. The global event cut would reject these events."""
    reference = dense_reference()
    algorithms = []
    for algorithm in reference.sequence:
        if algorithm.name == search_with_ut.name:
            break
        algorithms.append(algorithm.with_constants(NO_CUT) if algorithm.name == "global_event_cut" else algorithm)
    return run_algorithms(algorithms, reference.given, reference.n_events, reference.limits)


def found(constants: str, launch: Launch) -> Columns:
    reference = dense_reference()
    given = {**reference.given, **before_search()}
    search = search_with_ut.with_constants(CONSTANTS[constants])
    return run_algorithms((search,), given, reference.n_events, reference.limits, launch)


@cache
def of_common_kernel(constants: str) -> Columns:
    return found(constants, on_cpu(common=True))


def assert_same_tracks(constants: str, launch: Launch) -> None:
    common, form = of_common_kernel(constants), found(constants, launch)
    is_found = common["forward_candidates.hit_count"] > 0
    assert is_found.sum() > 200
    for name in ("forward_candidates.hit_count", "scifi_hits.owner", "events.flags"):
        assert form[name].tobytes() == common[name].tobytes(), name
    for column in candidate_columns:
        one, other = (it[column.name].reshape(-1, column.width)[is_found] for it in (form, common))
        assert one.tobytes() == other.tobytes(), column.name


@pytest.mark.parametrize("target", LIBRARY.targets)
@pytest.mark.parametrize("constants", CONSTANTS)
def test_tracks_with_more_pairs_than_a_portion(constants: str, target: str) -> None:
    assert_same_tracks(constants, on_cpu(target))


def kernels_with(pairs_of_candidate: int) -> KernelSources:
    """The search alone, with another size of its portions."""
    folder = session_folder("hltnode-portions-")
    text = (PROCESSING / PAIRS_CPU).read_text()
    assert text.count(PAIRS_OF_CANDIDATE) == 1
    changed = folder / PAIRS_CPU
    changed.parent.mkdir(parents=True)
    changed.write_text(text.replace(PAIRS_OF_CANDIDATE, PAIRS_OF_CANDIDATE.replace("4", str(pairs_of_candidate))))
    (folder / "search.h").write_text(
        '#pragma once\n#include "lhcb/tracks/forward/search_with_ut.cuh"\n'
        "#if defined(HLT_WITH_CPU_FORMS)\n"
        '#include "lhcb/tracks/forward/search_with_ut_cpu.h"\n'
        "#define HLT_CPU_FORMS(X) X(forward_search_with_ut)\n#endif\n"
        "#define HLT_KERNELS(X) X(forward_search_with_ut)\n"
    )
    kernels = KernelSources("search.h", (folder, *CHAIN.kernels.folders), str(folder / "search.so"))
    build_kernels(kernels)
    return kernels


@pytest.mark.parametrize("pairs_of_candidate", [1, 1000])
def test_the_size_of_portions_changes_no_result(pairs_of_candidate: int) -> None:
    kernels = kernels_with(pairs_of_candidate)
    for constants in CONSTANTS:
        assert_same_tracks(constants, on_cpu("baseline", kernels=kernels))
