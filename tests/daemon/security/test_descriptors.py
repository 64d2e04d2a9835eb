"""Limits on connections leave descriptors for files, or the node does not start."""

import resource

import pytest

from hltnode.daemon.security.connection_table import ConnectionLimits
from hltnode.daemon.security.descriptors import (
    PER_CONNECTION,
    RESERVE,
    DescriptorLimitError,
    limits_that_fit,
    raise_limit,
)

LIMITS = ConnectionLimits(connections=1024, per_address=128, this_machine=512)


def test_limits_that_fit_stay() -> None:
    assert limits_that_fit(LIMITS, 4, 65_536) is LIMITS
    assert limits_that_fit(LIMITS, 4, PER_CONNECTION * 4 * 1024 + RESERVE) is LIMITS


@pytest.mark.parametrize("descriptors", [1024, 4096, 8703])
def test_limits_above_the_descriptors_are_lowered_and_keep_a_reserve(descriptors: int) -> None:
    lowered = limits_that_fit(LIMITS, 4, descriptors)
    assert 16 <= lowered.connections < 1024
    assert PER_CONNECTION * 4 * lowered.connections + RESERVE <= descriptors


def test_a_node_without_room_for_its_peers_does_not_start() -> None:
    with pytest.raises(DescriptorLimitError, match=r"256 open files are allowed, expected 8704.*LimitNOFILE"):
        limits_that_fit(LIMITS, 4, 256)


def test_the_soft_limit_is_raised_to_the_hard_one() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before[1] // 2, before[1]))
        assert raise_limit() == before[1]
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == before[1]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
