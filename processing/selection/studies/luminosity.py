"""Luminosity of runs from the luminosity summaries of their events (docs/physics/luminosity.md).

The mean number of visible interactions in a crossing, mu, comes from the fraction of empty events (log-zero method) or
from the mean of a counter (average). Crossings with one beam or none give the background, which is subtracted.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.event_table import EventTable
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.lumi_summary import LUMI_SUMMARY_VERSION, LumiSchema
from hltnode.protocol.raw_data.odin import BANK_SIZE, CrossingType

REVOLUTION_HZ = 40_078_000 / 3564
"""Revolution frequency of the LHC: bunches of an orbit, and crossings per millisecond as luminosity summaries count."""
_MB_IN_CM2 = 1e-27
_MB_IN_NB = 1e6

PLUME_CHANNELS = "PlumeChannels"
"""Each channel of PLUME on its own: the mean over the channels of both counters of over-threshold bits."""
_PLUME_MASKS = ("PlumeLumiOverthrLow", "PlumeLumiOverthrHigh")
_PLUME = "Plume"
_PLUME_READ, _CUT, _CROSSING = "PlumeRead", "GEC", "BXType"
USUAL_COUNTERS = ("VeloTracks", "VeloFiducialTracks", "VeloVertices", "FiducialVeloVertices", PLUME_CHANNELS)
CROSSINGS = {
    CrossingType.BEAM_BEAM: "beam_beam",
    CrossingType.BEAM_1: "beam_1",
    CrossingType.BEAM_2: "beam_2",
    CrossingType.NO_BEAM: "no_beam",
}

FindSchema = Callable[[int], LumiSchema | None]
"""Gives the schema of a key."""


class Method(StrEnum):
    """How mu follows from a counter."""

    LOG_ZERO = "log-zero"
    AVERAGE = "average"


@dataclass(frozen=True, slots=True)
class Measured:
    """A number and its statistical error."""

    value: float
    error: float


@dataclass(slots=True, eq=False)
class ChannelSums:
    """Sums over the events of one crossing type for a counter with c channels; most counters have one.

    events: used events. empty: f64[c], events with an empty channel. both_empty: f64[c, c]. total, squares: sums of the
    counted value and of its square. left_out: events whose value is not known. saturated: events with the largest
    number.
    """

    n_channels: int
    events: int = 0
    left_out: int = 0
    saturated: int = 0
    total: float = 0.0
    squares: float = 0.0
    both_empty: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self.both_empty = np.zeros((self.n_channels, self.n_channels))

    def log_zero(self) -> Measured | None:
        """mu = -ln of the fraction of empty events, the mean over channels; None without an event or an empty one.

        The error takes into account that channels are empty together.
        """
        empty = np.diag(self.both_empty)
        if self.events == 0 or not (empty > 0).all():
            return None
        p = empty / self.events
        correlated = (self.both_empty / self.events / np.outer(p, p)).mean() - 1.0
        return Measured(float(-np.log(p).mean()) + 0.0, float(np.sqrt(max(correlated, 0.0) / self.events)))

    def average(self) -> Measured | None:
        """The mean; None below two events."""
        if self.events < 2:
            return None
        mean = self.total / self.events
        variance = max(self.squares / self.events - mean * mean, 0.0) * self.events / (self.events - 1)
        return Measured(mean, float(np.sqrt(variance / self.events)))

    def of(self, method: Method) -> Measured | None:
        """mu by a method."""
        return self.log_zero() if method is Method.LOG_ZERO else self.average()


@dataclass(slots=True, eq=False)
class RunSums:
    """Sums of a run, by crossing type and counter."""

    first_time_us: int = (1 << 64) - 1
    last_time_us: int = 0
    crossings: Counter[int] = field(default_factory=Counter)
    bunches: set[int] = field(default_factory=set)
    """Bunches of crossings with both beams."""
    sums: dict[tuple[int, str], ChannelSums] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    """Counters of its schemas."""


class LuminositySums:
    """Collects the luminosity summaries of events.

    counters: names of counters, PLUME_CHANNELS among them. find_schema: gives the schema of a key.
    """

    def __init__(self, counters: Sequence[str], find_schema: FindSchema) -> None:
        self.runs: defaultdict[int, RunSums] = defaultdict(RunSums)
        self.events = 0
        self.without_summary = 0
        """Events without a valid summary."""
        self.without_odin = 0
        """Events with a summary, but without a valid ODIN bank."""
        self.unknown_schemas: Counter[int] = Counter()
        """Events by the key of a schema that is not known, or that has another size than their bank."""
        self._counters = tuple(counters)
        self._find = find_schema
        self._schemas: dict[int, LumiSchema | None] = {}

    def add(self, table: EventTable) -> None:
        """Add events; no loop over events."""
        self.events += len(table)
        event, rows = table.banks()
        odin = _first_of_event(event, rows, BankType.ODIN)
        odin = odin[(rows["size"][odin] == BANK_SIZE) & np.isin(rows["version"][odin], (6, 7))]
        lumi = _first_of_event(event, rows, BankType.HLT_LUMI_SUMMARY)
        size = rows["size"][lumi]
        lumi = lumi[(rows["version"][lumi] == LUMI_SUMMARY_VERSION) & (size >= 4) & (size % 4 == 0)]
        self.without_summary += len(table) - len(lumi)
        has_odin = np.isin(event[lumi], event[odin])
        self.without_odin += int(np.count_nonzero(~has_odin))
        lumi = lumi[has_odin]
        odin = odin[np.searchsorted(event[odin], event[lumi])]
        if not len(lumi):
            return
        fields = _odin_fields(rows["version"][odin], _payloads(table, rows[odin], BANK_SIZE))
        keys = _payloads(table, rows[lumi], 4).view("<u4")[:, 0]
        for key in np.unique(keys).tolist():
            schema = self._schema(key)
            all_of_key = keys == key
            of_key = all_of_key & (rows["size"][lumi] == (0 if schema is None else schema.size))
            if n_unknown := int(all_of_key.sum() - of_key.sum()):
                self.unknown_schemas[key] += n_unknown
            if schema is None or not of_key.any():
                continue
            words = _payloads(table, rows[lumi[of_key]], schema.size).view("<u4")
            self._add_words(schema, words, {name: values[of_key] for name, values in fields.items()})

    def _schema(self, key: int) -> LumiSchema | None:
        if key not in self._schemas:
            self._schemas[key] = self._find(key)
        return self._schemas[key]

    def _add_words(self, schema: LumiSchema, words: NDArray[np.uint32], odin: Mapping[str, NDArray[Any]]) -> None:
        values = schema.unpack(words)
        crossing = values[_CROSSING].astype(np.int64) if _CROSSING in values else odin["crossing"]
        for run in np.unique(odin["run"]).tolist():
            sums = self.runs[run]
            sums.known.update(values)
            of_run = odin["run"] == run
            times = odin["time"][of_run]
            sums.first_time_us = min(sums.first_time_us, int(times.min()))
            sums.last_time_us = max(sums.last_time_us, int(times.max()))
            for kind in np.unique(crossing[of_run]).tolist():
                chosen = of_run & (crossing == kind)
                sums.crossings[kind] += int(chosen.sum())
                if kind == CrossingType.BEAM_BEAM:
                    sums.bunches.update(np.unique(odin["bunch"][chosen]).tolist())
                for name in self._counters:
                    counted = _counted(schema, values, words, name)
                    if counted is not None:
                        _add(sums.sums, (kind, name), counted, chosen)


@dataclass(frozen=True, slots=True, eq=False)
class _Counted:
    """A counter in n events: is it empty, bool[n, channels]; its value, f64[n]; bool[n]: is it known, may it be empty
    (an event that was not reconstructed is not), has it the largest number."""

    empty: NDArray[np.bool_]
    value: NDArray[np.float64]
    known: NDArray[np.bool_]
    cut: NDArray[np.bool_]
    largest: NDArray[np.bool_]


def _counted(
    schema: LumiSchema, values: Mapping[str, NDArray[np.float64]], words: NDArray[np.uint32], name: str
) -> _Counted | None:
    n = len(words)
    known, cut = np.ones(n, np.bool_), np.zeros(n, np.bool_)
    if name.startswith(_PLUME):
        known = values[_PLUME_READ] != 0 if _PLUME_READ in values else known
    elif _CUT in values:
        cut = values[_CUT] == 0
    if name == PLUME_CHANNELS:
        if not all(mask in values for mask in _PLUME_MASKS):
            return None
        sizes = {each.name: each.size for each in schema.counters}
        bits = [values[mask].astype(np.int64)[:, None] >> np.arange(sizes[mask]) & 1 for mask in _PLUME_MASKS]
        fired = np.concatenate(bits, axis=1).astype(np.bool_)
        return _Counted(~fired, fired.mean(axis=1), known, cut, np.zeros(n, np.bool_))
    if name not in values:
        return None
    value = values[name]
    return _Counted((value <= 0)[:, None], value, known, cut, schema.is_largest(name, words))


def _add(
    sums: dict[tuple[int, str], ChannelSums], at: tuple[int, str], counted: _Counted, chosen: NDArray[np.bool_]
) -> None:
    n_channels = counted.empty.shape[1]
    if at not in sums:
        sums[at] = ChannelSums(n_channels)
    if sums[at].n_channels != n_channels:
        raise ValueError(f"counter {at[1]}: {n_channels} channels after {sums[at].n_channels} in the same run")
    of = sums[at]
    used = chosen & counted.known
    empty = (counted.empty & ~counted.cut[:, None])[used].astype(np.float64)
    of.events += int(used.sum())
    of.left_out += int((chosen & ~counted.known).sum())
    of.saturated += int((used & (counted.largest | counted.cut)).sum())
    of.both_empty += empty.T @ empty
    of.total += float(counted.value[used].sum())
    of.squares += float((counted.value[used] ** 2).sum())


def _first_of_event(event: NDArray[np.intp], rows: NDArray[np.void], bank_type: int) -> NDArray[np.intp]:
    """The rows of a type, one for each event that has it, by event."""
    of_type = np.flatnonzero(rows["type"] == bank_type)
    return of_type[np.unique(event[of_type], return_index=True)[1]]


def _payloads(table: EventTable, rows: NDArray[np.void], size: int) -> NDArray[np.uint8]:
    """The first bytes of the payloads of banks, u8[banks, size]."""
    buffer, offset = rows["place"] >> np.uint64(40), (rows["place"] & np.uint64((1 << 40) - 1)).astype(np.int64)
    found = np.empty((len(rows), size), np.uint8)
    for number in np.unique(buffer).tolist():
        of_buffer = buffer == number
        content = np.frombuffer(table.buffers[number], np.uint8)
        found[of_buffer] = content[offset[of_buffer, None] + np.arange(size)]
    return found


def _odin_fields(version: NDArray[np.uint8], payloads: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
    """run, time (GPS, us), bunch and crossing type of ODIN banks (docs/formats/odin.md)."""
    words = payloads.view("<u4").astype(np.uint64)
    is_7 = version == 7
    time_7 = words[:, 2] | words[:, 3] << np.uint64(32)
    time_6 = words[:, 6] | words[:, 5] << np.uint64(32)
    misc = np.where(is_7, words[:, 6], words[:, 8])
    return {
        "run": words[:, 0].astype(np.int64),
        "time": np.where(is_7, time_7, time_6),
        "bunch": (misc & np.uint64(0xFFF)).astype(np.int64),
        "crossing": np.where(is_7, misc >> np.uint64(12) & np.uint64(3), misc >> np.uint64(22) & np.uint64(3)).astype(
            np.int64
        ),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What turns mu into luminosity.

    cross_sections: visible cross section in mb, by counter. colliding_bunches: of an orbit; None: those that the events
    have. duration_s: of each run; None: from its first to its last event.

    Raises ValueError for a number that is not positive.
    """

    cross_sections: Mapping[str, float] = field(default_factory=dict)
    colliding_bunches: int | None = None
    duration_s: float | None = None

    def __post_init__(self) -> None:
        for name, value in self.cross_sections.items():
            if not (np.isfinite(value) and value > 0):
                raise ValueError(f"visible cross section of {name}: {value} mb, expected a positive number")
        if self.colliding_bunches is not None and self.colliding_bunches < 1:
            raise ValueError(f"colliding bunches: {self.colliding_bunches}, expected at least 1")
        if self.duration_s is not None and not (np.isfinite(self.duration_s) and self.duration_s > 0):
            raise ValueError(f"duration: {self.duration_s} s, expected a positive number")


