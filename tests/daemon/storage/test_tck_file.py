"""The document of a trigger configuration in the output directory."""

import random
from pathlib import Path

import pytest

from hltnode.daemon.storage.output_directory import OutputDirectory, OutputError
from hltnode.daemon.storage.tck_file import write_tck
from hltnode.processing.selection.configuration.tck import TckDocument
from tests.daemon.storage.recorded_file_system import Disk, RecordedFileSystem

DOCUMENT = TckDocument("toy", "short", ("tracks",), {"lines": [{"name": "A"}], "sequence": [["fit", {"cut": 2.5}]]})


def test_a_document_is_written_once_and_read_again(tmp_path: Path) -> None:
    directory = OutputDirectory(tmp_path / "out")
    assert write_tck(directory, DOCUMENT) == f"{DOCUMENT.name}.json"
    path = tmp_path / "out" / DOCUMENT.file_name
    assert TckDocument.load(path) == DOCUMENT
    before = path.stat().st_ino
    write_tck(directory, DOCUMENT)
    assert path.stat().st_ino == before
    assert [entry.name for entry in path.parent.iterdir()] == [DOCUMENT.file_name]


def test_a_damaged_document_is_replaced(tmp_path: Path) -> None:
    directory = OutputDirectory(tmp_path / "out")
    path = tmp_path / "out" / DOCUMENT.file_name
    path.write_text(DOCUMENT.text.replace("2.5", "3.5"))
    write_tck(directory, DOCUMENT)
    assert TckDocument.load(path) == DOCUMENT


def test_a_written_document_survives_a_power_cut(tmp_path: Path) -> None:
    system = RecordedFileSystem(tmp_path / "out")
    with system.recording():
        write_tck(OutputDirectory(tmp_path / "out"), DOCUMENT)
    disk = Disk(system.calls, len(system.calls))
    for seed in range(20):
        files = disk.after_power_cut(random.Random(seed))
        assert files["", DOCUMENT.file_name] == DOCUMENT.text.encode(), seed


def test_a_disk_that_refuses_leaves_no_half_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hltnode.daemon.storage.tck_file.write_all", refuse)
    with pytest.raises(OutputError, match=r"No space left.*json\.new"):
        write_tck(OutputDirectory(tmp_path / "out"), DOCUMENT)
    assert list((tmp_path / "out").iterdir()) == []
