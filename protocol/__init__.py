"""Formats on the wire and on disk: pure functions over buffers, without I/O, threads or clock.

This package exports the most used names. Formats that few callers need (2019 MEP, truth, reports, decisions, control
messages) and the formats of one experiment's detectors are imported from their modules.
"""

from hltnode.protocol.buffers import Buffer
from hltnode.protocol.errors import ProtocolError, RejectReason
from hltnode.protocol.raw_data.bank_types import NO_BANK, USER_TYPES, BankType
from hltnode.protocol.raw_data.mdf import MdfHeader, MdfRecord, encode_record, iter_records
from hltnode.protocol.raw_data.mep import Mep, encode_mep, iter_meps
from hltnode.protocol.raw_data.mfp import Mfp, encode_mfp, events_of_mfps
from hltnode.protocol.raw_data.odin import Odin, decode_odin, encode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_bank, encode_banks, iter_banks
from hltnode.protocol.raw_data.source_id import ODIN_SOURCE, USER_SUBDETECTORS, number_of, source_id, subdetector_of
from hltnode.protocol.transport.frame_header import FrameHeader, check_crc, decode_header, encode_frame

__all__ = [
    "NO_BANK",
    "ODIN_SOURCE",
    "USER_SUBDETECTORS",
    "USER_TYPES",
    "BankType",
    "Buffer",
    "FrameHeader",
    "MdfHeader",
    "MdfRecord",
    "Mep",
    "Mfp",
    "Odin",
    "ProtocolError",
    "RawBank",
    "RejectReason",
    "check_crc",
    "decode_header",
    "decode_odin",
    "encode_bank",
    "encode_banks",
    "encode_frame",
    "encode_mep",
    "encode_mfp",
    "encode_odin",
    "encode_record",
    "events_of_mfps",
    "iter_banks",
    "iter_meps",
    "iter_records",
    "number_of",
    "source_id",
    "subdetector_of",
]