def run_results(
    sums: LuminositySums, counters: Sequence[str], method: Method, calibration: Calibration
) -> Iterator[dict[str, Any]]:
    """The JSON object of each run, ascending.

    mu of crossings with both beams, less that of each beam alone, plus that of empty crossings; the errors are
    statistical. Values that the events cannot give are None, with a note.
    """
    for run in sorted(sums.runs):
        of_run = sums.runs[run]
        n_bunches = calibration.colliding_bunches or len(of_run.bunches)
        measured_s = (of_run.last_time_us - of_run.first_time_us) / 1e6
        duration = measured_s if calibration.duration_s is None else calibration.duration_s
        yield {
            "run": run,
            "events": sum(of_run.crossings.values()),
            "crossings": {name: of_run.crossings[kind] for kind, name in CROSSINGS.items()},
            "first_time_us": of_run.first_time_us,
            "duration_s": duration,
            "colliding_bunches": n_bunches,
            "counters": [
                _of_counter(of_run, name, method, calibration.cross_sections.get(name), n_bunches, duration)
                for name in counters
                if any((kind, name) in of_run.sums for kind in CROSSINGS)
            ],
        }


def _of_counter(
    of_run: RunSums, name: str, method: Method, cross_section_mb: float | None, n_bunches: int, duration_s: float
) -> dict[str, Any]:
    notes = []
    parts: dict[str, Measured | None] = {}
    for kind, crossing in CROSSINGS.items():
        of_kind = of_run.sums.get((kind, name))
        parts[crossing] = None if of_kind is None else of_kind.of(method)
        if of_kind is not None and of_kind.events and parts[crossing] is None:
            notes.append(f"{crossing}: no empty event" if method is Method.LOG_ZERO else f"{crossing}: one event only")
        elif parts[crossing] is None:
            notes.append(f"{crossing}: no event")
        if of_kind is not None and of_kind.saturated and method is Method.AVERAGE:
            notes.append(f"{crossing}: {of_kind.saturated} events with a largest number or without reconstruction")
        if of_kind is not None and of_kind.left_out:
            notes.append(f"{crossing}: {of_kind.left_out} events without a valid bank of PLUME are left out")
    mu = _without_background(parts)
    result: dict[str, Any] = {
        "counter": name,
        "method": str(method),
        "by_crossing": {crossing: _json(part) for crossing, part in parts.items()},
        "mu": _json(mu),
        "cross_section_mb": cross_section_mb,
        "instantaneous_per_cm2_s": None,
        "integrated_per_nb": None,
        "notes": notes,
    }
    if mu is not None and cross_section_mb is not None:
        rate = n_bunches * REVOLUTION_HZ
        result["instantaneous_per_cm2_s"] = _json(mu, rate / (cross_section_mb * _MB_IN_CM2))
        result["integrated_per_nb"] = _json(mu, rate * duration_s / (cross_section_mb * _MB_IN_NB))
    return result


def _without_background(parts: Mapping[str, Measured | None]) -> Measured | None:
    """None if mu with both beams is not known; background that is not known is not subtracted."""
    if parts["beam_beam"] is None:
        return None
    signs = {"beam_beam": 1.0, "beam_1": -1.0, "beam_2": -1.0, "no_beam": 1.0}
    found = {crossing: part for crossing, part in parts.items() if part is not None}
    if not {"beam_1", "beam_2"} & found.keys():
        # Both beams contain what empty crossings have; without a crossing of one beam it is subtracted once.
        signs["no_beam"] = -1.0
    elif len({"beam_1", "beam_2"} & found.keys()) == 1:
        signs["no_beam"] = 0.0
    value = sum(signs[crossing] * part.value for crossing, part in found.items())
    return Measured(value, float(np.sqrt(sum((signs[c] * part.error) ** 2 for c, part in found.items()))))


def _json(measured: Measured | None, factor: float = 1.0) -> dict[str, float] | None:
    return None if measured is None else {"value": factor * measured.value, "error": factor * measured.error}
