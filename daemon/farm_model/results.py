"""The numbers of a run as a JSON object, and the identities that every run must keep."""

from typing import Any

from hltnode.daemon.farm_model.description import FarmDescription
from hltnode.daemon.farm_model.farm import Farm
from hltnode.daemon.farm_model.feasibility import capacity, require_possible
from hltnode.daemon.farm_model.measures import Latencies

QUANTILES = {"p50": 0.5, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}
LIMIT_OF_NONE = 3.0
"""Upper limit, at 95 % confidence, on the mean of a Poisson number that was found to be 0."""


def run_farm(description: FarmDescription) -> dict[str, Any]:
    """Run the model once. Raises FarmError for a farm that cannot work."""
    require_possible(description)
    farm = Farm(description)
    farm.run()
    return result_of(farm)


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


def result_of(farm: Farm) -> dict[str, Any]:
    """The JSON object of a finished run."""
    counts, description = farm.counts, farm.description
    per_second = description.meps_per_second
    of_node = capacity(description)
    duration = description.seconds
    busy = farm.busy_ns * 1e-9
    seconds_of_buffer = description.readout.buffer_bytes / (description.mep_bytes * per_second)
    rate = description.readout.events_per_second
    nodes = description.nodes
    return {
        "nodes": nodes.count,
        "policy": description.supervisor.policy.value,
        "events_per_second": rate,
        "seconds": duration,
        "seed": description.seed,
        "meps": {
            "produced": counts.produced,
            "acknowledged": counts.acknowledged,
            "lost": counts.lost,
            "left": farm.left,
            "incomplete": counts.incomplete,
            "moved": counts.moved,
        },
        "refused_fragments": counts.refused,
        "ids": {"largest_span": farm.largest_span, "accepted_span": description.node_config().builder.closed_ring},
        "loss": counts.lost / counts.produced if counts.produced else 0.0,
        "loss_below": None if counts.lost else LIMIT_OF_NONE / max(1, counts.produced),
        "grows": grows(farm),
        "latency_ms": latencies_ms(counts.latency),
        "build_ms": latencies_ms(counts.build),
        "slot_wait_ms": latencies_ms(counts.service_wait),
        "batch_ms": latencies_ms(counts.service),
        "delivery_ms": latencies_ms(counts.delivery) if farm.outputs.totals else None,
        "consumers": [
            {
                "output": output.value,
                "policy": totals.policy.value,
                "number": len(totals.consumers),
                "messages": totals.offered,
                "sent": totals.sent,
                "dropped": totals.dropped,
                "abandoned": totals.abandoned,
                "lost_with_nodes": sum(consumer.lost for consumer in totals.consumers),
                "refused_attempts": totals.blocked,
            }
            for output, totals in farm.outputs.totals.items()
        ],
        "buffer": {
            "used_seconds": counts.in_farm.largest / per_second,
            "given_seconds": seconds_of_buffer if seconds_of_buffer < 1e9 else None,
            "used_bytes": counts.in_farm.largest * description.mep_bytes,
        },
        "back_ends_busy": busy / (duration * nodes.count * nodes.back_ends),
        "limit": of_node.limit,
        "node_carries_events_per_second": of_node.of_node,
        "watts_per_khz": nodes.watts * nodes.count / (rate * 1e-3) if nodes.watts else None,
        "cost_per_khz": nodes.cost * nodes.count / (rate * 1e-3) if nodes.cost else None,
        "broken_identities": broken_identities(farm),
        "wall_s": farm.wall_seconds,
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
