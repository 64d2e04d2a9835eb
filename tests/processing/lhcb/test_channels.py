"""Histograms of groups of channels, and dead groups in simulated events, with and without their masks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.daemon.monitoring import channel_monitor
from hltnode.daemon.monitoring.channel_monitor import ChannelMonitor
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.engine import Engine
from hltnode.processing.framework.histograms import contents
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_meps
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.lines.histograms import SCIFI_SIPMS, UT_SECTORS, VELO_ASICS
from hltnode.processing.lhcb.offline.tools.channels import LhcbChannels
from tests.processing.lhcb.full_events import full_events

pytestmark = pytest.mark.physics

SEQUENCE = "forward"
EVENTS = 100
KINDS = {"VELO ASIC": VELO_ASICS, "SciFi SiPM": SCIFI_SIPMS, "UT lane": UT_SECTORS}
# Groups with many hits, near the beam.
MASKS = {"masked_velo_asics": (300,), "masked_scifi_sipms": (4097,), "masked_ut_lanes": (600,)}


@cache
def run(
    masks: tuple[tuple[str, tuple[int, ...]], ...] = (),
) -> tuple[Engine, NDArray[np.uint32], Mapping[str, NDArray[np.int64]]]:
    """The engine and the counts of its histograms, with all events in those of the channels; the hits by NumPy."""
    histograms = tuple(
        replace(each, prescale=1.0) if each.name in KINDS.values() else each for each in CHAIN.histograms
    )
    chain = replace(CHAIN, histograms=histograms).with_sequence(SEQUENCE)
    trigger = replace(chain.load_trigger(None, SEQUENCE), conditions=tuple(sorted(masks)))
    constants = chain.load_geometry(None)
    tool = LhcbChannels()
    engine = chain.create_engine(
        create_backend("cpu", chain.kernels),
        constants,
        trigger,
        BatchLimits(events=16, input_bytes=8 << 20),
        retain=tool.columns(chain.sequence),
    )
    groups = [each for each in tool.groups(constants) if each.name in KINDS]
    hits = {each.name: np.zeros(len(each.numbers), np.int64) for each in groups}
    runner = OfflineRunner(engine)
    for batch in runner.run(encode_meps(chain, full_events(EVENTS, 5), 16)):
        for each in groups:
            hits[each.name] += tool.count(each, constants, batch.workspace)
    counts = runner.take_histogram_counts().astype(np.uint32)
    engine.close()
    return engine, counts, hits


def test_a_histogram_counts_the_hits_of_each_group() -> None:
    engine, counts, hits = run()
    bins = {content.shape.name: content.bins for content in contents(engine.histograms, counts)}
    counted = engine.channels({})
    assert {each.groups.name: each.histogram for each in counted} == KINDS
    for each in counted:
        np.testing.assert_array_equal(each.hits(bins[each.histogram]), hits[each.groups.name], each.groups.name)
        assert each.hits(bins[each.histogram]).sum() == bins[each.histogram].sum() > 10_000
        assert not each.masked.any()


def test_dead_groups_are_found_if_the_conditions_do_not_mask_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_monitor, "HITS_PER_GROUP", 25)
    engine, counts, _ = run(tuple(MASKS.items()))
    good, _, _ = run()
    missing = {"VELO ASIC": (300,), "SciFi SiPM": (4097,), "UT lane": (600,)}
    for channels, expected in ((good.channels, missing), (engine.channels, dict.fromkeys(missing, ()))):
        monitor = ChannelMonitor(channels, engine.histograms)
        monitor.add(1, counts)
        assert {each.kind: each.found and each.found["dead"] for each in monitor.readings()} == expected


def test_a_sipm_is_masked_if_all_its_channels_are() -> None:
    constants = CHAIN.with_sequence(SEQUENCE).load_geometry(None)
    channels = tuple(range(4097 * 128, 4098 * 128))
    for values, expected in ((channels, [4097]), (channels[1:], [])):
        trigger = replace(CHAIN.load_trigger(None, SEQUENCE), conditions=(("masked_scifi_channels", values),))
        assert CHAIN.channels is not None
        [sipms] = [
            each for each in CHAIN.channels(CHAIN.with_conditions(constants, trigger)) if each.histogram == SCIFI_SIPMS
        ]
        assert sipms.groups.numbers[sipms.masked].tolist() == expected
