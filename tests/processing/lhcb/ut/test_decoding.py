"""UT banks to sorted hits, compared with the decoder of the protocol and the geometry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.geometry.magnet import DOWN
from hltnode.processing.lhcb.geometry.ut import LAYER_OFFSETS, UtGeometry, UtHitPositions
from hltnode.processing.lhcb.offline.simulation.banks.detector_encoding import BankVersions
from hltnode.processing.lhcb.offline.simulation.detector import Detector as SimulatedDetector
from hltnode.processing.lhcb.offline.simulation.full_generator import FullSimulation
from hltnode.processing.lhcb.offline.simulation.generation.sources import sample_source
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.ut import BOARDS, N_STRIPS, UtHits, data_source_id, decode_ut, encode_ut_v4
from hltnode.protocol.lhcb.subdetectors import SubDetector
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import source_id
from tests.processing.lhcb.ut.ut_chain import Detector, UtChain, UtEvent, limits_of, ut_chain
from tests.processing.lhcb.velo.track_sample import DEVELOPMENT_MDF

FLOAT_TOLERANCE = 2e-4
"""mm: a float of 800 mm has steps of 6e-5 mm."""


def group_of_sector(geometry: UtGeometry) -> list[list[int]]:
    """The sectors of each group: in each layer, from small to large x, those within 2 mm of the group's first one."""
    groups: list[list[int]] = []
    for begin, end in pairwise(LAYER_OFFSETS):
        sectors = sorted(range(begin, end), key=lambda sector: float(geometry.p0[sector, 0]))
        first = len(groups)
        for sector in sectors:
            if len(groups) == first or geometry.p0[sector, 0] - geometry.p0[groups[-1][0], 0] > 2.0:
                groups.append([])
            groups[-1].append(sector)
    return groups


def assert_same_hits(event: UtEvent, expected: UtHitPositions, geometry: UtGeometry) -> None:
    """Check that the hits of each group are those of the oracle, ascending by y_begin."""
    groups = group_of_sector(geometry)
    begin = event.group_offset.astype(int)
    assert begin[len(groups)] == len(event.hits["id"]) == len(expected.x)
    assert (begin[len(groups) :] == begin[len(groups)]).all()
    for number, sectors in enumerate(groups):
        found = slice(begin[number], begin[number + 1])
        chosen = np.isin(expected.sector, sectors)
        assert (np.diff(event.hits["y_begin"][found]) >= 0).all()
        assert (np.diff(event.hits["y_end"][found]) >= 0).all()
        order = np.lexsort((event.hits["x"][found], event.hits["id"][found]))
        expected_order = np.lexsort((expected.x[chosen], expected.lhcb_id[chosen]))
        assert event.hits["id"][found][order].tolist() == expected.lhcb_id[chosen][expected_order].tolist()
        for name in ("x", "z", "y_begin", "y_end", "weight"):
            of_oracle = getattr(expected, name)[chosen][expected_order]
            np.testing.assert_allclose(event.hits[name][found][order], of_oracle, rtol=1e-6, atol=FLOAT_TOLERANCE)


def run(events: Sequence[Sequence[RawBank]], detector: Detector) -> list[UtEvent]:
    mep = encode_mep(ut_chain(), events)
    return UtChain(detector, limits_of(mep)).run(mep)


def real_events(shared: Path) -> list[list[RawBank]]:
    records = iter_records((shared / DEVELOPMENT_MDF).read_bytes(), verify_checksum=False)
    return [list(record.banks()) for record in records]


def test_the_hits_of_the_real_events_are_those_of_the_plain_decoder(shared: Path) -> None:
    detector = Detector.load(shared / "data/lhcb-geometry")
    events = real_events(shared)
    found = run(events, detector)
    assert [len(event.hits["id"]) for event in found] == [2108, 780, 835, 969, 1170, 433, 1707]
    for banks, event in zip(events, found, strict=True):
        assert event.flags == 0
        assert_same_hits(event, detector.ut.hits(decode_ut(banks)), detector.ut)


def test_spot_values_of_event_6002(shared: Path) -> None:
    event = run([real_events(shared)[1]], Detector.load(shared / "data/lhcb-geometry"))[0]
    ids = event.hits["id"].tolist()
    for channel, values in (
        (0x41C943, (-709.1400, -192.76, -95.48, 2330.2825, 332.41)),
        (0x48B4DA, (-247.9264, 94.4957, 191.4055, 2590.2825, 332.41)),
    ):
        at = ids.index(3 << 28 | channel)
        found = [float(event.hits[name][at]) for name in ("x", "y_begin", "y_end", "z", "weight")]
        assert found == pytest.approx(values, abs=0.005)


