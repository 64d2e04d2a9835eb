"""Names of inputs: equal for the same MEPs, different for others."""

from pathlib import Path

import pytest

from hltnode.daemon.replay.input_name import name_of_sample
from hltnode.daemon.replay.mep_source import Packing
from tests.daemon.replay.test_input_files import record, stream_of


def name_of(*paths: Path, **packing: object) -> str:
    return stream_of(*paths, **packing).input_name  # type: ignore[arg-type]


@pytest.mark.parametrize("whole_bytes", [1 << 20, 0])
def test_content_and_packing_make_the_name_and_the_path_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole_bytes: int
) -> None:
    monkeypatch.setattr("hltnode.daemon.replay.input_name._WHOLE_BYTES", whole_bytes)
    monkeypatch.setattr("hltnode.daemon.replay.input_name._PIECE_BYTES", 64)
    one, other, moved = tmp_path / "one.mdf", tmp_path / "other.mdf", tmp_path / "moved.mdf"
    one.write_bytes(record(1) + record(2))
    moved.write_bytes(one.read_bytes())
    other.write_bytes(record(1) + record(3)[: len(record(2))])
    name = name_of(one)
    assert name == name_of(moved) == name_of(one, repeat=3) == name_of(one, run=9)
    others = [name_of(one, events_per_mep=1), name_of(one, one), name_of(other), name_of(one, with_truth=True)]
    assert len({name, *others}) == 5


def test_generated_events_are_named_by_their_seed() -> None:
    packing = Packing(events_per_mep=10, max_fragment_bytes=1 << 20)
    assert name_of_sample("lhcb", 1, 100, packing) == name_of_sample("lhcb", 1, 100, packing)
    assert name_of_sample("lhcb", 1, 100, packing) != name_of_sample("lhcb", 2, 100, packing)
