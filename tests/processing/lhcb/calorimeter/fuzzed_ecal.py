"""The banks of the calorimeter for the test that damages them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.lhcb.geometry.ideal_ecal import N_CELLS
from hltnode.protocol.lhcb.bank_versions import EcalVersion
from hltnode.protocol.lhcb.banks.ecal import VOID_ADC
from hltnode.protocol.lhcb.subdetectors import SubDetector
from tests.processing.chains.damage import Damage
from tests.processing.chains.fuzzed_detector import FuzzedDetector, FuzzedSample, StuckValues
from tests.processing.lhcb.calorimeter.ecal_batches import (
    BUILTIN,
    EcalBatch,
    EcalEvent,
    board_banks,
    card_banks,
    encode_mep,
    random_adc,
    random_lines,
    with_boards,
)


@cache
def sample(version: int) -> FuzzedSample:
    """Three events of random energies with tracks."""
    rng = np.random.default_rng(12)
    adc = [random_adc(rng, occupancy) for occupancy in (0.05, 0.3, 0.6)]
    cards = version == EcalVersion.CARDS
    banks = [card_banks(of_event) if cards else board_banks(of_event, version) for of_event in adc]
    tracks = [random_lines(rng, 40) for _ in adc]
    batch = EcalBatch(encode_mep(banks), BUILTIN if cards else with_boards(), tracks=tracks)

    def run(mep: EncodedMep) -> list[EcalEvent]:
        return replace(batch, mep=mep).run()

    return FuzzedSample(batch.mep, run, batch.run())


def check(events: Sequence[EcalEvent]) -> None:
    """Seeds are cells with a value, energies are finite."""
    for event in events:
        assert event.n_cells == (event.adc != VOID_ADC).sum()
        assert ((event.adc == VOID_ADC) | ((event.adc >= -256) & (event.adc <= 3839))).all()
        seed = event.clusters["seed"].astype(int)
        assert (np.diff(seed) > 0).all()
        assert (seed < N_CELLS).all()
        assert (event.adc[seed] >= 50).all()
        for name in ("x", "y", "energy", "et", "e19"):
            assert np.isfinite(event.clusters[name]).all()
        assert np.isfinite([event.energy, *event.tracks["ecal_energy"], *event.tracks["brem_et"]]).all()
        assert event.n_electrons == event.tracks["is_electron"].sum() <= event.tracks["in_ecal"].size


FUZZED_ECAL = FuzzedDetector(
    name="ecal",
    variants=tuple(int(version) for version in EcalVersion),
    sample=sample,
    subdetectors=frozenset({SubDetector.ECAL}),
    check=check,
    damage=Damage(versions=(0, 1, 2, 3, 4, 5, 6, 255), types=(21, 77, 22, 16, 89, 254, 255)),
    stuck=StuckValues((0, 1, 0x55, 0x7F, 0x80, 0xAA, 0xFE, 0xFF), dtype="u1"),
    head=4,
    payloads=6,
    headers=15,
    payload_examples=20,
    header_examples=30,
)