def simulated(n: int, *, version: int = 3, polarity: float = DOWN) -> list[list[RawBank]]:
    """Minimum-bias events of the built-in detector, truth included."""
    detector = SimulatedDetector.builtin().with_polarity(polarity)
    source = sample_source("minbias", 7.6, detector.velo.beamline)
    return list(FullSimulation(detector, source, versions=BankVersions(ut_version=version)).events(n, 3))


@pytest.mark.parametrize("version", [3, 4])
def test_the_hits_of_simulated_events_are_those_of_the_plain_decoder(version: int) -> None:
    detector = Detector.builtin()
    events = simulated(12, version=version)
    found = run(events, detector)
    assert sum(len(event.hits["id"]) for event in found) > 1000
    for banks, event in zip(events, found, strict=True):
        assert event.flags == 0
        assert_same_hits(event, detector.ut.hits(decode_ut(banks)), detector.ut)


def random_hits(rng: np.random.Generator, n: int) -> UtHits:
    """Random hits without order; some lanes have no sensor."""
    board = rng.choice(BOARDS, n).astype(np.uint32)
    lane, strip, fraction = (rng.integers(low, end, n).astype(np.uint32) for low, end in ((0, 6), (1, 513), (0, 4)))
    none = np.zeros(n, np.uint32)
    return UtHits(board, lane, strip, fraction, none, none)


def bank_v3(source: int, words: Sequence[int]) -> RawBank:
    """A bank of clusters without their charges, which the trigger does not read."""
    payload = np.array([len(words), 0x80, *words], np.uint16).tobytes()
    return RawBank(LhcbBankType.UT, 3, source, memoryview(payload + bytes(-len(payload) % 4)))


def banks_v3(hits: UtHits) -> list[RawBank]:
    words = hits.fraction | (hits.lane * np.uint32(N_STRIPS) + hits.strip - np.uint32(1)) << np.uint32(2)
    return [bank_v3(board, words[hits.board == board].tolist()) for board in BOARDS]


def with_changes(geometry: UtGeometry, seed: int) -> UtGeometry:
    """A detector in which some sectors number their strips backwards or have the opposite direction."""
    rng = np.random.default_rng(seed)
    p0, dp0di, dy = geometry.p0.copy(), geometry.dp0di.copy(), geometry.dy.copy()
    backwards, upside_down = rng.random((2, len(p0))) < 0.3
    p0[backwards, 2] *= -1
    p0[upside_down, 1] += dy[upside_down]
    dy[upside_down] *= -1
    return replace(geometry, p0=p0, dp0di=dp0di, dy=dy)


@pytest.mark.parametrize("version", [3, 4])
def test_hits_in_any_order_and_sensors_in_any_direction_are_sorted(version: int) -> None:
    rng = np.random.default_rng(8)
    detector = Detector.builtin()
    detector = replace(detector, ut=with_changes(detector.ut, 5))
    hits = [random_hits(rng, n) for n in (3000, 0, 1, 9000)]
    events = [banks_v3(of_event) if version == 3 else encode_ut_v4(of_event) for of_event in hits]
    found = run(events, detector)
    for banks, event in zip(events, found, strict=True):
        assert event.flags == EventFlag.ODIN_ERROR
        assert_same_hits(event, detector.ut.hits(decode_ut(banks)), detector.ut)


def test_hits_do_not_depend_on_the_order_of_words_in_a_bank() -> None:
    rng = np.random.default_rng(2)
    words = rng.integers(0, 6 * 512 * 4, 300).tolist()
    one, other = run([[bank_v3(3, words)], [bank_v3(3, rng.permutation(words).tolist())]], Detector.builtin())
    assert len(one.hits["id"]) == 300
    assert one.same_as(other)


def test_banks_of_many_hits_in_one_sector_are_no_physics() -> None:
    few, many = run([[bank_v3(3, [40] * 512)], [bank_v3(3, [40] * 513)]], Detector.builtin())
    assert few.flags == EventFlag.ODIN_ERROR
    assert len(few.hits["id"]) == 512
    assert many.flags == EventFlag.ODIN_ERROR | EventFlag.OVERFLOW
    assert len(many.hits["id"]) == 0
    assert not many.group_offset.any()


