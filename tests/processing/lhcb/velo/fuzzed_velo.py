"""The VELO's banks for the test that damages them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.banks.velo_encoding import VeloEncoding
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.protocol.lhcb.subdetectors import SubDetector
from tests.processing.chains.damage import Damage
from tests.processing.chains.fuzzed_detector import FuzzedDetector, FuzzedSample, StuckValues
from tests.processing.lhcb.velo.velo_chain import VeloChain, VeloEvent, limits_of

N_EVENTS = 3


@cache
def sample(encoding: VeloEncoding) -> FuzzedSample:
    """Simulated events."""
    geometry = VeloGeometry.builtin()
    mep = encode_mep(CHAIN, list(simulate_events(N_EVENTS, seed=5, geometry=geometry, nu=2.0, velo_banks=encoding)))
    chain = VeloChain(geometry, limits_of(mep))
    return FuzzedSample(mep, chain.run, chain.run(mep))


def check(events: Sequence[VeloEvent]) -> None:
    """Hits lie in their module pairs; tracks have hits of the event."""
    for event in events:
        assert event.module_pair_offset[-1] == len(event.ids)
        assert np.all(np.diff(event.module_pair_offset.astype(int)) >= 0)
        assert np.all(np.isfinite(event.hits()))
        for track in event.tracks:
            assert 3 <= len(track) <= 26
            assert np.all(track < len(event.ids))


FUZZED_VELO = FuzzedDetector(
    name="velo",
    variants=("retina", "superpixel"),
    sample=sample,
    subdetectors=frozenset({SubDetector.VELO_A, SubDetector.VELO_C}),
    check=check,
    damage=Damage(versions=(0, 1, 2, 3, 4, 5, 255), types=(63, 73, 16, 89, 254, 255)),
    # The count of clusters or superpixels, at the start of a bank, stays.
    stuck=StuckValues(
        (0, 1, 0xFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x00AAAAAA, 0x55555555), dtype="<u4", keep=lambda _: 4
    ),
    head=4,
    payloads=20,
    headers=40,
    payload_examples=100,
    header_examples=150,
)
