"""TCK documents: content, refusals, and the configuration that they reproduce."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.selection.configuration.tck import TckDocument, differences
from hltnode.processing.selection.configuration.trigger_config import content_hash, content_key
from hltnode.processing.selection.errors import TriggerConfigError

TRIGGER = """
[sequence]
name = "forward"

[sequence.pv_beamline_multi_fit]
max_chi2 = 9
min_tracks = 5

[[lines]]
type = "VeloMicroBias"
name = "Hlt1VeloMicroBias"
min_tracks = 2
postscale = 0.001

[[lines]]
type = "NDisplacedVeloTracks"
name = "Hlt1Displaced"
min_ip = 0.30000001192092896
"""


@pytest.fixture
def document(tmp_path: Path) -> TckDocument:
    path = tmp_path / "trigger.toml"
    path.write_text(TRIGGER)
    return CHAIN.document(CHAIN.load_trigger(path))


def test_a_document_comes_back_as_written(document: TckDocument) -> None:
    assert TckDocument.from_text(document.text) == document


def test_a_document_has_the_key_of_its_configuration(document: TckDocument) -> None:
    trigger = CHAIN.trigger_of(document)
    assert trigger.tck(CHAIN.with_sequence("forward").sequence) == document.tck
    assert document.name == f"0x{document.tck:08X}"
    assert document.line_names == trigger.line_names == ("Hlt1VeloMicroBias", "Hlt1Displaced")


def test_a_document_gives_back_lines_and_constants(document: TckDocument, tmp_path: Path) -> None:
    path = tmp_path / "saved.json"
    path.write_text(document.text)
    trigger = CHAIN.load_trigger(path)
    assert trigger.sequence == "forward"
    assert [(o.algorithm, o.constant, o.value) for o in trigger.overrides] == [
        ("pv_beamline_multi_fit", "max_chi2", 9.0),
        ("pv_beamline_multi_fit", "min_tracks", 5),
    ]
    assert trigger.lines[0].postscale == 0.001


def test_the_default_configuration_names_its_sequence() -> None:
    document = CHAIN.document(CHAIN.load_trigger(None))
    assert (document.chain, document.sequence) == ("lhcb", "forward_then_matching")
    assert document.collections == (*CHAIN.sequences[document.sequence].counts, "unknown_selections")


def test_the_differences_of_two_documents_are_named(document: TckDocument) -> None:
    other = json.loads(document.text)
    other["content"]["lines"][0]["postscale"] = 0.5
    other["content"]["lines"].pop()
    changed = TckDocument("lhcb", "forward", document.collections, other["content"])
    found = differences(document, changed)
    assert found["lines.Hlt1VeloMicroBias.postscale"] == (0.001, 0.5)
    assert found["lines.Hlt1Displaced.input"] == ("events", None)
    assert found["lines.Hlt1Displaced.selection[0]"][1] is None
    assert found["order of lines"] == ("Hlt1VeloMicroBias Hlt1Displaced", "Hlt1VeloMicroBias")
    assert differences(document, document) == {}


def with_content(document: TckDocument, content: Any) -> str:
    """The text of a document with other content and a correct key."""
    values = json.loads(document.text)
    values.update(content=content, tck=f"0x{content_key(content):08X}", sha256=content_hash(content).hex())
    return json.dumps(values)


def test_a_changed_content_is_refused(document: TckDocument) -> None:
    with pytest.raises(TriggerConfigError, match="its content has"):
        TckDocument.from_text(document.text.replace("0.001", "0.002"))


@pytest.mark.parametrize(
    ("field", "value"),
    [("format", 2), ("chain", 1), ("sequence_name", None), ("collections", "a"), ("collections", [1]), ("content", [])],
)
def test_a_field_of_another_type_is_refused(document: TckDocument, field: str, value: object) -> None:
    with pytest.raises(TriggerConfigError, match="TCK document"):
        TckDocument.from_text(json.dumps({**json.loads(document.text), field: value}))


@pytest.mark.parametrize("text", ["", "[]", "{}", "1", "{", "[" * 100_000, '{"a": ' * 100_000])
def test_what_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(TriggerConfigError):
        TckDocument.from_text(text)


def refusal(document: TckDocument, change: Any) -> str:
    content = json.loads(document.text)["content"]
    change(content)
    with pytest.raises(TriggerConfigError) as error:
        CHAIN.trigger_of(TckDocument.from_text(with_content(document, content)))
    return str(error.value)


def test_what_this_software_does_not_have_is_refused(document: TckDocument) -> None:
    assert "sequence.unknown: unknown algorithm" in refusal(
        document, lambda c: c["sequence"].append(["unknown", {"x": 1}])
    )
    assert "cannot be reproduced" in refusal(document, lambda c: c["sequence"].append(["unknown", {}]))
    assert "cannot be reproduced" in refusal(document, lambda c: c["sequence"].pop())
    assert "cannot be reproduced" in refusal(document, lambda c: c["sequence"].reverse())
    assert "postscale: a number from 0 to 1" in refusal(document, lambda c: c["lines"][0].update(postscale=2.0))
    fit = "sequence.pv_beamline_multi_fit.max_chi2"
    for value in ("9", [9], float("nan"), 1e39, True):
        message = refusal(
            document,
            lambda c, value=value: next(a for a in c["sequence"] if a[0] == "pv_beamline_multi_fit")[1].update(
                max_chi2=value
            ),
        )
        assert fit in message


def test_the_document_of_another_chain_is_refused(document: TckDocument) -> None:
    with pytest.raises(TriggerConfigError, match="belongs to chain 'other'"):
        CHAIN.trigger_of(TckDocument("other", "forward", (), document.content))
    with pytest.raises(TriggerConfigError, match="no sequence 'unknown'"):
        CHAIN.trigger_of(TckDocument("lhcb", "unknown", (), document.content))


def test_a_document_with_a_former_name_of_the_chain_runs_under_the_same_key(document: TckDocument) -> None:
    former = TckDocument("hlt1", document.sequence, document.collections, document.content)
    assert former.tck == document.tck
    assert CHAIN.renamed(TckDocument.from_text(former.text)) == document
    assert CHAIN.document(CHAIN.trigger_of(former)) == document
    other = TckDocument("other", document.sequence, document.collections, document.content)
    assert CHAIN.renamed(other) == other


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(TriggerConfigError, match=r"none\.json: cannot be read"):
        TckDocument.load(tmp_path / "none.json")
    (tmp_path / "no.json").write_bytes(b"\xff")
    with pytest.raises(TriggerConfigError, match=r"no\.json: cannot be read"):
        TckDocument.load(tmp_path / "no.json")
