"""The tool that makes small wrong changes: its list, a change in a tree, and the table of results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tools.mutants.change_list import ROOT, Change, ChangeListError, check, load
from tools.mutants.results import Outcome, Result, read_results, share_noticed, table, write_results

CHANGE = Change(
    name="wrong-sign", file="part/room/code.py", old="a - b", new="a + b", meaning="A sign", tests=("test_code.py",)
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "part/room").mkdir(parents=True)
    (tmp_path / "part/room/code.py").write_text("x = a - b\ny = a\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_code.py").touch()
    return tmp_path


def test_every_change_of_the_list_fits_the_code() -> None:
    changes = load()
    check(changes)
    assert len(changes) >= 100
    assert len({change.room for change in changes}) > 35


@pytest.mark.parametrize("part", ["daemon", "processing", "protocol"])
def test_every_room_has_a_change(part: str) -> None:
    rooms = {file.relative_to(ROOT).parts[:2] for file in (ROOT / part).glob("*/**/*.py") if file.name != "__init__.py"}
    assert rooms - {Path(change.file).parts[:2] for change in load()} == set()


def test_a_change_replaces_its_old_text_and_nothing_else(tree: Path) -> None:
    check([CHANGE], tree)
    CHANGE.apply(tree)
    assert (tree / "part/room/code.py").read_text() == "x = a + b\ny = a\n"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (replace(CHANGE, file="part/room/other.py"), "part/room/other.py does not exist"),
        (replace(CHANGE, old="a * b"), "found it 0 times"),
        (replace(CHANGE, old="a"), "found it 2 times"),
        (replace(CHANGE, new="a - b"), "the new text is the old one"),
        (replace(CHANGE, tests=()), "no tests are named"),
        (replace(CHANGE, tests=("test_other.py",)), "tests/test_other.py does not exist"),
    ],
)
def test_a_change_that_does_not_fit_the_tree_is_refused(tree: Path, change: Change, fault: str) -> None:
    with pytest.raises(ChangeListError, match=fault):
        check([change], tree)


def test_two_changes_of_one_name_are_refused(tree: Path) -> None:
    with pytest.raises(ChangeListError, match="two changes have this name"):
        check([CHANGE, CHANGE], tree)


def test_an_entry_with_an_unknown_key_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "changes.toml"
    path.write_text('[[change]]\nname = "n"\nfile = "f"\nold = "o"\nnew = "p"\nmeaning = "m"\ntests = []\nextra = 1\n')
    with pytest.raises(ChangeListError, match=r"^n: .*extra"):
        load(path)


def test_a_room_is_two_folders_deep_and_in_a_chain_three() -> None:
    assert replace(CHANGE, file="daemon/output/a/b.py").room == "daemon/output"
    assert replace(CHANGE, file="processing/lhcb/velo/tracking/b.cuh").room == "processing/lhcb/velo"
    assert replace(CHANGE, file="client/b.py").room == "client"


def test_results_survive_a_run_that_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "new" / "results.json"
    assert read_results(path) == {}
    result = Result("wrong-sign", Outcome.HUNG, "tests/a.py::b", 1.5)
    write_results(path, [result])
    assert read_results(path) == {"wrong-sign": result}


def test_the_table_counts_by_room_and_names_unexplained_survivors() -> None:
    changes = [
        CHANGE,
        replace(CHANGE, name="b", file="part/other/b.py", survives="It changes nothing."),
        replace(CHANGE, name="c"),
        replace(CHANGE, name="d"),
        replace(CHANGE, name="not-run"),
    ]
    outcomes = (Outcome.NOTICED, Outcome.SURVIVED, Outcome.SURVIVED, Outcome.NOT_BUILT)
    results = {c.name: Result(c.name, o, "", 1.0) for c, o in zip(changes, outcomes, strict=False)}
    lines = table(changes, results).splitlines()
    assert lines[2:5] == ["| part/other | 1 | 0 | 1 | 0 |", "| part/room | 3 | 1 | 1 | 1 |", "| all | 4 | 1 | 2 | 1 |"]
    assert lines[-2:] == [
        "- b (part/other/b.py): A sign. It changes nothing.",
        "- c (part/room/code.py): A sign. NOT EXPLAINED.",
    ]
    assert share_noticed(changes, results) == pytest.approx(1 / 3)
