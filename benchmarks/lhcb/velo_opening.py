"""Vertices of the VELO halves against the opening of the VELO: found collisions, resolutions, distance of both halves.

Simulated minimum-bias events of the VELO alone, for each opening its own; the conditions are right, or leave out an
offset of side A in x. The cost is processor time of kernels for one event, as a ratio to the sequence `velo`.
"""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.measure import Result
from benchmarks.profile import ProfiledSequence
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, OfflineRunner, encode_meps
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.geometry.velo_halves import with_positions
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.processing.lhcb.offline.validation.checker.batch_check import check_batch
from hltnode.processing.lhcb.offline.validation.checker.checker import Checker
from hltnode.processing.lhcb.offline.validation.checker.reconstruction import retained
from hltnode.processing.selection.configuration.overrides import Override

SEQUENCE, BASELINE = "velo_halves", "velo"
OPENINGS = (0.0, 2.0, 5.0, 10.0, 20.0, 30.0, 58.0)
"""mm between the halves; at 58 mm they are at their outermost places."""
OFFSETS = (0.05, 0.1, 0.2, 0.5)
"""mm by which side A is off in x, unknown to the reconstruction."""
OF_OFFSETS = (0.0, 20.0)
"""Openings for which offsets are tried."""
EVENTS = 600
SEED = 21
LIMITS = BatchLimits(events=32, input_bytes=4 << 20)
TURNS = 5


def run(_shared: Path) -> Iterator[Result]:
    """One row for each number."""
    for opening in OPENINGS:
        for key, value in figures(opening).items():
            yield Result(f"{opening:g} mm, {key}", value, _unit(key), "truth", None)
    for opening in OF_OFFSETS:
        for offset in OFFSETS:
            for key, value in figures(opening, offset).items():
                yield Result(f"{opening:g} mm, A off by {offset:g} mm, {key}", value, _unit(key), "truth", None)
    for opening in (0.0, 58.0):
        for key, ratio in cost(opening).items():
            yield Result(f"{opening:g} mm, {key}", ratio, "", BASELINE, ratio)


def summary(results: Sequence[Result]) -> dict[str, float]:
    """The JSON object: every number by the name of its row."""
    return {result.name: result.value for result in results}


def _unit(key: str) -> str:
    if "pull" in key:
        return ""
    return "um" if "dx" in key or "dy" in key or "dz" in key else "%"


def encoded(opening: float, offset: float = 0.0, n: int = EVENTS) -> list[EncodedMep]:
    """Events of a VELO with this opening, and side A off by an offset in x."""
    geometry = with_positions(VeloGeometry.builtin(), {"velo_opening": opening, "velo_a_x": offset})
    return list(encode_meps(CHAIN.with_sequence(SEQUENCE), simulate_events(n, SEED, geometry=geometry), 16))


def checked(
    opening: float,
    offset: float = 0.0,
    n: int = EVENTS,
    overrides: tuple[Override, ...] = (),
    sequence: str = SEQUENCE,
) -> dict[str, Any]:
    """The JSON object of `hltnode validate` for events that have the opening and the offset, with the opening in the
    conditions."""
    chain = CHAIN.with_sequence(sequence)
    trigger = replace(CHAIN.load_trigger(None, sequence), conditions=(("velo_opening", opening),), overrides=overrides)
    engine = chain.create_engine(
        create_backend("cpu", chain.kernels),
        chain.load_geometry(None),
        trigger,
        LIMITS,
        retain=retained(chain.sequence),
    )
    checker = Checker()
    for batch in OfflineRunner(engine).run(encoded(opening, offset, n)):
        check_batch(checker, batch)
    engine.close()
    return checker.result()


def figures(opening: float, offset: float = 0.0, n: int = EVENTS) -> dict[str, float]:
    """Efficiencies and false rates in %, lengths in µm."""
    result = checked(opening, offset, n)
    halves = result["halves"]
    found = {
        "tracks found": 100 * (result["velo"]["categories"]["velo"]["efficiency"] or 0.0),
        "ghosts": 100 * (result["velo"]["ghost_rate"] or 0.0),
        "collisions of all tracks found": 100 * (result["pv"]["efficiency"] or 0.0),
        "false vertices of all tracks": 100 * (result["pv"]["false_rate"] or 0.0),
    }
    for side in ("a", "c"):
        found[f"seen by {side}"] = 100 * halves[side]["reconstructible"] / max(1, result["pv"]["reconstructible"])
        found[f"found by {side}"] = 100 * (halves[side]["efficiency"] or 0.0)
        found[f"false of {side}"] = 100 * (halves[side]["false_rate"] or 0.0)
        for axis in "xyz":
            found[f"d{axis} of {side}"] = halves[side]["resolution"][f"d{axis}"]["width"] or 0.0
            found[f"pull in {axis} of {side}"] = halves[side]["resolution"][f"pull_{axis}"]["width"] or 0.0
    found["found by both"] = 100 * (halves["both"]["efficiency"] or 0.0)
    for name, of in halves["both"]["distance"].items():
        for kind, value in (of or {}).items():
            found[f"{kind} of {name} of A - C"] = value
    return found


def cost(opening: float, turns: int = TURNS, n: int = 200) -> dict[str, float]:
    """Processor time of all kernels of the sequence, and of those that it adds, over that of the baseline."""
    meps = encoded(opening, n=n)
    trigger = {name: replace(CHAIN.load_trigger(None, name), conditions=(("velo_opening", opening),))
               for name in (SEQUENCE, BASELINE)}  # fmt: skip
    chains = {name: ProfiledSequence(name, None, LIMITS, trigger=it) for name, it in trigger.items()}
    whole, added = [], []
    for _ in range(turns):
        taken = {name: chain.microseconds_per_kernel(meps) for name, chain in chains.items()}
        baseline = sum(taken[BASELINE].values())
        whole.append(sum(taken[SEQUENCE].values()) / baseline)
        added.append(sum(us for name, us in taken[SEQUENCE].items() if name.startswith("velo_halves_")) / baseline)
    return {"whole sequence": statistics.median(whole), "kernels of halves": statistics.median(added)}
