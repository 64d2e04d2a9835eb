"""The tool that makes small wrong changes: its list, a change in a tree, and the table of results."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from tools.mutants.change_list import ROOT, Change, ChangeListError, check, load
from tools.mutants.results import (
    Outcome,
    Result,
    deciding_paths,
    git_objects,
    read_results,
    results_of_this_code,
    share_noticed,
    table,
    write_results,
)
from tools.mutants.working_copy import WorkingCopy

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


def result_of(change: Change, outcome: Outcome, by: str = "") -> Result:
    return Result(change.name, outcome, by, 1.5, change.digest, dict.fromkeys(deciding_paths(change, by), "1"))


def test_results_survive_a_run_that_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "new" / "results.json"
    assert read_results(path) == {}
    result = result_of(CHANGE, Outcome.NOTICED, "tests/a.py::b")
    write_results(path, [result])
    assert read_results(path) == {"wrong-sign": result}


@pytest.mark.parametrize(
    ("by", "path", "is_kept"),
    [
        ("tests/test_code.py::test", "part/room", False),
        ("tests/test_code.py::test", "tests/test_code.py", False),
        # Only the test that failed matters where one did.
        ("tests/test_code.py::test", "tests/test_other.py", True),
        ("", "tests/test_other.py", False),
        ("", "part/other", True),
    ],
)
def test_a_result_lasts_while_its_room_and_its_tests_do(by: str, path: str, *, is_kept: bool) -> None:
    change = replace(CHANGE, tests=("test_code.py", "test_other.py"))
    results = {change.name: result_of(change, Outcome.NOTICED if by else Outcome.SURVIVED, by)}

    def objects_of(paths: Iterable[str]) -> dict[str, str]:
        return {each: "2" if each == path else "1" for each in paths}

    assert results_of_this_code([change], results, objects_of) == (results if is_kept else {})


@pytest.mark.parametrize("edited", [replace(CHANGE, new="b - a"), replace(CHANGE, only="sign")])
def test_a_result_ends_when_its_entry_in_the_list_is_edited(edited: Change) -> None:
    results = {CHANGE.name: result_of(CHANGE, Outcome.SURVIVED)}
    same = lambda paths: dict.fromkeys(paths, "1")  # noqa: E731
    assert results_of_this_code([CHANGE], results, same) == results
    assert results_of_this_code([edited], results, same) == {}


def test_the_table_counts_by_room_and_names_unexplained_survivors() -> None:
    changes = [
        CHANGE,
        replace(CHANGE, name="b", file="part/other/b.py", survives="It changes nothing."),
        replace(CHANGE, name="c"),
        replace(CHANGE, name="d"),
        replace(CHANGE, name="not-run"),
    ]
    outcomes = (Outcome.NOTICED, Outcome.SURVIVED, Outcome.SURVIVED, Outcome.NOT_BUILT)
    results = {c.name: result_of(c, o) for c, o in zip(changes, outcomes, strict=False)}
    lines = table(changes, results).splitlines()
    assert lines[2:5] == [
        "| part/other | 1 | 0 | 1 | 0 | 0 |",
        "| part/room | 4 | 1 | 1 | 1 | 1 |",
        "| all | 5 | 1 | 2 | 1 | 1 |",
    ]
    assert lines[-2:] == [
        "- b (part/other/b.py): A sign. It changes nothing.",
        "- c (part/room/code.py): A sign. NOT EXPLAINED.",
    ]
    assert share_noticed(changes, results) == pytest.approx(1 / 3)


MAKEFILE = """
.venv/.developed:
\tmkdir -p .venv/bin build/cmake
\tprintf '#!/bin/sh\\nexec %s "$$@"\\n' {python} >.venv/bin/python
\tprintf '#!/bin/sh\\n' >.venv/bin/cmake
\tchmod +x .venv/bin/python .venv/bin/cmake
\ttouch build/cmake/CMakeCache.txt .venv/.developed
"""
CONFTEST = """
from hypothesis import settings
settings.register_profile("make-test")
"""
TEST_CODE = """
import pytest
from room.code import a, b, unused

@pytest.mark.parametrize("text", ["one of two"])
def test_sum(text):
    assert a + b == 3

def test_of_a_loaded_machine():
    assert b != 4 and unused < 9
"""


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WorkingCopy:
    """A working copy of a repository with one module, and an environment that is the one of this test."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    # pytest starts in a third of the time without the plugins that these tests do not need.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "_hypothesis_pytestplugin")
    root = tmp_path / "repository"
    for path, text in {
        "Makefile": MAKEFILE.format(python=shlex.quote(sys.executable)),
        ".gitignore": "build\n.venv\n",
        "room/__init__.py": "",
        "room/code.py": "a = 1\nb = 2\nunused = 3\n",
        "tests/conftest.py": CONFTEST,
        "tests/test_code.py": TEST_CODE,
        "pytest.ini": "[pytest]\npythonpath = .\naddopts = -ra\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    for command in (("init", "-q"), ("add", "."), (*author, "commit", "-q", "-m", "first")):
        subprocess.run(["git", *command], cwd=root, check=True)
    return WorkingCopy(root, tmp_path / "copy")


def test_a_change_is_made_for_its_tests_only_and_counts_if_they_pass_without_it(copy: WorkingCopy) -> None:
    source = copy.folder / "room/code.py"
    noticed = replace(CHANGE, file="room/code.py", old="a = 1", new="a = 0")
    # Byte code of the last change must not be taken for that of the next one, which has the same size.
    survivor = replace(noticed, name="survivor", old="unused = 3", new="unused = 4")
    other = replace(noticed, name="other", old="b = 2", new="b = 4", only="loaded")
    trials = {change.name: trial for change in (noticed, survivor, other) if (trial := copy.try_out(change))}
    assert [(trial.passed, trial.failed) for trial in trials.values()] == [
        (False, "tests/test_code.py::test_sum[one of two]"),
        (True, ""),
        (False, "tests/test_code.py::test_of_a_loaded_machine"),
    ]
    assert source.read_text() == "a = 1\nb = 2\nunused = 3\n"
    assert copy.failing_without_change(trials) == {}
    tests = copy.folder / "tests/test_code.py"
    tests.write_text(tests.read_text().replace("unused < 9", "unused < 3"))
    assert set(copy.failing_without_change(trials)) == {"other"}


def test_objects_of_git_are_those_of_the_commit(copy: WorkingCopy) -> None:
    of_copy, of_source = (git_objects(folder) for folder in (copy.folder, copy.folder.with_name("repository")))
    paths = ("room", "tests/test_code.py", "room/other.py")
    (copy.folder / "room/code.py").write_text("a = 5\n")
    assert of_copy(paths) == of_source(paths)
    assert [bool(found) for found in of_copy(paths).values()] == [True, True, False]
