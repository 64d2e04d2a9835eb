"""The sequence `velo_simd` against the number of partners of a middle hit, and with other kinds of planes.

The curves are those of A. Hennequin's thesis: pairs of hits that the seeding would match (figure 5.4), speed (5.8),
efficiencies and ghosts (5.10), on the Bs -> phi phi events of velopix. Speed is processor time of the kernels for one
event, as a ratio to the default number of partners, in turn.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.lhcb.real_events import CHAIN, geometry_folder
from benchmarks.measure import Result
from benchmarks.profile import ProfiledSequence
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, OfflineRunner, encode_meps
from hltnode.processing.lhcb.geometry.ideal_velo import N_MODULES
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.validation.checker.batch_check import check_batch
from hltnode.processing.lhcb.offline.validation.checker.checker import Checker
from hltnode.processing.lhcb.offline.validation.checker.reconstruction import retained
from hltnode.processing.lhcb.offline.validation.readers.velopix import VelopixEvent, encode_velopix, read_velopix
from hltnode.processing.selection.configuration.overrides import Override

SEQUENCE, KERNEL = "velo_simd", "velo_follow_tracks"
PARTNERS = tuple(range(1, 11))
USUAL = 8
PLANES = {"halves_apart": 1, "single_modules": 2}
LIMITS = BatchLimits(events=64, input_bytes=8 << 20)
EVENTS = 300
EVENTS_OF_PAIRS = 100
"""As many as in figure 5.4."""
TURNS = 5
REPEAT = 4
CATEGORIES = {"velo": "velo_eta25", "from_b": "long_from_b", "strange": "long_strange"}
"""Categories of figure 5.10, by their keys in the JSON object."""


def run(shared: Path) -> Iterator[Result]:
    """One row for each number of every curve."""
    events = list(islice(read_velopix(shared / "data" / "velo-truth" / "bsphiphi.jsonl.gz"), EVENTS))
    for name, numbers in curves(events, geometry_folder(shared), PARTNERS, TURNS).items():
        for key, value in numbers.items():
            if key.endswith("ratio"):
                yield Result(f"{name}, {key}", value, "", f"{USUAL} partners", value)
            else:
                yield Result(f"{name}, {key}", 100 * value, "%", "truth", None)


def summary(results: Sequence[Result]) -> dict[str, Any]:
    """The JSON object: by number of partners ("1" to "10") and kind of planes, every number of the rows as a fraction
    or a ratio."""
    found: dict[str, dict[str, float]] = {}
    for result in results:
        name, key = result.name.split(", ")
        found.setdefault(name, {})[key] = result.value / (100 if result.unit == "%" else 1)
    return found


def curves(
    events: Sequence[VelopixEvent], folder: Path, partners: Sequence[int], turns: int
) -> dict[str, dict[str, float]]:
    """The numbers of each configuration, by its name: fractions, and ratios to USUAL partners."""
    geometry = VeloGeometry.load(folder)
    banks = [encode_velopix(event, geometry) for event in events]
    meps = list(encode_meps(CHAIN.with_sequence(SEQUENCE), banks, 16))
    configurations: dict[str, dict[str, int]] = {str(n): {"seed_partners": n} for n in partners}
    configurations |= {name: {"plane_kind": kind} for name, kind in PLANES.items()}
    found = {name: found_tracks(meps, folder, constants) for name, constants in configurations.items()}
    matched = matched_pairs(events[:EVENTS_OF_PAIRS], partners)
    for n in partners:
        found[str(n)]["pairs_matched"] = matched[n]
    for name, ratios in speed(meps, folder, configurations, turns).items():
        found[name] |= ratios
    return found


def _overrides(constants: Mapping[str, int]) -> tuple[Override, ...]:
    return tuple(Override(KERNEL, name, value) for name, value in constants.items())


def found_tracks(meps: Sequence[EncodedMep], folder: Path, constants: Mapping[str, int]) -> dict[str, float]:
    """Efficiencies, ghosts, clones and hit efficiencies."""
    engine = CHAIN.create_engine(
        create_backend("cpu", CHAIN.kernels),
        CHAIN.with_sequence(SEQUENCE).load_geometry(folder),
        replace(CHAIN.load_trigger(None, SEQUENCE), overrides=_overrides(constants)),
        LIMITS,
        retain=retained(CHAIN.sequences[SEQUENCE].algorithms),
    )
    checker = Checker()
    for batch in OfflineRunner(engine).run(meps):
        check_batch(checker, batch)
    engine.close()
    result = checker.result()["velo"]
    categories = result["categories"]
    velo = categories["velo_eta25"]
    return {
        **{f"efficiency_{key}": categories[name]["efficiency"] or 0.0 for key, name in CATEGORIES.items()},
        "ghosts": result["ghost_rate"],
        "clones": velo["clone_rate"],
        **{key: velo[key] for key in ("hit_efficiency", "hit_efficiency_first3", "hit_efficiency_last")},
    }


def speed(
    meps: Sequence[EncodedMep], folder: Path, configurations: Mapping[str, Mapping[str, int]], turns: int
) -> dict[str, dict[str, float]]:
    """Processor time of the usual search / that of each configuration: of the search, and of all kernels. Above 1 the
    configuration is faster."""
    chains = {
        name: ProfiledSequence(SEQUENCE, folder, LIMITS, overrides=_overrides(constants))
        for name, constants in {"usual": {"seed_partners": USUAL}, **configurations}.items()
    }
    searches: dict[str, list[float]] = {name: [] for name in configurations}
    kernels: dict[str, list[float]] = {name: [] for name in configurations}
    for _ in range(turns):
        taken = {name: chain.microseconds_per_kernel([*meps] * REPEAT) for name, chain in chains.items()}
        usual = taken["usual"]
        for name in configurations:
            searches[name].append(usual[KERNEL] / taken[name][KERNEL])
            kernels[name].append(sum(usual.values()) / sum(taken[name].values()))
    return {
        name: {"search_ratio": statistics.median(searches[name]), "chain_ratio": statistics.median(kernels[name])}
        for name in configurations
    }


def matched_pairs(events: Sequence[VelopixEvent], partners: Sequence[int]) -> dict[int, float]:
    """Of the pairs of hits of one particle in neighbouring module pairs, the fraction whose hit downstream is one of
    the n nearest hits in phi. No hit counts as used."""
    ranks: list[int] = []
    for event in events:
        phi = np.arctan2(event.position[:, 1], event.position[:, 0])
        plane = event.module // 2
        of_plane = [np.flatnonzero(plane == number) for number in range(N_MODULES // 2)]
        for particle in event.particles:
            hits = np.array(particle["hits"], dtype=np.int64)
            for middle in hits:
                for partner in hits[plane[hits] == plane[middle] + 1]:
                    turn = np.abs((phi[of_plane[plane[partner]]] - phi[middle] + np.pi) % (2 * np.pi) - np.pi)
                    own = np.abs((phi[partner] - phi[middle] + np.pi) % (2 * np.pi) - np.pi)
                    ranks.append(int((turn < own).sum()))
    return {n: float(np.mean(np.array(ranks) < n)) for n in partners}
