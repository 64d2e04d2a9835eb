"""Trigger banks of files: process writes accepted events, inspect reads them, tck names their lines."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.daemon.commands.common import thread_count
from hltnode.daemon.commands.events.report_summary import ReportSummary
from hltnode.processing.framework.event_files import read_events
from hltnode.processing.lhcb.lines.menu import HLT1_MENU
from hltnode.processing.selection.configuration.tck import TckDocument
from hltnode.protocol import decode_odin, encode_banks, encode_record
from hltnode.protocol.lhcb.subdetectors import SubDetector
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.mep import encode_mep
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.reports import HltDecReports, LineReport, decode_dec_reports
from hltnode.protocol.raw_data.source_id import source_id
from tests.protocol.packed_events import mfps_of_events
from tests.protocol.raw_data.report_encoders import encode_dec_reports

runner = CliRunner()

TRIGGER = """
[[lines]]
type = "VeloMicroBias"
name = "Hlt1Some"
min_tracks = 1
prescale = 0.5

[[lines]]
type = "Passthrough"
name = "Hlt1MyLumi"
prescale = 0.5
"""
TAE_HEADER = 48
"""A bank type that no file may hold: readers take it for the start of time-aligned events."""
REPORTS = [BankType.HLT_DEC_REPORTS, BankType.HLT_ROUTING_BITS, BankType.HLT_SEL_REPORTS]


def run(*arguments: object, code: int = 0) -> str:
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 simulated events, a trigger configuration and its document, the accepted events and what `process` found."""
    folder = tmp_path_factory.mktemp("reports")
    run("simulate", "-n", 40, "--seed", 3, "--run", 77, "-o", folder / "all.mdf")
    (folder / "trigger.toml").write_text(TRIGGER)
    run("tck", "export", "--trigger", folder / "trigger.toml", "-o", folder / "trigger.json")
    process(folder, folder / "all.mdf", "accepted")
    return folder


def process(folder: Path, source: Path, name: str, *options: object) -> Any:
    """Write the accepted events of `source` to NAME.mdf; the result."""
    out = folder / f"{name}.json"
    arguments = ("process", source, "--backend", "cpu", "--threads", 1, "--trigger", folder / "trigger.toml")
    run(*arguments, "--accepted", folder / f"{name}.mdf", "--json", out, "--force", *options)
    return json.loads(out.read_text())


def inspected(path: Path, *options: object) -> Any:
    out = path.parent / "inspected.json"
    run("inspect", path, "--json", out, "--force", *options)
    return json.loads(out.read_text())["trigger"]


def test_process_says_which_banks_the_accepted_events_lack(folder: Path) -> None:
    events = list(read_events(folder / "all.mdf"))
    mfps = list(mfps_of_events(events).values())
    source = source_id(SubDetector.TDET, 900)
    fragments = [b"x"] * len(events)
    mfps.append(
        encode_mfp(source_id=source, event_id=0, version=1, types=[TAE_HEADER] * len(events), fragments=fragments)
    )
    (folder / "tae.mep").write_bytes(encode_mep(mfps))
    out = folder / "tae.json"
    arguments = ("process", folder / "tae.mep", "--backend", "cpu", "--threads", 1, "--json", out)
    text = run(*arguments, "--trigger", folder / "trigger.toml", "--accepted", folder / "tae.mdf")
    found = json.loads(out.read_text())
    n_accepted = sum(event["accepted"] for event in found["per_event"])
    assert n_accepted
    assert found["banks_left_out"] == n_accepted
    assert f"{n_accepted} banks of accepted events are not in" in " ".join(text.split())
    with_them = json.loads((folder / "accepted.json").read_text())
    assert (with_them["banks_left_out"], with_them["candidates_left_out"]) == (0, 0)


