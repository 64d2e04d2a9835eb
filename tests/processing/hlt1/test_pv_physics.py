"""Primary vertices of the whole chain, from raw banks: real and simulated events against their truth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from hltnode.processing.backend import create_backend
from hltnode.processing.batch import BatchLimits
from hltnode.processing.geometry.velo import VeloGeometry
from hltnode.processing.hlt1.sequence import create_engine
from hltnode.processing.offline import OfflineRunner, encode_meps
from hltnode.processing.simulation.velo_generator import simulate_events
from hltnode.processing.trigger import TriggerConfig
from hltnode.processing.validation.reconstruction import reconstructed_batch
from hltnode.processing.validation.vertices import VertexCounts
from hltnode.protocol.mdf import iter_records
from hltnode.protocol.raw_bank import BankType, RawBank
from hltnode.protocol.truth import decode_vertices
from tests.processing.track_sample import DEVELOPMENT_MDF

pytestmark = pytest.mark.physics


def counted(events: Iterable[Sequence[RawBank]], geometry: VeloGeometry) -> VertexCounts:
    limits = BatchLimits(events=32, input_bytes=4 << 20)
    engine = create_engine(create_backend("cpu"), geometry, TriggerConfig.default(), limits)
    counts = VertexCounts()
    for batch in OfflineRunner(engine).run(encode_meps(events, 16)):
        banks_of_events = [banks for mep in batch.meps for banks in mep.events]
        for banks, pvs in zip(banks_of_events, reconstructed_batch(batch.workspace).pvs, strict=True):
            truth = next(bank for bank in banks if bank.type == BankType.MC_VERTICES)
            counts.add_event(pvs, decode_vertices(truth))
    engine.close()
    return counts


def test_at_least_32_of_36_collisions_of_the_real_events_are_found_and_none_is_false(shared: Path) -> None:
    records = iter_records((shared / DEVELOPMENT_MDF).read_bytes(), verify_checksum=False)
    geometry = VeloGeometry.load(shared / "data/lhcb-geometry")
    counts = counted((record.banks() for record in records), geometry)
    assert counts.all.reconstructible == 36
    assert counts.all.reconstructed >= 32
    assert counts.false == 0


def test_at_least_93_percent_of_simulated_collisions_are_found_and_at_most_1_percent_are_false() -> None:
    geometry = VeloGeometry.builtin()
    counts = counted(simulate_events(400, seed=21, geometry=geometry), geometry)
    assert counts.all.reconstructible > 1500
    assert counts.all.reconstructed / counts.all.reconstructible >= 0.93
    assert counts.false / counts.vertices <= 0.01
