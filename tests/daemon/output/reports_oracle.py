"""A slow reference for the trigger banks of one event, to compare with the compiled encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hltnode.protocol.errors import ReportError
from hltnode.protocol.raw_data.lumi_summary import LumiSchema
from hltnode.protocol.raw_data.odin import Odin
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.reports import HltDecReports, LineReport
from hltnode.protocol.raw_data.selection_reports import ClassId, HltSelReports, ReportedObject
from tests.protocol.raw_data.report_encoders import (
    encode_dec_reports,
    encode_lumi_summary,
    encode_routing_bits,
    encode_sel_reports,
)

CROSSINGS_PER_ORBIT = 3564
CROSSINGS_PER_MS = 40078


@dataclass(frozen=True)
class SelectedEvent:
    """The selection of an event: objects, and (line, object) by ascending line."""

    objects: tuple[ReportedObject, ...] = ()
    candidates: tuple[tuple[int, int], ...] = ()


@dataclass
class Report:
    """HltSelReports of an event and how many candidates do not fit in it."""

    bank: RawBank = field(init=False)
    left_out: int = 0


def _needed(objects: Sequence[ReportedObject], root: int, known: Sequence[int]) -> list[int]:
    """An object and its constituents, depth first, without known ones."""
    met: list[int] = []
    stack = [root]
    while stack:
        this = stack.pop()
        if this in known or this in met:
            continue
        met.append(this)
        stack += reversed(objects[this].parts)
    return met


def _bank(event: SelectedEvent, pointers: Mapping[int, Sequence[int]], included: Sequence[int]) -> RawBank:
    ordered = sorted(included, key=lambda i: -event.objects[i].class_id)
    place = {index: len(pointers) + i for i, index in enumerate(ordered)}
    selections = [
        ReportedObject(ClassId.SELECTION, (float(line + 1),), parts=tuple(place[i] for i in parts))
        for line, parts in pointers.items()
    ]
    objects = [
        ReportedObject(o.class_id, o.info, o.ids, tuple(place[part] for part in o.parts))
        for o in (event.objects[i] for i in ordered)
    ]
    return encode_sel_reports(HltSelReports((*selections, *objects)))


def sel_report(event: SelectedEvent, fired: Sequence[int]) -> Report:
    """Candidates of the accepting lines in order, as long as they fit."""
    report = Report()
    pointers: dict[int, list[int]] = {}
    for line in fired:
        try:
            report.bank = _bank(event, {**pointers, line: []}, [])
        except ReportError:
            report.left_out += 1
        else:
            pointers[line] = []
    included: list[int] = []
    for line, index in event.candidates:
        if line not in fired:
            continue
        if line not in pointers:
            report.left_out += 1
            continue
        more = [*included, *_needed(event.objects, index, included)]
        longer = {**pointers, line: [*pointers[line], index]}
        try:
            _bank(event, longer, more)
        except ReportError:
            report.left_out += 1
        else:
            included, pointers = more, longer
    report.bank = _bank(event, pointers, included)
    return report


def dec_report(event: SelectedEvent, fired: Sequence[int], n_lines: int, *, tck: int, ran: bool) -> RawBank:
    """A line over whole events has one candidate."""
    n_candidates = {line: sum(1 for of_line, _ in event.candidates if of_line == line) for line in fired}
    lines = tuple(
        LineReport(
            decision=line in n_candidates,
            decision_id=line + 1,
            candidates=min(max(n_candidates[line], 1), 15) if line in n_candidates else 0,
            stage=1 if ran else 0,
        )
        for line in range(n_lines)
    )
    return encode_dec_reports(HltDecReports(tck, tck, 1, lines))


def lumi_numbers(odin: Odin, counts: Mapping[str, int], *, passed_cut: bool) -> dict[str, int]:
    """The counters of a luminosity summary."""
    crossings = odin.orbit * CROSSINGS_PER_ORBIT + odin.bunch_id
    t0 = odin.gps_time_us - crossings * 1000 // CROSSINGS_PER_MS & 2**64 - 1
    return {
        **{"T0Low": t0 & 0xFFFFFFFF, "T0High": t0 >> 32, "BCIDLow": crossings & 0xFFFFFFFF},
        **{"BCIDHigh": crossings >> 32, "BXType": odin.crossing_type, "GEC": int(passed_cut), **counts},
    }


def trigger_banks(
    event: SelectedEvent,
    fired: Sequence[int],
    routing_of_line: Sequence[tuple[int, int, int]],
    *,
    tck: int,
    ran: bool,
    unreadable: bool,
    passed_cut: bool,
    odin: Odin | None,
    counts: Mapping[str, int],
    schema: LumiSchema,
) -> tuple[list[RawBank], tuple[int, int, int], int]:
    """All banks of the trigger, the routing words, and the number of skipped candidates."""
    words = [0, 0, 0]
    for line in fired:
        for i, word in enumerate(routing_of_line[line]):
            words[i] |= word
    words[0] |= unreadable << 25
    routing = (words[0], words[1], words[2])
    report = sel_report(event, fired)
    banks = [
        dec_report(event, fired, len(routing_of_line), tck=tck, ran=ran),
        encode_routing_bits(routing),
        report.bank,
    ]
    if routing[0] >> 1 & 1 and odin is not None:
        banks.append(encode_lumi_summary(lumi_numbers(odin, counts, passed_cut=passed_cut), schema))
    return banks, routing, report.left_out