def test_process_says_which_trigger_banks_of_other_sources_the_accepted_events_lack(folder: Path) -> None:
    events = list(read_events(folder / "all.mdf"))
    mfps = list(mfps_of_events(events).values())
    source = source_id(SubDetector.TDET, 901)
    types = [BankType.HLT_DEC_REPORTS] * len(events)
    mfps.append(encode_mfp(source_id=source, event_id=0, version=1, types=types, fragments=[b"abcd"] * len(events)))
    (folder / "reports.mep").write_bytes(encode_mep(mfps))
    out = folder / "reports.json"
    arguments = ("process", folder / "reports.mep", "--backend", "cpu", "--threads", 1, "--json", out)
    text = run(*arguments, "--trigger", folder / "trigger.toml", "--accepted", folder / "reports.mdf")
    found = json.loads(out.read_text())
    n_accepted = sum(event["accepted"] for event in found["per_event"])
    assert n_accepted
    assert (found["reports_left_out"], found["banks_left_out"]) == (n_accepted, 0)
    assert f"{n_accepted} trigger banks of accepted events are not in" in " ".join(text.split())
    # The reports of an earlier selection are replaced by those of this one: nothing is lost.
    assert process(folder, folder / "accepted.mdf", "again")["reports_left_out"] == 0


def test_process_writes_the_accepted_events_with_all_banks_and_reports(folder: Path) -> None:
    per_event = json.loads((folder / "accepted.json").read_text())["per_event"]
    accepted = [i for i, event in enumerate(per_event) if event["accepted"]]
    assert 10 < len(accepted) < 40
    source = list(read_events(folder / "all.mdf"))
    records = list(iter_records((folder / "accepted.mdf").read_bytes()))
    for index, record in zip(accepted, records, strict=True):
        banks = record.banks()
        n = len(source[index])
        assert banks[:n] == source[index]
        lumi = "Hlt1MyLumi" in per_event[index]["lines"]
        assert [bank.type for bank in banks[n:]] == REPORTS + [BankType.HLT_LUMI_SUMMARY] * lumi
        assert record.header.run == 77
        assert record.header.routing_bits == (
            lumi << 1 | ("Hlt1Some" in per_event[index]["lines"]) << 14,
            0,
            0,
            2**32 - 1,
        )
        fired = [line.decision for line in decode_dec_reports(banks[n]).lines]
        assert fired == [name in per_event[index]["lines"] for name in ("Hlt1Some", "Hlt1MyLumi")]


def test_events_processed_again_have_the_same_decisions_and_one_set_of_reports(folder: Path) -> None:
    """Prescales are of the event, so the same events pass again."""
    again = process(folder, folder / "accepted.mdf", "again")
    assert all(event["accepted"] for event in again["per_event"])
    assert (folder / "again.mdf").read_bytes() == (folder / "accepted.mdf").read_bytes()


def test_inspect_names_lines_and_counters_with_the_document(folder: Path) -> None:
    per_event = json.loads((folder / "accepted.json").read_text())["per_event"]
    found = inspected(folder / "accepted.mdf", "--tck", folder / "trigger.json")
    (decisions,) = found["decisions"]
    expected = {name: sum(name in event["lines"] for event in per_event) for name in ("Hlt1Some", "Hlt1MyLumi")}
    assert {line["name"]: line["events"] for line in decisions["lines"]} == expected
    assert found["routing_bits"] == {"1": expected["Hlt1MyLumi"], "14": expected["Hlt1Some"]}
    assert found["selected"] == {"selection": sum(expected.values())}
    (lumi,) = found["lumi_summaries"]
    tracks = [event["velo_tracks"] for event in per_event if "Hlt1MyLumi" in event["lines"]]
    assert lumi["events"] == len(tracks)
    assert lumi["means"]["VeloTracks"] == pytest.approx(sum(tracks) / len(tracks))


