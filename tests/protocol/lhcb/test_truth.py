"""Truth banks."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.protocol import Mfp, RawBank, RejectReason, encode_bank, events_of_mfps
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.errors import TruthError
from hltnode.protocol.lhcb.truth import (
    MAX_KIND_SIZE,
    McParticle,
    McSample,
    McVertex,
    decode_particles,
    decode_sample,
    decode_vertices,
    encode_particles,
    encode_sample,
    encode_vertices,
)
from hltnode.protocol.lhcb.truth_columns import CHUNK_SIZE
from tests.protocol import strategies
from tests.protocol.packed_events import mfps_of_events

ONE = McParticle(
    key=1, pid=211, p=5e3, pt=1e3, eta=3.0, phi=1.0, vertex_x=0.0, vertex_y=0.0, vertex_z=1.0, velo_ids=tuple(range(9))
)


@given(st.lists(strategies.particles, max_size=6))
def test_particles_come_back_as_written(particles: list[McParticle]) -> None:
    assert decode_particles(encode_particles(particles)) == particles


@pytest.mark.parametrize("version", [0, 1])
def test_before_version_2_the_signal_flag_is_lost(version: int) -> None:
    signal = replace(ONE, from_signal=True)
    (bank,) = encode_particles([signal], version)
    assert decode_particles([bank]) == [replace(signal, from_signal=False)]
    assert len(bank.payload) == len(encode_particles([signal])[0].payload) - 1


@given(st.lists(strategies.vertices, max_size=6))
def test_vertices_come_back_as_written(vertices: list[McVertex]) -> None:
    assert decode_vertices(encode_vertices(vertices)) == vertices


def test_many_particles_are_split_over_banks_that_fit() -> None:
    particles = [replace(ONE, key=key) for key in range(3000)]
    banks = encode_particles(particles)
    assert len(banks) > 4
    assert [bank.source_id for bank in banks] == list(range(len(banks)))
    assert {len(bank.payload) for bank in banks[:-1]} == {CHUNK_SIZE}
    assert all(len(encode_bank(bank)) <= 1 << 16 for bank in banks)
    assert decode_particles(reversed(banks)) == particles


def test_an_event_without_truth_has_no_particles() -> None:
    assert decode_particles([RawBank(LhcbBankType.UT, 3, 0, memoryview(b""))]) == []


def test_a_missing_bank_is_detected() -> None:
    banks = encode_particles([ONE] * 3000)
    for missing in range(len(banks)):
        with pytest.raises(TruthError) as error:
            decode_particles(banks[:missing] + banks[missing + 1 :])
        assert error.value.reason is RejectReason.TRUNCATED


def payload_of(particles: list[McParticle]) -> bytes:
    return bytes(encode_particles(particles)[0].payload)


@pytest.mark.parametrize(
    ("payload", "version", "reason"),
    [
        (b"", 2, RejectReason.TRUNCATED),
        (b"\xff\xff\xff\xff", 2, RejectReason.TRUNCATED),
        (payload_of([ONE])[:-1], 2, RejectReason.TRUNCATED),
        (payload_of([ONE])[:-8] + b"\xff" * 8, 2, RejectReason.TRUNCATED),
        (payload_of([ONE]) + b"\0", 2, RejectReason.BAD_SIZE),
        (payload_of([ONE]), 3, RejectReason.BAD_VERSION),
        (payload_of([ONE])[:40] + b"\2" + payload_of([ONE])[41:], 2, RejectReason.MALFORMED),
    ],
)
def test_damaged_particles_are_refused_with_their_reason(payload: bytes, version: int, reason: RejectReason) -> None:
    with pytest.raises(TruthError) as error:
        decode_particles([RawBank(LhcbBankType.MC_TRACKS, version, 0, memoryview(payload))])
    assert error.value.reason is reason


@pytest.mark.parametrize("payload", [b"", b"\xff\xff\xff\xff", b"\1\0\0\0", bytes(5), bytes(32)])
def test_damaged_vertices_are_refused(payload: bytes) -> None:
    with pytest.raises(TruthError):
        decode_vertices(RawBank(LhcbBankType.MC_VERTICES, 1, 0, memoryview(payload)))


@pytest.mark.parametrize("change", [{"key": -1}, {"pid": 1 << 31}, {"p": 1e300}, {"velo_ids": (1 << 32,)}])
def test_a_value_that_does_not_fit_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(TruthError):
        encode_particles([replace(ONE, **change)])  # type: ignore[arg-type]


@pytest.mark.parametrize("fixture", ["retina_events", "superpixel_events"])
def test_real_truth_is_used_to_the_last_byte_and_has_the_known_counts(
    fixture: str, request: pytest.FixtureRequest
) -> None:
    events: list[list[RawBank]] = request.getfixturevalue(fixture)
    particles = [decode_particles(banks) for banks in events]
    vertices = [decode_vertices(b) for banks in events for b in banks if b.type == LhcbBankType.MC_VERTICES]
    assert [sum(p.is_long for p in event) for event in particles] == [121, 30, 49, 69, 105, 24, 38]
    assert [len(event) for event in vertices] == [9, 4, 6, 5, 10, 7, 9]
    reconstructible = [sum(vertex.n_tracks >= 4 for vertex in event) for event in vertices]
    assert reconstructible == [7, 4, 5, 4, 7, 4, 5]
    assert [{p.n_pvs for p in event} for event in particles] == [{n} for n in reconstructible]


@pytest.mark.parametrize(("fixture", "version"), [("retina_events", 2), ("superpixel_events", 1)])
def test_real_truth_is_written_back_byte_by_byte(fixture: str, version: int, request: pytest.FixtureRequest) -> None:
    for banks in request.getfixturevalue(fixture):
        real = [b for b in banks if b.type == LhcbBankType.MC_TRACKS]
        assert encode_particles(decode_particles(banks), version) == real
        (vertices,) = (b for b in banks if b.type == LhcbBankType.MC_VERTICES)
        assert encode_vertices(decode_vertices(vertices)) == vertices


def test_truth_is_unchanged_after_mfps(retina_events: list[list[RawBank]]) -> None:
    packets = mfps_of_events(retina_events, 6001)
    events = events_of_mfps([Mfp.parse(packet) for packet in packets.values()])
    assert [decode_particles(banks) for banks in events] == [decode_particles(banks) for banks in retina_events]


SAMPLES = st.builds(
    McSample,
    kind=st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=MAX_KIND_SIZE),
    minimum_bias=st.booleans(),
    weight=st.floats(1e-300, 1e300),
)


@given(SAMPLES)
def test_the_sample_of_an_event_comes_back_as_written(sample: McSample) -> None:
    assert decode_sample(encode_sample(sample)) == sample


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan"), float("inf")])
def test_a_weight_that_counts_no_event_is_refused(weight: float) -> None:
    with pytest.raises(TruthError, match="weight"):
        encode_sample(McSample("minbias", True, weight))
    payload = bytearray(encode_sample(McSample("minbias", True)).payload)
    payload[:8] = struct.pack("<d", weight)
    with pytest.raises(TruthError, match="weight"):
        decode_sample(RawBank(LhcbBankType.MC_SAMPLE, 1, 0, memoryview(payload)))


@pytest.mark.parametrize("kind", ["", "x" * (MAX_KIND_SIZE + 1), "µµ", "a\n"])
def test_a_name_of_a_sample_is_short_and_printable(kind: str) -> None:
    with pytest.raises(TruthError, match="name"):
        encode_sample(McSample(kind, True))


@pytest.mark.parametrize(
    ("bank_type", "version", "payload", "reason"),
    [
        (LhcbBankType.MC_VERTICES, 1, b"\0" * 6 + b"\xf0\x3f" + b"\1\2mb", RejectReason.MISMATCH),
        (LhcbBankType.MC_SAMPLE, 2, b"\0" * 6 + b"\xf0\x3f" + b"\1\2mb", RejectReason.BAD_VERSION),
        (LhcbBankType.MC_SAMPLE, 1, b"\0" * 6 + b"\xf0\x3f" + b"\1\0", RejectReason.BAD_SIZE),
        (LhcbBankType.MC_SAMPLE, 1, b"\0" * 6 + b"\xf0\x3f" + b"\1\x41" + b"x" * 65, RejectReason.BAD_SIZE),
        (LhcbBankType.MC_SAMPLE, 1, b"\0" * 6 + b"\xf0\x3f" + b"\1\3mb", RejectReason.BAD_SIZE),
        (LhcbBankType.MC_SAMPLE, 1, b"\0" * 6 + b"\xf0\x3f" + b"\2\2mb", RejectReason.MALFORMED),
        (LhcbBankType.MC_SAMPLE, 1, b"\0" * 6 + b"\xf0\x3f" + b"\1\2m\xff", RejectReason.MALFORMED),
    ],
)
def test_a_damaged_bank_of_a_sample_is_refused(
    bank_type: int, version: int, payload: bytes, reason: RejectReason
) -> None:
    with pytest.raises(TruthError) as refused:
        decode_sample(RawBank(bank_type, version, 0, memoryview(payload)))
    assert refused.value.reason == reason
