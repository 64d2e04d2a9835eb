"""For any bytes a parser raises only ProtocolError, and allocates no memory for data that were not sent."""

from __future__ import annotations

import tracemalloc
import zlib
from collections.abc import Callable, Iterable
from itertools import chain, islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.protocol import (
    Buffer,
    Mep,
    Mfp,
    Odin,
    ProtocolError,
    RawBank,
    check_crc,
    decode_header,
    decode_odin,
    encode_bank,
    encode_banks,
    encode_frame,
    encode_mep,
    encode_mfp,
    encode_odin,
    encode_record,
    iter_banks,
    iter_meps,
    iter_records,
)
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.muon import decode_muon, decode_muon_pads
from hltnode.protocol.lhcb.banks.scifi import decode_scifi
from hltnode.protocol.lhcb.banks.ut import decode_ut, decode_ut_charges
from hltnode.protocol.lhcb.banks.velo import decode_retina_clusters, decode_superpixels
from hltnode.protocol.lhcb.truth import (
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
from hltnode.protocol.lhcb.truth_ecal import SHOWER, decode_ecal_truth, encode_ecal_truth
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.lumi_summary import LumiSchema, decode_lumi_summary
from hltnode.protocol.raw_data.mep2019 import parse_mep2019
from hltnode.protocol.raw_data.reports import HltDecReports, LineReport, decode_dec_reports, decode_routing_bits
from hltnode.protocol.raw_data.selection_reports import ClassId, HltSelReports, ReportedObject, decode_sel_reports
from hltnode.protocol.transport import feeder_messages as f
from hltnode.protocol.transport.assignments import Assignments, decode_assignment_message, encode_assignment_message
from hltnode.protocol.transport.control_messages import decode_message, encode_message
from hltnode.protocol.transport.decisions import (
    DecisionGroup,
    MepDecision,
    SliceDecision,
    decode_decision,
    decode_decisions,
    encode_decision,
)
from hltnode.protocol.transport.frame_header import HEADER_SIZE
from hltnode.protocol.transport.tap_message import (
    MEP,
    TapHeader,
    decode_tap_header,
    decode_tapped,
    encode_tap_header,
    encode_tapped_about,
)
from hltnode.protocol.value_lists import ListDescription, ValueList, encode_block
from tests.protocol import fuzz
from tests.protocol.packed_events import mfps_of_events
from tests.protocol.raw_data.report_encoders import (
    encode_dec_reports,
    encode_lumi_summary,
    encode_routing_bits,
    encode_sel_reports,
)

Parser = Callable[[bytes], object]


def _bank_parser(decode: Callable[[RawBank], object], bank_type: int, version: int, source: int = 0) -> Parser:
    return lambda data: decode(RawBank(bank_type, version, source, memoryview(data)))


def _read_mfp(data: Buffer) -> None:
    mfp = Mfp.parse(data)
    for i in range(mfp.n_fragments):
        assert len(mfp.fragment(i)) == mfp.sizes[i]
    mfp.banks()


def _read_mep(data: bytes) -> None:
    for mep in iter_meps(data):
        mep.events()


def _read_tapped(data: bytes) -> None:
    decode_tapped([encode_tap_header(TapHeader(MEP, 1, 2, 3, 4)), b"", data])


def _read_frame(data: bytes) -> None:
    header = decode_header(data, max_bytes=1 << 20)
    _read_mfp(memoryview(data)[HEADER_SIZE:])
    check_crc(header, data)


def _read_event(banks: Iterable[RawBank]) -> None:
    """Run every decoder on an event, even if an earlier one refuses it."""
    banks = list(banks)
    decoders: list[Callable[[], object]] = [
        lambda: decode_particles(banks),
        lambda: decode_superpixels(banks),
        lambda: decode_retina_clusters(banks),
        lambda: decode_ut(banks),
        lambda: decode_ut_charges(banks),
        lambda: decode_scifi(banks),
        lambda: decode_muon(banks),
        lambda: decode_muon_pads(banks),
        lambda: mfps_of_events([banks], 0),
    ]
    single = {
        BankType.ODIN: decode_odin,
        LhcbBankType.MC_VERTICES: decode_vertices,
        LhcbBankType.MC_SAMPLE: decode_sample,
        LhcbBankType.MC_ECAL: decode_ecal_truth,
    }
    decoders += [lambda bank=bank: single[bank.type](bank) for bank in banks if bank.type in single]  # type: ignore[misc]
    for decoder in decoders:
        try:
            decoder()
        except ProtocolError:
            continue


def _read_mdf(data: bytes) -> None:
    for record in iter_records(data, verify_checksum=False):
        _read_event(record.banks())


WINDOWS_BLOCK = encode_block(
    ListDescription("windows", {"start_ns": "u8", "end_ns": "u8", "lines": "u4"}),
    ValueList(
        np.array([0, 1, 2], np.uint32),
        {
            "start_ns": np.array([5, 9], np.uint64),
            "end_ns": np.array([7, 19], np.uint64),
            "lines": np.array([1, 2], np.uint32),
        },
    ),
)
PARTICLE = McParticle(
    key=1,
    pid=211,
    p=5e3,
    pt=1e3,
    eta=3.0,
    phi=1.0,
    vertex_x=0.0,
    vertex_y=0.0,
    vertex_z=1.0,
    velo_ids=(1, 2, 3),
    scifi_ids=(4,),
)
ODIN = encode_odin(Odin(run=1, event_id=2))
VP = RawBank(LhcbBankType.VP, 2, 5, memoryview(b"\2\0\0\0" + bytes((0x0F, 3, 1, 0)) * 2))
MFP = encode_mfp(
    source_id=4097, event_id=9, version=3, types=[63, 255, 63, 63], fragments=[b"ab" * 9, b"", b"", b"z" * 41]
)
ODIN_MFP = encode_mfp(source_id=0, event_id=9, version=7, types=[16] * 4, fragments=[bytes(ODIN.payload)] * 4)
RECORD_BODY = encode_banks([ODIN, VP, RawBank(LhcbBankType.VP_RETINA_CLUSTER, 3, 5, VP.payload)])

LUMI = LumiSchema.packed([("a", 14), ("b", 32)])
SELECTED = HltSelReports(
    (
        ReportedObject(ClassId.SELECTION, (3.0,), parts=(2, 3)),
        ReportedObject(ClassId.SELECTION, (5.0,)),
        ReportedObject(ClassId.VERTEX, (1.0, 2.0, 3.0, 4.0), parts=(3, 4)),
        ReportedObject(ClassId.TRACK, (1.0,) * 8, ids=(1, 2, 3)),
        ReportedObject(ClassId.TRACK, (2.0,) * 8, ids=(4, 5, 6, 7)),
    )
)

CASES: dict[str, tuple[Parser, bytes]] = {
    "raw banks": (lambda data: list(iter_banks(data)), encode_bank(ODIN) + encode_bank(VP)),
    "odin v7": (_bank_parser(decode_odin, BankType.ODIN, 7), bytes(ODIN.payload)),
    "odin v6": (_bank_parser(decode_odin, BankType.ODIN, 6), bytes(ODIN.payload)),
    "mfp": (_read_mfp, MFP),
    "mep": (_read_mep, encode_mep([ODIN_MFP, MFP])),
    "mdf": (_read_mdf, encode_record(RECORD_BODY, run=1) * 2),
    "mdf with checksum": (lambda data: list(iter_records(data)), encode_record(RECORD_BODY, run=1)),
    "mdf compressed": (_read_mdf, encode_record(RECORD_BODY, run=1, compression=1)),
    "frame": (_read_frame, encode_frame(MFP, run=1, mep_id=2, source_id=4097)),
    "superpixels v2": (_bank_parser(lambda b: decode_superpixels([b]), LhcbBankType.VP, 2), bytes(VP.payload)),
    "superpixels v4": (
        _bank_parser(lambda b: decode_superpixels([b]), LhcbBankType.VP, 4, 4096 + 3),
        bytes(VP.payload),
    ),
    "retina v2": (_bank_parser(lambda b: decode_retina_clusters([b]), 73, 2), bytes(VP.payload)),
    "retina v3": (_bank_parser(lambda b: decode_retina_clusters([b]), 73, 3), bytes(VP.payload)),
    "retina v4": (_bank_parser(lambda b: decode_retina_clusters([b]), 73, 4), bytes(VP.payload)),
    "particles": (
        _bank_parser(lambda b: decode_particles([b]), LhcbBankType.MC_TRACKS, 2),
        bytes(encode_particles([PARTICLE] * 3)[0].payload),
    ),
    "vertices": (
        _bank_parser(decode_vertices, LhcbBankType.MC_VERTICES, 1),
        bytes(encode_vertices([McVertex(5, 0.1, 0.2, 30.0)] * 2).payload),
    ),
    "sample": (
        _bank_parser(decode_sample, LhcbBankType.MC_SAMPLE, 1),
        bytes(encode_sample(McSample("minbias", True, 0.25)).payload),
    ),
    "calorimeter truth": (
        _bank_parser(decode_ecal_truth, LhcbBankType.MC_ECAL, 1),
        bytes(encode_ecal_truth(np.zeros(2, SHOWER)).payload),
    ),
    "decision reports": (
        _bank_parser(decode_dec_reports, BankType.HLT_DEC_REPORTS, 3),
        bytes(encode_dec_reports(HltDecReports(1, 2, 1, (LineReport(True, 1), LineReport(False, 2, stage=1)))).payload),
    ),
    "routing bits": (
        _bank_parser(decode_routing_bits, BankType.HLT_ROUTING_BITS, 0),
        bytes(encode_routing_bits((1, 0, 0)).payload),
    ),
    "selection reports": (
        _bank_parser(decode_sel_reports, BankType.HLT_SEL_REPORTS, 12),
        bytes(encode_sel_reports(SELECTED).payload),
    ),
    "lumi summary": (
        _bank_parser(lambda b: decode_lumi_summary(b, LUMI), BankType.HLT_LUMI_SUMMARY, 2),
        bytes(encode_lumi_summary({"a": 1, "b": 2}, LUMI).payload),
    ),
    "hello": (decode_message, encode_message(f.Hello("feeder", "s", 1, (1, 2, 70), 0, 100, 1 << 20, False))),
    "ack": (decode_message, encode_message(f.Ack(1, ((0, 4), (7, 7))))),
    "held": (decode_message, encode_message(f.Held("s", 1, ((0, 4), (7, 7))))),
    "nack": (decode_message, encode_message(f.Nack(1, 2, 3, RejectReason.BAD_CRC, True))),
    "missed": (decode_message, encode_message(f.Missed(1, 2, ((0, 4), (7, 7))))),
    "end of run": (decode_message, encode_message(f.EndOfRun(1, 5))),
    "assignments": (
        decode_assignment_message,
        encode_assignment_message(Assignments("session", 3, 1, (1, 2, 1 << 40), (0, 1, 2), False, "")),
    ),
    "decision of 500 lines": (
        decode_decision,
        encode_decision(
            MepDecision("node", 1, 2, 3, 4, 2, 500, 6, "complete", (), b"\x03", bytes(range(128)), bytes(8)),
        ),
    ),
    "decisions of two MEPs": (
        decode_decisions,
        encode_decision(
            DecisionGroup(
                "node", 1, 2, 33, 4, bytes(16), bytes(16), b"\x02\x00\x01\x00", b"\x05", bytes(24), bytes(12), "raw"
            )
        ),
    ),
    "decision on a slice": (
        decode_decisions,
        encode_decision(
            SliceDecision(
                "node", 1, 2, 3, 4, 2, 33, 6, "complete", (), b"\x03", bytes(16), bytes(8), windows=WINDOWS_BLOCK
            )
        ),
    ),
    "tap header": (decode_tap_header, encode_tap_header(TapHeader(MEP, 1, 2, 3, 4))),
    "tapped MEP": (_read_tapped, encode_tapped_about(16, (4, 5), "r")),
    "decision": (
        decode_decision,
        encode_decision(
            MepDecision("node", 1, 2, 3, 4, 5, 33, 6, "complete", (7, 8), b"\x15", bytes(40), bytes(20)),
        ),
    ),
}


def _error(parse: Parser, data: bytes) -> Exception | None:
    """The exception of `parse`."""
    try:
        parse(data)
    except Exception as error:
        return error
    return None


def _is_refusal(error: Exception | None) -> bool:
    """True for a ProtocolError with a text."""
    return isinstance(error, ProtocolError) and isinstance(error.reason, RejectReason) and bool(str(error))


def _refuses_or_reads(parse: Parser, data: bytes) -> bool:
    """True if `parse` refused; any exception except ProtocolError fails the test and prints the bytes."""
    error = _error(parse, data)
    assert error is None or _is_refusal(error), f"{error!r} from {data[:200].hex()} ({len(data)} bytes)"
    return error is not None


@pytest.mark.parametrize("name", CASES)
def test_the_good_input_of_the_corpus_is_read(name: str) -> None:
    parse, good = CASES[name]
    assert _error(parse, good) is None


@pytest.mark.parametrize("name", CASES)
def test_damaged_bytes_raise_only_protocol_errors(name: str) -> None:
    parse, good = CASES[name]
    refused = sum(_refuses_or_reads(parse, data) for data in fuzz.damaged(good))
    assert refused > 0


@pytest.mark.parametrize("name", CASES)
def test_every_truncation_is_refused(name: str) -> None:
    parse, good = CASES[name]
    # These are valid at some shorter lengths: sequences of banks and records, words without a count.
    boundaries = {"raw banks", "mdf", "superpixels v4", "retina v4", "decision reports"}
    lengths = range(len(good) - 1, len(good) - 4, -1) if name in boundaries else range(1, len(good))
    for length in lengths:
        assert _refuses_or_reads(parse, good[:length]), f"{length} of {len(good)} bytes were read"


@pytest.mark.parametrize("name", CASES)
@given(data=st.binary(max_size=300))
def test_noise_raises_only_protocol_errors(name: str, data: bytes) -> None:
    error = _error(CASES[name][0], data)
    assert error is None or _is_refusal(error)


@pytest.mark.parametrize("parse", [decode_message, decode_decision, decode_decisions, decode_assignment_message])
@pytest.mark.parametrize("data", fuzz.HOSTILE_MSGPACK)
def test_hostile_msgpack_is_refused(parse: Parser, data: bytes) -> None:
    assert _refuses_or_reads(parse, data)


@pytest.mark.parametrize("name", CASES)
def test_wrong_sizes_allocate_no_memory(name: str) -> None:
    parse, good = CASES[name]
    tracemalloc.start()
    try:
        for data in fuzz.wrong_sizes(good):
            _refuses_or_reads(parse, data)
        for data in fuzz.HOSTILE_MSGPACK:
            _refuses_or_reads(parse, data)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def _record_of_blocks(*blocks: bytes) -> bytes:
    good = bytearray(encode_record(b"".join(blocks), run=1, checksum=False))
    good[16] = 1
    return bytes(good)


def test_unpacking_of_a_compressed_record_stops_beyond_its_announced_size() -> None:
    bomb = zlib.compress(bytes(1 << 28), 9)
    block = b"ZL\x08" + len(bomb).to_bytes(3, "little") + (1000).to_bytes(3, "little") + bomb
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError) as error:
            list(iter_records(_record_of_blocks(block)))
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    assert error.value.reason is RejectReason.BAD_SIZE


