"""Findings of `hltnode doctor` about the limits of this machine."""

import resource

import pytest

from hltnode.daemon.commands.node.findings import Finding, examine
from hltnode.daemon.configuration.model import NodeConfig


def pinned_memory(monkeypatch: pytest.MonkeyPatch, config: NodeConfig, limit: int) -> Finding:
    """The finding where this number of bytes may be locked."""
    limit_of = resource.getrlimit

    def changed(which: int) -> tuple[int, int]:
        return (limit, limit) if which == resource.RLIMIT_MEMLOCK else limit_of(which)

    monkeypatch.setattr(resource, "getrlimit", changed)
    return next(finding for finding in examine(config) if finding.what == "pinned memory")


def test_the_input_of_all_slots_is_compared_with_the_memory_that_may_be_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    config = NodeConfig.model_validate({"pipeline": {"backend": "cpu"}})
    assert config.pipeline.slots > 1
    needed = config.pipeline.slots * config.pipeline.slot_bytes
    for limit in (needed, needed + 1):
        assert pinned_memory(monkeypatch, config, limit).found == f"{limit} bytes"
    found = pinned_memory(monkeypatch, config, needed - 1).found
    assert found == f"{needed - 1} bytes may be locked, the slots need {needed}; the CPU needs none"
