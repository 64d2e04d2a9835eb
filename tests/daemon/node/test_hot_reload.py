"""Which differences of two configurations are taken over while the node runs."""

from pathlib import Path

import pytest

from hltnode.daemon.node.hot_reload import HOT_KEYS, compare
from hltnode.daemon.node.sizing import batch_limits
from hltnode.processing.selection.configuration.tck import TckDocument
from tests.daemon.fakes import FakeEngine, make_config, node_of_engine


def test_a_reload_without_changes_has_no_effect(tmp_path: Path) -> None:
    change = compare(make_config(tmp_path), make_config(tmp_path))
    assert (change.hot, change.cold) == ({}, ())


def test_hot_keys_are_applied_and_changed_cold_keys_are_named_and_ignored(tmp_path: Path) -> None:
    old = make_config(tmp_path)
    new = make_config(
        tmp_path,
        builder={"mep_timeout_ms": 55, "min_feeders": 3},
        pipeline={"flush_deadline_us": 7_000},
        log={"level": "debug"},
        http={"port": 9},
    )
    change = compare(old, new)
    assert change.hot == {
        "builder.mep_timeout_ms": (300, 55),
        "pipeline.flush_deadline_us": (10_000, 7_000),
        "log.level": ("info", "debug"),
    }
    assert change.cold == ("builder.min_feeders", "http.port")
    assert change.config.builder.mep_timeout_ms == 55
    assert change.config.builder.min_feeders == old.builder.min_feeders
    assert change.config.http.port == old.http.port


def test_the_trigger_configuration_changes_only_with_a_new_session(tmp_path: Path) -> None:
    """Decisions of a session have one TCK: a reload reports the key and does not change the lines."""
    old = make_config(tmp_path)
    (tmp_path / "trigger.toml").write_text("")
    change = compare(old, make_config(tmp_path, trigger={"file": str(tmp_path / "trigger.toml")}))
    assert change.cold == ("trigger.file",)
    assert (change.config.trigger, change.hot) == (old.trigger, {})


@pytest.mark.loopback
async def test_a_node_writes_its_trigger_configuration_beside_its_events(tmp_path: Path) -> None:
    document = TckDocument("toy", "short", (), {"lines": [{"name": "every_second"}], "sequence": []})
    config = make_config(tmp_path)
    async with node_of_engine(config, FakeEngine(batch_limits(config)), "fake", document):
        path = tmp_path / "out" / f"{document.name}.json"
        assert TckDocument.load(path) == document


@pytest.mark.parametrize("key", HOT_KEYS, ids=".".join)
def test_each_hot_key_exists(tmp_path: Path, key: tuple[str, str]) -> None:
    section, name = key
    assert hasattr(getattr(make_config(tmp_path), section), name)
