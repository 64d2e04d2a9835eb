"""The questions that a model answers by several runs: nodes needed, the loss of a node, policies, a sweep."""

import itertools
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hltnode.daemon.farm_model import scenarios
from hltnode.daemon.farm_model.description import FarmDescription, FarmError, Policy
from hltnode.daemon.farm_model.feasibility import capacity, mean_rate_factor, nodes_at_least
from hltnode.daemon.farm_model.results import run_farm

MAX_RUNS = 1000
STEP = 0.01
"""The search for the number of nodes goes up in steps of 1 %, and stops at twice the smallest number."""
GROUPS = {"faults": scenarios.faults, "loads": scenarios.loads, "back_ends": scenarios.back_ends}
"""Questions that are several named variations of the farm."""
GPUS_OF_A_SERVER = (1, 2, 4, 6, 8)

Progress = Callable[[str], None]


def nodes_needed(description: FarmDescription, told: Progress = lambda _: None) -> dict[str, Any]:
    """The smallest number of nodes, in steps of 1 %, whose run loses no MEP and whose backlog does not grow.

    A run can only show a loss of less than 3 / MEPs (95 % confidence): `loss_below`. Faults are left out.
    """
    least = nodes_at_least(description)
    quiet = description.model_copy(update={"faults": ()})
    nodes = least
    while nodes <= 2 * least:
        told(f"{nodes} nodes")
        result = run_farm(quiet.with_value("nodes.count", nodes))
        if not result["meps"]["lost"] and not result["meps"]["left"] and not result["grows"]:
            return {
                "nodes": nodes,
                "at_least": least,
                "loss_below": result["loss_below"],
                "latency_ms": result["latency_ms"],
            }
        nodes += max(1, round(nodes * STEP))
    raise FarmError(f"no number of nodes up to {2 * least}, twice the smallest number, carries the rate without loss")


def policies(description: FarmDescription, told: Progress = lambda _: None) -> dict[str, dict[str, Any]]:
    """A run with each policy."""
    found = {}
    for policy in Policy:
        told(policy.value)
        found[policy.value] = run_farm(description.with_value("supervisor.policy", policy.value))
    return found


def placements(description: FarmDescription) -> list[dict[str, Any]]:
    """Bandwidths of a server by the number of its back ends, in Gb/s, at the rate that a back end computes.

    out: what a server sends on if it has the back ends (builders), and what an event builder without one sends to a
    filter farm.
    """
    readout = description.readout
    of_back_end = capacity(description).compute / description.nodes.back_ends
    rate = readout.events_per_second * mean_rate_factor(description)
    rows = []
    for back_ends in GPUS_OF_A_SERVER:
        into = back_ends * of_back_end * readout.event_bytes * 8e-9
        rows.append(
            {
                "back_ends": back_ends,
                "servers": -(-rate // (back_ends * of_back_end)),
                "in_gbps": into,
                "out_of_builder_gbps": into * description.nodes.accepted,
                "out_to_filter_farm_gbps": into,
            }
        )
    return rows


def parse_sweep(texts: Sequence[str]) -> list[tuple[str, list[Any]]]:
    """Keys and their values from texts such as nodes.count=400,500. Raises FarmError."""
    found = []
    for text in texts:
        key, _, values = text.partition("=")
        if not key or not values:
            raise FarmError(f"--sweep {text!r}: expected KEY=VALUE,VALUE such as nodes.count=400,500")
        found.append((key.strip(), [_value(each.strip()) for each in values.split(",")]))
    n_runs = 1
    for _, values_of_key in found:
        n_runs *= len(values_of_key)
    if n_runs > MAX_RUNS:
        raise FarmError(f"--sweep: {n_runs} runs, expected at most {MAX_RUNS}")
    return found


def _value(text: str) -> Any:
    """A value as TOML reads it; other text is a string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text


def sweep_of(
    description: FarmDescription, keys: Sequence[tuple[str, list[Any]]]
) -> list[tuple[dict[str, Any], FarmDescription]]:
    """The description with each combination of values. Raises FarmError for a wrong key or value."""
    found = []
    for values in itertools.product(*(values for _, values in keys)):
        chosen = {key: value for (key, _), value in zip(keys, values, strict=True)}
        changed = description
        for key, value in chosen.items():
            try:
                changed = changed.with_value(key, value)
            except FarmError as error:
                raise FarmError(f"--sweep {key}={value}: {error}") from error
        found.append((chosen, changed))
    return found


def sweep(
    farms: Sequence[tuple[dict[str, Any], FarmDescription]], told: Progress = lambda _: None
) -> list[dict[str, Any]]:
    """A run of each farm: `{"set": {key: value}, ...}`; a farm that cannot work has `error`."""
    rows = []
    for chosen, farm in farms:
        told(", ".join(f"{key} = {value}" for key, value in chosen.items()))
        rows.append({"set": chosen, **_run_or_error(farm)})
    return rows


def _run_or_error(farm: FarmDescription) -> dict[str, Any]:
    """The result of a run; a farm that cannot work has `error`."""
    try:
        return run_farm(farm)
    except FarmError as error:
        return {"error": str(error)}


def variations(farms: Mapping[str, FarmDescription], told: Progress = lambda _: None) -> dict[str, dict[str, Any]]:
    """A run of each farm, by its name; a farm that cannot work has `error`."""
    found = {}
    for name, farm in farms.items():
        told(name)
        found[name] = _run_or_error(farm)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """What is asked beside the run of the description. groups: names of GROUPS."""

    nodes_needed: bool = False
    dead_node: bool = False
    policies: bool = False
    placements: bool = False
    groups: tuple[str, ...] = ()
    sweep: tuple[str, ...] = ()


def answers(description: FarmDescription, asked: Questions, told: Progress = lambda _: None) -> dict[str, Any]:
    """The JSON object of `hltnode farm model`: the run of the description, and an entry for each question."""
    keys = parse_sweep(asked.sweep)
    # A wrong value is said before the first run.
    farms = sweep_of(description, keys) if keys else []
    told("as described")
    result = run_farm(description)
    if asked.nodes_needed:
        result["nodes_needed"] = nodes_needed(description, told)
    if asked.dead_node:
        told("a node dies")
        result["dead_node"] = run_farm(scenarios.dead_node(description))
    if asked.policies:
        result["policies"] = policies(description, told)
    if asked.placements:
        result["placements"] = placements(description)
    for group in asked.groups:
        result[group] = variations(GROUPS[group](description), told)
    if farms:
        result["sweep"] = sweep(farms, told)
    of_groups = [run for group in asked.groups for run in result[group].values()]
    for run in (result.get("dead_node"), *result.get("policies", {}).values(), *of_groups, *result.get("sweep", ())):
        result["broken_identities"] += [] if run is None else run.get("broken_identities", [])
    return result
