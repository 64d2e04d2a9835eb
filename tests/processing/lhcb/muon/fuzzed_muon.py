"""The banks of the muon stations for the test that damages them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.protocol.lhcb.banks.muon import decode_muon
from hltnode.protocol.lhcb.subdetectors import SubDetector
from tests.processing.chains.damage import Damage
from tests.processing.chains.fuzzed_detector import FuzzedDetector, FuzzedSample, StuckValues
from tests.processing.lhcb.muon.muon_chain import MuonBatch, MuonEvent, encode_mep
from tests.processing.lhcb.muon.muon_samples import (
    BUILTIN,
    as_links,
    banks_of,
    link_banks_of,
    links_geometry,
    random_digits,
    simulated_events,
)
from tests.processing.lhcb.muon.test_is_muon import random_tracks

VERSIONS = (2, 3)


@cache
def muon_batch(version: int) -> MuonBatch:
    """A simulated event and two of random digits, with tracks."""
    rng = np.random.default_rng(12)
    digits = [decode_muon(simulated_events(6)[0]), random_digits(rng, 400), random_digits(rng, 60)]
    if version == 2:
        events = [banks_of(of_event) for of_event in digits]
    else:
        events = [link_banks_of(as_links(of_event)) for of_event in digits]
    tracks = [random_tracks(rng, 40) for _ in digits]
    return MuonBatch(encode_mep(events), BUILTIN if version == 2 else links_geometry(), tracks)


@cache
def sample(version: int) -> FuzzedSample:
    """The batch, which also runs on changed bytes."""
    batch = muon_batch(version)

    def run(mep: EncodedMep) -> list[MuonEvent]:
        return replace(batch, mep=mep).run()

    return FuzzedSample(batch.mep, run, batch.run())


def check(events: Sequence[MuonEvent]) -> None:
    """Hits lie in their stations; muons have hits of the event."""
    for event in events:
        offsets = event.station_offset.astype(int)
        assert (np.diff(offsets) >= 0).all()
        assert offsets[-1] == len(event.hits["x"])
        for name in ("x", "y", "z", "dx", "dy"):
            assert np.isfinite(event.hits[name]).all()
        assert (event.hits["tile"] != 0).all()
        near = event.muon_hits[event.muon_hits != 0xFFFF]
        assert (near < offsets[-1]).all()
        assert np.isfinite(event.chi2).all()


FUZZED_MUON = FuzzedDetector(
    name="muon",
    variants=VERSIONS,
    sample=sample,
    subdetectors=frozenset({SubDetector.MUON_A, SubDetector.MUON_C}),
    check=check,
    damage=Damage(versions=(0, 1, 2, 3, 4, 255), types=(13, 63, 16, 89, 254, 255)),
    # Version 3 starts with a byte that names the links; if it changes, the rest is not read.
    stuck=StuckValues(
        (0, 1, 0x10, 0x20, 0x60, 0x6F, 0x80, 0xF0, 0xFF, 0x55), dtype="u1", keep=lambda version: int(version == 3)
    ),
    head=None,
    payloads=8,
    headers=20,
    payload_examples=25,
    header_examples=40,
)
