"""Banks of data taking: the sequence finds in them what it finds in the banks of the simulation; error banks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.offline.simulation.banks.detector_encoding import BankVersions
from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.simulation.full_generator import FullSimulation
from hltnode.processing.lhcb.offline.simulation.generation.sources import sample_source
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.bank_versions import DETECTORS
from hltnode.protocol.lhcb.readout import ERROR_TYPES, readout_source_id
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import subdetector_of

N_EVENTS = 12
SEQUENCE = "forward_then_matching"
OBJECTS = CHAIN.sequences[SEQUENCE].counts


@cache
def events_of(versions: BankVersions) -> list[list[RawBank]]:
    detector = Detector.builtin()
    source = sample_source("minbias", 5.0, detector.velo.beamline)
    return list(FullSimulation(detector, source, versions=versions).events(N_EVENTS, seed=46))


@cache
def workspace(sequence: str) -> Workspace:
    """A sequence with the built-in detector, for batches of one MEP."""
    chain = CHAIN.with_sequence(sequence)
    limits = BatchLimits(events=N_EVENTS, meps=1, input_bytes=2 << 20, rows=1000)
    trigger = CHAIN.load_trigger(None, sequence)
    engine = chain.create_engine(create_backend("cpu", chain.kernels), chain.load_geometry(None), trigger, limits)
    return engine.create_workspace()


def found_in(events: Sequence[Sequence[RawBank]], sequence: str = SEQUENCE) -> dict[str, NDArray[np.uint32]]:
    """Flags of each event and its number of objects."""
    mep, batch = encode_mep(CHAIN.with_sequence(sequence), events), workspace(sequence)
    batch.input_data[: mep.data.nbytes] = mep.data
    batch.seal([MepInBatch(mep.n_events, mep.fragments)])
    batch.submit()
    batch.wait()
    names = {"flags": "events.flags"} | {name: column.name for name, column in CHAIN.sequences[sequence].counts.items()}
    return {name: batch.host_array(column)[: len(events)].copy() for name, column in names.items()}


def test_the_sequence_finds_the_same_objects_in_banks_of_data_taking() -> None:
    """Version 4 of the UT has strips in place of clusters; the other versions hold the same hits."""
    data, simulated = events_of(BankVersions.of_data_taking()), events_of(BankVersions(ut_version=4))
    assert {(bank.type, bank.version) for bank in data[0] if bank.type in (63, 73, 64, 66, 13, 16)} == {
        (LhcbBankType.VP_RETINA_CLUSTER, 4),
        (LhcbBankType.UT, 4),
        (LhcbBankType.FT_CLUSTER, 8),
        (LhcbBankType.MUON, 3),
        (BankType.ODIN, 7),
    }
    in_data, in_simulation = found_in(data), found_in(simulated)
    for name, counts in in_simulation.items():
        assert in_data[name].tolist() == counts.tolist(), name
        assert name == "flags" or counts.sum() > 0, name
    in_clusters = found_in(events_of(BankVersions()))
    for name in ("flags", "velo_clusters", "velo_tracks", "pvs", "scifi_hits", "muon_hits"):
        assert in_data[name].tolist() == in_clusters[name].tolist(), name
    assert in_data["long_tracks"].sum() == pytest.approx(in_clusters["long_tracks"].sum(), rel=0.03)


def test_the_calorimeter_is_read_from_both_kinds_of_banks() -> None:
    """All cells, and the same objects."""
    names = ("ecal_cells", "ecal_energy", "ecal_clusters", "electrons")
    simulated = found_in(events_of(BankVersions(ut_version=4)), "hlt1_2026")
    data = found_in(events_of(BankVersions.of_data_taking()), "hlt1_2026")
    assert not simulated["flags"].any()
    assert (simulated["ecal_cells"] == 6016).all()
    for name in names:
        assert data[name].tolist() == simulated[name].tolist(), name
    assert simulated["ecal_clusters"].min() > 0
    assert simulated["electrons"].sum() > 0


def test_data_banks_have_the_source_ids_of_the_readout() -> None:
    banks = events_of(BankVersions.of_data_taking())[0]
    assert all(readout_source_id(bank) in (bank.source_id, None) for bank in banks)
    for detector in DETECTORS:
        found = {subdetector_of(bank.source_id) for bank in banks if bank.type in detector.written}
        assert found == set(detector.sides)


def test_an_error_bank_in_any_place_flags_its_event_and_changes_no_other() -> None:
    """Each type of error bank, in place of a bank of each detector, of ODIN, and beside all others."""
    events = [list(banks) for banks in events_of(BankVersions.of_data_taking())]
    before = found_in(events)
    assert not before["flags"].any()
    types = sorted(ERROR_TYPES)
    assert types == [*range(89, 97), 100, 101]
    detectors = (73, 66, 64, 13)
    for number, banks in enumerate(events[: len(types)]):
        kind = types[number]
        wanted = detectors[number % 4] if number < 8 else int(BankType.ODIN)
        places = [at for at, bank in enumerate(banks) if bank.type == wanted]
        at = places[number * len(places) // len(types)]
        bank = banks.pop(at)
        # The error bank stands at the beginning, at the end, or in place.
        banks.insert((0, len(banks), at)[number % 3], RawBank(kind, number, bank.source_id, memoryview(b"\1\2\3")))
    after = found_in(events)
    expected = [EventFlag.BANK_ERROR] * 8 + [EventFlag.ODIN_ERROR] * (len(types) - 8)
    assert after["flags"].tolist() == [*expected, *[0] * (N_EVENTS - len(types))]
    for name in OBJECTS:
        assert after[name][8:].tolist() == before[name][8:].tolist(), name
    assert (after["scifi_hits"] <= before["scifi_hits"]).all()
    assert (after["velo_clusters"] >= 0.95 * before["velo_clusters"]).all()


def test_an_event_with_links_that_send_nothing_is_an_event_with_fewer_hits() -> None:
    """Banks of dead boards are absent, or have no words: neither flags the event."""
    events = [list(banks) for banks in events_of(BankVersions.of_data_taking())[:2]]
    before = found_in(events)
    of_scifi = [at for at, bank in enumerate(events[0]) if bank.type == LhcbBankType.FT_CLUSTER]
    absent, empty = of_scifi[::3], of_scifi[1::3]
    for at in empty:
        events[0][at] = events[0][at]._replace(payload=memoryview(b""))
    events[0] = [bank for at, bank in enumerate(events[0]) if at not in absent]
    after = found_in(events)
    assert after["flags"].tolist() == [0, 0]
    assert 0.2 < after["scifi_hits"][0] / before["scifi_hits"][0] < 0.5
    assert after["long_tracks"][1] == before["long_tracks"][1]