def test_inspect_without_the_document_numbers_the_lines(folder: Path, tmp_path: Path) -> None:
    alone = tmp_path / "accepted.mdf"
    alone.write_bytes((folder / "accepted.mdf").read_bytes())
    (decisions,) = inspected(alone)["decisions"]
    assert [(line["id"], line["name"]) for line in decisions["lines"]] == [(1, None), (2, None)]
    assert "?" in run("inspect", alone)


def test_the_document_beside_a_file_names_its_lines_and_replays_it(folder: Path, tmp_path: Path) -> None:
    """`process` puts it there, as a node does in its output directory."""
    tck = json.loads((folder / "trigger.json").read_text())["tck"]
    assert (folder / f"{tck}.json").read_text() == (folder / "trigger.json").read_text()
    (decisions,) = inspected(folder / "accepted.mdf")["decisions"]
    assert [line["name"] for line in decisions["lines"]] == ["Hlt1Some", "Hlt1MyLumi"]
    assert replay(folder, folder / "accepted.mdf")["identical"]
    (tmp_path / "accepted.mdf").write_bytes((folder / "accepted.mdf").read_bytes())
    (tmp_path / f"{tck}.json").write_text((folder / "trigger.json").read_text().replace("0.5", "0.25", 1))
    assert "its content has" in " ".join(run("inspect", tmp_path / "accepted.mdf").split())
    assert "its content has" in " ".join(run("replay-check", tmp_path / "accepted.mdf", code=2).split())


def test_process_says_which_lines_run(folder: Path, tmp_path: Path) -> None:
    """A trigger file without lines runs the built-in menu."""
    (tmp_path / "empty.toml").write_text("")
    arguments = ("process", folder / "all.mdf", "--backend", "cpu", "--threads", 1, "--trigger")
    n = len(HLT1_MENU.of(None))
    assert f"{n} lines, {n} of them of the built-in menu;\n  sequence forward_then_matching, TCK 0x" in run(
        *arguments, tmp_path / "empty.toml"
    )
    assert "2 lines, 0 of them of the built-in menu" in run(*arguments, folder / "trigger.toml")


def test_inspect_names_the_lines_of_built_in_configurations(folder: Path) -> None:
    run(
        *("process", folder / "all.mdf", "--sequence", "velo", "--backend", "cpu", "--threads", 1),
        *("--accepted", folder / "default.mdf"),
    )
    names = {line["name"] for line in inspected(folder / "default.mdf")["decisions"][0]["lines"]}
    assert names
    assert all(name.startswith("Hlt1") for name in names)


def test_inspect_reads_data_of_2025(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "real.mdf").write_bytes((shared / "data/lhcb-run3-records/test.mdf").read_bytes())
    found = inspected(tmp_path / "real.mdf")
    (decisions,) = found["decisions"]
    assert (decisions["tck"], decisions["task"], decisions["events"]) == ("0x10001120", 1, 2)
    assert [(line["id"], line["events"]) for line in decisions["lines"]] == [(18, 1), (21, 2)]
    assert found["routing_bits"] == {"1": 1}
    assert found["selected"] == {"selection": 3}
    assert found["lumi_summaries"] == [{"key": "0x76BF3005", "events": 1, "means": {}}]


def test_a_damaged_report_is_reported_and_an_unknown_version_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "events.mdf"
    for version, code in ((12, 1), (10, 0)):
        bank = RawBank(BankType.HLT_SEL_REPORTS, version, 0, memoryview(bytes(44)))
        path.write_bytes(encode_record(encode_banks([bank]), run=1))
        output = run("inspect", path, code=code)
        assert ("HLT_SEL_REPORTS: 0 words announced" in " ".join(output.split())) == (code == 1)


def replay(folder: Path, path: Path, *options: object, code: int = 0) -> Any:
    out = folder / "replay.json"
    run("replay-check", path, "--json", out, "--force", *options, code=code)
    return json.loads(out.read_text())


