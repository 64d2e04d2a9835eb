"""Limits that are computed from the configuration."""

import pytest

from hltnode.daemon.common.vocabulary import CloseReason, IncompletePolicy
from hltnode.daemon.configuration.input_sections import BuilderSection, UdpSection, UdpSender
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.configuration.node_sections import LatencySection, PipelineSection
from hltnode.daemon.configuration.output_sections import CombinerSection
from hltnode.daemon.event_building.slots import SlotLimits
from hltnode.daemon.event_building.stimuli_and_effects import BuilderLimits
from hltnode.daemon.node.sizing import batch_limits, builder_limits, held_seconds, max_events_per_mep, slot_limits
from hltnode.processing.framework.limits import BatchLimits

MS, US = 1_000_000, 1_000


def test_each_deadline_of_the_builder_comes_from_its_own_key() -> None:
    builder = BuilderSection(
        mep_timeout_ms=11,
        feeder_timeout_ms=12,
        overtaken_after_ms=13,
        evict_after_ms=14,
        closed_ring=1600,
        on_timeout=IncompletePolicy.ERROR,
    )
    config = NodeConfig(builder=builder, pipeline=PipelineSection(flush_deadline_us=1500))
    assert builder_limits(config) == BuilderLimits(
        mep_timeout_ns=11 * MS,
        feeder_timeout_ns=12 * MS,
        overtaken_ns=13 * MS,
        evict_ns=14 * MS,
        flush_deadline_ns=1500 * US,
        closed_ring=1600,
        error_on=frozenset({CloseReason.TIMEOUT}),
    )


@pytest.mark.parametrize("serial", [False, True])
@pytest.mark.parametrize("datagrams", [False, True])
def test_only_a_serial_node_of_datagrams_seals_batches_for_an_idle_back_end(serial: bool, datagrams: bool) -> None:
    """Feeders have credits for the places that a slot loses when it is sealed early."""
    sender = UdpSender(address="127.0.0.1", sources=(1,))
    udp = UdpSection(endpoint="udp://127.0.0.1:5560", senders=(sender,)) if datagrams else UdpSection()
    config = NodeConfig(latency=LatencySection(serial=serial), udp=udp)
    assert builder_limits(config).seals_for_idle is (serial and datagrams)


def test_the_limits_of_a_slot_are_those_of_a_batch_and_of_a_mep() -> None:
    config = NodeConfig(
        builder=BuilderSection(max_mep_bytes=80 << 20), pipeline=PipelineSection(slot_bytes=256 << 20, max_events=700)
    )
    defaults = BatchLimits()
    assert slot_limits(config) == SlotLimits(
        input_bytes=256 << 20,
        events=700,
        meps=min(700, defaults.meps),
        fragments=defaults.rows,
        mep_bytes=80 << 20,
    )


@pytest.mark.parametrize(
    ("configured", "most", "fragments"),
    [(0, 4096, (128 << 20) // 3), (64, 64, 65536 * 64), (683, 683, (128 << 20) // 3), (5000, 4096, (128 << 20) // 3)],
)
def test_small_meps_save_memory_of_fragments(configured: int, most: int, fragments: int) -> None:
    config = NodeConfig(pipeline=PipelineSection(max_events=4096, max_events_per_mep=configured))
    assert max_events_per_mep(config, n_lines=1) == most
    assert batch_limits(config).fragments == fragments


def test_a_slot_has_room_for_the_mfps_of_the_expected_sources_only() -> None:
    pipeline = PipelineSection(max_events=4096, max_events_per_mep=16)
    for sources, rows in ((None, 65_536), ((7,), 256), ((7, 8, 9), 768), (tuple(range(4096)), 65_536)):
        limits = batch_limits(NodeConfig(builder=BuilderSection(expected_sources=sources), pipeline=pipeline))
        assert (limits.rows, limits.meps) == (rows, 256)


@pytest.mark.parametrize(
    ("endpoint", "hold_ms", "timeout_ms", "seconds"),
    [(None, 9000, 8000, 0.0), ("tcp://127.0.0.1:9", 9000, 8000, 9.0), ("tcp://127.0.0.1:9", 500, 2500, 2.5)],
)
def test_slices_are_held_for_the_longer_of_two_times(
    endpoint: str | None, hold_ms: int, timeout_ms: int, seconds: float
) -> None:
    combiner = CombinerSection(endpoint=endpoint, hold_ms=hold_ms, timeout_ms=timeout_ms)
    assert held_seconds(NodeConfig(combiner=combiner)) == seconds
