"""What the sequence `hlt1_2026` costs beyond `forward_then_matching`, by part, for the real events.

Shares are processor times of kernels on one thread, over those of all kernels of `forward_then_matching` in the same
turn. Both sequences, and the first with 20 composites, take turns.
"""

import statistics
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from benchmarks.lhcb.composites import N_COMPOSITES, many_composites
from benchmarks.lhcb.real_events import CHAIN, geometry_folder, real_events
from benchmarks.lhcb.sequences import COPIES, LIMITS
from benchmarks.measure import Result
from benchmarks.profile import ProfiledSequence
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.chain import (
    DOWNSTREAM,
    ECAL,
    JETS,
    LARGE_CLUSTERS,
    LUMINOSITY,
    MUON_NETWORK,
    MUON_STUBS,
)
from hltnode.processing.selection.make_composite import PREFIX

BASE, WHOLE = "forward_then_matching", "hlt1_2026"
MEPS = 2
TURNS = 7
PARTS = {
    "calorimeter": tuple(algorithm.name for algorithm in ECAL),
    "luminosity": tuple(algorithm.name for algorithm in LUMINOSITY),
    "downstream": tuple(algorithm.name for algorithm in DOWNSTREAM),
    "muon_nn": tuple(algorithm.name for algorithm in MUON_NETWORK),
    "muon_stubs": tuple(algorithm.name for algorithm in MUON_STUBS),
    "jets": tuple(algorithm.name for algorithm in JETS),
    "large_clusters": tuple(algorithm.name for algorithm in LARGE_CLUSTERS),
}
"""Kernels of each part."""
LIMITS_OF = {"calorimeter": 0.1, "downstream": 0.15, "muon_nn": 0.02, "composites": 0.03}
"""Largest shares."""
LIMIT, LIMIT_WITHOUT = 1.4, 1.25
"""Largest ratios of the whole sequence, and without downstream tracks, muon network, stubs, jets and large clusters."""


def run(shared: Path) -> Iterator[Result]:
    """Measure the parts: medians over the turns."""
    events, geometry = real_events(shared), geometry_folder(shared)
    meps = {
        name: [encode_mep(CHAIN.with_sequence(name), events * COPIES, encoding="retina")] * MEPS
        for name in (BASE, WHOLE)
    }
    made = {name: ProfiledSequence(name, geometry, LIMITS) for name in (BASE, WHOLE)}
    composites = ProfiledSequence(BASE, geometry, LIMITS, trigger=many_composites(BASE, N_COMPOSITES))
    measures = [
        partial(made[BASE].microseconds_per_kernel, meps[BASE]),
        partial(made[WHOLE].microseconds_per_kernel, meps[WHOLE]),
        partial(composites.microseconds_per_kernel, meps[BASE]),
    ]
    for measure in measures:
        measure()
    shares: dict[str, list[float]] = {}
    times: dict[str, list[float]] = {}
    for _ in range(TURNS):
        base, whole, with_composites = (measure() for measure in measures)
        for name, microseconds in of_parts(whole, with_composites).items():
            times.setdefault(name, []).append(microseconds)
            shares.setdefault(name, []).append(microseconds / sum(base.values()))
    baseline = f"kernels of {BASE}"
    limits = {**LIMITS_OF, "whole": LIMIT, "without": LIMIT_WITHOUT}
    for name, of_turns in shares.items():
        limit = limits.get(name)
        # Targets are smallest ratios, so the baseline is divided by the part.
        yield Result(
            name,
            statistics.median(times[name]),
            "us/event",
            baseline,
            1.0 / statistics.median(of_turns),
            None if limit is None else 1.0 / limit,
        )


def of_parts(whole: Mapping[str, float], with_composites: Mapping[str, float]) -> dict[str, float]:
    """Processor time by part, of composites, of the whole sequence, and of it without downstream tracks, muon network,
    stubs, jets and large clusters."""
    parts = {name: sum(whole[kernel] for kernel in kernels) for name, kernels in PARTS.items()}
    all_kernels = sum(whole.values())
    beyond = sum(parts[name] for name in ("downstream", "muon_nn", "muon_stubs", "jets", "large_clusters"))
    return {
        **parts,
        "composites": sum(time for kernel, time in with_composites.items() if kernel.startswith(PREFIX)),
        "whole": all_kernels,
        "without": all_kernels - beyond,
    }


def summary(results: list[Result]) -> dict[str, object]:
    """Shares of parts, and ratios of the whole sequence, over `forward_then_matching`."""
    shares = {result.name: 1.0 / result.ratio for result in results if result.ratio}
    names = {"whole": "whole_ratio", "without": "ratio_without_downstream_and_muons"}
    return {names.get(name, f"{name}_share"): share for name, share in shares.items()}
