"""hltnode shadow: where the names of lines come from."""

from pathlib import Path

import pytest

from hltnode.daemon.commands.node.shadow import NamesOfLines
from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.processing.selection.studies.tck_documents import built_in_documents
from hltnode.processing.selection.trigger_chain import installed_chain
from tests.daemon.commands.node.test_shadow_comparison import OURS

CHAIN = "raw"
"""Its configuration is small."""


def test_names_come_from_documents_folders_and_built_in_configurations(tmp_path: Path) -> None:
    chain = installed_chain(CHAIN)
    built_in = next(built_in_documents(chain))
    content = built_in.content
    given, in_folder = (
        type(built_in)(CHAIN, "one", (), {**content, "lines": [{**content["lines"][0], "name": name}]})
        for name in OURS[:2]
    )
    folder = tmp_path / "output"
    folder.mkdir()
    (folder / in_folder.file_name).write_text(in_folder.text)
    file = tmp_path / "given.json"
    file.write_text(given.text)
    names = NamesOfLines([file, folder], CHAIN)
    assert names(given.tck) == OURS[:1]
    assert names(in_folder.tck) == OURS[1:2]
    assert names(built_in.tck) == built_in.line_names
    assert names(0x12345678) is None


def test_a_file_that_is_no_document_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "no-document.json"
    file.write_text("{}")
    with pytest.raises(TriggerConfigError, match=r"no-document.json: not a TCK document"):
        NamesOfLines([file], CHAIN)
