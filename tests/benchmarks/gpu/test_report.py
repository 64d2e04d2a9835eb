"""The report of `make gpu`: sections, pictures, verdicts, without computation."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from benchmarks.gpu import tools
from benchmarks.gpu.command import attempt
from benchmarks.gpu.kernel_times import kernel_times
from benchmarks.gpu.report import Report, Section
from benchmarks.gpu.timeline import BatchSpan, busy_seconds, draw, overlap, timeline
from hltnode.processing.framework.backends.cuda_installation import is_available
from hltnode.processing.framework.backends.interface import BackendError, DeviceLostError

SVG = "{http://www.w3.org/2000/svg}"
ROOT = Path(__file__).resolve().parents[3]

SPANS = [
    BatchSpan(0, 0.0, 1.0, 3.0, 4.0),
    BatchSpan(1, 1.0, 2.0, 5.0, 6.0),
]
"""Copies 0 to 1, 1 to 2, 3 to 4 and 5 to 6, kernels 1 to 3 and 2 to 5."""


def test_what_was_measured_is_in_the_report_before_the_next_section_begins(tmp_path: Path) -> None:
    report = Report(tmp_path / "gpu", "A heading")
    report.add(Section(title="First", good=True, header=("a", "b"), rows=[("1", "2")], data={"a": 1}))
    text = (tmp_path / "gpu" / "report.md").read_text()
    assert "# A heading" in text
    assert "| a | b |\n| --- | --- |\n| 1 | 2 |" in text
    report.add(Section(title="Second", text="What it was."))
    assert json.loads((tmp_path / "gpu" / "report.json").read_text()) == {
        "First": {"good": True, "data": {"a": 1}},
        "Second": {"good": None, "data": None},
    }
    assert report.good


def test_a_failed_section_makes_the_report_bad_and_is_at_its_start(tmp_path: Path) -> None:
    report = Report(tmp_path, "A heading")
    report.add(Section(title="First", good=True))
    report.add(Section(title="Second", good=False))
    assert not report.good
    begin = (tmp_path / "report.md").read_text().split("\n## ")[0]
    assert begin.splitlines()[2:] == ["- First: passed", "- Second: FAILED"]


@pytest.mark.parametrize(
    ("error", "going"), [(BackendError("no room"), True), (DeviceLostError("illegal address"), False)]
)
def test_an_error_ends_its_section_and_a_lost_device_all_sections_that_need_it(
    tmp_path: Path, error: BackendError, going: bool
) -> None:
    def fails() -> list[Section]:
        raise error

    report = Report(tmp_path, "A heading")
    assert attempt(report, "Some part", fails) is going
    assert not report.good
    assert str(error) in (tmp_path / "report.md").read_text()


def test_time_that_intervals_share_counts_once() -> None:
    assert busy_seconds([(0, 2), (1, 3), (5, 6), (5.5, 5.75)]) == 4
    assert busy_seconds([]) == 0


def test_the_overlap_says_how_much_of_the_copies_is_hidden() -> None:
    found = overlap(SPANS)
    assert found == pytest.approx({"seconds": 6, "kernels": 4 / 6, "copies": 4 / 6, "copies_hidden": 2 / 4})


def test_the_picture_has_a_lane_for_each_slot_and_its_stages_in_their_order() -> None:
    picture = ElementTree.fromstring(draw(SPANS))
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    assert {"slot 0", "slot 1", "kernels", "milliseconds"} <= set(texts)
    bars = [rect.attrib for rect in picture.iter(f"{SVG}rect") if rect.get("height") == "20"]
    assert len(bars) == 6
    assert len({bar["y"] for bar in bars}) == 2
    begins = [float(bar["x"]) for bar in bars]
    ends = [begin + float(bar["width"]) for begin, bar in zip(begins, bars, strict=True)]
    assert begins[:3] == pytest.approx([60, 60 + 1000 / 6, 60 + 3000 / 6], abs=0.01)
    assert ends[3:] == pytest.approx([60 + 2000 / 6, 60 + 5000 / 6, 60 + 1000], abs=0.01)


def test_the_timeline_is_written_beside_the_report(tmp_path: Path) -> None:
    Report(tmp_path, "A heading").add(timeline("real, retina", 100, SPANS))
    assert (tmp_path / "timeline_real__retina.svg").read_text() == draw(SPANS)
    assert "(timeline_real__retina.svg)" in (tmp_path / "report.md").read_text()
    data = json.loads((tmp_path / "report.json").read_text())["Overlap of slots: real, retina"]["data"]
    assert data["events_per_second"] == pytest.approx(200 / 6)
    assert len(data["spans"]) == 2


def test_kernels_are_listed_by_their_time_with_their_sum() -> None:
    section = kernel_times("real", 100, 3, {"small": 1e-8, "large": 3e-8})
    assert [row[0] for row in section.rows] == ["large", "small", "all"]
    assert section.rows[0][1:] == ("30.0", "75.0%")
    assert section.rows[2][1:] == ("40.0", "25,000,000 events/s")


@pytest.mark.parametrize(
    ("output", "problems"),
    [
        ("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors", 0),
        ("========= ERROR SUMMARY: 12 errors", 12),
        ("========= RACECHECK SUMMARY: 3 hazards displayed (1 error, 2 warnings)", 3),
        ("Device not supported", None),
    ],
)
def test_the_summary_of_the_sanitizer_is_read(output: str, problems: int | None) -> None:
    assert tools.sanitizer_problems(output) == problems


def a_sanitizer(folder: Path, script: str) -> str:
    program = folder / "compute-sanitizer"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(
    ("script", "good", "verdict"),
    [
        ("echo '========= ERROR SUMMARY: 0 errors'", True, "no problem"),
        ("echo '========= ERROR SUMMARY: 2 errors'; exit 1", False, "2 problems"),
        ("echo 'Device not supported'; exit 1", False, "did not run (exit code 1)"),
    ],
)
def test_what_the_sanitizer_finds_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, good: bool, verdict: str
) -> None:
    program = a_sanitizer(tmp_path, script)
    monkeypatch.setattr(tools, "find_sanitizer", lambda: program)
    section = tools.sanitizer(0)
    assert section.good is good
    assert section.rows == [(tool, verdict) for tool in ("memcheck", "racecheck", "synccheck")]


def test_a_sanitizer_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = a_sanitizer(tmp_path, "echo begun; exec sleep 60")
    monkeypatch.setattr(tools, "find_sanitizer", lambda: program)
    monkeypatch.setattr(tools, "SANITIZER_SECONDS", 1)
    section = tools.sanitizer(0)
    assert section.good is False
    assert "begun" in section.text
    assert section.rows[0][1] == "took longer than 1 s"


def test_a_machine_without_the_sanitizer_is_said_to_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "find_sanitizer", lambda: None)
    section = tools.sanitizer(0)
    assert (section.good, section.data) == (None, {"installed": False})
    assert "Not installed" in section.text


@pytest.mark.parametrize(
    ("script", "good"),
    [
        ("print('3 passed in 1.0s')", True),
        ("print('3 skipped in 1.0s')", False),
        ("print('1 failed, 2 passed in 1.0s'); raise SystemExit(1)", False),
    ],
)
def test_tests_that_skip_on_a_machine_with_a_gpu_are_no_success(
    monkeypatch: pytest.MonkeyPatch, script: str, good: bool
) -> None:
    run = tools.run
    monkeypatch.setattr(
        tools, "run", lambda _, seconds, environment: run([sys.executable, "-c", script], seconds, environment)
    )
    assert tools.gpu_tests(0).good is good


@pytest.mark.timeout(200)
def test_without_a_gpu_one_line_says_so_and_the_exit_code_is_not_zero() -> None:
    if is_available():
        pytest.skip("a GPU is there")
    command = [sys.executable, "-m", "benchmarks", "gpu"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("no GPU to measure on: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("visible", "expected"), [(None, "1"), ("3,5", "5")])
def test_pytest_sees_the_gpu_that_is_measured_alone(
    monkeypatch: pytest.MonkeyPatch, visible: str | None, expected: str
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert tools.only(1)["CUDA_VISIBLE_DEVICES"] == expected
