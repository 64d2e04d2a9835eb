"""The questions that a model answers by several runs: nodes needed, the loss of a node, policies, a sweep."""

import itertools
import tomllib
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from hltnode.daemon.farm_model import scenarios
from hltnode.daemon.farm_model.description import FarmDescription, FarmError, Policy
from hltnode.daemon.farm_model.feasibility import capacity, mean_rate_factor, nodes_at_least
from hltnode.daemon.farm_model.results import RunRecord, joined, result_of, run_record, seeds_of

MAX_RUNS = 1000
STEP = 0.01
"""The search for the number of nodes goes up in steps of 1 %, and stops at twice the smallest number."""
GROUPS = {"faults": scenarios.faults, "loads": scenarios.loads, "back_ends": scenarios.back_ends}
"""Questions that are several named variations of the farm."""
GPUS_OF_A_SERVER = (1, 2, 4, 6, 8)

Progress = Callable[[str], None]
NamedFarm = tuple[str, FarmDescription]
"""A farm to run, and what is told of it."""


class Runs:
    """Runs of farms, one after the other in this process.

    Args:
        each: independent runs of each farm, with seeds of their own; their numbers are joined.
        told: is told of each run.
    """

    def __init__(self, each: int = 1, told: Progress = lambda _: None) -> None:
        self._each = each
        self.told = told

    def records(self, farms: Sequence[NamedFarm]) -> Generator[RunRecord | FarmError]:
        """The numbers of each farm, run once, in order; the error of a farm that cannot work."""
        for name, farm in farms:
            self.told(name)
            try:
                yield run_record(farm)
            except FarmError as error:
                yield error

    def results(self, farms: Sequence[FarmDescription], names: Sequence[str]) -> Generator[dict[str, Any] | FarmError]:
        """The JSON object of each farm, in order; the error of a farm that cannot work."""
        single = [
            (name if self._each == 1 else f"{name}, run {i + 1}", farm.with_value("seed", seed))
            for name, farm in zip(names, farms, strict=True)
            for i, seed in enumerate(seeds_of(farm.seed, self._each))
        ]
        with closing(self.records(single)) as records:
            for farm in farms:
                of_farm = [next(records) for _ in range(self._each)]
                errors = [each for each in of_farm if isinstance(each, FarmError)]
                done = [each for each in of_farm if isinstance(each, RunRecord)]
                yield errors[0] if errors else result_of(farm, joined(done))

    def result(self, farm: FarmDescription, name: str) -> dict[str, Any]:
        """The JSON object of one farm. Raises FarmError for a farm that cannot work."""
        [found] = self.results([farm], [name])
        if isinstance(found, FarmError):
            raise found
        return found


def nodes_needed(description: FarmDescription, runs: Runs) -> dict[str, Any]:
    """The smallest number of nodes, in steps of 1 %, whose runs lose no MEP and whose backlog does not grow.

    Runs can only show a loss of less than 3 / MEPs (95 % confidence): `loss_below`. Faults are left out.
    """
    least = nodes_at_least(description)
    quiet = description.model_copy(update={"faults": ()})
    nodes = least
    while nodes <= 2 * least:
        result = runs.result(quiet.with_value("nodes.count", nodes), f"{nodes} nodes")
        if not result["meps"]["lost"] and not result["meps"]["left"] and not result["grows"]:
            return {
                "nodes": nodes,
                "at_least": least,
                "loss_below": result["loss_below"],
                "latency_ms": result["latency_ms"],
            }
        nodes += max(1, round(nodes * STEP))
    raise FarmError(f"no number of nodes up to {2 * least}, twice the smallest number, carries the rate without loss")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """What is asked beside the run of the description. groups: names of GROUPS."""

    nodes_needed: bool = False
    dead_node: bool = False
    policies: bool = False
    placements: bool = False
    groups: tuple[str, ...] = ()
    sweep: tuple[str, ...] = ()


def answers(description: FarmDescription, asked: Questions, runs: Runs) -> dict[str, Any]:
    """The JSON object of `hltnode farm model`: the runs of the description, and an entry for each question.

    A farm of a group or of a sweep that cannot work has `error`. Raises FarmError for any other farm that cannot work,
    and for a sweep with a wrong key or value.
    """
    keys = parse_sweep(asked.sweep)
    # A wrong value is said before the first run.
    swept = sweep_of(description, keys) if keys else []
    farms = [_Asked("", "as described", description)]
    if asked.dead_node:
        farms.append(_Asked("dead_node", "a node dies", scenarios.dead_node(description)))
    if asked.policies:
        farms += [
            _Asked("policies", each.value, description.with_value("supervisor.policy", each.value)) for each in Policy
        ]
    for group in asked.groups:
        farms += [_Asked(group, name, farm) for name, farm in GROUPS[group](description).items()]
    farms += [
        _Asked("sweep", ", ".join(f"{key} = {value}" for key, value in chosen.items()), farm) for chosen, farm in swept
    ]
    with closing(runs.results([each.farm for each in farms], [each.name for each in farms])) as results:
        found = [each.required(result) for each, result in zip(farms, results, strict=True)]

    result = found[0]
    if asked.nodes_needed:
        result["nodes_needed"] = nodes_needed(description, runs)
    if asked.placements:
        result["placements"] = placements(description)
    rows = iter(swept)
    for each, run in zip(farms[1:], found[1:], strict=True):
        result["broken_identities"] += run.get("broken_identities", [])
        if each.question == "dead_node":
            result["dead_node"] = run
        elif each.question == "sweep":
            chosen, _ = next(rows)
            result.setdefault("sweep", []).append({"set": chosen, **run})
        else:
            result.setdefault(each.question, {})[each.name] = run
    return result


@dataclass(frozen=True, slots=True)
class _Asked:
    """A farm to run: the question that it belongs to, and its name."""

    question: str
    name: str
    farm: FarmDescription

    def required(self, found: dict[str, Any] | FarmError) -> dict[str, Any]:
        """The JSON object of this farm. One of a group or of a sweep may fail: it has `error`."""
        if not isinstance(found, FarmError):
            return found
        if self.question in GROUPS or self.question == "sweep":
            return {"error": str(found)}
        raise found