def test_recorded_decisions_are_reproduced_with_any_number_of_threads(folder: Path) -> None:
    result = replay(folder, folder / "accepted.mdf", "--trigger", folder / "trigger.json")
    n_events = len(list(read_events(folder / "accepted.mdf")))
    assert (result["identical"], result["events"], result["not_computed"]) == (True, n_events, 0)
    assert result == replay(folder, folder / "accepted.mdf", "--trigger", folder / "trigger.toml")
    places = {(check["threads"], check["lines"]) for check in result["checks"]}
    assert places == {*((n, "compiled") for n in (1, 2, 3, thread_count(0))), (1, "by NumPy")}
    for check in result["checks"]:
        assert (check["backend"], check["differences"], check["decisions"]) == ("cpu", 0, 2 * n_events)


def changed_report(folder: Path, name: str, change: Any) -> Path:
    """The accepted events, the decision report of the third one changed."""
    path = folder / f"{name}.mdf"
    events = list(read_events(folder / "accepted.mdf"))
    banks = events[2]
    at = next(i for i, bank in enumerate(banks) if bank.type == BankType.HLT_DEC_REPORTS)
    banks[at] = encode_dec_reports(change(decode_dec_reports(banks[at])))
    path.write_bytes(b"".join(encode_record(encode_banks(of_event), run=77) for of_event in events))
    return path


def test_a_decision_that_differs_is_named(folder: Path) -> None:
    def other_decision(report: HltDecReports) -> HltDecReports:
        return replace(report, lines=(report.lines[0], replace(report.lines[1], decision=not report.lines[1].decision)))

    path = changed_report(folder, "wrong", other_decision)
    result = replay(folder, path, "--trigger", folder / "trigger.json", code=1)
    event = decode_odin(next(b for b in list(read_events(path))[2] if b.type == BankType.ODIN)).event_id
    for check in result["checks"]:
        assert check["differences"] == 1
        ((difference),) = check["first"]
        assert (difference["event"], difference["line"]) == (event, "Hlt1MyLumi")


def test_an_event_that_was_not_computed_is_not_compared(folder: Path) -> None:
    def not_run(report: HltDecReports) -> HltDecReports:
        return replace(report, lines=tuple(replace(line, stage=0, decision=False) for line in report.lines))

    result = replay(folder, changed_report(folder, "not_run", not_run), "--trigger", folder / "trigger.json")
    assert (result["identical"], result["not_computed"]) == (True, 1)


def test_files_that_cannot_be_replayed_are_refused(folder: Path) -> None:
    def refusal(path: Path, *options: object) -> str:
        return " ".join(run("replay-check", path, *options, code=2).split())

    document = ("--trigger", folder / "trigger.json")
    (folder / "changed.toml").write_text(TRIGGER.replace("0.5", "0.25"))
    assert "its events have TCK" in refusal(folder / "accepted.mdf", "--trigger", folder / "changed.toml")
    assert "no decision report" in refusal(folder / "all.mdf")
    other = changed_report(folder, "other_tck", lambda report: replace(report, tck=0x12345678))
    assert "no configuration of TCK 0x12345678" in refusal(other, *document)
    fewer = changed_report(folder, "fewer", lambda report: replace(report, lines=report.lines[:1]))
    assert "decisions of 1 lines" in refusal(fewer, *document)
    built_in = int(run("tck", "export", "-o", folder / "built_in.json").split()[1], 16)
    mixed = changed_report(folder, "mixed", lambda report: replace(report, tck=built_in))
    assert f"TCK 0x{built_in:08X} after events of" in refusal(mixed, *document)


