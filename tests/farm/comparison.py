"""The model of a real farm, and the table that compares both."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hltnode.daemon.farm_model.description import FarmDescription, parse_description
from hltnode.daemon.farm_model.farm import Farm
from hltnode.daemon.farm_model.node_numbers import PARTS
from hltnode.daemon.farm_model.results import broken_identities
from hltnode.daemon.farm_model.tables import TextTable, number
from tests.daemon.fakes import SOURCES
from tests.farm.real import EVENTS_PER_MEP, SECTIONS, WAITING, Fault, Pause, RealRun

LATE_SECONDS = 1.0
"""Only a consumer that pauses makes a MEP that late."""
GOOD = 0.15
"""Largest difference that needs no reason."""


def model_of(
    n_nodes: int,
    meps: int,
    mep_seconds: float,
    faults: Sequence[Fault],
    service: dict[str, float],
    event_bytes: float,
    paused: Pause | None = None,
) -> FarmDescription:
    """The farm of a real run as a description of the model."""
    node: dict[str, dict[str, Any]] = dict(SECTIONS)
    consumers = []
    if paused is not None:
        # The queue of a node and all buffers on the way are one queue in the model.
        node["decisions"] = {**WAITING["decisions"], "queue": paused.queue}
        consumers = [
            {
                "output": "decisions",
                "messages_per_second": 1e5,
                "pause_at_seconds": paused.at,
                "pause_seconds": paused.seconds,
            }
        ]
    return parse_description(
        {
            # The last MEP comes before the end, whatever the rounding.
            "seconds": (meps + 0.5) * mep_seconds,
            "readout": {
                "sources": len(SOURCES),
                "events_per_second": EVENTS_PER_MEP / mep_seconds,
                "event_bytes": event_bytes,
                "events_per_mep": EVENTS_PER_MEP,
            },
            "nodes": {"count": n_nodes, "accepted": 0.5, "disk_bytes_per_second": 1e9},
            "service": service,
            "node": node,
            "consumers": consumers,
            "faults": [
                {
                    "kind": fault.kind.value,
                    "at_seconds": max(0.0, fault.at),
                    "seconds": fault.seconds,
                    "nodes": [fault.node, fault.node],
                    "factor": fault.factor,
                }
                for fault in faults
            ],
        },
        "real",
    )


@dataclass(frozen=True, slots=True)
class Row:
    """A number of a scenario, in the real farm and in the model."""

    scenario: str
    name: str
    real: float
    model: float

    @property
    def difference(self) -> float | None:
        """Relative difference; None without a real value."""
        return (self.model - self.real) / self.real if self.real else (0.0 if not self.model else None)


def run_model(description: FarmDescription) -> Farm:
    """A run of the model whose identities hold."""
    farm = Farm(description)
    farm.run()
    assert broken_identities(farm) == []
    return farm


def rows_of(scenario: str, real: RealRun, farm: Farm) -> list[Row]:
    """The numbers of a scenario."""
    times = np.array(list(real.latencies.values()))
    counts = farm.counts
    credits = sum(node.builder.counters.credits_granted for node in farm.nodes)
    resent = sum(window.resent for window in farm.windows) / len(PARTS)

    def of_model(part: float) -> float:
        return (counts.latency.quantile(part) or counts.latency.max_ns * 1e-9) * 1e3

    found = [
        Row(scenario, "MEPs", real.report.meps, counts.produced),
        Row(scenario, "mean [ms]", float(times.mean()) * 1e3, counts.latency.mean * 1e3),
        *(
            Row(scenario, f"p{100 * part:.0f} [ms]", float(np.quantile(times, part)) * 1e3, of_model(part))
            for part in (0.5, 0.9, 0.99)
        ),
        Row(scenario, "max [ms]", float(times.max()) * 1e3, counts.latency.max_ns * 1e-6),
        Row(scenario, "moved MEPs", real.report.reassigned, counts.moved),
        Row(scenario, "MEPs sent again", real.report.resent / len(SOURCES), resent),
        Row(scenario, "credits", real.credits, credits),
    ]
    if real.paused is not None:
        edges, n = counts.latency.histogram()
        late = LATE_SECONDS
        found.append(Row(scenario, f"later than {late:g} s", float((times > late).sum()), float(n[edges > late].sum())))
    if scenario.startswith("greatest"):
        longest = counts.latency.max_ns * 1e-9
        rate = real.report.meps / real.report.seconds
        found = [Row(scenario, "MEPs/s", rate, counts.acknowledged / longest)]
    return found


def table_of(rows: Sequence[Row]) -> TextTable:
    """The table of all scenarios."""
    shown: list[list[str]] = []
    for row in rows:
        difference: Any = row.difference
        text = "-" if difference is None else f"{difference:+.1%}"
        mark = "" if difference is not None and abs(difference) <= GOOD else "  *"
        shown.append([f"{row.scenario}: {row.name}", number(row.real), number(row.model), text + mark])
    return TextTable("Model beside real nodes", ("", "real", "model", "difference"), shown)
