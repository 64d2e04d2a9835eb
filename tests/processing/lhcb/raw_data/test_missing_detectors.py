"""missing_detectors flags events without banks of a required detector, and no others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest

from hltnode.processing.algorithms.fragment_offsets import fragment_offsets
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.engine import Engine
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_mep
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.offline.simulation.blocks import SimulationRequest, events_of
from hltnode.processing.lhcb.raw_data.flags import MISSING_DETECTOR
from hltnode.processing.lhcb.raw_data.missing_detectors import missing_detectors
from hltnode.protocol.lhcb.subdetectors import SubDetector
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import subdetector_of

HALVES = {
    "velo": (SubDetector.VELO_A, SubDetector.VELO_C),
    "ut": (SubDetector.UT_A, SubDetector.UT_C),
    "scifi": (SubDetector.SCIFI_A, SubDetector.SCIFI_C),
    "muon": (SubDetector.MUON_A, SubDetector.MUON_C),
}


@cache
def full_event() -> list[RawBank]:
    return next(events_of(SimulationRequest(seed=1), 1))


def without(*left_out: SubDetector) -> list[RawBank]:
    """A full event without the banks of some halves of detectors."""
    source_of = CHAIN.readout.source_of
    return [b for b in full_event() if (s := source_of(b)) is None or subdetector_of(s) not in left_out]


def is_flagged(*events: Sequence[RawBank], **required: int) -> list[bool]:
    sequence = AlgorithmSequence((fragment_offsets, missing_detectors.with_constants(required)))
    chain = replace(CHAIN, sequence=sequence, accepted=None, lines=None, counts={})
    limits = BatchLimits(events=8, meps=1, input_bytes=1 << 22, rows=4096)
    engine = Engine(create_backend("cpu", CHAIN.kernels), chain, {}, limits)
    (batch,) = OfflineRunner(engine).run([encode_mep(CHAIN, events)])
    words = batch.workspace.host_array("events.flags")[: len(events)]
    flags = [EventFlag(int(word)) for word in words]
    assert set(flags) <= {EventFlag(0), EventFlag(MISSING_DETECTOR.mask)}
    return [bool(flag) for flag in flags]


@pytest.mark.parametrize("detector", HALVES)
def test_an_event_without_a_detector_beside_complete_ones_is_flagged(detector: str) -> None:
    assert is_flagged(full_event(), without(*HALVES[detector]), full_event()) == [False, True, False]


@pytest.mark.parametrize("detector", HALVES)
def test_a_detector_that_no_event_has_is_missing_in_all(detector: str) -> None:
    assert is_flagged(*[without(*HALVES[detector])] * 2) == [True, True]


@pytest.mark.parametrize("detector", HALVES)
def test_a_half_of_a_detector_is_enough(detector: str) -> None:
    assert is_flagged(*(without(half) for half in HALVES[detector])) == [False, False]


@pytest.mark.parametrize("detector", HALVES)
def test_a_detector_that_a_configuration_does_not_require_may_be_missing(detector: str) -> None:
    others = tuple(half for name, halves in HALVES.items() if name != detector for half in halves)
    assert is_flagged(without(*HALVES[detector]), without(*others), **{detector: 0}) == [False, True]


@pytest.mark.parametrize(
    ("sequence", "expected"),
    [("velo", set()), ("no_ut", {"scifi", "muon"}), ("forward_then_matching", {"ut", "scifi", "muon"})],
)
def test_a_sequence_requires_what_it_reconstructs(sequence: str, expected: set[str]) -> None:
    (algorithm,) = (it for it in CHAIN.sequences[sequence].algorithms if it.name == missing_detectors.name)
    assert {constant.name for constant in algorithm.constants if constant.value} == {"velo"} | expected
