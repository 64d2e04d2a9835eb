"""Measured times of batches: the file of `hltnode farm measure`, and its check."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.farm_model.description import FarmError

FORMAT = "hltnode-farm-measurement"
VERSION = 1
N_QUANTILES = 65
"""Quantiles of the times of a batch size, evenly spaced from the shortest to the longest time."""
OCCUPANCIES = ("all", "low", "middle", "high")
MAX_FILE_BYTES = 4 << 20
MAX_POINTS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Times of batches of one size.

    occupancy: the events, one of OCCUPANCIES; batches: number of measured batches; seconds: quantiles, ascending.
    """

    occupancy: str
    events: int
    event_bytes: float
    batches: int
    seconds: tuple[float, ...]

    @property
    def events_per_second(self) -> float:
        """Events of a batch in its mean time, which is that of a uniform part of the quantiles."""
        return self.events / float(np.trapezoid(self.seconds, dx=1 / (N_QUANTILES - 1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The times of batches of one chain on one back end.

    hltnode: version of the software; back_end: cpu or cuda; machine: its processor; is_estimate: the times were not
    measured by a clock on this back end; accepted: part of the events that were accepted.
    """

    hltnode: str
    chain: str
    sequence: str
    tck: str
    back_end: str
    threads: int
    machine: str
    is_estimate: bool
    accepted: float
    points: tuple[Point, ...]

    def as_json(self) -> dict[str, Any]:
        """The JSON object of the file."""
        return {"format": FORMAT, "version": VERSION, **asdict(self)}

    def quantiles(self, occupancy: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Batch sizes f64[n], ascending, and the quantiles of their times f64[n, quantiles] in seconds.

        Raises FarmError if there is no time for this occupancy.
        """
        points = sorted((point for point in self.points if point.occupancy == occupancy), key=lambda each: each.events)
        if not points:
            known = ", ".join(sorted({point.occupancy for point in self.points}))
            raise FarmError(f"service.occupancy: the measurement has no times for {occupancy!r}, only for {known}")
        return np.array([point.events for point in points], np.float64), np.array([point.seconds for point in points])

    def largest(self, occupancy: str) -> Point:
        """The point of the largest batches of an occupancy."""
        return max((point for point in self.points if point.occupancy == occupancy), key=lambda each: each.events)


def point_of(occupancy: str, events: int, event_bytes: float, seconds: Sequence[float]) -> Point:
    """The point of measured times."""
    quantiles = np.quantile(np.asarray(seconds, np.float64), np.linspace(0.0, 1.0, N_QUANTILES))
    return Point(
        occupancy=occupancy,
        events=events,
        event_bytes=event_bytes,
        batches=len(seconds),
        seconds=tuple(float(each) for each in quantiles),
    )


def load_measurement(path: Path, chain: str, hltnode: str) -> Measurement:
    """Read a measurement of a chain by this version of hltnode.

    Raises FarmError, also for a measurement of another chain or by another version.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise FarmError(f"{path}: cannot be read: {error.strerror}") from error
    if len(raw) > MAX_FILE_BYTES:
        raise FarmError(f"{path}: has more than {MAX_FILE_BYTES} bytes: not a measurement of `hltnode farm measure`")
    measurement = parse_measurement(raw, str(path))
    again = "measure again with `hltnode farm measure`"
    if measurement.chain != chain:
        raise FarmError(f"{path}: measured for chain {measurement.chain}, expected {chain}: {again}")
    if measurement.hltnode != hltnode:
        raise FarmError(f"{path}: measured by hltnode {measurement.hltnode}, this is {hltnode}: {again}")
    return measurement


def parse_measurement(raw: bytes, name: str) -> Measurement:
    """The measurement in the bytes of a file. Raises FarmError, which begins with `name`."""
    try:
        values = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise FarmError(f"{name}: not a JSON file: {error}") from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise FarmError(f"{name}: not a measurement of `hltnode farm measure`")
    if values.get("version") != VERSION:
        raise FarmError(f"{name}: measurement of version {values.get('version')!r}, expected {VERSION}")
    try:
        points = values["points"]
        if not isinstance(points, list) or not 0 < len(points) <= MAX_POINTS:
            raise ValueError(f"points: expected a list of 1 to {MAX_POINTS}")
        measurement = Measurement(
            **{
                key: _typed(values, key, kind)
                for key, kind in Measurement.__annotations__.items()
                if key not in {"points", "accepted"}
            },
            accepted=_number(values["accepted"], "accepted", 0.0, 1.0),
            points=tuple(_point(each) for each in points),
        )
    except KeyError as error:
        raise FarmError(f"{name}: lacks the key {error}") from error
    except (TypeError, ValueError) as error:
        raise FarmError(f"{name}: {error}") from error
    sizes = [(point.occupancy, point.events) for point in measurement.points]
    if len(set(sizes)) < len(sizes):
        raise FarmError(f"{name}: points: two have the same occupancy and number of events")
    return measurement


def _typed(values: dict[str, Any], key: str, kind: type) -> Any:
    value = values[key]
    if type(value) is not kind:
        raise ValueError(f"{key}: expected {kind.__name__}, not {str(value)[:40]!r}")
    return value


def _number(value: Any, key: str, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{key}: expected a number from {low:g} to {high:g}, not {str(value)[:40]!r}")
    return float(value)


def _point(value: Any) -> Point:
    if not isinstance(value, dict):
        raise ValueError("points: expected objects")
    seconds = value["seconds"]
    if not isinstance(seconds, list) or len(seconds) != N_QUANTILES:
        raise ValueError(f"points: seconds: expected {N_QUANTILES} quantiles")
    times = tuple(_number(each, "points: seconds", 1e-9, 1e6) for each in seconds)
    if list(times) != sorted(times):
        raise ValueError("points: seconds: expected ascending quantiles")
    if value["occupancy"] not in OCCUPANCIES:
        raise ValueError(f"points: occupancy: expected one of {', '.join(OCCUPANCIES)}")
    return Point(
        occupancy=value["occupancy"],
        events=int(_number(value["events"], "points: events", 1, 1 << 30)),
        event_bytes=_number(value["event_bytes"], "points: event_bytes", 0.0, 1e18),
        batches=int(_number(value["batches"], "points: batches", 1, 1 << 53)),
        seconds=times,
    )