def test_events_without_banks_have_no_hits() -> None:
    odin_only, empty_banks = run([simulated(1)[0][:1], [bank_v3(board, []) for board in BOARDS]], Detector.builtin())
    for event in (odin_only, empty_banks):
        assert event.flags & EventFlag.BANK_ERROR == 0
        assert len(event.hits["id"]) == 0
        assert not event.group_offset.any()


def test_a_missing_bank_takes_its_own_hits_only() -> None:
    detector = Detector.builtin()
    banks = [bank for bank in simulated(1)[0] if bank.type != LhcbBankType.UT or bank.source_id != 1]
    (event,) = run([banks], detector)
    assert event.flags == 0
    assert_same_hits(event, detector.ut.hits(decode_ut(banks)), detector.ut)


def test_of_two_banks_of_a_board_the_second_one_is_not_read() -> None:
    side_a, side_c = (source_id(side, data_source_id(3) & 0x7FF) for side in (SubDetector.UT_A, SubDetector.UT_C))
    board, lane, strip, none = (np.array(v, np.uint32) for v in ([3] * 5, range(5), range(9, 14), [0] * 5))
    banks = encode_ut_v4(UtHits(board, lane, strip, none, none, none))
    (bank,) = (bank for bank in banks if bank.source_id == data_source_id(3))
    other = bank._replace(source_id=side_a if bank.source_id == side_c else side_c)
    alone, both = run([[bank], [bank, other]], Detector.builtin())
    assert len(alone.hits["id"]) == len(both.hits["id"]) == 5
    assert both.flags == alone.flags | EventFlag.BANK_ERROR


def v4(header: Sequence[int], n_words: int, source: int = data_source_id(3)) -> RawBank:
    words = (np.arange(n_words, dtype=np.uint16) % 500 + 1) << 5
    return RawBank(LhcbBankType.UT, 4, source, memoryview(bytes(header) + words.astype("<u2").tobytes()))


DAMAGED = {
    "more clusters than the bank has bytes": RawBank(
        LhcbBankType.UT, 3, 3, memoryview(bytes((9, 0, 0, 0, 1, 0, 1, 0)))
    ),
    "no header": RawBank(LhcbBankType.UT, 3, 3, memoryview(b"")),
    "a board above 239": bank_v3(240, [1, 2]),
    "a lane above 5": bank_v3(3, [6 * 512 << 2]),
    "an unknown version": RawBank(LhcbBankType.UT, 5, data_source_id(3), memoryview(bytes(64))),
    "another type": RawBank(LhcbBankType.FT_CLUSTER, 3, source_id(SubDetector.UT_A, 3), memoryview(bytes(64))),
    "version 4 with more hits than bytes": v4((0, 0, 0, 0, 3, 0, 0, 0), 12),
    "version 4 of an odd size": RawBank(LhcbBankType.UT, 4, data_source_id(3), memoryview(bytes(35))),
    "version 4 without header": RawBank(LhcbBankType.UT, 4, data_source_id(3), memoryview(bytes(6))),
    "version 4 with strip 0": RawBank(
        LhcbBankType.UT, 4, data_source_id(3), memoryview(bytes((0, 0, 0, 0, 1, 0, 0, 0)) + bytes(24))
    ),
    "version 4 of board -1": v4((0, 0, 0, 0, 1, 0, 0, 0), 12, source_id(SubDetector.UT_A, 0x100)),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_bank_flags_its_event_and_gives_no_hits(damage: str) -> None:
    good = bank_v3(7, [4, 8, 12])
    bank = DAMAGED[damage]
    if bank.version != 3:
        good = v4((0, 0, 0, 0, 2, 1, 0, 0), 12, data_source_id(7))
    without, with_damage = run([[good], [good, bank]], Detector.builtin())
    assert with_damage.flags == without.flags | EventFlag.BANK_ERROR
    assert len(without.hits["id"]) == 3
    assert with_damage.hits["id"].tolist() == without.hits["id"].tolist()


def test_a_bad_lane_and_a_bank_without_lines_give_no_hits_and_are_no_damage() -> None:
    for bank in (v4((0, 0, 0, 0, 1, 255, 0, 0), 12), v4((1, 1, 1, 1, 1, 1, 1, 1), 11)):
        (event,) = run([[bank]], Detector.builtin())
        assert event.flags == EventFlag.ODIN_ERROR
        assert len(event.hits["id"]) == 0
