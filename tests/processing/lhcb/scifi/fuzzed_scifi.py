"""The SciFi's banks for the test that damages them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache

import numpy as np

from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.protocol.lhcb.subdetectors import SubDetector
from tests.processing.chains.damage import Damage
from tests.processing.chains.fuzzed_detector import FuzzedDetector, FuzzedSample, StuckValues
from tests.processing.lhcb.scifi.scifi_banks import in_version, simulated_events
from tests.processing.lhcb.scifi.scifi_chain import SciFiChain, SciFiEvent, limits_of, scifi_chain

GEOMETRY = SciFiGeometry.builtin()
N_EVENTS = 3


@cache
def sample(version: int) -> FuzzedSample:
    """Simulated events."""
    mep = encode_mep(scifi_chain(), [in_version(event, version) for event in simulated_events(N_EVENTS)])
    chain = SciFiChain(GEOMETRY, limits_of(mep))
    return FuzzedSample(mep, chain.run, chain.run(mep))


def check(events: Sequence[SciFiEvent]) -> None:
    """Hits lie in the mat and the zone that their ids name, and are sorted by x."""
    for event in events:
        offsets = event.zone_offset.astype(int)
        assert offsets[0] == 0
        assert set(offsets[24:].tolist()) == {len(event.ids)}
        assert np.all(np.diff(offsets) >= 0)
        assert np.all(np.isfinite(event.x))
        assert np.all(event.mat() < 1536)
        assert np.all(event.pseudo_size() <= 8)
        assert np.all((event.ids >> 9 & 0x7FF) - 512 == event.mat())
        assert event.zone().tolist() == (2 * ((event.ids >> 16 & 0xF).astype(int) - 4) + (event.ids >> 15 & 1)).tolist()
        for first, last in itertools.pairwise(offsets):
            # Two words of versions 7 and 8 may have one channel; they flag the event.
            steps = np.diff(event.x[first:last])
            assert np.all(steps >= 0 if event.flags & EventFlag.BANK_ERROR else steps > 0)
        if event.flags & EventFlag.OVERFLOW:
            assert len(event.ids) == 0


FUZZED_SCIFI = FuzzedDetector(
    name="scifi",
    variants=(4, 5, 6, 7, 8),
    sample=sample,
    subdetectors=frozenset({SubDetector.SCIFI_A, SubDetector.SCIFI_C}),
    check=check,
    damage=Damage(versions=(0, 3, 4, 5, 6, 7, 8, 9, 255), types=(64, 66, 73, 16, 89, 254, 255)),
    # The head of a bank stays: it has no cluster words.
    stuck=StuckValues((0, 1, 2, 3, 0xFFFC, 0xFFFF, 0xAAAA, 0x5555), dtype="<u2", keep=lambda _: 4),
    head=None,
    payloads=40,
    headers=40,
    payload_examples=60,
    header_examples=80,
)
