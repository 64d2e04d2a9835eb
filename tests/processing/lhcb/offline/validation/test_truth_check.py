from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.lhcb.offline.simulation.response.pixel_clusters import retina_ids
from hltnode.processing.lhcb.offline.validation.checker.truth_check import TruthFault, read_truth
from hltnode.processing.offline.truth_faults import TruthFaults
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.velo import decode_retina_clusters
from hltnode.protocol.lhcb.lhcb_id import FT_TYPE, UT_TYPE, VP_TYPE
from hltnode.protocol.lhcb.truth import McParticle, McVertex, encode_particles, encode_vertices
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.odin import Odin, encode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank

ONE = McParticle(
    key=1, pid=211, p=5e3, pt=1e3, eta=3.0, phi=1.0, vertex_x=0.0, vertex_y=0.0, vertex_z=1.0, has_velo=True, n_pvs=1,
    velo_ids=tuple(range(0x20000000, 0x2000000A)),
)  # fmt: skip
HITS = np.array(ONE.velo_ids, dtype=np.uint32)
ODIN = encode_odin(Odin(run=7, event_id=42))


VERTICES = (McVertex(4, 0, 0, 0), McVertex(3, 0, 0, 9))


def banks_of(*particles: McParticle, vertices: Sequence[McVertex] = VERTICES) -> list[RawBank]:
    return [ODIN, *encode_particles(particles), encode_vertices(vertices)]


def fault_of(banks: list[RawBank], hits: NDArray[np.uint32] = HITS) -> tuple[StrEnum, str]:
    faults = TruthFaults()
    assert read_truth(banks, {VP_TYPE: hits}, faults) is None
    ((fault, n),) = faults.counts.items()
    assert n == faults.events == 1
    return fault, faults.named[0]


def test_truth_that_matches_is_read_and_its_ids_are_counted() -> None:
    faults = TruthFaults()
    truth = read_truth(banks_of(ONE), {VP_TYPE: HITS[1:]}, faults)
    assert truth is not None
    assert len(truth.particles) == 1
    assert truth.vertices is not None
    assert (faults.events, faults.ids, faults.lost_ids) == (0, 10, 1)


@pytest.mark.parametrize(
    ("banks", "hits", "expected"),
    [
        ([ODIN], HITS, TruthFault.MISSING),
        ([ODIN, RawBank(LhcbBankType.MC_TRACKS, 2, 0, memoryview(b"\1\0\0\0"))], HITS, TruthFault.UNREADABLE),
        (
            [*banks_of(ONE)[:2], RawBank(LhcbBankType.MC_VERTICES, 1, 0, memoryview(b"\1\0\0\0"))],
            HITS,
            TruthFault.UNREADABLE,
        ),
        (banks_of(ONE, ONE), HITS, TruthFault.DUPLICATE_KEYS),
        (banks_of(replace(ONE, p=float("nan"))), HITS, TruthFault.IMPOSSIBLE_VALUES),
        (banks_of(replace(ONE, p=0.0, pt=0.0)), HITS, TruthFault.IMPOSSIBLE_VALUES),
        (banks_of(replace(ONE, pt=6e3)), HITS, TruthFault.IMPOSSIBLE_VALUES),
        (banks_of(replace(ONE, eta=float("nan"))), HITS, TruthFault.IMPOSSIBLE_VALUES),
        (banks_of(replace(ONE, phi=4.0)), HITS, TruthFault.IMPOSSIBLE_VALUES),
        (banks_of(replace(ONE, vertex_z=float("inf"))), HITS, TruthFault.IMPOSSIBLE_VALUES),
        (banks_of(ONE, vertices=(McVertex(4, 0, 0, 1e300),)), HITS, TruthFault.IMPOSSIBLE_VALUES),
        (banks_of(ONE, vertices=(McVertex(4, 0, 0, 0), McVertex(-1, 0, 0, 0))), HITS, TruthFault.IMPOSSIBLE_VALUES),
        (banks_of(replace(ONE, n_pvs=2)), HITS, TruthFault.WRONG_NUMBER_OF_PVS),
        (banks_of(ONE), HITS + np.uint32(1 << 18), TruthFault.IDS_WITHOUT_HITS),
        (banks_of(ONE), HITS[2:], TruthFault.IDS_WITHOUT_HITS),
        (banks_of(ONE), HITS[:0], TruthFault.IDS_WITHOUT_HITS),
    ],
)
def test_truth_that_does_not_match_its_event_is_named(
    banks: list[RawBank], hits: NDArray[np.uint32], expected: TruthFault
) -> None:
    fault, name = fault_of(banks, hits)
    assert fault is expected
    assert name.startswith(f"run 7 event 42: {expected}")


def test_particles_without_vertex_counts_and_samples_without_vertex_bank_are_valid() -> None:
    faults = TruthFaults()
    assert read_truth(banks_of(replace(ONE, n_pvs=0)), {VP_TYPE: HITS}, faults) is not None
    truth = read_truth(banks_of(replace(ONE, n_pvs=9))[:2], {VP_TYPE: HITS}, faults)
    assert truth is not None
    assert truth.vertices is None


def test_an_event_without_readable_odin_is_named_as_that() -> None:
    assert fault_of(banks_of(ONE, ONE)[1:])[1].startswith("event without readable ODIN")
    broken = RawBank(BankType.ODIN, 7, 0, memoryview(b""))
    assert fault_of([broken, *banks_of(ONE, ONE)[1:]])[1].startswith("event without readable ODIN")


def test_all_faulty_events_are_counted_and_the_first_five_named() -> None:
    faults = TruthFaults()
    for _ in range(8):
        read_truth([ODIN], {VP_TYPE: HITS}, faults)
    assert faults.result() == {
        "events_left_out": 8,
        "reasons": {"missing": 8},
        "named": ["run 7 event 42: no bank of particles (type 32)"] * 5,
    }


@pytest.mark.physics
def test_truth_of_another_event_is_detected(shared: Path) -> None:
    path = shared / "data" / "lhcb-minbias-mdf" / "minbias_1f258735_retina3_mc2_ev6001_6007.mdf"
    events = [record.banks() for record in iter_records(path.read_bytes())]
    hits = [{VP_TYPE: retina_ids(decode_retina_clusters(banks))} for banks in events]
    faults = TruthFaults()
    assert all(read_truth(*pair, faults) for pair in zip(events, hits, strict=True))
    assert faults.lost_ids == 0
    assert not any(read_truth(*pair, faults) for pair in zip(events, hits[1:] + hits[:1], strict=True))
    assert faults.counts == {TruthFault.IDS_WITHOUT_HITS: 7}


def test_ids_of_every_detector_are_checked_except_ut_ids_of_the_old_scheme() -> None:
    seen = replace(ONE, ut_ids=(0x30000001,), scifi_ids=(0x50000001, 0x50000002))
    good = {VP_TYPE: HITS, UT_TYPE: np.array([0x30000001], np.uint32), FT_TYPE: np.array([0x50000001], np.uint32)}
    faults = TruthFaults()
    assert read_truth(banks_of(seen), good, faults) is None
    assert faults.named[0].endswith("(1 of 2 SciFi ids)")
    old = replace(ONE, ut_ids=(0xB0000009,), scifi_ids=(0xA0000001,))
    assert read_truth(banks_of(old), good, faults) is not None
