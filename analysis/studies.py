"""Rates of lines."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from hltnode.analysis.paths import Paths, paths_of
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.backends.host_processors import usable_processors
from hltnode.processing.framework.event_files import read_all_tables
from hltnode.processing.framework.readout import AUTO
from hltnode.processing.selection.studies.decided_events import DecidingPass
from hltnode.processing.selection.studies.rates import RateCounts
from hltnode.processing.selection.studies.row_choice import Order, RowChoice, chosen_lines, rates_of_line
from hltnode.processing.selection.studies.tables import rates_text
from hltnode.processing.selection.trigger_chain import installed_chain


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates of the lines of a configuration on a sample; `print(rates)` shows a table.

    events: number of crossings. total: rate of all lines together. lines: by name. Each entry has "events" (accepted),
    "rate_hz", "error_hz", "low_hz", "high_hz" (68.3 % interval), "events_for_10_percent" (events of such a sample
    for a relative error of 10 %) and "bytes_per_second"; lines also "exclusive_events" and "exclusive_hz". overlap:
    {"lines", "events", "weights"}, the events that two lines both select. warning: why the events are not minimum bias
    by the truth of the simulation, empty if they may be. Weights of simulated events count.
    """

    sequence: str
    tck: str
    events: int
    total: Mapping[str, Any]
    lines: Mapping[str, Mapping[str, Any]]
    overlap: Mapping[str, Any]
    warning: str
    _result: Mapping[str, Any]

    def __str__(self) -> str:
        by_rate = RowChoice(order=Order.RATE)
        return rates_text(chosen_lines(by_rate, [("lines", dict(self._result))], rates_of_line))

    @property
    def _remark(self) -> str:
        return f"; {self.warning}" if self.warning else ""

    def __repr__(self) -> str:
        rate = f"{self.total['rate_hz'] / 1e3:.1f} kHz"
        return f"<rates of {len(self.lines)} lines on {self.events} events: {rate}{self._remark}>"


def rates(
    files: Paths,
    *,
    sequence: str | None = None,
    trigger: PathLike[str] | str | None = None,
    crossing_rate: float | None = None,
    geometry: PathLike[str] | str | None = None,
    chain: str = "lhcb",
    backend: str = "auto",
    threads: int = 0,
    device: int = 0,
    encoding: str = AUTO,
) -> Rates:
    """Rates of the lines of a trigger configuration on minimum bias, each event for one bunch crossing.

    For other chains than lhcb, an event stands for one of theirs, such as a sub-slice of time.

    crossing_rate: rate of bunch crossings, or of other events, in Hz; that of the chain if None (lhcb: 30e6). Other
    arguments as for `process`.

    Raises ValueError for unknown names and invalid files of the setup, EventFileError for event files, BackendError.
    """
    if crossing_rate is not None and not crossing_rate > 0:
        raise ValueError(f"crossing_rate {crossing_rate}: expected a rate above 0")
    paths = paths_of(files)
    known = installed_chain(chain)
    rate = known.event_rate if crossing_rate is None else replace(known.event_rate, hz=crossing_rate)
    configuration = known.load_trigger(None if trigger is None else Path(trigger), sequence)
    constants = known.with_sequence(configuration.sequence).load_geometry(None if geometry is None else Path(geometry))
    deciding = DecidingPass(
        known,
        configuration,
        create_backend(backend, known.kernels, threads=threads or usable_processors(), device=device),
        constants,
        encoding=encoding,
    )
    counts = RateCounts(configuration.line_names, readout=known.readout)
    try:
        for decided in deciding.run(read_all_tables(paths)):
            counts.add(decided.events, decided.fired)
    finally:
        deciding.engine.close()
    about = {
        "sequence": configuration.sequence or known.default_sequence,
        "tck": f"0x{deciding.engine.tck:08X}",
    }
    result = about | counts.result(rate)
    return Rates(
        about["sequence"],
        about["tck"],
        counts.events,
        result["total"],
        result["lines"],
        result["overlap"],
        result["sample"]["warning"] or "",
        result,
    )
