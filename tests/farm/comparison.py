"""The model of a real farm, and the table that compares both."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
QUANTILES = (0.5, 0.9, 0.99)
GOOD = 0.15
"""Largest difference that needs no reason."""
MOVED_MORE_OR_LESS = 1.0
"""MEPs that a fault may move more or less: the one that is just being sent, or just being answered."""
SHIFTS = np.linspace(-0.5, 0.5, 9).tolist()
"""Parts of a batch by which the model's faults are moved: a batch more or less before a fault changes what moves."""


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
    least: float
    """Smallest and greatest value of the model with faults moved by up to half a batch."""
    greatest: float
    real_least: float | None = None
    """Smallest and greatest real value within its error; None: the value itself."""
    real_greatest: float | None = None

    @property
    def difference(self) -> float | None:
        """Relative difference of the model from the real value, where both are nearest; None if only the real is 0."""
        low = self.real if self.real_least is None else self.real_least
        high = self.real if self.real_greatest is None else self.real_greatest
        model, real = nearest_values(self.least, self.greatest, low, high)
        return (model - real) / real if real else (0.0 if not model else None)

    @property
    def is_good(self) -> bool:
        """Whether the difference needs no reason."""
        return self.difference is not None and abs(self.difference) <= GOOD


def nearest_values(least: float, greatest: float, low: float, high: float) -> tuple[float, float]:
    """The nearest values of the ranges `least` to `greatest` and `low` to `high`: a common one, or an end of each."""
    if greatest < low:
        return greatest, low
    if high < least:
        return least, high
    common = max(least, low)
    return common, common


def ranks_of(times: np.ndarray, part: float) -> tuple[float, float]:
    """The values of a quantile's neighbours: as many ranks below and above as the number of values below it varies.

    That number has a binomial distribution: its standard deviation is sqrt(n part (1 - part)) ranks, rounded up. Of
    650 latencies, p99 is the seventh longest, and the fourth and the tenth are as likely.
    """
    ordered = np.sort(times)
    rank = max(0, int(np.ceil(part * len(ordered))) - 1)
    width = int(np.ceil(np.sqrt(len(ordered) * part * (1.0 - part))))
    return float(ordered[max(0, rank - width)]), float(ordered[min(len(ordered) - 1, rank + width)])


def run_model(description: FarmDescription) -> Farm:
    """A run of the model whose identities hold."""
    farm = Farm(description)
    farm.run()
    assert broken_identities(farm) == []
    return farm


def shifted(faults: Sequence[Fault], seconds: float) -> list[Fault]:
    """The same faults, later by `seconds`."""
    return [replace(fault, at=max(0.0, fault.at + seconds)) for fault in faults]


def rows_of(scenario: str, real: RealRun, farms: Sequence[Farm]) -> list[Row]:
    """The numbers of a scenario. farms: the model of it first, then with faults that are moved."""
    measured = _numbers_of_real(scenario, real)
    errors = _errors_of_real(real)
    of_models = [_numbers_of_model(scenario, real, farm) for farm in farms]
    return [
        Row(scenario, name, value, of_models[0][name], min(of_name), max(of_name), *errors.get(name, (value, value)))
        for name, value in measured.items()
        for of_name in [[numbers[name] for numbers in of_models]]
    ]


def _numbers_of_real(scenario: str, real: RealRun) -> dict[str, float]:
    times = np.array(list(real.latencies.values()))
    if scenario.startswith("greatest"):
        return {"MEPs/s": real.report.meps / real.report.seconds}
    found = {
        "MEPs": real.report.meps,
        "mean [ms]": float(times.mean()) * 1e3,
        # A value that occurred, as in the model: the latencies of two MEPs in each batch have nothing in between.
        **{_quantile(part): float(np.quantile(times, part, method="inverted_cdf")) * 1e3 for part in QUANTILES},
        "max [ms]": float(times.max()) * 1e3,
        "moved MEPs": real.report.reassigned,
        "MEPs sent again": real.report.resent / len(SOURCES),
        "credits": real.credits,
    }
    if real.paused is not None:
        found[f"later than {LATE_SECONDS:g} s"] = float((times > LATE_SECONDS).sum())
    return found


def _errors_of_real(real: RealRun) -> dict[str, tuple[float, float]]:
    """Smallest and greatest value of the numbers that a MEP more or less changes by much."""
    times = np.array(list(real.latencies.values())) * 1e3
    moved = real.report.reassigned
    return {
        **{_quantile(part): ranks_of(times, part) for part in QUANTILES},
        # A fault that moves none moves none in the model.
        **({"moved MEPs": (moved - MOVED_MORE_OR_LESS, moved + MOVED_MORE_OR_LESS)} if moved else {}),
    }


def _numbers_of_model(scenario: str, real: RealRun, farm: Farm) -> dict[str, float]:
    counts = farm.counts
    if scenario.startswith("greatest"):
        return {"MEPs/s": counts.acknowledged / (counts.latency.max_ns * 1e-9)}
    found = {
        "MEPs": counts.produced,
        "mean [ms]": counts.latency.mean * 1e3,
        **{
            _quantile(part): (counts.latency.quantile(part) or counts.latency.max_ns * 1e-9) * 1e3 for part in QUANTILES
        },
        "max [ms]": counts.latency.max_ns * 1e-6,
        "moved MEPs": counts.moved,
        "MEPs sent again": sum(window.resent for window in farm.windows) / len(PARTS),
        "credits": sum(node.builder.counters.credits_granted for node in farm.nodes),
    }
    if real.paused is not None:
        edges, n = counts.latency.histogram()
        found[f"later than {LATE_SECONDS:g} s"] = float(n[edges > LATE_SECONDS].sum())
    return found


def _quantile(part: float) -> str:
    return f"p{100 * part:.0f} [ms]"


def table_of(rows: Sequence[Row]) -> TextTable:
    """The table of all scenarios."""
    shown: list[list[str]] = []
    for row in rows:
        difference = row.difference
        text = "-" if difference is None else f"{difference:+.1%}"
        spread = "" if row.least == row.greatest else f"{number(row.least)} to {number(row.greatest)}"
        mark = "" if row.is_good else "  *"
        low, high = row.real_least, row.real_greatest
        error = "" if low is None or high is None or low == high else f"{number(low)} to {number(high)}"
        shown.append([f"{row.scenario}: {row.name}", number(row.real), error, number(row.model), spread, text + mark])
    return TextTable("Model beside real nodes", ("", "real", "error", "model", "faults moved", "difference"), shown)
