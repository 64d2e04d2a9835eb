"""The report of the cost of tests."""

from __future__ import annotations

from tests.cost_report import cost_lines, folder_of


def test_seconds_are_summed_by_folder_and_expensive_tests_state_their_reasons() -> None:
    seconds = {
        "tests/docs/test_c.py::test_three": 3.9,
        "tests/daemon/readout/deep/test_b.py::test_two[x]": 0.05,
        "tests/daemon/readout/test_a.py::test_one": 6.0,
    }
    lines = cost_lines(seconds, {"tests/docs/test_c.py::test_three": "follows a page"})
    assert [line.split() for line in lines[:2]] == [
        ["6.0", "s", "60.8%", "tests/daemon/readout"],
        ["3.9", "s", "39.2%", "tests/docs"],
    ]
    assert lines[2].endswith("test_one: STATES NO REASON (marker expensive)")
    assert lines[3].endswith("test_three: follows a page")
    assert len(lines) == 4


def test_a_test_at_the_top_belongs_to_the_folder_of_all() -> None:
    assert folder_of("tests/test_x.py::test_y") == "tests"
