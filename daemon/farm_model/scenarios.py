"""Named variations of a farm: faults, loads, and numbers of back ends, as descriptions to run."""

import math
from typing import Any

from hltnode.daemon.farm_model.description import FarmDescription, FaultKind

AWAY_SECONDS = 30.0
"""What dies stays away longer than the others need for its MEPs, which they get after 3 s."""
RACK_OF = 16
"""Without `network.nodes_of_rack`, a rack is this part of the nodes."""
SWITCH_SECONDS = 3.0
"""A switch that restarts. Feeders give up nodes that are silent for 4 s."""
STRAGGLERS, STRAGGLER_FACTOR = 0.05, 2.0
"""Part of the nodes that compute more slowly, by this factor."""
RESTART_SECONDS = 1.0
"""Time for which a node is away in a rolling update."""
BURSTS, BURST_PART, BURST_FACTOR = 5, 0.1, 1.5
"""Bursts in the time with beam, the part of the time that they take, and their rate."""
BACK_ENDS = (1, 2, 4, 8)


def dead_node(description: FarmDescription) -> FarmDescription:
    """The first node dies after a third of the time, and does not return during the beam."""
    return _with_fault(description, FaultKind.KILL, 1, description.seconds + AWAY_SECONDS)


def faults(description: FarmDescription) -> dict[str, FarmDescription]:
    """Faults beside a dead node, each after a third of the time."""
    count, seconds = description.nodes.count, description.seconds
    rack = min(count, description.network.nodes_of_rack or math.ceil(count / RACK_OF))
    slow = math.ceil(count * STRAGGLERS)
    return {
        f"a rack dies, nodes {rack}": _with_fault(description, FaultKind.KILL, rack, seconds + AWAY_SECONDS),
        f"the switch restarts, {SWITCH_SECONDS:g} s": _with_fault(description, FaultKind.STOP, count, SWITCH_SECONDS),
        f"nodes of half the speed, {slow}": _with_fault(
            description, FaultKind.SLOW, slow, seconds, at=0.0, factor=STRAGGLER_FACTOR
        ),
        f"a rolling update, {RESTART_SECONDS:g} s a node": _with_fault(
            description, FaultKind.DRAIN, count, RESTART_SECONDS
        ),
        "a full disk for a third of the time": _with_fault(description, FaultKind.FULL_DISK, 1, seconds / 3),
    }


def loads(description: FarmDescription) -> dict[str, FarmDescription]:
    """Loads that change: bursts, random triggers, the decay of a fill, and the occupancies of a measurement."""
    every = description.seconds / BURSTS
    burst = {"every_seconds": every, "seconds": every * BURST_PART, "factor": BURST_FACTOR}
    found = {
        f"bursts of {BURST_FACTOR:g} times the rate, {BURST_PART:.0%}": description.with_value("burst", burst),
        "random triggers": description.with_value("readout.arrivals", "poisson"),
        "a fill that decays to 1/e": description.with_value("readout.lifetime_seconds", description.seconds),
    }
    if description.service.measurement is not None:
        for occupancy in ("low", "high"):
            found[f"{occupancy} occupancy"] = description.with_value("service.occupancy", occupancy)
    return found


def back_ends(description: FarmDescription) -> dict[str, FarmDescription]:
    """The same number of back ends in fewer or more nodes, whose links, disks and slots stay as they are.

    Faults name nodes, so they are left out.
    """
    total = description.nodes.count * description.nodes.back_ends
    return {
        f"{number} a node": description.model_copy(update={"faults": ()})
        .with_value("nodes.back_ends", number)
        .with_value("nodes.count", math.ceil(total / number))
        for number in BACK_ENDS
        if number <= total
    }


def _with_fault(
    description: FarmDescription,
    kind: FaultKind,
    nodes: int,
    seconds: float,
    *,
    at: float | None = None,
    factor: float = 1.0,
) -> FarmDescription:
    """The description with another fault of the first nodes, after a third of the time if `at` is None."""
    fault: dict[str, Any] = {
        "kind": kind.value,
        "at_seconds": description.seconds / 3 if at is None else at,
        "seconds": seconds,
        "nodes": [0, nodes - 1],
        "factor": factor,
    }
    return description.with_value("faults", [*description.model_dump(mode="json")["faults"], fault])
