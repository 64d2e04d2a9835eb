"""Folders of a test process are there while it runs and gone when it has ended."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

TEST_OF_A_WORKER = """
from tests.processing.framework.session_folders import session_folder


def test_a_folder_is_there():
    (session_folder("hltnode-kept-") / "generated.h").write_text("")
    raise RuntimeError("failed")
"""


def test_a_worker_removes_its_folders_after_a_failure(tmp_path: Path) -> None:
    """A worker of pytest-xdist ends in another way than the interpreter of one process."""
    written = tmp_path / "test_of_a_worker.py"
    written.write_text(TEST_OF_A_WORKER)
    kept = tmp_path / "kept"
    kept.mkdir()
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "1", "-p", "no:cacheprovider", "-c", os.devnull, str(written)],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(kept), "PYTHONPATH": str(ROOT)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert "1 failed" in ended.stdout
    assert "RuntimeError: failed" in ended.stdout
    assert list(kept.glob("hltnode-*")) == []


def test_tests_make_no_folder_that_stays() -> None:
    """mkdtemp leaves its folder. The soak test keeps its own, with the logs of a failed run, and prints where it is."""
    callers = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "mkdtemp"
    }
    assert callers <= {"tests/soak/__main__.py"}
