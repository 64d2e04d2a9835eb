"""`make test` finds every file with tests that must not run beside others."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.conftest import pytest_collection_modifyitems


class Item:
    """A collected test."""

    def __init__(self, path: Path, *marks: str) -> None:
        self.path = path
        self.marks = set(marks)

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self.marks else None

    def add_marker(self, marker: pytest.MarkDecorator) -> None:
        self.marks.add(marker.name)


def modify(root: Path, *items: Item) -> None:
    pytest_collection_modifyitems(cast(Any, SimpleNamespace(rootpath=root)), cast(Any, list(items)))


def test_tests_with_sockets_processes_or_in_some_folders_are_alone(tmp_path: Path) -> None:
    marked = tmp_path / "test_marked.py"
    marked.write_text("pytestmark = pytest.mark.loopback\n")
    of_a_node = tmp_path / "tests" / "daemon" / "node" / "test_any.py"
    items = [Item(marked, "loopback"), Item(marked, "process"), Item(of_a_node), Item(tmp_path / "test_other.py")]
    modify(tmp_path, *items)
    assert ["alone" in item.marks for item in items] == [True, True, True, False]


def test_a_file_that_make_test_would_not_find_is_refused(tmp_path: Path) -> None:
    hidden = tmp_path / "test_hidden.py"
    hidden.write_text("from elsewhere import pytestmark\n")
    with pytest.raises(pytest.UsageError, match=r"test_hidden\.py: `make test` does not find its tests"):
        modify(tmp_path, Item(hidden, "alone"))
