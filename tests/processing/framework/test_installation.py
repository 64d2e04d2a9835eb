"""The command that adds an extra fits the way in which hltnode was installed."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hltnode.processing.framework import installation
from hltnode.processing.framework.installation import Installation, extra_hint

EDITABLE = '{"url": "file:///home/a%20b/hltnode", "dir_info": {"editable": true}}'
FROM_FOLDER = '{"url": "file:///home/a/hltnode", "dir_info": {}}'


@pytest.mark.parametrize(
    ("record", "prefix", "has_dpkg", "kind", "expected"),
    [
        (EDITABLE, "/home/a/.venv", False, Installation.CLONE, "pip install -e '.[plot]' in /home/a b/hltnode"),
        (None, "/home/a/.venv", True, Installation.WHEEL, f"{sys.executable} -m pip install 'hltnode[plot]'"),
        (FROM_FOLDER, "/usr", False, Installation.WHEEL, f"{sys.executable} -m pip install 'hltnode[plot]'"),
        (None, "/opt/hltnode", True, Installation.DEBIAN, "sudo /opt/hltnode/bin/pip install 'hltnode[plot]'; "),
        (FROM_FOLDER, "/opt/hltnode", False, Installation.IMAGE, "RUN /opt/hltnode/bin/pip install 'hltnode[plot]'"),
    ],
)
def test_the_hint_is_a_command_for_this_installation(
    record: str | None,
    prefix: str,
    has_dpkg: bool,
    kind: Installation,
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = SimpleNamespace(read_text=lambda _name: record)
    monkeypatch.setattr("importlib.metadata.distribution", lambda _name: found)
    monkeypatch.setattr(sys, "prefix", prefix)
    list_of_dpkg = tmp_path / "hltnode.list"
    if has_dpkg:
        list_of_dpkg.touch()
    monkeypatch.setattr(installation, "DEBIAN_RECORD", list_of_dpkg)
    assert installation.installation()[0] is kind
    assert expected in extra_hint("plot")