def test_a_compressed_record_cannot_unpack_without_bound() -> None:
    raw = bytes(0xFF0000)
    packed = zlib.compress(raw, 9)
    block = b"ZL\x08" + len(packed).to_bytes(3, "little") + len(raw).to_bytes(3, "little") + packed
    with pytest.raises(ProtocolError) as error:
        list(iter_records(_record_of_blocks(*[block] * 6)))
    assert error.value.reason is RejectReason.OVERSIZED


def _real_corpus(good: bytes, samples: int) -> Iterable[bytes]:
    yield from fuzz.truncations(good, header=60, samples=samples // 4)
    yield from fuzz.bit_flips(good, header=8, samples=samples)
    yield from fuzz.splices(good, samples=samples)


@pytest.mark.parametrize("samples", [40, pytest.param(120, marks=pytest.mark.slow)])
def test_damaged_real_records_raise_only_protocol_errors(retina_mdf: bytes, samples: int) -> None:
    smallest = min((bytes(r.body) for r in iter_records(retina_mdf, verify_checksum=False)), key=len)
    good = encode_record(smallest, run=1, checksum=False)
    assert sum(_refuses_or_reads(_read_mdf, data) for data in _real_corpus(good, samples)) > 0


def test_damaged_real_compressed_records_raise_only_protocol_errors(compressed_mdf: bytes) -> None:
    good = compressed_mdf[: int.from_bytes(compressed_mdf[:4], "little")]
    assert sum(_refuses_or_reads(_read_mdf, data) for data in _real_corpus(good, 120)) > 0


def test_damaged_real_trigger_records_raise_only_protocol_errors(run3_mdf: bytes) -> None:
    def read(data: bytes) -> None:
        decoders = {BankType.ODIN: decode_odin, 17: decode_dec_reports, 53: decode_routing_bits}
        for record in iter_records(data):
            for bank in record.banks():
                decoders.get(bank.type, encode_bank)(bank)

    assert sum(_refuses_or_reads(read, data) for data in _real_corpus(run3_mdf, 400)) > 0


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_damaged_real_2019_packets_raise_only_protocol_errors(mep2019_file: bytes, every: int) -> None:
    """The packet is large, so the normal suite parses only every fifth member of the corpus."""
    corpus = chain(_real_corpus(mep2019_file, 60), fuzz.wrong_sizes(mep2019_file, header=72))
    assert sum(_refuses_or_reads(parse_mep2019, data) for data in islice(corpus, 0, None, every)) > 0
    in_offsets = ((8268 - 4 * i, value) for i in range(1, 20) for value in fuzz.LYING_U32)
    for at, value in islice(in_offsets, 0, None, every):
        lying = mep2019_file[:at] + value.to_bytes(4, "little") + mep2019_file[at + 4 :]
        _refuses_or_reads(parse_mep2019, lying)


def test_damaged_meps_of_real_events_raise_only_protocol_errors(superpixel_events: list[list[RawBank]]) -> None:
    good = encode_mep(list(mfps_of_events(superpixel_events[5:6], 1).values()))
    Mep.parse(good)
    assert sum(_refuses_or_reads(_read_mep, data) for data in _real_corpus(good, 60)) > 0
