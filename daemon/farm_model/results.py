"""The numbers of runs as a JSON object, and the identities that every run must keep."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hltnode.daemon.farm_model.consumers import OutputTotals
from hltnode.daemon.farm_model.description import FarmDescription
from hltnode.daemon.farm_model.farm import Farm
from hltnode.daemon.farm_model.feasibility import capacity, require_possible
from hltnode.daemon.farm_model.measures import Latencies

QUANTILES = {"p50": 0.5, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}
LIMIT_OF_NONE = 3.0
"""Upper limit, at 95 % confidence, on the mean of a Poisson number that was found to be 0."""
_LATENCIES = ("latency_ms", "build_ms", "slot_wait_ms", "batch_ms", "delivery_ms")
_COUNTS_OF_CONSUMERS = ("messages", "sent", "dropped", "abandoned", "lost_with_nodes", "refused_attempts")


@dataclass(slots=True)
class RunRecord:
    """The numbers of one run, or of several runs of a farm that differ in their seed. It can be pickled."""

    seeds: list[int]
    meps: dict[str, int]
    refused: int
    largest_span: int
    grows: bool
    latencies: dict[str, Latencies]
    """By the key of the JSON object."""
    largest_in_farm: int
    """Largest number of MEPs in the farm."""
    busy_ns: int
    """Time of all batches that were done during the beam."""
    consumers: list[dict[str, Any]]
    broken: list[str]
    wall_seconds: float
    """Time of the longest run."""

    def join(self, other: "RunRecord") -> None:
        """Add other runs of the same farm."""
        self.seeds += other.seeds
        self.meps = {name: n + other.meps[name] for name, n in self.meps.items()}
        self.refused += other.refused
        self.largest_span = max(self.largest_span, other.largest_span)
        self.grows |= other.grows
        for name, latencies in self.latencies.items():
            latencies.join(other.latencies[name])
        self.largest_in_farm = max(self.largest_in_farm, other.largest_in_farm)
        self.busy_ns += other.busy_ns
        for mine, theirs in zip(self.consumers, other.consumers, strict=True):
            mine |= {name: mine[name] + theirs[name] for name in _COUNTS_OF_CONSUMERS}
        self.broken += other.broken
        self.wall_seconds = max(self.wall_seconds, other.wall_seconds)


def run_record(description: FarmDescription) -> RunRecord:
    """Run the model once. Raises FarmError for a farm that cannot work."""
    require_possible(description)
    farm = Farm(description)
    farm.run()
    return record_of(farm)


def run_farm(description: FarmDescription) -> dict[str, Any]:
    """The JSON object of one run. Raises FarmError for a farm that cannot work."""
    return result_of(description, run_record(description))


def seeds_of(seed: int, runs: int) -> list[int]:
    """Seeds of independent runs; the first one is the given one."""
    return [seed] + [
        int(np.random.SeedSequence((seed, i)).generate_state(1, np.uint64)[0]) >> 1 for i in range(1, runs)
    ]


def broken_identities(farm: Farm) -> list[str]:
    """The identities that a finished run breaks: none, unless the model has an error.

    MEPs are conserved, the fragments and MEPs of every node are accounted for, the messages to consumers too, and
    Little's law holds: the integral of the number of MEPs in the farm is the sum of the times that they spent in it.
    """
    counts, broken = farm.counts, []
    if counts.produced != counts.acknowledged + counts.lost + farm.left:
        broken.append(
            f"{counts.produced} MEPs produced, {counts.acknowledged} acknowledged, {counts.lost} lost, {farm.left} left"
        )
    times = counts.latency.sum_ns + farm.left_latency_ns()
    if counts.in_farm.integral != times:
        broken.append(f"Little's law: {counts.in_farm.integral} ns in the farm, {times} ns of latency")
    broken += [f"node {node.index}: the accounting does not close" for node in farm.nodes if not node.accounting_closes]
    broken += [line for totals in farm.outputs.totals.values() for line in totals.broken()]
    return broken


def record_of(farm: Farm) -> RunRecord:
    """The numbers of a finished run."""
    counts = farm.counts
    of_keys = (counts.latency, counts.build, counts.service_wait, counts.service, counts.delivery)
    return RunRecord(
        seeds=[farm.description.seed],
        meps={
            "produced": counts.produced,
            "acknowledged": counts.acknowledged,
            "lost": counts.lost,
            "left": farm.left,
            "incomplete": counts.incomplete,
            "moved": counts.moved,
        },
        refused=counts.refused,
        largest_span=farm.largest_span,
        grows=grows(farm),
        latencies=dict(zip(_LATENCIES, of_keys, strict=True)),
        largest_in_farm=counts.in_farm.largest,
        busy_ns=farm.busy_ns,
        consumers=[_consumer(totals) for totals in farm.outputs.totals.values()],
        broken=broken_identities(farm),
        wall_seconds=farm.wall_seconds,
    )


def _consumer(totals: OutputTotals) -> dict[str, Any]:
    return {
        "output": totals.output.value,
        "policy": totals.policy.value,
        "number": len(totals.consumers),
        "messages": totals.offered,
        "sent": totals.sent,
        "dropped": totals.dropped,
        "abandoned": totals.abandoned,
        "lost_with_nodes": sum(consumer.lost for consumer in totals.consumers),
        "refused_attempts": totals.blocked,
    }


def joined(records: Sequence[RunRecord]) -> RunRecord:
    """The numbers of several runs of a farm together. The first record is changed."""
    first, *others = records
    for each in others:
        first.join(each)
    return first


def result_of(description: FarmDescription, record: RunRecord) -> dict[str, Any]:
    """The JSON object of the finished runs of a farm."""
    meps, produced = record.meps, record.meps["produced"]
    per_second = description.meps_per_second
    of_node = capacity(description)
    duration = description.seconds * len(record.seeds)
    seconds_of_buffer = description.readout.buffer_bytes / (description.mep_bytes * per_second)
    rate = description.readout.events_per_second
    nodes = description.nodes
    latencies = {name: latencies_ms(of) for name, of in record.latencies.items()}
    return {
        "nodes": nodes.count,
        "policy": description.supervisor.policy.value,
        "events_per_second": rate,
        "seconds": description.seconds,
        "seed": description.seed,
        "runs": len(record.seeds),
        "seeds": record.seeds,
        "meps": meps,
        "refused_fragments": record.refused,
        "ids": {
            "largest_span": record.largest_span,
            "accepted_span": description.node_config().builder.closed_ring,
        },
        "loss": meps["lost"] / produced if produced else 0.0,
        "loss_below": None if meps["lost"] else LIMIT_OF_NONE / max(1, produced),
        "grows": record.grows,
        **(latencies if record.consumers else latencies | {"delivery_ms": None}),
        "consumers": record.consumers,
        "buffer": {
            "used_seconds": record.largest_in_farm / per_second,
            "given_seconds": seconds_of_buffer if seconds_of_buffer < 1e9 else None,
            "used_bytes": record.largest_in_farm * description.mep_bytes,
        },
        "back_ends_busy": record.busy_ns * 1e-9 / (duration * nodes.count * nodes.back_ends),
        "limit": of_node.limit,
        "node_carries_events_per_second": of_node.of_node,
        "watts_per_khz": nodes.watts * nodes.count / (rate * 1e-3) if nodes.watts else None,
        "cost_per_khz": nodes.cost * nodes.count / (rate * 1e-3) if nodes.cost else None,
        "broken_identities": record.broken,
        "wall_s": record.wall_seconds,
    }


def grows(farm: Farm) -> bool:
    """Whether more MEPs wait for a credit at the end of the beam than at any time of its first half.

    Then a longer run would lose MEPs, however large the buffers are. A number of MEPs below that of the nodes is no
    sign: it changes with every batch.
    """
    return farm.waiting_at_end > max(farm.waiting_in_first_half, farm.description.nodes.count)


def latencies_ms(latencies: Latencies) -> dict[str, float | None]:
    """Mean, quantiles and maximum in ms; None for a quantile beyond the number of entries."""
    of = {name: latencies.quantile(part) for name, part in QUANTILES.items()}
    in_ms = {name: None if value is None else value * 1e3 for name, value in of.items()}
    return {"mean": latencies.mean * 1e3, **in_ms, "max": latencies.max_ns * 1e-6}