def test_a_configuration_is_exported_shown_listed_and_run_by_its_document(folder: Path) -> None:
    tck = json.loads((folder / "trigger.json").read_text())["tck"]
    shown = run("tck", "show", folder / "trigger.json")
    assert shown.startswith(f"TCK {tck}\n")
    assert "lines.Hlt1Some.prescale = 0.5" in shown
    listed = run("tck", "list", folder)
    assert tck in listed
    assert "no TCK document" in listed
    arguments = ("process", folder / "all.mdf", "--backend", "cpu", "--threads", 1, "--accepted", folder / "tck.mdf")
    run(*arguments, "--trigger", folder / "trigger.json")
    assert (folder / "tck.mdf").read_bytes() == (folder / "accepted.mdf").read_bytes()


def test_a_document_with_a_former_name_of_the_chain_is_listed_shown_compared_and_run(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    document = json.loads((folder / "trigger.json").read_text())
    assert document["chain"] == "lhcb"
    older = tmp_path / "older.json"
    older.write_text(json.dumps({**document, "chain": "hlt1"}))
    row = next(line for line in run("tck", "list", tmp_path).splitlines() if "older" in line)
    assert "lhcb (written as hlt1)" in row
    shown = run("tck", "show", older)
    assert shown.startswith(f"TCK {document['tck']}\n")
    assert "chain = lhcb\n" in shown
    assert run("tck", "diff", older, folder / "trigger.json") == ""
    arguments = ("process", folder / "all.mdf", "--backend", "cpu", "--threads", 1, "--accepted", tmp_path / "tck.mdf")
    run(*arguments, "--trigger", older)
    assert (tmp_path / "tck.mdf").read_bytes() == (folder / "accepted.mdf").read_bytes()


def test_two_configurations_are_compared_by_value(folder: Path) -> None:
    (folder / "other.toml").write_text(TRIGGER.replace("0.5", "0.25", 1))
    run("tck", "export", "--trigger", folder / "other.toml", "-o", folder / "other.json")
    assert run("tck", "diff", folder / "trigger.json", folder / "trigger.json") == ""
    different = run("tck", "diff", folder / "trigger.json", folder / "other.json", code=1)
    assert different == "lines.Hlt1Some.prescale: 0.5 -> 0.25\n"


def test_a_built_in_configuration_is_found_by_its_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    tck = run("tck", "export").split()[1]
    assert run("tck", "diff", tck, f"{tck}.json") == ""
    assert "no such folder" in " ".join(run("tck", "list", folder / "none", code=2).split())
    assert "no built-in configuration" in " ".join(run("tck", "show", "0x12345678", code=2).split())
    assert "expected a key" in " ".join(run("tck", "show", "what", code=2).split())


def test_the_number_of_lines_is_that_of_the_longest_report() -> None:
    summary = ReportSummary([], lambda _tck: None)
    for n_lines in (3, 5, 2):
        lines = tuple(LineReport(decision=True, decision_id=line + 1) for line in range(n_lines))
        summary.add([encode_dec_reports(HltDecReports(key=1, tck=2, task_id=3, lines=lines))])
    [decisions] = summary.result()["decisions"]
    assert (decisions["events"], decisions["n_lines"]) == (3, 5)


def test_documents_are_made_only_until_that_of_the_events_is_found() -> None:
    made: list[TckDocument] = []

    def documents() -> Iterator[TckDocument]:
        for number in range(4):
            made.append(
                TckDocument("lhcb", "velo", ("tracks", "pvs", "muons")[:number], {"lines": {}, "number": number})
            )
            yield made[-1]

    def read(summary: ReportSummary, tck: int) -> None:
        lines = (LineReport(decision=True, decision_id=1),)
        summary.add([encode_dec_reports(HltDecReports(key=1, tck=tck, task_id=3, lines=lines))])

    first, second = list(documents())[:2]
    made.clear()
    beside = ReportSummary([], lambda _tck: second, documents())
    read(beside, second.tck)
    assert made == []
    summary = ReportSummary([], lambda _tck: None, documents())
    read(summary, second.tck)
    assert made == [first, second]
    read(summary, second.tck)
    assert len(made) == 2
    read(summary, 0xFFFFFFFF)
    assert len(made) == 4
