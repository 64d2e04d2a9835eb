"""Compiled files are made once, by one worker, and belong to their sources."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.processing.framework.build_cache import MAX_AGE_S, built


def maker(content: str, calls: list[str]) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        calls.append(content)
        time.sleep(0.05)
        path.write_text(content)

    return make


def test_a_file_is_made_once_for_its_parts_and_its_name(tmp_path: Path) -> None:
    calls: list[str] = []
    given = {("a.so", "x", "yz"), ("a.so", "xy", "z"), ("b.so", "x", "yz")}
    for _ in range(2):
        for name, *parts in given:
            text = "|".join((name, *parts))
            assert built(name, parts, maker(text, calls), tmp_path).read_text() == text
    assert len(calls) == len(given)


def test_workers_wait_for_the_one_that_makes_a_file(tmp_path: Path) -> None:
    calls: list[str] = []
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(built("a", ["x"], maker("x", calls), tmp_path).read_text()))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (calls, found) == (["x"], ["x"] * 4)


def test_a_compiler_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        path.write_text("half")
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        built("a", ["x"], fail, tmp_path)
    assert built("a", ["x"], maker("whole", []), tmp_path).read_text() == "whole"
    assert len([entry for entry in tmp_path.iterdir() if entry.suffix != ".lock"]) == 1


def test_only_files_that_were_not_used_for_long_are_removed(tmp_path: Path) -> None:
    unused, used = (built("a", [part], maker(part, []), tmp_path) for part in ("unused", "used"))
    for path in (unused, used):
        os.utime(path.parent, (time.time() - MAX_AGE_S - 60,) * 2)
    calls: list[str] = []
    assert built("a", ["used"], maker("used", calls), tmp_path) == used
    built("a", ["new"], maker("new", calls), tmp_path)
    assert (calls, used.is_file(), unused.is_file()) == (["new"], True, False)


def test_an_old_file_that_another_worker_is_about_to_use_stays(tmp_path: Path) -> None:
    used = built("a", ["used"], maker("used", []), tmp_path)
    os.utime(used.parent, (time.time() - MAX_AGE_S - 60,) * 2)
    with used.parent.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        built("a", ["new"], maker("new", []), tmp_path)
        assert used.is_file()
    built("a", ["newer"], maker("newer", []), tmp_path)
    assert not used.parent.is_dir()
