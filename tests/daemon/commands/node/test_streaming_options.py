"""The section [streaming] against the chain of a node, and in a file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hltnode.daemon.commands.node.streaming_options import streaming_constants
from hltnode.daemon.common.vocabulary import HeadRoomRule
from hltnode.daemon.configuration.loading import ConfigError, load_config
from hltnode.processing.selection.trigger_chain import installed_chain


def constants(tmp_path: Path, chain: str, text: str) -> dict[str, list[int]]:
    file = tmp_path / "node.toml"
    file.write_text(f'[trigger]\nchain = "{chain}"\n[streaming]\n{text}')
    config = load_config(file)
    found = installed_chain(chain)
    made = streaming_constants(config, file, found, found.load_trigger(None))
    return {name: values.view("<i4").tolist() for name, values in made.items()}


def test_offsets_become_the_constants_of_the_chain(tmp_path: Path) -> None:
    text = "clock_offsets_ns = {2051 = 40, 2048 = -21_000}"
    assert constants(tmp_path, "km3net", text) == {"km3net.clock_offset": [-21_000, 0, 0, 40, *[0] * 2044]}
    assert constants(tmp_path, "km3net", 'head_room = "drop"') == {}
    assert load_config(tmp_path / "node.toml").streaming.head_room is HeadRoomRule.DROP


@pytest.mark.parametrize(
    ("chain", "text", "message"),
    [
        ("km3net", "clock_offsets_ns = {2048 = 21_001}", "clock_offsets_ns: source 2048: 21001 ns, but"),
        ("km3net", "clock_offsets_ns = {4096 = 1}", "clock_offsets_ns: source 4096: chain km3net takes no hits"),
        ("km3net", "clock_offsets_ns = {70000 = 1}", "streaming.clock_offsets_ns.70000"),
        ("km3net", "clock_offsets_ns = {floor = 1}", "streaming.clock_offsets_ns.floor"),
        ("km3net", "clock_offsets_ns = {2048 = 1.5}", "streaming.clock_offsets_ns.2048: expected a valid integer"),
        ("km3net", 'head_room = "burn"', "streaming.head_room: expected 'keep', 'thin' or 'drop'"),
        ("km3net", "thin_to_one_of = 1", "streaming.thin_to_one_of: expected greater than or equal to 2"),
        ("raw", "clock_offsets_ns = {2048 = 1}", "clock_offsets_ns: chain raw has no time slices"),
        ("raw", 'head_room = "thin"', "head_room: expected keep: chain raw has no time slices"),
    ],
)
def test_what_the_chain_cannot_follow_is_refused_by_key_and_source(
    chain: str, text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        constants(tmp_path, chain, text)
